//! Tool calls: what the agent does, as the user sees it.

use super::RawJson;
use super::capability::ToolCallCapabilities;
use super::content::ContentBlock;
use super::diff::Diff;
use super::session::SessionId;
use super::terminal::TerminalId;
use crate::Dialect;
use crate::codec::{Encode, ids, record, string_enum, union};
use crate::json::Writer;
use crate::model::Patch;

ids! {
    /// A tool call, named by the agent, unique in its session.
    pub struct ToolCallId;
}

record! {
    /// What is new about a tool call. An id not seen before begins one.
    pub struct ToolCallUpdate v2_upsert {
        required {
            /// The tool call.
            tool_call_id: ToolCallId = "toolCallId",
        }
        optional {
            /// What it does, for people.
            title: Patch<String> = "title",
            /// The name of the tool, for programs.
            name: Patch<String> = "name",
            /// What sort of thing it does.
            kind: Patch<ToolKind> = "kind",
            /// How far it is.
            status: Patch<ToolCallStatus> = "status",
            /// What it produced.
            content: Patch<Vec<ToolCallContent>> = "content" list,
            /// The files that it works on.
            locations: Patch<Vec<Location>> = "locations" list,
            /// What the model gave the tool.
            raw_input: Patch<RawJson> = "rawInput",
            /// What the tool gave back.
            raw_output: Patch<RawJson> = "rawOutput",
            /// What the client can ask of it.
            capabilities: Patch<ToolCallCapabilities> = ["", "", "capabilities"],
        }
    }

    /// One more piece of what a tool call produced.
    pub struct ToolCallContentChunk {
        required {
            /// The tool call.
            tool_call_id: ToolCallId = "toolCallId",
            /// The piece.
            content: ToolCallContent = "content",
        }
    }

    /// Content like that of a message.
    pub struct ToolCallBlock {
        required {
            /// The content.
            content: ContentBlock = "content",
        }
    }

    /// A terminal to show.
    pub struct ToolCallTerminal {
        required {
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// A place in a file.
    pub struct Location {
        required {
            /// The file, absolute.
            path: String = "path",
        }
        optional {
            /// The line, counted from 1.
            line: Option<u32> = "line",
        }
    }

    /// Asks to cancel a tool call. The answer says only that it was understood.
    pub struct CancelToolCallRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The tool call.
            tool_call_id: ToolCallId = "toolCallId",
        }
    }

    /// The tool call is being cancelled.
    pub struct CancelToolCallResponse {}
}

union! {
    /// Something that a tool call produced.
    pub enum ToolCallContent tag "type" without [Encode] {
        /// Content like that of a message.
        Content(ToolCallBlock) = "content",
        /// A change of files.
        Diff(Diff) boxed = "diff",
        /// A terminal.
        Terminal(ToolCallTerminal) = "terminal" in [V1, V2],
    }
}

impl ToolCallContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolCallContent::Content(ToolCallBlock::new(ContentBlock::text(text)))
    }
}

impl From<ContentBlock> for ToolCallContent {
    fn from(content: ContentBlock) -> Self {
        ToolCallContent::Content(ToolCallBlock::new(content))
    }
}

impl Encode for ToolCallContent {
    fn encode(&self, writer: &mut Writer<'_>) {
        let old = writer.dialect() != Dialect::V2;
        match self {
            // The old form has one file and both its texts. A patch that does not tell them is shown as text.
            ToolCallContent::Diff(diff) if old && diff.to_text().is_none() => {
                writer.lose("changes");
                ToolCallContent::text(diff.to_markdown()).encode(writer);
            }
            ToolCallContent::Other(unknown) => unknown.encode(writer),
            content => {
                writer.begin_object();
                content.encode_fields(writer);
                writer.end_object();
            }
        }
    }
}

string_enum! {
    /// What sort of thing a tool does.
    pub enum ToolKind {
        /// Reads.
        Read = "read",
        /// Changes files.
        Edit = "edit",
        /// Deletes.
        Delete = "delete",
        /// Moves or renames.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs a command.
        Execute = "execute",
        /// Thinks.
        Think = "think",
        /// Fetches from elsewhere.
        Fetch = "fetch",
        /// Changes the mode of the session.
        SwitchMode = "switch_mode",
        /// Anything else.
        Generic = "other",
    }

    /// How far a tool call is.
    pub enum ToolCallStatus {
        /// Not begun.
        Pending = "pending",
        /// Running.
        InProgress = "in_progress",
        /// Held up, to go on later.
        Paused = "paused",
        /// Done.
        Completed = "completed",
        /// Ended with an error.
        Failed = "failed",
        /// Stopped.
        Cancelled = "cancelled",
    }
}

/// What a tool call is of that says nothing else.
impl Default for ToolKind {
    fn default() -> Self {
        ToolKind::Generic
    }
}

/// What a tool call is that says nothing else.
impl Default for ToolCallStatus {
    fn default() -> Self {
        ToolCallStatus::Pending
    }
}

impl ToolCallStatus {
    /// Whether nothing more will come of it.
    pub fn is_final(&self) -> bool {
        matches!(self, ToolCallStatus::Completed | ToolCallStatus::Failed | ToolCallStatus::Cancelled)
    }
}
