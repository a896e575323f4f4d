//! Requests that are refused, and with which code.

use attache_proto::Dialect;
use attache_proto::method::Method;

use super::super::envelope::read_params;
use super::is_offered;
use crate::exchange::{Body, Call, other};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

/// Methods of older texts, which a peer may have kept.
const FORMER: [&str; 8] = [
    "session/stop",
    "mcp/connect",
    "mcp/disconnect",
    "nes/start",
    "nes/suggest",
    "nes/accept",
    "nes/reject",
    "nes/close",
];

/// Requests to the judged side after the connection was agreed, each with the place of its answer.
fn answered<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, usize)> {
    let agreed = trial.agreed_at().unwrap_or(usize::MAX);
    let calls = trial.calls_of(other(trial.side)).filter(move |call| call.at > agreed);
    calls.filter_map(|call| Some((call, call.answered_at()?)))
}

/// Judges whether a request was refused with a code.
fn refused(verdict: &mut Verdict, call: &Call, at: usize, code: i32, what: &str) {
    match call.error() {
        Some(error) if error.code == code => verdict.kept(),
        Some(error) => {
            let seen = format!("{what} {} was refused with {} instead of {code}", shown(&call.method), error.code);
            verdict.broken_by(vec![call.at, at], seen);
        }
        None => {
            verdict.broken_by(vec![call.at, at], format!("{what} {} was answered with a result", shown(&call.method)));
        }
    }
}

pub(super) fn before_initialize(trial: &Trial<'_>, verdict: &mut Verdict) {
    let first = trial.calls_to("initialize").find(|call| call.from == Side::Client).map(|call| call.at);
    let is_early = |call: &&Call| call.method != "initialize" && first.is_none_or(|first| call.at < first);
    for call in trial.calls_of(Side::Client).filter(is_early) {
        if let Some(at) = call.answered_at() {
            refused(verdict, call, at, -32600, "before `initialize`,");
        }
    }
}

pub(super) fn unknown_method(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, at) in answered(trial) {
        let name = call.method.as_str();
        if Method::parse(name).is_none() && !name.starts_with('_') && !FORMER.contains(&name) {
            refused(verdict, call, at, -32601, "the unknown method");
        }
    }
}

pub(super) fn unadvertised_method(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, at) in answered(trial) {
        if is_offered(trial, trial.side, &call.method) == Some(false) {
            refused(verdict, call, at, -32601, "the method");
        }
    }
}

pub(super) fn bad_params(trial: &Trial<'_>, verdict: &mut Verdict) {
    let greetings = trial.calls_to("initialize").filter(|call| call.from != trial.side);
    let greetings = greetings.filter_map(|call| Some((call, call.answered_at()?)));
    for (call, at) in greetings.chain(answered(trial).filter(|(call, _)| call.method != "initialize")) {
        let Some(message) = trial.messages.get(call.at) else { continue };
        let Some(Err(error)) = read_params(call.from, &message.body, trial.dialect) else { continue };
        // What newer versions have in their params nobody knows.
        let is_newer = call.params["protocolVersion"].as_u64().is_some_and(|version| version > 2);
        if is_newer || is_offered(trial, trial.side, &call.method) == Some(false) || is_overlooked(trial, call) {
            continue;
        }
        match call.error().map(|error| error.code) {
            Some(-32602) => verdict.kept(),
            // By JSON-RPC, a request with such params is none.
            Some(-32600) if has_null_params(message.text) => {}
            // It can be found out first that nobody is logged in, or that there is no such session.
            Some(-32000) => {}
            // That it should know the method is for other rules to say.
            Some(-32601) => {}
            Some(-32002) if call.session().is_some() => {}
            code => {
                let how = code.map_or("was served".to_owned(), |code| format!("was refused with {code}"));
                let seen = format!("{} with bad params ({error}) {how}", shown(&call.method));
                verdict.broken_by(vec![call.at, at], seen);
            }
        }
    }
}

/// Whether a request says `"params":null`.
fn has_null_params(text: &str) -> bool {
    let message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    message.get("params").is_some_and(serde_json::Value::is_null)
}

/// Whether the params fit but for something that the agent does not offer to know.
fn is_overlooked(trial: &Trial<'_>, call: &Call) -> bool {
    const DIRECTORIES: &str = "additionalDirectories";
    let root = if trial.dialect == Dialect::V1 { "sessionCapabilities" } else { "session" };
    let mut params = call.params.clone();
    let had = params.as_object_mut().is_some_and(|params| params.remove(DIRECTORIES).is_some());
    let body = Body::Request { id: call.id.clone(), method: call.method.clone(), params };
    had && !trial.offers(Side::Agent, &format!("{root}.{DIRECTORIES}"))
        && matches!(read_params(call.from, &body, trial.dialect), Some(Ok(_)))
}
