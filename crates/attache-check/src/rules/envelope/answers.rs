//! What is answered, how often, and under which id.

use std::collections::HashMap;

use attache_proto::model::request::RequestId;
use serde_json::Value;

use crate::exchange::{Body, Call, MessageIndex, Mistake, other};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// Whether a side did anything after a message, or had the time for it.
fn could_act(trial: &Trial<'_>, since: MessageIndex, last: Option<MessageIndex>) -> bool {
    last.is_some_and(|last| last > since) || trial.had_time(trial.side, since)
}

fn last_of(trial: &Trial<'_>) -> Option<MessageIndex> {
    trial.messages.iter().rposition(|message| message.from == trial.side)
}

fn unanswered(call: &Call) -> String {
    format!("{} with the id {} has no answer", shown(&call.method), shown(&call.id.to_string()))
}

pub(super) fn answered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let work = walk::OpenWork::of(trial.exchange);
    let choked = trial.choked_at(trial.side).unwrap_or(MessageIndex::MAX);
    for call in trial.calls.iter().filter(|call| call.to() == trial.side) {
        if !call.answers.is_empty() {
            verdict.kept();
            continue;
        }
        // What is in an array is judged by `batches/answered`.
        if call.at > choked || trial.batch_of(call.at).is_some() {
            continue;
        }
        let who = if trial.side == Side::Agent { "agent" } else { "client" };
        if let Some(departure) = trial.abandoned(call) {
            verdict.broken(call.at, format!("{}: the {who} {departure}", unanswered(call)));
        } else if trial.is_ignored(call) {
            verdict.broken(call.at, unanswered(call));
        } else if let Some(time) = walk::gave_up_on(trial.exchange, call, &work) {
            verdict.broken(call.at, format!("{} after {}", unanswered(call), walk::seconds(time)));
        }
    }
}

pub(super) fn one_answer(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls.iter().filter(|call| call.to() == trial.side) {
        match &call.answers[..] {
            [] => {}
            [_] => verdict.kept(),
            [_, second, ..] => {
                verdict.broken_by(vec![call.at, second.at], format!("{} was answered twice", shown(&call.method)));
            }
        }
    }
}

pub(super) fn ids_echoed(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls.iter().filter(|call| call.to() == trial.side && !call.answers.is_empty()) {
        if call.id != RequestId::Null {
            verdict.kept();
        }
    }
    let strays = trial.strays.iter().filter(|stray| stray.from == trial.side);
    for stray in strays.filter(|stray| stray.id != RequestId::Null && stray.to.is_none()) {
        let id = shown(&stray.id.to_string());
        let kind = if matches!(stray.id, RequestId::Text(_)) { "string" } else { "number" };
        verdict.broken(stray.at, format!("a response with the id {id}, a {kind} that no request has"));
    }
}

pub(super) fn response_ids(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.values_of(trial.side) {
        if message.get("method").is_some() || (message.get("result").is_none() && message.get("error").is_none()) {
            continue;
        }
        match message.get("id") {
            None => verdict.broken(index, "a response without an id"),
            Some(id) if !id.is_null() => verdict.kept(),
            Some(_) => {}
        }
    }
    for stray in trial.strays.iter().filter(|stray| stray.from == trial.side && stray.id == RequestId::Null) {
        match stray.to.map(|to| (to, &trial.messages[to].body)) {
            // What not everybody can read: half a surrogate pair.
            Some((to, _)) if serde_json::from_str::<Value>(trial.messages[to].text).is_err() => {}
            Some((to, Body::Request { method, .. })) => {
                let seen = format!("a response with the id null, after {} that has an id", shown(method));
                verdict.broken_by(vec![to, stray.at], seen);
            }
            Some(_) => {}
            None => verdict.broken(stray.at, "a response with the id null that answers nothing"),
        }
    }
}

pub(super) fn result_or_error(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.values_of(trial.side) {
        let has = |key: &str| message.get(key).is_some();
        if has("method") || !(has("id") || has("result") || has("error")) {
            continue;
        }
        verdict.check(has("result") != has("error"), index, || {
            let what = if has("result") { "both a result and an error" } else { "neither a result nor an error" };
            format!("a response with {what}")
        });
    }
}

pub(super) fn notifications_not_answered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let answers: HashMap<MessageIndex, MessageIndex> = answers_to(trial);
    let last = last_of(trial);
    for (index, message) in trial.messages_of(other(trial.side)) {
        let Body::Notification { method, .. } = &message.body else { continue };
        match answers.get(&index) {
            Some(answer) => verdict.broken_by(vec![index, *answer], format!("{} was answered", shown(method))),
            None if could_act(trial, index, last) => verdict.kept(),
            None => {}
        }
    }
}

pub(super) fn responses_not_answered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let answers = answers_to(trial);
    let last = last_of(trial);
    for mishap in trial.mishaps.iter().filter(|mishap| mishap.from != trial.side && mishap.what == Mistake::Response) {
        match answers.get(&mishap.at) {
            Some(answer) if is_refusal(trial, *answer) && is_ambiguous(trial, mishap.at) => {}
            Some(answer) => verdict.broken_by(vec![mishap.at, *answer], "a response was answered"),
            None if could_act(trial, mishap.at, last) => verdict.kept(),
            None => {}
        }
    }
}

/// Whether a message may be taken for a bad request: a response has an id, and a result or an error.
fn is_ambiguous(trial: &Trial<'_>, message: MessageIndex) -> bool {
    let message: Value = serde_json::from_str(trial.messages[message].text).unwrap_or_default();
    let has = |key: &str| message.get(key).is_some();
    !has("id") || !(has("result") || has("error"))
}

/// Whether a message says that another was no request.
fn is_refusal(trial: &Trial<'_>, message: MessageIndex) -> bool {
    let body = &trial.messages[message].body;
    matches!(body, Body::Response { outcome: Err(error), .. } if error.code == -32600)
}

/// The responses of the judged side that answer no request, by what they seem to be meant for.
fn answers_to(trial: &Trial<'_>) -> HashMap<MessageIndex, MessageIndex> {
    let strays = trial.strays.iter().filter(|stray| stray.from == trial.side);
    strays.filter_map(|stray| Some((stray.to?, stray.at))).collect()
}

pub(super) fn both_ways(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut last: HashMap<(bool, &RequestId), &Call> = HashMap::new();
    for call in &trial.calls {
        let is_to_us = call.to() == trial.side;
        last.insert((is_to_us, &call.id), call);
        let Some(before) = last.get(&(!is_to_us, &call.id)).filter(|before| before.is_open_at(call.at)) else {
            continue;
        };
        let (theirs, ours) = if is_to_us { (call, *before) } else { (*before, call) };
        if trial.is_ignored(theirs) {
            let seen = format!("{}, which is also the id of a request the other way", unanswered(theirs));
            verdict.broken_by(vec![ours.at, theirs.at], seen);
        } else if !theirs.answers.is_empty() {
            verdict.kept();
        }
    }
}

pub(super) fn cancel_unknown(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    let mut last: HashMap<String, &Call> = HashMap::new();
    let mut calls = trial.calls_of(other(trial.side)).peekable();
    for (index, params) in trial.notifications(other(trial.side), "$/cancel_request") {
        while let Some(call) = calls.next_if(|call| call.at < index) {
            last.insert(as_json(&call.id), call);
        }
        let is_open = last.get(&params["requestId"].to_string()).is_some_and(|call| call.is_open_at(index));
        match pulse.beats_after(index).filter(|_| !is_open) {
            Some(true) => verdict.kept(),
            Some(false) => {
                verdict.broken(index, "after `$/cancel_request` for an id that is not open nothing more came")
            }
            None => {}
        }
    }
}

fn as_json(id: &RequestId) -> String {
    match id {
        RequestId::Null => "null".to_owned(),
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => Value::from(&**text).to_string(),
    }
}

pub(super) fn cancelled_once(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls.iter().filter(|call| call.to() == trial.side) {
        let Some(cancelled) = call.cancelled_at.filter(|cancelled| call.is_open_at(*cancelled)) else { continue };
        match &call.answers[..] {
            [] if trial.is_ignored(call) && trial.had_time(trial.side, cancelled) => {
                verdict.broken_by(vec![call.at, cancelled], unanswered(call));
            }
            [] => {}
            [_] => verdict.kept(),
            [_, second, ..] => {
                let seen = format!("{} was answered twice", shown(&call.method));
                verdict.broken_by(vec![call.at, cancelled, second.at], seen);
            }
        }
    }
}
