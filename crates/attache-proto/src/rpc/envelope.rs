//! The envelope: what every message has around its params or result.

use std::borrow::Cow;

use crate::Dialect;
use crate::codec::Decode;
use crate::json::{DecodeError, Kind, Reader};
use crate::model::{ErrorObject, RequestId};
use crate::rpc::Violation;

/// One line or body from the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope<'a> {
    /// A message by itself.
    One(Result<Incoming<'a>, Fault>),
    /// An array of messages; never empty.
    Batch(Vec<Result<Incoming<'a>, Fault>>),
    /// Not JSON at all.
    NotJson,
    /// An array without a message in it.
    EmptyBatch,
    /// An array of more messages than [`MAX_BATCH`].
    HugeBatch,
}

/// How many messages an array may hold. An entry of two bytes is owed an answer of ninety; a thousand is more than anybody
/// has a use for, and keeps what one message can cost in bounds.
pub const MAX_BATCH: usize = 1000;

/// One message, its params or result still as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<'a> {
    /// The peer asks.
    Request {
        /// What the answer must carry.
        id: RequestId,
        /// What is asked.
        method: Cow<'a, str>,
        /// An object or array, when there is one.
        params: Option<&'a str>,
    },
    /// The peer tells.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// An object or array, when there is one.
        params: Option<&'a str>,
    },
    /// The peer answers.
    Response {
        /// Which request.
        id: RequestId,
        /// With what.
        outcome: Outcome<'a>,
    },
}

/// What a request came to: the text of its result, or an error.
pub type Outcome<'a> = Result<&'a str, ErrorObject>;

/// A message that breaks the rules of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Which rule.
    pub violation: Violation,
    /// Whether it was meant as a response, which is never answered; then perhaps to which request.
    pub response_to: Option<Option<RequestId>>,
}

/// Reads the envelope of a frame.
pub fn parse(frame: &str) -> Envelope<'_> {
    match read(frame) {
        Ok(envelope) => envelope,
        Err(_) => Envelope::NotJson,
    }
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
            false if is_huge => Envelope::HugeBatch,
            false => Envelope::Batch(entries),
        }
    } else {
        Envelope::One(message(&mut reader)?)
    };
    reader.end()?;
    Ok(envelope)
}

/// Reads one message. The outer error means that the text is not JSON.
fn message<'a>(reader: &mut Reader<'a>) -> Result<Result<Incoming<'a>, Fault>, DecodeError> {
    if reader.peek()? != Kind::Object {
        reader.skip()?;
        return Ok(Err(Fault { violation: Violation::NotAnObject, response_to: None }));
    }
    let mut parts = Parts::default();
    // Nearly every message begins like this.
    let mut first = !reader.object_begins_with(r#"{"jsonrpc":"2.0""#);
    if first {
        reader.begin_object()?;
    } else {
        parts.version = Some(true);
    }
    while let Some(key) = reader.next_key(&mut first)? {
        match &*key {
            "jsonrpc" => {
                let version = reader.raw()?;
                parts.put(|parts| &mut parts.version, version == r#""2.0""#);
            }
            "id" => {
                let id = reader.attempt(RequestId::decode)?;
                parts.put(|parts| &mut parts.id, id.ok());
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

#[derive(Default)]
struct Parts<'a> {
    version: Option<bool>,
    id: Option<Option<RequestId>>,
    method: Option<Option<Cow<'a, str>>>,
    params: Option<(Kind, &'a str)>,
    result: Option<&'a str>,
    error: Option<Option<ErrorObject>>,
    twice: bool,
}

impl<'a> Parts<'a> {
    fn put<T>(&mut self, place: impl FnOnce(&mut Self) -> &mut Option<T>, value: T) {
        let twice = place(self).replace(value).is_some();
        self.twice |= twice;
    }

    fn into_message(self) -> Result<Incoming<'a>, Fault> {
        // Whatever has a method is a request; what has none but an answer's parts is a response.
        let is_response = self.method.is_none() && (self.id.is_some() || self.result.is_some() || self.error.is_some());
        let response_to = is_response.then(|| self.id.clone().flatten());
        let fault = |violation| Err(Fault { violation, response_to: response_to.clone() });
        if self.version != Some(true) {
            return fault(Violation::NoVersion);
        }
        if self.twice {
            return fault(Violation::Mixed);
        }
        if is_response {
            return match (self.id, self.result, self.error) {
                (Some(Some(id)), Some(result), None) => Ok(Incoming::Response { id, outcome: Ok(result) }),
                (Some(Some(id)), None, Some(Some(error))) => Ok(Incoming::Response { id, outcome: Err(error) }),
                (_, Some(_), Some(_)) => fault(Violation::Mixed),
                _ => fault(Violation::MalformedResponse),
            };
        }
        if self.result.is_some() || self.error.is_some() {
            return fault(Violation::Mixed);
        }
        let Some(Some(method)) = self.method else { return fault(Violation::NotAnObject) };
        let params = match self.params {
            None | Some((Kind::Null, _)) => None,
            Some((Kind::Object | Kind::Array, params)) => Some(params),
            Some(_) => return fault(Violation::BadParams),
        };
        match self.id {
            None => Ok(Incoming::Notification { method, params }),
            Some(Some(id)) => Ok(Incoming::Request { id, method, params }),
            Some(None) => fault(Violation::BadId),
        }
    }
}
