//! The view as JSON. The layout is a promise; it is told at [`SessionView`].

use super::{Entry, SessionView};
use crate::codec::Encode;
use crate::json::{RawJson, Writer};

impl Encode for SessionView {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_object();
        list(writer, "timeline", self.timeline());
        list(writer, "plans", &self.plans);
        list(writer, "terminals", self.terminals.values());
        list(writer, "subagents", self.subagents.values());
        list(writer, "availableCommands", &self.commands);
        list(writer, "configOptions", &self.options);
        list(writer, "availableModes", &self.modes);
        optional(writer, "currentModeId", &self.current_mode);
        optional(writer, "title", &self.title);
        optional(writer, "updatedAt", &self.updated_at);
        optional(writer, "usage", &self.usage);
        required(writer, "state", &self.state);
        optional(writer, "background", &self.background);
        optional(writer, "stopReason", &self.stop_reason);
        optional(writer, "error", &self.error);
        optional(writer, "turnUsage", &self.turn_usage);
        if self.unknown_count > 0 {
            writer.key("unknown");
            writer.begin_object();
            required(writer, "count", &self.unknown_count);
            list(writer, "last", &self.unknown);
            writer.end_object();
        }
        optional(writer, "_meta", &self.meta);
        writer.end_object();
    }
}

impl Encode for Entry {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_object();
        writer.key("type");
        match self {
            Entry::Message(message) => {
                writer.string("message");
                message.encode_fields(writer);
            }
            Entry::ToolCall(call) => {
                writer.string("tool_call");
                call.encode_fields(writer);
            }
            Entry::Notice(notice) => {
                writer.string("notice");
                notice.encode_fields(writer);
            }
            Entry::Compaction(compaction) => {
                writer.string("compaction");
                compaction.encode_fields(writer);
            }
            Entry::PeerMessage(message) => {
                writer.string("session_message");
                message.encode_fields(writer);
            }
        }
        writer.end_object();
    }
}

impl serde::Serialize for SessionView {
    #[inline]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.snapshot().serialize(serializer)
    }
}

impl serde::Serialize for Entry {
    #[inline]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawJson::from_model(self).serialize(serializer)
    }
}

#[inline]
fn required<T: Encode>(writer: &mut Writer<'_>, key: &str, value: &T) {
    writer.key(key);
    value.encode(writer);
}

#[inline]
fn optional<T: Encode>(writer: &mut Writer<'_>, key: &str, value: &Option<T>) {
    if let Some(value) = value {
        required(writer, key, value);
    }
}

#[inline]
fn list<'a, T: Encode + 'a>(writer: &mut Writer<'_>, key: &str, values: impl IntoIterator<Item = &'a T>) {
    writer.key(key);
    writer.begin_array();
    for value in values {
        writer.item();
        value.encode(writer);
    }
    writer.end_array();
}
