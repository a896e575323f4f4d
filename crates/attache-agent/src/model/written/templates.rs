//! The ways in which models write calls as text.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Keys under which models name a tool, and its arguments.
const NAMES: [&str; 5] = ["action", "name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 6] = ["arguments", "parameters", "args", "input", "action_input", "params"];

/// A call that was written as text.
#[derive(Debug)]
pub(in crate::model) struct WrittenCall<'a> {
    /// What the model calls the tool.
    pub(in crate::model) name: String,
    /// The arguments, in JSON.
    pub(in crate::model) arguments: String,
    /// The call as it was written, without what is around it.
    pub(super) text: &'a str,
}

impl<'a> WrittenCall<'a> {
    fn new(name: &str, arguments: &Value, text: &'a str) -> Self {
        WrittenCall { name: name.to_owned(), arguments: arguments.to_string(), text }
    }
}

/// Reads the calls of a text that is nothing else. `None` if it is anything else.
type Template = for<'a> fn(&'a str) -> Option<Vec<WrittenCall<'a>>>;

/// How calls begin that are not plain JSON, and how they are read. The first row that fits counts.
const TEMPLATES: [(&str, Template); 10] = [
    ("```", fenced),
    // Qwen, Hermes and GLM.
    ("<tool_call>", tagged),
    ("<function=", tagged),
    ("[TOOL_CALLS]", mistral),
    // Llama.
    ("<|python_tag|>", marked),
    // Granite and Phi.
    ("<|tool_call|>", marked),
    ("<|tool_call", kimi),
    ("<｜tool", deepseek),
    // gpt-oss.
    ("<|channel|>", harmony),
    ("<|start|>assistant", harmony),
];

/// The calls of a text that is nothing else: at least one. `None` if it is anything else.
pub(in crate::model) fn calls_in(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let text = without_marks(text.trim());
    let template = TEMPLATES.iter().find(|(beginning, _)| text.starts_with(beginning));
    let calls = match template {
        Some((_, template)) => template(text),
        // Some servers take the first tag for a sign of their own.
        None => json_calls(text).or_else(|| tagged(text).filter(|_| text.contains("</tool_call>"))),
    };
    calls.filter(|calls| !calls.is_empty())
}

/// A text without the marks that it ends with, such as `<|eot_id|>`: models end calls and answers with them.
fn without_marks(mut text: &str) -> &str {
    loop {
        text = text.trim_end();
        let mark = [("<|", "|>"), ("<｜", "｜>")].iter().find(|(_, close)| text.ends_with(close));
        let start = mark.and_then(|(open, _)| text.rfind(open));
        match start.filter(|start| !text[*start..].contains(char::is_whitespace)) {
            Some(start) => text = &text[..start],
            None => return text,
        }
    }
}

/// A block of code that is JSON.
fn fenced(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let (_, inner) = text.split_once('\n')?;
    json_calls(inner.strip_suffix("```")?)
}

/// JSON after a mark.
fn marked(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    json_calls(text.split_once("|>")?.1)
}

/// One object, a list of them, or several one after the other.
fn json_calls(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let text = text.trim().trim_end_matches(';');
    let read = |object| json_call(&serde_json::from_str(object).ok()?, object);
    let calls = objects(text).and_then(|objects| objects.into_iter().map(read).collect());
    calls.or_else(|| match serde_json::from_str(&repaired(text)).ok()? {
        Value::Array(values) => values.iter().map(|value| json_call(value, text)).collect(),
        value => Some(vec![json_call(&value, text)?]),
    })
}

/// The values that a text is, one after the other or in lists, as they are written.
fn objects(text: &str) -> Option<Vec<&str>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().collect::<Result<Vec<_>, _>>();
    let mut objects = Vec::new();
    for value in values.ok()? {
        match value.get() {
            list if list.starts_with('[') => {
                let values: Vec<&RawValue> = serde_json::from_str(list).ok()?;
                objects.extend(values.into_iter().map(RawValue::get));
            }
            object => objects.push(object),
        }
    }
    Some(objects)
}

fn json_call<'a>(value: &Value, text: &'a str) -> Option<WrittenCall<'a>> {
    let (name, arguments) = call_of(value)?;
    Some(WrittenCall::new(name, &arguments, text))
}

/// `<tool_call>…</tool_call>`, once or several times.
fn tagged(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let mut calls = Vec::new();
    for part in text.split("</tool_call>") {
        let part = part.trim();
        let tagged = part.strip_prefix("<tool_call>").map(str::trim);
        match tagged.unwrap_or(part) {
            "" => {}
            inner if inner.starts_with("<function") => calls.extend(functions(inner)?),
            inner if inner.starts_with(['{', '[']) => calls.extend(json_calls(inner)?),
            // The name alone would be a word like any other: its tag belongs to it.
            _ => calls.push(keys_and_values(tagged?, part)?),
        }
    }
    Some(calls)
}

/// A name, then `<arg_key>key</arg_key>` and `<arg_value>value</arg_value>` by turns.
fn keys_and_values<'a>(inner: &str, text: &'a str) -> Option<WrittenCall<'a>> {
    let (name, rest) = inner.split_at(inner.find("<arg_key>").unwrap_or(inner.len()));
    let mut arguments = Map::new();
    for pair in rest.split("</arg_value>").map(str::trim_start).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.strip_prefix("<arg_key>")?.split_once("</arg_key>")?;
        arguments.insert(key.trim().to_owned(), value.trim_start().strip_prefix("<arg_value>")?.into());
    }
    let name = Some(name.trim()).filter(|name| is_name(name))?;
    Some(WrittenCall::new(name, &Value::Object(arguments), text))
}

/// `<function=name>` with JSON in it, or with `<parameter=key>value</parameter>`.
fn functions(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let mut calls = Vec::new();
    for part in text.split("</function>").map(str::trim).filter(|part| !part.is_empty()) {
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
            serde_json::from_str(inner).or_else(|_| serde_json::from_str(&repaired(inner))).ok()?
        };
        calls.push(WrittenCall::new(name, &arguments, part));
    }
    Some(calls)
}

/// JSON, or `name{…}` or `name[ARGS]{…}`, after `[TOOL_CALLS]`.
fn mistral(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let text = text.strip_prefix("[TOOL_CALLS]")?.trim();
    json_calls(text).or_else(|| {
        let (name, arguments) = text.split_at(text.find('{')?);
        let name = Some(name.trim().trim_end_matches("[ARGS]").trim()).filter(|name| is_name(name))?;
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        Some(vec![WrittenCall::new(name, &arguments, text)])
    })
}

fn kimi(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    sections(text, "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>")
}

fn deepseek(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    sections(text, "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
}

/// Calls between marks of their own: a name, a mark, arguments. Nothing but marks stands before, between and after them.
fn sections<'a>(text: &'a str, begin: &str, middle: &str, end: &str) -> Option<Vec<WrittenCall<'a>>> {
    let (before, rest) = text.split_once(begin)?;
    if !without_marks(before).is_empty() {
        return None;
    }
    let mut calls = Vec::new();
    for part in rest.split(begin) {
        // That of the last one is a mark at the end of the text, and taken off with the others.
        let part = match part.split_once(end) {
            Some((part, after)) if without_marks(after).is_empty() => part,
            Some(_) => return None,
            None => part,
        };
        let (head, body) = part.split_once(middle)?;
        // `functions.name:0`, or `function` with the name at the beginning of what follows.
        let (name, body) = match head.trim() {
            "function" => body.split_once('\n')?,
            name => (name, body),
        };
        let body = body.trim();
        let body = body.strip_prefix("```json").map_or(body, |body| body.trim_end_matches("```"));
        let name = name.trim().trim_start_matches("functions.");
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        calls.push(WrittenCall::new(name, &serde_json::from_str(body.trim()).ok()?, part));
    }
    Some(calls)
}

/// `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}`, with its words in any order.
fn harmony(text: &str) -> Option<Vec<WrittenCall<'_>>> {
    let (head, arguments) = text.split_once("<|message|>")?;
    let mut name = None;
    for word in head.split(['<', '|', '>', ' ', '\n']).filter(|word| !word.is_empty()) {
        match word {
            "start" | "assistant" | "channel" | "commentary" | "analysis" | "constrain" | "json" => {}
            word if name.is_none() => name = Some(word.strip_prefix("to=functions.")?),
            _ => return None,
        }
    }
    let arguments: Value = serde_json::from_str(arguments.trim()).ok()?;
    Some(vec![WrittenCall::new(name?, &arguments, &text[text.find("to=")?..])])
}

/// Whether a text can be the name of a tool.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
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
