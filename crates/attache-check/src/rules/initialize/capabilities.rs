//! The types of capabilities.

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::at;
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

const V1_CLIENT: (&[&str], &[&str]) = (
    &["fs.readTextFile", "fs.writeTextFile", "terminal", "auth.terminal"],
    &["fs", "auth", "elicitation", "elicitation.form", "elicitation.url", "session", "session.configOptions", "_meta"],
);

const V1_AGENT: (&[&str], &[&str]) = (
    &[
        "loadSession",
        "promptCapabilities.image",
        "promptCapabilities.audio",
        "promptCapabilities.embeddedContext",
        "mcpCapabilities.http",
        "mcpCapabilities.sse",
    ],
    &[
        "promptCapabilities",
        "mcpCapabilities",
        "sessionCapabilities",
        "sessionCapabilities.list",
        "sessionCapabilities.resume",
        "sessionCapabilities.close",
        "sessionCapabilities.delete",
        "sessionCapabilities.additionalDirectories",
        "auth",
        "auth.logout",
        "_meta",
    ],
);

const V2_CLIENT: (&[&str], &[&str]) =
    (&[], &["auth", "auth.terminal", "elicitation", "elicitation.form", "elicitation.url", "_meta"]);

const V2_AGENT: (&[&str], &[&str]) = (
    &[],
    &[
        "session",
        "session.load",
        "session.list",
        "session.resume",
        "session.close",
        "session.delete",
        "session.additionalDirectories",
        "session.prompt",
        "session.prompt.image",
        "session.prompt.audio",
        "session.prompt.embeddedContext",
        "session.mcp",
        "session.mcp.stdio",
        "session.mcp.http",
        "auth",
        "_meta",
    ],
);

/// Judges the types of what a side says that it can do: booleans at some paths, objects at others. What is null is absent.
pub(super) fn types(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(call) = trial.initialize.map(|index| &trial.calls[index]) else { return };
    let (hello, place, v1_key) = match trial.side {
        Side::Client => (&call.params, Some(call.at), "clientCapabilities"),
        Side::Agent => (trial.agent_hello(), call.answered_at(), "agentCapabilities"),
    };
    let is_v1 = trial.dialect == Dialect::V1;
    let root = if is_v1 { &hello[v1_key] } else { &hello["capabilities"] };
    let Some(place) = place else { return };
    if root.is_null() {
        return;
    }
    if !root.is_object() {
        return verdict.broken(place, format!("capabilities that are {}", shown(&root.to_string())));
    }
    let (booleans, objects) = match (is_v1, trial.side) {
        (true, Side::Client) => V1_CLIENT,
        (true, Side::Agent) => V1_AGENT,
        (false, Side::Client) => V2_CLIENT,
        (false, Side::Agent) => V2_AGENT,
    };
    let mut judge = |paths: &[&str], is_right: fn(&Value) -> bool, wanted: &str| {
        for path in paths {
            let value = at(root, path);
            if !value.is_null() {
                verdict.check(is_right(value), place, || {
                    format!("`{path}` is {}; expected {wanted}", shown(&value.to_string()))
                });
            }
        }
    };
    judge(booleans, Value::is_boolean, "a boolean");
    judge(objects, Value::is_object, "an object");
}
