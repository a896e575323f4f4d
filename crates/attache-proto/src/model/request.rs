//! The id that a request carries and its answer repeats, and requests that are no longer wanted.

use std::fmt;
use std::sync::Arc;

use crate::codec::{Blank, Decode, Encode, model_type, record};
use crate::json::{DecodeError, Kind, Reader, Reason, Writer};

/// The id of a request: `1` and `"1"` are two ids. Null is legal in v1 only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// No id that could be told apart from others.
    Null,
    /// A whole number.
    Number(i64),
    /// Text.
    Text(Arc<str>),
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        RequestId::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        RequestId::Text(text.into())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        RequestId::Text(text.into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Null => f.write_str("null"),
            RequestId::Number(number) => write!(f, "{number}"),
            RequestId::Text(text) => f.write_str(text),
        }
    }
}

impl Blank for RequestId {
    fn blank() -> Self {
        RequestId::Null
    }
}

impl Decode for RequestId {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.peek()? {
            Kind::Null => reader.null().map(|_| RequestId::Null),
            Kind::Number => i64::decode(reader).map(RequestId::Number),
            Kind::String => reader.string().map(|text| RequestId::Text(text.into())),
            _ => Err(DecodeError::new(Reason::Expected("a string or an integer"))),
        }
    }
}

impl Encode for RequestId {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            RequestId::Null => writer.null(),
            RequestId::Number(number) => number.encode(writer),
            RequestId::Text(text) => writer.string(text),
        }
    }
}

model_type!(RequestId);

record! {
    /// A request is no longer wanted. It is answered all the same.
    pub struct CancelRequestNotification {
        required {
            /// The request.
            request_id: RequestId = "requestId",
        }
    }
}
