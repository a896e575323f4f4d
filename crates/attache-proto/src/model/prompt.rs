//! A turn's two ends: the prompt and its answer.

use super::Meta;
use super::content::{ContentBlock, MessageId};
use super::session::SessionId;
use super::unstable::Usage;
use crate::Dialect;
use crate::codec::{Decode, Encode, model_type, record, string_enum};
use crate::json::{DecodeError, Reader, Reason, Writer};

record! {
    /// What the user says.
    pub struct PromptRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The message.
            prompt: Vec<ContentBlock> = "prompt",
        }
    }

    /// Stops what a session is doing.
    pub struct CancelNotification {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    struct PromptAnswer {
        optional {
            stop_reason: Option<StopReason> = ["stopReason", "stopReason", "-"] strict,
            message_id: Option<MessageId> = ["-", "-", "messageId"] strict,
            usage: Option<Usage> = ["usage", "", "-"],
        }
    }
}

/// The answer to a prompt: in v1 and the draft of v2 it ends the turn, since then it says that the message was taken.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PromptResponse {
    /// Why the turn ended. Written in v1 and the draft, where an absent one is written as `end_turn`.
    pub stop_reason: Option<StopReason>,
    /// The id of the user's message. Written in v2; snapshots of v2 before September 2026 leave it out.
    pub message_id: Option<MessageId>,
    /// The tokens that the turn took (unstable). Written in v1; v2 has it in the state update.
    pub usage: Option<Usage>,
    /// Custom metadata (`_meta`), kept as it came.
    pub meta: Option<Meta>,
}

impl PromptResponse {
    record! { @setter [pub] [#[doc = "Why the turn ended."]] stop_reason Option<StopReason> }
    record! { @setter [pub] [#[doc = "The id of the user's message."]] message_id Option<MessageId> }
    record! { @setter [pub] [#[doc = "The tokens that the turn took (unstable)."]] usage Option<Usage> }
    record! { @setter [pub] [#[doc = "Custom metadata (`_meta`)."]] meta Option<Meta> }
    record! { @with [pub] }

    /// The turn ended.
    pub fn ended(stop_reason: StopReason) -> Self {
        PromptResponse { stop_reason: Some(stop_reason), ..PromptResponse::default() }
    }

    /// The message was taken.
    pub fn inserted(message_id: impl Into<MessageId>) -> Self {
        PromptResponse { message_id: Some(message_id.into()), ..PromptResponse::default() }
    }
}

impl Decode for PromptResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let PromptAnswer { stop_reason, message_id, usage, meta } = PromptAnswer::decode(reader)?;
        let missing = match reader.dialect() {
            Dialect::V1 => stop_reason.is_none(),
            Dialect::V2Draft => stop_reason.is_none() && message_id.is_none(),
            Dialect::V2 => false,
        };
        if missing {
            return Err(DecodeError::new(Reason::Missing).in_field("stopReason"));
        }
        Ok(PromptResponse { stop_reason, message_id, usage, meta })
    }
}

impl Encode for PromptResponse {
    fn encode(&self, writer: &mut Writer<'_>) {
        let PromptResponse { mut stop_reason, message_id, usage, meta } = self.clone();
        if writer.dialect() != Dialect::V2 {
            stop_reason.get_or_insert(StopReason::EndTurn);
        }
        PromptAnswer { stop_reason, message_id, usage, meta }.encode(writer);
    }
}

model_type!(PromptResponse);

string_enum! {
    /// Why a turn ended.
    pub enum StopReason {
        /// The model was done.
        EndTurn = "end_turn",
        /// The model had no tokens left.
        MaxTokens = "max_tokens",
        /// The limit of model requests per turn was reached.
        MaxTurnRequests = "max_turn_requests",
        /// The agent declined.
        Refusal = "refusal",
        /// The user or the client stopped it.
        Cancelled = "cancelled",
        /// Something went wrong. Only v2 has it; in v1 the prompt itself fails.
        Error = "error",
    }
}
