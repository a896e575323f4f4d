//! `session/list`: entries, pages, filters.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::setup::trimmed;
use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

const INVALID_PARAMS: i32 = -32602;

fn lists<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    trial.calls_to("session/list").filter(|call| call.from == Side::Client)
}

/// The lists that were answered: the call, where it was answered, and the result.
fn listed<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, MessageIndex, &'a Value)> {
    lists(trial).filter_map(|call| Some((call, call.answered_at()?, call.result()?)))
}

fn entries(result: &Value) -> impl Iterator<Item = &Value> {
    result["sessions"].as_array().into_iter().flatten()
}

pub(super) fn fields(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (_, at, result) in listed(trial) {
        let is_whole = |entry: &Value| entry["sessionId"].is_string() && entry["cwd"].is_string();
        if !result["sessions"].is_array() {
            verdict.broken(at, format!("`sessions` is {}", shown(&result["sessions"].to_string())));
        } else if !entries(result).all(is_whole) {
            verdict.broken(at, "an entry without `sessionId` or `cwd`");
        } else {
            let cursor = &result["nextCursor"];
            verdict.check(cursor.is_null() || cursor.is_string(), at, || {
                format!("`nextCursor` is {}", shown(&cursor.to_string()))
            });
        }
    }
}

pub(super) fn pages(trial: &Trial<'_>, verdict: &mut Verdict) {
    // Each cursor with the number of the chain of pages that it belongs to, and each chain's cursors.
    let mut chain_of: HashMap<&str, usize> = HashMap::new();
    let mut chains: Vec<HashSet<&str>> = Vec::new();
    for call in lists(trial) {
        let Some(at) = call.answered_at() else { continue };
        let chain = match call.params["cursor"].as_str() {
            None => {
                chains.push(HashSet::new());
                chains.len() - 1
            }
            Some(cursor) => match chain_of.get(cursor) {
                Some(chain) => *chain,
                None => continue,
            },
        };
        let is_next = call.params["cursor"].is_string();
        if is_next && let Some(error) = call.error() {
            if error.code == INVALID_PARAMS {
                verdict.broken(at, "the agent's own cursor was rejected");
            }
            continue;
        }
        let next = call.result().and_then(|result| result["nextCursor"].as_str());
        if let Some(next) = next {
            let is_itself = is_next && call.params["cursor"].as_str() == Some(next);
            let is_new = chains[chain].insert(next) || (!is_itself && !is_next);
            verdict.check(is_new, at, || format!("the cursor {} leads back to a page before", shown(next)));
            chain_of.insert(next, chain);
        } else if is_next && call.result().is_some() {
            verdict.kept();
        }
    }
}

/// Calls with a cursor, each with whether the agent had given it before on this connection.
fn cursors<'a>(trial: &'a Trial<'_>) -> Vec<(&'a Call, &'a str, bool)> {
    let mut given: Vec<(MessageIndex, &str)> =
        listed(trial).filter_map(|(_, at, result)| Some((at, result["nextCursor"].as_str()?))).collect();
    given.sort_unstable();
    let mut known = HashSet::new();
    let mut given = given.into_iter().peekable();
    let mut used = Vec::new();
    for call in lists(trial) {
        while let Some((_, cursor)) = given.next_if(|(at, _)| *at < call.at) {
            known.insert(cursor);
        }
        if let Some(cursor) = call.params["cursor"].as_str() {
            used.push((call, cursor, known.contains(cursor)));
        }
    }
    used
}

pub(super) fn bad_cursor(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, cursor, is_given) in cursors(trial) {
        // An empty cursor may stand for the beginning.
        if is_given || cursor.is_empty() || walk::is_unrelated_refusal(trial.exchange, call) {
            continue;
        }
        if let Some(at) = call.answered_at() {
            let is_rejected = call.error().is_some_and(|error| error.code == INVALID_PARAMS);
            verdict.check(is_rejected, at, || match call.error() {
                Some(error) => format!("error {} for an unknown cursor", error.code),
                None => "a result for an unknown cursor".to_owned(),
            });
        }
    }
}

pub(super) fn cursor_as_given(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, cursor, is_given) in cursors(trial) {
        verdict.check(is_given, call.at, || format!("the agent did not give the cursor {}", shown(cursor)));
    }
}

pub(super) fn deleted_gone(trial: &Trial<'_>, verdict: &mut Verdict) {
    // What happened to sessions, in the order of the answers.
    let mut steps: Vec<(MessageIndex, &Call)> = trial
        .calls_of(Side::Client)
        .filter(|call| call.result().is_some())
        .filter_map(|call| Some((call.answered_at()?, call)))
        .collect();
    steps.sort_unstable_by_key(|(at, _)| *at);
    let mut deleted: HashMap<&str, MessageIndex> = HashMap::new();
    for (at, call) in steps {
        match call.method.as_str() {
            "session/delete" => {
                call.session().map(|id| deleted.insert(id, at));
            }
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                let made = call.result().and_then(|result| result["sessionId"].as_str()).or(call.session());
                made.map(|id| deleted.remove(id));
            }
            "session/list" if deleted.values().any(|since| *since < call.at) => {
                let is_gone = |id: &str| deleted.get(id).is_some_and(|since| *since < call.at);
                let entries = entries(call.result().unwrap_or(&Value::Null));
                let still = entries.filter_map(|entry| entry["sessionId"].as_str()).find(|id| is_gone(id));
                verdict.check(still.is_none(), at, || format!("{} was deleted", shown(still.unwrap_or(""))));
            }
            _ => {}
        }
    }
}

pub(super) fn exact_cwd(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, at, result) in listed(trial) {
        let Some(wanted) = call.params["cwd"].as_str() else { continue };
        let other =
            entries(result).filter_map(|entry| entry["cwd"].as_str()).find(|cwd| trimmed(cwd) != trimmed(wanted));
        verdict.check(other.is_none(), at, || {
            format!("a session of {} in a list for {}", shown(other.unwrap_or("")), shown(wanted))
        });
    }
}
