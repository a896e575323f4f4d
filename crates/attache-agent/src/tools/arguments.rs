//! The arguments of a call, read generously and for all tools alike: models write numbers as text, use the names of other
//! agents' tools, wrap what they give, and leave out what they do not need.

use std::borrow::Cow;

use serde_json::Value;

use crate::tools::Refusal;

/// Names of other agents' tools, by the name of ours that does the same.
const TOOL_NAMES: &[(&str, &[&str])] = &[
    ("read_file", &["read", "cat", "view", "open_file", "view_file", "read_text_file"]),
    ("write_file", &["write", "create_file", "create", "save_file"]),
    ("edit_file", &["edit", "str_replace", "replace", "replace_in_file", "str_replace_editor", "apply_edit"]),
    ("delete_file", &["delete", "remove_file"]),
    ("move_file", &["move", "rename", "rename_file"]),
    ("list_directory", &["ls", "list", "list_dir", "list_files"]),
    ("find_files", &["glob", "find", "file_search"]),
    ("search_files", &["grep", "search", "grep_search", "search_file_content", "ripgrep"]),
    ("run_command", &["bash", "shell", "sh", "execute", "execute_command", "run", "run_shell_command", "terminal"]),
    ("fetch_url", &["fetch", "web_fetch", "webfetch"]),
    ("update_plan", &["todo_write", "todowrite", "write_todos", "plan"]),
    ("ask_user", &["ask", "ask_followup_question", "question"]),
];

/// Other names of a parameter, which count where the parameter itself is missing.
const PARAMETER_NAMES: &[(&str, &[&str])] = &[
    (
        "path",
        &["file_path", "filePath", "filepath", "file", "filename", "file_name", "target_file", "directory", "dir"],
    ),
    ("old_text", &["old_string", "oldString", "old_str", "oldText", "old", "search"]),
    ("new_text", &["new_string", "newString", "new_str", "newText", "new", "replace", "replacement"]),
    ("content", &["contents", "text", "file_text", "code"]),
    ("command", &["cmd", "line", "script"]),
    ("pattern", &["query", "regex", "regexp"]),
    ("line", &["offset", "start_line", "start"]),
    ("limit", &["lines", "max_lines"]),
    ("from", &["source", "src", "old_path"]),
    ("to", &["destination", "dest", "new_path"]),
    ("timeout_seconds", &["timeout"]),
    ("url", &["uri", "address"]),
];

/// Our name for what a model calls a tool: its own, or that of another agent's tool that does the same.
pub(crate) fn usual_name(name: &str) -> &str {
    let bare = name.trim().trim_start_matches("functions.");
    let is_same = |other: &&&str| other.eq_ignore_ascii_case(bare);
    let row = TOOL_NAMES.iter().find(|(own, others)| is_same(&own) || others.iter().any(|other| is_same(&other)));
    row.map_or(name, |(own, _)| own)
}

/// The arguments of a call: an object.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(pub(crate) &'a Value);

impl<'a> Arguments<'a> {
    pub(crate) fn text(self, name: &str) -> Result<Cow<'a, str>, Refusal> {
        self.optional_text(name)?.ok_or_else(|| Refusal(format!("the argument `{name}` is missing")))
    }

    /// Text; a number or a list of lines will do.
    pub(crate) fn optional_text(self, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
        match self.value(name)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.into())),
            Some(Value::Number(number)) => Ok(Some(number.to_string().into())),
            Some(Value::Array(lines)) if name != "command" && lines.iter().all(Value::is_string) => {
                let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                Ok(Some(lines.join("\n").into()))
            }
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be text"))),
        }
    }

    /// A number from 1.
    pub(crate) fn count(self, name: &str) -> Result<Option<u32>, Refusal> {
        match self.number(name)? {
            None => Ok(None),
            Some(number @ 1..) => Ok(Some(number)),
            Some(0) => Err(Refusal(format!("the argument `{name}` has to be a number from 1"))),
        }
    }

    /// A number from 0.
    pub(crate) fn number(self, name: &str) -> Result<Option<u32>, Refusal> {
        let number = match self.value(name)? {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64().or_else(|| value.as_f64().filter(|n| is_whole(*n)).map(|n| n as u64)),
        };
        let number = number.ok_or_else(|| Refusal(format!("the argument `{name}` has to be a whole number")))?;
        Ok(Some(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    pub(crate) fn flag(self, name: &str) -> Result<bool, Refusal> {
        match self.value(name)? {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be true or false"))),
        }
    }

    /// A list of objects; one object will do.
    pub(crate) fn list(self, name: &str) -> Result<&'a [Value], Refusal> {
        match self.value(name)? {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(value @ Value::Object(_)) => Ok(std::slice::from_ref(value)),
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be a list"))),
        }
    }

    fn value(self, name: &str) -> Result<Option<&'a Value>, Refusal> {
        let object = self.0.as_object().ok_or_else(|| Refusal("the arguments have to be a JSON object".into()))?;
        let there = |name: &str| object.get(name).filter(|value| !value.is_null());
        let others = PARAMETER_NAMES.iter().find(|(own, _)| *own == name).map_or(&[][..], |(_, others)| others);
        Ok(there(name).or_else(|| others.iter().find_map(|other| there(other))))
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number >= 0.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_generously_and_no_further() {
        for (value, expected) in [
            (json!({"n": 3}), Ok(Some(3))),
            (json!({"n": 3.0}), Ok(Some(3))),
            (json!({"n": " 3 "}), Ok(Some(3))),
            (json!({"n": null}), Ok(None)),
            (json!({}), Ok(None)),
            (json!({"n": 1e30}), Ok(Some(u32::MAX))),
            (json!({"n": 0}), Err(())),
            (json!({"n": -1}), Err(())),
            (json!({"n": 1.5}), Err(())),
            (json!({"n": [1]}), Err(())),
            (json!([1]), Err(())),
        ] {
            assert_eq!(Arguments(&value).count("n").map_err(drop), expected, "{value}");
        }
        for (value, expected) in [
            (json!({"f": true}), Ok(true)),
            (json!({"f": "true"}), Ok(true)),
            (json!({"f": "false"}), Ok(false)),
            (json!({}), Ok(false)),
            (json!({"f": "yes"}), Err(())),
            (json!({"f": "TRUE"}), Ok(true)),
            (json!({"f": 1}), Err(())),
        ] {
            assert_eq!(Arguments(&value).flag("f").map_err(drop), expected, "{value}");
        }
        for (value, expected) in [
            (json!({"path": "a"}), Some("a")),
            (json!({"path": null, "file_path": "a"}), Some("a")),
            (json!({"path": "a", "file": "b"}), Some("a")),
            (json!({"path": 7}), Some("7")),
            (json!({"path": ["a", "b"]}), Some("a\nb")),
            (json!({"path": {"a": 1}}), None),
            (json!({"path": [1]}), None),
            (json!({}), None),
            (json!("a"), None),
        ] {
            assert_eq!(Arguments(&value).text("path").ok().as_deref(), expected, "{value}");
        }
        assert!(Arguments(&json!({"command": ["rm", "a b"]})).text("command").is_err());
    }

    #[test]
    fn tools_have_the_names_that_others_gave_them() {
        for (name, expected) in [
            ("read_file", "read_file"),
            ("Bash", "run_command"),
            ("functions.edit", "edit_file"),
            ("mcp_thing", "mcp_thing"),
            ("", ""),
        ] {
            assert_eq!(usual_name(name), expected);
        }
    }
}
