//! A tool call as it is now.

use super::{patch_meta, patch_value};
use crate::codec::record;
use crate::model::RawJson;
use crate::model::capability::ToolCallCapabilities;
use crate::model::tool::{Location, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind};

record! {
    /// A tool call as it is now.
    pub struct ToolCall {
        required {
            /// Its id.
            id: ToolCallId = "toolCallId",
        }
        optional {
            /// Its title, for people; empty until the agent gives one.
            title: String = "title" shown,
            /// The name of the tool, for programs.
            name: Option<String> = "name",
            /// The kind of tool.
            kind: ToolKind = "kind" shown,
            /// Its status.
            status: ToolCallStatus = "status" shown,
            /// Whether it counts as cancelled because the user wants to stop, and the agent has not confirmed it yet.
            presumed_cancelled: bool = "presumedCancelled",
            /// Whether the user refused what it asked permission for, as far as the client says so.
            denied: bool = "denied",
            /// What it has produced so far.
            content: Vec<ToolCallContent> = "content" shown,
            /// The files that it works on.
            locations: Vec<Location> = "locations" shown,
            /// The arguments of the tool.
            raw_input: Option<RawJson> = "rawInput",
            /// The result of the tool.
            raw_output: Option<RawJson> = "rawOutput",
            /// What the user can do to it, such as cancel it.
            capabilities: Option<ToolCallCapabilities> = "capabilities",
        }
    }
}

impl ToolCall {
    #[inline]
    pub(super) fn handle_update(&mut self, update: &ToolCallUpdate) {
        patch_value(&mut self.title, &update.title);
        update.name.clone().apply(&mut self.name);
        patch_value(&mut self.kind, &update.kind);
        patch_value(&mut self.status, &update.status);
        self.presumed_cancelled &= update.status.is_keep();
        patch_value(&mut self.content, &update.content);
        patch_value(&mut self.locations, &update.locations);
        update.raw_input.clone().apply(&mut self.raw_input);
        update.raw_output.clone().apply(&mut self.raw_output);
        update.capabilities.clone().apply(&mut self.capabilities);
        patch_meta(&mut self.meta, &update.meta);
    }

    /// Marks it as cancelled if it is known to be unfinished.
    #[inline]
    pub(super) fn presume_cancelled(&mut self) {
        if matches!(self.status, ToolCallStatus::Pending | ToolCallStatus::InProgress | ToolCallStatus::Paused) {
            self.status = ToolCallStatus::Cancelled;
            self.presumed_cancelled = true;
        }
    }
}
