//! What the agent that probes a client keeps of a session, and how its options look in each dialect.

use attache_proto::Dialect;
use serde_json::{Value, json};

/// Ids of sessions that exist begin with this, also those of earlier processes: clients load such ones.
pub(super) const PREFIX: &str = "check-";

/// The session that is in every list.
pub(super) const EARLIER: &str = "check-earlier";

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) cwd: String,
    /// The values of the two options.
    pub(super) mode: String,
    pub(super) effort: String,
    /// What was said, oldest first: by whom, the id of the message, and the text.
    pub(super) history: Vec<(Speaker, String, String)>,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
}

const MODES: [(&str, &str); 2] = [("ask", "Ask first"), ("code", "Just do it")];
const EFFORTS: [(&str, &str); 2] = [("low", "Low"), ("high", "High")];

impl Session {
    /// A session in which nothing was said.
    pub(super) fn new(cwd: &str) -> Self {
        Session { cwd: cwd.to_owned(), mode: "ask".to_owned(), effort: "low".to_owned(), history: Vec::new() }
    }

    /// A session of an earlier time.
    pub(super) fn earlier(cwd: &str) -> Self {
        let line = |speaker, id: &str, text: &str| (speaker, id.to_owned(), text.to_owned());
        let history = vec![
            line(Speaker::User, "earlier-1", "What is this?"),
            line(Speaker::Agent, "earlier-2", "An earlier session."),
        ];
        Session { history, ..Session::new(cwd) }
    }

    /// The updates that tell what was said.
    pub(super) fn replay(&self, dialect: Dialect) -> Vec<Value> {
        let update = |(speaker, id, text): &(Speaker, String, String)| {
            let kind = if *speaker == Speaker::User { "user_message" } else { "agent_message" };
            let content = json!({"type": "text", "text": text});
            if dialect == Dialect::V2 {
                json!({"sessionUpdate": kind, "messageId": id, "content": [content]})
            } else {
                json!({"sessionUpdate": format!("{kind}_chunk"), "messageId": id, "content": content})
            }
        };
        self.history.iter().map(update).collect()
    }

    /// What `session/new` and its like tell beside the id.
    pub(super) fn opened(&self, dialect: Dialect) -> Value {
        let mut opened = json!({"configOptions": self.options(dialect)});
        if dialect == Dialect::V1 {
            let modes: Vec<Value> = MODES.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
            opened["modes"] = json!({"currentModeId": self.mode, "availableModes": modes});
        }
        opened
    }

    /// All options with their values.
    pub(super) fn options(&self, dialect: Dialect) -> Value {
        let key = if dialect == Dialect::V2 { "configId" } else { "id" };
        let option = |id: &str, name: &str, category: &str, current: &str, values: &[(&str, &str)]| {
            let values: Vec<Value> = values.iter().map(|(value, name)| json!({"value": value, "name": name})).collect();
            json!({key: id, "name": name, "category": category, "type": "select", "currentValue": current, "options": values})
        };
        json!([
            option("mode", "Mode", "mode", &self.mode, &MODES),
            option("effort", "Effort", "thought_level", &self.effort, &EFFORTS),
        ])
    }

    /// Sets an option. Says whether there is such an option with such a value.
    pub(super) fn set(&mut self, option: &str, value: &str) -> bool {
        let (place, values) = match option {
            "mode" => (&mut self.mode, MODES),
            "effort" => (&mut self.effort, EFFORTS),
            _ => return false,
        };
        let is_known = values.iter().any(|(known, _)| *known == value);
        if is_known {
            value.clone_into(place);
        }
        is_known
    }
}
