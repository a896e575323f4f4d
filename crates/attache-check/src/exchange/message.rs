//! The messages of a connection.

use attache_proto::model::request::RequestId;
use attache_proto::rpc::{Envelope, Incoming, InvalidMessage, Violation, parse};
use serde_json::Value;

use crate::record::{Entry, Event, Side};

/// The place of a message in the order of the wire.
pub type MessageIndex = usize;

/// A message, or what stood in its place.
#[derive(Debug)]
pub struct Message<'r> {
    /// The entry of the connection that it came in.
    pub entry: usize,
    /// Who sent it.
    pub from: Side,
    /// Whether it came in an array with others, and at which place.
    pub in_batch: Option<usize>,
    /// What was sent, to the letter: the whole line, also for an entry of a batch. Empty where it was not kept.
    pub text: &'r str,
    /// What it is.
    pub body: Body,
}

/// What a message is.
#[derive(Debug)]
pub enum Body {
    /// A request.
    Request {
        /// Its id.
        id: RequestId,
        /// The method.
        method: String,
        /// The params, null if there are none.
        params: Value,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The params, null if there are none.
        params: Value,
    },
    /// The answer to a request.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The result or the error.
        outcome: Result<Value, RpcError>,
    },
    /// JSON that is no message.
    Invalid {
        /// The rule of JSON-RPC that it breaks.
        violation: Violation,
        /// Whether it is meant as a response.
        is_response: bool,
        /// Its id, if it has a valid one.
        id: Option<RequestId>,
    },
    /// An array without anything in it.
    EmptyBatch,
    /// A line that is not JSON, blank ones included.
    NotJson,
    /// Bytes that were not kept: not UTF-8, or too many.
    Junk,
}

/// The error of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// For programs.
    pub code: i32,
    /// For people.
    pub message: String,
    /// What depends on the code, null if there is none.
    pub data: Value,
}

impl Body {
    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Body::Request { method, .. } | Body::Notification { method, .. } => Some(method),
            _ => None,
        }
    }

    /// The params of a request or notification, else null.
    pub fn params(&self) -> &Value {
        match self {
            Body::Request { params, .. } | Body::Notification { params, .. } => params,
            _ => &Value::Null,
        }
    }
}

/// Reads the messages of a connection.
pub(super) fn read(entries: &[Entry]) -> Vec<Message<'_>> {
    let mut messages = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut push = |from, in_batch, text, body| messages.push(Message { entry: index, from, in_batch, text, body });
        match &entry.event {
            Event::Frame { from, text } => match parse(text) {
                Envelope::One(message) => push(*from, None, text.as_str(), body(message)),
                Envelope::Batch(batch) | Envelope::HugeBatch(batch) => {
                    for (place, message) in batch.into_iter().enumerate() {
                        push(*from, Some(place), text.as_str(), body(message));
                    }
                }
                Envelope::EmptyBatch => push(*from, None, text.as_str(), Body::EmptyBatch),
                Envelope::NotJson { .. } => push(*from, None, text.as_str(), Body::NotJson),
            },
            Event::Junk { from, .. } => push(*from, None, "", Body::Junk),
            _ => {}
        }
    }
    messages
}

fn body(message: Result<Incoming<'_>, InvalidMessage>) -> Body {
    match message {
        Ok(Incoming::Request { id, method, params }) => {
            Body::Request { id, method: method.into_owned(), params: json(params) }
        }
        Ok(Incoming::Notification { method, params }) => {
            Body::Notification { method: method.into_owned(), params: json(params) }
        }
        Ok(Incoming::Response { id, outcome }) => Body::Response {
            id,
            outcome: match outcome {
                Ok(result) => Ok(json(Some(result))),
                Err(error) => Err(RpcError {
                    code: error.code,
                    message: error.message,
                    data: json(error.data.as_ref().map(|data| data.as_str())),
                }),
            },
        },
        Err(InvalidMessage { violation, is_response, id }) => Body::Invalid { violation, is_response, id },
    }
}

/// Text that has been read as JSON already.
fn json(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
}
