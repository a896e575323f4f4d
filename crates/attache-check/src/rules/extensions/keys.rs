//! Keys: which there are, how they are written, and `_meta`.

use serde_json::Value;

use crate::exchange::{Body, MessageIndex};
use crate::rule::{Trial, Verdict, shown};

/// The fields of params and of results, of all dialects, and what peers are known to send besides.
const FIELDS: &[(&str, &str, &str)] = &[
    (
        "initialize",
        "protocolVersion clientCapabilities clientInfo capabilities info",
        "protocolVersion agentCapabilities agentInfo capabilities info authMethods",
    ),
    ("authenticate", "methodId", ""),
    ("auth/login", "methodId", ""),
    ("logout", "", ""),
    ("auth/logout", "", ""),
    ("auth/status", "", "state accounts"),
    ("auth/status_update", "state accounts", ""),
    (
        "session/new",
        "cwd mcpServers additionalDirectories systemPrompt",
        "sessionId modes models configOptions availableCommands",
    ),
    (
        "session/load",
        "sessionId cwd mcpServers additionalDirectories systemPrompt",
        "modes models configOptions availableCommands",
    ),
    (
        "session/resume",
        "sessionId cwd mcpServers additionalDirectories systemPrompt replayFrom",
        "modes models configOptions availableCommands",
    ),
    (
        "session/fork",
        "sessionId cwd mcpServers additionalDirectories systemPrompt",
        "sessionId modes models configOptions availableCommands",
    ),
    ("session/list", "cwd cursor archived", "sessions nextCursor"),
    ("session/delete", "sessionId", ""),
    ("session/close", "sessionId", ""),
    ("session/archive", "sessionId", ""),
    ("session/unarchive", "sessionId", ""),
    ("session/status", "sessionId", "status state"),
    ("session/set_title", "sessionId title", "title"),
    ("session/set_mode", "sessionId modeId", ""),
    ("session/set_model", "sessionId modelId", ""),
    ("session/set_config_option", "sessionId configId type value", "configOptions"),
    ("session/prompt", "sessionId prompt messageId", "stopReason usage messageId userMessageId"),
    ("session/cancel", "sessionId", ""),
    ("tool_call/cancel", "sessionId toolCallId", ""),
    ("terminal/cancel", "sessionId terminalId", ""),
    ("session/update", "sessionId update", ""),
    ("session/request_permission", "sessionId toolCall options title description subject", "outcome"),
    ("fs/read_text_file", "sessionId path line limit", "content"),
    ("fs/write_text_file", "sessionId path content", ""),
    ("terminal/create", "sessionId command args env cwd outputByteLimit", "terminalId"),
    ("terminal/output", "sessionId terminalId", "output truncated exitStatus"),
    ("terminal/wait_for_exit", "sessionId terminalId", "exitCode signal"),
    ("terminal/kill", "sessionId terminalId", ""),
    ("terminal/release", "sessionId terminalId", ""),
    (
        "elicitation/create",
        "message mode requestedSchema sessionId toolCallId requestId elicitationId url",
        "action content",
    ),
    ("elicitation/complete", "elicitationId", ""),
    ("$/cancel_request", "requestId", ""),
];

/// What stands at the root of a message.
const ENVELOPE: &str = "jsonrpc id method params result error";

pub(super) fn root_fields(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.values_of(trial.side) {
        let Some(members) = message.as_object() else { continue };
        match members.keys().find(|key| !is_in(ENVELOPE, key)) {
            None => verdict.kept(),
            Some(key) => verdict.broken(index, format!("the field {} in a message", shown(key))),
        }
    }
    for (index, method, value, is_result) in payloads(trial) {
        let Some((_, params, result)) = FIELDS.iter().find(|(name, ..)| *name == method) else { continue };
        let fields = if is_result { result } else { params };
        let Some(members) = value.as_object() else { continue };
        let unknown = members.keys().find(|key| *key != "_meta" && !is_in(fields, key) && !is_miswritten(key));
        match unknown {
            None => verdict.kept(),
            Some(key) => {
                let what = if is_result { "result" } else { "params" };
                verdict.broken(index, format!("the field {} in the {what} of {}", shown(key), shown(method)));
            }
        }
    }
}

fn is_in(names: &str, key: &str) -> bool {
    names.split(' ').any(|name| name == key)
}

/// The params and results that the judged side sent: where, of which method, what, and whether it is a result.
fn payloads<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value, bool)> {
    let params = trial.messages_of(trial.side).filter_map(|(index, message)| match &message.body {
        Body::Request { method, params, .. } | Body::Notification { method, params } => {
            Some((index, method.as_str(), params, false))
        }
        _ => None,
    });
    let calls = trial.calls.iter().filter(|call| call.to() == trial.side);
    let results = calls.filter_map(|call| Some((call.answered_at()?, call.method.as_str(), call.result()?, true)));
    params.chain(results)
}

/// The keys of the protocol that are more than one word.
const LONG_KEYS: &str = "additionalDirectories agentCapabilities agentInfo apiType authMethods availableCommands availableModels \
    availableModes baseUrl clientCapabilities clientInfo compactionId configId configOptions currentModeId currentModelId \
    currentValue elicitationId embeddedContext exitCode exitStatus fileType groupId lastModified loadSession mcpCapabilities \
    mcpServers messageId methodId mimeType modeId modelId newText nextCursor oldText optionId outputByteLimit planId \
    promptCapabilities protocolVersion providerId rawInput rawOutput readTextFile replayFrom requestId requestedSchema \
    serverId sessionCapabilities sessionId sessionUpdate stopReason systemPrompt terminalId toolCall toolCallId updatedAt \
    writeTextFile";

/// What holds keys that are not the protocol's.
const OPAQUE: &str = "_meta rawInput rawOutput requestedSchema env headers";

/// Methods that carry what others define.
const CARRIERS: &str = "mcp/message proxy/successor proxy/initialize elicitation/create";

pub(super) fn camel_case(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, method, value, _) in payloads(trial) {
        if method.starts_with('_') || is_in(CARRIERS, method) {
            continue;
        }
        let key = find(value, &|key, _| is_miswritten(key));
        verdict
            .check(key.is_none(), index, || format!("the key {} in {}", shown(key.unwrap_or_default()), shown(method)));
    }
}

/// Whether a key is one of the protocol's with underscores, hyphens or a capital letter at its beginning.
fn is_miswritten(key: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
    };
    let is_odd = key.contains(['_', '-']) || key.starts_with(|c: char| c.is_ascii_uppercase());
    is_odd && !key.starts_with('_') && LONG_KEYS.split_whitespace().any(|known| letters(known) == letters(key))
}

pub(super) fn meta_object(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, method, value, _) in payloads(trial) {
        if method.starts_with('_') || is_in(CARRIERS, method) || find(value, &|key, _| key == "_meta").is_none() {
            continue;
        }
        let wrong = find(value, &|key, value| key == "_meta" && !value.is_object() && !value.is_null());
        verdict.check(wrong.is_none(), index, || format!("a `_meta` in {} that is no object", shown(method)));
    }
}

/// The first key of the protocol's own objects for which something is so.
fn find<'a>(value: &'a Value, wanted: &dyn Fn(&str, &Value) -> bool) -> Option<&'a str> {
    match value {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            if wanted(key, value) {
                return Some(key.as_str());
            }
            if is_in(OPAQUE, key) { None } else { find(value, wanted) }
        }),
        Value::Array(items) => items.iter().find_map(|item| find(item, wanted)),
        _ => None,
    }
}
