//! What a client on another machine may say to an agent here: which directories, which sessions, which MCP servers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::model::error::ErrorObject;
use attache::model::request::RequestId;
use attache::proto::json::RawJson;
use attache::proto::rpc::{Envelope, Incoming, Outcome};
use attache::relay::{Direction, RelayMessage, Verdict};
use attache_http::Principal;
use serde_json::{Map, Value, json};

use super::McpRules;
use super::owners::{Owners, owner_of};

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

/// What may be done about a directory that is not served. Which ones are is not for everybody to know.
const NOT_SERVED: &str = "this directory is not served here, or is not there\n\
    hint: `--dir` of `attache connect` and `attache agents add --url` names a directory of the server; those in `attache serve --dir` are served";

/// How agents say that the sandbox is in their way.
const CONFINED: [&str; 3] = ["Read-only file system", "read-only file system", "EROFS"];

/// What may be done about that.
const WRITABLE: &str =
    "hint: `attache serve` confines the agent; `--writable DIR` at the server lets it write where it keeps its state";

/// Judges the messages of one connection.
pub(super) struct Guard {
    /// Whose the sessions are that are opened here.
    owner: String,
    directories: Vec<PathBuf>,
    mcp: McpRules,
    /// Who opened which session, where the agent does not know.
    owners: Option<Arc<Owners>>,
    /// Requests that are not answered.
    open: HashMap<RequestId, Names>,
    /// The agent is a program in a sandbox.
    is_confined: bool,
}

/// How an answer names sessions.
#[derive(Clone, Copy)]
enum Names {
    /// Not at all.
    Nothing,
    /// A new one.
    New,
    /// A list.
    List,
}

impl Guard {
    pub(super) fn new(
        principal: &Principal,
        directories: Vec<PathBuf>,
        mcp: McpRules,
        owners: Option<Arc<Owners>>,
        is_confined: bool,
    ) -> Self {
        Guard { owner: owner_of(principal), directories, mcp, owners, open: HashMap::new(), is_confined }
    }

    /// Whether a message may pass.
    pub(super) fn judge(&mut self, direction: Direction, message: &RelayMessage<'_>) -> Verdict {
        match direction {
            Direction::ClientToAgent => self.judge_client(message),
            Direction::AgentToClient => self.judge_agent(message),
        }
    }

    /// What is passed on is written anew from what was judged: agents read more than is valid, each in its own way, and what one of
    /// them takes for a message was not judged as one.
    fn judge_client(&mut self, message: &RelayMessage<'_>) -> Verdict {
        match message.envelope() {
            Envelope::One(Ok(Incoming::Request { id, method, params })) => self.judge_call(Some(id), method, *params),
            Envelope::One(Ok(Incoming::Notification { method, params })) => self.judge_call(None, method, *params),
            Envelope::One(Ok(Incoming::Response { id, outcome })) => answer(id, outcome.clone()),
            Envelope::One(Err(invalid)) => refused_as(ErrorObject::invalid_request(invalid.violation.rule())),
            Envelope::NotJson { .. } => refused_as(ErrorObject::parse_error()),
            // A batch would have to be judged part by part; this transport has none.
            _ => refused_as(ErrorObject::invalid_request("batches are not supported over this transport")),
        }
    }

    fn judge_call(&mut self, id: Option<&RequestId>, method: &str, params: Option<&str>) -> Verdict {
        if !SERVED.contains(&method) {
            return refused_as(ErrorObject::method_not_found(Some(method)));
        }
        if id.is_some_and(|id| self.open.contains_key(id)) {
            return refused("a request with this id is open");
        }
        if id.is_some() && self.open.len() >= MOST_OPEN {
            return refused("too many open requests");
        }
        let has_params = params.is_some();
        let Ok(Value::Object(mut params)) = serde_json::from_str(params.unwrap_or("{}")) else {
            return refused("the params have to be an object");
        };
        let is_other = |key: &String| JUDGED.iter().any(|judged| judged.eq_ignore_ascii_case(key) && judged != key);
        if params.keys().any(is_other) {
            return refused("the params have a member in another spelling");
        }
        if let Err(why) = self.place(&mut params) {
            return refused(why);
        }
        if let Err(why) = self.mcp.judge(&mut params) {
            return refused(why);
        }
        if let Some(owners) = &self.owners {
            if let Some(session) = params.get("sessionId") {
                let session = session.as_str().unwrap_or_default();
                if !owners.is_owner(session, &self.owner) {
                    return refused_as(ErrorObject::not_found("Session not found"));
                }
            }
            // Agents take options there that are nobody's but theirs to know: programs to start, sessions to go on with.
            if method.starts_with("session/") && !self.mcp.allows_commands {
                params.remove("_meta");
            }
        }
        if let Some(id) = id {
            let names = match method {
                "session/new" | "session/fork" => Names::New,
                "session/list" => Names::List,
                _ => Names::Nothing,
            };
            self.open.insert(id.clone(), names);
        }
        let mut call = json!({ "jsonrpc": "2.0", "method": method });
        if has_params {
            call["params"] = params.into();
        }
        with_id(id, call)
    }

    /// Puts the directories of a session as they are found now, without links, in the place of the client's words: an agent that
    /// looked for them again might find something else. Fails if they are not among those that are served.
    fn place(&self, params: &mut Map<String, Value>) -> Result<(), String> {
        if let Some(cwd) = params.get_mut("cwd") {
            self.place_one(cwd, "cwd")?;
        }
        match params.get_mut("additionalDirectories") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Array(more)) => {
                more.iter_mut().try_for_each(|path| self.place_one(path, "additionalDirectories"))
            }
            Some(_) => Err("additionalDirectories has to be a list".into()),
        }
    }

    fn place_one(&self, path: &mut Value, member: &str) -> Result<(), String> {
        let named = match &*path {
            Value::Null => return Ok(()),
            Value::String(named) => Path::new(named),
            _ => return Err("a directory has to be a string".into()),
        };
        let not_served = || format!("{member}: {NOT_SERVED}");
        let found = crate::paths::real(named).map_err(|_| not_served())?;
        let is_served = self.directories.iter().any(|directory| found.starts_with(directory));
        let found = found.into_os_string().into_string().map_err(|_| not_served())?;
        if !is_served {
            return Err(not_served());
        }
        *path = found.into();
        Ok(())
    }

    /// An agent that does not know its clients is not believed to write only what is valid either: what cannot be read could be
    /// the answer that has to be looked through.
    fn judge_agent(&mut self, message: &RelayMessage<'_>) -> Verdict {
        let (id, outcome) = match message.envelope() {
            Envelope::One(Ok(Incoming::Response { id, outcome })) => (id, outcome),
            Envelope::One(Ok(_)) => return Verdict::Pass,
            _ => return Verdict::Drop,
        };
        // An answer to nothing, or a second one, has not been looked through as what it is.
        let Some(names) = self.open.remove(id) else { return Verdict::Drop };
        if let (true, Err(error), Some(text)) = (self.is_confined, outcome, message.text())
            && CONFINED.iter().any(|word| text.contains(word))
        {
            return answer(
                id,
                Err(error.clone().with(|error| error.message = format!("{}\n{WRITABLE}", error.message))),
            );
        }
        let (Some(owners), Ok(result)) = (&self.owners, outcome) else { return Verdict::Pass };
        match names {
            Names::Nothing => Verdict::Pass,
            Names::New => {
                let value: Value = serde_json::from_str(result).unwrap_or_default();
                let Some(session) = value.get("sessionId").and_then(Value::as_str) else {
                    return answer(id, Err(ErrorObject::internal("the agent named no session")));
                };
                match owners.add(session, &self.owner) {
                    Ok(()) => Verdict::Pass,
                    // A session that nobody would own any more after the next start is not opened.
                    Err(_) => answer(id, Err(ErrorObject::internal("the session cannot be written down"))),
                }
            }
            Names::List => {
                let sessions = match serde_json::from_str::<Value>(result) {
                    Ok(Value::Object(list)) => list,
                    _ => return answer(id, Err(ErrorObject::internal("the agent gave no list of sessions"))),
                };
                with_id(Some(id), json!({ "jsonrpc": "2.0", "result": self.own_sessions(sessions, owners) }))
            }
        }
    }

    /// What of a list is about sessions of this owner. What cannot be looked through is not passed on.
    fn own_sessions(&self, mut list: Map<String, Value>, owners: &Owners) -> Value {
        list.retain(|key, _| matches!(key.as_str(), "sessions" | "nextCursor"));
        if let Some(sessions) = list.get_mut("sessions") {
            let mut all = match sessions.take() {
                Value::Array(all) => all,
                _ => Vec::new(),
            };
            all.retain(|session| {
                session.get("sessionId").and_then(Value::as_str).is_some_and(|id| owners.is_owner(id, &self.owner))
            });
            *sessions = all.into();
        }
        list.into()
    }
}

fn refused(why: impl Into<String>) -> Verdict {
    refused_as(ErrorObject::new(ErrorObject::INVALID_PARAMS, why))
}

fn refused_as(error: ErrorObject) -> Verdict {
    Verdict::Answer(Err(error))
}

/// An answer, written by us.
fn answer(id: &RequestId, outcome: Outcome<'_>) -> Verdict {
    let member = match outcome {
        // Not read any further than that it is JSON, which the parser of messages has seen.
        Ok(result) => serde_json::from_str::<Value>(result).map(|result| ("result", result)),
        Err(error) => serde_json::from_str(RawJson::from_model(&error).as_str()).map(|error| ("error", error)),
    };
    match member {
        Ok((member, value)) => {
            let mut message = json!({ "jsonrpc": "2.0" });
            message[member] = value;
            with_id(Some(id), message)
        }
        Err(_) => Verdict::Drop,
    }
}

/// A message of ours in the place of another, with its id if it has one.
fn with_id(id: Option<&RequestId>, mut message: Value) -> Verdict {
    if let Some(id) = id {
        message["id"] = match id {
            RequestId::Null => Value::Null,
            RequestId::Number(number) => (*number).into(),
            RequestId::Text(text) => (&**text).into(),
        };
    }
    RawJson::new(&message.to_string()).map_or(Verdict::Drop, Verdict::Change)
}

#[cfg(test)]
mod tests;
