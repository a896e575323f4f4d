//! Violations: what a peer did that the protocol does not allow.

use std::fmt;

use crate::json::DecodeError;

/// A rule that the peer broke. The connection stays open, and requests are still answered.
///
/// Nothing here repeats what the peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A message is not JSON.
    NotJson,
    /// A message is not UTF-8.
    NotUtf8,
    /// A message is longer than the limit.
    TooLong,
    /// A message is JSON, but not an object.
    NotAnObject,
    /// A message does not say `"jsonrpc":"2.0"`.
    NoVersion,
    /// A message that is not a response has no method, or one that is not a string.
    NoMethod,
    /// A message has a member twice.
    DuplicateMember,
    /// A request id is neither an integer nor a string of at most [`MAX_ID`](crate::rpc::MAX_ID) bytes.
    BadId,
    /// A request id is null.
    NullId,
    /// A request id is used again while the first request is still open.
    DuplicateId,
    /// `params` is neither an object nor an array.
    BadParams,
    /// A message is a request and a response at once.
    Mixed,
    /// A response has no valid id, or no valid result or error.
    MalformedResponse,
    /// A response is not to an open request of ours.
    UnknownResponse,
    /// An error response has no id, so that nobody knows which request it answers.
    ErrorWithoutId,
    /// An array of messages came although the dialect has no such thing.
    Batch,
    /// An array of messages is empty.
    EmptyBatch,
    /// An array holds more messages than [`MAX_BATCH`](crate::rpc::MAX_BATCH).
    HugeBatch,
    /// A request or notification came before `initialize`.
    BeforeInitialize,
    /// A method does not exist, or was not offered.
    UnknownMethod,
    /// The params of a method are invalid.
    InvalidParams {
        /// The method, by its protocol name.
        method: &'static str,
        /// What is wrong, and where.
        error: DecodeError,
    },
    /// An optional part of the params was invalid and was ignored.
    Tolerated {
        /// The method, by its protocol name.
        method: &'static str,
        /// What is wrong, and where.
        error: DecodeError,
    },
    /// A message is about a session that is not open here.
    UnknownSession,
    /// A request came while as many were open as the limit allows.
    TooManyRequests,
}

impl Violation {
    /// What is wrong, in words for the peer or for a person.
    pub fn rule(&self) -> &'static str {
        match self {
            Violation::NotJson => "message is not JSON",
            Violation::NotUtf8 => "message is not UTF-8",
            Violation::TooLong => "message is longer than the limit",
            Violation::NotAnObject => "message is not an object",
            Violation::NoVersion => "missing `\"jsonrpc\":\"2.0\"`",
            Violation::NoMethod => "missing or invalid `method`",
            Violation::DuplicateMember => "duplicate member in message",
            Violation::BadId => "invalid `id`: expected an integer or a string of at most 1024 bytes",
            Violation::NullId => "request id is null",
            Violation::DuplicateId => "request id is already in use",
            Violation::BadParams => "invalid `params`: expected an object or an array",
            Violation::Mixed => "message is both a request and a response",
            Violation::MalformedResponse => "response has no valid `id`, `result` or `error`",
            Violation::UnknownResponse => "response to an unknown request",
            Violation::ErrorWithoutId => "error response without a request id",
            Violation::Batch => "batches are not part of this protocol version",
            Violation::EmptyBatch => "batch is empty",
            Violation::HugeBatch => "batch has more than 1000 messages",
            Violation::BeforeInitialize => "expected `initialize` first",
            Violation::UnknownMethod => "method does not exist or was not offered",
            Violation::InvalidParams { .. } => "invalid params",
            Violation::Tolerated { .. } => "ignored an invalid part of the params",
            Violation::UnknownSession => "session is not open",
            Violation::TooManyRequests => "too many open requests",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule())?;
        match self {
            Violation::InvalidParams { method, error } | Violation::Tolerated { method, error } => {
                write!(f, ": `{method}`: {error}")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Violation {}
