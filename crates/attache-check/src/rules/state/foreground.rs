//! What the session does for the user now: running, idle, requires action.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::exchange::{Body, Call, MessageIndex, Session, Turn};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// Work that has told of a message and then says nothing for so long, to somebody who waits for its end, is taken to be over.
const LONG_SILENCE: Duration = Duration::from_secs(2);

/// A request that the user has not answered for so long is one that the work waits for.
const LONG_QUESTION: Duration = Duration::from_millis(500);

fn states<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
    trial.exchange.updates_of("state_update")
}

fn update_at<'a>(trial: &'a Trial<'_>, at: MessageIndex) -> (&'a str, &'a Value) {
    let update = &trial.exchange.messages[at].body.params()["update"];
    (update["sessionUpdate"].as_str().unwrap_or(""), update)
}

/// Whether an update tells what the agent says or thinks.
fn is_talk(kind: &str) -> bool {
    matches!(kind, "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk")
}

fn is_busy(state: &str) -> bool {
    state != "idle"
}

fn has_background(update: &Value) -> bool {
    update["background"].as_array().is_some_and(|items| !items.is_empty())
}

/// The updates of a session from a turn on, up to the next turn.
fn updates_of_turn<'a>(session: &'a Session, place: usize) -> impl Iterator<Item = MessageIndex> + 'a {
    let begins = session.turns[place].begins;
    let until = session.turns.get(place + 1).map_or(usize::MAX, |next| next.begins);
    let start = session.updates.partition_point(|at| *at < begins);
    session.updates[start..].iter().copied().take_while(move |at| *at < until)
}

/// The turns that began when the session was doing nothing, with their places.
fn lone_turns(session: &Session) -> impl Iterator<Item = (usize, &Turn)> {
    let mut busy_until = Some(0);
    session.turns.iter().enumerate().filter(move |(_, turn)| {
        let is_lone = busy_until.is_some_and(|until| until < turn.begins);
        busy_until = busy_until.and_then(|until| Some(turn.ends?.max(until)));
        is_lone
    })
}

pub(super) fn running(trial: &Trial<'_>, verdict: &mut Verdict) {
    for session in trial.sessions.values() {
        let (mut is_at_rest, mut in_background) = (true, false);
        let mut seen: HashSet<&str> = HashSet::new();
        let mut rest = session.updates.as_slice();
        for (place, turn) in lone_turns(session) {
            // What the session did before.
            let (before, after) = rest.split_at(rest.partition_point(|at| *at < turn.begins));
            rest = after;
            for (kind, update) in before.iter().map(|at| update_at(trial, *at)) {
                if kind == "state_update" {
                    is_at_rest = update["state"] == "idle";
                    in_background = has_background(update);
                }
                update["toolCallId"].as_str().map(|id| seen.insert(id));
            }
            if !is_at_rest || in_background || turn.cancelled.is_some() || trial.calls[turn.call].error().is_some() {
                continue;
            }
            let first = updates_of_turn(session, place).find_map(|at| {
                let (kind, update) = update_at(trial, at);
                match kind {
                    "state_update" if update["state"].as_str().is_some_and(is_busy) => Some(None),
                    "state_update" if update["stopReason"].is_string() => Some(Some((at, kind))),
                    _ if is_talk(kind) => Some(Some((at, kind))),
                    "tool_call_update" if update["toolCallId"].as_str().is_some_and(|id| !seen.contains(id)) => {
                        Some(Some((at, kind)))
                    }
                    _ => None,
                }
            });
            match first {
                Some(None) => verdict.kept(),
                Some(Some((at, kind))) => {
                    verdict.broken_by(vec![turn.begins, at], format!("a {} before `running`", shown(kind)))
                }
                None => {}
            }
        }
    }
}

pub(super) fn idle_when_done(trial: &Trial<'_>, verdict: &mut Verdict) {
    let work = walk::OpenWork::of(trial.exchange);
    for (id, session) in &trial.sessions {
        for (place, turn) in session.turns.iter().enumerate() {
            let call = &trial.calls[turn.call];
            if call.result().is_none() {
                continue;
            }
            let is_open = turn.ends.is_none() && session.closed_at.is_none();
            if let Some(departure) = trial.departed_after(Side::Agent, turn.begins).filter(|_| is_open) {
                verdict.broken(turn.begins, format!("no `idle`: the agent {departure}"));
                continue;
            }
            if turn.cancelled.is_some() {
                continue;
            }
            if turn.ends.is_some() {
                verdict.kept();
                continue;
            }
            if let Some(time) = walk::gave_up_on(trial.exchange, call, &work) {
                verdict.broken(turn.begins, format!("no `idle` after {}", walk::seconds(time)));
                continue;
            }
            let is_last = place + 1 == session.turns.len() && session.closed_at.is_none();
            if !is_last || trial.quiet_at_the_end(Side::Agent) < LONG_SILENCE {
                continue;
            }
            let talk = updates_of_turn(session, place).filter(|at| is_talk(update_at(trial, *at).0)).last();
            if let Some(at) = talk.filter(|_| !work.is_there(id, turn.begins)) {
                verdict.broken_by(vec![turn.begins, at], "the agent fell silent without reporting `idle`");
            }
        }
    }
}

/// What ends work: each `idle` of a session that was busy before.
fn ends<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
    let mut busy: HashSet<&str> = HashSet::new();
    states(trial).filter(move |(_, session, update)| match update["state"].as_str() {
        Some("idle") => busy.remove(session),
        Some(_) => {
            busy.insert(session);
            false
        }
        None => false,
    })
}

pub(super) fn stop_reason(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in ends(trial) {
        verdict.check(update["stopReason"].is_string(), at, || "`idle` without a `stopReason`".to_owned());
    }
}

pub(super) fn error_object(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in states(trial).filter(|(_, _, update)| update["stopReason"] == "error") {
        let error = &update["error"];
        verdict.check(error["code"].is_i64() && error["message"].is_string(), at, || match error {
            Value::Null => "no `error`".to_owned(),
            other => format!("`error` is {}", shown(&other.to_string())),
        });
    }
}

pub(super) fn requires_action(trial: &Trial<'_>, verdict: &mut Verdict) {
    // The state of each session, and the questions that are open, in the order of the wire.
    let is_question = |call: &&Call| {
        call.from == Side::Agent && matches!(call.method.as_str(), "session/request_permission" | "elicitation/create")
    };
    for call in trial.calls.iter().filter(is_question) {
        let Some((id, session)) = call.session().and_then(|id| Some((id, trial.sessions.get(id)?))) else { continue };
        if session.turn_at(call.at).is_none() {
            continue;
        }
        let answered = call.answered_at().unwrap_or(usize::MAX);
        let start = session.updates.partition_point(|at| *at < call.at);
        let until = session.updates.partition_point(|at| *at < answered);
        let state = |at: &MessageIndex| {
            let (kind, update) = update_at(trial, *at);
            (kind == "state_update").then(|| update["state"].as_str()).flatten()
        };
        let now = session.updates[..start].iter().rev().find_map(state);
        let mut later = session.updates[start..until].iter().filter_map(state);
        if now == Some("requires_action") || later.any(|state| state == "requires_action") {
            verdict.kept();
        } else if waited(trial, call) >= LONG_QUESTION && !works_beside(trial, id, call) {
            verdict.broken(call.at, format!("`{}` while the state is {}", call.method, shown(now.unwrap_or("idle"))));
        }
    }
}

/// For how long a request was open, as far as somebody waited.
fn waited(trial: &Trial<'_>, call: &Call) -> Duration {
    match call.answered_at() {
        Some(answered) => trial.time_of(answered).saturating_sub(trial.time_of(call.at)),
        None => trial.quiet_after(Side::Agent, call.at),
    }
}

/// Whether the work goes on beside a question: another tool call is in progress, or the agent talks.
fn works_beside(trial: &Trial<'_>, id: &str, question: &Call) -> bool {
    let answered = question.answered_at().unwrap_or(usize::MAX);
    let mut running: HashSet<&str> = HashSet::new();
    for (at, session, update) in trial.updates().take_while(|(at, ..)| *at < answered) {
        if session != id {
            continue;
        }
        if at > question.at && update["sessionUpdate"].as_str().is_some_and(is_talk) {
            return true;
        }
        if let Some(id) = update["toolCallId"].as_str() {
            match update["status"].as_str() {
                Some("in_progress") => running.insert(id),
                Some(_) => running.remove(id),
                None => false,
            };
        }
    }
    !running.is_empty()
}

/// Where requests to the client were made (1) and answered (-1), in the order of the wire, each with its session.
fn questions<'a>(trial: &'a Trial<'_>) -> Vec<(MessageIndex, &'a str, i64)> {
    let mut steps = Vec::new();
    for call in trial.calls_of(Side::Agent) {
        if let Some(session) = call.session() {
            steps.push((call.at, session, 1));
            steps.extend(call.answered_at().map(|at| (at, session, -1)));
        }
    }
    steps.sort_unstable();
    steps
}

pub(super) fn goes_on(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut waiting: HashMap<&str, MessageIndex> = HashMap::new();
    let mut questions = questions(trial).into_iter().peekable();
    let mut asked: HashMap<&str, i64> = HashMap::new();
    for (at, session, update) in trial.updates() {
        while let Some((_, session, change)) = questions.next_if(|(place, ..)| *place < at) {
            *asked.entry(session).or_default() += change;
        }
        let is_asked = asked.get(session).is_some_and(|open| *open > 0);
        match (update["sessionUpdate"].as_str(), update["state"].as_str()) {
            (Some("state_update"), Some("requires_action")) if !has_background(update) => {
                waiting.insert(session, at);
            }
            (Some("state_update"), _) => verdict.tested += usize::from(waiting.remove(session).is_some()),
            (Some(kind), _) if is_talk(kind) && waiting.contains_key(session) && !is_asked => {
                if let Some(since) = waiting.remove(session) {
                    verdict
                        .broken_by(vec![since, at], format!("a {} while the state is `requires_action`", shown(kind)));
                }
            }
            _ => {}
        }
    }
}

pub(super) fn cancelled_if_asked(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut busy: HashSet<&str> = HashSet::new();
    // What the user or the client stopped: how many ends of work that may explain, which is one for each prompt that was sent before. The
    // empty name stands for all sessions.
    let mut stopped: HashMap<&str, usize> = HashMap::new();
    let mut prompts: HashMap<&str, usize> = HashMap::new();
    // Who leaves stops everything.
    let left = trial.closed_at(Side::Client).unwrap_or(usize::MAX);
    for (at, message) in trial.messages.iter().enumerate().take_while(|(_, message)| message.entry < left) {
        match &message.body {
            Body::Notification { method, params } | Body::Request { method, params, .. }
                if message.from == Side::Client =>
            {
                match method.as_str() {
                    "session/cancel" | "session/close" | "session/delete" | "tool_call/cancel" | "terminal/cancel" => {
                        let ends = |id| prompts.get(id).map_or(1, |sent| *sent.max(&1));
                        params["sessionId"].as_str().map(|id| stopped.insert(id, ends(id)));
                    }
                    "$/cancel_request" => {
                        stopped.insert("", 1);
                    }
                    "session/prompt" => {
                        if let Some(id) = params["sessionId"].as_str() {
                            *prompts.entry(id).or_default() += 1;
                        }
                    }
                    _ => {}
                }
            }
            // Whoever refuses a permission may have meant it so.
            Body::Response { .. } if message.from == Side::Client => {
                stopped.insert("", 1);
            }
            Body::Notification { method, params } if method == "session/update" => {
                let update = &params["update"];
                let (Some(id), "state_update") =
                    (params["sessionId"].as_str(), update["sessionUpdate"].as_str().unwrap_or(""))
                else {
                    continue;
                };
                if update["state"] != "idle" {
                    busy.insert(id);
                    continue;
                }
                if busy.remove(id) && update["stopReason"] == "cancelled" {
                    let is_stopped = |id| stopped.get(id).is_some_and(|ends| *ends > 0);
                    verdict.check(is_stopped(id) || is_stopped(""), at, || {
                        "`cancelled`, though nobody cancelled anything".to_owned()
                    });
                }
                for counts in [&mut stopped, &mut prompts] {
                    if let Some(count) = counts.get_mut(id) {
                        *count = count.saturating_sub(1);
                    }
                }
            }
            _ => {}
        }
    }
}

pub(super) fn after_resume(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_to("session/resume").filter(|call| call.from == Side::Client && call.result().is_some()) {
        let (Some(id), Some(answered)) = (call.session(), call.answered_at()) else { continue };
        let updates = trial.sessions.get(id).map_or(&[][..], |session| &session.updates);
        let start = updates.partition_point(|at| *at < call.at);
        let end = updates.partition_point(|at| *at < answered);
        let kinds = || updates[start..end].iter().rev().map(|at| update_at(trial, *at).0);
        if !kinds().any(|kind| kind == "state_update") {
            verdict.broken_by(vec![call.at, answered], "no `state_update` before the answer");
            continue;
        }
        let last = updates[start..end]
            .iter()
            .rev()
            .map(|at| update_at(trial, *at).1)
            .find(|update| update["sessionUpdate"] == "state_update");
        // An agent that works goes on telling; one at rest has nothing to tell but the replay.
        let is_at_rest = last.is_some_and(|update| update["state"] == "idle");
        let late = kinds()
            .take_while(|kind| *kind != "state_update")
            .find(|kind| is_talk(kind) || kind.starts_with("user_message"));
        verdict.check(!is_at_rest || late.is_none(), answered, || {
            "the `state_update` came before the end of the replay".to_owned()
        });
    }
}
