//! What a check found, for people and for programs.

mod badge;
mod json;
mod junit;
mod markdown;
mod sarif;
mod text;

pub use junit::junit;
pub use sarif::sarif;

use std::collections::BTreeMap;

use attache_proto::Dialect;

use crate::judge::{Choice, judge};
use crate::record::{Event, Record, Side};
use crate::rule::{Level, Rule, harmless};
use crate::waivers::Waivers;

/// A record that is judged, and what it is of.
#[derive(Debug, Clone)]
pub struct Run {
    /// The probe that made it, or the file that it was read from.
    pub name: String,
    /// What was recorded.
    pub record: Record,
}

/// What a check found.
#[derive(Debug)]
pub struct Report {
    /// What was checked: a command, a name, a file.
    pub subject: String,
    /// The side that was judged.
    pub side: Side,
    /// The dialects that were spoken.
    pub dialects: Vec<Dialect>,
    /// How many records were judged.
    pub runs: usize,
    /// The rules that apply, in the order of the tables.
    pub rules: Vec<RuleReport>,
}

/// What came of one rule.
#[derive(Debug)]
pub struct RuleReport {
    /// The rule.
    pub rule: &'static Rule,
    /// How it went.
    pub outcome: Outcome,
    /// How often it mattered.
    pub tested: usize,
    /// Where it was broken: the first [`MOST_SHOWN`] places.
    pub findings: Vec<Shown>,
    /// In how many places it was broken.
    pub count: usize,
}

/// How it went with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It mattered and was kept.
    Kept,
    /// It was broken.
    Broken,
    /// It was broken, and somebody said why that is so.
    Waived {
        /// The reason.
        reason: String,
    },
    /// It is waived although it was kept.
    NeedlesslyWaived,
    /// It never mattered, so nobody knows.
    NotTested,
}

impl Outcome {
    /// The name in reports for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::Broken => "broken",
            Outcome::Waived { .. } => "waived",
            Outcome::NeedlesslyWaived => "needlessly-waived",
            Outcome::NotTested => "not-tested",
        }
    }

    /// Whether it makes a check fail.
    pub fn is_finding(&self) -> bool {
        matches!(self, Outcome::Broken | Outcome::NeedlesslyWaived)
    }
}

/// A place where a rule was broken, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The probe or the file.
    pub run: String,
    /// How the connection spoke.
    pub dialect: Dialect,
    /// What was seen.
    pub seen: String,
    /// The entries of the record that show it, from 0.
    pub entries: Vec<usize>,
    /// These messages, cut short and harmless: `-->` is from the client, `<--` from the agent.
    pub messages: Vec<String>,
    /// How the process ended after that, if it failed, with the last that it wrote to stderr.
    pub ended: Option<String>,
}

/// How many places of a rule are shown. The others are counted.
pub const MOST_SHOWN: usize = 3;

/// How much is shown of a command or of the name of a file.
const LONGEST_NAME: usize = 400;

/// How much of a message is shown.
const LONGEST_MESSAGE: usize = 240;

impl Report {
    /// Judges what one side did in these records.
    pub fn new(subject: impl Into<String>, side: Side, runs: &[Run], choice: &Choice, waivers: &Waivers) -> Self {
        let mut rules: Vec<RuleReport> = Vec::new();
        let mut dialects = Vec::new();
        for run in runs {
            for connection in run.record.connections() {
                let dialect = crate::exchange::Exchange::new(connection.1).dialect;
                if choice.includes_dialect(dialect) && !dialects.contains(&dialect) {
                    dialects.push(dialect);
                }
            }
            for judged in judge(&run.record, side, choice) {
                let known = rules.iter().position(|report| report.rule.id == judged.rule.id);
                let index = known.unwrap_or_else(|| {
                    let outcome = Outcome::NotTested;
                    rules.push(RuleReport { rule: judged.rule, outcome, tested: 0, findings: Vec::new(), count: 0 });
                    rules.len() - 1
                });
                let report = &mut rules[index];
                report.tested += judged.tested;
                report.count += judged.findings.len();
                let room = MOST_SHOWN.saturating_sub(report.findings.len());
                report.findings.extend(judged.findings.into_iter().take(room).map(|finding| Shown {
                    run: harmless(&run.name, LONGEST_NAME),
                    dialect: finding.dialect,
                    seen: finding.seen,
                    messages: finding.entries.iter().filter_map(|entry| message(&run.record, *entry)).collect(),
                    ended: ended(&run.record, side, finding.entries.iter().copied().max().unwrap_or(0)),
                    entries: finding.entries,
                }));
            }
        }
        for report in &mut rules {
            report.outcome = match (report.count, report.tested, waivers.reason(report.rule.id)) {
                (0, 0, _) => Outcome::NotTested,
                (0, _, None) => Outcome::Kept,
                (0, _, Some(_)) => Outcome::NeedlesslyWaived,
                (_, _, None) => Outcome::Broken,
                (_, _, Some(reason)) => Outcome::Waived { reason: reason.to_owned() },
            };
        }
        let order = |rule: &Rule| crate::rules::all().position(|other| other.id == rule.id);
        rules.sort_by_key(|report| order(report.rule));
        dialects.sort_unstable();
        Report { subject: harmless(&subject.into(), LONGEST_NAME), side, dialects, runs: runs.len(), rules }
    }

    /// Whether no rule mattered: then there is no verdict.
    pub fn is_empty(&self) -> bool {
        self.rules.iter().all(|report| report.outcome == Outcome::NotTested)
    }

    /// Whether there is nothing to find fault with.
    pub fn is_conformant(&self) -> bool {
        !self.rules.iter().any(|report| report.outcome.is_finding())
    }

    /// How many rules came out this way.
    pub fn count(&self, is_so: impl Fn(&RuleReport) -> bool) -> usize {
        self.rules.iter().filter(|report| is_so(report)).count()
    }

    /// How many rules of a level are broken, or waived for no reason.
    pub fn broken(&self, level: Level) -> usize {
        self.count(|report| report.rule.level == level && report.outcome.is_finding())
    }

    /// The verdict in one line.
    pub fn verdict(&self) -> String {
        let kept = self.count(|report| report.outcome == Outcome::Kept);
        let waived = self.count(|report| matches!(report.outcome, Outcome::Waived { .. }));
        let not_tested = self.count(|report| report.outcome == Outcome::NotTested);
        let beside = match waived {
            0 => format!("{kept} {} kept, {not_tested} not tested", plural(kept, "rule")),
            _ => format!("{kept} {} kept, {waived} waived, {not_tested} not tested", plural(kept, "rule")),
        };
        if self.is_empty() {
            return "nothing was tested".to_owned();
        }
        match (self.broken(Level::Must), self.broken(Level::Should)) {
            (0, 0) => format!("conformant: {beside}"),
            (0, should) => {
                format!("conformant, but {should} {} not followed: {beside}", plural(should, "recommendation"))
            }
            (must, 0) => format!("not conformant: {must} {} broken; {beside}", plural(must, "rule")),
            (must, should) => format!(
                "not conformant: {must} {} broken, {should} {} not followed; {beside}",
                plural(must, "rule"),
                plural(should, "recommendation")
            ),
        }
    }

    /// The dialects that were spoken, for people: `1, 2`.
    pub fn spoken(&self) -> String {
        match &self.dialects[..] {
            [] => "unknown".to_owned(),
            dialects => dialects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }

    /// `agent` or `client`.
    pub fn side_name(&self) -> &'static str {
        match self.side {
            Side::Agent => "agent",
            Side::Client => "client",
        }
    }

    /// The areas, in the order of the tables, with how many of their rules were kept, broken, waived and not tested.
    pub fn areas(&self) -> Vec<(&'static str, [usize; 4])> {
        let mut order = Vec::new();
        let mut counts: BTreeMap<&'static str, [usize; 4]> = BTreeMap::new();
        for report in &self.rules {
            let area = area(report.rule);
            if !order.contains(&area) {
                order.push(area);
            }
            let column = match report.outcome {
                Outcome::Kept => 0,
                Outcome::Broken | Outcome::NeedlesslyWaived => 1,
                Outcome::Waived { .. } => 2,
                Outcome::NotTested => 3,
            };
            counts.entry(area).or_default()[column] += 1;
        }
        order.into_iter().map(|area| (area, counts[area])).collect()
    }
}

/// The area of a rule: what its id begins with.
pub fn area(rule: &Rule) -> &'static str {
    rule.id.split_once('/').map_or(rule.id, |(area, _)| area)
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// An entry of a record on one line: cut short, and without anything that a terminal or a page would act on.
fn message(record: &Record, entry: usize) -> Option<String> {
    let (arrow, text) = match &record.entries.get(entry)?.event {
        Event::Frame { from: Side::Client, text } => ("-->", text.clone()),
        Event::Frame { from: Side::Agent, text } => ("<--", text.clone()),
        Event::Junk { from, bytes } => (if *from == Side::Client { "-->" } else { "<--" }, format!("({bytes} bytes)")),
        _ => return None,
    };
    let mut without_secrets = String::new();
    if !attache::trace::redact(&text, &mut without_secrets) {
        without_secrets = attache::trace::redact_text(&text).into_owned();
    }
    Some(format!("{arrow} {}", harmless(&without_secrets, LONGEST_MESSAGE)))
}

/// How the process of the side that is judged ended on the connection of an entry, and the last line that it wrote to stderr, if it ended
/// after that entry and with a failure.
fn ended(record: &Record, side: Side, entry: usize) -> Option<String> {
    let connection = || record.entries.iter().skip(entry).take_while(|entry| entry.event != Event::Restarted);
    // Whoever checks closes its end, and then ends what does not leave by itself.
    let is_left = connection().any(|entry| entry.event == Event::Closed { from: crate::exchange::other(side) });
    let how = connection().find_map(|entry| match entry.event {
        Event::Exited { code: Some(code) } if code != 0 => Some(format!("exited with status {code}")),
        Event::Exited { code: None } if !is_left => Some("was ended by a signal".to_owned()),
        _ => None,
    })?;
    let name = if side == Side::Agent { "agent" } else { "client" };
    let last = connection().filter_map(|entry| match &entry.event {
        Event::Stderr { text } if !text.trim().is_empty() => Some(text),
        _ => None,
    });
    Some(match last.last() {
        Some(text) => {
            let text = attache::trace::redact_text(text.trim());
            format!("the {name} {how}; the last line of its stderr: {}", crate::rule::shown(&text))
        }
        None => format!("the {name} {how}"),
    })
}

#[cfg(test)]
mod tests;
