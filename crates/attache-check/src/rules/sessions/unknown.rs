//! Sessions that one side does not know: closed and deleted by the client, told of by the agent.

use std::collections::HashSet;

use serde_json::Value;

use crate::exchange::{Body, Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

use super::setup::gate;

const NOT_FOUND: i32 = -32002;

/// Judges a method that has nothing to do for a session that is not there.
fn succeeds(trial: &Trial<'_>, verdict: &mut Verdict, method: &str, is_right_error: impl Fn(&Call) -> bool) {
    let is_offered = gate(trial.dialect, method).is_none_or(|path| trial.offers(Side::Agent, path));
    let named: HashSet<&str> = walk::known_sessions(trial.exchange).collect();
    for call in trial.calls_of(Side::Client).filter(|call| is_offered && call.method == method) {
        if let (Some(at), Some(id)) = (call.answered_at(), call.session())
            && !named.contains(id)
            && !trial.before.known.contains(id)
            && !walk::is_unrelated_refusal(trial.exchange, call)
        {
            let is_kept = call.error().is_none() || is_right_error(call);
            verdict.check(is_kept, at, || format!("error {}", call.error().map_or(0, |error| error.code)));
        }
    }
}

pub(super) fn close(trial: &Trial<'_>, verdict: &mut Verdict) {
    // The page on errors lists it among the methods that answer -32002, so that is accepted as well.
    succeeds(trial, verdict, "session/close", |call| call.error().is_some_and(|error| error.code == NOT_FOUND));
}

pub(super) fn delete(trial: &Trial<'_>, verdict: &mut Verdict) {
    succeeds(trial, verdict, "session/delete", |_| false);
}

/// The sessions that either side named on this connection: the agent in results and as children of others, the client in whatever it sent.
fn spoken_of(trial: &Trial<'_>) -> HashSet<String> {
    let mut known = HashSet::new();
    let mut add = |id: &Value| known.extend(id.as_str().map(str::to_owned));
    for (_, message) in trial.messages_of(Side::Client) {
        add(&message.body.params()["sessionId"]);
    }
    for (_, _, update) in trial.updates() {
        for key in ["sessionId", "senderSessionId", "recipientSessionId"] {
            add(&update[key]);
        }
    }
    // Whatever is wrong with the answer to `session/new`, its id is no secret.
    for (_, message) in trial.values_of(Side::Agent) {
        add(&message["result"]["sessionId"]);
    }
    known
}

/// Judged when all is known: updates may come before the answer that gives the id of a new session.
pub(super) fn own_sessions(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(agreed) = trial.agreed_at() else { return };
    let known = spoken_of(trial);
    let listed: HashSet<&str> = walk::known_sessions(trial.exchange).collect();
    let is_new =
        |call: &&Call| matches!(call.method.as_str(), "session/new" | "session/fork") && call.result().is_none();
    let unopened: Vec<&Call> = trial.calls_of(Side::Client).filter(is_new).collect();
    let may_be_new = |at: MessageIndex| unopened.iter().any(|call| call.is_open_at(at));
    let mut told: HashSet<&str> = HashSet::new();
    for (at, message) in trial.messages_of(Side::Agent).filter(|(at, _)| *at > agreed) {
        let (method, params) = match &message.body {
            Body::Notification { method, params } if method == "session/update" => (method, params),
            Body::Request { method, params, .. } if !method.starts_with('_') => (method, params),
            _ => continue,
        };
        let Some(id) = params["sessionId"].as_str() else { continue };
        // What is listed may be told of: it has a new title.
        let is_listed = || params["update"]["sessionUpdate"] == "session_info_update" && listed.contains(id);
        if known.contains(id) {
            verdict.kept();
        } else if !is_listed() && !may_be_new(at) && told.insert(id) {
            verdict.broken(at, format!("{} for {}, which is no session of this connection", shown(method), shown(id)));
        }
    }
}
