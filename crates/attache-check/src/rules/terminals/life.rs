//! The life of terminals that the client runs: from `terminal/create` to `terminal/release`.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::calls;
use crate::exchange::{Call, ENOUGH_TIME, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// A terminal of a session.
struct Terminal<'a> {
    /// How it was created.
    create: &'a Call,
    /// Where that was answered.
    created: MessageIndex,
    /// Where its release was asked.
    release: Option<MessageIndex>,
    /// Where its release was answered with success.
    released: Option<MessageIndex>,
    /// What else was asked of it, in order.
    calls: Vec<&'a Call>,
}

impl Terminal<'_> {
    /// Where its command was first known to have ended: killed, waited for, or with a status.
    fn over(&self) -> Option<MessageIndex> {
        let is_over = |call: &&&Call| match (call.method.as_str(), call.result()) {
            ("terminal/kill" | "terminal/wait_for_exit", result) => result.is_some(),
            ("terminal/output", Some(result)) => result["exitStatus"].is_object(),
            _ => false,
        };
        self.calls.iter().filter(is_over).filter_map(|call| call.answered_at()).min()
    }

    /// Where killing it was answered with success.
    fn killed(&self) -> Option<MessageIndex> {
        let kill = self.calls.iter().find(|call| call.method == "terminal/kill" && call.result().is_some())?;
        kill.answered_at()
    }

    /// What was asked of it before its release.
    fn calls_before_release(&self, method: &str) -> impl Iterator<Item = &Call> {
        let release = self.release.unwrap_or(MessageIndex::MAX);
        self.calls.iter().copied().filter(move |call| call.method == method && call.at < release)
    }
}

/// All terminals, and the calls for ids that name none: those that were released, or never created.
struct Terminals<'a> {
    all: Vec<Terminal<'a>>,
    unknown: Vec<&'a Call>,
    /// The answers that gave the id of a terminal that was there.
    repeated: Vec<(MessageIndex, MessageIndex)>,
}

fn read<'a>(trial: &'a Trial<'_>) -> Terminals<'a> {
    let mut all: Vec<Terminal<'a>> = Vec::new();
    let (mut unknown, mut repeated) = (Vec::new(), Vec::new());
    let mut by_id: HashMap<(&str, &str), usize> = HashMap::new();
    // An id is known from the answer that gives it on, so answers to `terminal/create` come at their own place.
    let mut events: Vec<(MessageIndex, &'a Call)> = calls(trial)
        .filter_map(|call| {
            if call.method == "terminal/create" { Some((call.answered_at()?, call)) } else { Some((call.at, call)) }
        })
        .collect();
    events.sort_by_key(|event| event.0);
    for (at, call) in events {
        let session = call.session().unwrap_or("");
        if call.method == "terminal/create" {
            let Some(id) = call.result().and_then(|result| result["terminalId"].as_str()) else { continue };
            let before = by_id.insert((session, id), all.len()).map(|index| &all[index]);
            if let Some(before) = before.filter(|before| before.release.is_none_or(|release| release > at)) {
                repeated.push((before.created, at));
            }
            all.push(Terminal { create: call, created: at, release: None, released: None, calls: Vec::new() });
            continue;
        }
        let Some(id) = call.params["terminalId"].as_str() else { continue };
        let terminal = by_id.get(&(session, id)).and_then(|index| all.get_mut(*index));
        match terminal {
            Some(terminal) if call.method == "terminal/release" => {
                terminal.release.get_or_insert(at);
                if let (None, Some(_)) = (terminal.released, call.result()) {
                    terminal.released = call.answered_at();
                }
            }
            Some(terminal) if terminal.released.is_none_or(|released| released > at) => terminal.calls.push(call),
            // Releasing once more does no harm.
            None if call.method == "terminal/release" => {}
            _ => unknown.push(call),
        }
    }
    Terminals { all, unknown, repeated }
}

pub(super) fn id_new(trial: &Trial<'_>, verdict: &mut Verdict) {
    let terminals = read(trial);
    for (first, second) in &terminals.repeated {
        verdict.broken_by(vec![*first, *second], "two terminals with one id");
    }
    (terminals.repeated.len()..terminals.all.len()).for_each(|_| verdict.kept());
}

pub(super) fn unknown_refused(trial: &Trial<'_>, verdict: &mut Verdict) {
    // What a client that offers no terminals answers is judged by `errors/unadvertised-method`.
    let is_offered = trial.offers(Side::Client, "terminal");
    for call in read(trial).unknown.into_iter().filter(|_| is_offered) {
        let Some(at) = call.answered_at() else { continue };
        verdict.check(call.error().is_some(), at, || {
            format!("{} succeeded for a terminal that is not there", shown(&call.method))
        });
    }
}

pub(super) fn kill_keeps(trial: &Trial<'_>, verdict: &mut Verdict) {
    for terminal in read(trial).all {
        let Some(killed) = terminal.killed() else { continue };
        for method in ["terminal/output", "terminal/wait_for_exit"] {
            for call in terminal.calls_before_release(method).filter(|call| call.at > killed) {
                match (call.answered_at(), call.error()) {
                    (Some(at), Some(error)) if call.cancelled_at.is_none() => {
                        let seen = format!("after a kill, `{method}` was answered {}", error.code);
                        verdict.broken_by(vec![killed, at], seen);
                    }
                    (Some(_), None) => verdict.kept(),
                    _ => {}
                }
            }
        }
    }
}

pub(super) fn kill_ends(trial: &Trial<'_>, verdict: &mut Verdict) {
    for terminal in read(trial).all {
        let Some(killed) = terminal.killed() else { continue };
        for call in terminal.calls_before_release("terminal/wait_for_exit") {
            match call.answered_at() {
                Some(at) if at > killed => verdict.kept(),
                None if trial.had_time(Side::Client, killed.max(call.at)) => verdict.broken_by(
                    vec![killed, call.at],
                    "the command was killed, `terminal/wait_for_exit` was not answered",
                ),
                _ => {}
            }
        }
    }
}

/// The outputs of terminals: where they were sent, and what.
fn outputs<'a>(terminal: &'a Terminal<'_>) -> impl Iterator<Item = (MessageIndex, &'a Value, &'a str)> {
    terminal.calls.iter().filter(|call| call.method == "terminal/output").filter_map(|call| {
        let result = call.result()?;
        Some((call.answered_at()?, result, result["output"].as_str()?))
    })
}

pub(super) fn limit(trial: &Trial<'_>, verdict: &mut Verdict) {
    for terminal in read(trial).all {
        let Some(limit) = terminal.create.params["outputByteLimit"].as_u64() else { continue };
        for (at, _, output) in outputs(&terminal) {
            let length = output.len();
            verdict.check(u64::try_from(length).is_ok_and(|length| length <= limit), at, || {
                format!("{length} bytes of output, though `outputByteLimit` is {limit}")
            });
        }
    }
}

pub(super) fn character_boundary(trial: &Trial<'_>, verdict: &mut Verdict) {
    const BROKEN: char = '\u{fffd}';
    for terminal in read(trial).all {
        for (at, _, output) in outputs(&terminal).filter(|(_, result, _)| result["truncated"] == true) {
            // A command whose output is no text has such characters elsewhere as well.
            let text = output.trim_start_matches(BROKEN);
            let is_cut = text.len() < output.len() && !text.contains(BROKEN);
            verdict.check(!is_cut, at, || "truncated output begins with a broken character".into());
        }
    }
}

/// A terminal is no longer needed when the turn that it was created in is over, and nothing shows that it still is: it is asked for nothing
/// more, its command is not known to run on, and it belongs to no tool call that goes on.
pub(super) fn released(trial: &Trial<'_>, verdict: &mut Verdict) {
    let terminals = read(trial);
    // Of two with one id, nobody knows which was released.
    let is_mixed_up = |terminal: &Terminal<'_>| terminals.repeated.iter().any(|(first, _)| *first == terminal.created);
    for terminal in terminals.all.iter().filter(|terminal| !is_mixed_up(terminal)) {
        if terminal.release.is_some() {
            verdict.kept();
            continue;
        }
        let session = terminal.create.session().and_then(|id| Some((id, trial.sessions.get(id)?)));
        let turn = session.and_then(|(_, session)| session.turn_at(terminal.create.at));
        let (Some((session, _)), Some(ends)) = (session, turn.and_then(|turn| turn.ends)) else { continue };
        let over = terminal.over();
        let is_used = terminal.calls.iter().any(|call| call.at > ends);
        let is_running = over.is_none() && outputs(terminal).next().is_some();
        if is_used || is_running || is_shown_at_work(trial, session, terminal) {
            continue;
        }
        let since = ends.max(over.unwrap_or(ends));
        if trial.had_time(Side::Agent, since) || time_left(trial, since) >= ENOUGH_TIME {
            verdict.broken_by(vec![terminal.created, ends], "the turn is over, and its terminal was not released");
        }
    }
}

/// How long the connection went on after a message, until the client left.
fn time_left(trial: &Trial<'_>, since: MessageIndex) -> Duration {
    let end = trial.closed_at(Side::Client).unwrap_or(trial.entries.len());
    let last = end.checked_sub(1).map_or(Duration::ZERO, |last| trial.entries[last].at);
    last.saturating_sub(trial.time_of(since))
}

/// Whether a terminal is shown in a tool call that is not finished.
fn is_shown_at_work(trial: &Trial<'_>, session: &str, terminal: &Terminal<'_>) -> bool {
    let id = &terminal.create.result().map_or(&Value::Null, |result| &result["terminalId"]);
    let mut at_work: HashMap<&str, bool> = HashMap::new();
    for report in
        walk::reports(trial.exchange).filter(|report| report.session == session && report.at > terminal.created)
    {
        if report.content().any(|item| item["terminalId"] == **id) {
            at_work.entry(report.id).or_insert(true);
        }
        if let (Some(is_at_work), "completed" | "failed" | "cancelled") =
            (at_work.get_mut(report.id), report.call["status"].as_str().unwrap_or(""))
        {
            *is_at_work = false;
        }
    }
    at_work.into_values().any(|is_at_work| is_at_work)
}

pub(super) fn shown_alive(trial: &Trial<'_>, verdict: &mut Verdict) {
    let terminals = read(trial).all;
    let mut by_id: HashMap<(&str, &str), Vec<&Terminal<'_>>> = HashMap::new();
    for terminal in &terminals {
        if let (Some(session), Some(id)) =
            (terminal.create.session(), terminal.create.result().and_then(|result| result["terminalId"].as_str()))
        {
            by_id.entry((session, id)).or_default().push(terminal);
        }
    }
    let mut known = std::collections::HashSet::new();
    for report in walk::reports(trial.exchange).filter(|report| report.by != "session/request_permission") {
        if walk::is_replay(trial.exchange, report.session, report.at) {
            continue;
        }
        let ids = report.content().filter(|item| item["type"] == "terminal");
        for id in ids.filter_map(|item| item["terminalId"].as_str()) {
            let of_id = by_id.get(&(report.session, id)).map_or(&[][..], Vec::as_slice);
            let last = of_id.partition_point(|terminal| terminal.created < report.at).checked_sub(1);
            let Some(terminal) = last.map(|last| of_id[last]) else {
                // Of a session with a past, an old terminal may be shown; and an extension may say where one comes from.
                if walk::is_whole(trial.exchange, report.session, report.at) && !report.call["_meta"].is_object() {
                    verdict.broken(report.at, format!("the terminal {} was never created", shown(id)));
                }
                continue;
            };
            if !known.insert(terminal.created) {
                continue;
            }
            match terminal.release.filter(|release| *release < report.at) {
                Some(release) => verdict.broken_by(
                    vec![release, report.at],
                    format!("the terminal {} was shown after its release only", shown(id)),
                ),
                None => verdict.kept(),
            }
        }
    }
}
