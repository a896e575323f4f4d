//! What a defect remembers of its connection.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Way;

/// What a defect remembers of its connection: the requests that went through, by itself, and whatever it wants to keep.
#[derive(Debug, Default)]
pub struct Memory {
    /// The requests that went this way, by their id as JSON.
    asked: HashMap<(Way, String), Value>,
    kept: Map<String, Value>,
}

impl Memory {
    /// Keeps a request, for [`answered`](Self::answered).
    pub(super) fn saw(&mut self, way: Way, message: &Value) {
        if message["method"].is_string()
            && let Some(id) = message.get("id")
        {
            self.asked.insert((way, id.to_string()), message.clone());
        }
    }

    /// The request that a message answers, which goes this way; `None` if it is no answer, or the request did not go through here.
    pub fn answered(&self, way: Way, message: &Value) -> Option<&Value> {
        let is_answer = message.get("method").is_none();
        let id = message.get("id").filter(|_| is_answer)?;
        self.asked.get(&(way.back(), id.to_string()))
    }

    /// The method of the request that a message answers.
    pub fn answered_method(&self, way: Way, message: &Value) -> Option<&str> {
        self.answered(way, message)?["method"].as_str()
    }

    /// What was kept under a name; null if there is nothing.
    pub fn kept(&self, name: &str) -> &Value {
        self.kept.get(name).unwrap_or(&Value::Null)
    }

    /// Keeps something under a name.
    pub fn keep(&mut self, name: &str, value: impl Into<Value>) {
        self.kept.insert(name.to_owned(), value.into());
    }

    /// Takes what was kept under a name; null if there is nothing.
    pub fn take(&mut self, name: &str) -> Value {
        self.kept.remove(name).unwrap_or(Value::Null)
    }

    /// How often this was asked for a name before.
    pub fn count(&mut self, name: &str) -> u64 {
        let count = self.kept(name).as_u64().unwrap_or(0);
        self.keep(name, count + 1);
        count
    }

    /// Whether this is asked for a name for the first time.
    pub fn is_first(&mut self, name: &str) -> bool {
        self.count(name) == 0
    }
}
