//! Files that a v1 client reads and writes for the agent.

use super::session::SessionId;
use crate::codec::record;

record! {
    /// Reads a text file, with what the editor has not saved yet.
    pub struct ReadTextFileRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The file, absolute.
            path: String = "path",
        }
        optional {
            /// The first line to read, counted from 1.
            line: Option<u32> = "line" strict,
            /// How many lines to read.
            limit: Option<u32> = "limit" strict,
        }
    }

    /// What is in the file.
    pub struct ReadTextFileResponse {
        required {
            /// The text.
            content: String = "content",
        }
    }

    /// Writes a text file.
    pub struct WriteTextFileRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The file, absolute.
            path: String = "path",
            /// All of its text.
            content: String = "content",
        }
    }

    /// The file is written.
    pub struct WriteTextFileResponse {}
}
