//! Work that goes on beside the conversation.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::exchange::MessageIndex;
use crate::rule::{Trial, Verdict, shown};

/// An item: its type, and the id of the tool call or terminal.
type Item<'a> = (&'static str, &'a str);

fn items(update: &Value) -> impl Iterator<Item = Item<'_>> {
    let items = update["background"].as_array().into_iter().flatten();
    items.filter_map(|item| match item["type"].as_str()? {
        "terminal" => Some(("terminal", item["terminalId"].as_str()?)),
        "tool_call" => Some(("tool call", item["toolCallId"].as_str()?)),
        _ => None,
    })
}

pub(super) fn always(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut reporting: HashSet<&str> = HashSet::new();
    for (at, session, update) in trial.updates_of("state_update") {
        let is_there = update["background"].is_array();
        if reporting.contains(session) {
            verdict
                .check(is_there, at, || "a `state_update` without `background`, which was reported before".to_owned());
        }
        if is_there {
            reporting.insert(session);
        }
    }
}

/// What updates have told of an item.
#[derive(Default, Clone, Copy)]
struct Told {
    is_finished: bool,
}

/// Walks the updates of all sessions; for each `state_update`, what was told of the items so far.
fn walk<'a>(
    trial: &'a Trial<'_>,
    mut state: impl FnMut(MessageIndex, &'a str, &'a Value, &HashMap<(&'a str, Item<'a>), Told>),
) {
    let mut told: HashMap<(&str, Item<'_>), Told> = HashMap::new();
    for (at, session, update) in trial.exchange.updates() {
        match update["sessionUpdate"].as_str() {
            Some("tool_call_update") => {
                let Some(id) = update["toolCallId"].as_str() else { continue };
                let is_finished = matches!(update["status"].as_str(), Some("completed" | "failed" | "cancelled"));
                let told = told.entry((session, ("tool call", id))).or_default();
                told.is_finished = is_finished || (told.is_finished && update["status"].is_null());
            }
            Some("terminal_update") => {
                let Some(id) = update["terminalId"].as_str() else { continue };
                let told = told.entry((session, ("terminal", id))).or_default();
                told.is_finished |= update["exitStatus"].is_object();
            }
            Some("state_update") => state(at, session, update, &told),
            _ => {}
        }
    }
}

pub(super) fn announced(trial: &Trial<'_>, verdict: &mut Verdict) {
    walk(trial, |at, session, update, told| {
        for item in items(update) {
            verdict.check(told.contains_key(&(session, item)), at, || {
                format!("the {} {} was not announced", item.0, shown(item.1))
            });
        }
    });
}

pub(super) fn finished(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut listed: HashMap<&str, HashSet<Item<'_>>> = HashMap::new();
    walk(trial, |at, session, update, told| {
        // That the list is there at all is for another rule to say.
        if !update["background"].is_array() {
            return;
        }
        let now: HashSet<Item<'_>> = items(update).collect();
        let before = listed.insert(session, now.clone()).unwrap_or_default();
        let mut gone: Vec<_> = before.difference(&now).collect();
        gone.sort_unstable();
        for item in gone {
            let is_finished = told.get(&(session, *item)).is_none_or(|told| told.is_finished);
            verdict.check(is_finished, at, || format!("the {} {} left the list before its end", item.0, shown(item.1)));
        }
    });
}
