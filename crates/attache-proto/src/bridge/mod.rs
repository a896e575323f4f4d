//! A translator between a client and an agent that speak different dialects.
//!
//! [`Bridge`] is plain data: it is the agent for the client and the client for the agent, is fed the frames of both, and
//! appends frames for either. Where both speak the same dialect it changes ids only.
//!
//! ```
//! use attache_proto::Dialect;
//! use attache_proto::bridge::Bridge;
//!
//! let mut bridge = Bridge::new(Dialect::V1);
//! let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
//! let hello = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#;
//! bridge.handle_client(hello, &mut to_agent, &mut to_client);
//! assert!(String::from_utf8_lossy(&to_agent).contains(r#""protocolVersion":1,"clientInfo""#));
//! let welcome = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
//! bridge.handle_agent(welcome, &mut to_agent, &mut to_client);
//! assert!(String::from_utf8_lossy(&to_client).contains(r#""id":7,"result":{"protocolVersion":2,"info""#));
//! ```

// Every function of this module is `inline`: so it is compiled by the program that uses a bridge, and by no other.

mod agent_calls;
mod client_calls;
mod initialize;
mod modes;
mod recode;
mod sessions;
mod turns;
mod updates;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::Dialect;
use crate::frame::{Framing, Junk};
use crate::json::Writer;
use crate::method::Method;
use crate::model::{AgentCapabilities, ClientCapabilities, ErrorObject, ModeId, SessionId};
use crate::rpc::{Call, Event, Events, Outcome, Peer, RequestKey, Side, Violation};
use sessions::Session;

/// Sits between a client and an agent, and has each hear its own dialect.
///
/// The client's dialect follows from its `initialize`, the agent's from how it answers ours.
#[derive(Debug)]
pub struct Bridge {
    /// The dialect that the agent is addressed in until its answer shows which it speaks.
    hint: Dialect,
    /// The dialect that the client seems to speak. It is settled when the agent has answered.
    client_hint: Dialect,
    /// We are the agent that the client talks to. The calls in the waiters are the agent's.
    client: Peer<Asking>,
    /// We are the client that the agent talks to. The calls in the waiters are the client's.
    agent: Peer<Asked>,
    client_capabilities: ClientCapabilities,
    agent_capabilities: AgentCapabilities,
    sessions: HashMap<SessionId, Session>,
    /// Calls of the client that wait for the agent.
    client_calls: HashMap<Call, RequestKey>,
    /// Calls of the agent that wait for the client.
    agent_calls: HashMap<Call, RequestKey>,
    messages: u64,
    reports: Vec<&'static str>,
}

/// Who waits for an answer of the agent.
#[derive(Debug)]
enum Asked {
    /// The client, to begin.
    Initialize(Call),
    /// The client, for the result as it comes.
    Raw(Call),
    /// The client, for the result of this method in its own dialect.
    Recode(Call, Method),
    /// The client, for a session to open.
    Open(Box<Opening>),
    /// The client, which has asked to close a session.
    Close(Call, SessionId),
    /// A client that hears of the end of its prompt later: nobody waits, the session does.
    Turn(SessionId),
    /// A client that hears of the end of its prompt in the answer; the agent says only that it has begun.
    Insert(Call, SessionId),
    /// A client that has set an option, which for the agent is its mode.
    SetMode(Call, SessionId, ModeId),
    /// A client that has set its mode, which for the agent is an option.
    SetModeOption(Call, SessionId),
    /// A client that has set an option.
    SetOption(Call, SessionId),
}

/// A session on its way to be opened.
#[derive(Debug)]
struct Opening {
    call: Call,
    /// What the client asked for.
    asked: Method,
    /// What the agent was asked for.
    sent: Method,
    /// The session, unless it is new.
    session_id: Option<SessionId>,
    cwd: String,
}

/// Who waits for an answer of the client.
#[derive(Debug)]
enum Asking {
    /// The agent, for the result as it comes.
    Raw(Call),
    /// The agent, for the result of this method in its own dialect.
    Recode(Call, Method),
    /// The agent, for a permission in a session.
    Permission(Call, SessionId),
}

/// Where frames go.
struct Out<'a> {
    agent: &'a mut Vec<u8>,
    client: &'a mut Vec<u8>,
}

impl Bridge {
    /// A bridge to an agent that is addressed in this dialect. It may answer in another.
    #[inline]
    pub fn new(agent: Dialect) -> Self {
        Bridge {
            hint: agent,
            client_hint: agent,
            client: Peer::new(Side::Agent),
            agent: Peer::new(Side::Client),
            client_capabilities: ClientCapabilities::new(),
            agent_capabilities: AgentCapabilities::new(),
            sessions: HashMap::new(),
            client_calls: HashMap::new(),
            agent_calls: HashMap::new(),
            messages: 0,
            reports: Vec::new(),
        }
    }

    /// Chooses how frames are written, for the client and for the agent.
    #[inline]
    pub fn set_framing(&mut self, client: Framing, agent: Framing) {
        self.client.set_framing(client);
        self.agent.set_framing(agent);
    }

    /// The dialects of the client and of the agent, once they are known.
    #[inline]
    pub fn dialects(&self) -> Option<(Dialect, Dialect)> {
        Some((self.client.dialect()?, self.agent.dialect()?))
    }

    /// What could not be said to the other side, and what either side did wrong. Nothing in it repeats a message.
    #[inline]
    pub fn take_reports(&mut self) -> Vec<&'static str> {
        let mut reports = std::mem::take(&mut self.reports);
        reports.extend(self.agent.take_lost());
        reports.extend(self.client.take_lost());
        reports
    }

    /// Takes in a frame of the client.
    #[inline]
    pub fn handle_client(&mut self, frame: &str, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        let events = self.client.handle_frame(frame, to_client);
        self.handle_client_events(events, to_agent, to_client);
    }

    /// Takes note of bytes of the client that are no message, and answers as the protocol says.
    #[inline]
    pub fn handle_client_junk(&mut self, junk: Junk<'_>, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        let events = self.client.handle_junk(junk, to_client);
        self.handle_client_events(events, to_agent, to_client);
    }

    #[inline]
    fn handle_client_events(&mut self, events: Events<'_, Asking>, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        for event in events {
            let out = &mut Out { agent: to_agent, client: to_client };
            match event {
                Event::Call { call, method, params } => self.handle_client_call(call, &method, params, out),
                Event::Notification { method, params } => self.handle_client_notification(&method, params, out),
                Event::Answer { waiter, outcome } => {
                    self.handle_client_answer(waiter, outcome.map_err(ErrorObject::from), out);
                }
                Event::Cancel(call) => self.handle_client_cancel(call, out),
                Event::Violation(violation) => self.report(violation.rule()),
            }
        }
    }

    /// Takes in a frame of the agent.
    #[inline]
    pub fn handle_agent(&mut self, frame: &str, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        if !looks_like_message(frame) {
            return self.report(Violation::NotJson.rule());
        }
        let events = self.agent.handle_frame(frame, to_agent);
        self.handle_agent_events(events, to_agent, to_client);
    }

    /// Takes note of bytes of the agent that are no message, and answers those that look like one.
    #[inline]
    pub fn handle_agent_junk(&mut self, junk: Junk<'_>, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        let mut unsent = Vec::new();
        let answers = if looks_like_message(junk.start()) { &mut *to_agent } else { &mut unsent };
        let events = self.agent.handle_junk(junk, answers);
        self.handle_agent_events(events, to_agent, to_client);
    }

    #[inline]
    fn handle_agent_events(&mut self, events: Events<'_, Asked>, to_agent: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        for event in events {
            let out = &mut Out { agent: to_agent, client: to_client };
            match event {
                Event::Call { call, method, params } => self.handle_agent_call(call, &method, params, out),
                Event::Notification { method, params } => self.handle_agent_notification(&method, params, out),
                Event::Answer { waiter, outcome } => {
                    self.handle_agent_answer(waiter, outcome.map_err(ErrorObject::from), out);
                }
                Event::Cancel(call) => {
                    if let Some(request) = self.agent_calls.get(&call) {
                        self.client.cancel(*request, out.client);
                    }
                }
                Event::Violation(violation) => self.report(violation.rule()),
            }
        }
    }

    /// The agent is gone: whatever the client waits for fails.
    #[inline]
    pub fn handle_agent_gone(&mut self, to_client: &mut Vec<u8>) {
        let gone = ErrorObject::internal("the agent is gone");
        let mut sink = Vec::new();
        let out = &mut Out { agent: &mut sink, client: to_client };
        for waiter in self.agent.close() {
            self.handle_agent_answer(waiter, Err(gone.clone()), out);
        }
        let mut calls: Vec<Call> = self.sessions.values_mut().flat_map(Session::take_open_calls).collect();
        calls.sort();
        for call in calls {
            self.settle_error(call, &gone, out);
        }
    }

    /// Sends a call of the client on as it is.
    #[inline]
    fn pass_client_call(&mut self, call: Call, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let params = |writer: &mut Writer<'_>| raw(writer, params.unwrap_or("{}"));
        let request = self.agent.request(method, params, Asked::Raw(call), out.agent);
        self.client_calls.insert(call, request);
    }

    /// Answers a call of the client.
    #[inline]
    fn settle(&mut self, call: Call, result: impl FnOnce(&mut Writer<'_>), out: &mut Out<'_>) {
        self.client_calls.remove(&call);
        self.client.answer(call, result, out.client);
    }

    #[inline]
    fn settle_error(&mut self, call: Call, error: &ErrorObject, out: &mut Out<'_>) {
        self.client_calls.remove(&call);
        self.client.refuse(call, error, out.client);
    }

    #[inline]
    fn settle_raw(&mut self, call: Call, outcome: Outcome<'_>, out: &mut Out<'_>) {
        match outcome {
            Ok(result) => self.settle(call, |writer| raw(writer, result), out),
            Err(error) => self.settle_error(call, &error, out),
        }
    }

    /// The dialects; before they are settled both count as the same, so that nothing is changed.
    #[inline]
    fn both(&self) -> (Dialect, Dialect) {
        self.dialects().unwrap_or((self.hint, self.hint))
    }

    #[cold]
    #[inline]
    fn report(&mut self, what: &'static str) {
        // Nobody may be asking for reports.
        if self.reports.len() < 1024 {
            self.reports.push(what);
        }
    }
}

/// Whether a line of an agent is meant as a message. Agents print banners and warnings, and would not understand an answer to
/// one.
#[inline]
fn looks_like_message(line: &str) -> bool {
    line.trim_ascii_start().starts_with(['{', '['])
}

/// Writes JSON that came from outside. Line ends can stand between tokens only; a blank means the same.
#[inline]
fn raw(writer: &mut Writer<'_>, json: &str) {
    if json.contains(['\n', '\r']) {
        writer.raw(&json.replace(['\n', '\r'], " "));
    } else {
        writer.raw(json);
    }
}

/// Whether the answer to a prompt ends the turn in this dialect.
#[inline]
fn answers_at_the_end(dialect: Dialect) -> bool {
    dialect != Dialect::V2
}
