//! What a client gets to see, in short lines that are the same for both versions and both libraries.

use std::collections::HashMap;

use serde_json::Value;

/// Tool calls as they were told so far, and the lines that follow from each update.
pub(crate) struct Seen {
    tools: HashMap<String, Tool>,
    /// Whether a tool call has to begin with `tool_call`, as in version 1.
    tool_calls_begin: bool,
}

#[derive(Default)]
struct Tool {
    title: String,
    kind: String,
    status: String,
    content: Vec<String>,
}

impl Seen {
    pub(crate) fn new(tool_calls_begin: bool) -> Self {
        Seen { tools: HashMap::new(), tool_calls_begin }
    }

    /// The line for an update. One that begins with `~` is not part of what both versions tell.
    pub(crate) fn update(&mut self, update: &Value) -> Option<String> {
        let tag = text(update, "sessionUpdate");
        Some(match tag.as_str() {
            "agent_message_chunk" => format!("text {}", text(&update["content"], "text")),
            "agent_thought_chunk" => format!("thought {}", text(&update["content"], "text")),
            "user_message_chunk" => format!("user {}", text(&update["content"], "text")),
            "user_message" => format!("user {}", text(&update["content"][0], "text")),
            "plan" => plan(update),
            "plan_update" => plan(&update["plan"]),
            "available_commands_update" => commands(&update["availableCommands"]),
            "config_option_update" => options(&update["configOptions"]),
            "current_mode_update" => format!("~mode {}", text(update, "currentModeId")),
            "state_update" => format!("~{} {}", text(update, "state"), text(update, "stopReason")).trim_end().into(),
            "terminal_update" | "terminal_output_chunk" => "~terminal".into(),
            "usage_update" => format!("usage {}/{}", update["used"], update["size"]),
            "session_info_update" => format!("title {}", text(update, "title")),
            "tool_call" | "tool_call_update" | "tool_call_content_chunk" => return self.tool(&tag, update),
            // A message that is replayed begins empty.
            "agent_message" if update["content"].as_array().is_some_and(Vec::is_empty) => return None,
            other => format!("unexpected {other}"),
        })
    }

    /// A tool call gets a line when its status changes.
    fn tool(&mut self, tag: &str, update: &Value) -> Option<String> {
        let id = text(update, "toolCallId");
        if self.tool_calls_begin && tag != "tool_call" && !self.tools.contains_key(&id) {
            return Some("a tool call that did not begin".into());
        }
        let tool = self.tools.entry(id).or_default();
        if tag == "tool_call_content_chunk" {
            tool.content.push(content(&update["content"]));
            return None;
        }
        for (field, key) in [(&mut tool.title, "title"), (&mut tool.kind, "kind")] {
            if update[key].is_string() {
                *field = text(update, key);
            }
        }
        if let Some(items) = update["content"].as_array() {
            tool.content = items.iter().map(content).collect();
        }
        // Pending is what a call is when nothing is said.
        let status = if update["status"].is_string() { text(update, "status") } else { "pending".into() };
        if (update["status"].is_null() && !tool.status.is_empty()) || status == tool.status {
            return None;
        }
        tool.status = status;
        let Tool { title, kind, status, content } = tool;
        let mut line = format!("tool {title}: {status}");
        if status != "pending" {
            line += &format!(" ({kind}) {}", content.join(" "));
        }
        Some(line.trim_end().into())
    }
}

/// The line for a request of the agent.
pub(crate) fn request(method: &str, params: &Value) -> String {
    let terminal = || text(params, "terminalId");
    match method {
        "session/request_permission" => {
            let options = params["options"].as_array().expect("options");
            let options: Vec<String> = options.iter().map(|option| text(option, "kind")).collect();
            format!("asked {}", options.join("|"))
        }
        "elicitation/create" => format!("question {}", text(params, "message")),
        "fs/read_text_file" => format!("read {} {}+{}", text(params, "path"), params["line"], params["limit"]),
        "fs/write_text_file" => format!("write {} {}", text(params, "path"), text(params, "content")),
        "terminal/create" => format!("run {} {}", text(params, "command"), params["args"]),
        "terminal/output" => format!("output of {}", terminal()),
        "terminal/wait_for_exit" => format!("wait for {}", terminal()),
        "terminal/kill" => format!("kill {}", terminal()),
        "terminal/release" => format!("release {}", terminal()),
        extension => format!("called {extension} {}", params["n"]),
    }
}

/// The line for a list of commands.
pub(crate) fn commands(commands: &Value) -> String {
    let commands = commands.as_array().expect("commands");
    let commands: Vec<String> = commands
        .iter()
        .map(|command| format!("/{} <{}>", text(command, "name"), text(&command["input"], "hint")))
        .collect();
    format!("commands {}", commands.join(" "))
}

/// The line for a list of options.
pub(crate) fn options(options: &Value) -> String {
    let options = options.as_array().expect("options");
    let options: Vec<String> = options
        .iter()
        .map(|option| {
            let id = if option["configId"].is_string() { text(option, "configId") } else { text(option, "id") };
            format!("{id}={}", text(option, "currentValue"))
        })
        .collect();
    format!("options {}", options.join(" "))
}

/// The lines for a page of sessions.
pub(crate) fn sessions(sessions: &Value) -> Vec<String> {
    let sessions = sessions.as_array().expect("sessions");
    let line = |session: &Value| {
        format!("session {} in {}: {}", text(session, "sessionId"), text(session, "cwd"), text(session, "title"))
    };
    if sessions.is_empty() { vec!["no sessions".into()] } else { sessions.iter().map(line).collect() }
}

fn plan(plan: &Value) -> String {
    let entries = plan["entries"].as_array().expect("entries");
    let entries: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} ({}, {})", text(entry, "content"), text(entry, "priority"), text(entry, "status")))
        .collect();
    format!("plan {}", entries.join(", "))
}

fn content(content: &Value) -> String {
    match text(content, "type").as_str() {
        "content" => format!("'{}'", text(&content["content"], "text")),
        // Version 1 has one file and its texts, version 2 a list of changes.
        "diff" if content["path"].is_string() => format!("diff of {}", text(content, "path")),
        "diff" => format!("diff of {}", text(&content["changes"][0], "path")),
        "terminal" => format!("terminal {}", text(content, "terminalId")),
        other => format!("unexpected {other}"),
    }
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().into()
}
