//! `session/close`.

use std::collections::HashMap;

use attache_proto::Dialect;

use crate::exchange::{Call, MessageIndex, Session, Turn};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

const CANCELLED: i32 = -32800;

/// The calls that closed a session: the call, and where it was answered.
fn closings<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, &'a str, MessageIndex)> {
    let calls = trial.calls_to("session/close").filter(|call| call.from == Side::Client && call.result().is_some());
    calls.filter_map(|call| Some((call, call.session()?, call.answered_at()?)))
}

/// The turns that ran when a message was sent.
fn running(session: &Session, at: MessageIndex) -> impl Iterator<Item = &Turn> {
    session.turns.iter().filter(move |turn| turn.begins < at && turn.ends.is_none_or(|ends| ends > at))
}

pub(super) fn cancels(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (close, id, answered) in closings(trial) {
        let Some(session) = trial.sessions.get(id) else { continue };
        for turn in running(session, close.at) {
            match fault(trial, turn, close.at, answered) {
                Outcome::Kept => verdict.kept(),
                Outcome::Unknown => {}
                Outcome::Broken(at, seen) => verdict.broken_by(vec![turn.begins, at], seen),
            }
        }
    }
}

enum Outcome {
    Kept,
    Unknown,
    Broken(MessageIndex, String),
}

fn fault(trial: &Trial<'_>, turn: &Turn, closed: MessageIndex, answered: MessageIndex) -> Outcome {
    let is_v2 = trial.dialect == Dialect::V2;
    let prompt = &trial.calls[turn.call];
    let Some(ends) = turn.ends else {
        return match is_v2 || trial.had_time(Side::Agent, answered) {
            true => Outcome::Broken(answered, "the session was closed, and the prompt did not end".to_owned()),
            false => Outcome::Unknown,
        };
    };
    if is_v2 && ends > answered {
        return Outcome::Broken(ends, "the prompt ended after the close was answered".to_owned());
    }
    let refused = prompt.error().map(|error| error.code);
    if turn.stop.as_deref() == Some("cancelled") || refused == Some(CANCELLED) {
        return Outcome::Kept;
    }
    if ends < answered && trial.may_have_crossed(closed, ends) {
        return Outcome::Unknown;
    }
    Outcome::Broken(
        ends,
        match refused {
            Some(code) => format!("the prompt ended with error {code}"),
            None => format!("the prompt ended with {}", shown(turn.stop.as_deref().unwrap_or("no reason"))),
        },
    )
}

pub(super) fn silent_after(trial: &Trial<'_>, verdict: &mut Verdict) {
    // For each session where it was opened or closed, in order.
    let mut steps: HashMap<&str, Vec<(MessageIndex, bool)>> = HashMap::new();
    for call in trial.calls_of(Side::Client) {
        let Some(id) = call.session() else { continue };
        match call.method.as_str() {
            "session/close" if call.result().is_some() => {
                steps.entry(id).or_default().extend(call.answered_at().map(|at| (at, true)));
            }
            "session/resume" | "session/load" => steps.entry(id).or_default().push((call.at, false)),
            _ => {}
        }
    }
    steps.values_mut().for_each(|steps| steps.sort_unstable());
    let mut after: HashMap<&str, MessageIndex> = HashMap::new();
    for (at, _) in trial.messages_of(Side::Agent) {
        let Some(id) = trial.session_of(at) else { continue };
        let Some(steps) = steps.get(id) else { continue };
        let place = steps.partition_point(|(step, _)| *step < at);
        if place > 0 && steps[place - 1].1 {
            after.entry(id).or_insert(at);
        }
    }
    for (_, id, answered) in closings(trial) {
        match after.remove(id) {
            Some(at) => {
                verdict.broken_by(vec![answered, at], format!("a message for the closed session {}", shown(id)))
            }
            None => verdict.kept(),
        }
    }
}
