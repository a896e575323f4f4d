//! Modes, as version 1 has them.

use serde_json::Value;

use super::config;
use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// The modes that were sent when sessions were opened: where, of which session, and what.
fn modes<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
    config::openings(trial).filter_map(|(at, session, result)| {
        let modes = &result["modes"];
        (!modes.is_null()).then_some((at, session, modes))
    })
}

fn ids(modes: &Value) -> impl Iterator<Item = &str> {
    walk::items(&modes["availableModes"]).iter().filter_map(|mode| mode["id"].as_str())
}

pub(super) fn available(trial: &Trial<'_>, verdict: &mut Verdict) {
    let all: Vec<_> = modes(trial).collect();
    for (at, _, modes) in &all {
        let Some(current) = modes["currentModeId"].as_str() else { continue };
        verdict.check(ids(modes).any(|id| id == current), *at, || {
            format!("the current mode {} is not available", shown(current))
        });
    }
    for (at, session, update) in trial.updates_of("current_mode_update") {
        let Some(current) = update["currentModeId"].as_str() else { continue };
        // Which modes there are is known when the session is open.
        let Some((_, _, modes)) = all.iter().rev().find(|(_, of, _)| *of == session) else { continue };
        verdict
            .check(ids(modes).any(|id| id == current), at, || format!("the mode {} is not available", shown(current)));
    }
}

pub(super) fn ids_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, modes) in modes(trial) {
        match walk::repeated(ids(modes)) {
            Some(id) => verdict.broken(at, format!("two modes with the id {}", shown(id))),
            None => verdict.kept(),
        }
    }
}

/// The requests to set a mode, and whether that mode is available. Sessions that are not known here are left out.
fn settings<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, &'a str, bool)> {
    let all: Vec<_> = modes(trial).collect();
    trial.calls_to("session/set_mode").filter(|call| call.from == Side::Client).filter_map(move |call| {
        let (session, mode) = (call.session()?, call.params["modeId"].as_str()?);
        trial.sessions.get(session)?;
        let modes = all.iter().rev().find(|(at, of, _)| *of == session && *at < call.at);
        Some((call, mode, modes.is_some_and(|(_, _, modes)| ids(modes).any(|id| id == mode))))
    })
}

pub(super) fn sets_available(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, mode, is_available) in settings(trial) {
        verdict.check(is_available, call.at, || format!("the mode {} is not available", shown(mode)));
    }
}

pub(super) fn unknown_refused(trial: &Trial<'_>, verdict: &mut Verdict) {
    let has_modes = |call: &Call| modes(trial).any(|(_, session, _)| Some(session) == call.session());
    for (call, mode, _) in settings(trial).filter(|(call, _, is_available)| !is_available && has_modes(call)) {
        let Some(at) = call.answered_at() else { continue };
        match call.error().map(|error| error.code) {
            Some(-32602) => verdict.kept(),
            Some(code) => verdict.broken(at, format!("the unknown mode {} was answered {code}", shown(mode))),
            None => verdict.broken(at, format!("the unknown mode {} was set", shown(mode))),
        }
    }
}

pub(super) fn in_sync(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, result) in config::openings(trial) {
        let is_mode = |option: &&Value| option["category"] == "mode" && option["currentValue"].is_string();
        let Some(option) = walk::items(&result["configOptions"]).iter().find(is_mode) else { continue };
        let seen = match result["modes"]["currentModeId"].as_str() {
            None => "an option of the category `mode`, but no `modes`".to_owned(),
            Some(current) if option["currentValue"] == current => {
                verdict.kept();
                continue;
            }
            Some(current) => format!("the mode is {}, its option says something else", shown(current)),
        };
        verdict.broken(at, seen);
    }
}
