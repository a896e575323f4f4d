//! Agents that work for an agent, and their messages (unstable).

use crate::codec::record;
use crate::model::Patch;
use crate::model::capability::CancelCapabilities;
use crate::model::content::{ContentBlock, MessageId};
use crate::model::session::SessionId;
use crate::model::state::StateUpdate;

record! {
    /// What is new about a subagent. A session not seen before begins one (unstable).
    pub struct SubagentUpdate upsert {
        required {
            /// The subagent's session.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// What it does, in one line.
            title: Patch<String> = "title" null,
            /// More about it.
            description: Patch<String> = "description" null,
            /// What the client can ask of it.
            capabilities: Patch<SubagentCapabilities> = "capabilities" null,
            /// What it is doing.
            state: Patch<StateUpdate> = "state" null,
            /// The directory that it works in, absolute.
            cwd: Patch<String> = "cwd" strict null,
            /// More directories that it works in, absolute.
            additional_directories: Patch<Vec<String>> = "additionalDirectories" strict null,
        }
    }

    /// What is new about a message between sessions (unstable).
    pub struct SessionMessage upsert {
        required {
            /// The message.
            message_id: MessageId = "messageId",
        }
        optional {
            /// The session that sent it.
            sender_session_id: Patch<SessionId> = "senderSessionId" null,
            /// The session that it is for.
            recipient_session_id: Patch<SessionId> = "recipientSessionId" null,
            /// The same message in the sender's session.
            sender_message_id: Patch<MessageId> = "senderMessageId" null,
            /// The same message in the recipient's session.
            recipient_message_id: Patch<MessageId> = "recipientMessageId" null,
            /// All of it.
            content: Patch<Vec<ContentBlock>> = "content" list null,
        }
    }

    /// One more piece of a message between sessions (unstable).
    pub struct SessionMessageChunk {
        required {
            /// The message.
            message_id: MessageId = "messageId",
            /// The piece.
            content: ContentBlock = "content",
        }
    }
}

/// What the client can ask of a subagent: see [`CancelCapabilities`].
pub type SubagentCapabilities = CancelCapabilities;

record! {
    /// A subagent that goes on beside the conversation (unstable).
    pub struct BackgroundSubagent {
        required {
            /// Its session.
            session_id: SessionId = "sessionId",
        }
    }
}
