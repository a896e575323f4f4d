//! Forms: their schema, and what they may not ask for.

use attache_proto::Dialect;
use serde_json::Value;

use super::{properties, questions, required};
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

pub(super) fn schema(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial).filter(|question| question.params["mode"] == "form") {
        let schema = &question.params["requestedSchema"];
        if !schema.is_object() {
            continue;
        }
        let wrong = flaw_of(schema, trial.dialect).or_else(|| {
            let unknown = required(question).find(|name| schema["properties"].get(name).is_none())?;
            Some(format!("`required` has {}, which is no field", shown(unknown)))
        });
        match wrong {
            Some(seen) => verdict.broken(question.at, format!("in the schema of a form, {seen}")),
            None => verdict.kept(),
        }
    }
}

/// What is wrong with a schema by itself.
fn flaw_of(schema: &Value, dialect: Dialect) -> Option<String> {
    const KNOWN: &[&str] = &["string", "number", "integer", "boolean", "array"];
    let is_v1 = dialect == Dialect::V1;
    let is_left_out = |key: &str| is_v1 && schema[key].is_null();
    if schema["type"] != "object" && !is_left_out("type") {
        return Some("`type` is not `object`".to_owned());
    }
    if !schema["properties"].is_object() && !is_left_out("properties") {
        return Some("`properties` is not an object".to_owned());
    }
    schema["properties"].as_object().into_iter().flatten().find_map(|(name, field)| {
        let is_known = field["type"].as_str().is_none_or(|kind| walk::is_known(kind, KNOWN, Dialect::V2));
        let has_values = !["enum", "oneOf"].iter().any(|key| field[*key].as_array().is_some_and(Vec::is_empty));
        match (is_known, has_values) {
            (false, _) => Some(format!("the field {} is of an unknown type", shown(name))),
            (true, false) => Some(format!("the field {} has no values to choose from", shown(name))),
            _ => None,
        }
    })
}

/// What a field is called that asks for a secret, in small letters and without anything else.
const SECRETS: &[&str] = &[
    "password",
    "yourpassword",
    "passphrase",
    "passwd",
    "apikey",
    "apitoken",
    "accesstoken",
    "accesskey",
    "refreshtoken",
    "secretkey",
    "clientsecret",
    "privatekey",
    "creditcardnumber",
    "cvv",
];

pub(super) fn no_secrets(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial).filter(|question| question.params["mode"] == "form") {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).take(64).collect()
        };
        let asks = properties(question).find(|(name, field)| {
            let is_text = field["type"] == "string" && field["enum"].is_null() && field["oneOf"].is_null();
            let title = field["title"].as_str().unwrap_or("");
            is_text && [*name, title].iter().any(|text| SECRETS.contains(&plain(text).as_str()))
        });
        match asks {
            Some((name, _)) => verdict.broken(question.at, format!("a form asks for {}", shown(name))),
            None => verdict.kept(),
        }
    }
}
