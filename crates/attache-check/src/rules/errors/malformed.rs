//! What becomes of that which cannot be read.

use attache_proto::model::request::RequestId;
use attache_proto::rpc::Violation;

use super::super::envelope::read_params;
use crate::exchange::{Answer, Body, Mishap, Mistake, depth, other};
use crate::probe::LONGEST_FRAME;
use crate::record::Event;
use crate::rule::{Trial, Verdict};

/// What the other side sent and cannot be read.
fn mishaps<'a>(trial: &'a Trial<'_>, is_meant: impl Fn(&Mistake) -> bool) -> impl Iterator<Item = &'a Mishap> {
    let side = trial.side;
    let is_alone = |mishap: &Mishap| trial.messages.get(mishap.at).is_some_and(|message| message.in_batch.is_none());
    trial.mishaps.iter().filter(move |mishap| mishap.from != side && is_meant(&mishap.what) && is_alone(mishap))
}

/// Judges the answer to something that cannot be read.
fn judge(
    trial: &Trial<'_>,
    verdict: &mut Verdict,
    mishap: &Mishap,
    what: &str,
    is_right: impl Fn(&Answer, bool) -> bool,
) {
    match &mishap.answer {
        Some(answer) => {
            let has_null = has_null_id(trial, answer);
            if is_right(answer, has_null) {
                verdict.kept();
            } else {
                let how = match &answer.outcome {
                    Ok(_) => "a result".to_owned(),
                    Err(error) if has_null => format!("the error {}", error.code),
                    Err(error) => format!("the error {} and an id", error.code),
                };
                verdict.broken_by(vec![mishap.at, answer.at], format!("{what} was answered with {how}"));
            }
        }
        None if trial.had_time(trial.side, mishap.at) => {
            verdict.broken(mishap.at, format!("{what} was not answered"));
        }
        None => {}
    }
}

fn has_null_id(trial: &Trial<'_>, answer: &Answer) -> bool {
    let body = trial.messages.get(answer.at).map(|message| &message.body);
    matches!(body, Some(Body::Response { id: RequestId::Null, .. }))
}

fn has_code(answer: &Answer, code: i32) -> bool {
    answer.outcome.as_ref().is_err_and(|error| error.code == code)
}

pub(super) fn parse_error(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in mishaps(trial, |what| matches!(what, Mistake::NotJson | Mistake::Junk)) {
        if mishap.what == Mistake::Junk && !is_short(trial, mishap) {
            continue;
        }
        // Who answers it as a request could read it: it has a few strange bytes in it.
        let is_read = |answer: &Answer| !has_null_id(trial, answer) && !has_code(answer, -32700);
        if mishap.answer.as_ref().is_some_and(is_read) {
            continue;
        }
        judge(trial, verdict, mishap, "a line that is not JSON", |answer, has_null| {
            has_null && has_code(answer, -32700)
        });
    }
}

/// Whether bytes that were not kept are few enough to be read.
fn is_short(trial: &Trial<'_>, mishap: &Mishap) -> bool {
    let entry = trial.messages.get(mishap.at).and_then(|message| trial.entries.get(message.entry));
    entry.is_some_and(|entry| matches!(entry.event, Event::Junk { bytes, .. } if bytes < LONGEST_FRAME))
}

pub(super) fn deep_json(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    for mishap in mishaps(trial, |what| *what == Mistake::TooDeep) {
        let text = trial.messages.get(mishap.at).map_or("", |message| message.text);
        let what = format!("JSON of {} levels", depth(text).unwrap_or_default());
        match (&mishap.answer, pulse.beats_after(mishap.at)) {
            (Some(_), Some(false)) => {
                verdict.broken(mishap.at, format!("{what} was answered, and then nothing more was served"))
            }
            (Some(_), _) => verdict.kept(),
            (None, Some(false)) => verdict.broken(mishap.at, format!("after {what} nothing more was served")),
            (None, _) if trial.had_time(trial.side, mishap.at) => {
                verdict.broken(mishap.at, format!("{what} was not answered"));
            }
            (None, _) => {}
        }
    }
}

pub(super) fn not_an_object(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in mishaps(trial, |what| *what == Mistake::Invalid(Violation::NotAnObject)) {
        judge(trial, verdict, mishap, "JSON that is no object", |answer, has_null| {
            has_null && has_code(answer, -32600)
        });
    }
}

pub(super) fn no_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in mishaps(trial, |what| *what == Mistake::Invalid(Violation::NoVersion)) {
        // What has no id may be taken for a notification by whoever is lenient.
        let message: serde_json::Value = trial
            .messages
            .get(mishap.at)
            .and_then(|message| serde_json::from_str(message.text).ok())
            .unwrap_or_default();
        if message.get("id").is_none() && mishap.answer.is_none() {
            continue;
        }
        judge(trial, verdict, mishap, "a message without `\"jsonrpc\":\"2.0\"`", |answer, has_null| {
            !has_null || has_code(answer, -32600)
        });
    }
}

pub(super) fn bad_id(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in mishaps(trial, |what| *what == Mistake::Invalid(Violation::BadId)) {
        let text = trial.messages.get(mishap.at).map_or("", |message| message.text);
        let message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        // Some of today's peers take fractions; long strings are the library's own limit. Who takes the integers that no `i64` can hold
        // still takes nothing but integers.
        let is_whole = message["id"].as_f64().is_some_and(|id| id.fract() == 0.0);
        let is_lenient = message["id"].is_number() && (is_whole || attache_proto::Dialect::V1 == trial.dialect);
        if message["id"].is_string() {
            continue;
        }
        judge(trial, verdict, mishap, "a request whose id is neither a string nor an integer", |answer, has_null| {
            if has_null { has_code(answer, -32600) } else { is_lenient }
        });
    }
}

pub(super) fn null_id(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_of(other(trial.side)).filter(|call| call.id == RequestId::Null) {
        match call.answers.first() {
            Some(answer) if has_code(answer, -32600) => verdict.kept(),
            Some(answer) => {
                let how = if answer.outcome.is_ok() { "served" } else { "refused, but not with -32600" };
                verdict.broken_by(vec![call.at, answer.at], format!("a request with the id null was {how}"));
            }
            None if trial.is_ignored(call) => verdict.broken(call.at, "a request with the id null was not answered"),
            None => {}
        }
    }
}

pub(super) fn bad_request(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in mishaps(trial, |what| matches!(what, Mistake::Invalid(_))) {
        let Mistake::Invalid(violation) = &mishap.what else { continue };
        let what = match violation {
            Violation::NoMethod => "an object without a method",
            Violation::BadParams => "a request whose params are no object or array",
            Violation::Mixed => "a request that is a response as well",
            _ => continue,
        };
        // Params of notifications are nobody's question, and a result may be overlooked in a request.
        let is_overlooked = match violation {
            Violation::Mixed => true,
            Violation::BadParams => {
                let text = trial.messages.get(mishap.at).map_or("", |message| message.text);
                serde_json::from_str::<serde_json::Value>(text).is_ok_and(|message| message.get("id").is_none())
            }
            _ => false,
        };
        if is_overlooked && mishap.answer.is_none() {
            continue;
        }
        judge(trial, verdict, mishap, what, |answer, has_null| match violation {
            _ if has_code(answer, -32600) => true,
            // Some leave it to the method to find out.
            Violation::BadParams => !has_null && answer.outcome.is_err(),
            Violation::Mixed => !has_null,
            _ => false,
        });
    }
}

pub(super) fn connection_lives(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    // What is too deep for a reader has a rule of its own.
    for mishap in mishaps(trial, |what| !matches!(what, Mistake::Blank | Mistake::TooDeep)) {
        match pulse.beats_after(mishap.at) {
            Some(true) => verdict.kept(),
            // How long a line may be is for each to say, and so is what becomes of one that is longer.
            Some(false) if mishap.what == Mistake::Junk && !is_short(trial, mishap) => {}
            Some(false) => verdict.broken(mishap.at, "after something that cannot be read nothing more was served"),
            None => {}
        }
    }
}

pub(super) fn bad_notification(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    let from = other(trial.side);
    for (index, message) in trial.messages_of(from) {
        let is_bad = matches!(message.body, Body::Notification { .. })
            && matches!(read_params(from, &message.body, trial.dialect), Some(Err(_)));
        match pulse.beats_after(index).filter(|_| is_bad) {
            Some(true) => verdict.kept(),
            Some(false) => verdict.broken(index, "after a notification that cannot be read nothing more was served"),
            None => {}
        }
    }
}
