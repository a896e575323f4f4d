//! Methods, keys and values that the protocol does not define.

mod keys;
mod values;

use attache_proto::method::Method;
use serde_json::Value;

use crate::exchange::{Body, other};
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "extensions/unknown-request",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A request of an unknown method that begins with `_` is answered with the error -32601.",
        source: "v1/5 v2/3 rpc; S1 DOC",
        instead: "Answer -32601 under the id of the request.",
        implies: &[],
        judge: unknown_request,
    },
    Rule {
        id: "extensions/unknown-notification",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "Unknown notifications are ignored: what comes after them is served.",
        source: "v1/6 v1/7 rpc; S1 DOC SCH",
        instead: "Drop the notification and go on.",
        implies: &["envelope/answered"],
        judge: unknown_notification,
    },
    Rule {
        id: "extensions/method-names",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Methods of one's own begin with `_`.",
        source: "v1/88; S1 DOC",
        instead: "Call the method `_example.com/…`, with a name that is yours.",
        implies: &[],
        judge: method_names,
    },
    Rule {
        id: "extensions/advertised",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "Whoever serves methods of its own says so in the `_meta` of its capabilities.",
        source: "v1/88; S1 DOC",
        instead: "Name the extension under `_meta` in the capabilities.",
        implies: &[],
        judge: advertised,
    },
    Rule {
        id: "extensions/root-fields",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Messages, params and results have no fields but those of the protocol; all others are in `_meta`.",
        source: "v1/86; S1 DOC",
        instead: "Put the field into `_meta`.",
        implies: &[],
        judge: keys::root_fields,
    },
    Rule {
        id: "extensions/camel-case",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Keys are written in camelCase.",
        source: "v1/89; DOC",
        instead: "Write `sessionId`, not `session_id`.",
        implies: &["envelope/params", "envelope/results", "extensions/root-fields"],
        judge: keys::camel_case,
    },
    Rule {
        id: "extensions/meta-object",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "`_meta` is an object, or null.",
        source: "v1/86 v2/50; SCH",
        instead: "Put what you have into an object, under a key that is yours.",
        implies: &[],
        judge: keys::meta_object,
    },
    Rule {
        id: "extensions/values",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Kinds, states and types are those of the protocol's version, or begin with `_`.",
        source: "v1/89 v2/49; S2 S3 DOC SCH",
        instead: "Use a value that the protocol defines, or one that begins with `_`.",
        implies: &["envelope/params", "envelope/results"],
        judge: values::values,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/87", "Unknown keys of `_meta` mean nothing.", "what a peer takes them for stays inside it"),
    (
        "v1/87",
        "`traceparent`, `tracestate` and `baggage` in `_meta` are kept for W3C trace context.",
        "any value may be one",
    ),
    (
        "v2/49",
        "Unknown values are kept when they are stored and sent on.",
        "what a peer keeps is seen only where it sends it on",
    ),
    ("v2/49", "What is known and malformed is not taken for unknown.", "what a peer takes it for stays inside it"),
    ("v2/50", "Unknown keys of `_meta` mean nothing.", "what a peer takes them for stays inside it"),
];

/// Whether a name is in a domain that nobody has (RFC 2606), so that nobody can know the method.
fn is_nobodys(method: &str) -> bool {
    method.split('/').next().is_some_and(|owner| owner.ends_with(".invalid") || owner == "_invalid")
}

fn unknown_request(trial: &Trial<'_>, verdict: &mut Verdict) {
    let agreed = trial.agreed_at().unwrap_or(usize::MAX);
    let is_own = |name: &str| name.starts_with('_');
    for call in trial.calls_of(other(trial.side)).filter(|call| call.at > agreed && is_own(&call.method)) {
        let Some(at) = call.answered_at() else { continue };
        match call.error().map(|error| error.code) {
            Some(-32601) => verdict.kept(),
            code if is_nobodys(&call.method) => {
                let how = code.map_or("a result".to_owned(), |code| format!("the error {code}"));
                verdict.broken_by(vec![call.at, at], format!("{} was answered with {how}", shown(&call.method)));
            }
            // It may well know the method.
            _ => {}
        }
    }
}

fn unknown_notification(trial: &Trial<'_>, verdict: &mut Verdict) {
    let pulse = trial.pulse(trial.side);
    for (index, message) in trial.messages_of(other(trial.side)) {
        let Body::Notification { method, .. } = &message.body else { continue };
        match pulse.beats_after(index).filter(|_| Method::parse(method).is_none()) {
            Some(true) => verdict.kept(),
            // It may be the array that ended it.
            Some(false) if message.in_batch.is_some() => {}
            Some(false) => {
                verdict.broken(index, format!("after the unknown {} nothing more was served", shown(method)))
            }
            None => {}
        }
    }
}

fn method_names(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        let Some(method) = message.body.method().filter(|method| Method::parse(method).is_none()) else { continue };
        // Names that an older text had are nobody's own.
        let is_former =
            method == "session/stop" || ["mcp/", "nes/", "$/"].iter().any(|beginning| method.starts_with(beginning));
        if !is_former {
            verdict.check(method.starts_with('_'), index, || format!("the method {}", shown(method)));
        }
    }
}

fn advertised(trial: &Trial<'_>, verdict: &mut Verdict) {
    let hello = if trial.side == Side::Agent { trial.agent_hello() } else { trial.client_hello() };
    let has_meta = has_meta(hello);
    for call in trial.calls_of(other(trial.side)).filter(|call| call.method.starts_with('_')) {
        if let (Some(_), Some(at)) = (call.result(), call.answered_at()) {
            verdict.check(has_meta, at, || format!("{} is served, and no `_meta` tells of it", shown(&call.method)));
        }
    }
}

/// Whether there is a `_meta` with something in it.
fn has_meta(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    let is_meta = |(key, value): (&String, &Value)| match key.as_str() {
        "_meta" => value.as_object().is_some_and(|meta| !meta.is_empty()),
        _ => has_meta(value),
    };
    members.iter().any(is_meta)
}
