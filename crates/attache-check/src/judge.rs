//! Judges a record by all rules: what was kept, what was broken, what was never tested.

use std::collections::BTreeSet;

use attache_proto::Dialect;

use crate::exchange::{Exchange, MessageIndex};
use crate::record::{Event, Record, Side};
use crate::rule::{Dialects, Level, Rule, Trial, Verdict};
use crate::rules::{self, Past};

/// Which rules to judge by.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only rules whose id is one of these, or begins with one of these and a slash; all if there are none.
    pub only: Vec<String>,
    /// Only rules of this level or a stricter one.
    pub level: Option<Level>,
    /// Only connections that speak one of these dialects.
    pub dialects: Option<Dialects>,
}

impl Choice {
    /// Whether what is said in a dialect is judged.
    pub fn includes_dialect(&self, dialect: Dialect) -> bool {
        self.dialects.is_none_or(|dialects| dialects.includes(dialect))
    }

    /// Whether a rule is chosen.
    pub fn includes(&self, rule: &Rule) -> bool {
        let is_named = |name: &String| {
            rule.id == name || rule.id.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.level.is_none_or(|level| rule.level <= level) && (self.only.is_empty() || self.only.iter().any(is_named))
    }
}

/// What came of a rule.
#[derive(Debug)]
pub struct Judged {
    /// The rule.
    pub rule: &'static Rule,
    /// How often it mattered; never, if this is zero.
    pub tested: usize,
    /// Where it was broken.
    pub findings: Vec<Finding>,
}

/// A place in a record where a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was seen.
    pub seen: String,
    /// The entries of the record that show it: first the one that breaks the rule, then what it goes back to, in order.
    pub entries: Vec<usize>,
    /// How the connection spoke.
    pub dialect: Dialect,
}

/// Judges what one side did in a record, by the rules that bind it in the dialects that were spoken. A connection whose beginning is
/// not in the record is not judged: what was said there decides what may be said later.
pub fn judge(record: &Record, side: Side, choice: &Choice) -> Vec<Judged> {
    let connections: Vec<_> = record.connections().collect();
    let exchanges: Vec<Exchange<'_>> = connections.iter().map(|(_, entries)| Exchange::new(entries)).collect();
    let spoken: BTreeSet<Dialect> = exchanges.iter().map(|exchange| exchange.dialect).collect();
    let is_in = |rule: &Rule, dialect: Dialect| rule.dialects.includes(dialect) && choice.includes_dialect(dialect);
    let is_chosen = |rule: &&Rule| rule.binds.includes(side) && choice.includes(rule);
    let chosen = rules::all().filter(is_chosen).filter(|rule| spoken.iter().any(|dialect| is_in(rule, *dialect)));
    let mut all: Vec<Judged> = chosen.map(|rule| Judged { rule, tested: 0, findings: Vec::new() }).collect();
    let mut before = Past::default();
    for (exchange, (start, entries)) in exchanges.iter().zip(&connections) {
        if entries.first().is_some_and(|entry| entry.event == Event::Continued) {
            continue;
        }
        for judged in all.iter_mut().filter(|judged| is_in(judged.rule, exchange.dialect)) {
            let mut verdict = Verdict::default();
            (judged.rule.judge)(&Trial { exchange, before: &before, side }, &mut verdict);
            judged.tested += verdict.tested;
            let entry = |message: usize| exchange.messages.get(message).map_or(0, |message| message.entry);
            judged.findings.extend(verdict.faults.into_iter().map(|fault| {
                Finding {
                    entries: culprit_first(exchange, side, fault.messages)
                        .into_iter()
                        .map(|message| start + entry(message))
                        .collect(),
                    seen: fault.seen,
                    dialect: exchange.dialect,
                }
            }));
        }
        before.add(exchange);
    }
    all
}

/// Puts the message that breaks a rule first: the last one that the judged side sent. If it sent none, what it did not do is the matter, and
/// the order stays.
fn culprit_first(exchange: &Exchange<'_>, side: Side, mut messages: Vec<MessageIndex>) -> Vec<MessageIndex> {
    let is_ours = |at: &MessageIndex| exchange.messages.get(*at).is_some_and(|message| message.from == side);
    let ours = messages.iter().copied().enumerate().filter(|(_, at)| is_ours(at));
    if let Some((place, _)) = ours.max_by_key(|(_, at)| *at) {
        messages[..=place].rotate_right(1);
    }
    messages
}
