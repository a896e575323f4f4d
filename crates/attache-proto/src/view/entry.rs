//! What the conversation is made of.

use super::ToolCall;
use crate::codec::{Decode, Encode, record, serde_through_json};
use crate::json::{DecodeError, Reader, Reason, Writer};
use crate::model::{CompactionId, CompactionStatus, ContentBlock, MessageId, Notice, SessionId};

/// One thing in the conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// Something said or thought.
    Message(Message),
    /// Something done.
    ToolCall(Box<ToolCall>),
    /// Something to tell the user beside the conversation.
    Notice(Notice),
    /// The conversation up to here was compacted, or is being so.
    Compaction(Compaction),
    /// A message between agents (unstable).
    PeerMessage(Box<PeerMessage>),
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageRole {
    /// The user says it.
    User,
    /// The agent says it.
    Agent,
    /// The agent thinks it.
    Thought,
}

record! {
    /// Something said or thought.
    pub struct Message {
        required {
            /// Whose message it is.
            role: MessageRole = "role",
        }
        optional {
            /// Its id. In v1, and before the agent has told of a prompt, there may be none.
            id: Option<MessageId> = Lenient "messageId",
            /// All of it so far. Text that came in pieces is one block.
            content: Vec<ContentBlock> = Shown "content",
        }
    }

    /// A compaction of the conversation.
    pub struct Compaction {
        required {
            /// Its id.
            id: CompactionId = "compactionId",
            /// How far it is.
            status: CompactionStatus = "status",
        }
        optional {
            /// The summary that takes the conversation's place.
            summary: Vec<ContentBlock> = Shown "summary",
            /// What went wrong.
            error: Option<String> = Lenient "error",
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
            sender_session_id: Option<SessionId> = Lenient "senderSessionId",
            /// The session that it is for.
            recipient_session_id: Option<SessionId> = Lenient "recipientSessionId",
            /// The same message in the sender's session.
            sender_message_id: Option<MessageId> = Lenient "senderMessageId",
            /// The same message in the recipient's session.
            recipient_message_id: Option<MessageId> = Lenient "recipientMessageId",
            /// All of it so far. Text that came in pieces is one block.
            content: Vec<ContentBlock> = Shown "content",
        }
    }
}

impl Message {
    /// All its text; what is no text is left out.
    #[inline]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// Adds a piece to what is there. Text that continues a text grows it, so that a long answer stays one block.
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

serde_through_json!(MessageRole);
