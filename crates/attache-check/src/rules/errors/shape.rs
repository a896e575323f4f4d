//! What errors look like, whatever they answer.

use crate::exchange::{Body, MessageIndex, RpcError};
use crate::rule::{Trial, Verdict, shown};

pub(super) fn shape(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.values_of(trial.side) {
        let Some(error) = message.get("error").filter(|_| message.get("method").is_none()) else { continue };
        // Null beside a result is judged as both at once.
        if error.is_null() && message.get("result").is_some() {
            continue;
        }
        let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
        let seen = match error {
            _ if !error.is_object() => Some("an error that is no object"),
            _ if code.is_none() => Some("an error whose `code` is no integer of 32 bits"),
            _ if !error["message"].is_string() => Some("an error whose `message` is no string"),
            _ => None,
        };
        verdict.check(seen.is_none(), index, || seen.unwrap_or_default().to_owned());
    }
}

/// The errors that the judged side sent.
fn errors<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a RpcError)> {
    trial.messages_of(trial.side).filter_map(|(index, message)| match &message.body {
        Body::Response { outcome: Err(error), .. } => Some((index, error)),
        _ => None,
    })
}

pub(super) fn own_codes(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, error) in errors(trial) {
        let is_defined = matches!(error.code, -32700 | -32603..=-32600 | -32099..=-32000);
        let is_reserved = (-32768..=-32000).contains(&error.code);
        verdict.check(is_defined || !is_reserved, index, || {
            format!("the code {}, which is reserved and has no meaning", error.code)
        });
    }
}

pub(super) fn no_stack_traces(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, error) in errors(trial) {
        let trace = [error.message.clone(), error.data.to_string()].iter().find_map(|text| trace_in(text));
        verdict.check(trace.is_none(), index, || {
            format!("an error with a stack trace: {}", shown(trace.unwrap_or_default()))
        });
    }
}

/// What gives a stack trace away. In `data` the line ends are written as `\n`.
fn trace_in(text: &str) -> Option<&'static str> {
    const MARKS: [&str; 9] = [
        "Traceback (most recent call last)",
        "stack backtrace:",
        "thread 'main' panicked at",
        "\n    at ",
        "\\n    at ",
        "\n\tat ",
        "\\n\\tat ",
        "goroutine 1 [",
        "RUST_BACKTRACE",
    ];
    MARKS.into_iter().find(|mark| text.contains(mark)).map(|mark| mark.trim_start_matches(['\n', '\\', 'n', '\t', ' ']))
}
