//! How prompts are answered, and what the agent tells on the way.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::exchange::{Call, MessageIndex, Session, Turn};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

/// What an agent says within this time after a turn is still about the turn, unless it is known to be something else.
const AFTERWARDS: Duration = Duration::from_secs(1);

fn prompts<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    trial.calls_to("session/prompt").filter(|call| call.from == Side::Client)
}

pub(super) fn stop_reason(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial) {
        if let (Some(result), Some(at)) = (call.result(), call.answered_at()) {
            let stop = &result["stopReason"];
            verdict.check(stop.is_string(), at, || match stop {
                Value::Null => "no `stopReason`".to_owned(),
                other => format!("`stopReason` is {}", shown(&other.to_string())),
            });
        }
    }
}

/// The update of a message of the agent.
fn update_at<'a>(trial: &'a Trial<'_>, at: MessageIndex) -> (&'a str, &'a Value) {
    let update = &trial.exchange.messages[at].body.params()["update"];
    (update["sessionUpdate"].as_str().unwrap_or(""), update)
}

/// The updates of a session between two messages.
fn between(session: &Session, from: MessageIndex, to: MessageIndex) -> impl Iterator<Item = MessageIndex> {
    let start = session.updates.partition_point(|at| *at <= from);
    session.updates[start..].iter().copied().take_while(move |at| *at < to)
}

/// What a turn has told of.
#[derive(Default)]
struct Told<'a> {
    messages: HashSet<&'a str>,
    /// Its tool calls that are not finished.
    unfinished: HashSet<&'a str>,
}

fn told<'a>(trial: &'a Trial<'_>, session: &Session, turn: &Turn, ends: MessageIndex) -> Told<'a> {
    let mut told = Told::default();
    for at in between(session, turn.begins, ends) {
        let (kind, update) = update_at(trial, at);
        if let Some(id) = update["messageId"].as_str().filter(|_| kind.starts_with("agent_")) {
            told.messages.insert(id);
        }
        if let Some(id) = update["toolCallId"].as_str() {
            match update["status"].as_str() {
                Some("completed" | "failed" | "cancelled") => {
                    told.unfinished.remove(id);
                }
                Some(_) => {
                    told.unfinished.insert(id);
                }
                None if kind == "tool_call" => {
                    told.unfinished.insert(id);
                }
                None => {}
            }
        }
    }
    told
}

/// The first update of a turn that came after its end, before anything else was asked of the session.
pub(in crate::rules) fn straggler(trial: &Trial<'_>, session: &Session, turn: &Turn) -> Option<(MessageIndex, String)> {
    let ends = turn.ends?;
    let next_turn = session.turns.partition_point(|other| other.begins <= turn.begins);
    let next_turn = session.turns.get(next_turn).map(|next| next.begins);
    let at = |call: &usize| trial.calls[*call].at;
    let reopened = session.openings.get(session.openings.partition_point(|call| at(call) <= turn.begins)).map(at);
    let until = next_turn.unwrap_or(usize::MAX).min(reopened.unwrap_or(usize::MAX));
    // What a turn has told of is looked at only where something came after it.
    between(session, ends, until).next()?;
    let told = told(trial, session, turn, ends);
    // Where prompts were sent while it ran, the next turn may begin at once.
    let begins_another = |at: &MessageIndex| {
        let (kind, update) = update_at(trial, *at);
        kind == "user_message" || kind == "state_update" && update["state"] != "idle"
    };
    between(session, ends, until).take_while(|at| !begins_another(at)).find_map(|at| {
        let (kind, update) = update_at(trial, at);
        let is_soon = trial.time_of(at).saturating_sub(trial.time_of(ends)) < AFTERWARDS;
        let is_of_it = match kind {
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                update["messageId"].as_str().map_or(is_soon, |id| told.messages.contains(id) || is_soon)
            }
            "tool_call_update" | "tool_call_content_chunk" => {
                update["toolCallId"].as_str().is_some_and(|id| told.unfinished.contains(id))
            }
            "tool_call" | "plan" => is_soon,
            _ => false,
        };
        is_of_it.then(|| (at, format!("a {} after the end of its turn", shown(kind))))
    })
}

pub(super) fn is_last(trial: &Trial<'_>, verdict: &mut Verdict) {
    for session in trial.sessions.values() {
        // Turns that were cancelled have a rule of their own.
        for turn in session.turns.iter().filter(|turn| turn.cancelled.is_none() && turn.stop.is_some()) {
            match straggler(trial, session, turn) {
                Some((at, seen)) => verdict.broken_by(turn.ends.into_iter().chain([at]).collect(), seen),
                None => verdict.kept(),
            }
        }
    }
}

pub(super) fn in_progress_after_permission(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut granted: HashMap<(&str, &str), MessageIndex> = HashMap::new();
    for call in trial.calls_to("session/request_permission").filter(|call| call.from == Side::Agent) {
        let subject = match &call.params["toolCall"] {
            Value::Null => &call.params["subject"]["toolCall"],
            tool_call => tool_call,
        };
        let (Some(session), Some(id), Some(at)) = (call.session(), subject["toolCallId"].as_str(), call.answered_at())
        else {
            continue;
        };
        if is_granted(call) {
            granted.insert((session, id), at);
        }
    }
    let mut running: HashSet<(&str, &str)> = HashSet::new();
    for (at, session, update) in trial.updates() {
        let Some(key) = update["toolCallId"].as_str().map(|id| (session, id)) else { continue };
        match update["status"].as_str() {
            Some("in_progress") => {
                running.insert(key);
                if granted.get(&key).is_some_and(|since| *since < at) {
                    granted.remove(&key);
                    verdict.kept();
                }
            }
            Some("completed") if granted.get(&key).is_some_and(|since| *since < at) => {
                granted.remove(&key);
                verdict.check(running.contains(&key), at, || {
                    format!("the tool call {} was never `in_progress`", shown(key.1))
                });
            }
            _ => {}
        }
    }
}

/// Whether a permission request was answered with an option that allows.
fn is_granted(call: &Call) -> bool {
    let Some(outcome) = call.result().map(|result| &result["outcome"]) else { return false };
    let chosen = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
    let options = call.params["options"].as_array().into_iter().flatten();
    let mut kinds = options.filter(|option| chosen.is_some() && option["optionId"].as_str() == chosen);
    kinds.any(|option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow")))
}

pub(super) fn message_id(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial) {
        if let (Some(result), Some(at)) = (call.result(), call.answered_at()) {
            verdict.check(result["messageId"].is_string(), at, || match result["stopReason"].as_str() {
                Some(_) => "`stopReason` instead of `messageId`".to_owned(),
                None => "no `messageId`".to_owned(),
            });
        }
    }
}

/// The user's messages that the agent reported: session, id, and where first.
fn echoes<'a>(trial: &'a Trial<'_>) -> HashMap<(&'a str, &'a str), MessageIndex> {
    let mut echoes = HashMap::new();
    for (at, session, update) in trial.updates() {
        if matches!(update["sessionUpdate"].as_str(), Some("user_message" | "user_message_chunk"))
            && let Some(id) = update["messageId"].as_str()
        {
            echoes.entry((session, id)).or_insert(at);
        }
    }
    echoes
}

pub(super) fn echo(trial: &Trial<'_>, verdict: &mut Verdict) {
    let echoes = echoes(trial);
    for (id, session) in &trial.sessions {
        for turn in &session.turns {
            let call = &trial.calls[turn.call];
            let Some((message, at)) =
                call.result().and_then(|result| Some((result["messageId"].as_str()?, call.answered_at()?)))
            else {
                continue;
            };
            if echoes.contains_key(&(id.as_str(), message)) {
                verdict.kept();
            } else if turn.ends.is_some_and(|ends| ends > at) || trial.had_time(Side::Agent, at) {
                verdict.broken(at, format!("the message {} was not reported", shown(message)));
            }
        }
    }
}

/// The prompts that were sent to a session that was doing nothing: with the session, where the next one was sent, and the prompt.
fn lone_prompts<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a str, &'a Session, &'a Call)> {
    let exchange = trial.exchange;
    exchange.sessions.iter().flat_map(move |(id, session)| {
        let mut busy_until = Some(0);
        session.turns.iter().filter_map(move |turn| {
            let is_lone = busy_until.is_some_and(|until| until < turn.begins);
            busy_until = busy_until.and_then(|until| Some(turn.ends?.max(until)));
            is_lone.then_some((id.as_str(), session, &exchange.calls[turn.call]))
        })
    })
}

pub(super) fn not_held_back(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (_, session, call) in lone_prompts(trial).filter(|(_, _, call)| call.result().is_some()) {
        let Some(answered) = call.answered_at() else { continue };
        let mut worked = false;
        let ended = between(session, call.at, answered).find(|at| {
            let (kind, update) = update_at(trial, *at);
            if kind == "state_update" {
                match update["state"].as_str() {
                    Some("idle") => return worked || update["stopReason"].is_string(),
                    _ => worked = true,
                }
            }
            false
        });
        match ended {
            Some(at) => verdict.broken_by(vec![at, answered], "the work was done before the prompt was answered"),
            None => verdict.kept(),
        }
    }
}

pub(super) fn no_error_once_taken_in(trial: &Trial<'_>, verdict: &mut Verdict) {
    let echoes = echoes(trial);
    for (id, session, call) in lone_prompts(trial) {
        let Some(answered) = call.answered_at() else { continue };
        let Some(error) = call.error() else {
            verdict.kept();
            continue;
        };
        let reported = between(session, call.at, answered).find(|at| {
            let (kind, update) = update_at(trial, *at);
            let message = update["messageId"].as_str().filter(|_| kind.starts_with("user_message"));
            message.is_some_and(|message| echoes.get(&(id, message)) == Some(at))
        });
        if let Some(at) = reported {
            verdict.broken_by(vec![at, answered], format!("error {} for a message that was taken in", error.code));
        }
    }
}
