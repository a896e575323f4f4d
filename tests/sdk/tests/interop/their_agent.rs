//! An agent made with the official SDK. It does what `our_agent.rs` does, with the same words.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, ByteStreams, Client, ConnectTo, ConnectionTo, Error, JsonRpcMessage, Responder, v1, v2,
};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::seen::text;
use crate::version::{One, Two, Version, message, result};

/// Serves version 1 on one end of a pipe.
pub(crate) async fn serve_v1(pipe: DuplexStream) -> Result<(), Error> {
    let (reader, writer) = tokio::io::split(pipe);
    agent_v1().connect_to(ByteStreams::new(writer.compat_write(), reader.compat())).await
}

/// Serves version 2 on one end of a pipe.
pub(crate) async fn serve_v2(pipe: DuplexStream) -> Result<(), Error> {
    let (reader, writer) = tokio::io::split(pipe);
    agent_v2().connect_to(ByteStreams::new(writer.compat_write(), reader.compat())).await
}

/// The agent of version 1, ready to be served.
pub(crate) fn agent_v1() -> impl ConnectTo<Client> {
    let agent = TheirAgent::<One>::new();
    let listener = agent.clone();
    Agent
        .v1()
        .on_receive_request(
            async move |request: v1::schema::ClientRequest, responder: v1::Responder, cx: v1::ConnectionTo<Client>| {
                agent.request(request, responder.into_raw(), cx.into_raw())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: v1::schema::ClientNotification, _| listener.notification(notification),
            agent_client_protocol::on_receive_notification!(),
        )
}

/// The agent of version 2, ready to be served.
pub(crate) fn agent_v2() -> impl ConnectTo<Client> {
    let agent = TheirAgent::<Two>::new();
    let listener = agent.clone();
    Agent
        .v2()
        .on_receive_request(
            async move |request: v2::schema::ClientRequest, responder: v2::Responder, cx: v2::ConnectionTo<Client>| {
                agent.request(request, responder.into_raw(), cx.into_raw())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: v2::schema::ClientNotification, _| listener.notification(notification),
            agent_client_protocol::on_receive_notification!(),
        )
}

struct TheirAgent<V> {
    state: Arc<Mutex<State>>,
    version: PhantomData<V>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    next: u64,
    is_logged_in: bool,
    old_is_gone: bool,
    notes: u64,
}

struct Session {
    mode: String,
    /// Raised to the number of the turn that is cancelled.
    cancelled: watch::Sender<u64>,
    turn: u64,
    /// The number of the turn that ended last.
    ended: watch::Sender<u64>,
}

impl<V> Clone for TheirAgent<V> {
    fn clone(&self) -> Self {
        TheirAgent { state: self.state.clone(), version: PhantomData }
    }
}

impl<V: Version> TheirAgent<V> {
    fn new() -> Self {
        TheirAgent { state: Arc::default(), version: PhantomData }
    }

    fn is_v1(&self) -> bool {
        V::NUMBER == 1
    }

    /// Everything runs in a task of its own: the SDK's handlers must not wait for the client.
    fn request(
        &self,
        request: V::ClientRequest,
        responder: Responder<Value>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let message = request.to_untyped_message()?;
        let agent = self.clone();
        tokio::spawn(async move {
            let (method, params) = message.into_parts();
            if method == "session/prompt" {
                return agent.prompt(params, responder, cx).await;
            }
            let answer = agent.answer(&method, &params, &cx).await;
            let is_opening =
                answer.is_ok() && matches!(method.as_str(), "session/new" | "session/load" | "session/resume");
            let id = answer.as_ref().map(|answer| text(answer, "sessionId")).unwrap_or_default();
            match answer.and_then(|answer| result::<V::AgentResponse>(&method, answer)) {
                Ok(answer) => responder.respond(answer)?,
                Err(error) => return responder.respond_with_error(error),
            }
            if is_opening && agent.is_v1() {
                let id = if id.is_empty() { text(&params, "sessionId") } else { id };
                let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands(1)});
                agent.tell(&cx, &id, update)?;
            }
            Ok(())
        });
        Ok(())
    }

    fn notification(&self, notification: V::ClientNotification) -> Result<(), Error> {
        let (method, params) = notification.to_untyped_message()?.into_parts();
        match method.as_str() {
            "session/cancel" => self.cancel(&text(&params, "sessionId")),
            "_test/note" => self.state.lock().expect("state").notes += params["n"].as_u64().unwrap_or(0),
            _ => {}
        }
        Ok(())
    }

    fn cancel(&self, id: &str) {
        if let Some(session) = self.state.lock().expect("state").sessions.get(id) {
            session.cancelled.send_replace(session.turn);
        }
    }

    async fn answer(&self, method: &str, params: &Value, cx: &ConnectionTo<Client>) -> Result<Value, Error> {
        let id = text(params, "sessionId");
        Ok(match method {
            "initialize" if self.is_v1() => json!({
                "protocolVersion": 1,
                "agentInfo": {"name": "theirs", "version": "1"},
                "agentCapabilities": {
                    "loadSession": true,
                    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
                    "auth": {"logout": {}},
                },
                "authMethods": [{"id": "key", "name": "Key"}],
            }),
            "initialize" => json!({
                "protocolVersion": 2,
                "info": {"name": "theirs", "version": "1"},
                "capabilities": {"session": {"delete": {}}},
                "authMethods": [{"type": "agent", "methodId": "key", "name": "Key"}],
            }),
            "authenticate" | "auth/login" => {
                self.state.lock().expect("state").is_logged_in = true;
                json!({})
            }
            "logout" | "auth/logout" => {
                self.state.lock().expect("state").is_logged_in = false;
                json!({})
            }
            "session/new" => {
                let mut state = self.state.lock().expect("state");
                if text(params, "cwd") == "/locked" && !state.is_logged_in {
                    return Err(Error::auth_required());
                }
                state.next += 1;
                let id = format!("session-{}", state.next);
                state.sessions.insert(id.clone(), Session::new());
                let mut opened = self.opened("ask", text(params, "cwd") == "/modes");
                opened["sessionId"] = id.into();
                opened
            }
            "session/load" | "session/resume" => {
                if id != "old" || self.state.lock().expect("state").old_is_gone {
                    return Err(not_found());
                }
                if method == "session/load" || params["replayFrom"]["type"] == "start" {
                    for (tag, message, said) in [("user", "m1", "hi"), ("agent", "m2", "hello")] {
                        self.say(cx, &id, &format!("{tag}_message_chunk"), message, said)?;
                    }
                }
                if !self.is_v1() {
                    self.tell(cx, &id, json!({"sessionUpdate": "state_update", "state": "idle"}))?;
                }
                self.state.lock().expect("state").sessions.insert(id, Session::new());
                self.opened("ask", false)
            }
            "session/list" => match self.state.lock().expect("state").old_is_gone {
                true => json!({"sessions": []}),
                false => json!({"sessions": [{"sessionId": "old", "cwd": "/work", "title": "Old"}]}),
            },
            "session/delete" => {
                self.state.lock().expect("state").old_is_gone = true;
                json!({})
            }
            "session/close" => {
                self.cancel(&id);
                let session = self.state.lock().expect("state").sessions.remove(&id);
                if let Some(session) = session {
                    let _ = session.ended.subscribe().wait_for(|ended| *ended == session.turn).await;
                }
                json!({})
            }
            "session/set_mode" => {
                self.set_mode(&id, &text(params, "modeId"))?;
                json!({})
            }
            "session/set_config_option" => {
                self.set_mode(&id, &text(params, "value"))?;
                json!({"configOptions": options(V::NUMBER, &text(params, "value"))})
            }
            "_test/double" => json!({"n": params["n"].as_u64().unwrap_or(0) * 2}),
            _ => return Err(Error::method_not_found()),
        })
    }

    fn set_mode(&self, id: &str, mode: &str) -> Result<(), Error> {
        if !["ask", "code"].contains(&mode) {
            return Err(Error::invalid_params());
        }
        let mut state = self.state.lock().expect("state");
        state.sessions.get_mut(id).ok_or_else(not_found)?.mode = mode.into();
        Ok(())
    }

    /// What is told of a session when it is opened: an old agent knows modes only.
    fn opened(&self, mode: &str, modes_only: bool) -> Value {
        if !self.is_v1() {
            return json!({"configOptions": options(2, mode), "availableCommands": commands(2)});
        }
        let modes = json!({
            "currentModeId": mode,
            "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
        });
        if modes_only { json!({"modes": modes}) } else { json!({"modes": modes, "configOptions": options(1, mode)}) }
    }

    fn tell(&self, cx: &ConnectionTo<Client>, id: &str, update: Value) -> Result<(), Error> {
        let params = json!({"sessionId": id, "update": update});
        cx.send_notification(message::<V::AgentNotification>("session/update", &params)?)
    }

    fn say(&self, cx: &ConnectionTo<Client>, id: &str, tag: &str, message: &str, said: &str) -> Result<(), Error> {
        let content = json!({"type": "text", "text": said});
        self.tell(cx, id, json!({"sessionUpdate": tag, "messageId": message, "content": content}))
    }

    async fn ask(&self, cx: &ConnectionTo<Client>, method: &str, params: Value) -> Result<Value, Error> {
        let request = message::<V::AgentRequest>(method, &params)?;
        let answer = cx.send_request(request).block_task().await?;
        result::<V::ClientResponse>(method, answer)
    }

    async fn prompt(&self, params: Value, responder: Responder<Value>, cx: ConnectionTo<Client>) -> Result<(), Error> {
        let id = text(&params, "sessionId");
        let word = text(&params["prompt"][0], "text");
        let begun = self.state.lock().expect("state").sessions.get_mut(&id).map(Session::begin);
        let Some((turn, cancelled, ended)) = begun else { return responder.respond_with_error(not_found()) };
        let mut responder = Some(responder);
        if !self.is_v1() {
            let answer = result::<V::AgentResponse>("session/prompt", json!({"messageId": "m0"}))?;
            if let Some(responder) = responder.take() {
                responder.respond(answer)?;
            }
            let content = json!([{"type": "text", "text": word}]);
            self.tell(&cx, &id, json!({"sessionUpdate": "user_message", "messageId": "m0", "content": content}))?;
            self.tell(&cx, &id, json!({"sessionUpdate": "state_update", "state": "running"}))?;
        }
        let outcome = self.turn(&id, &word, &cx, turn, cancelled).await;
        match (responder, outcome) {
            (Some(responder), Ok(stop)) => {
                responder.respond(result::<V::AgentResponse>("session/prompt", json!({"stopReason": stop}))?)?;
            }
            (Some(responder), Err(error)) => responder.respond_with_error(error)?,
            (None, Ok(stop)) => {
                self.tell(&cx, &id, json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop}))?;
            }
            (None, Err(error)) => {
                let error = json!({"code": i32::from(error.code), "message": error.message});
                let state = json!({
                    "sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error,
                });
                self.tell(&cx, &id, state)?;
            }
        }
        ended.send_replace(turn);
        Ok(())
    }

    async fn turn(
        &self,
        id: &str,
        word: &str,
        cx: &ConnectionTo<Client>,
        turn: u64,
        mut cancelled: watch::Receiver<u64>,
    ) -> Result<&'static str, Error> {
        let say = |said: &str| self.say(cx, id, "agent_message_chunk", "m2", said);
        match word {
            "hello" => {
                self.say(cx, id, "agent_thought_chunk", "m1", "hm")?;
                say("Hello")?;
                say(", world")?;
            }
            "mode" => {
                let mode = self.state.lock().expect("state").sessions[id].mode.clone();
                say(&mode)?;
            }
            "switch" => {
                self.set_mode(id, "code")?;
                let options = options(V::NUMBER, "code");
                self.tell(cx, id, json!({"sessionUpdate": "config_option_update", "configOptions": options}))?;
            }
            "notes" => {
                let notes = self.state.lock().expect("state").notes;
                say(&notes.to_string())?;
            }
            "plan" => {
                for status in ["pending", "completed"] {
                    let entries = json!([
                        {"content": "Look", "priority": "high", "status": status},
                        {"content": "Leap", "priority": "low", "status": "pending"},
                    ]);
                    let update = match self.is_v1() {
                        true => json!({"sessionUpdate": "plan", "entries": entries}),
                        false => json!({
                            "sessionUpdate": "plan_update",
                            "plan": {"type": "items", "planId": "p", "entries": entries},
                        }),
                    };
                    self.tell(cx, id, update)?;
                }
                self.tell(cx, id, json!({"sessionUpdate": "usage_update", "used": 7, "size": 100}))?;
                self.tell(cx, id, json!({"sessionUpdate": "session_info_update", "title": "Planning"}))?;
            }
            "tool" => return self.tool(id, cx, turn, cancelled).await,
            "files" => {
                let params = json!({"sessionId": id, "path": "/project/in", "line": 2, "limit": 3});
                let read = self.ask(cx, "fs/read_text_file", params).await?;
                let content = text(&read, "content").to_uppercase();
                let params = json!({"sessionId": id, "path": "/project/out", "content": content});
                self.ask(cx, "fs/write_text_file", params).await?;
            }
            "terminal" => {
                let params = json!({"sessionId": id, "command": "cargo", "args": ["test"]});
                let terminal = text(&self.ask(cx, "terminal/create", params).await?, "terminalId");
                let params = json!({"sessionId": id, "terminalId": terminal});
                let output = self.ask(cx, "terminal/output", params.clone()).await?;
                self.ask(cx, "terminal/kill", params.clone()).await?;
                let exit = self.ask(cx, "terminal/wait_for_exit", params.clone()).await?;
                self.ask(cx, "terminal/release", params).await?;
                say(&format!("{} {}", text(&output, "output"), text(&exit, "signal")))?;
            }
            "wait" => {
                say("cancel me")?;
                let _ = cancelled.wait_for(|cancelled| *cancelled == turn).await;
                say("stopped")?;
                return Ok("cancelled");
            }
            "extension" => {
                let answer = self.ask(cx, "_test/ask", json!({"sessionId": id, "n": 1})).await?;
                say(&format!("got {}", answer["n"]))?;
                let note = message::<V::AgentNotification>("_test/note", &json!({"sessionId": id, "n": 3}))?;
                cx.send_notification(note)?;
                let refused = self.ask(cx, "_test/nothing", json!({})).await.expect_err("there is no such method");
                say(&format!("refused {}", i32::from(refused.code)))?;
            }
            "fail" => return Err(Error::new(-32050, "out of luck")),
            other => say(&format!("what is {other}?"))?,
        }
        Ok("end_turn")
    }

    async fn tool(
        &self,
        id: &str,
        cx: &ConnectionTo<Client>,
        turn: u64,
        mut cancelled: watch::Receiver<u64>,
    ) -> Result<&'static str, Error> {
        let first = if self.is_v1() { "tool_call" } else { "tool_call_update" };
        self.tell(
            cx,
            id,
            json!({
                "sessionUpdate": first, "toolCallId": "c1", "title": "Edit a file", "kind": "edit", "status": "pending",
                "locations": [{"path": "/project/a", "line": 3}], "rawInput": {"path": "/project/a"},
            }),
        )?;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let params = match self.is_v1() {
            true => json!({"sessionId": id, "toolCall": {"toolCallId": "c1"}, "options": options}),
            false => json!({
                "sessionId": id, "title": "Edit a file?", "options": options,
                "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c1"}},
            }),
        };
        if !self.is_v1() {
            self.tell(cx, id, json!({"sessionUpdate": "state_update", "state": "requires_action"}))?;
        }
        let answer = {
            let asked = message::<V::AgentRequest>("session/request_permission", &params)?;
            let asked = cx.send_request(asked);
            let handle = asked.cancellation_handle();
            let mut answer = std::pin::pin!(asked.block_task());
            let answered = tokio::select! {
                answer = &mut answer => Some(answer?),
                _ = cancelled.wait_for(|cancelled| *cancelled == turn) => None,
            };
            match answered {
                Some(answer) => answer,
                None => {
                    // Version 2 leaves it to the agent to withdraw the question.
                    if !self.is_v1() {
                        handle.cancel()?;
                    }
                    answer.await?
                }
            }
        };
        let answer = result::<V::ClientResponse>("session/request_permission", answer)?;
        if !self.is_v1() {
            self.tell(cx, id, json!({"sessionUpdate": "state_update", "state": "running"}))?;
        }
        let update = |fields: Value| {
            let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1"});
            update.as_object_mut().expect("object").extend(fields.as_object().expect("object").clone());
            self.tell(cx, id, update)
        };
        let decision =
            match (text(&answer["outcome"], "outcome").as_str(), text(&answer["outcome"], "optionId").as_str()) {
                ("selected", "yes") => "allowed",
                ("selected", _) => "rejected",
                _ => "cancelled",
            };
        self.say(cx, id, "agent_message_chunk", "m2", decision)?;
        if decision != "allowed" {
            update(json!({"status": "failed"}))?;
            return Ok(if *cancelled.borrow() == turn { "cancelled" } else { "refusal" });
        }
        update(json!({"status": "in_progress"}))?;
        let diff = match self.is_v1() {
            true => json!({"type": "diff", "path": "/project/a", "oldText": "x\n", "newText": "y\n"}),
            false => {
                json!({"type": "diff", "changes": [{"operation": "modify", "path": "/project/a", "fileType": "text"}]})
            }
        };
        let done = json!({"type": "content", "content": {"type": "text", "text": "done"}});
        update(json!({"status": "completed", "content": [done, diff], "rawOutput": {"changed": 1}}))?;
        Ok("end_turn")
    }
}

impl Session {
    fn new() -> Self {
        Session { mode: "ask".into(), cancelled: watch::Sender::new(0), turn: 0, ended: watch::Sender::new(0) }
    }

    fn begin(&mut self) -> (u64, watch::Receiver<u64>, watch::Sender<u64>) {
        self.turn += 1;
        (self.turn, self.cancelled.subscribe(), self.ended.clone())
    }
}

fn not_found() -> Error {
    Error::new(-32002, "Session not found")
}

fn options(version: u16, mode: &str) -> Value {
    let id = if version == 1 { "id" } else { "configId" };
    let values = json!([{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]);
    json!([{id: "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode, "options": values}])
}

fn commands(version: u16) -> Value {
    match version {
        1 => json!([{"name": "web", "description": "Search", "input": {"hint": "query"}}]),
        _ => json!([{
            "type": "command", "name": "web", "description": "Search", "input": {"type": "text", "hint": "query"},
        }]),
    }
}
