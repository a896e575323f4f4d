//! Closing and deleting sessions that the agent does not know.

use std::collections::HashSet;

use crate::exchange::{Call, Exchange};
use crate::record::Side;
use crate::rule::{Trial, Verdict};

use super::setup::{METHOD_NOT_FOUND, gate};

const NOT_FOUND: i32 = -32002;

/// The sessions that the agent has named or opened, here or on connections before.
fn named<'a>(trial: &'a Trial<'_>) -> HashSet<&'a str> {
    trial.before.iter().chain([trial.exchange]).flat_map(named_in).collect()
}

fn named_in<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = &'a str> {
    let lists = exchange.calls_to("session/list").filter_map(|call| call.result()?["sessions"].as_array());
    let listed = lists.flatten().filter_map(|entry| entry["sessionId"].as_str());
    listed.chain(exchange.sessions.keys().map(String::as_str))
}

/// Judges a method that has nothing to do for a session that is not there.
fn succeeds(trial: &Trial<'_>, verdict: &mut Verdict, method: &str, is_right_error: impl Fn(&Call) -> bool) {
    let is_offered = gate(trial.dialect, method).is_none_or(|path| trial.offers(Side::Agent, path));
    let named = named(trial);
    for call in trial.calls_of(Side::Client).filter(|call| is_offered && call.method == method) {
        if let (Some(at), Some(id)) = (call.answered_at(), call.session())
            && !named.contains(id)
            && call.error().is_none_or(|error| error.code != METHOD_NOT_FOUND)
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
