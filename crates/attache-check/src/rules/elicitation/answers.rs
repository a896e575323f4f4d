//! What clients answer.

use attache_proto::Dialect;
use serde_json::Value;

use super::{mode, properties, questions, required};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};

pub(super) fn unoffered_refused(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial) {
        let (Some((mode, false)), Some(at)) = (mode(trial, question), question.answered_at()) else { continue };
        let offers_none =
            ["form", "url"].iter().all(|mode| !trial.offers(Side::Client, &format!("elicitation.{mode}")));
        let seen = match question.error().map(|error| error.code) {
            Some(-32602) => None,
            Some(-32601) if offers_none => None,
            Some(code) => Some(format!("answered {code}")),
            None => Some("not refused".to_owned()),
        };
        match seen {
            Some(seen) => {
                let seen = format!("a question in `{mode}` mode, which is not offered, was {seen}");
                verdict.broken_by(vec![question.at, at], seen);
            }
            None => verdict.kept(),
        }
    }
}

pub(super) fn answer(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial) {
        let (Some(result), Some(at)) = (question.result(), question.answered_at()) else { continue };
        let content = &result["content"];
        let seen = match result["action"].as_str() {
            None => Some("an answer without `action`".to_owned()),
            Some("accept") if !content.is_null() && !content.is_object() => {
                Some("`content` is not an object".to_owned())
            }
            Some("accept") => content.as_object().into_iter().flatten().find_map(|(name, value)| {
                let is_value = trial.dialect != Dialect::V1 || is_value(value);
                (!is_value)
                    .then(|| format!("the value of {} is no text, number, boolean or list of texts", shown(name)))
            }),
            Some("decline" | "cancel") if !content.is_null() => Some("content of what was not accepted".to_owned()),
            Some("decline" | "cancel") => None,
            Some(other) if other.starts_with('_') => None,
            Some(other) => Some(format!("the action {}", shown(other))),
        };
        match seen {
            Some(seen) => verdict.broken_by(vec![question.at, at], seen),
            None => verdict.kept(),
        }
    }
}

/// Whether this is a value that a field of a form can have.
fn is_value(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(values) => values.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

pub(super) fn fits(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial).filter(|question| question.params["mode"] == "form") {
        let (Some(result), Some(at)) = (question.result(), question.answered_at()) else { continue };
        if result["action"] != "accept" {
            continue;
        }
        let content = &result["content"];
        let missing = required(question).find(|name| content[*name].is_null()).map(|name| (name, "is missing"));
        let wrong = || properties(question).find_map(|(name, field)| Some((name, misfit(&content[name], field)?)));
        match missing.or_else(wrong) {
            Some((name, why)) => verdict.broken_by(vec![question.at, at], format!("the field {} {why}", shown(name))),
            None => verdict.kept(),
        }
    }
}

/// Why a value does not fit a field.
fn misfit(value: &Value, field: &Value) -> Option<&'static str> {
    if value.is_null() {
        return None;
    }
    let outside = |number: f64| {
        field["minimum"].as_f64().is_some_and(|minimum| number < minimum)
            || field["maximum"].as_f64().is_some_and(|maximum| number > maximum)
    };
    let too = |count: usize, least: &str, most: &str| {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        field[least].as_u64().is_some_and(|least| count < least)
            || field[most].as_u64().is_some_and(|most| count > most)
    };
    match (field["type"].as_str()?, value) {
        ("string", Value::String(text)) => {
            let is_unlisted = listed(field).is_some_and(|listed| !listed.contains(&text.as_str()));
            let is_long = too(text.chars().count(), "minLength", "maxLength");
            if is_unlisted {
                Some("has a value that is not listed")
            } else {
                is_long.then_some("is too short or too long")
            }
        }
        ("number", Value::Number(number)) => outside(number.as_f64()?).then_some("is out of range"),
        ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            outside(number.as_f64()?).then_some("is out of range")
        }
        ("boolean", Value::Bool(_)) => None,
        ("array", Value::Array(values)) => {
            let listed = listed(&field["items"]);
            let is_listed = |value: &Value| {
                let text = value.as_str();
                text.is_some_and(|text| listed.as_ref().is_none_or(|listed| listed.contains(&text)))
            };
            if !values.iter().all(is_listed) {
                return Some("has a value that is not listed");
            }
            too(values.len(), "minItems", "maxItems").then_some("has too few or too many values")
        }
        ("string" | "number" | "integer" | "boolean" | "array", _) => Some("is of another type"),
        _ => None,
    }
}

/// The values that a field lists, if it does.
fn listed(field: &Value) -> Option<Vec<&str>> {
    if let Some(values) = field["enum"].as_array() {
        return Some(values.iter().filter_map(Value::as_str).collect());
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| field[*key].as_array())?;
    Some(titled.iter().filter_map(|value| value["const"].as_str()).collect())
}
