//! `initialize`: versions, capabilities, names.

use serde_json::Value;

use crate::exchange::{Call, Exchange};
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

mod capabilities;
mod versions;

pub(super) use versions::supported_in;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "initialize/first",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client calls `initialize`, and waits for its result, before it asks for anything else.",
        source: "v1/18 v2/4; S1 DOC",
        instead: "Send `initialize` first, and the next request once it is answered.",
        implies: &[],
        judge: first,
    },
    Rule {
        id: "initialize/version-is-an-integer",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "`protocolVersion` is an integer from 0 to 65535.",
        source: "v1/19; S0 S1 SCH",
        instead: "Send `\"protocolVersion\":1`, not a string or a fraction.",
        implies: &["envelope/params", "envelope/results"],
        judge: version_is_an_integer,
    },
    Rule {
        id: "initialize/words-of-its-version",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "`initialize` and its result are written in the words of the version that they name.",
        source: "v1/22; S1 DOC",
        instead: "Use `clientCapabilities` and `agentCapabilities` with version 1, `capabilities` with version 2.",
        implies: &[],
        judge: words_of_its_version,
    },
    Rule {
        id: "initialize/methods-of-the-version",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Both sides call methods of the agreed version, not those that only another version has.",
        source: "v1/22; S1 DOC",
        instead: "Choose methods by the `protocolVersion` that the agent answered with.",
        implies: &[],
        judge: methods_of_the_version,
    },
    Rule {
        id: "initialize/same-version",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent that supports the version it is asked for answers with that version.",
        source: "v1/20 v2/9; S1 DOC SCH",
        instead: "Answer with the requested `protocolVersion` whenever you support it.",
        implies: &[],
        judge: versions::same_version,
    },
    Rule {
        id: "initialize/newest-version",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent that does not support the requested version answers with the newest older one it supports, if any.",
        source: "v1/20 v2/9; S1 DOC SCH",
        instead: "Answer with your newest version instead of repeating a number you do not know.",
        implies: &[],
        judge: versions::newest_version,
    },
    Rule {
        id: "initialize/not-above-the-request",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "An agent of version 2 never selects a version above the requested one.",
        source: "v2/9; SCH",
        instead: "Answer with error -32022 if every version you support is above the requested one.",
        implies: &[],
        judge: versions::not_above_the_request,
    },
    Rule {
        id: "initialize/unsupported-version",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Error -32022 has `requested`, the version that was asked for, and `supported`, versions which are all above it.",
        source: "v2/9; SCH",
        instead: "Send `\"data\":{\"requested\":…,\"supported\":[…]}`, and send the error only if no supported version is low enough.",
        implies: &[],
        judge: versions::unsupported_version,
    },
    Rule {
        id: "initialize/no-version-error",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "An agent does not fail `initialize` because the requested version is newer than its own.",
        source: "v1/20 v2/11; S1 DOC RS",
        instead: "Answer with your newest version, whatever else is in the params of a newer one.",
        implies: &[],
        judge: versions::no_version_error,
    },
    Rule {
        id: "initialize/unknown-version-ends-it",
        binds: Binds::Client,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "A client that does not speak the version of the answer closes the connection instead of going on.",
        source: "v1/21 v2/9; S1 DOC SCH",
        instead: "Compare the answered `protocolVersion` with those you support; disconnect and tell the user.",
        implies: &[],
        judge: versions::unknown_version_ends_it,
    },
    Rule {
        id: "initialize/info",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "Both sides send `info` with a `name` and a `version`.",
        source: "v2/8; DOC SCH",
        instead: "Send `\"info\":{\"name\":…,\"version\":…}` in `initialize` and in its result.",
        implies: &["envelope/optional-parts", "envelope/params", "envelope/results"],
        judge: info,
    },
    Rule {
        id: "initialize/client-and-agent-info",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::V1_AND_DRAFT,
        statement: "A client sends `clientInfo`, an agent sends `agentInfo`.",
        source: "v1/24; DOC",
        instead: "Send your `name` and `version`.",
        implies: &[],
        judge: client_and_agent_info,
    },
    Rule {
        id: "initialize/capability-types",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Capabilities have the type of the schema: version 1 has booleans and objects, version 2 has objects.",
        source: "v1/23 v2/13; S0 S1 SCH",
        instead: "Send `true` where the schema has a boolean, `{}` where it has an object, and leave out what is not supported.",
        implies: &["envelope/optional-parts", "envelope/params"],
        judge: capabilities::types,
    },
    Rule {
        id: "initialize/may-be-repeated",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "An agent accepts another `initialize` of the same version until the first other request.",
        source: "v2/10; SCH",
        instead: "Answer it like the first one; the latest one counts.",
        implies: &[],
        judge: may_be_repeated,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/18",
        "A client asks for its newest version and states all its capabilities.",
        "What a client could do and does not say is not on the wire.",
    ),
    (
        "v1/21",
        "A client tells its user that it does not speak the agent's version.",
        "What a client shows is not on the wire.",
    ),
    ("v1/23", "Both cope with every combination of capabilities.", "No check can try them all."),
    ("v2/8", "A client sends its newest version.", "What a client could do and does not say is not on the wire."),
];

fn greetings<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = &'a Call> {
    exchange.calls_of(Side::Client).filter(|call| call.method == "initialize")
}

fn version(value: &Value) -> Option<u64> {
    value["protocolVersion"].as_u64().filter(|version| *version <= u64::from(u16::MAX))
}

fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some()
}

fn first(trial: &Trial<'_>, verdict: &mut Verdict) {
    let agreed = trial.agreed_at();
    let others =
        || trial.calls_of(Side::Client).filter(|call| call.method != "initialize" && !call.method.starts_with('_'));
    match others().next() {
        Some(call) if agreed.is_none_or(|agreed| call.at < agreed) => {
            verdict.broken(call.at, format!("{} before `initialize` was answered", shown(&call.method)));
        }
        Some(_) => verdict.kept(),
        None => {}
    }
}

fn version_is_an_integer(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in greetings(trial) {
        let (said, at) = match trial.side {
            Side::Client => (Some(&call.params), call.at),
            Side::Agent => (call.result(), call.answered_at().unwrap_or(call.at)),
        };
        if let Some(said) = said {
            verdict.check(version(said).is_some(), at, || {
                format!("`protocolVersion` is {}", shown(&said["protocolVersion"].to_string()))
            });
        }
    }
}

fn words_of_its_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in greetings(trial) {
        let (said, at, old) = match trial.side {
            Side::Client => (Some(&call.params), call.at, "clientCapabilities"),
            Side::Agent => (call.result(), call.answered_at().unwrap_or(call.at), "agentCapabilities"),
        };
        let Some((said, version)) = said.and_then(|said| Some((said, version(said)?))) else { continue };
        verdict.check(!has_words_of_another_version(said), at, || {
            let wrong = if version < 2 { "capabilities" } else { old };
            format!("`protocolVersion` {version} with `{wrong}`")
        });
    }
}

/// Whether the params or the result of `initialize` are written in the words of another version than they name.
pub(super) fn has_words_of_another_version(said: &Value) -> bool {
    let has_old = has(said, "clientCapabilities") || has(said, "agentCapabilities");
    match version(said) {
        Some(0 | 1) => has(said, "capabilities") && !has_old,
        Some(2) => has_old && !has(said, "capabilities"),
        _ => false,
    }
}

/// Methods that a dialect does not have, though others do.
fn strangers(dialect: attache_proto::Dialect) -> &'static [&'static str] {
    use attache_proto::Dialect;
    match dialect {
        Dialect::V1 => &["auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel"],
        Dialect::V2Draft => &["auth/login", "auth/logout", "session/set_mode", "tool_call/cancel", "terminal/cancel"],
        Dialect::V2 => &["authenticate", "logout", "session/load", "session/set_mode", "session/set_model"],
    }
}

fn methods_of_the_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(agreed) = trial.agreed_at() else { return };
    let strangers = strangers(trial.dialect);
    for call in trial.calls_of(trial.side).filter(|call| call.at > agreed && call.method != "initialize") {
        verdict.check(!strangers.contains(&call.method.as_str()), call.at, || {
            format!("`{}` is not a method of this version", call.method)
        });
    }
}

fn info(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(call) = trial.initialize.map(|index| &trial.calls[index]) else { return };
    let (said, at) = match trial.side {
        Side::Client => (Some(&call.params), call.at),
        Side::Agent => (call.result(), call.answered_at().unwrap_or(call.at)),
    };
    let Some(info) = said.map(|said| &said["info"]) else { return };
    let is_text = |key: &str| info[key].is_string();
    verdict.check(is_text("name") && is_text("version"), at, || match info {
        Value::Null => "no `info`".to_owned(),
        _ => "`info` without `name` or `version`".to_owned(),
    });
}

fn client_and_agent_info(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(call) = trial.initialize.map(|index| &trial.calls[index]) else { return };
    let (said, at, key) = match trial.side {
        Side::Client => (Some(&call.params), call.at, "clientInfo"),
        Side::Agent => (call.result(), call.answered_at().unwrap_or(call.at), "agentInfo"),
    };
    if let Some(said) = said {
        // Who greets in version 2 has said it there, also if version 1 is what they agree on.
        verdict.check(said[key].is_object() || said["info"].is_object(), at, || format!("no `{key}`"));
    }
}

fn may_be_repeated(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut agreed = None;
    for call in trial.calls_of(Side::Client) {
        if call.method != "initialize" {
            return;
        }
        let asked = version(&call.params);
        if let (Some((before, at)), Some(answered)) = (agreed, call.answered_at())
            && asked == Some(before)
            && call.at > at
        {
            verdict.check(call.error().is_none(), answered, || {
                format!("error {} for another `initialize`", call.error().map_or(0, |error| error.code))
            });
        }
        if let (Some(asked), Some(_), Some(at)) = (asked, call.result(), call.answered_at()) {
            agreed = Some((asked, at));
        }
    }
}
