//! What the agent that probes a client answers to the client's own requests.

use attache_proto::Dialect;
use attache_proto::conversation::requested_dialect;
use serde_json::{Value, json};

use super::driver::{AgentDriver, error};
use super::scenario::Version;
use super::sessions::{EARLIER, PREFIX, Session};
use super::turn::Prompt;

/// The one way to log in, where it takes one.
const LOGIN: &str = "check-login";

/// The version that nobody speaks.
const NO_VERSION: u16 = 999;

/// An answer that is an error.
pub(super) struct Fault {
    code: i32,
    message: &'static str,
    data: Option<Value>,
}

pub(super) const INVALID_PARAMS: Fault = Fault { code: -32602, message: "Invalid params", data: None };
const NO_METHOD: Fault = Fault { code: -32601, message: "Method not found", data: None };
const INVALID_REQUEST: Fault = Fault { code: -32600, message: "Invalid request", data: None };

/// An answer; `None` if it comes later.
type Reply = Result<Option<Value>, Fault>;

impl AgentDriver {
    /// Serves a request or notification, and gives the response if there is one now.
    pub(super) async fn handle_call(&mut self, message: &Value) -> Option<Value> {
        let null = Value::Null;
        let (method, params) = (&message["method"], message.get("params").unwrap_or(&null));
        let Some(id) = message.get("id") else {
            self.handle_notification(method.as_str().unwrap_or_default(), params).await;
            return None;
        };
        let is_id = id.is_string() || id.is_i64() || (id.is_null() && self.dialect != Dialect::V2);
        let (Some(method), true) = (method.as_str(), is_id) else {
            return Some(error(&Value::Null, -32600, "Invalid request", None));
        };
        match self.reply(method, id, params).await {
            Ok(None) => None,
            Ok(Some(result)) => Some(json!({"id": id, "result": result})),
            Err(fault) => Some(error(id, fault.code, fault.message, fault.data)),
        }
    }

    async fn handle_notification(&mut self, method: &str, params: &Value) {
        match (method, params["sessionId"].as_str()) {
            ("session/cancel", Some(session)) => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.session == session) {
                    turn.is_cancelled = true;
                }
                self.drop_prompts(session).await;
            }
            ("$/cancel_request", _) => {
                let is_prompt = |turn: &&mut super::turn::Turn| turn.prompt == params["requestId"];
                if let Some(turn) = self.turn.as_mut().filter(is_prompt).filter(|_| self.dialect.answers_at_end()) {
                    turn.is_cancelled = true;
                }
            }
            _ => {}
        }
    }

    /// Answers the prompts of a session that wait.
    async fn drop_prompts(&mut self, session: &str) {
        let (dropped, kept) = self.prompts.drain(..).partition::<Vec<_>, _>(|prompt| prompt.session == session);
        self.prompts = kept.into();
        for prompt in dropped {
            let response = if self.dialect.answers_at_end() {
                json!({"id": prompt.id, "result": {"stopReason": "cancelled"}})
            } else {
                error(&prompt.id, -32800, "Request cancelled", None)
            };
            self.send(response).await;
        }
    }

    async fn reply(&mut self, method: &str, id: &Value, params: &Value) -> Reply {
        let (is_v1, is_v2) = (self.dialect == Dialect::V1, self.dialect == Dialect::V2);
        match method {
            "initialize" => self.initialize(params).await,
            _ if !self.is_greeted => Err(INVALID_REQUEST),
            "authenticate" if !is_v2 => self.log_in(params),
            "auth/login" if is_v2 => self.log_in(params),
            "logout" if !is_v2 => self.log_out(),
            "auth/logout" if is_v2 => self.log_out(),
            _ if method.starts_with("session/") && self.setup.asks_login && !self.is_logged_in => Err(Fault {
                code: -32000,
                message: "Authentication required",
                data: Some(json!({"reason": "auth_required", "authMethods": self.login_methods()})),
            }),
            "session/new" => self.open(id, params).await,
            "session/load" if !is_v2 => self.open_again(params, true).await,
            "session/resume" => self.resume(params).await,
            "session/list" => self.list(params),
            "session/close" => self.close_session(id, params).await,
            "session/delete" => self.delete(params).await,
            "session/prompt" => self.prompt(id, params),
            "session/set_mode" if is_v1 => self.set_mode(params).await,
            "session/set_config_option" => self.set_option(params).await,
            "tool_call/cancel" if is_v2 => self.cancel_thing(&params["toolCallId"]),
            "terminal/cancel" if is_v2 => self.cancel_thing(&params["terminalId"]),
            _ => Err(NO_METHOD),
        }
    }

    async fn initialize(&mut self, params: &Value) -> Reply {
        let asked = requested_dialect(Some(&params.to_string())).map_err(|_| INVALID_PARAMS)?;
        self.dialect = match (self.setup.version, self.options.dialect) {
            (Version::Oldest, _) | (_, Some(Dialect::V1)) => Dialect::V1,
            (_, None) => asked,
            (_, Some(Dialect::V2)) if asked == Dialect::V1 => {
                let data = Some(json!({"requested": params["protocolVersion"], "supported": [2]}));
                return Err(Fault { code: -32022, message: "Unsupported protocol version", data });
            }
            (_, Some(dialect)) => dialect,
        };
        self.hello = params.clone();
        self.is_greeted = true;
        self.take_time().await;
        let info = json!({"name": "attache-check", "version": env!("CARGO_PKG_VERSION")});
        let mut result = match self.dialect {
            Dialect::V1 => json!({"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                "mcpCapabilities": {"http": true},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
                "auth": if self.setup.asks_login { json!({"logout": {}}) } else { json!({}) },
            }}),
            Dialect::V2Draft => json!({"protocolVersion": 2, "agentInfo": info, "capabilities": {
                "session": {
                    "prompt": {"image": {}, "audio": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}},
                    "load": {}, "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
                },
                "auth": if self.setup.asks_login { json!({"logout": {}}) } else { json!({}) },
            }}),
            Dialect::V2 => json!({"protocolVersion": 2, "info": info, "capabilities": {"session": {
                "prompt": {"image": {}, "audio": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}},
                "delete": {}, "additionalDirectories": {},
            }}}),
        };
        result["authMethods"] = self.login_methods();
        if self.setup.version == Version::Unknown {
            result["protocolVersion"] = NO_VERSION.into();
        }
        Ok(Some(result))
    }

    fn login_methods(&self) -> Value {
        let method = json!({"name": "Log in", "description": "Does nothing and succeeds."});
        let mut method = if self.setup.asks_login { method } else { return json!([]) };
        method[if self.dialect == Dialect::V2 { "methodId" } else { "id" }] = LOGIN.into();
        if self.dialect != Dialect::V1 {
            method["type"] = "agent".into();
        }
        json!([method])
    }

    fn log_in(&mut self, params: &Value) -> Reply {
        match params["methodId"].as_str() {
            _ if !self.setup.asks_login => Err(NO_METHOD),
            Some(LOGIN) => {
                self.is_logged_in = true;
                Ok(Some(json!({})))
            }
            _ => Err(INVALID_PARAMS),
        }
    }

    fn log_out(&mut self) -> Reply {
        if !self.setup.asks_login {
            return Err(NO_METHOD);
        }
        self.is_logged_in = false;
        Ok(Some(json!({})))
    }

    async fn take_time(&mut self) {
        if self.setup.is_slow {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
    }

    async fn open(&mut self, id: &Value, params: &Value) -> Reply {
        let cwd = directory(params)?;
        // The list may be left out since version 2 was published.
        if self.dialect != Dialect::V2 && params.get("mcpServers").is_none() {
            return Err(INVALID_PARAMS);
        }
        self.take_time().await;
        let session_id = format!("{PREFIX}{}-{}", std::process::id(), self.mint());
        let session = Session::new(cwd);
        let mut result = session.opened(self.dialect);
        result["sessionId"] = session_id.clone().into();
        self.sessions.insert(session_id.clone(), session);
        if self.setup.speaks_early {
            self.update_of(&session_id, super::turn::commands(self.dialect)).await;
            self.update_of("check-nobody", json!({"sessionUpdate": "session_info_update", "title": "Nobody's"})).await;
        }
        self.last_answer = Some(json!({"id": id, "result": result}));
        Ok(Some(result))
    }

    async fn resume(&mut self, params: &Value) -> Reply {
        match &params["replayFrom"] {
            from if self.dialect != Dialect::V2 || from.is_null() => self.open_again(params, false).await,
            from if from["type"] == "start" => self.open_again(params, true).await,
            _ => Err(INVALID_PARAMS),
        }
    }

    async fn open_again(&mut self, params: &Value, replays: bool) -> Reply {
        let (id, cwd) = (params["sessionId"].as_str().ok_or(INVALID_PARAMS)?, directory(params)?);
        if !id.starts_with(PREFIX) || self.deleted.contains(id) {
            return Err(no_session(id));
        }
        let session = self.sessions.entry(id.to_owned()).or_insert_with(|| Session::earlier(cwd));
        let (opened, said) = (session.opened(self.dialect), session.replay(self.dialect));
        for update in said.into_iter().filter(|_| replays) {
            self.update_of(id, update).await;
        }
        if self.dialect == Dialect::V2 {
            let is_running = self.turn.as_ref().is_some_and(|turn| turn.session == id && !turn.is_ended);
            let state = if is_running { "running" } else { "idle" };
            self.update_of(id, json!({"sessionUpdate": "state_update", "state": state})).await;
        }
        Ok(Some(opened))
    }

    /// Two pages: the session of an earlier time, then those of now.
    fn list(&mut self, params: &Value) -> Reply {
        const SECOND: &str = "page=2&é";
        let cwd = params["cwd"].as_str();
        let info = |id: &str, cwd: &str| json!({"sessionId": id, "cwd": cwd, "title": "A check", "updatedAt": "2026-11-01T12:00:00Z"});
        let open =
            self.sessions.iter().filter(|(id, session)| *id != EARLIER && cwd.is_none_or(|cwd| cwd == session.cwd));
        let open: Vec<Value> = open.map(|(id, session)| info(id, &session.cwd)).collect();
        match params["cursor"].as_str() {
            Some(SECOND) => Ok(Some(json!({"sessions": open}))),
            Some(_) => Err(INVALID_PARAMS),
            None => {
                let place = self.sessions.get(EARLIER).map_or("/", |session| &session.cwd);
                let is_there = !self.deleted.contains(EARLIER);
                let earlier: Vec<Value> = is_there.then(|| info(EARLIER, cwd.unwrap_or(place))).into_iter().collect();
                let next = (!open.is_empty()).then_some(SECOND);
                let mut page = json!({"sessions": earlier});
                if let Some(next) = next {
                    page["nextCursor"] = next.into();
                }
                Ok(Some(page))
            }
        }
    }

    async fn close_session(&mut self, request: &Value, params: &Value) -> Reply {
        let id = params["sessionId"].as_str().ok_or(INVALID_PARAMS)?;
        if self.sessions.remove(id).is_none() {
            // Since version 2 was published, closing what is closed succeeds.
            return if self.dialect == Dialect::V2 { Ok(Some(json!({}))) } else { Err(no_session(id)) };
        }
        self.drop_prompts(id).await;
        match &mut self.turn {
            Some(turn) if turn.session == id => {
                turn.is_cancelled = true;
                turn.closes.push(request.clone());
                Ok(None)
            }
            _ => Ok(Some(json!({}))),
        }
    }

    async fn delete(&mut self, params: &Value) -> Reply {
        let id = params["sessionId"].as_str().ok_or(INVALID_PARAMS)?;
        self.drop_prompts(id).await;
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.session == id) {
            turn.is_cancelled = true;
        }
        self.sessions.remove(id);
        self.deleted.insert(id.to_owned());
        Ok(Some(json!({})))
    }

    fn prompt(&mut self, id: &Value, params: &Value) -> Reply {
        const KINDS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];
        let session = params["sessionId"].as_str().ok_or(INVALID_PARAMS)?;
        if !self.sessions.contains_key(session) {
            return Err(no_session(session));
        }
        let content = params["prompt"].as_array().ok_or(INVALID_PARAMS)?;
        let is_known = |block: &Value| block["type"].as_str().is_some_and(|kind| KINDS.contains(&kind));
        if !content.iter().all(is_known) || (content.is_empty() && self.dialect == Dialect::V2) {
            return Err(INVALID_PARAMS);
        }
        let content = params["prompt"].clone();
        self.prompts.push_back(Prompt { id: id.clone(), session: session.to_owned(), content });
        Ok(None)
    }

    async fn set_mode(&mut self, params: &Value) -> Reply {
        let (id, session) = self.named(params)?;
        if !session.set("mode", params["modeId"].as_str().unwrap_or_default()) {
            return Err(INVALID_PARAMS);
        }
        // Whoever shows options instead of modes sees the same.
        let options = session.options(Dialect::V1);
        self.update_of(&id, json!({"sessionUpdate": "config_option_update", "configOptions": options})).await;
        Ok(Some(json!({})))
    }

    async fn set_option(&mut self, params: &Value) -> Reply {
        let dialect = self.dialect;
        let is_typed = dialect != Dialect::V2 || params["type"] == "id";
        let (id, session) = self.named(params)?;
        let (option, value) = (params["configId"].as_str().ok_or(INVALID_PARAMS)?, &params["value"]);
        if !is_typed || !session.set(option, value.as_str().unwrap_or_default()) {
            return Err(INVALID_PARAMS);
        }
        let options = session.options(dialect);
        if dialect == Dialect::V1 && option == "mode" {
            self.update_of(&id, json!({"sessionUpdate": "current_mode_update", "currentModeId": value})).await;
        }
        Ok(Some(json!({"configOptions": options})))
    }

    fn cancel_thing(&mut self, id: &Value) -> Reply {
        match id.as_str().and_then(|id| self.cancellable.get_mut(id)) {
            Some(is_cancelled) if !*is_cancelled => {
                *is_cancelled = true;
                Ok(Some(json!({})))
            }
            _ => Err(INVALID_PARAMS),
        }
    }

    fn named(&mut self, params: &Value) -> Result<(String, &mut Session), Fault> {
        let id = params["sessionId"].as_str().ok_or(INVALID_PARAMS)?;
        let session = self.sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        Ok((id.to_owned(), session))
    }
}

fn directory(params: &Value) -> Result<&str, Fault> {
    params["cwd"].as_str().filter(|cwd| std::path::Path::new(cwd).is_absolute()).ok_or(INVALID_PARAMS)
}

fn no_session(id: &str) -> Fault {
    Fault { code: -32002, message: "Session not found", data: Some(json!({"sessionId": id})) }
}
