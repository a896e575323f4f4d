//! A client made with the official SDK.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, ByteStreams, Client, ConnectTo, ConnectionTo, Error, JsonRpcMessage, Responder, UntypedMessage, v1, v2,
};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::play::{Answer, Editor, failed};
use crate::seen::{self, Seen, text};
use crate::version::{One, Two, Version, message, result};

/// What the handlers and the steps share.
#[derive(Clone)]
struct Desk {
    inbox: mpsc::UnboundedSender<Item>,
    answer: Arc<Mutex<Answer>>,
    /// What was written, by path.
    files: Arc<Mutex<HashMap<String, String>>>,
    /// Permission requests that are left unanswered.
    left: Arc<Mutex<Vec<Responder<Value>>>>,
}

enum Item {
    /// The session, and its update.
    Update(String, Value),
    Request(String, Value),
    Note(String, Value),
}

pub(crate) struct TheirClient<V> {
    connection: ConnectionTo<Agent>,
    inbox: mpsc::UnboundedReceiver<Item>,
    desk: Desk,
    seen: Seen,
    session: String,
    /// Where the session is.
    cwd: String,
    version: PhantomData<V>,
}

macro_rules! connect {
    ($name:ident, $over:ident, $version:ident, $module:ident, $client:expr) => {
        pub(crate) async fn $name(pipe: DuplexStream) -> Result<TheirClient<$version>, Error> {
            let (reader, writer) = tokio::io::split(pipe);
            $over(ByteStreams::new(writer.compat_write(), reader.compat())).await
        }

        pub(crate) async fn $over(transport: impl ConnectTo<Client> + 'static) -> Result<TheirClient<$version>, Error> {
            let (sender, inbox) = mpsc::unbounded_channel();
            let desk = Desk { inbox: sender, answer: Arc::default(), files: Arc::default(), left: Arc::default() };
            let (asked, told) = (desk.clone(), desk.clone());
            let (ready, connection) = oneshot::channel();
            let builder = $client
                .on_receive_request(
                    async move |request: $module::schema::AgentRequest,
                                responder: $module::Responder,
                                _: $module::ConnectionTo<Agent>| {
                        asked.request::<$version>(request, responder.into_raw())
                    },
                    agent_client_protocol::on_receive_request!(),
                )
                .on_receive_notification(
                    async move |notification: $module::schema::AgentNotification, _: $module::ConnectionTo<Agent>| {
                        told.notification::<$version>(notification)
                    },
                    agent_client_protocol::on_receive_notification!(),
                );
            tokio::spawn(builder.connect_with(transport, async move |connection: $module::ConnectionTo<Agent>| {
                let _ = ready.send(connection.clone().into_raw());
                connection.incoming_closed().await;
                Ok(())
            }));
            let connection = connection.await.map_err(Error::into_internal_error)?;
            TheirClient::greet(connection, inbox, desk).await
        }
    };
}

connect!(connect_v1, connect_v1_over, One, v1, Client.v1());
connect!(connect_v2, connect_v2_over, Two, v2, Client.v2());

impl Desk {
    fn request<V: Version>(&self, request: V::AgentRequest, responder: Responder<Value>) -> Result<(), Error> {
        let (method, params) = request.to_untyped_message()?.into_parts();
        let answer = match method.as_str() {
            "session/request_permission" => {
                let answer = *self.answer.lock().expect("answer");
                let outcome = match answer {
                    Answer::Leave => {
                        self.left.lock().expect("left").push(responder);
                        let _ = self.inbox.send(Item::Request(method, params));
                        return Ok(());
                    }
                    Answer::Dismiss => json!({"outcome": "cancelled"}),
                    Answer::Allow | Answer::Quit => {
                        json!({"outcome": "selected", "optionId": option(&params, "allow_once")})
                    }
                    Answer::Reject => json!({"outcome": "selected", "optionId": option(&params, "reject_once")}),
                };
                json!({"outcome": outcome})
            }
            "fs/read_text_file" => {
                let files = self.files.lock().expect("files");
                json!({"content": files.get(&text(&params, "path")).map_or("some text", String::as_str)})
            }
            "fs/write_text_file" => {
                self.files.lock().expect("files").insert(text(&params, "path"), text(&params, "content"));
                json!({})
            }
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/output" => json!({"output": "running", "truncated": false}),
            "terminal/wait_for_exit" => json!({"signal": "SIGKILL"}),
            "terminal/kill" | "terminal/release" => json!({}),
            "elicitation/create" => json!({"action": "accept", "content": {"answer": "blue"}}),
            "_test/ask" => json!({"n": params["n"].as_u64().unwrap_or(0) + 1}),
            _ => return responder.respond_with_error(Error::method_not_found()),
        };
        let answer = result::<V::ClientResponse>(&method, answer)?;
        let _ = self.inbox.send(Item::Request(method, params));
        responder.respond(answer)
    }

    fn notification<V: Version>(&self, notification: V::AgentNotification) -> Result<(), Error> {
        let (method, mut params) = notification.to_untyped_message()?.into_parts();
        let _ = self.inbox.send(match method.as_str() {
            "session/update" => Item::Update(text(&params, "sessionId"), params["update"].take()),
            _ => Item::Note(method, params),
        });
        Ok(())
    }
}

fn option(params: &Value, kind: &str) -> String {
    let options = params["options"].as_array().expect("options");
    text(options.iter().find(|option| option["kind"] == kind).expect("an option of this kind"), "optionId")
}

impl<V: Version> TheirClient<V> {
    async fn greet(
        connection: ConnectionTo<Agent>,
        inbox: mpsc::UnboundedReceiver<Item>,
        desk: Desk,
    ) -> Result<Self, Error> {
        let seen = Seen::new(V::NUMBER == 1);
        let session = String::new();
        let client = TheirClient { connection, inbox, desk, seen, session, cwd: "/work".into(), version: PhantomData };
        let info = json!({"name": "theirs", "version": "1"});
        let elicitation = json!({"form": {}});
        let answer = match V::NUMBER {
            1 => {
                let fs = json!({"readTextFile": true, "writeTextFile": true});
                let capabilities = json!({"fs": fs, "terminal": true, "elicitation": elicitation});
                let params = json!({"protocolVersion": 1, "clientInfo": info, "clientCapabilities": capabilities});
                client.call("initialize", params).await?
            }
            _ => {
                let capabilities = json!({"elicitation": elicitation});
                let params = json!({"protocolVersion": 2, "info": info, "capabilities": capabilities});
                client.call("initialize", params).await?
            }
        };
        assert_eq!(answer["protocolVersion"], V::NUMBER);
        Ok(client)
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        let request = message::<V::ClientRequest>(method, &params)?;
        let answer = self.connection.send_request(request).block_task().await?;
        result::<V::AgentResponse>(method, answer)
    }

    fn notify(&self, method: &str, params: Value) -> Result<(), Error> {
        self.connection.send_notification(message::<V::ClientNotification>(method, &params)?)
    }

    fn line(&mut self, item: Item) -> Option<String> {
        match item {
            Item::Update(_, update) => self.seen.update(&update),
            Item::Request(method, params) => Some(seen::request(&method, &params)),
            Item::Note(method, params) => Some(format!("noted {method} {}", params["n"])),
        }
    }

    /// Opens a session in one of the ways there are. The answer comes after all updates that were sent before it.
    async fn opened(&mut self, method: &str, params: Value) -> Result<Vec<String>, Error> {
        let mut answer = self.call(method, params.clone()).await?;
        self.session = text(if answer["sessionId"].is_string() { &answer } else { &params }, "sessionId");
        let mut lines = Vec::new();
        while let Ok(item) = self.inbox.try_recv() {
            lines.extend(self.line(item));
        }
        if V::NUMBER == 1 {
            // Both ways to say it have to agree. The commands are told after the answer.
            let mode = answer["modes"]["currentModeId"].clone();
            if answer["configOptions"].is_null() {
                answer["configOptions"] = json!([{"id": "mode", "currentValue": mode}]);
            }
            assert_eq!(answer["configOptions"][0]["currentValue"], mode, "{answer}");
            let is_commands = |line: &String| line.starts_with("commands");
            while !lines.iter().any(is_commands) {
                let item = self.inbox.recv().await.expect("the connection lives");
                lines.extend(self.line(item));
            }
            let position = lines.iter().position(is_commands).unwrap_or_default();
            lines.insert(position, seen::options(&answer["configOptions"]));
        } else {
            lines.push(seen::options(&answer["configOptions"]));
            lines.push(seen::commands(&answer["availableCommands"]));
        }
        Ok(lines)
    }

    async fn turn(&mut self, answer: Answer, word: &str) -> Result<Vec<String>, Error> {
        *self.desk.answer.lock().expect("answer") = answer;
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": word}]});
        let request = message::<V::ClientRequest>("session/prompt", &params)?;
        let mut prompt = Box::pin(self.connection.send_request(request).block_task());
        let mut lines = Vec::new();
        let mut is_accepted = false;
        let mut idle = None;
        let mut closing = None;
        loop {
            if is_accepted && let Some(end) = idle.take() {
                lines.push(end);
                break;
            }
            let item = tokio::select! {
                biased;
                item = self.inbox.recv() => item.expect("the connection lives"),
                end = &mut prompt, if !is_accepted => {
                    let end = result::<V::AgentResponse>("session/prompt", end?)?;
                    if V::NUMBER == 1 {
                        while let Ok(item) = self.inbox.try_recv() {
                            lines.extend(self.line(item));
                        }
                        lines.push(format!("end {}", text(&end, "stopReason")));
                        break;
                    }
                    is_accepted = true;
                    continue;
                }
            };
            let is_left = matches!(&item, Item::Request(method, _) if method == "session/request_permission")
                && answer == Answer::Leave;
            if let Item::Update(_, update) = &item
                && update["state"] == "idle"
            {
                idle = Some(match update["stopReason"].as_str() {
                    Some("error") => failed(&update["error"]["code"], &text(&update["error"], "message")),
                    stop => format!("end {}", stop.unwrap_or("without a word")),
                });
            }
            let line = self.line(item);
            let may_cancel = line.as_deref().is_some_and(|line| line.starts_with("text cancel "));
            if may_cancel && answer == Answer::Quit {
                let close = message::<V::ClientRequest>("session/close", &json!({"sessionId": self.session}))?;
                closing = Some(self.connection.send_request(close));
            } else if is_left || may_cancel {
                self.notify("session/cancel", json!({"sessionId": self.session}))?;
                self.settle();
            }
            lines.extend(line);
        }
        if let Some(closing) = closing {
            result::<V::AgentResponse>("session/close", closing.block_task().await?)?;
            lines.push("closed".into());
        }
        Ok(lines)
    }

    /// Calls any method, also one that the version does not have.
    pub(crate) async fn call_any(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.connection.send_request(UntypedMessage::new(method, params)?).block_task().await
    }

    /// The session that is open.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Opens a session and resumes it while it is open; returns what was seen.
    pub(crate) async fn open_and_resume(&mut self) -> Vec<String> {
        let opened = self.call("session/new", json!({"cwd": "/work", "mcpServers": []})).await.expect("opened");
        self.session = text(&opened, "sessionId");
        let answer = match self.call("session/resume", json!({"sessionId": self.session, "cwd": "/work"})).await {
            Ok(_) => "resumed".to_string(),
            Err(error) => failed(&i32::from(error.code).into(), &error.message),
        };
        let mut seen = Vec::new();
        while let Ok(item) = self.inbox.try_recv() {
            seen.extend(self.line(item));
        }
        seen.push(answer);
        seen
    }

    /// Has a turn in one session while that of another waits, which is cancelled then; returns the texts of both, and how they ended.
    pub(crate) async fn two_at_once(&mut self) -> [Vec<String>; 2] {
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let opened = self.call("session/new", json!({"cwd": "/work", "mcpServers": []})).await.expect("opened");
            sessions.push(text(&opened, "sessionId"));
        }
        let prompt = |session: &str, word: &str| {
            let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": word}]});
            message::<V::ClientRequest>("session/prompt", &params).map(|prompt| self.connection.send_request(prompt))
        };
        let waiting = prompt(&sessions[0], "wait").expect("sent");
        let short = prompt(&sessions[1], "hello").expect("sent").block_task().await.expect("a turn");
        self.notify("session/cancel", json!({"sessionId": sessions[0]})).expect("sent");
        let cancelled = waiting.block_task().await.expect("a turn");
        let mut seen = [Vec::new(), Vec::new()];
        while let Ok(item) = self.inbox.try_recv() {
            if let Item::Update(session, update) = item
                && update["sessionUpdate"] == "agent_message_chunk"
            {
                seen[usize::from(session == sessions[1])].push(text(&update["content"], "text"));
            }
        }
        for (seen, answer) in seen.iter_mut().zip([cancelled, short]) {
            seen.push(text(&answer, "stopReason"));
        }
        seen
    }

    /// After a cancel: version 1 has the client answer what was left, version 2 has the agent withdraw it.
    fn settle(&self) {
        for responder in self.desk.left.lock().expect("left").drain(..) {
            let answer = json!({"outcome": {"outcome": "cancelled"}});
            if V::NUMBER == 1 {
                let _ = responder.respond(answer);
            } else {
                tokio::spawn(async move {
                    responder.cancellation().cancelled().await;
                    responder.respond(answer)
                });
            }
        }
    }

    async fn try_step(&mut self, verb: &str, rest: &str) -> Result<Vec<String>, Error> {
        let id = self.session.clone();
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_v1 = V::NUMBER == 1;
        let ok = vec!["ok".to_string()];
        match verb {
            "open" => {
                self.cwd = rest.into();
                self.opened("session/new", json!({"cwd": rest, "mcpServers": []})).await
            }
            "load" if is_v1 => {
                self.seen = Seen::new(true);
                self.opened("session/load", json!({"sessionId": rest, "cwd": self.cwd, "mcpServers": []})).await
            }
            "load" => {
                self.seen = Seen::new(false);
                let replay = json!({"type": "start"});
                self.opened("session/resume", json!({"sessionId": rest, "cwd": self.cwd, "replayFrom": replay})).await
            }
            "resume" => self.opened("session/resume", json!({"sessionId": rest, "cwd": self.cwd})).await,
            "list" => Ok(seen::sessions(&self.call("session/list", json!({})).await?["sessions"])),
            "delete" => self.call("session/delete", json!({"sessionId": rest})).await.map(|_| ok),
            "close" => self.call("session/close", json!({"sessionId": id})).await.map(|_| ok),
            "login" => {
                let method = if is_v1 { "authenticate" } else { "auth/login" };
                self.call(method, json!({"methodId": rest})).await.map(|_| ok)
            }
            "logout" => self.call(if is_v1 { "logout" } else { "auth/logout" }, json!({})).await.map(|_| ok),
            "mode" if is_v1 => {
                self.call("session/set_mode", json!({"sessionId": id, "modeId": rest})).await.map(|_| ok)
            }
            "mode" => {
                let params = json!({"sessionId": id, "configId": "mode", "type": "id", "value": rest});
                self.call("session/set_config_option", params).await.map(|_| ok)
            }
            "option" => {
                let mut params = json!({"sessionId": id, "configId": first, "value": second});
                if !is_v1 {
                    params["type"] = "id".into();
                }
                let answer = self.call("session/set_config_option", params).await?;
                Ok(vec![seen::options(&answer["configOptions"])])
            }
            "call" => {
                let params = json!({"n": second.parse::<u64>().unwrap_or(0)});
                Ok(vec![format!("answered {}", self.call(first, params).await?["n"])])
            }
            "note" => {
                self.notify(first, json!({"n": second.parse::<u64>().unwrap_or(0)}))?;
                Ok(ok)
            }
            verb => self.turn(Answer::parse(verb), rest).await,
        }
    }
}

impl<V: Version> Editor for TheirClient<V> {
    async fn step(&mut self, verb: &str, rest: &str) -> Vec<String> {
        match self.try_step(verb, rest).await {
            Ok(lines) => lines,
            Err(error) => vec![failed(&i32::from(error.code).into(), &error.message)],
        }
    }
}
