//! A translator between a client and an agent that speak different dialects.
//!
//! [`Bridge`] is plain data: it is fed the frames of both sides, and appends frames for either. Towards the client it is an
//! agent, towards the agent it is a client, with the same values of [`conversation`](crate::conversation) that agents and
//! clients are made of. Where both sides speak the same dialect it changes ids only.
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

mod from_agent;
mod from_client;
mod greeting;
mod recode;
mod sessions;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use crate::Dialect;
use crate::conversation::Offer;
use crate::frame::{Framing, Junk};
use crate::json::Writer;
use crate::method::Method;
use crate::model::capability::ClientCapabilities;
use crate::model::config::{ConfigId, ConfigValueId};
use crate::model::error::ErrorObject;
use crate::model::session::SessionId;
use crate::rpc::{Call, Event, Events, IntMap, Outcome, Peer, RequestKey, Side, Violation};
use greeting::Hello;
use sessions::{OpenRequest, Session};

/// Reports that are kept. Nobody may be asking for them.
const REPORTS: usize = 1024;

/// Sits between a client and an agent, and lets each hear its own dialect.
///
/// The client's dialect follows from its `initialize`, the agent's from how it answers ours.
#[derive(Debug)]
pub struct Bridge {
    /// The dialect that the agent is greeted in. It may answer in another.
    hint: Dialect,
    /// We are the agent that the client talks to.
    client: Peer<Asking>,
    /// We are the client that the agent talks to.
    agent: Peer<Asked>,
    client_capabilities: ClientCapabilities,
    /// What the agent offers, once it was greeted.
    offer: Option<Offer>,
    is_agent_gone: bool,
    sessions: HashMap<SessionId, Session>,
    session_count: u64,
    /// Requests to open a session that the agent has not answered.
    opening: usize,
    /// Sessions that were closed lately, the last one first.
    closed_sessions: VecDeque<SessionId>,
    /// Bytes of prompts that wait for their turn.
    queued_bytes: usize,
    /// Calls of the client whose answer the agent owes us.
    client_calls: IntMap<Call, RequestKey>,
    /// Calls of the agent whose answer the client owes us.
    agent_calls: IntMap<Call, RequestKey>,
    id_prefix: String,
    reports: Vec<&'static str>,
}

/// A call of the client that waits for an answer of the agent.
#[derive(Debug)]
struct Asked {
    call: Call,
    then: Then,
}

/// What an answer of the agent means.
#[derive(Debug)]
enum Then {
    /// The first exchange.
    Greet(Box<Hello>),
    /// The client gets the result as it comes.
    Pass,
    /// The client gets the result of this method in its own dialect.
    Recode(Method),
    /// A session is open.
    Open(Box<OpenRequest>),
    /// A session is closed or deleted.
    Free(Method, SessionId),
    /// A prompt was taken in, or its turn has ended.
    Prompt(SessionId),
    /// An option was set.
    SetOption(Box<OptionChange>),
}

/// A call of the agent that waits for an answer of the client.
#[derive(Debug)]
struct Asking {
    call: Call,
    /// The method whose result has to be translated, if it has to be.
    method: Option<Method>,
    /// The session that waits for its user meanwhile.
    session: Option<SessionId>,
}

/// An option on its way to be set.
#[derive(Debug)]
struct OptionChange {
    session: SessionId,
    /// What the client asked for.
    asked: Method,
    /// The option and its value, when the agent has something older in its place.
    older: Option<(ConfigId, ConfigValueId)>,
}

/// Where frames go.
struct Out<'a> {
    agent: &'a mut Vec<u8>,
    client: &'a mut Vec<u8>,
}

impl Bridge {
    /// A bridge to an agent that is greeted in this dialect. It may answer in another.
    #[inline]
    pub fn new(agent: Dialect) -> Self {
        Bridge {
            hint: agent,
            client: Peer::new(Side::Agent),
            agent: Peer::new(Side::Client),
            client_capabilities: ClientCapabilities::new(),
            offer: None,
            is_agent_gone: false,
            sessions: HashMap::new(),
            session_count: 0,
            opening: 0,
            closed_sessions: VecDeque::new(),
            queued_bytes: 0,
            client_calls: IntMap::default(),
            agent_calls: IntMap::default(),
            id_prefix: "bridge".into(),
            reports: Vec::new(),
        }
    }

    /// Sets what the ids of messages begin with that the bridge makes up. Sessions outlive bridges, so each bridge needs
    /// another one.
    #[inline]
    pub fn set_id_prefix(&mut self, prefix: impl Into<String>) {
        self.id_prefix = prefix.into();
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

    /// Takes what could not be said to the other side, and what either side did wrong. Nothing in it repeats a message.
    #[inline]
    pub fn take_reports(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.reports)
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
        self.report_lost();
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
        self.report_lost();
    }

    /// The agent is gone: whatever the client waits for fails, now and later.
    #[inline]
    pub fn handle_agent_gone(&mut self, to_client: &mut Vec<u8>) {
        self.is_agent_gone = true;
        let mut nowhere = Vec::new();
        let out = &mut Out { agent: &mut nowhere, client: to_client };
        let mut sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        sessions.sort_unstable();
        for id in &sessions {
            // No queued prompt is begun now.
            for call in self.take_queued(id, None) {
                self.refuse(call, &gone(), out);
            }
        }
        for waiter in self.agent.close() {
            self.handle_agent_answer(waiter, Err(gone()), out);
        }
        for id in &sessions {
            self.end_session(id, &Err(gone()), out);
        }
        self.client.abandon_all(|_| true, out.client);
        self.agent_calls.clear();
        self.report_lost();
    }

    /// The dialects of both sides, where something has to be translated.
    #[inline]
    fn translated(&self) -> Option<(Dialect, Dialect)> {
        self.dialects().filter(|(client, agent)| client != agent)
    }

    #[inline]
    fn client_dialect(&self) -> Dialect {
        self.client.dialect().unwrap_or(self.hint)
    }

    #[inline]
    fn agent_dialect(&self) -> Dialect {
        self.agent.dialect().unwrap_or(self.hint)
    }

    /// Answers a call of the client with an error.
    #[inline]
    fn refuse(&mut self, call: Call, error: &ErrorObject, out: &mut Out<'_>) {
        self.client.refuse(call, error, out.client);
    }

    /// Answers a call of the client with a result as it came from the agent.
    #[inline]
    fn answer_raw(&mut self, call: Call, outcome: Outcome<'_>, out: &mut Out<'_>) {
        match outcome {
            Ok(result) => self.client.answer(call, |writer| raw(writer, result), out.client),
            Err(error) => self.refuse(call, &error, out),
        }
    }

    /// Answers a call of the client whose result makes no sense.
    #[inline]
    fn refuse_misunderstood(&mut self, call: Call, out: &mut Out<'_>) {
        self.report("invalid result from the agent");
        self.refuse(call, &ErrorObject::internal("invalid result from the agent"), out);
    }

    /// Collects what was left out of what we wrote.
    #[inline]
    fn report_lost(&mut self) {
        for lost in self.agent.take_lost().into_iter().chain(self.client.take_lost()) {
            self.report(lost);
        }
    }

    /// Keeps a report: the one place that does.
    #[cold]
    #[inline]
    fn report(&mut self, what: &'static str) {
        if self.reports.len() < REPORTS {
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

#[inline]
fn gone() -> ErrorObject {
    ErrorObject::internal("connection to the agent closed")
}
