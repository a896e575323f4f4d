//! News beside the conversation: notices and compaction.

use super::Patch;
use super::content::ContentBlock;
use crate::codec::{ids, record, string_enum};

ids! {
    /// A compaction of the conversation, named by the agent.
    pub struct CompactionId;
}

record! {
    /// Something to tell the user beside the conversation.
    pub struct Notice {
        required {
            /// How bad it is.
            severity: NoticeSeverity = "severity",
            /// What it is, in one line.
            title: String = "title",
        }
        optional {
            /// More about it.
            description: Option<String> = "description",
        }
    }

    /// What is new about a compaction of the conversation.
    pub struct CompactionUpdate upsert {
        required {
            /// The compaction.
            compaction_id: CompactionId = "compactionId",
            /// How far it is.
            status: CompactionStatus = "status",
        }
        optional {
            /// The summary that takes the conversation's place.
            summary: Patch<Vec<ContentBlock>> = "summary" list null,
            /// What went wrong.
            error: Patch<String> = "error" null,
        }
    }

    /// A piece of the summary that takes the conversation's place.
    pub struct CompactionSummaryChunk {
        required {
            /// The compaction.
            compaction_id: CompactionId = "compactionId",
            /// The piece.
            content: ContentBlock = "content",
        }
    }
}

string_enum! {
    /// How bad something is.
    pub enum NoticeSeverity {
        /// Good to know.
        Info = "info",
        /// Something to look at.
        Warning = "warning",
        /// Something went wrong.
        Error = "error",
    }

    /// How far a compaction is.
    pub enum CompactionStatus {
        /// It runs.
        InProgress = "in_progress",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}
