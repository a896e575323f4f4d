//! Messages of the protocol, more or less right: templates whose gaps are filled by an input.

use crate::input::Input;

/// Texts of strings, escaped.
const WORDS: &[&str] = &[
    "a",
    "",
    "b",
    "1",
    "plan",
    "text",
    "é\u{1F600}",
    "\\u00e9\\n\\\"",
    "\\ud83d\\ude00",
    "\\ud800",
    "line\\nline\\n",
    "```",
    "_x",
    "end_turn",
    "in_progress",
    "completed",
    "/p/a",
    "\\u0000",
    "YQ==",
    "AAA=",
    "{}",
    "\\u001b[1m\\r",
];

/// Keys that mean something somewhere.
const KEYS: &[&str] = &[
    "_meta",
    "type",
    "text",
    "content",
    "sessionId",
    "messageId",
    "toolCallId",
    "update",
    "sessionUpdate",
    "title",
    "kind",
    "status",
    "options",
    "value",
    "id",
    "name",
    "data",
    "mimeType",
    "uri",
    "path",
    "newText",
    "oldText",
    "changes",
    "patch",
    "protocolVersion",
    "capabilities",
    "info",
    "cwd",
    "mcpServers",
    "prompt",
    "configId",
    "plan",
    "entries",
    "outcome",
    "x",
    "stopReason",
    "background",
    "state",
    "requestId",
    "mode",
    "message",
    "requestedSchema",
    "properties",
    "env",
    "headers",
];

/// Updates of a session. `$` and a letter is a gap; see [`fill`].
pub(crate) const UPDATES: &[&str] = &[
    r#"{"sessionUpdate":"agent_message_chunk","messageId":$i,"content":$c$m}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":$c}"#,
    r#"{"sessionUpdate":"user_message_chunk","messageId":$i,"content":$c}"#,
    r#"{"sessionUpdate":"user_message_chunk","content":$c$m}"#,
    r#"{"sessionUpdate":"agent_thought_chunk","messageId":$i,"content":$c}"#,
    r#"{"sessionUpdate":"user_message","messageId":$i,"content":$C$m}"#,
    r#"{"sessionUpdate":"agent_message","messageId":$i,"content":$C$m}"#,
    r#"{"sessionUpdate":"agent_message","messageId":$i$m}"#,
    r#"{"sessionUpdate":"agent_thought","messageId":$i,"content":$C$m}"#,
    r#"{"sessionUpdate":"tool_call","toolCallId":$i,"title":$t,"status":$s,"content":$K$m}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":$i,"title":$t,"kind":$e,"status":$s}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":$i,"status":$s$m}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":$i,"content":$K}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":$i,"name":$t,"locations":[{"path":$t,"line":$n}],"rawInput":$j,"rawOutput":$j,"capabilities":$j}"#,
    r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":$i,"content":$k$m}"#,
    r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":$i,"content":{"type":"content","content":{"type":"text","text":$t}}}"#,
    r#"{"sessionUpdate":"plan","entries":[{"content":$t,"priority":"high","status":$s}]}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":$i,"entries":[{"content":$t,"priority":$e,"status":$s}]}$m}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":"items","id":$i,"entries":[]}}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":$i,"content":$t}}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":$t,"planId":$i,"x":$j}}"#,
    r#"{"sessionUpdate":"plan_removed","planId":$i}"#,
    r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":$t,"description":$t,"input":$j}]}"#,
    r#"{"sessionUpdate":"current_mode_update","currentModeId":$i}"#,
    r#"{"sessionUpdate":"config_option_update","configOptions":[{"configId":$i,"name":$t,"category":"mode","type":"select","currentValue":$t,"options":[{"value":$t,"name":$t}]},{"configId":$i,"name":$t,"type":"boolean","currentValue":true}]}"#,
    r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":$i,"name":$t,"type":$t,"currentValue":$j,"options":[{"group":$t,"name":$t,"options":[]}]}]}"#,
    r#"{"sessionUpdate":"session_info_update","title":$t,"updatedAt":$t$m}"#,
    r#"{"sessionUpdate":"usage_update","used":$n,"size":$n,"cost":{"amount":$n,"currency":$t}}"#,
    r#"{"sessionUpdate":"usage_update","used":1,"size":2,"cost":null}"#,
    r#"{"sessionUpdate":"notice","severity":$e,"title":$t$m}"#,
    r#"{"sessionUpdate":"compaction_update","compactionId":$i,"status":$s,"summary":$C,"error":$t$m}"#,
    r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":$i,"content":$c}"#,
    r#"{"sessionUpdate":"state_update","state":"running","background":[{"type":"tool_call","toolCallId":$i}]}"#,
    r#"{"sessionUpdate":"state_update","state":"idle","stopReason":$e,"error":{"code":1,"message":$t,"data":$j}}"#,
    r#"{"sessionUpdate":"state_update","state":$t,"background":$j}"#,
    r#"{"sessionUpdate":"state_update","state":"requires_action"}"#,
    r#"{"sessionUpdate":"terminal_update","terminalId":$i,"command":$t,"cwd":$t,"output":{"data":"YQo="},"exitStatus":{"exitCode":$n},"size":{"cols":80,"rows":24}$m}"#,
    r#"{"sessionUpdate":"terminal_update","terminalId":$i,"output":$j,"exitStatus":null}"#,
    r#"{"sessionUpdate":"terminal_output_chunk","terminalId":$i,"data":"b25lDQo="}"#,
    r#"{"sessionUpdate":"terminal_output_chunk","terminalId":$i,"data":$t}"#,
    r#"{"sessionUpdate":"subagent_update","sessionId":$i,"title":$t,"state":{"state":$e},"cwd":$t,"additionalDirectories":[$t]$m}"#,
    r#"{"sessionUpdate":"session_message","messageId":$i,"senderSessionId":$i,"content":$C$m}"#,
    r#"{"sessionUpdate":"session_message_chunk","messageId":$i,"content":$c}"#,
    r#"{"sessionUpdate":$t,"x":$j}"#,
];

/// Params of methods, and results.
pub(crate) const PARAMS: &[&str] = &[
    r#"{"protocolVersion":$n,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":$j},"terminal":true,"auth":{"terminal":$j},"elicitation":{"form":{}},"session":{"configOptions":{"boolean":{}},"notices":{}}},"clientInfo":{"name":$t,"version":$t}$m}"#,
    r#"{"protocolVersion":$n,"info":{"name":$t,"version":$t},"capabilities":{"session":{"prompt":{"image":{}},"mcp":{"http":{}},"load":{},"list":{}},"auth":$j},"authMethods":[{"type":$e,"methodId":$t,"name":$t,"args":[$t],"env":[{"name":$t,"value":$t}]},{"id":$t,"name":$t,"type":"terminal","env":{"A":$t}}]$m}"#,
    r#"{"protocolVersion":$n,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},"mcpCapabilities":{"http":true},"sessionCapabilities":{"list":{},"fork":{}}},"agentInfo":{"name":$t,"version":$t},"authMethods":[{"id":$t,"name":$t}]}"#,
    r#"{"sessionId":$i,"cwd":$t,"mcpServers":[{"name":$t,"command":$t,"args":[$t],"env":[{"name":$t,"value":$t}]},{"type":"http","name":$t,"url":$t,"headers":[{"name":$t,"value":$t}]},{"type":$e,"name":$t}],"additionalDirectories":[$t],"replayFrom":{"type":"start"},"systemPrompt":{"mode":$e,"content":$C}$m}"#,
    r#"{"sessionId":$i,"prompt":$C$m}"#,
    r#"{"sessionId":$i,"title":$t,"description":$t,"subject":{"type":"tool_call","toolCall":{"toolCallId":$i,"title":$t,"content":$K}},"options":[{"optionId":$i,"name":$t,"kind":$e}]$m}"#,
    r#"{"sessionId":$i,"title":$t,"subject":{"type":"command","command":$t,"cwd":$t,"toolCallId":$i,"terminalId":$i},"options":[]}"#,
    r#"{"sessionId":$i,"toolCall":{"toolCallId":$i,"title":$t,"kind":$e,"status":$s,"content":$K},"options":[{"optionId":$i,"name":$t,"kind":"allow_once"}]}"#,
    r#"{"outcome":{"outcome":"selected","optionId":$i}}"#,
    r#"{"outcome":{"outcome":$e,"x":$j}$m}"#,
    r#"{"sessionId":$i,"message":$t,"mode":"form","requestedSchema":{"type":"object","properties":{"a":{"type":"string","title":$t,"enum":[$t],"default":$t},"b":{"type":$e,"minimum":$n},"c":{"type":"array","items":{"type":"string","enum":[$t]}},"d":$j},"required":["a"]},"toolCallId":$i$m}"#,
    r#"{"requestId":$n,"message":$t,"mode":"url","elicitationId":$i,"url":$t}"#,
    r#"{"requestId":$i,"message":$t,"mode":$e,"x":$j}"#,
    r#"{"action":"accept","content":{"a":$t,"b":$n,"c":[$t],"d":$j}}"#,
    r#"{"action":$e$m}"#,
    r#"{"sessionId":$i,"configId":$i,"type":$e,"value":$j}"#,
    r#"{"sessionId":$i,"configId":$i,"value":true,"type":"boolean"}"#,
    r#"{"sessionId":$i,"modes":{"currentModeId":$i,"availableModes":[{"id":$i,"name":$t}]},"models":{"currentModelId":$i,"availableModels":[{"modelId":$i,"name":$t}]},"configOptions":[{"id":$i,"name":$t,"type":"select","currentValue":$t,"options":[{"group":$t,"name":$t,"options":[{"value":$t,"name":$t}]}]}],"availableCommands":[{"name":$t,"description":$t,"input":{"hint":$t}}]}"#,
    r#"{"stopReason":$e,"usage":{"totalTokens":$n,"inputTokens":$n,"outputTokens":$n},"messageId":$i}"#,
    r#"{"sessions":[{"sessionId":$i,"cwd":$t,"title":$t,"updatedAt":$t,"additionalDirectories":[$t]}],"nextCursor":$t}"#,
    r#"{"sessionId":$i,"command":$t,"args":[$t],"env":[{"name":$t,"value":$t}],"cwd":$t,"outputByteLimit":$n}"#,
    r#"{"output":$t,"truncated":true,"exitStatus":{"exitCode":$n,"signal":$t},"exitCode":$n}"#,
    r#"{"sessionId":$i,"path":$t,"line":$n,"limit":$n,"content":$t,"terminalId":$i,"toolCallId":$i,"modeId":$i,"modelId":$i}"#,
    r#"{"serverId":$i,"requestId":$t,"method":$t,"params":$j,"result":$j,"error":{"code":$n,"message":$t}}"#,
    r#"{"state":$e,"accounts":[{"label":$t,"active":true,"name":$t}],"status":$e,"title":$t,"archived":$e}"#,
    r#"{"providers":[{"providerId":$i,"supported":[$e],"required":true,"current":{"apiType":$e,"baseUrl":$t}}],"providerId":$i,"apiType":$e,"baseUrl":$t,"headers":{"a":$t}}"#,
    r#"{"methodId":$i,"elicitationId":$i,"requestId":$n,"cursor":$t}"#,
];

const CONTENT: &[&str] = &[
    r#"{"type":"text","text":$t}"#,
    r#"{"type":"text","text":$t,"annotations":{"audience":["user",$e],"priority":$n,"lastModified":$t}$m}"#,
    r#"{"type":"image","data":"YQ==","mimeType":"image/png","uri":$t}"#,
    r#"{"type":"audio","data":$t,"mimeType":$t}"#,
    r#"{"type":"resource_link","name":$t,"uri":$t,"size":$n,"icons":[{"src":$t,"theme":$e}]}"#,
    r#"{"type":"resource","resource":{"uri":$t,"text":$t,"mimeType":$t}}"#,
    r#"{"type":"resource","resource":{"uri":$t,"blob":$t}}"#,
    r#"{"type":$t,"x":$j}"#,
];

const TOOL_CONTENT: &[&str] = &[
    r#"{"type":"content","content":$c$m}"#,
    r#"{"type":"content","content":{"type":"text","text":$t}}"#,
    r#"{"type":"terminal","terminalId":$i}"#,
    r#"{"type":"diff","path":$t,"oldText":$t,"newText":$t}"#,
    r#"{"type":"diff","path":$t,"newText":$t$m}"#,
    r#"{"type":"diff","changes":[{"operation":"modify","path":$t}],"patch":{"format":"git_patch","text":$h}}"#,
    r#"{"type":"diff","changes":[{"operation":"add","path":$t,"fileType":"text"}],"patch":{"format":"git_patch","text":$h}}"#,
    r#"{"type":"diff","changes":[{"operation":$e,"oldPath":$t,"path":$t}],"patch":$j}"#,
    r#"{"type":$t,"x":$j}"#,
];

const PATCHES: &[&str] = &[
    r"diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n",
    r"@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
    r"@@ -0,0 +1,2 @@\n+x\n+```\n",
    r"@@ -1,99999999999999999999 +1 @@\n",
    r"@@ -1 +1 @@\n\\ No newline\n\n",
];

/// A template whose gaps are filled: `i` is an id, `t` a text, `n` a number, `s` a status, `e` a value of some enum, `c` and
/// `k` content of a message and of a tool call, `C` and `K` lists of it, `h` a patch, `j` anything, and `m` a further
/// field. Now and then a gap holds something else.
pub(crate) fn fill(template: &str, input: &mut Input<'_>, depth: usize) -> String {
    let mut text = String::new();
    let mut parts = template.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (gap, rest) = part.split_at(1);
        if gap == "m" {
            match input.below(4) {
                3 => text.push_str(&format!(",\"_meta\":{}", json(input, depth))),
                2 => text.push_str(&format!(",\"{}\":{}", input.pick(KEYS), json(input, depth))),
                _ => {}
            }
        } else if input.one_in(24) {
            text.push_str(&json(input, depth));
        } else {
            text.push_str(&gap_text(gap, input, depth));
        }
        text.push_str(rest);
    }
    text
}

fn gap_text(gap: &str, input: &mut Input<'_>, depth: usize) -> String {
    let quoted = |text: &str| format!("\"{text}\"");
    match gap {
        "i" => quoted(input.pick(&["a", "b", "c", "plan", ""])),
        "t" => quoted(input.pick(WORDS)),
        "n" => input.pick(&["1", "0", "2", "-1", "1.5", "65536", "4294967296", "1e30", "18446744073709551615"]).into(),
        "s" => quoted(input.pick(&["pending", "in_progress", "completed", "failed", "cancelled", "paused", "_odd"])),
        "e" => {
            let values =
                ["end_turn", "execute", "high", "info", "user", "agent", "add", "running", "append", "error", "_odd"];
            quoted(input.pick(&values))
        }
        "h" => quoted(input.pick(PATCHES)),
        "c" if depth > 0 => fill(input.pick(CONTENT), input, depth - 1),
        "k" if depth > 0 => fill(input.pick(TOOL_CONTENT), input, depth - 1),
        "C" | "K" => {
            let item = if gap == "C" { "c" } else { "k" };
            let items: Vec<String> = (0..input.below(4)).map(|_| gap_text(item, input, depth)).collect();
            format!("[{}]", items.join(","))
        }
        _ => json(input, depth),
    }
}

/// JSON of any shape.
pub(crate) fn json(input: &mut Input<'_>, depth: usize) -> String {
    match input.below(if depth == 0 { 6 } else { 9 }) {
        0 => "null".into(),
        1 => input.pick(&["true", "false"]).into(),
        2 => input
            .pick(&["0", "-1", "3.25", "1e3", "-0.5E-2", "9007199254740993", "18446744073709551615", "1e999"])
            .into(),
        3..=5 => format!("\"{}\"", input.pick(WORDS)),
        6 | 7 => {
            let fields: Vec<String> =
                (0..input.below(4)).map(|_| format!("\"{}\":{}", input.pick(KEYS), json(input, depth - 1))).collect();
            format!("{{{}}}", fields.join(input.pick(&[",", " , ", "\n,"])))
        }
        _ => {
            let items: Vec<String> = (0..input.below(4)).map(|_| json(input, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
    }
}

/// An update of a session.
pub(crate) fn update(input: &mut Input<'_>) -> String {
    fill(input.pick(UPDATES), input, 2)
}
