//! Tools whose names and arguments nobody told us beforehand: found by what they are for, called by their schemas.

use serde_json::{Map, Value, json};

/// A tool that a model was offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The JSON schema of its arguments; null if there is none.
    pub schema: Value,
}

impl Tool {
    /// A tool as a provider's API describes it, with the names that its schema may have there.
    pub(super) fn of(description: &Value, schemas: &[&str]) -> Option<Self> {
        let schema = schemas.iter().map(|name| &description[*name]).find(|schema| schema.is_object());
        Some(Tool { name: description["name"].as_str()?.to_owned(), schema: schema.cloned().unwrap_or_default() })
    }
}

/// What a tool is for: its name in a script, how tools for it are called (the likeliest first), and what it needs to be told.
struct Purpose {
    name: &'static str,
    tools: &'static [&'static str],
    needs: &'static [&'static str],
}

const PURPOSES: [Purpose; 5] = [
    Purpose { name: "read", tools: &["readfile", "read", "readtextfile", "viewfile", "view", "cat"], needs: &["path"] },
    Purpose {
        name: "write",
        tools: &["writefile", "write", "writetextfile", "createfile", "create"],
        needs: &["path", "content"],
    },
    Purpose {
        name: "run",
        tools: &[
            "runcommand",
            "bash",
            "shell",
            "runshellcommand",
            "shellcommand",
            "execcommand",
            "executecommand",
            "execute",
            "runterminalcmd",
            "terminal",
        ],
        needs: &["command"],
    },
    Purpose {
        name: "plan",
        tools: &["updateplan", "todowrite", "writetodos", "todolist", "settodolist", "plan"],
        needs: &["entries"],
    },
    Purpose { name: "ask", tools: &["askuser", "askuserquestion", "askquestion", "question"], needs: &["question"] },
];

/// What an argument of a script is called in the schemas of tools.
const ARGUMENTS: [(&str, &[&str]); 6] = [
    ("path", &["path", "filepath", "absolutepath", "targetfile", "filename", "file"]),
    ("content", &["content", "contents", "text", "filetext"]),
    ("command", &["command", "cmd", "script"]),
    ("seconds", &["timeoutseconds", "timeoutsecs"]),
    ("entries", &["entries", "todos", "plan", "steps", "items"]),
    ("question", &["question", "prompt", "questions"]),
];

/// The name and arguments of a call that does this with one of the tools that are offered; none if no tool fits.
///
/// A file can also be read or written by a command.
pub(super) fn call_for(purpose: &str, wanted: &Value, tools: &[Tool]) -> Option<(String, String)> {
    let purpose = PURPOSES.iter().find(|known| known.name == purpose)?;
    let fitting =
        purpose.tools.iter().flat_map(|name| tools.iter().filter(move |tool| plain(last_part(&tool.name)) == *name));
    for tool in fitting {
        if let Some(arguments) = arguments(tool, purpose, wanted) {
            return Some((tool.name.clone(), arguments.to_string()));
        }
    }
    let quoted = |key: &str| Some(format!("'{}'", wanted[key].as_str()?.replace('\'', r"'\''")));
    let command = match purpose.name {
        "read" => format!("cat {}", quoted("path")?),
        "write" => format!("printf %s {} > {}", quoted("content")?, quoted("path")?),
        _ => return None,
    };
    call_for("run", &json!({ "command": command }), tools)
}

/// What the schema wants, filled with what is wanted; none if there is no place for something that is needed.
fn arguments(tool: &Tool, purpose: &Purpose, wanted: &Value) -> Option<Value> {
    let properties = tool.schema["properties"].as_object()?;
    let mut arguments = Map::new();
    for (key, value) in wanted.as_object()? {
        let names = ARGUMENTS.iter().find(|(argument, _)| argument == key).map(|(_, names)| *names)?;
        match properties.iter().find(|(name, _)| names.contains(&plain(name).as_str())) {
            Some((name, schema)) => {
                arguments.insert(name.clone(), shaped(value, schema));
            }
            // What limits a call has to arrive as well.
            None if purpose.needs.contains(&key.as_str()) || key == "seconds" => return None,
            None => {}
        }
    }
    // An agent in a sandbox asks its client before a command that leaves it, which is what scripts are about.
    if let Some(schema) = properties.get("sandbox_permissions") {
        arguments.insert("sandbox_permissions".to_owned(), shaped(&json!("require_escalated"), schema));
        arguments.insert("justification".to_owned(), json!("to test"));
    }
    for required in tool.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !arguments.contains_key(required) {
            arguments.insert(required.to_owned(), any(&properties.get(required).cloned().unwrap_or_default()));
        }
    }
    Some(arguments.into())
}

/// A value in the shape of a schema: text as a command line in words, or as one question of a list.
fn shaped(value: &Value, schema: &Value) -> Value {
    match (value, schema["type"].as_str()) {
        (Value::String(text), Some("array")) if is_text(&schema["items"]) => json!(["sh", "-c", text]),
        (Value::String(_), Some("array")) => json!([object(value, &schema["items"])]),
        (Value::Array(entries), _) => entries.iter().map(|entry| object(entry, &schema["items"])).collect(),
        _ => value.clone(),
    }
}

/// An object of a schema with a text in it, and a status where there is one.
fn object(entry: &Value, schema: &Value) -> Value {
    let text = entry["content"].as_str().or(entry.as_str()).unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return entry.clone() };
    let filled = properties.iter().map(|(name, schema)| {
        let is_status = name == "status" && schema["enum"].as_array().is_none_or(|all| all.contains(&entry["status"]));
        let value = match is_status && entry["status"].is_string() {
            true => entry["status"].clone(),
            false if is_text(schema) && schema["enum"].is_null() => json!(text),
            false => any(schema),
        };
        (name.clone(), value)
    });
    filled.collect::<Map<_, _>>().into()
}

/// Some value that a schema allows.
pub(super) fn any(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("boolean") => json!(false),
        Some("integer" | "number") => json!(1),
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), any(schema))).collect::<Map<_, _>>().into()
        }
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(10);
            (0..least).map(|_| any(&schema["items"])).collect()
        }
        _ => json!("to test"),
    }
}

fn is_text(schema: &Value) -> bool {
    schema["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("string"))
}

/// The name of a tool without that of its server.
fn last_part(name: &str) -> &str {
    name.rsplit("__").next().unwrap_or(name)
}

/// A name as it is compared: small letters and nothing between them.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn tool(name: &str, properties: Value, required: Value) -> Tool {
        Tool {
            name: name.to_owned(),
            schema: json!({ "type": "object", "properties": properties, "required": required }),
        }
    }

    fn called(purpose: &str, wanted: Value, tools: &[Tool]) -> Option<(String, Value)> {
        let (name, arguments) = call_for(purpose, &wanted, tools)?;
        Some((name, serde_json::from_str(&arguments).unwrap()))
    }

    #[test]
    fn a_tool_is_found_by_what_it_is_for_and_called_by_its_schema() {
        let text = || json!({ "type": "string" });
        let tools = [
            tool(
                "mcp__acp__Read",
                json!({ "file_path": text(), "limit": { "type": "integer" } }),
                json!(["file_path"]),
            ),
            tool("exec", json!({}), json!([])),
            tool(
                "Bash",
                json!({ "command": text(), "description": text(), "background": { "type": "boolean" } }),
                json!(["command", "background", "description"]),
            ),
        ];
        assert_eq!(
            called("read", json!({ "path": "/a" }), &tools),
            Some(("mcp__acp__Read".into(), json!({ "file_path": "/a" })))
        );
        assert_eq!(
            called("run", json!({ "command": "ls" }), &tools),
            Some(("Bash".into(), json!({ "command": "ls", "background": false, "description": "to test" })))
        );
        // Written by a command, as no tool writes files; quotes do not end what is quoted.
        let written = called("write", json!({ "path": "/it's", "content": "x" }), &tools).unwrap();
        assert_eq!(written.1["command"], r"printf %s 'x' > '/it'\''s'");
        // No tool gives up in time, none plans, and nobody knows what juggling is.
        assert_eq!(called("run", json!({ "command": "ls", "seconds": 1 }), &tools), None);
        assert_eq!(called("plan", json!({ "entries": [] }), &tools), None);
        assert_eq!(called("juggle", json!({}), &tools), None);
        assert_eq!(called("read", json!({ "path": "/a" }), &[]), None);
    }

    #[test]
    fn commands_in_words_and_plans_of_other_shapes() {
        let words = json!({ "command": { "type": "array", "items": { "type": "string" } }, "sandbox_permissions": { "type": "string" } });
        assert_eq!(
            called("run", json!({ "command": "ls" }), &[tool("shell", words, json!(["command"]))]).unwrap().1,
            json!({ "command": ["sh", "-c", "ls"], "sandbox_permissions": "require_escalated", "justification": "to test" })
        );
        let entry = json!({ "type": "object", "properties": {
            "activeForm": { "type": "string" },
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
            "priority": { "type": "string", "enum": ["high", "low"] },
        } });
        let todo = tool("TodoWrite", json!({ "todos": { "type": "array", "items": entry } }), json!(["todos"]));
        assert_eq!(
            called("plan", json!({ "entries": [{ "content": "Look", "status": "in_progress" }] }), &[todo]).unwrap().1,
            json!({ "todos": [{ "activeForm": "Look", "status": "in_progress", "priority": "high" }] })
        );
    }
}
