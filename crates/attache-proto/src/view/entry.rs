//! The entries of a conversation.

use super::ToolCall;
use crate::codec::{Blank, Decode, Encode, model_type, record};
use crate::json::{DecodeError, Reader, Reason, Writer};
use crate::model::content::{ContentBlock, MessageId};
use crate::model::notice::{CompactionId, CompactionStatus, Notice};
use crate::model::session::SessionId;

/// An entry of the conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// A message of the user or the agent, or a thought of the agent.
    Message(Message),
    /// A tool call.
    ToolCall(Box<ToolCall>),
    /// A notice to the user.
    Notice(Notice),
    /// A compaction of the conversation up to here.
    Compaction(Compaction),
    /// A message between agents (unstable).
    PeerMessage(Box<PeerMessage>),
}

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageRole {
    /// The user.
    User,
    /// The agent.
    Agent,
    /// The agent, thinking.
    Thought,
}

record! {
    /// A message of the user or the agent, or a thought of the agent.
    pub struct Message {
        required {
            /// Who it is from.
            role: MessageRole = "role",
        }
        optional {
            /// Its id. There may be none in v1, and before the agent has reported a prompt.
            id: Option<MessageId> = "messageId",
            /// All of it so far. Text that came in pieces is one block.
            content: Vec<ContentBlock> = "content" shown,
        }
    }

    /// A compaction of the conversation.
    pub struct Compaction {
        required {
            /// Its id.
            id: CompactionId = "compactionId",
            /// Its status.
            status: CompactionStatus = "status",
        }
        optional {
            /// The summary that replaces the conversation.
            summary: Vec<ContentBlock> = "summary" shown,
            /// What went wrong.
            error: Option<String> = "error",
        }
    }

    /// A message between agents (unstable).
    pub struct PeerMessage {
        required {
            /// Its id.
            id: MessageId = "messageId",
        }
        optional {
            /// The session that sent it.
            sender_session_id: Option<SessionId> = "senderSessionId",
            /// The session that it is for.
            recipient_session_id: Option<SessionId> = "recipientSessionId",
            /// The same message in the sender's session.
            sender_message_id: Option<MessageId> = "senderMessageId",
            /// The same message in the recipient's session.
            recipient_message_id: Option<MessageId> = "recipientMessageId",
            /// All of it so far. Text that came in pieces is one block.
            content: Vec<ContentBlock> = "content" shown,
        }
    }
}

impl Message {
    /// Its text, without what is not text.
    #[inline]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// Adds a piece. Text that continues a text becomes part of it, so that a long answer stays one block.
#[inline]
pub(super) fn append(content: &mut Vec<ContentBlock>, piece: &ContentBlock) {
    if let (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) = (content.last_mut(), piece)
        && last.annotations == next.annotations
        && last.meta == next.meta
    {
        last.text.push_str(&next.text);
        return;
    }
    content.push(piece.clone());
}

impl MessageRole {
    /// The name in snapshots.
    #[inline]
    pub fn as_str(self) -> &'static str {
        match self {
            MessageRole::User => "user",
            MessageRole::Agent => "agent",
            MessageRole::Thought => "thought",
        }
    }
}

impl Blank for MessageRole {
    fn blank() -> Self {
        MessageRole::User
    }
}

impl Decode for MessageRole {
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match &*reader.string()? {
            "user" => Ok(MessageRole::User),
            "agent" => Ok(MessageRole::Agent),
            "thought" => Ok(MessageRole::Thought),
            _ => Err(DecodeError::new(Reason::Expected("a role"))),
        }
    }
}

impl Encode for MessageRole {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(self.as_str());
    }
}

model_type!(MessageRole);
