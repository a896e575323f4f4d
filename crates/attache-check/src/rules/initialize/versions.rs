//! Which version an agent selects, and what comes of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{greetings, has, version};
use crate::exchange::{Exchange, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

/// The error of an agent that has no version in common with the client.
const UNSUPPORTED_VERSION: i32 = -32022;

/// No version will have such a number for a long time: whoever answers with it repeats what it was asked for.
const NO_SUCH_VERSION: u64 = 1000;

/// The versions that the agent has answered with, on this connection and those before.
fn supported(trial: &Trial<'_>) -> BTreeSet<u64> {
    supported_in(trial.exchange).chain(trial.before.versions.iter().copied()).collect()
}

/// The versions that the agent has answered with on a connection, without what no agent can support.
pub(in crate::rules) fn supported_in<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = u64> + 'a {
    let results = greetings(exchange).filter_map(|call| call.result()).filter(|result| !is_disguised(result));
    results.filter_map(version).filter(|version| *version < NO_SUCH_VERSION)
}

/// Whether a result is of version 1 and says that it is of version 2.
fn is_disguised(result: &Value) -> bool {
    version(result).is_some_and(|version| version > 1)
        && has(result, "agentCapabilities")
        && !has(result, "capabilities")
}

/// The answers to `initialize` with a version that was asked for: the place, what was asked, what was answered.
fn answers<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, u64, u64)> + 'a {
    greetings(trial).filter_map(|call| Some((call.answered_at()?, version(&call.params)?, version(call.result()?)?)))
}

pub(super) fn same_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    let supported = supported(trial);
    for (at, asked, answered) in answers(trial).filter(|(_, asked, _)| supported.contains(asked)) {
        verdict.check(asked == answered, at, || {
            format!("asked for version {asked}, answered with {answered}, though it answered with {asked} elsewhere")
        });
    }
}

pub(super) fn newest_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    let supported = supported(trial);
    for (at, asked, answered) in answers(trial).filter(|(_, asked, _)| !supported.contains(asked)) {
        let newest = supported.range(..asked).next_back().copied().unwrap_or(answered);
        if answered >= NO_SUCH_VERSION {
            verdict.broken(at, format!("answered with version {answered}, which does not exist"));
        } else {
            verdict.check(answered >= newest, at, || {
                format!("asked for version {asked}, answered with {answered}, though it supports {newest}")
            });
        }
    }
}

pub(super) fn not_above_the_request(trial: &Trial<'_>, verdict: &mut Verdict) {
    let published = greetings(trial).filter(|call| call.result().is_some_and(|result| has(result, "info")));
    for call in published {
        let (Some(asked), Some(answered), Some(at)) =
            (version(&call.params), call.result().and_then(version), call.answered_at())
        else {
            continue;
        };
        verdict.check(answered <= asked, at, || format!("asked for version {asked}, answered with {answered}"));
    }
}

pub(super) fn unsupported_version(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in greetings(trial) {
        let (Some(asked), Some(error), Some(at)) = (version(&call.params), call.error(), call.answered_at()) else {
            continue;
        };
        if error.code != UNSUPPORTED_VERSION {
            continue;
        }
        let listed = error.data["supported"].as_array();
        let supported: Vec<u64> = listed.into_iter().flatten().filter_map(Value::as_u64).collect();
        if error.data["requested"].as_u64() != Some(asked) {
            verdict.broken(at, format!("`requested` is {}", shown(&error.data["requested"].to_string())));
        } else if listed.is_none_or(|listed| listed.len() != supported.len() || listed.is_empty()) {
            verdict.broken(at, format!("`supported` is {}", shown(&error.data["supported"].to_string())));
        } else {
            let low = supported.iter().find(|version| **version <= asked);
            verdict.check(low.is_none(), at, || {
                format!("version {} is supported, and was not selected", low.unwrap_or(&0))
            });
        }
    }
}

pub(super) fn no_version_error(trial: &Trial<'_>, verdict: &mut Verdict) {
    let supported = supported(trial);
    // A second `initialize` may be refused whatever it asks for, and version 2 may be refused for lack of `info`.
    let Some(call) = greetings(trial).next() else { return };
    let Some(asked) = version(&call.params).filter(|asked| *asked >= 2 && !supported.contains(asked)) else { return };
    let (Some(at), is_whole) = (call.answered_at(), asked > 2 || has(&call.params, "info")) else { return };
    match call.error() {
        None => verdict.kept(),
        Some(error) if error.code == UNSUPPORTED_VERSION || !is_whole => {}
        Some(error) => verdict.broken(at, format!("error {} for version {asked}", error.code)),
    }
}

pub(super) fn unknown_version_ends_it(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(call) = greetings(trial).next() else { return };
    let (Some(asked), Some(answered), Some(at)) =
        (version(&call.params), call.result().and_then(version), call.answered_at())
    else {
        return;
    };
    if answered <= asked {
        return;
    }
    match trial.calls_of(Side::Client).find(|call| call.at > at && call.method != "initialize") {
        Some(next) => verdict.broken_by(
            vec![at, next.at],
            format!("{} in version {answered}, though it asked for {asked}", shown(&next.method)),
        ),
        None if trial.had_time(Side::Client, at) => verdict.kept(),
        None => {}
    }
}
