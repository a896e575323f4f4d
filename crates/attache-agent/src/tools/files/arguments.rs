//! The arguments of a call, read generously: models write numbers as text, and leave out what they do not need.

use serde_json::Value;

use crate::tools::Refusal;

#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a Value);

impl<'a> Arguments<'a> {
    pub(super) fn text(self, name: &str) -> Result<&'a str, Refusal> {
        self.optional_text(name)?.ok_or_else(|| Refusal(format!("the argument `{name}` is missing")))
    }

    pub(super) fn optional_text(self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.value(name)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be text"))),
        }
    }

    /// A number from 1.
    pub(super) fn count(self, name: &str) -> Result<Option<u32>, Refusal> {
        let number = match self.value(name)? {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as u64)),
        };
        match number {
            Some(number @ 1..) => Ok(Some(u32::try_from(number).unwrap_or(u32::MAX))),
            _ => Err(Refusal(format!("the argument `{name}` has to be a number from 1"))),
        }
    }

    pub(super) fn flag(self, name: &str) -> Result<bool, Refusal> {
        match self.value(name)? {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(Refusal(format!("the argument `{name}` has to be true or false"))),
        }
    }

    fn value(self, name: &str) -> Result<Option<&'a Value>, Refusal> {
        let object = self.0.as_object().ok_or_else(|| Refusal("the arguments have to be a JSON object".into()))?;
        Ok(object.get(name).filter(|value| !value.is_null()))
    }
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
            (json!({"f": 1}), Err(())),
        ] {
            assert_eq!(Arguments(&value).flag("f").map_err(drop), expected, "{value}");
        }
        let value = json!({"t": 1});
        assert!(Arguments(&value).text("t").is_err() && Arguments(&value).text("none").is_err());
    }
}
