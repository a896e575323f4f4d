//! Lines on stdin and stdout, and what belongs there.

use std::collections::HashMap;

use crate::exchange::{Body, Mistake};
use crate::probe::{LONGEST_FRAME, MOST_RECORDED};
use crate::record::{Event, Side};
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "transport/only-messages",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Nothing but messages, one a line, goes over the connection: an agent logs to stderr, not to stdout.",
        source: "v1/90 v1/91 v2/53; S0 S1 S4 DOC",
        instead: "Write logs and banners to stderr, and messages without line breaks in them.",
        implies: &[],
        judge: only_messages,
    },
    Rule {
        id: "transport/utf-8",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Messages are UTF-8.",
        source: "v1/90 v2/53; S1 S4 DOC",
        instead: "Encode what you send as UTF-8, and replace what has no characters.",
        implies: &[],
        judge: utf_8,
    },
    Rule {
        id: "transport/blank-lines",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "Blank lines are skipped.",
        source: "rpc; TS",
        instead: "Skip lines without anything in them, and answer nothing.",
        implies: &["envelope/answered"],
        judge: blank_lines,
    },
    Rule {
        id: "transport/ends-with-input",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "An agent ends when its input has ended.",
        source: "v1/94 v2/53; S4 DOC",
        instead: "Save what is to be saved and exit when stdin is at its end.",
        implies: &[],
        judge: ends_with_input,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/92",
        "Lines or `Content-Length` headers are kept to, once begun with.",
        "a record has the messages without what frames them",
    ),
    ("v1/93", "What is written is flushed at once.", "a late message may as well be a slow one"),
    (
        "v1/95",
        "Other transports keep the format and the lifecycle, and are documented.",
        "a record does not say how it was carried",
    ),
];

fn only_messages(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        match message.body {
            Body::NotJson if message.text.trim().is_empty() => {}
            Body::NotJson => verdict.broken(index, "a line that is not JSON"),
            Body::Junk => {}
            _ => verdict.kept(),
        }
    }
}

fn utf_8(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut recorded: usize = 0;
    for (index, message) in trial.messages_of(trial.side) {
        let entry = trial.entries.get(message.entry).map(|entry| &entry.event);
        match entry {
            Some(Event::Junk { bytes, .. }) => {
                recorded = recorded.saturating_add(*bytes);
                // More is not recorded, whatever it was.
                if *bytes < LONGEST_FRAME && recorded < MOST_RECORDED {
                    verdict.broken(index, format!("{bytes} bytes that are not UTF-8"));
                }
            }
            _ => {
                // A line counts once, however many messages are in it.
                if message.in_batch.is_none_or(|place| place == 0) {
                    recorded = recorded.saturating_add(message.text.len());
                }
                verdict.kept();
            }
        }
    }
}

fn blank_lines(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    let strays = trial.strays.iter().filter(|stray| stray.from == trial.side);
    let answers: HashMap<_, _> = strays.filter_map(|stray| Some((stray.to?, stray.at))).collect();
    for mishap in trial.mishaps.iter().filter(|mishap| mishap.from != trial.side && mishap.what == Mistake::Blank) {
        match (answers.get(&mishap.at), pulse.beats_after(mishap.at)) {
            (Some(answer), _) => verdict.broken_by(vec![mishap.at, *answer], "a blank line was answered"),
            (None, Some(true)) => verdict.kept(),
            (None, Some(false)) => verdict.broken(mishap.at, "after a blank line nothing more was served"),
            (None, None) => {}
        }
    }
}

fn ends_with_input(trial: &Trial<'_>, verdict: &mut Verdict) {
    let (Some(closed), Some(last)) = (trial.closed_at(Side::Client), trial.messages.len().checked_sub(1)) else {
        return;
    };
    let is_end = |event: &Event| matches!(event, Event::Exited { .. } | Event::Closed { from: Side::Agent });
    if trial.entries[..closed].iter().any(|entry| is_end(&entry.event)) {
        return;
    }
    let mut after = trial.entries[closed..].iter().filter(|entry| {
        is_end(&entry.event) || matches!(entry.event, Event::Waited { time } if time >= crate::exchange::ENOUGH_TIME)
    });
    match (after.next(), after.any(|entry| is_end(&entry.event))) {
        (Some(first), _) if is_end(&first.event) => verdict.kept(),
        // Whoever recorded it waited, and then ended the agent.
        (Some(_), true) | (None, _) => {}
        (Some(_), false) => verdict.broken(last, "the agent went on after its input had ended"),
    }
}
