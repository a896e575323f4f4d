//! The ways in which models write calls as text.

use serde_json::{Map, Value};

use crate::tools::usual_name;

/// Keys under which models name a tool, and its arguments.
const NAMES: [&str; 5] = ["action", "name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 6] = ["arguments", "parameters", "args", "input", "action_input", "params"];

/// The calls of a text that is nothing else, by name and arguments. `None` if it is anything else.
pub(super) fn calls_in(text: &str) -> Option<Vec<(String, String)>> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("```") {
        let (_, inner) = rest.split_once('\n')?;
        let inner = inner.trim_end().strip_suffix("```")?;
        return if inner.contains("```") { None } else { json_calls(inner) };
    }
    if text.contains("<tool_call>") || text.ends_with("</tool_call>") {
        return tagged(text);
    }
    if text.starts_with("<function") {
        return functions(text);
    }
    if let Some(rest) = text.strip_prefix("[TOOL_CALLS]") {
        return json_calls(rest).or_else(|| named(rest));
    }
    if let Some(rest) = text.strip_prefix("<|python_tag|>") {
        return json_calls(rest.trim_end_matches("<|eom_id|>").trim_end_matches("<|eot_id|>"));
    }
    if text.starts_with("<|tool_call") {
        return sections(text, "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>");
    }
    if text.starts_with("<｜tool") {
        return sections(text, "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>");
    }
    json_calls(text)
}

/// One object, a list of them, or several one after the other.
fn json_calls(text: &str) -> Option<Vec<(String, String)>> {
    let text = text.trim().trim_end_matches(';');
    let values: Vec<Value> = match serde_json::Deserializer::from_str(text).into_iter::<Value>().collect() {
        Ok(values) => values,
        Err(_) => vec![serde_json::from_str(&repaired(text)).ok()?],
    };
    let calls = values.into_iter().flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    });
    calls.map(|value| call_of(&value).map(|(name, arguments)| owned(name, &arguments))).collect()
}

fn owned(name: &str, arguments: &Value) -> (String, String) {
    (usual_name(name).to_owned(), arguments.to_string())
}

/// `<tool_call>…</tool_call>`, once or several times. Some servers take the first tag for a sign of their own.
fn tagged(text: &str) -> Option<Vec<(String, String)>> {
    let mut calls = Vec::new();
    for part in text.split("</tool_call>") {
        let part = part.trim();
        let inner = part.strip_prefix("<tool_call>").unwrap_or(part).trim();
        if inner.is_empty() {
            continue;
        }
        calls.extend(if inner.starts_with("<function") { functions(inner)? } else { json_calls(inner)? });
    }
    Some(calls)
}

/// `<function=name>` with JSON in it, or with `<parameter=key>value</parameter>`.
fn functions(text: &str) -> Option<Vec<(String, String)>> {
    let mut calls = Vec::new();
    for part in text.split("</function>") {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let (name, inner) = part.strip_prefix("<function=")?.split_once('>')?;
        let (name, inner) = (name.trim().trim_matches('"'), inner.trim());
        let arguments = if inner.starts_with("<parameter=") {
            let mut arguments = Map::new();
            for part in inner.split("</parameter>").map(str::trim_start).filter(|part| !part.is_empty()) {
                let (key, value) = part.strip_prefix("<parameter=")?.split_once('>')?;
                let value = value.strip_prefix('\n').unwrap_or(value);
                let value = value.strip_suffix('\n').unwrap_or(value);
                arguments.insert(key.trim().to_owned(), value.into());
            }
            Value::Object(arguments)
        } else if inner.is_empty() {
            Value::Object(Map::new())
        } else {
            object(inner).filter(|_| inner.ends_with('}'))?
        };
        calls.push(owned(name, &arguments));
    }
    Some(calls)
}

/// `name{…}` or `name[ARGS]{…}`.
fn named(text: &str) -> Option<Vec<(String, String)>> {
    let (name, rest) = text.split_at(text.find('{')?);
    let name = name.trim().trim_end_matches("[ARGS]").trim();
    let arguments: Value = serde_json::from_str(rest.trim()).ok()?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| vec![owned(name, &arguments)])
}

/// Calls between marks of their own: a name, a mark, arguments.
fn sections(text: &str, begin: &str, middle: &str, end: &str) -> Option<Vec<(String, String)>> {
    let mut calls = Vec::new();
    for part in text.split(begin).skip(1) {
        let (head, rest) = part.split_once(middle)?;
        let (body, _) = rest.split_once(end)?;
        // `functions.name:0`, or `function` with the name at the beginning of what follows.
        let (name, body) = match head.trim() {
            "function" => body.split_once('\n')?,
            name => (name, body),
        };
        let body = body.trim();
        let body = body.strip_prefix("```json").map_or(body, |body| body.trim_end().trim_end_matches("```"));
        let name = name.trim().trim_start_matches("functions.");
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        calls.push(owned(name, &serde_json::from_str::<Value>(body.trim()).ok()?));
    }
    Some(calls)
}

/// The tool that an object names and what it gives to it. `None` if it is no call.
pub(in crate::model) fn call_of(value: &Value) -> Option<(&str, Value)> {
    let object = value.as_object()?;
    if let Some(function @ Value::Object(_)) = object.get("function") {
        return call_of(function);
    }
    let (key, name) = NAMES.iter().find_map(|key| Some((*key, object.get(*key)?.as_str()?)))?;
    let arguments = match ARGUMENTS.iter().find_map(|key| object.get(*key)) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
        // Some put them beside the name.
        None => {
            let rest = object.iter().filter(|(other, _)| *other != key && *other != "type" && *other != "id");
            Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
    };
    Some((name, arguments))
}

/// The object at the beginning of a text. Models like to add something after it.
pub(in crate::model) fn object(text: &str) -> Option<Value> {
    let first = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok();
    first(text).or_else(|| first(&repaired(text)))
}

/// The same with new lines and tabs in strings written as JSON wants them, which models without a schema forget.
fn repaired(text: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        match c {
            '\n' if quoted => out.push_str("\\n"),
            '\r' if quoted => {}
            '\t' if quoted => out.push_str("\\t"),
            _ => out.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}
