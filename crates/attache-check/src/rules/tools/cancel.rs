//! Cancelling single tool calls and terminals.

use std::collections::HashMap;

use serde_json::Value;

use super::is_final;
use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

/// What was said of a tool call or a terminal, in one message.
struct Said {
    at: MessageIndex,
    /// Whether it can be cancelled, if that was said.
    can_cancel: Option<bool>,
    /// Whether it is over, if that was said.
    is_over: Option<bool>,
}

/// What was said of all tool calls and terminals: by method of cancelling, session and id.
fn said<'a>(trial: &'a Trial<'_>) -> HashMap<(&'a str, &'a str, &'a str), Vec<Said>> {
    let mut all: HashMap<_, Vec<Said>> = HashMap::new();
    for (at, session, update) in trial.updates() {
        let (method, id, is_over) = match update["sessionUpdate"].as_str() {
            Some("tool_call_update") => {
                ("tool_call/cancel", &update["toolCallId"], update["status"].as_str().map(is_final))
            }
            Some("terminal_update") => {
                ("terminal/cancel", &update["terminalId"], update["exitStatus"].is_object().then_some(true))
            }
            _ => continue,
        };
        let can_cancel = update.get("capabilities").map(|capabilities| capabilities["cancel"].is_object());
        if let Some(id) = id.as_str() {
            all.entry((method, session, id)).or_default().push(Said { at, can_cancel, is_over });
        }
    }
    all
}

fn cancels<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, (&'a str, &'a str, &'a str))> {
    trial.calls_of(Side::Client).filter_map(|call| {
        let id: &Value = match call.method.as_str() {
            "tool_call/cancel" => &call.params["toolCallId"],
            "terminal/cancel" => &call.params["terminalId"],
            _ => return None,
        };
        Some((call, (call.method.as_str(), call.session()?, id.as_str()?)))
    })
}

pub(super) fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let said = said(trial);
    for (call, key) in cancels(trial) {
        // That it cannot be cancelled any more may cross on the wire.
        let known = said.get(&key).map_or(&[][..], Vec::as_slice);
        let was_offered = known.iter().any(|said| said.at < call.at && said.can_cancel == Some(true));
        verdict.check(was_offered, call.at, || {
            format!("`{}` for {}, which was never said to be cancellable", key.0, shown(key.2))
        });
    }
}

pub(super) fn refused(trial: &Trial<'_>, verdict: &mut Verdict) {
    let said = said(trial);
    for (call, key) in cancels(trial) {
        let Some(answered) = call.answered_at() else { continue };
        let known = said.get(&key).map_or(&[][..], Vec::as_slice);
        let before = &known[..known.partition_point(|said| said.at < call.at)];
        let can_cancel = before.iter().rev().find_map(|said| said.can_cancel).unwrap_or(false);
        let is_over = before.iter().rev().find_map(|said| said.is_over).unwrap_or(false);
        if can_cancel && !is_over {
            continue;
        }
        let why = match (before.is_empty(), is_over) {
            (true, _) => "unknown",
            (_, true) => "over",
            _ => "not cancellable",
        };
        match call.error() {
            Some(error) if error.code == -32602 => verdict.kept(),
            Some(error) => verdict.broken_by(
                vec![call.at, answered],
                format!("`{}` for {}, which is {why}, was answered {}", key.0, shown(key.2), error.code),
            ),
            None => verdict.broken_by(
                vec![call.at, answered],
                format!("`{}` for {}, which is {why}, was accepted", key.0, shown(key.2)),
            ),
        }
    }
}
