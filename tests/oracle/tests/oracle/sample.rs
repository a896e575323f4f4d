//! JSON values that together show everything that a schema allows.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A schema's definitions by name.
pub(crate) type Definitions = Map<String, Value>;

/// Values for a schema: the first shows every field, each other one differs from it in one place.
pub(crate) fn samples(schema: &Value, definitions: &Definitions) -> Vec<Value> {
    let mut samples = raw_samples(schema, definitions);
    let mut seen = BTreeSet::new();
    samples.retain(|sample| seen.insert(sample.to_string()));
    samples
}

fn raw_samples(schema: &Value, definitions: &Definitions) -> Vec<Value> {
    if let Some(constant) = schema.get("const") {
        return vec![constant.clone()];
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.clone();
    }
    // A schema may be several at once: a reference, fields, and a choice, all in one object.
    let mut parts = Vec::new();
    let is_object = schema.get("type") == Some(&json!("object"));
    if schema.get("properties").is_some() || is_object {
        parts.push(objects(schema, definitions));
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap();
        parts.push(match name {
            "AbsolutePath" => vec![json!("/sample")],
            name => samples(&definitions[name], definitions),
        });
    }
    for all in list(schema, "allOf") {
        parts.push(samples(all, definitions));
    }
    for choice in ["anyOf", "oneOf"] {
        let choices: Vec<Value> = list(schema, choice).iter().flat_map(|choice| samples(choice, definitions)).collect();
        if !choices.is_empty() {
            parts.push(choices);
        }
    }
    match parts.len() {
        0 => scalars(schema, definitions),
        _ => one_by_one(&parts, |chosen| chosen.iter().fold(Value::Null, |all, part| merged(all, part))),
    }
}

/// The choice of all firsts, and every choice that differs from it in one part.
fn one_by_one(parts: &[Vec<Value>], build: impl Fn(&[&Value]) -> Value) -> Vec<Value> {
    let firsts: Vec<&Value> = parts.iter().map(|part| &part[0]).collect();
    let mut all = vec![build(&firsts)];
    for (index, part) in parts.iter().enumerate() {
        for other in &part[1..] {
            let mut chosen = firsts.clone();
            chosen[index] = other;
            all.push(build(&chosen));
        }
    }
    all
}

fn merged(mut all: Value, part: &Value) -> Value {
    match (&mut all, part) {
        (Value::Object(all), Value::Object(part)) => all.extend(part.clone()),
        _ => return part.clone(),
    }
    all
}

fn objects(schema: &Value, definitions: &Definitions) -> Vec<Value> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
    let names: Vec<&String> = properties.keys().collect();
    let mut parts: Vec<Vec<Value>> = Vec::new();
    for (name, property) in properties {
        parts.push(samples(property, definitions).into_iter().map(|value| json!({ name: value })).collect());
        if !required.contains(&name.as_str()) {
            parts.last_mut().unwrap().push(json!({}));
        }
    }
    for more in ["additionalProperties", "unevaluatedProperties"] {
        parts.push(match schema.get(more) {
            Some(Value::Bool(true)) => vec![json!({ "x_extra": { "deep": [1, null] } }), json!({})],
            Some(value @ Value::Object(_)) => {
                let mut entries: Vec<Value> =
                    samples(value, definitions).into_iter().map(|value| json!({ "k \"1\"": value })).collect();
                entries.push(json!({}));
                entries
            }
            _ => continue,
        });
    }
    let mut all = one_by_one(&parts, |chosen| chosen.iter().fold(json!({}), |all, part| merged(all, part)));
    // And one with as little as can be.
    let least = names.iter().zip(&parts).filter(|(name, _)| required.contains(&name.as_str()));
    all.push(least.fold(json!({}), |all, (_, part)| merged(all, &part[0])));
    all
}

fn scalars(schema: &Value, definitions: &Definitions) -> Vec<Value> {
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        // Anything goes.
        _ => return vec![json!({ "any": [1, null, "é\n\"\\"] }), json!("text"), json!(null)],
    };
    types.iter().flat_map(|name| one_type(name, schema, definitions)).collect()
}

fn one_type(name: &str, schema: &Value, definitions: &Definitions) -> Vec<Value> {
    match name {
        "null" => vec![json!(null)],
        "boolean" => vec![json!(true), json!(false)],
        "integer" => vec![json!(7)],
        "number" => vec![json!(0.5), json!(3.0)],
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("uri") => vec![json!("https://example.com/a?b=c")],
            Some("date-time") => vec![json!("2026-11-02T10:00:00Z")],
            _ => vec![json!("_sample")],
        },
        "array" => {
            let items = samples(&schema["items"], definitions);
            vec![json!([items[0]]), json!(items), json!([])]
        }
        "object" => objects(schema, definitions),
        other => panic!("a schema of type {other}"),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
