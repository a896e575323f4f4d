//! What a client on another machine may say to an agent here: which directories, which sessions, which MCP servers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::model::error::ErrorObject;
use attache::model::request::RequestId;
use attache::proto::json::RawJson;
use attache::proto::rpc::Envelope;
use attache::relay::{Direction, RelayMessage, Verdict};
use attache_http::Principal;
use serde_json::Value;

use super::owners::Owners;

/// What a client on another machine may call. Logging in and out, and providers of models, are for whoever runs the server: what
/// is changed there is changed for all. What is not known is not passed on.
const SERVED: [&str; 21] = [
    "$/cancel_request",
    "auth/status",
    "elicitation/complete",
    "initialize",
    "mcp/message",
    "session/archive",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/fork",
    "session/list",
    "session/load",
    "session/new",
    "session/prompt",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
    "session/set_title",
    "session/status",
    "session/unarchive",
];

/// Requests of a client that are watched until they are answered. An agent that answers none of them is not kept company.
const MOST_OPEN: usize = 4096;

const METHOD_NOT_FOUND: i32 = -32601;

/// Judges the messages of one connection.
pub(super) struct Guard {
    principal: Principal,
    directories: Vec<PathBuf>,
    allows_mcp_commands: bool,
    /// Who opened which session, where the agent does not know.
    owners: Option<Arc<Owners>>,
    /// Requests whose answers name sessions.
    open: HashMap<RequestId, Names>,
}

/// How an answer names sessions.
#[derive(Clone, Copy)]
enum Names {
    /// A new one.
    New,
    /// A list.
    List,
}

impl Guard {
    pub(super) fn new(
        principal: &Principal,
        directories: Vec<PathBuf>,
        allows_mcp_commands: bool,
        owners: Option<Arc<Owners>>,
    ) -> Self {
        Guard { principal: principal.clone(), directories, allows_mcp_commands, owners, open: HashMap::new() }
    }

    /// Whether a message may pass.
    pub(super) fn judge(&mut self, direction: Direction, message: &RelayMessage<'_>) -> Verdict {
        match direction {
            Direction::ClientToAgent => self.judge_client(message),
            Direction::AgentToClient => self.judge_agent(message),
        }
    }

    fn judge_client(&mut self, message: &RelayMessage<'_>) -> Verdict {
        let Some(method) = message.method() else {
            // A batch would have to be judged part by part; this transport has none.
            let is_one = matches!(message.envelope(), Envelope::One(_) | Envelope::NotJson { .. });
            return if is_one { Verdict::Pass } else { Verdict::Drop };
        };
        if !SERVED.contains(&method) {
            return Verdict::Answer(Err(ErrorObject::new(METHOD_NOT_FOUND, "not served to clients on other machines")));
        }
        let Some(params) = message.params() else { return Verdict::Pass };
        let Ok(params) = serde_json::from_str::<Value>(params) else { return refused("the params cannot be read") };
        if let Some(why) = self.wrong_directory(&params).or_else(|| self.wrong_mcp(&params)) {
            return refused(why);
        }
        let Some(owners) = &self.owners else { return Verdict::Pass };
        if let Some(session) = params.get("sessionId") {
            let session = session.as_str().unwrap_or_default();
            if !owners.is_owner(session, self.principal.as_str()) {
                return Verdict::Answer(Err(ErrorObject::not_found("Session not found")));
            }
        }
        let names = match method {
            "session/new" | "session/fork" => Names::New,
            "session/list" => Names::List,
            _ => return Verdict::Pass,
        };
        if self.open.len() >= MOST_OPEN {
            return refused("too many open requests");
        }
        if let Some(id) = message.id() {
            self.open.insert(id.clone(), names);
        }
        Verdict::Pass
    }

    /// Why the directories of a session are not those that are served.
    fn wrong_directory(&self, params: &Value) -> Option<&'static str> {
        let more = params.get("additionalDirectories").and_then(Value::as_array);
        let named = params.get("cwd").into_iter().chain(more.into_iter().flatten());
        for path in named.filter(|path| !path.is_null()) {
            let Some(path) = path.as_str() else { return Some("a directory has to be a string") };
            let is_served = Path::new(path)
                .canonicalize()
                .is_ok_and(|path| self.directories.iter().any(|directory| path.starts_with(directory)));
            if !is_served {
                return Some("cwd: this directory is not served here (--dir of the client names another)");
            }
        }
        None
    }

    /// Why MCP servers are not started: a program of the client's choice is any program.
    fn wrong_mcp(&self, params: &Value) -> Option<&'static str> {
        let servers = params.get("mcpServers").and_then(Value::as_array)?;
        let is_program =
            |server: &Value| server.get("command").is_some() || server.get("type") == Some(&"stdio".into());
        (!self.allows_mcp_commands && servers.iter().any(is_program))
            .then_some("mcpServers: programs of clients are not started here (--allow-mcp-commands)")
    }

    fn judge_agent(&mut self, message: &RelayMessage<'_>) -> Verdict {
        let (Some(owners), Some(id)) = (&self.owners, message.id()) else { return Verdict::Pass };
        let Some(Ok(result)) = message.outcome() else { return Verdict::Pass };
        let Some(names) = self.open.remove(id) else { return Verdict::Pass };
        match names {
            Names::New => {
                let value: Value = serde_json::from_str(result).unwrap_or_default();
                let Some(session) = value.get("sessionId").and_then(Value::as_str) else { return Verdict::Pass };
                match owners.add(session, self.principal.as_str()) {
                    Ok(()) => Verdict::Pass,
                    // A session that nobody would own any more after the next start is not opened.
                    Err(_) => changed(id, Err("the session cannot be written down")),
                }
            }
            Names::List => {
                let Ok(mut value) = serde_json::from_str::<Value>(result) else { return Verdict::Drop };
                if let Some(sessions) = value.get_mut("sessions").and_then(Value::as_array_mut) {
                    let owner = self.principal.as_str();
                    sessions.retain(|session| {
                        session.get("sessionId").and_then(Value::as_str).is_some_and(|id| owners.is_owner(id, owner))
                    });
                }
                changed(id, Ok(value))
            }
        }
    }
}

fn refused(why: &'static str) -> Verdict {
    Verdict::Answer(Err(ErrorObject::wrong_params(why)))
}

/// Another answer in the place of the agent's.
fn changed(id: &RequestId, outcome: Result<Value, &'static str>) -> Verdict {
    let id = RawJson::from_model(id);
    let text = match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.as_str()),
        Err(why) => {
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32603,"message":"{why}"}}}}"#, id.as_str())
        }
    };
    RawJson::new(&text).map_or(Verdict::Drop, Verdict::Change)
}
