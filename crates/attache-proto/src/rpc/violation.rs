//! What a peer did that it should not have done.

use std::fmt;

use crate::json::DecodeError;

/// A deviation of the peer. The conversation goes on; what is owed is answered.
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
    /// A request id is neither a string nor an integer.
    BadId,
    /// A request id is null.
    NullId,
    /// A request id is used again while the first request is still open.
    DuplicateId,
    /// `params` is neither an object nor an array.
    BadParams,
    /// A message is a request and a response at once, or has a member twice.
    Mixed,
    /// A response has no usable result, error or id.
    MalformedResponse,
    /// A response answers nothing that we asked.
    UnknownResponse,
    /// An error names no request.
    ErrorWithoutId,
    /// An array of messages came where the dialect has none.
    Batch,
    /// An array of messages is empty.
    EmptyBatch,
    /// An array holds more messages than [`MAX_BATCH`](crate::rpc::MAX_BATCH).
    HugeBatch,
    /// A request or notification came before `initialize`.
    BeforeInitialize,
    /// A method that does not exist, or that was not offered.
    UnknownMethod,
    /// The params of a method are wrong; says where and why.
    InvalidParams {
        /// The method, by its protocol name.
        method: &'static str,
        /// What was wrong.
        error: DecodeError,
    },
    /// A part of the params was wrong and was read as absent.
    Tolerated {
        /// The method, by its protocol name.
        method: &'static str,
        /// What was wrong.
        error: DecodeError,
    },
    /// A message is about a session that is not open here.
    UnknownSession,
    /// More requests are open than the limit allows.
    TooManyRequests,
}

impl Violation {
    /// The broken rule, in words that fit an answer to the peer.
    pub fn rule(&self) -> &'static str {
        match self {
            Violation::NotJson => "message is not JSON",
            Violation::NotUtf8 => "message is not UTF-8",
            Violation::TooLong => "message is longer than the limit",
            Violation::NotAnObject => "message is not a request object",
            Violation::NoVersion => "message does not say that it is JSON-RPC 2.0",
            Violation::BadId => "request id is neither a string nor an integer",
            Violation::NullId => "request id is null",
            Violation::DuplicateId => "request id is in use",
            Violation::BadParams => "params are neither an object nor an array",
            Violation::Mixed => "message is a request and a response at once, or has a member twice",
            Violation::MalformedResponse => "response has no usable result, error or id",
            Violation::UnknownResponse => "response answers no open request",
            Violation::ErrorWithoutId => "error names no request",
            Violation::Batch => "this dialect has no batches",
            Violation::EmptyBatch => "batch is empty",
            Violation::HugeBatch => "batch holds too many messages",
            Violation::BeforeInitialize => "message came before `initialize`",
            Violation::UnknownMethod => "method does not exist or was not offered",
            Violation::InvalidParams { .. } => "params are wrong",
            Violation::Tolerated { .. } => "params are wrong in a part that was let pass",
            Violation::UnknownSession => "session is not open",
            Violation::TooManyRequests => "too many requests are open",
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
