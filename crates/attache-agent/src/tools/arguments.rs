//! The arguments of a call, read generously and for all tools alike: models write numbers as text, use the names of other
//! agents' tools, wrap what they give, and leave out what they do not need.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

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

/// Other names of a parameter, which count where the parameter itself is missing and the tool has none of that name.
const PARAMETER_NAMES: &[(&str, &[&str])] = &[
    (
        "path",
        &["file_path", "filePath", "filepath", "file", "filename", "file_name", "target_file", "directory", "dir"],
    ),
    ("old_text", &["old_string", "oldString", "old_str", "oldText", "old", "search"]),
    ("new_text", &["new_string", "newString", "new_str", "newText", "new", "replace", "replacement"]),
    ("replace_all", &["replaceAll"]),
    ("content", &["contents", "text", "file_text", "code"]),
    ("command", &["cmd", "line", "script"]),
    ("cwd", &["workdir", "working_directory", "directory", "dir"]),
    ("background", &["run_in_background", "is_background"]),
    ("reason", &["justification"]),
    ("pattern", &["query", "regex", "regexp"]),
    ("glob", &["include", "file_pattern"]),
    ("ignore_case", &["case_insensitive", "ignoreCase"]),
    ("line", &["offset", "start_line", "start"]),
    ("limit", &["lines", "max_lines"]),
    ("from", &["source", "src", "old_path"]),
    ("to", &["destination", "dest", "new_path"]),
    ("timeout_seconds", &["timeout"]),
    ("wait_seconds", &["wait", "timeout"]),
    ("job", &["job_id", "id", "name"]),
    ("url", &["uri", "address", "link"]),
    ("thought", &["thoughts", "text", "content", "reasoning"]),
    ("entries", &["todos", "plan", "items", "steps"]),
    ("question", &["prompt", "message", "text"]),
    ("choices", &["options", "answers", "suggestions"]),
    ("mode", &["mode_id", "mode_slug"]),
    ("prompt", &["task", "instructions", "message"]),
    ("description", &["title", "summary"]),
    ("name", &["skill", "skill_name"]),
    ("file", &["path", "file_path", "filename"]),
];

/// What models wrap arguments in.
const WRAPPERS: &[&str] = &["arguments", "parameters", "args", "input", "params"];

/// Our name for what a model calls a tool: its own, or that of another agent's tool that does the same.
pub(crate) fn usual_name(name: &str) -> &str {
    let bare = name.trim().trim_start_matches("functions.");
    let is_same = |other: &&&str| other.eq_ignore_ascii_case(bare);
    let row = TOOL_NAMES.iter().find(|(own, others)| is_same(&own) || others.iter().any(|other| is_same(&other)));
    row.map_or(name, |(own, _)| own)
}

/// The arguments of a call as JSON. None at all is an empty object: models leave them out where there are none. An object
/// may come as text, as some servers send it.
pub(crate) fn parse(text: &str) -> Result<Value, Refusal> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(value) => object_in(value).ok_or_else(|| Refusal("the arguments are not a JSON object".into())),
        Err(error) => Err(Refusal(format!("the arguments are not JSON: {error}"))),
    }
}

/// An object, or the one that a text is.
fn object_in(value: Value) -> Option<Value> {
    match value {
        Value::Object(_) => Some(value),
        Value::String(text) => serde_json::from_str(&text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// The members of an object that have come whole, of JSON that is still coming.
pub(crate) fn beginning(text: &str) -> Value {
    let (mut depth, mut end) = (0, 0);
    let (mut is_string, mut is_escaped, mut is_value) = (false, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b':' if depth == 1 => is_value = true,
            b',' if depth == 1 => is_value = false,
            _ => {}
        }
        let ends_value = matches!(byte, b'"' | b'}' | b']') && !is_string && !is_escaped;
        if depth == 1 && is_value && ends_value {
            end = at + 1;
        }
    }
    let whole = serde_json::from_str(&format!("{}}}", &text[..end]));
    whole.ok().filter(Value::is_object).unwrap_or(Value::Null)
}

/// The arguments as a tool with this schema has them: under its own names, of its types, and nothing else. What is judged,
/// shown, told to hooks and done is this one value.
pub(crate) fn fitted(given: Value, schema: &Value) -> Result<Value, Refusal> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(given) };
    let given = unwrapped(given, properties);
    let arguments = Arguments { value: &given, properties: Some(properties) };
    let mut fitted = Map::new();
    for (name, property) in properties {
        let value = match property["type"].as_str() {
            Some("string") => arguments.optional_text(name)?.map(|text| Value::from(&*text)),
            Some("integer" | "number") => arguments.decimal(name)?.map(Value::Number),
            Some("boolean") if arguments.has(name)? => Some(arguments.flag(name)?.into()),
            Some("boolean") => None,
            Some("array") if arguments.has(name)? => {
                let items = arguments.list(name)?.into_owned().into_iter();
                Some(items.map(|item| fitted_item(item, &property["items"])).collect::<Result<_, _>>()?)
            }
            Some("array") => None,
            _ => arguments.value(name)?.cloned(),
        };
        fitted.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(Value::Object(fitted))
}

fn fitted_item(item: Value, schema: &Value) -> Result<Value, Refusal> {
    if schema["type"] == "object" && item.is_object() { fitted(item, schema) } else { Ok(item) }
}

/// The arguments without what they are wrapped in.
fn unwrapped(given: Value, properties: &Map<String, Value>) -> Value {
    let inner = given.as_object().filter(|object| object.len() == 1).and_then(|object| {
        let (name, inner) = object.iter().next()?;
        let is_wrapper = WRAPPERS.contains(&name.as_str()) && !properties.contains_key(name);
        object_in(inner.clone()).filter(|_| is_wrapper)
    });
    inner.unwrap_or(given)
}

/// The arguments of a call: an object.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    value: &'a Value,
    /// What the tool calls its own parameters, where that is known: none of them is another name for another one.
    properties: Option<&'a Map<String, Value>>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(value: &'a Value) -> Self {
        Arguments { value, properties: None }
    }

    pub(crate) fn text(self, name: &str) -> Result<Cow<'a, str>, Refusal> {
        self.optional_text(name)?.ok_or_else(|| Refusal(format!("the argument `{name}` is missing")))
    }

    /// Text; a number or a list of lines will do. Not a list for a command: whether its parts are words or lines, nobody
    /// can tell.
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

    /// A whole number from 0.
    pub(crate) fn number(self, name: &str) -> Result<Option<u32>, Refusal> {
        let Some(number) = self.decimal(name)? else { return Ok(None) };
        let whole = number.as_u64().or_else(|| number.as_f64().filter(|n| is_whole(*n)).map(|n| n as u64));
        let whole = whole.ok_or_else(|| Refusal(format!("the argument `{name}` has to be a whole number")))?;
        Ok(Some(u32::try_from(whole).unwrap_or(u32::MAX)))
    }

    /// Any number.
    pub(crate) fn decimal(self, name: &str) -> Result<Option<Number>, Refusal> {
        let number = match self.value(name)? {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => Some(number.clone()),
            Some(_) => None,
        };
        number.map(Some).ok_or_else(|| Refusal(format!("the argument `{name}` has to be a number")))
    }

    pub(crate) fn flag(self, name: &str) -> Result<bool, Refusal> {
        match self.value(name)? {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.trim().is_empty() || text.trim().eq_ignore_ascii_case("false") => {
                Ok(false)
            }
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be true or false"))),
        }
    }

    /// A list; one value will do, and so will a list that is written as text.
    pub(crate) fn list(self, name: &str) -> Result<Cow<'a, [Value]>, Refusal> {
        match self.value(name)? {
            None => Ok(Cow::Borrowed(&[])),
            Some(Value::Array(values)) => Ok(Cow::Borrowed(values)),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(Cow::Borrowed(&[])),
            Some(value @ Value::String(text)) => Ok(match serde_json::from_str(text) {
                Ok(Value::Array(values)) => Cow::Owned(values),
                Ok(object @ Value::Object(_)) => Cow::Owned(vec![object]),
                _ => Cow::Borrowed(std::slice::from_ref(value)),
            }),
            Some(value @ Value::Object(_)) => Ok(Cow::Borrowed(std::slice::from_ref(value))),
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be a list"))),
        }
    }

    /// Whether there is such an argument.
    pub(crate) fn has(self, name: &str) -> Result<bool, Refusal> {
        Ok(self.value(name)?.is_some())
    }

    fn value(self, name: &str) -> Result<Option<&'a Value>, Refusal> {
        let object = self.value.as_object().ok_or_else(|| Refusal("the arguments have to be a JSON object".into()))?;
        let there = |name: &str| object.get(name).filter(|value| !value.is_null());
        let is_free = |name: &&&str| self.properties.is_none_or(|properties| !properties.contains_key(**name));
        let others = PARAMETER_NAMES.iter().find(|(own, _)| *own == name).map_or(&[][..], |(_, others)| others);
        Ok(there(name).or_else(|| others.iter().filter(is_free).find_map(|other| there(other))))
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
            assert_eq!(Arguments::new(&value).count("n").map_err(drop), expected, "{value}");
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
            assert_eq!(Arguments::new(&value).flag("f").map_err(drop), expected, "{value}");
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
            assert_eq!(Arguments::new(&value).text("path").ok().as_deref(), expected, "{value}");
        }
        assert!(Arguments::new(&json!({"command": ["rm", "a b"]})).text("command").is_err());
    }

    #[test]
    fn arguments_are_fitted_to_a_tool() {
        let schema = json!({"properties": {
            "path": {"type": "string"}, "line": {"type": "integer"}, "command": {"type": "string"},
            "all": {"type": "boolean"}, "needs": {"type": "array", "items": {"enum": ["network"]}},
            "edits": {"type": "array", "items": {"type": "object", "properties": {"old_text": {"type": "string"}}}},
        }});
        for (given, expected) in [
            (json!({"file_path": "a", "unknown": 1}), Some(json!({"path": "a"}))),
            // One name is of one parameter only.
            (json!({"line": "3"}), Some(json!({"line": 3}))),
            (json!({"cmd": "ls", "line": null, "all": "true"}), Some(json!({"command": "ls", "all": true}))),
            (json!({"needs": "network"}), Some(json!({"needs": ["network"]}))),
            (json!({"needs": "[\"network\"]"}), Some(json!({"needs": ["network"]}))),
            (json!({"edits": {"old_string": 1, "x": 2}}), Some(json!({"edits": [{"old_text": "1"}]}))),
            (json!({"arguments": {"path": "a"}}), Some(json!({"path": "a"}))),
            (json!({"input": "{\"path\": \"a\"}"}), Some(json!({"path": "a"}))),
            (json!({"args": {"path": "a"}, "line": 1}), Some(json!({"line": 1}))),
            (json!({"line": 1.5}), Some(json!({"line": 1.5}))),
            (json!({"line": "three"}), None),
            (json!({"all": "perhaps"}), None),
            (json!({"needs": 7}), None),
            (json!({}), Some(json!({}))),
        ] {
            assert_eq!(fitted(given.clone(), &schema).ok(), expected, "{given}");
        }
        let unknown = json!({"anything": [1, null]});
        assert_eq!(fitted(unknown.clone(), &json!({})).unwrap(), unknown);
    }

    #[test]
    fn arguments_are_an_object_also_in_a_string() {
        for (text, expected) in [
            ("", Some(json!({}))),
            ("null", Some(json!({}))),
            ("{\"a\": 1}", Some(json!({"a": 1}))),
            ("\"{\\\"a\\\": 1}\"", Some(json!({"a": 1}))),
            ("\"a\"", None),
            ("[1]", None),
            ("{\"a\": ", None),
        ] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn what_has_come_whole_of_an_object_is_known() {
        let whole = r#"{"line": 12, "path": "a \"b\" \\", "edits": [{"x": "y"}], "content": "long"#;
        let known: Vec<Value> = (0..=whole.len()).map(|end| beginning(&whole[..end])).collect();
        assert_eq!(known[11], Value::Null);
        let path = json!({"line": 12, "path": "a \"b\" \\"});
        assert_eq!(known.iter().position(|value| *value == path), whole.find(", \"edits"));
        assert_eq!(known[whole.len()]["edits"], json!([{"x": "y"}]));
        assert_eq!(known[whole.len()].get("content"), None);
        for text in ["", "}", "]]]]", "[1, \"a\"", "\"{\"", "{\"a\": \"é", "nothing", "{\"a\":}"] {
            assert_eq!(beginning(text), Value::Null, "{text}");
        }
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
