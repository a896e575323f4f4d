//! What a rule is: a row with a judge, which is a pure function over a recorded exchange.

use std::fmt;
use std::ops::{BitOr, Deref};

use attache_proto::Dialect;

use crate::exchange::{Exchange, MessageIndex};
use crate::record::Side;
use crate::rules::Past;

/// A rule of the protocol.
pub struct Rule {
    /// Its name: an area, and what it asks for: `prompt/cancelled-says-so`.
    pub id: &'static str,
    /// Whom it binds.
    pub binds: Binds,
    /// How strictly.
    pub level: Level,
    /// The dialects that have it.
    pub dialects: Dialects,
    /// What it says, in one sentence.
    pub statement: &'static str,
    /// Where it comes from: items of the lists in the specification's summary (`v1/56`, `v2/36`, `rpc`), then the documents.
    pub source: &'static str,
    /// What whoever breaks it should do instead.
    pub instead: &'static str,
    /// Rules that cannot be kept where this one is broken.
    pub implies: &'static [&'static str],
    /// Judges an exchange: counts how often the rule mattered, and says where it was broken.
    pub judge: fn(&Trial<'_>, &mut Verdict),
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whom a rule binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binds {
    /// Agents.
    Agent,
    /// Clients.
    Client,
    /// Both sides, each judged by itself.
    Both,
}

impl Binds {
    /// Whether it binds this side.
    pub fn includes(self, side: Side) -> bool {
        match self {
            Binds::Agent => side == Side::Agent,
            Binds::Client => side == Side::Client,
            Binds::Both => true,
        }
    }
}

/// How strictly a rule is meant. "Must not" is `Must`, "should not" is `Should`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whoever breaks it does not speak the protocol.
    Must,
    /// There may be a good reason to break it.
    Should,
}

impl Level {
    /// `must` or `should`.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Should => "should",
        }
    }
}

/// A set of dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialects(u8);

impl Dialects {
    /// Version 1.
    pub const V1: Dialects = Dialects(1);
    /// The draft of version 2.
    pub const DRAFT: Dialects = Dialects(2);
    /// Version 2 as published.
    pub const V2: Dialects = Dialects(4);
    /// Version 1 and the draft, where a prompt is answered at the end of its turn.
    pub const V1_AND_DRAFT: Dialects = Dialects(3);
    /// What has been published: not the draft.
    pub const V1_AND_V2: Dialects = Dialects(5);
    /// Version 2, published and draft.
    pub const ANY_V2: Dialects = Dialects(6);
    /// All of them.
    pub const ALL: Dialects = Dialects(7);

    /// One dialect.
    pub fn only(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V1 => Dialects::V1,
            Dialect::V2Draft => Dialects::DRAFT,
            Dialect::V2 => Dialects::V2,
        }
    }

    /// Whether it has a dialect.
    pub fn includes(self, dialect: Dialect) -> bool {
        self.0 & Dialects::only(dialect).0 != 0
    }

    /// The dialects in it.
    pub fn iter(self) -> impl Iterator<Item = Dialect> {
        [Dialect::V1, Dialect::V2Draft, Dialect::V2].into_iter().filter(move |dialect| self.includes(*dialect))
    }
}

impl BitOr for Dialects {
    type Output = Dialects;

    fn bitor(self, other: Dialects) -> Dialects {
        Dialects(self.0 | other.0)
    }
}

/// What a rule judges: an exchange, the side that is judged, and the connections before it with the same peer. It is used like the
/// exchange itself.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The exchange.
    pub exchange: &'a Exchange<'a>,
    /// The connections before it.
    pub before: &'a Past<'a>,
    /// Who is judged.
    pub side: Side,
}

impl<'a> Deref for Trial<'a> {
    type Target = Exchange<'a>;

    fn deref(&self) -> &Exchange<'a> {
        self.exchange
    }
}

/// What a judge found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// How often the rule mattered: kept or broken.
    pub tested: usize,
    /// Where it was broken.
    pub faults: Vec<Fault>,
}

/// A place where a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The messages that show it, at least one.
    pub messages: Vec<MessageIndex>,
    /// What was seen, in our own words; what a peer wrote is in it only by [`shown`].
    pub seen: String,
}

impl Verdict {
    /// The rule mattered here, and was kept.
    pub fn kept(&mut self) {
        self.tested += 1;
    }

    /// The rule was broken; this message shows it.
    pub fn broken(&mut self, message: MessageIndex, seen: impl Into<String>) {
        self.broken_by(vec![message], seen);
    }

    /// The rule was broken; these messages show it.
    pub fn broken_by(&mut self, messages: Vec<MessageIndex>, seen: impl Into<String>) {
        self.tested += 1;
        self.faults.push(Fault { messages, seen: seen.into() });
    }

    /// The rule mattered here; it was kept if this is so, and else broken: this message shows it.
    pub fn check(&mut self, is_kept: bool, message: MessageIndex, seen: impl FnOnce() -> String) {
        if is_kept { self.kept() } else { self.broken(message, seen()) }
    }
}

/// Something that a peer wrote, made harmless and short, in backticks.
pub fn shown(text: &str) -> String {
    format!("`{}`", harmless(text, 60).replace('`', "'"))
}

/// The beginning of what a peer wrote, without anything that a terminal or a page would act on.
pub fn harmless(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).map(|c| if is_plain(c) { c } else { '\u{fffd}' }).collect();
    if text.chars().nth(longest).is_some() {
        short.push('…');
    }
    short
}

/// Whether a character can neither move a cursor nor hide or turn round what stands beside it.
fn is_plain(c: char) -> bool {
    let is_invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_invisible
}
