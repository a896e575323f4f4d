//! What messages look like, and their ids.

use std::collections::HashMap;

use attache_proto::model::request::RequestId;
use attache_proto::rpc::Violation;

use crate::exchange::{Body, Call};
use crate::rule::{Trial, Verdict, shown};

pub(super) fn version(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        match &message.body {
            Body::Invalid { violation: Violation::NoVersion, .. } => {
                verdict.broken(index, "a message without `\"jsonrpc\":\"2.0\"`");
            }
            Body::Request { .. } | Body::Notification { .. } | Body::Response { .. } => verdict.kept(),
            _ => {}
        }
    }
}

pub(super) fn shape(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        match &message.body {
            Body::Request { .. } | Body::Notification { .. } | Body::Response { .. } => verdict.kept(),
            Body::Invalid { violation, is_response, .. } => {
                let is_ours = match violation {
                    Violation::NotAnObject | Violation::NoMethod | Violation::BadParams => true,
                    Violation::DuplicateMember => true,
                    Violation::Mixed => !is_response,
                    _ => false,
                };
                if is_ours {
                    verdict.broken(index, violation.rule());
                }
            }
            _ => {}
        }
    }
}

pub(super) fn ids(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.values_of(trial.side) {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let is_id = id.is_null() || id.is_string() || id.as_i64().is_some();
        verdict.check(is_id, index, || format!("a request with the id {}", shown(&id.to_string())));
    }
}

pub(super) fn ids_not_null(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_of(trial.side) {
        verdict.check(call.id != RequestId::Null, call.at, || {
            format!("a request of {} with the id null", shown(&call.method))
        });
    }
}

pub(super) fn pending_ids(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut last: HashMap<&RequestId, &Call> = HashMap::new();
    for call in trial.calls_of(trial.side).filter(|call| call.id != RequestId::Null) {
        match last.insert(&call.id, call).filter(|before| before.is_open_at(call.at)) {
            None => verdict.kept(),
            Some(before) => {
                let id = shown(&call.id.to_string());
                verdict.broken_by(vec![before.at, call.at], format!("the id {id} of a request that has no answer yet"));
            }
        }
    }
}
