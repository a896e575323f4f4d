//! A message on its way through a relay, and what the hook decides about it.

use std::cell::OnceCell;

use attache_proto::Encode;
use attache_proto::frame::Frame;
use attache_proto::json::{RawJson, Writer};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::request::RequestId;
use attache_proto::rpc::{Envelope, Incoming, Outcome, parse};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the agent.
    ClientToAgent,
    /// From the agent to the client.
    AgentToClient,
}

impl Direction {
    /// The way back.
    pub(super) fn reversed(self) -> Self {
        match self {
            Direction::ClientToAgent => Direction::AgentToClient,
            Direction::AgentToClient => Direction::ClientToAgent,
        }
    }
}

/// What a hook decides about a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Forward it, byte for byte.
    Pass,
    /// Forward this message in its place.
    Change(RawJson),
    /// Answer it here. What is not a request is dropped; what is no valid message is answered as far as the protocol has it answered.
    Answer(Result<RawJson, ErrorObject>),
    /// Drop it.
    Drop,
}

/// A message on its way. It is not parsed before something about it is asked.
#[derive(Debug)]
pub struct RelayMessage<'a> {
    bytes: &'a [u8],
    frame: Frame<'a>,
    envelope: OnceCell<Envelope<'a>>,
}

impl<'a> RelayMessage<'a> {
    pub(super) fn new(bytes: &'a [u8], frame: Frame<'a>) -> Self {
        RelayMessage { bytes, frame, envelope: OnceCell::new() }
    }

    pub(super) fn frame(&self) -> Frame<'a> {
        self.frame
    }

    /// All bytes, with the line end or the header.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The message without its frame; `None` when it is not UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        match self.frame {
            Frame::Message(text) => Some(text),
            Frame::Junk(_) => None,
        }
    }

    /// The envelope, for batches and messages that break the rules.
    pub fn envelope(&self) -> &Envelope<'a> {
        self.envelope.get_or_init(|| self.text().map_or(Envelope::NotJson { response_to: Vec::new() }, parse))
    }

    /// The method, when it is a request or a notification.
    pub fn method(&self) -> Option<&str> {
        match self.message()? {
            Incoming::Request { method, .. } | Incoming::Notification { method, .. } => Some(method),
            Incoming::Response { .. } => None,
        }
    }

    /// The id, when it is a request or a response.
    pub fn id(&self) -> Option<&RequestId> {
        match self.message()? {
            Incoming::Request { id, .. } | Incoming::Response { id, .. } => Some(id),
            Incoming::Notification { .. } => None,
        }
    }

    /// The text of the params, when there are some.
    pub fn params(&self) -> Option<&'a str> {
        match self.message()? {
            Incoming::Request { params, .. } | Incoming::Notification { params, .. } => *params,
            Incoming::Response { .. } => None,
        }
    }

    /// The result or the error, when it is a response.
    pub fn outcome(&self) -> Option<&Outcome<'a>> {
        match self.message()? {
            Incoming::Response { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// The same request or notification with other params, to be forwarded in its place. Anything else is passed as it is.
    ///
    /// ```
    /// use attache::proto::json::RawJson;
    /// use attache::relay::{RelayMessage, Verdict};
    ///
    /// fn in_english(message: &RelayMessage<'_>) -> Verdict {
    ///     match message.method() {
    ///         Some("_vendor/set_language") => message.with_params(&RawJson::new(r#"{"language":"en"}"#).unwrap()),
    ///         _ => Verdict::Pass,
    ///     }
    /// }
    /// ```
    ///
    /// Types of the model become JSON by [`RawJson::from_model`] and [`RawJson::encode_in`].
    pub fn with_params(&self, params: &RawJson) -> Verdict {
        match self.method() {
            Some(method) => Verdict::Change(RawJson::from_model(&Changed { id: self.id(), method, params })),
            None => Verdict::Pass,
        }
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        matches!(self.message(), Some(Incoming::Request { .. }))
    }

    /// Whether it is not JSON.
    pub fn is_junk(&self) -> bool {
        matches!(self.envelope(), Envelope::NotJson { .. })
    }

    /// The id that an answer to it has: null where it has none that could be read. `None` for what is never answered.
    pub(super) fn id_to_answer(&self) -> Option<&RequestId> {
        match self.envelope() {
            Envelope::One(Ok(Incoming::Request { id, .. })) => Some(id),
            Envelope::One(Ok(_)) => None,
            Envelope::One(Err(invalid)) if invalid.is_response => None,
            Envelope::One(Err(invalid)) => Some(invalid.id.as_ref().unwrap_or(&RequestId::Null)),
            Envelope::NotJson { response_to } if !response_to.is_empty() => None,
            _ => Some(&RequestId::Null),
        }
    }

    fn message(&self) -> Option<&Incoming<'a>> {
        match self.envelope() {
            Envelope::One(Ok(message)) => Some(message),
            _ => None,
        }
    }
}

/// A request or notification that is made anew.
struct Changed<'m> {
    id: Option<&'m RequestId>,
    method: &'m str,
    params: &'m RawJson,
}

impl Encode for Changed<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.raw("{\"jsonrpc\":\"2.0\"");
        if let Some(id) = self.id {
            writer.key("id");
            writer.value(id);
        }
        writer.key("method");
        writer.value(self.method);
        writer.key("params");
        writer.value(self.params);
        writer.end_object();
    }
}
