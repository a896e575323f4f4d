//! What follows when permission was not given.

use std::collections::{BTreeMap, HashMap};

use super::questions;
use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::{tools, walk};

/// What the client decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Allowed,
    Denied,
    /// By an option whose kind we do not know.
    Unclear,
}

fn decision(call: &Call) -> Decision {
    let outcome = call.result().map(|result| &result["outcome"]);
    let Some(selected) = outcome.filter(|outcome| outcome["outcome"] == "selected") else { return Decision::Denied };
    let options = walk::items(&call.params["options"]);
    let option = options.iter().find(|option| option["optionId"] == selected["optionId"]);
    match option.map(|option| option["kind"].as_str().unwrap_or("")) {
        None | Some("reject_once" | "reject_always") => Decision::Denied,
        Some("allow_once" | "allow_always") => Decision::Allowed,
        Some(_) => Decision::Unclear,
    }
}

/// Whether the client had no decision for it any more.
fn is_cancelled(call: &Call) -> bool {
    call.result().is_some_and(|result| result["outcome"]["outcome"] == "cancelled")
}

pub(super) fn means_no(trial: &Trial<'_>, verdict: &mut Verdict) {
    let reports = reports_by_call(trial);
    let writes = writes(trial);
    let mut asked: HashMap<&str, Vec<MessageIndex>> = HashMap::new();
    for call in questions(trial.exchange) {
        asked.entry(call.session().unwrap_or("")).or_default().push(call.at);
    }
    for call in questions(trial.exchange) {
        let Some(answered) = call.answered_at() else { continue };
        let Some(tool) = walk::asked_for(&call.params) else { continue };
        if decision(call) != Decision::Denied {
            continue;
        }
        let (session, id) = (call.session().unwrap_or(""), tool["toolCallId"].as_str().unwrap_or(""));
        let went_on = reports.get(&(session, id)).and_then(|reports| {
            let after = &reports[reports.partition_point(|report| report.0 <= answered)..];
            // That it began to run may have crossed with the cancelling of all that the turn did.
            let counts = |event: &Event| match event {
                Event::Asked | Event::Done => true,
                Event::Running => !is_cancelled(call),
                Event::Failed | Event::Other => false,
            };
            // Some report the beginning of a tool call that they then report as failed.
            let is_end = |event: &Event| matches!(event, Event::Done | Event::Failed);
            let is_off = after.iter().find(|(_, event)| is_end(event)).is_some_and(|(_, event)| event.is_failed());
            let counts = |event: &Event| counts(event) && !(is_off && matches!(event, Event::Running));
            let first = after.iter().find(|(_, event)| counts(event))?;
            (!matches!(first.1, Event::Asked)).then_some(first.0)
        });
        let asked_again = asked.get(session).and_then(|asked| asked.get(asked.partition_point(|at| *at <= answered)));
        let wrote = tools::named_paths(tool).find_map(|path| {
            let writes = writes.get(&(session, path))?;
            let at = *writes.get(writes.partition_point(|at| *at <= answered))?;
            (asked_again.is_none_or(|asked| *asked > at) && is_one_turn(trial, session, answered, at)).then_some(at)
        });
        match went_on.or(wrote) {
            Some(at) => {
                let what = if went_on.is_some() { "went on" } else { "wrote its file" };
                verdict.broken_by(vec![answered, at], format!("the agent {what}, though {} was denied", shown(id)));
            }
            None => verdict.kept(),
        }
    }
}

/// What a report says of how a tool call goes on.
enum Event {
    /// Permission is asked again.
    Asked,
    /// It runs.
    Running,
    /// It has run.
    Done,
    /// It was not done.
    Failed,
    Other,
}

impl Event {
    fn is_failed(&self) -> bool {
        matches!(self, Event::Failed)
    }
}

fn reports_by_call<'a>(trial: &'a Trial<'_>) -> BTreeMap<(&'a str, &'a str), Vec<(MessageIndex, Event)>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for report in walk::reports(trial.exchange) {
        let event = match (report.by, report.call["status"].as_str()) {
            ("session/request_permission", _) => Event::Asked,
            (_, Some("in_progress")) => Event::Running,
            (_, Some("completed")) => Event::Done,
            (_, Some("failed" | "cancelled")) => Event::Failed,
            _ => Event::Other,
        };
        all.entry((report.session, report.id)).or_default().push((report.at, event));
    }
    all
}

fn writes<'a>(trial: &'a Trial<'_>) -> HashMap<(&'a str, &'a str), Vec<MessageIndex>> {
    let mut writes: HashMap<_, Vec<_>> = HashMap::new();
    for call in trial.calls_of(Side::Agent).filter(|call| call.method == "fs/write_text_file") {
        if let (Some(session), Some(path)) = (call.session(), call.params["path"].as_str()) {
            writes.entry((session, path)).or_default().push(call.at);
        }
    }
    writes
}

/// Whether two messages belong to the same turn.
fn is_one_turn(trial: &Trial<'_>, session: &str, first: MessageIndex, second: MessageIndex) -> bool {
    let turn = |at| trial.sessions.get(session)?.turn_at(at).map(|turn| turn.begins);
    turn(first).is_some() && turn(first) == turn(second)
}
