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
use serde_json::{Map, Value};

use super::owners::Owners;

/// What a client on another machine may call. Logging in and out, and providers of models, are for whoever runs the server: what
/// is changed there is changed for all. What is not known is not passed on.
const SERVED: [&str; 23] = [
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
    "terminal/cancel",
    "tool_call/cancel",
];

/// Members that are judged, which an agent might also find under another spelling.
const JUDGED: [&str; 5] = ["cwd", "additionalDirectories", "mcpServers", "sessionId", "_meta"];

/// Requests of a client that are watched until they are answered. An agent that answers none of them is not kept company.
const MOST_OPEN: usize = 4096;

const NOT_SERVED: &str = "cwd: this directory is not served here (--dir of the client names another)";

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
        let id = message.id();
        if id.is_some_and(|id| self.open.contains_key(id)) {
            return refused("a request with this id is open");
        }
        let Ok(Value::Object(mut params)) = serde_json::from_str(message.params().unwrap_or("{}")) else {
            return refused("the params have to be an object");
        };
        let is_other = |key: &String| JUDGED.iter().any(|judged| judged.eq_ignore_ascii_case(key) && judged != key);
        if params.keys().any(is_other) {
            return refused("the params have a member in another spelling");
        }
        if let Some(why) = self.wrong_directory(&params).or_else(|| self.wrong_mcp(&params)) {
            return refused(why);
        }
        if let Some(owners) = &self.owners {
            if let Some(session) = params.get("sessionId") {
                let session = session.as_str().unwrap_or_default();
                if !owners.is_owner(session, self.principal.as_str()) {
                    return Verdict::Answer(Err(ErrorObject::not_found("Session not found")));
                }
            }
            // Agents take options there that are nobody's but theirs to know: programs to start, sessions to go on with.
            if method.starts_with("session/") && !self.allows_mcp_commands {
                params.remove("_meta");
            }
            let names = match method {
                "session/new" | "session/fork" => Some(Names::New),
                "session/list" => Some(Names::List),
                _ => None,
            };
            if let (Some(names), Some(id)) = (names, id) {
                if self.open.len() >= MOST_OPEN {
                    return refused("too many open requests");
                }
                self.open.insert(id.clone(), names);
            }
        }
        // What was judged is what the agent gets, and not another reading of the same bytes.
        match RawJson::new(&Value::Object(params).to_string()) {
            Ok(params) if message.params().is_some() => message.with_params(&params),
            _ => Verdict::Pass,
        }
    }

    /// Why the directories of a session are not those that are served.
    fn wrong_directory(&self, params: &Map<String, Value>) -> Option<&'static str> {
        let more = match params.get("additionalDirectories") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(more)) => more,
            Some(_) => return Some("additionalDirectories has to be a list"),
        };
        for path in params.get("cwd").into_iter().chain(more).filter(|path| !path.is_null()) {
            let Some(path) = path.as_str() else { return Some("a directory has to be a string") };
            let is_served = Path::new(path)
                .canonicalize()
                .is_ok_and(|path| self.directories.iter().any(|directory| path.starts_with(directory)));
            if !is_served {
                return Some(NOT_SERVED);
            }
        }
        None
    }

    /// Why MCP servers are not started: a program of the client's choice is any program.
    fn wrong_mcp(&self, params: &Map<String, Value>) -> Option<&'static str> {
        let servers = match params.get("mcpServers") {
            None | Some(Value::Null) => return None,
            Some(Value::Array(servers)) => servers,
            Some(_) => return Some("mcpServers has to be a list"),
        };
        let is_known = |server: &Value| {
            let kind = server.get("type").and_then(Value::as_str);
            matches!(kind, Some("http" | "sse" | "acp")) && server.get("command").is_none()
        };
        (!self.allows_mcp_commands && !servers.iter().all(is_known))
            .then_some("mcpServers: programs of clients are not started here (--allow-mcp-commands)")
    }

    fn judge_agent(&mut self, message: &RelayMessage<'_>) -> Verdict {
        let (Some(owners), Some(id)) = (&self.owners, message.id()) else { return Verdict::Pass };
        let Some(outcome) = message.outcome() else { return Verdict::Pass };
        let (Some(names), Ok(result)) = (self.open.remove(id), outcome) else { return Verdict::Pass };
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
