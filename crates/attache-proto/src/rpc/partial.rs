//! What can be told of a message that cannot be read to its end.

use super::MAX_BATCH;
use crate::Dialect;
use crate::codec::Decode;
use crate::json::{DecodeError, Reader};
use crate::model::request::RequestId;

/// A message of which only the beginning could be read: the rest is too long, or is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialMessage {
    id: Option<RequestId>,
    has_method_or_params: bool,
    has_result_or_error: bool,
}

impl PartialMessage {
    /// Reads as much as there is of a message, or of each message of a batch.
    pub fn parse(start: &str) -> Partial {
        let mut reader = Reader::new(start, Dialect::V1);
        let mut messages = Vec::new();
        let is_batch = reader.begin_array().is_ok();
        // An error means that there is no more to be read.
        let _ = if is_batch {
            read_batch(&mut reader, &mut messages)
        } else if reader.begin_object().is_ok() {
            read_message(&mut reader, &mut messages)
        } else {
            Ok(())
        };
        Partial { is_batch, messages }
    }

    /// The id, when it was read.
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Whether it is a request or a notification.
    pub fn has_method(&self) -> bool {
        self.has_method_or_params
    }

    /// Whether it answers a request.
    pub fn is_response(&self) -> bool {
        self.has_result_or_error && !self.has_method_or_params
    }
}

/// The messages of a frame of which only the beginning could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Whether it is an array of messages.
    pub is_batch: bool,
    /// The messages, in order; of the last one something may be missing.
    pub messages: Vec<PartialMessage>,
}

fn read_batch(reader: &mut Reader<'_>, messages: &mut Vec<PartialMessage>) -> Result<(), DecodeError> {
    let mut first = true;
    while reader.next_item(&mut first)? && messages.len() < MAX_BATCH {
        match reader.begin_object() {
            Ok(()) => read_message(reader, messages)?,
            Err(_) => reader.skip()?,
        }
    }
    Ok(())
}

/// Reads a message whose bracket has been read.
fn read_message(reader: &mut Reader<'_>, messages: &mut Vec<PartialMessage>) -> Result<(), DecodeError> {
    let at = messages.len();
    messages.push(PartialMessage::default());
    let message = &mut messages[at];
    let mut first = true;
    while let Some(key) = reader.next_key(&mut first)? {
        match &*key {
            "id" => {
                let id = reader.attempt(RequestId::decode)?.ok();
                // A number at the very end may be the beginning of a longer one.
                message.id = id.filter(|_| reader.end().is_err());
                continue;
            }
            "method" | "params" => message.has_method_or_params = true,
            "result" | "error" => message.has_result_or_error = true,
            _ => {}
        }
        reader.skip()?;
    }
    Ok(())
}
