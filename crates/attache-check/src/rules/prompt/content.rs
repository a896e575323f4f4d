//! What clients send in prompts, and what agents have to accept.

use std::collections::HashMap;

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

const INVALID_PARAMS: i32 = -32602;

fn prompts<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    trial.calls_to("session/prompt").filter(|call| call.from == Side::Client)
}

fn kinds(call: &Call) -> impl Iterator<Item = &str> {
    call.params["prompt"].as_array().into_iter().flatten().filter_map(|block| block["type"].as_str())
}

/// Whether an agent has to take a kind of content, by what it offers; `None` if the protocol does not know the kind.
fn is_offered(trial: &Trial<'_>, kind: &str) -> Option<bool> {
    let name = match kind {
        "text" | "resource_link" => return Some(true),
        "image" | "audio" => kind,
        "resource" => "embeddedContext",
        _ => return None,
    };
    let root = if trial.dialect == Dialect::V1 { "promptCapabilities" } else { "session.prompt" };
    Some(trial.offers(Side::Agent, &format!("{root}.{name}")))
}

pub(super) fn after_setup(trial: &Trial<'_>, verdict: &mut Verdict) {
    // Where sessions were opened and closed, in the order of the wire. A client knows that one is open when it has the answer; it is
    // closed for the client when it asks for that.
    let mut steps: Vec<(MessageIndex, &str, bool)> = Vec::new();
    for call in trial.calls_of(Side::Client) {
        match (call.method.as_str(), call.result(), call.answered_at()) {
            ("session/new" | "session/fork", Some(result), Some(at)) => {
                steps.extend(result["sessionId"].as_str().map(|id| (at, id, true)));
            }
            ("session/load" | "session/resume", Some(_), Some(at)) => {
                steps.extend(call.session().map(|id| (at, id, true)))
            }
            ("session/close" | "session/delete", Some(_), _) => {
                steps.extend(call.session().map(|id| (call.at, id, false)))
            }
            _ => {}
        }
    }
    steps.sort_unstable();
    let mut steps = steps.into_iter().peekable();
    let mut is_open: HashMap<&str, bool> = HashMap::new();
    for call in prompts(trial) {
        while let Some((_, id, opens)) = steps.next_if(|(at, ..)| *at < call.at) {
            is_open.insert(id, opens);
        }
        // A prompt that names no session is wrong in another way.
        let Some(id) = call.session() else { continue };
        match is_open.get(id) {
            Some(true) => verdict.kept(),
            Some(false) => verdict.broken(call.at, format!("the session {} is closed", shown(id))),
            None => verdict.broken(call.at, format!("the session {} is not open", shown(id))),
        }
    }
}

pub(super) fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial) {
        let strange = kinds(call).find(|kind| is_offered(trial, kind) == Some(false));
        match strange {
            Some(kind) => verdict.broken(call.at, format!("{}, which the agent does not offer to take", shown(kind))),
            None => verdict.kept(),
        }
    }
}

pub(super) fn not_empty(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial) {
        verdict.check(call.params["prompt"].as_array().is_some_and(|blocks| !blocks.is_empty()), call.at, || {
            "a prompt without content".to_owned()
        });
    }
}

/// Whether the blocks of a prompt that every agent accepts have their fields, so that nothing else is wrong with it.
fn is_plain(call: &Call) -> bool {
    let is_plain = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].is_string(),
        Some("resource_link") => block["uri"].is_string() && block["name"].is_string(),
        _ => false,
    };
    call.params["prompt"].as_array().is_some_and(|blocks| !blocks.is_empty() && blocks.iter().all(is_plain))
}

pub(super) fn baseline(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial).filter(|call| is_plain(call)) {
        let is_open = call.session().and_then(|id| trial.sessions.get(id)).is_some_and(|session| {
            session.opened_at < call.at && session.closed_at.is_none_or(|closed| closed > call.at)
        });
        let Some(at) = call.answered_at().filter(|_| is_open) else { continue };
        if call.result().is_some() {
            verdict.kept();
        } else if call.error().is_some_and(|error| error.code == INVALID_PARAMS) && !trial.was_begun(call) {
            verdict.broken(at, "a prompt of text and resource links was rejected");
        }
    }
}

pub(super) fn unsupported(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in prompts(trial) {
        let strange = kinds(call).find(|kind| is_offered(trial, kind) == Some(false) || is_invented(trial, kind));
        let (Some(kind), Some(at)) = (strange, call.answered_at()) else { continue };
        verdict.check(call.error().is_some_and(|error| error.code == INVALID_PARAMS), at, || match call.error() {
            Some(error) => format!("error {} for a block of type {}", error.code, shown(kind)),
            None => format!("a result for a block of type {}", shown(kind)),
        });
    }
}

/// Whether a kind is none of the protocol, nor of an extension.
fn is_invented(trial: &Trial<'_>, kind: &str) -> bool {
    is_offered(trial, kind).is_none() && !kind.starts_with('_')
}
