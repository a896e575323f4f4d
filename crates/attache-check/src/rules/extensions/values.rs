//! Values of sets: those of the protocol, and those that begin with `_`. Version 1 has closed sets, and no place for others; there, too,
//! a value that begins with `_` is let pass, as it cannot be mistaken for one of the protocol.

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::Body;
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

/// A set of values: its name, and what is in it, what only version 1 has, and what only version 2 has.
type Set = (&'static str, [&'static str; 3]);

const BLOCK: Set = ("type of content", ["text image audio resource_link resource", "", ""]);
const PRIORITY: Set = ("priority", ["high medium low", "", ""]);
const ENTRY_STATUS: Set = ("status of an entry", ["pending in_progress completed", "", "cancelled"]);
const KIND: Set = ("kind of tool", ["read edit delete move search execute think fetch switch_mode other", "", ""]);
const STATUS: Set = ("status of a tool call", ["pending in_progress completed failed", "", "paused cancelled"]);
const TOOL_CONTENT: Set = ("type of a tool call's content", ["content diff terminal", "", ""]);
const STOP: Set = ("stop reason", ["end_turn max_tokens max_turn_requests refusal cancelled", "", "error"]);
const STATE: Set = ("state", ["running idle requires_action unknown", "", ""]);
const SEVERITY: Set = ("severity", ["info warning error", "", ""]);
const COMPACTION: Set = ("status of a compaction", ["in_progress completed failed cancelled", "", ""]);
const PLAN: Set = ("type of plan", ["items file markdown", "", ""]);
const OPTION: Set = ("kind of option", ["allow_once allow_always reject_once reject_always", "", ""]);
const UPDATE: Set = (
    "kind of update",
    [
        "user_message_chunk agent_message_chunk agent_thought_chunk tool_call_update plan_update plan_removed \
         available_commands_update config_option_update session_info_update usage_update notice compaction_update \
         compaction_summary_chunk subagent_update session_message session_message_chunk",
        "tool_call plan current_mode_update",
        "user_message agent_message agent_thought state_update tool_call_content_chunk terminal_update \
         terminal_output_chunk",
    ],
);

pub(super) fn values(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        let found = match (&message.body, trial.side) {
            (Body::Notification { method, params }, Side::Agent) if method == "session/update" => {
                of_update(&params["update"])
            }
            (Body::Request { method, params, .. }, Side::Agent) if method == "session/request_permission" => {
                of_items(&params["options"], "kind", OPTION)
            }
            (Body::Request { method, params, .. }, Side::Client) if method == "session/prompt" => {
                of_items(&params["prompt"], "type", BLOCK)
            }
            _ => continue,
        };
        let minted = found.iter().find(|(value, (_, known))| !is_known(value, known, trial.dialect));
        verdict.check(minted.is_none(), index, || {
            let (value, (name, _)) = minted.copied().unwrap_or_default();
            format!("the {name} {}", shown(value))
        });
    }
    for call in trial.calls_to("session/prompt").filter(|call| call.to() == trial.side) {
        let stop = call.result().and_then(|result| result["stopReason"].as_str());
        if let (Some(stop), Some(at)) = (stop, call.answered_at()) {
            verdict.check(is_known(stop, &STOP.1, trial.dialect), at, || format!("the stop reason {}", shown(stop)));
        }
    }
}

fn is_known(value: &str, [both, v1, v2]: &[&str; 3], dialect: Dialect) -> bool {
    let own = if dialect == Dialect::V1 { v1 } else { v2 };
    value.starts_with('_') || [both, own].iter().any(|known| known.split_whitespace().any(|known| known == value))
}

/// The values of an update, with the sets that they are of.
fn of_update(update: &Value) -> Vec<(&str, Set)> {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    let value = |key: &str, set: Set| update[key].as_str().map(|value| (value, set));
    let mut found = match kind {
        "" => return Vec::new(),
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" | "compaction_summary_chunk" => {
            of_items(std::slice::from_ref(&update["content"]), "type", BLOCK)
        }
        "user_message" | "agent_message" | "agent_thought" => of_items(&update["content"], "type", BLOCK),
        "tool_call_content_chunk" => of_items(std::slice::from_ref(&update["content"]), "type", TOOL_CONTENT),
        "tool_call" | "tool_call_update" => {
            let mut found = of_items(&update["content"], "type", TOOL_CONTENT);
            found.extend([value("kind", KIND), value("status", STATUS)].into_iter().flatten());
            found
        }
        "state_update" => [value("state", STATE), value("stopReason", STOP)].into_iter().flatten().collect(),
        "notice" => value("severity", SEVERITY).into_iter().collect(),
        "compaction_update" => value("status", COMPACTION).into_iter().collect(),
        "plan" | "plan_update" => {
            let plan = if kind == "plan" { update } else { &update["plan"] };
            let mut found = of_items(&plan["entries"], "priority", PRIORITY);
            found.extend(of_items(&plan["entries"], "status", ENTRY_STATUS));
            found.extend(plan["type"].as_str().map(|value| (value, PLAN)));
            found
        }
        _ => Vec::new(),
    };
    found.push((kind, UPDATE));
    found
}

/// The values of one key in the items of a list.
fn of_items<'a>(items: impl Into<Items<'a>>, key: &str, set: Set) -> Vec<(&'a str, Set)> {
    items.into().0.iter().filter_map(|item| Some((item[key].as_str()?, set))).collect()
}

/// The items of a list; none where there is no list.
struct Items<'a>(&'a [Value]);

impl<'a> From<&'a Value> for Items<'a> {
    fn from(value: &'a Value) -> Self {
        Items(value.as_array().map_or(&[], Vec::as_slice))
    }
}

impl<'a> From<&'a [Value]> for Items<'a> {
    fn from(items: &'a [Value]) -> Self {
        Items(items)
    }
}
