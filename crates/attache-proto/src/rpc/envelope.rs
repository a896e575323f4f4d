//! The envelope of a message: its id, its method, and the text of its params or result.

use std::borrow::Cow;

use crate::Dialect;
use crate::codec::Decode;
use crate::json::{DecodeError, Kind, Reader};
use crate::model::error::ErrorObject;
use crate::model::request::RequestId;
use crate::rpc::{PartialMessage, Violation};

/// What one frame holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope<'a> {
    /// One message.
    One(Result<Incoming<'a>, InvalidMessage>),
    /// An array of messages; never empty.
    Batch(Vec<Result<Incoming<'a>, InvalidMessage>>),
    /// Text that is not JSON.
    NotJson {
        /// The requests that it answers, as far as that can be told from what comes before the mistake.
        response_to: Vec<RequestId>,
    },
    /// An array without a message in it.
    EmptyBatch,
    /// An array of more messages than [`MAX_BATCH`], cut off there.
    HugeBatch(Vec<Result<Incoming<'a>, InvalidMessage>>),
}

/// The most messages a batch may have. An entry of two bytes has to be answered with ninety; a thousand is more than anybody
/// has a use for, and limits what one frame can cost.
pub const MAX_BATCH: usize = 1000;

/// The longest id of a request in bytes. Ids are kept until their request is answered; the longest in use have 36 bytes.
pub const MAX_ID: usize = 1024;

/// One message, with its params or result as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<'a> {
    /// A request.
    Request {
        /// The id, which the answer repeats.
        id: RequestId,
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object or an array, if there are any.
        params: Option<&'a str>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object or an array, if there are any.
        params: Option<&'a str>,
    },
    /// The answer to a request.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The text of the result, or an error.
        outcome: Outcome<'a>,
    },
}

/// The text of the result of a request, or an error.
pub type Outcome<'a> = Result<&'a str, ErrorObject>;

/// A message that breaks the rules of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidMessage {
    /// The broken rule.
    pub violation: Violation,
    /// Whether it is meant as a response, which is never answered.
    pub is_response: bool,
    /// Its id, when it has exactly one that is valid.
    pub id: Option<RequestId>,
}

/// Parses the envelope of each message in a frame.
pub fn parse(frame: &str) -> Envelope<'_> {
    match read(frame) {
        Ok(envelope) => envelope,
        Err(_) => not_json(frame),
    }
}

#[cold]
fn not_json(frame: &str) -> Envelope<'_> {
    let messages = PartialMessage::parse(frame).messages;
    let response_to = messages.iter().filter(|message| message.is_response()).filter_map(PartialMessage::id);
    Envelope::NotJson { response_to: response_to.cloned().collect() }
}

fn read(frame: &str) -> Result<Envelope<'_>, DecodeError> {
    let mut reader = Reader::new(frame, Dialect::V1);
    let envelope = if reader.peek()? == Kind::Array {
        reader.begin_array()?;
        let mut entries = Vec::new();
        let mut first = true;
        let mut is_huge = false;
        while reader.next_item(&mut first)? {
            is_huge |= entries.len() == MAX_BATCH;
            if is_huge {
                reader.skip()?;
            } else {
                entries.push(message(&mut reader)?);
            }
        }
        match entries.is_empty() {
            true => Envelope::EmptyBatch,
            false if is_huge => Envelope::HugeBatch(entries),
            false => Envelope::Batch(entries),
        }
    } else {
        Envelope::One(message(&mut reader)?)
    };
    reader.end()?;
    Ok(envelope)
}

/// Reads one message. The outer error means that the text is not JSON.
fn message<'a>(reader: &mut Reader<'a>) -> Result<Result<Incoming<'a>, InvalidMessage>, DecodeError> {
    if reader.peek()? != Kind::Object {
        reader.skip()?;
        return Ok(Err(InvalidMessage { violation: Violation::NotAnObject, is_response: false, id: None }));
    }
    let mut parts = Parts::default();
    // Nearly every message begins like this.
    let mut first = !reader.object_begins_with(r#"{"jsonrpc":"2.0""#);
    if first {
        reader.begin_object()?;
    } else {
        parts.version = Some(true);
    }
    // Then a notification goes on like this.
    if reader.next_key_is(r#","method":"#, &mut first) {
        parts.method = Some(reader.attempt(Reader::string)?.ok());
    }
    if reader.next_key_is(r#","params":"#, &mut first) {
        parts.params = Some((reader.peek()?, reader.raw()?));
    }
    while let Some(key) = reader.next_key(&mut first)? {
        match &*key {
            "jsonrpc" => {
                let version = reader.raw()?;
                parts.put(|parts| &mut parts.version, version == r#""2.0""#);
            }
            "id" => {
                let id = reader.attempt(RequestId::decode)?;
                let is_duplicate = parts.id.is_some();
                parts.put(|parts| &mut parts.id, id.ok().filter(|id| is_short(id) && !is_duplicate));
            }
            "method" => {
                let method = reader.attempt(Reader::string)?;
                parts.put(|parts| &mut parts.method, method.ok());
            }
            "params" => {
                let kind = reader.peek()?;
                let params = reader.raw()?;
                parts.put(|parts| &mut parts.params, (kind, params));
            }
            "result" => {
                let result = reader.raw()?;
                parts.put(|parts| &mut parts.result, result);
            }
            "error" => {
                let error = reader.attempt(ErrorObject::decode)?;
                parts.put(|parts| &mut parts.error, error.ok());
            }
            _ => reader.skip()?,
        }
    }
    Ok(parts.into_message())
}

fn is_short(id: &RequestId) -> bool {
    !matches!(id, RequestId::Text(text) if text.len() > MAX_ID)
}

/// The members of a message. The inner `None` stands for a value that is not valid.
#[derive(Default)]
struct Parts<'a> {
    version: Option<bool>,
    id: Option<Option<RequestId>>,
    method: Option<Option<Cow<'a, str>>>,
    params: Option<(Kind, &'a str)>,
    result: Option<&'a str>,
    error: Option<Option<ErrorObject>>,
    has_duplicate: bool,
}

impl<'a> Parts<'a> {
    fn put<T>(&mut self, member: impl FnOnce(&mut Self) -> &mut Option<T>, value: T) {
        let is_duplicate = member(self).replace(value).is_some();
        self.has_duplicate |= is_duplicate;
    }

    fn into_message(self) -> Result<Incoming<'a>, InvalidMessage> {
        // Whatever has a method is a request; what has none but an answer's parts is a response.
        let is_response = self.method.is_none() && (self.id.is_some() || self.result.is_some() || self.error.is_some());
        let invalid =
            |violation, id: Option<Option<RequestId>>| Err(InvalidMessage { violation, is_response, id: id.flatten() });
        if self.version != Some(true) {
            return invalid(Violation::NoVersion, self.id);
        }
        if self.has_duplicate {
            return invalid(Violation::DuplicateMember, self.id);
        }
        if is_response {
            return match (self.id, self.result, self.error) {
                (Some(Some(id)), Some(result), None) => Ok(Incoming::Response { id, outcome: Ok(result) }),
                (Some(Some(id)), None, Some(Some(error))) => Ok(Incoming::Response { id, outcome: Err(error) }),
                (id, Some(_), Some(_)) => invalid(Violation::Mixed, id),
                (id, ..) => invalid(Violation::MalformedResponse, id),
            };
        }
        if self.result.is_some() || self.error.is_some() {
            return invalid(Violation::Mixed, self.id);
        }
        let Some(Some(method)) = self.method else { return invalid(Violation::NoMethod, self.id) };
        let params = match self.params {
            None | Some((Kind::Null, _)) => None,
            Some((Kind::Object | Kind::Array, params)) => Some(params),
            Some(_) => return invalid(Violation::BadParams, self.id),
        };
        match self.id {
            None => Ok(Incoming::Notification { method, params }),
            Some(Some(id)) => Ok(Incoming::Request { id, method, params }),
            Some(None) => invalid(Violation::BadId, None),
        }
    }
}
