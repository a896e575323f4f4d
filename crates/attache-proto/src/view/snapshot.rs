//! The view as JSON. The layout is a promise; it is described at [`SessionView`].

use std::collections::VecDeque;

use super::{
    Compaction, ContextUsage, Entry, Message, PeerMessage, SessionState, SessionView, Subagent, Terminal, ToolCall,
};
use crate::codec::{Decode, Encode, model_type, peek_field, record};
use crate::json::{DecodeError, RawJson, Reader, Reason, Writer};
use crate::model::command::AvailableCommand;
use crate::model::config::ConfigOption;
use crate::model::error::ErrorObject;
use crate::model::notice::Notice;
use crate::model::plan::PlanContent;
use crate::model::prompt::StopReason;
use crate::model::session::{Mode, ModeId};
use crate::model::state::BackgroundWork;
use crate::model::unstable::Usage;
use crate::model::{Meta, Unknown};

impl Encode for SessionView {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_object();
        list(writer, "timeline", self.timeline());
        self.encode_beside(writer);
        writer.end_object();
    }
}

/// All of a view but the timeline.
pub(super) struct Beside<'a>(pub(super) &'a SessionView);

impl Encode for Beside<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_object();
        self.0.encode_beside(writer);
        writer.end_object();
    }
}

impl SessionView {
    #[inline]
    fn encode_beside(&self, writer: &mut Writer<'_>) {
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
        if self.omitted > 0 {
            required(writer, "omitted", &self.omitted);
        }
        optional(writer, "_meta", &self.meta);
    }
}

record! {
    struct Snapshot bare {
        optional {
            timeline: Vec<Entry> = "timeline" list,
            plans: Vec<PlanContent> = "plans" list,
            terminals: Vec<Terminal> = "terminals" list,
            subagents: Vec<Subagent> = "subagents" list,
            commands: Vec<AvailableCommand> = "availableCommands" list,
            options: Vec<ConfigOption> = "configOptions" list,
            modes: Vec<Mode> = "availableModes" list,
            current_mode: Option<ModeId> = "currentModeId",
            title: Option<String> = "title",
            updated_at: Option<String> = "updatedAt",
            usage: Option<ContextUsage> = "usage",
            state: SessionState = "state",
            background: Option<Vec<BackgroundWork>> = "background",
            stop_reason: Option<StopReason> = "stopReason",
            error: Option<ErrorObject> = "error",
            turn_usage: Option<Usage> = "turnUsage",
            unknown: UnknownUpdates = "unknown",
            omitted: u64 = "omitted",
            meta: Option<Meta> = "_meta",
        }
    }

    struct UnknownUpdates bare {
        optional {
            count: u64 = "count",
            last: Vec<RawJson> = "last" list,
        }
    }
}

impl Decode for SessionView {
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let snapshot = Snapshot::decode(reader)?;
        let unknown = |raw: RawJson| {
            let tag: String = raw.get("sessionUpdate").and_then(|tag| tag.to_model().ok()).unwrap_or_default();
            Unknown::new(&tag, raw)
        };
        let mut view = SessionView {
            plans: snapshot.plans,
            terminals: snapshot.terminals.into_iter().map(|terminal| (terminal.id.clone(), terminal)).collect(),
            subagents: snapshot.subagents.into_iter().map(|agent| (agent.session_id.clone(), agent)).collect(),
            commands: snapshot.commands,
            options: snapshot.options,
            modes: snapshot.modes,
            current_mode: snapshot.current_mode,
            title: snapshot.title,
            updated_at: snapshot.updated_at,
            meta: snapshot.meta,
            usage: snapshot.usage,
            state: snapshot.state,
            background: snapshot.background,
            stop_reason: snapshot.stop_reason,
            error: snapshot.error,
            turn_usage: snapshot.turn_usage,
            unknown: snapshot.unknown.last.into_iter().map(unknown).collect::<VecDeque<_>>(),
            unknown_count: snapshot.unknown.count,
            omitted: snapshot.omitted,
            ..SessionView::default()
        };
        for entry in snapshot.timeline {
            view.timeline.restore(entry);
        }
        view.recount();
        Ok(view)
    }
}

impl Decode for Entry {
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let tag: Option<String> = peek_field(reader, "type")?;
        match tag.as_deref() {
            Some("message") => Message::decode(reader).map(Entry::Message),
            Some("tool_call") => ToolCall::decode(reader).map(|call| Entry::ToolCall(call.into())),
            Some("notice") => Notice::decode(reader).map(Entry::Notice),
            Some("compaction") => Compaction::decode(reader).map(Entry::Compaction),
            Some("session_message") => PeerMessage::decode(reader).map(|message| Entry::PeerMessage(message.into())),
            Some(_) => Err(DecodeError::new(Reason::Expected("the type of an entry")).in_field("type")),
            None => Err(DecodeError::new(Reason::Missing).in_field("type")),
        }
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

model_type!(SessionView);
model_type!(Entry);

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
