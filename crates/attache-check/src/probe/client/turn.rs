//! A turn of the agent that probes a client: how it begins and ends in each dialect, and what scenarios say in it.

use attache_proto::Dialect;
use serde_json::{Value, json};

use super::driver::{AgentDriver, Answer, error};
use super::scenario::{Kind, Scenario};
use super::sessions::Speaker;

/// A prompt that waits for its turn.
#[derive(Debug)]
pub(super) struct Prompt {
    /// The id of the request.
    pub(super) id: Value,
    pub(super) session: String,
    pub(super) content: Value,
}

/// The turn that is running.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) session: String,
    /// The id of the request.
    pub(super) prompt: Value,
    pub(super) is_ended: bool,
    pub(super) is_cancelled: bool,
    /// The ids of requests to close the session, to be answered after the turn.
    pub(super) closes: Vec<Value>,
}

impl AgentDriver {
    /// Plays a scenario in a turn for a prompt.
    pub(super) async fn play(&mut self, prompt: Prompt, scenario: &Scenario, intro: &str) {
        self.note(format!("scenario {}", scenario.name));
        let Prompt { id, session, content } = prompt;
        let (is_ended, is_cancelled, closes) = (false, false, Vec::new());
        self.turn = Some(Turn { session, prompt: id.clone(), is_ended, is_cancelled, closes });
        if scenario.kind == Kind::Refusal {
            self.send(error(&id, -32603, "Internal error", None)).await;
            self.turn.iter_mut().for_each(|turn| turn.is_ended = true);
        } else {
            self.insert(&id, content).await;
            self.say(intro).await;
        }
        let stop = (scenario.play)(self).await;
        self.end_turn(stop).await;
        let closes = self.turn.take().map(|turn| turn.closes).unwrap_or_default();
        for id in closes {
            self.send(json!({"id": id, "result": {}})).await;
        }
    }

    /// Takes the prompt into the conversation.
    async fn insert(&mut self, id: &Value, content: Value) {
        let message = format!("user-{}", self.mint());
        let text: String =
            content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
        self.remember(Speaker::User, &message, &text);
        if self.dialect == Dialect::V2 {
            self.send(json!({"id": id, "result": {"messageId": message}})).await;
            self.update(json!({"sessionUpdate": "user_message", "messageId": message, "content": content})).await;
            self.state("running").await;
        }
    }

    /// Ends the turn, if that has not been done yet. A turn that was cancelled ends as one.
    pub async fn end_turn(&mut self, stop: &str) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_ended) else { return };
        turn.is_ended = true;
        let stop = if turn.is_cancelled { "cancelled" } else { stop };
        let prompt = turn.prompt.clone();
        if self.dialect.answers_at_end() {
            return self.send(json!({"id": prompt, "result": {"stopReason": stop}})).await;
        }
        let mut update = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop});
        if stop == "error" {
            update["error"] = json!({"code": -32603, "message": "Internal error"});
        }
        self.update(update).await;
    }

    /// The session of the turn.
    pub fn session(&self) -> &str {
        self.turn.as_ref().map_or("", |turn| &turn.session)
    }

    /// Where the session works.
    pub fn cwd(&self) -> &str {
        self.sessions.get(self.session()).map_or("/", |session| &session.cwd)
    }

    /// Sends an update of the session of the turn.
    pub async fn update(&mut self, update: Value) {
        let session = self.session().to_owned();
        self.update_of(&session, update).await;
    }

    /// Sends an update of a session.
    pub async fn update_of(&mut self, session: &str, update: Value) {
        self.notify("session/update", json!({"sessionId": session, "update": update})).await;
    }

    /// Says something in a message of its own.
    pub async fn say(&mut self, text: &str) {
        let id = format!("agent-{}", self.mint());
        self.remember(Speaker::Agent, &id, text);
        self.chunk("agent_message_chunk", &id, text).await;
    }

    /// Sends a piece of a message.
    pub async fn chunk(&mut self, kind: &str, message: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.update(json!({"sessionUpdate": kind, "messageId": message, "content": content})).await;
    }

    /// Says in which state the session is, where there is such a thing.
    pub async fn state(&mut self, state: &str) {
        if self.dialect == Dialect::V2 {
            self.update(json!({"sessionUpdate": "state_update", "state": state})).await;
        }
    }

    /// Reports a tool call for the first time. Returns its id.
    pub async fn tool(&mut self, title: &str, mut fields: Value) -> String {
        let id = format!("call-{}", self.mint());
        fields["title"] = title.into();
        if fields.get("name").is_none() {
            fields["name"] = "check".into();
        }
        let kind = if self.dialect == Dialect::V1 { "tool_call" } else { "tool_call_update" };
        self.report_tool(kind, &id, fields).await;
        id
    }

    /// Reports what has changed of a tool call.
    pub async fn tool_update(&mut self, id: &str, fields: Value) {
        self.report_tool("tool_call_update", id, fields).await;
    }

    async fn report_tool(&mut self, kind: &str, id: &str, mut fields: Value) {
        fields["sessionUpdate"] = kind.into();
        fields["toolCallId"] = id.into();
        self.update(fields).await;
    }

    /// Asks for permission for a tool call that was reported, and waits for the answer.
    pub async fn permission(&mut self, call: &str, title: &str, options: &[(&str, &str)]) -> Answer {
        if self.is_over() {
            return Answer::Nothing;
        }
        self.state("requires_action").await;
        let id = self.ask_permission(call, title, options).await;
        self.wait_for(std::slice::from_ref(&id), self.limit("session/request_permission")).await;
        if !self.is_over() {
            self.state("running").await;
        }
        self.answer(&id)
    }

    /// Asks for permission for a tool call, and does not wait. Options are ids, which are also their names, with their kinds.
    pub async fn ask_permission(&mut self, call: &str, title: &str, options: &[(&str, &str)]) -> Value {
        let options: Vec<Value> =
            options.iter().map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind})).collect();
        let call = json!({"toolCallId": call, "title": title});
        let session = self.session().to_owned();
        let params = if self.dialect == Dialect::V2 {
            let subject = json!({"type": "tool_call", "toolCall": call});
            json!({"sessionId": session, "title": title, "subject": subject, "options": options})
        } else {
            json!({"sessionId": session, "toolCall": call, "options": options})
        };
        self.request("session/request_permission", params).await
    }

    fn remember(&mut self, speaker: Speaker, id: &str, text: &str) {
        let session = self.session().to_owned();
        if let Some(session) = self.sessions.get_mut(&session) {
            session.history.push((speaker, id.to_owned(), text.to_owned()));
        }
    }
}

/// An update with the commands that there are.
pub(super) fn commands(dialect: Dialect) -> Value {
    let mut plain = json!({"name": "check", "description": "Plays the next scenario"});
    let mut asking = json!({"name": "say", "description": "Says something", "input": {"hint": "what to say"}});
    if dialect == Dialect::V2 {
        plain["type"] = "command".into();
        asking["type"] = "command".into();
        asking["input"]["type"] = "text".into();
    }
    json!({"sessionUpdate": "available_commands_update", "availableCommands": [plain, asking]})
}
