//! JSON: our reader against serde_json's, and our writer against both.

use attache_proto::Dialect;
use attache_proto::json::{MAX_DEPTH, RawJson, Writer};
use serde_json::Value;

use crate::input::Input;
use crate::message;

/// Our reader accepts what serde_json accepts and sees the same in it; what our writer writes is read back.
pub fn json(data: &[u8]) {
    let mut input = Input::new(data);
    let text = match input.below(3) {
        0 => String::from_utf8_lossy(input.rest()).into_owned(),
        1 => message::json(&mut input, 6),
        _ => {
            let mut bytes = message::json(&mut input, 6).into_bytes();
            let at = input.below(256) % bytes.len();
            bytes[at] = input.pick(b"{}[]\",:\\ntu0-.e \t\x01\xff");
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let ours = RawJson::new(&text);
    match (&ours, serde_json::from_str::<Value>(&text)) {
        (Ok(ours), Ok(theirs)) => {
            let value = serde_json::to_value(ours).unwrap();
            assert!(is_same(&value, &theirs), "{text}: {value} {theirs}");
            assert!(!ours.as_str().contains(['\n', '\r']), "{text}: more than one line");
            assert!(ours.as_str().len() <= text.len());
            check_writer(&theirs);
        }
        (Err(_), Err(_)) => {}
        // We read a lone surrogate as U+FFFD, and keep numbers that no type holds as they are.
        (Ok(_), Err(error)) => {
            let error = error.to_string();
            let known = ["surrogate", "hex escape", "number out of range", "recursion limit"];
            assert!(known.iter().any(|known| error.contains(known)), "{text}: accepted, but {error}");
        }
        (Err(error), Ok(_)) => assert!(depth(&text) > usize::from(MAX_DEPTH), "{text}: {error}"),
    }
}

fn check_writer(value: &Value) {
    let mut buffer = Vec::new();
    write(value, &mut Writer::new(&mut buffer, Dialect::V2));
    let text = String::from_utf8(buffer).unwrap();
    assert!(is_same(&serde_json::from_str(&text).unwrap(), value), "{text}");
    assert_eq!(RawJson::new(&text).unwrap().as_str(), text);
}

fn write(value: &Value, writer: &mut Writer<'_>) {
    match value {
        Value::Null => writer.null(),
        Value::Bool(_) | Value::Number(_) => writer.raw(&value.to_string()),
        Value::String(text) => writer.string(text),
        Value::Array(items) => {
            writer.begin_array();
            for item in items {
                writer.item();
                write(item, writer);
            }
            writer.end_array();
        }
        Value::Object(fields) => {
            writer.begin_object();
            for (key, value) in fields {
                writer.free_key(key);
                write(value, writer);
            }
            writer.end_object();
        }
    }
}

/// Equal, but for the last digits of a float: serde_json trades them for speed unless told otherwise. The tiniest have few.
pub(crate) fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            ours == theirs || (a - b).abs() <= (a.abs() * 1e-15).max(f64::MIN_POSITIVE * 1e-10)
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len() && ours.iter().all(|(key, a)| theirs.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => ours == theirs,
    }
}

/// How deep arrays and objects nest in a text that is JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
