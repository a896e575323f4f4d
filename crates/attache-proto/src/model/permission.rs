//! Asking the user whether something may be done.

use super::session::SessionId;
use super::terminal::TerminalId;
use super::tool::{ToolCallId, ToolCallUpdate, ToolKind};
use super::{Meta, Patch};
use crate::Dialect;
use crate::codec::{Blank, Decode, Encode, ReadInPlace, ids, model_type, read_over, record, string_enum, union};
use crate::json::{DecodeError, Reader, Reason, Writer};

ids! {
    /// A choice in a permission request, named by the agent.
    pub struct PermissionOptionId;
}

/// Asks the user whether something may be done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The question. v1 has none: there it is read from the tool call, and written nowhere.
    pub title: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// What is to be done.
    pub subject: Option<PermissionSubject>,
    /// The answers to choose from.
    pub options: Vec<PermissionOption>,
    /// Custom metadata (`_meta`), kept as it came.
    pub meta: Option<Meta>,
}

impl PermissionRequest {
    /// A question that can be answered in these ways.
    pub fn new(session_id: impl Into<SessionId>, options: impl Into<Vec<PermissionOption>>) -> Self {
        PermissionRequest {
            session_id: session_id.into(),
            title: None,
            description: None,
            subject: None,
            options: options.into(),
            meta: None,
        }
    }

    record! { @setter [pub] [#[doc = "The question."]] title Option<String> }
    record! { @setter [pub] [#[doc = "More about it."]] description Option<String> }
    record! { @setter [pub] [#[doc = "What is to be done."]] subject Option<PermissionSubject> }
    record! { @setter [pub] [#[doc = "Custom metadata (`_meta`)."]] meta Option<Meta> }
    record! { @with [pub] }

    /// The tool call that the question is about.
    pub fn tool_call(&self) -> Option<&ToolCallUpdate> {
        match &self.subject {
            Some(PermissionSubject::ToolCall(subject)) => Some(&subject.tool_call),
            _ => None,
        }
    }

    /// A title for those who need one.
    fn title_or_default(&self) -> String {
        let subject = || match self.subject.as_ref()? {
            PermissionSubject::ToolCall(subject) => subject.tool_call.title.set().cloned(),
            PermissionSubject::Command(subject) => Some(subject.command.clone()),
            PermissionSubject::Other(_) => None,
        };
        self.title.clone().or_else(subject).unwrap_or_else(|| "Permission needed".into())
    }

    /// The subject as a tool call, which is all that v1 can ask about.
    fn as_tool_call(&self) -> ToolCallUpdate {
        match &self.subject {
            Some(PermissionSubject::ToolCall(subject)) => subject.tool_call.clone(),
            Some(PermissionSubject::Command(subject)) => ToolCallUpdate {
                title: Patch::Set(subject.command.clone()),
                kind: Patch::Set(ToolKind::Execute),
                ..ToolCallUpdate::new(subject.tool_call_id.clone().unwrap_or_else(|| "command".into()))
            },
            Some(PermissionSubject::Other(_)) | None => {
                ToolCallUpdate { title: Patch::Set(self.title_or_default()), ..ToolCallUpdate::new("permission") }
            }
        }
    }
}

record! {
    struct PermissionWire {
        required {
            session_id: SessionId = "sessionId",
            options: Vec<PermissionOption> = "options",
        }
        optional {
            title: Option<String> = "title" strict,
            description: Option<String> = ["", "", "description"],
            subject: Option<PermissionSubject> = ["", "", "subject"] strict,
            tool_call: Option<ToolCallUpdate> = ["toolCall", "toolCall", ""] strict,
        }
    }

    /// A tool call that needs permission.
    pub struct ToolCallSubject {
        required {
            /// What is new about the tool call.
            tool_call: ToolCallUpdate = "toolCall",
        }
    }

    /// A command that needs permission.
    pub struct CommandSubject {
        required {
            /// The command.
            command: String = "command",
            /// The directory to run it in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// The tool call that runs it.
            tool_call_id: Option<ToolCallId> = "toolCallId",
            /// The terminal that it runs in.
            terminal_id: Option<TerminalId> = "terminalId",
        }
    }

    /// An answer to choose.
    pub struct PermissionOption {
        required {
            /// Its id.
            option_id: PermissionOptionId = "optionId",
            /// Its name to show.
            name: String = "name",
            /// What it means.
            kind: PermissionOptionKind = "kind",
        }
    }

    /// The user's answer.
    pub struct PermissionResponse {
        required {
            /// The answer.
            outcome: PermissionOutcome = "outcome",
        }
    }

    /// Nobody chose.
    pub struct PermissionCancelled {}

    /// The user chose.
    pub struct PermissionSelected {
        required {
            /// The answer that was chosen.
            option_id: PermissionOptionId = "optionId",
        }
    }
}

union! {
    /// What is to be done.
    pub enum PermissionSubject tag "type" {
        /// A tool call.
        ToolCall(ToolCallSubject) boxed = "tool_call",
        /// A command.
        Command(CommandSubject) = "command",
    }

    /// What the user decided. Only a selected answer that allows is approval.
    pub enum PermissionOutcome tag "outcome" {
        /// Nobody chose.
        Cancelled(PermissionCancelled) = "cancelled",
        /// The user chose.
        Selected(PermissionSelected) = "selected",
    }
}

impl PermissionSubject {
    /// A tool call.
    pub fn tool_call(tool_call: ToolCallUpdate) -> Self {
        ToolCallSubject::new(tool_call).into()
    }
}

impl PermissionOutcome {
    /// Nobody chose.
    pub fn cancelled() -> Self {
        PermissionCancelled::new().into()
    }

    /// The user chose this.
    pub fn selected(option_id: impl Into<PermissionOptionId>) -> Self {
        PermissionSelected::new(option_id).into()
    }
}

string_enum! {
    /// What an answer means.
    pub enum PermissionOptionKind {
        /// Yes, this time.
        AllowOnce = "allow_once",
        /// Yes, and do not ask again.
        AllowAlways = "allow_always",
        /// No, this time.
        RejectOnce = "reject_once",
        /// No, and do not ask again.
        RejectAlways = "reject_always",
    }
}

impl PermissionOptionKind {
    /// Whether it is a yes. What we do not know is none.
    pub fn is_allow(&self) -> bool {
        matches!(self, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
    }
}

impl Blank for PermissionRequest {
    fn blank() -> Self {
        PermissionRequest::new(SessionId::blank(), [])
    }
}

impl ReadInPlace for PermissionRequest {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        read_over(self, reader)
    }
}

impl Decode for PermissionRequest {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let PermissionWire { session_id, options, mut title, description, mut subject, tool_call, meta } =
            PermissionWire::decode(reader)?;
        match tool_call {
            Some(tool_call) => {
                title = title.or_else(|| tool_call.title.set().cloned());
                subject.get_or_insert_with(|| PermissionSubject::tool_call(tool_call));
            }
            None if title.is_none() => {
                let field = if reader.dialect() == Dialect::V2 { "title" } else { "toolCall" };
                return Err(DecodeError::new(Reason::Missing).in_field(field));
            }
            None => {}
        }
        Ok(PermissionRequest { session_id, title, description, subject, options, meta })
    }
}

impl Encode for PermissionRequest {
    fn encode(&self, writer: &mut Writer<'_>) {
        let PermissionRequest { session_id, title, description, subject, options, meta } = self.clone();
        let mut wire = PermissionWire { session_id, options, title, description, subject, tool_call: None, meta };
        if writer.dialect() == Dialect::V2 {
            wire.title = Some(self.title_or_default());
        } else {
            let tool_call = self.as_tool_call();
            if wire.title.take().is_some_and(|title| tool_call.title.set() != Some(&title)) {
                writer.lose("title");
            }
            if matches!(wire.subject.take(), Some(PermissionSubject::Other(_))) {
                writer.lose("subject");
            }
            wire.tool_call = Some(tool_call);
        }
        wire.encode(writer);
    }
}

model_type!(PermissionRequest);
