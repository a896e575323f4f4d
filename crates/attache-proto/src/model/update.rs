//! Updates of a session, from the agent to the client.

use super::command::AvailableCommand;
use super::config::ConfigOption;
use super::content::{ContentBlock, MessageId};
use super::notice::{CompactionSummaryChunk, CompactionUpdate, Notice};
use super::plan::{PlanEntries, PlanItems, PlanUpdate};
use super::session::{ModeId, SessionId};
use super::state::StateUpdate;
use super::terminal::{TerminalOutputChunk, TerminalUpdate};
use super::tool::{ToolCallContentChunk, ToolCallUpdate};
use super::unstable::{PlanRemoved, SessionMessage, SessionMessageChunk, SubagentUpdate};
use super::{Meta, Patch};
use std::borrow::Cow;

use crate::Dialect;
use crate::codec::{Decode, Encode, record, union};
use crate::json::{DecodeError, PathSegment, Reader, Reason, Writer};

record! {
    /// An update of a session.
    pub struct SessionNotification {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The news.
            update: SessionUpdate = "update",
        }
    }

    /// One more piece of a message.
    pub struct MessageChunk {
        required {
            /// The piece.
            content: ContentBlock = "content",
        }
        optional {
            /// The message. Optional in v1; since v2 its absence is a violation, and the chunk is kept.
            message_id: Option<MessageId> = "messageId" expected_since_v2,
        }
    }

    /// What is new about a message. An id not seen before begins one.
    pub struct MessageUpdate upsert {
        required {
            /// The message.
            message_id: MessageId = "messageId",
        }
        optional {
            /// All of it.
            content: Patch<Vec<ContentBlock>> = "content" list,
        }
    }

    /// The commands that there are now.
    pub struct CommandsUpdate {
        required {
            /// All of them.
            available_commands: Vec<AvailableCommand> = "availableCommands" list,
        }
    }

    /// The mode that the session is in now.
    pub struct ModeUpdate {
        required {
            /// The mode. One page of the official text calls it `modeId`.
            current_mode_id: ModeId = ["currentModeId", "currentModeId", "currentModeId" or "modeId"],
        }
    }

    /// The configuration options as they are now.
    pub struct ConfigOptionsUpdate {
        required {
            /// All of them.
            config_options: Vec<ConfigOption> = "configOptions" list,
        }
    }

    /// What is new about the session itself.
    pub struct SessionInfoUpdate v2_upsert {
        optional {
            /// Its title.
            title: Patch<String> = "title" null,
            /// When it last changed, as an ISO 8601 time.
            updated_at: Patch<String> = "updatedAt" null,
        }
    }

    /// How full the model's context is, and what the session has cost.
    pub struct UsageUpdate {
        required {
            /// The tokens in the context.
            used: u64 = "used",
            /// The tokens that fit.
            size: u64 = "size",
        }
        optional {
            /// What the session has cost so far.
            cost: Patch<Cost> = "cost",
        }
    }

    /// An amount of money.
    pub struct Cost {
        required {
            /// How much.
            amount: f64 = "amount",
            /// Of what: an ISO 4217 code, or a unit of the agent's own.
            currency: String = "currency",
        }
    }
}

impl SessionNotification {
    /// Reads the parts; the session is borrowed where it can be. Clients read thousands of these.
    pub fn decode_parts<'a>(
        reader: &mut Reader<'a>,
    ) -> Result<(Cow<'a, str>, SessionUpdate, Option<Meta>), DecodeError> {
        let (mut session, mut update, mut meta) = (None, None, None);
        reader.begin_object()?;
        let mut first = true;
        loop {
            // They mostly come in this order.
            let name = if session.is_none() && reader.next_key_is(r#","sessionId":"#, &mut first) {
                Cow::Borrowed("sessionId")
            } else if update.is_none() && reader.next_key_is(r#","update":"#, &mut first) {
                Cow::Borrowed("update")
            } else {
                let Some(name) = reader.next_key(&mut first)? else { break };
                name
            };
            let is_twice = match &*name {
                "sessionId" => session.replace(reader.string().map_err(|e| e.in_field("sessionId"))?).is_some(),
                "update" => {
                    let count = reader.tolerated_count();
                    let value = SessionUpdate::decode(reader).map_err(|error| error.in_field("update"))?;
                    reader.prepend_to_tolerated(count, PathSegment::Field("update"));
                    update.replace(value).is_some()
                }
                "_meta" => meta.replace(reader.attempt(Meta::decode)?.ok()).is_some(),
                _ => {
                    reader.skip()?;
                    false
                }
            };
            if is_twice {
                return Err(DecodeError::new(Reason::Duplicate));
            }
        }
        reader.end()?;
        let missing = |field| DecodeError::new(Reason::Missing).in_field(field);
        let session = session.ok_or_else(|| missing("sessionId"))?;
        Ok((session, update.ok_or_else(|| missing("update"))?, meta.flatten()))
    }
}

union! {
    /// An update of a session.
    pub enum SessionUpdate tag "sessionUpdate" without [From, Decode, Encode] {
        /// A piece of what the user said.
        UserMessageChunk(MessageChunk) = "user_message_chunk",
        /// A piece of what the agent says.
        AgentMessageChunk(MessageChunk) = "agent_message_chunk",
        /// A piece of what the agent thinks.
        AgentThoughtChunk(MessageChunk) = "agent_thought_chunk",
        /// What the user said.
        UserMessage(MessageUpdate) = "user_message" in [V2Draft, V2],
        /// What the agent says.
        AgentMessage(MessageUpdate) = "agent_message" in [V2Draft, V2],
        /// What the agent thinks.
        AgentThought(MessageUpdate) = "agent_thought" in [V2Draft, V2],
        /// A new tool call, with a title. In v2 it is sent as [`ToolCallUpdate`](Self::ToolCallUpdate).
        ToolCall(ToolCallUpdate) boxed = "tool_call" in [V1],
        /// A tool call as it is now.
        ToolCallUpdate(ToolCallUpdate) boxed = "tool_call_update",
        /// A piece of what a tool call produced.
        ToolCallContentChunk(ToolCallContentChunk) = "tool_call_content_chunk" in [V2Draft, V2],
        /// The plan. In v2 it is sent as [`PlanUpdate`](Self::PlanUpdate), with the id `plan`.
        Plan(PlanEntries) = "plan" in [V1],
        /// A plan as it is now; unstable in v1.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// A plan is gone (unstable).
        PlanRemoved(PlanRemoved) = "plan_removed" in [V1, V2],
        /// The commands that there are now.
        AvailableCommands(CommandsUpdate) = "available_commands_update",
        /// The mode that the session is in now.
        CurrentMode(ModeUpdate) = "current_mode_update" in [V1],
        /// The configuration options as they are now.
        ConfigOptions(ConfigOptionsUpdate) = "config_option_update",
        /// The session has another title or time.
        SessionInfo(SessionInfoUpdate) = "session_info_update",
        /// How full the context is.
        Usage(UsageUpdate) = "usage_update",
        /// Something to tell the user beside the conversation.
        Notice(Notice) = "notice" in [V1, V2],
        /// The conversation is being compacted.
        Compaction(CompactionUpdate) = "compaction_update" in [V1, V2],
        /// A piece of the summary that takes the conversation's place.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk" in [V1, V2],
        /// What the session is doing.
        State(StateUpdate) = "state_update" in [V2],
        /// A terminal as it is now.
        TerminalUpdate(TerminalUpdate) boxed = "terminal_update" in [V2],
        /// More output of a terminal.
        TerminalOutputChunk(TerminalOutputChunk) = "terminal_output_chunk" in [V2],
        /// A subagent as it is now (unstable).
        Subagent(SubagentUpdate) boxed = "subagent_update" in [V1, V2],
        /// A message between agents (unstable).
        SessionMessage(SessionMessage) boxed = "session_message" in [V1, V2],
        /// A piece of a message between agents (unstable).
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk" in [V1, V2],
    }
}

impl Decode for SessionUpdate {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let update = SessionUpdate::decode_variant(reader)?;
        match &update {
            SessionUpdate::ToolCall(call) if call.title.set().is_none() => {
                Err(DecodeError::new(Reason::Missing).in_field("title"))
            }
            _ => Ok(update),
        }
    }
}

impl Encode for SessionUpdate {
    fn encode(&self, writer: &mut Writer<'_>) {
        if let SessionUpdate::Other(unknown) = self {
            return unknown.encode(writer);
        }
        writer.begin_object();
        match self {
            SessionUpdate::ToolCall(call) if writer.dialect() != Dialect::V1 => {
                writer.key("sessionUpdate");
                writer.string("tool_call_update");
                call.encode_fields(writer);
            }
            SessionUpdate::Plan(plan) if writer.dialect() != Dialect::V1 => {
                writer.key("sessionUpdate");
                writer.string("plan_update");
                let items = PlanItems { meta: plan.meta.clone(), ..PlanItems::new("plan", plan.entries.clone()) };
                PlanUpdate::new(items).encode_fields(writer);
            }
            update => update.encode_fields(writer),
        }
        writer.end_object();
    }
}
