//! What a client can be made to do: the table of scenarios.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::driver::AgentDriver;
use super::scenarios::{content, elicitation, ending, envelope, files, permission, session, terminals, tools};
use crate::rule::Dialects;

/// Why a turn ended, as `stopReason` says it.
pub(super) type Stop = &'static str;

type Playing<'a> = Pin<Box<dyn Future<Output = Stop> + Send + 'a>>;

/// Something that a client can be made to do or to bear.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The dialects in which it has a meaning.
    pub dialects: Dialects,
    /// What of a connection it is about.
    pub kind: Kind,
    /// What it does, in one sentence.
    pub what: &'static str,
    /// Plays it in a turn.
    pub(super) play: for<'a> fn(&'a mut AgentDriver) -> Playing<'a>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What of a connection a scenario is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A turn.
    Turn,
    /// A prompt that is refused.
    Refusal,
    /// A turn in which the agent leaves: nothing comes after it.
    Last,
    /// The whole connection from its beginning: it has to be chosen by its name.
    Connection(Setup),
}

/// What is different in a connection from its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Setup {
    /// The version that `initialize` is answered with.
    pub version: Version,
    /// Whether there are no sessions before the client has logged in.
    pub asks_login: bool,
    /// Whether updates come before the answer to `session/new`.
    pub speaks_early: bool,
    /// Whether the first answers take two seconds each.
    pub is_slow: bool,
}

/// The version that `initialize` is answered with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// The one that was asked for.
    #[default]
    AsAsked,
    /// Version 1, whatever was asked for.
    Oldest,
    /// One that nobody speaks.
    Unknown,
}

impl Setup {
    const USUAL: Setup = Setup { version: Version::AsAsked, asks_login: false, speaks_early: false, is_slow: false };
}

const OLDEST: Kind = Kind::Connection(Setup { version: Version::Oldest, ..Setup::USUAL });
const UNKNOWN: Kind = Kind::Connection(Setup { version: Version::Unknown, ..Setup::USUAL });
const LOGIN: Kind = Kind::Connection(Setup { asks_login: true, ..Setup::USUAL });
const EARLY: Kind = Kind::Connection(Setup { speaks_early: true, ..Setup::USUAL });
const SLOW: Kind = Kind::Connection(Setup { is_slow: true, ..Setup::USUAL });

const ALL: Dialects = Dialects::ALL;
const V1: Dialects = Dialects::V1;
const V2: Dialects = Dialects::V2;
const V1_AND_V2: Dialects = Dialects::V1_AND_V2;

macro_rules! table {
    ($($name:literal $dialects:expr, $kind:expr, $play:expr, $what:literal;)*) => {
        &[$(Scenario {
            name: $name,
            dialects: $dialects,
            kind: $kind,
            what: $what,
            play: |agent| Box::pin($play(agent)),
        }),*]
    };
}

/// The scenarios, in the order in which an editor gets them.
const TABLE: &[Scenario] = table! {
    "older-version" ALL, OLDEST, session::plain, "`initialize` is answered with version 1, whatever was asked for.";
    "unknown-version" ALL, UNKNOWN, session::plain, "`initialize` is answered with a version that nobody speaks.";
    "login" ALL, LOGIN, session::plain, "There are no sessions before the client has logged in.";
    "early-updates" ALL, EARLY, session::plain, "Updates come before the answer to `session/new`, one of them for a session that nobody has.";
    "slow-start" ALL, SLOW, session::plain, "The first answers take two seconds each.";
    "text" ALL, Kind::Turn, content::text, "Messages and thoughts come in pieces, and two messages at once.";
    "whole-messages" V2, Kind::Turn, content::whole_messages, "Messages come whole, are replaced and taken back.";
    "content-kinds" ALL, Kind::Turn, content::kinds, "A message has an image, a sound, a link and an embedded file.";
    "unknown-content" ALL, Kind::Turn, content::unknown, "Updates and content come that the client cannot know, and some that are malformed.";
    "long-update" ALL, Kind::Turn, content::long, "One update has four megabytes, then a thousand short ones follow.";
    "plan" ALL, Kind::Turn, content::plan, "A plan comes, progresses and shrinks.";
    "tool-calls" ALL, Kind::Turn, tools::statuses, "Tool calls of all kinds go through all statuses, with content, places and raw values.";
    "tool-changes" ALL, Kind::Turn, tools::changes, "A tool call changes after its end, and one is changed that was never reported.";
    "tool-cancel" V2, Kind::Turn, tools::cancellable, "A tool call and a terminal can be cancelled, if the client wants to.";
    "shown-terminal" V2, Kind::Turn, tools::shown_terminal, "A command of the agent's own is shown while it runs.";
    "permission" ALL, Kind::Turn, permission::usual, "Permission is asked for twice, with all kinds of choices.";
    "permission-kinds" ALL, Kind::Turn, permission::unknown_kinds, "Permission is asked for with choices of kinds that nobody knows.";
    "permission-twice" ALL, Kind::Turn, permission::two_at_once, "Permission is asked for twice at the same time.";
    "permission-withdrawn" ALL, Kind::Turn, permission::withdrawn, "Permission is asked for, and the question is withdrawn at once.";
    "cancel" ALL, Kind::Turn, permission::until_cancelled, "Questions stay open: cancel this turn, if you can.";
    "read-files" V1, Kind::Turn, files::read, "Files are read whole and in part, files that are missing and files elsewhere.";
    "write-files" V1, Kind::Turn, files::write, "Files are written, new and old, in new directories and elsewhere.";
    "terminal" V1, Kind::Turn, terminals::usual, "A command runs to its end, is shown and released.";
    "terminal-kill" V1, Kind::Turn, terminals::kill, "A command that would run for long is killed while somebody waits for it.";
    "terminal-release" V1, Kind::Turn, terminals::release, "Commands that would run for long are released.";
    "terminal-limit" V1, Kind::Turn, terminals::limit, "A command writes more than is to be kept.";
    "terminal-unknown" V1, Kind::Turn, terminals::unknown, "Terminals are named that do not exist, and a program that does not.";
    "not-offered" ALL, Kind::Turn, envelope::not_offered, "What the client did not offer is asked for all the same.";
    "form" V1_AND_V2, Kind::Turn, elicitation::form, "A form asks for values of all kinds, if the client offers forms.";
    "url" V1_AND_V2, Kind::Turn, elicitation::url, "A page is to be opened, if the client offers that.";
    "elicitation-unknown" V1_AND_V2, Kind::Turn, elicitation::unknown, "A form has a field of an unknown kind, and a question comes in an unknown mode.";
    "unknown-methods" ALL, Kind::Turn, envelope::unknown_methods, "Requests and notifications come that the client cannot know.";
    "ids" ALL, Kind::Turn, envelope::ids, "Requests have ids of all kinds, one of them the id of the client's own prompt.";
    "malformed-lines" ALL, Kind::Turn, envelope::malformed, "Lines come that are no messages.";
    "batches" ALL, Kind::Turn, envelope::batches, "Several messages come in one array, as the draft of version 2 has it.";
    "stray-answers" ALL, Kind::Turn, envelope::stray_answers, "Answers come to requests that were never sent, or were answered before.";
    "unknown-session" ALL, Kind::Turn, session::unknown, "Updates and questions come for a session that nobody has.";
    "session-updates" ALL, Kind::Turn, session::updates, "Commands, options, titles, usage and notices change.";
    "states" V2, Kind::Turn, session::states, "The session goes through all states, and one that nobody knows.";
    "between-turns" ALL, Kind::Turn, session::between_turns, "Updates and questions come after the turn has ended.";
    "slow" ALL, Kind::Turn, session::slow, "Nothing happens for three seconds in the middle of the turn.";
    "stop-max-tokens" ALL, Kind::Turn, ending::max_tokens, "The turn ends because the answer was too long.";
    "stop-max-requests" ALL, Kind::Turn, ending::max_requests, "The turn ends because it took too many requests.";
    "stop-refusal" ALL, Kind::Turn, ending::refusal, "The turn ends because the model refuses.";
    "stop-unknown" Dialects::ANY_V2, Kind::Turn, ending::unknown, "The turn ends for a reason that nobody knows.";
    "stop-error" V2, Kind::Turn, ending::error, "The turn ends with an error.";
    "prompt-error" ALL, Kind::Refusal, session::refused, "The prompt is answered with an error.";
    "leave" ALL, Kind::Last, ending::leave, "The agent leaves in the middle of the turn.";
    "leave-asking" ALL, Kind::Last, ending::leave_asking, "The agent leaves while a question is open.";
    "leave-in-line" ALL, Kind::Last, ending::leave_in_line, "The agent leaves in the middle of a line.";
};

/// All scenarios.
pub fn scenarios() -> &'static [Scenario] {
    TABLE
}

/// The scenario with this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    TABLE.iter().find(|scenario| scenario.name == name)
}
