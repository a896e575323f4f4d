//! Arrays of messages, in both directions.

use std::time::Duration;

use attache_proto::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::driver::{AgentDriver, Step, error};
use crate::record::Event;

/// Whether JSON is meant as a response.
pub(super) fn is_response(message: &Value) -> bool {
    message.get("method").is_none() && message.get("result").or(message.get("error")).is_some()
}

impl AgentDriver {
    /// Serves an array of the client.
    pub(super) async fn handle_batch(&mut self, message: Value) {
        let Value::Array(entries) = message else { return };
        let is_answer = !entries.is_empty() && entries.iter().all(is_response);
        if entries.is_empty() || (self.dialect == Dialect::V2 && !is_answer) {
            return self.send(error(&Value::Null, -32600, "batches are not served", None)).await;
        }
        let mut responses = Vec::new();
        for entry in &entries {
            let response = match &entry["method"] {
                _ if is_response(entry) => {
                    self.handle_response(entry);
                    None
                }
                Value::Null => Some(error(&Value::Null, -32600, "not a message", None)),
                // It would hold up the answers to everything else.
                method if method == "session/prompt" => {
                    Some(error(&entry["id"], -32600, "a prompt is not for a batch", None))
                }
                _ => self.handle_call(entry).await,
            };
            responses.extend(response.map(|mut response| {
                response["jsonrpc"] = "2.0".into();
                response
            }));
        }
        if !responses.is_empty() {
            self.send(Value::Array(responses)).await;
        }
    }

    /// Sends an array, and waits until all requests in it have answers, or the array as a whole has been refused.
    pub async fn batch(&mut self, entries: Vec<Value>) {
        if self.is_over() {
            return;
        }
        let ids: Vec<Value> = entries
            .iter()
            .filter(|entry| entry["method"].is_string())
            .filter_map(|entry| entry.get("id").cloned())
            .collect();
        ids.iter().for_each(|id| self.expect(id));
        let refusals = self.refusals;
        let complete = |mut entry: Value| {
            if entry.is_object() {
                entry["jsonrpc"] = "2.0".into();
            }
            entry
        };
        self.send(entries.into_iter().map(complete).collect()).await;
        let (begin, limit) = (Instant::now(), self.limit("_attache.check/ping"));
        while self.refusals == refusals && ids.iter().any(|id| self.is_open(id)) {
            match self.step(begin + limit).await {
                Step::Served => {}
                Step::Nothing => return self.wire.note(Event::Waited { time: begin.elapsed() }),
                Step::Gone => return,
            }
        }
        if ids.is_empty() {
            // What should not be answered at all gets a moment, so that an answer to it is not taken for one to what follows.
            self.idle(Duration::from_millis(100)).await;
        }
    }
}

/// A request with a method that nobody has.
pub(super) fn unknown_request(id: &str) -> Value {
    json!({"id": id, "method": "_attache.check/ping", "params": {}})
}
