//! Agents that work for an agent, and their messages (unstable).

use super::{ContentBlock, MessageId, Patch, SessionId, StateUpdate, SubagentCapabilities};
use crate::codec::record;

record! {
    /// What is new about a subagent. A session not seen before begins one (unstable).
    pub struct SubagentUpdate upsert {
        required {
            /// The subagent's session.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// What it does, in one line.
            title: Patch<String> = ClearableUpsert "title",
            /// More about it.
            description: Patch<String> = ClearableUpsert "description",
            /// What it can be told.
            capabilities: Patch<SubagentCapabilities> = ClearableUpsert "capabilities",
            /// What it is doing.
            state: Patch<StateUpdate> = ClearableUpsert "state",
            /// The directory that it works in, absolute.
            cwd: Patch<String> = StrictUpsert "cwd",
            /// More directories that it works in, absolute.
            additional_directories: Patch<Vec<String>> = StrictUpsert "additionalDirectories",
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
            sender_session_id: Patch<SessionId> = ClearableUpsert "senderSessionId",
            /// The session that it is for.
            recipient_session_id: Patch<SessionId> = ClearableUpsert "recipientSessionId",
            /// The same message in the sender's session.
            sender_message_id: Patch<MessageId> = ClearableUpsert "senderMessageId",
            /// The same message in the recipient's session.
            recipient_message_id: Patch<MessageId> = ClearableUpsert "recipientMessageId",
            /// All of it.
            content: Patch<Vec<ContentBlock>> = ClearableList "content",
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
