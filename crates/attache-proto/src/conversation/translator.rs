//! Translates the updates of a session into a dialect.

mod terminals;
#[cfg(test)]
#[cfg(feature = "view")]
mod tests;
mod tools;

use std::collections::VecDeque;

use crate::Dialect;
use crate::model::Patch;
use crate::model::capability::ClientCapabilities;
use crate::model::command::AvailableCommand;
use crate::model::config::{ConfigCategory, ConfigId, ConfigKind, ConfigValueId};
use crate::model::content::MessageId;
use crate::model::plan::{
    PlanContent, PlanEntries, PlanEntry, PlanId, PlanItems, PlanPriority, PlanStatus, PlanUpdate,
};
use crate::model::session::ModeId;
use crate::model::state::StateUpdate;
use crate::model::update::{
    CommandsUpdate, ConfigOptionsUpdate, MessageChunk, MessageUpdate, ModeUpdate, SessionUpdate, UsageUpdate,
};
use terminals::Terminals;
use tools::Tools;

/// Takes the updates of the dialect, one at a time.
type Emit<'a> = &'a mut dyn FnMut(&SessionUpdate);

/// The messages that are remembered as sent in v1. An upsert of an older one is sent again.
const REMEMBERED_MESSAGES: usize = 1024;

/// The longest id that is remembered, in bytes. A longer one passes, but each update that names it counts as the first.
const LONGEST_ID: usize = 4096;

/// Translates the updates of one session, written with v2's meaning, into a dialect.
///
/// It remembers what was sent only where the dialect needs that: v1 has no upserts of messages and no chunks of tool
/// content, for instance. Chunks of messages pass through as they are. Memory is bounded, whatever the agent sends.
///
/// # Content of tool calls in v1
///
/// A client of v1 is sent all content of a tool call again when there is more of it. Adjacent text becomes one block.
/// Short content is sent at every chunk. Longer content is held back until it has grown by a third, so that a stream
/// takes about five times its length on the wire, and not its length times the number of chunks. Everything is sent when
/// the call ends, when a state update says that the session is idle or requires action, and by [`flush`](UpdateTranslator::flush).
/// All open calls of a session may have 16 MiB of content; a chunk beyond that is lost, and reported.
///
/// ```
/// use attache_proto::Dialect;
/// use attache_proto::conversation::UpdateTranslator;
/// use attache_proto::model::Patch;
/// use attache_proto::model::capability::ClientCapabilities;
/// use attache_proto::model::tool::ToolCallUpdate;
/// use attache_proto::model::update::SessionUpdate;
///
/// let mut translator = UpdateTranslator::new(Dialect::V1, &ClientCapabilities::new(), "7f3a");
/// let call = ToolCallUpdate::new("call-1").name("grep");
/// let mut said = Vec::new();
/// let lost = translator.say(&SessionUpdate::ToolCallUpdate(call.into()), &mut |update| said.push(update.clone()));
/// assert!(lost.is_empty());
/// assert!(matches!(&said[0], SessionUpdate::ToolCall(call) if call.title == Patch::Set("grep".into())));
/// ```
#[derive(Debug)]
pub struct UpdateTranslator {
    dialect: Dialect,
    client: Understands,
    id_prefix: String,
    /// The message that chunks without an id belong to now.
    stream: Option<(Author, MessageId)>,
    streams: u64,
    /// Messages of which something was sent.
    messages: VecDeque<(Author, MessageId)>,
    tools: Tools,
    terminals: Terminals,
    /// The plan that is shown, where there can be only one.
    plan: Option<PlanId>,
    /// The options that are modes in v1, and their values.
    modes: Vec<(ConfigId, ConfigValueId)>,
    lost: Vec<&'static str>,
}

/// What a v1 client understands besides the first version.
#[derive(Debug)]
struct Understands {
    boolean: bool,
    notices: bool,
    compaction: bool,
    subagents: bool,
    plan: bool,
}

/// Who says a message. The messages of each have ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Agent,
    Thought,
}

impl Author {
    fn chunk(self, chunk: MessageChunk) -> SessionUpdate {
        match self {
            Author::User => SessionUpdate::UserMessageChunk(chunk),
            Author::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Author::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

impl UpdateTranslator {
    /// A translator for one session. Ids that it makes up begin with the prefix, which no earlier process may have used for
    /// the same session.
    pub fn new(dialect: Dialect, client: &ClientCapabilities, id_prefix: impl Into<String>) -> Self {
        let options = client.session.config_options.as_ref();
        UpdateTranslator {
            dialect,
            client: Understands {
                boolean: options.is_some_and(|options| options.boolean.is_some()),
                notices: client.session.notices.is_some(),
                compaction: client.session.compaction.is_some(),
                subagents: client.subagents.is_some(),
                plan: client.plan.is_some(),
            },
            id_prefix: id_prefix.into(),
            stream: None,
            streams: 0,
            messages: VecDeque::new(),
            tools: Tools::default(),
            terminals: Terminals::default(),
            plan: None,
            modes: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Translates an update and gives what comes of it to `emit`: nothing, one update or several. Returns the names of
    /// what the dialect cannot express.
    pub fn say(&mut self, update: &SessionUpdate, emit: Emit<'_>) -> Vec<&'static str> {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.say_chunk(Author::User, chunk, update, emit),
            SessionUpdate::AgentMessageChunk(chunk) => self.say_chunk(Author::Agent, chunk, update, emit),
            SessionUpdate::AgentThoughtChunk(chunk) => self.say_chunk(Author::Thought, chunk, update, emit),
            SessionUpdate::UserMessage(message) => self.say_message(Author::User, message, update, emit),
            SessionUpdate::AgentMessage(message) => self.say_message(Author::Agent, message, update, emit),
            SessionUpdate::AgentThought(message) => self.say_message(Author::Thought, message, update, emit),
            update if self.dialect == Dialect::V2 => self.say_v2(update, emit),
            update => self.say_old(update, emit),
        }
        std::mem::take(&mut self.lost)
    }

    /// Does the same for an update that is not needed any more: what has to be remembered of it is not copied.
    pub fn say_owned(&mut self, update: SessionUpdate, emit: Emit<'_>) -> Vec<&'static str> {
        match update {
            SessionUpdate::ToolCallUpdate(call) if self.dialect != Dialect::V2 && self.can_keep(&call) => {
                let update = SessionUpdate::ToolCallUpdate(call);
                emit(&update);
                if let SessionUpdate::ToolCallUpdate(call) = update {
                    self.keep(*call);
                }
                Vec::new()
            }
            update => self.say(&update, emit),
        }
    }

    /// Sends what is held back: content of tool calls in v1. Call it before the answer that ends a turn and before a
    /// question to the user; at other times it does no harm. Returns the names of what the dialect cannot express.
    pub fn flush(&mut self, emit: Emit<'_>) -> Vec<&'static str> {
        self.send_held_back(emit);
        std::mem::take(&mut self.lost)
    }

    fn say_v2(&mut self, update: &SessionUpdate, emit: Emit<'_>) {
        match update {
            SessionUpdate::ToolCall(call) => {
                self.stream = None;
                emit(&SessionUpdate::ToolCallUpdate(call.clone()));
            }
            SessionUpdate::Plan(plan) => emit(&with_id(plan)),
            SessionUpdate::CurrentMode(_) => self.lose("current_mode_update"),
            SessionUpdate::State(_) => {
                self.stream = None;
                emit(update);
            }
            update => emit(update),
        }
    }

    /// Version 1 and the draft of version 2.
    fn say_old(&mut self, update: &SessionUpdate, emit: Emit<'_>) {
        let v1 = self.dialect == Dialect::V1;
        let offered = match update {
            SessionUpdate::Notice(_) => v1 && self.client.notices,
            SessionUpdate::Compaction(_) | SessionUpdate::CompactionSummaryChunk(_) => v1 && self.client.compaction,
            SessionUpdate::Subagent(_) | SessionUpdate::SessionMessage(_) | SessionUpdate::SessionMessageChunk(_) => {
                v1 && self.client.subagents
            }
            _ => true,
        };
        if !offered {
            return self.lose(name(update));
        }
        match update {
            SessionUpdate::ToolCall(call) => {
                self.stream = None;
                self.say_tool_call(call, update, emit);
            }
            SessionUpdate::ToolCallUpdate(call) => self.say_tool_call(call, update, emit),
            SessionUpdate::ToolCallContentChunk(chunk) => self.say_tool_content(chunk, update, emit),
            SessionUpdate::TerminalUpdate(terminal) => self.say_terminal(terminal, emit),
            SessionUpdate::TerminalOutputChunk(chunk) => self.say_terminal_output(chunk),
            SessionUpdate::Plan(plan) => {
                let plan = PlanEntries { entries: self.plain_entries(&plan.entries), meta: plan.meta.clone() };
                if v1 { emit(&SessionUpdate::Plan(plan)) } else { emit(&with_id(&plan)) }
            }
            SessionUpdate::PlanUpdate(plan) => self.say_plan(plan, update, emit),
            SessionUpdate::PlanRemoved(_) if v1 && self.client.plan => emit(update),
            SessionUpdate::PlanRemoved(removed) if v1 => {
                if self.plan.as_ref() == Some(&removed.plan_id) {
                    self.plan = None;
                    emit(&SessionUpdate::Plan(PlanEntries::new([])));
                }
            }
            SessionUpdate::PlanRemoved(removed) => {
                emit(&SessionUpdate::PlanUpdate(PlanUpdate::new(PlanItems::new(removed.plan_id.clone(), []))));
            }
            SessionUpdate::AvailableCommands(commands) => self.say_commands(commands, update, emit),
            SessionUpdate::CurrentMode(_) if !v1 => self.lose("current_mode_update"),
            SessionUpdate::ConfigOptions(options) if v1 => self.say_options(options, emit),
            SessionUpdate::Usage(usage) if v1 && usage.cost == Patch::Clear => {
                self.lose("usage_update.cost");
                emit(&SessionUpdate::Usage(UsageUpdate { cost: Patch::Keep, ..usage.clone() }));
            }
            // The answer to the prompt says it.
            SessionUpdate::State(state) => {
                self.stream = None;
                if !matches!(state, StateUpdate::Running(_)) {
                    self.send_held_back(emit);
                }
            }
            update => emit(update),
        }
    }

    fn say_chunk(&mut self, kind: Author, chunk: &MessageChunk, update: &SessionUpdate, emit: Emit<'_>) {
        match &chunk.message_id {
            Some(id) => {
                if self.dialect == Dialect::V1 {
                    self.remember(kind, id);
                }
                self.stream = None;
                emit(update);
            }
            None if self.dialect == Dialect::V1 => emit(update),
            None => {
                let id = match &self.stream {
                    Some((speaking, id)) if *speaking == kind => id.clone(),
                    _ => {
                        self.streams += 1;
                        let id = MessageId::from(format!("stream_{}_{}", self.id_prefix, self.streams));
                        self.stream = Some((kind, id.clone()));
                        id
                    }
                };
                emit(&kind.chunk(MessageChunk { message_id: Some(id), ..chunk.clone() }));
            }
        }
    }

    fn say_message(&mut self, kind: Author, message: &MessageUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        self.stream = None;
        if self.dialect != Dialect::V1 {
            return emit(update);
        }
        let content = match &message.content {
            Patch::Keep => return,
            Patch::Clear => &[],
            Patch::Set(content) => content.as_slice(),
        };
        if self.remember(kind, &message.message_id) {
            return self.lose(name(update));
        }
        for (index, block) in content.iter().enumerate() {
            let meta = message.meta.set().filter(|_| index == 0).cloned();
            let message_id = Some(message.message_id.clone());
            emit(&kind.chunk(MessageChunk { message_id, meta, ..MessageChunk::new(block.clone()) }));
        }
    }

    /// Whether something of this message was sent before. From now on it was.
    fn remember(&mut self, kind: Author, id: &MessageId) -> bool {
        // The last one is the usual one.
        if self.messages.iter().rev().any(|(sent, message)| *sent == kind && message == id) {
            return true;
        }
        if is_memorable(id.as_str()) {
            if self.messages.len() == REMEMBERED_MESSAGES {
                self.messages.pop_front();
            }
            self.messages.push_back((kind, id.clone()));
        }
        false
    }

    fn say_plan(&mut self, plan: &PlanUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        let items = match &plan.plan {
            PlanContent::Items(items) => items,
            _ if self.dialect == Dialect::V2Draft || self.client.plan => return emit(update),
            _ => return self.lose("plan_update"),
        };
        let entries = self.plain_entries(&items.entries);
        if self.dialect == Dialect::V2Draft || self.client.plan {
            let items = PlanItems { entries, ..items.clone() };
            return emit(&SessionUpdate::PlanUpdate(PlanUpdate { plan: items.into(), ..plan.clone() }));
        }
        // A session of v1 has one plan: the last one that was sent.
        if self.plan.replace(items.plan_id.clone()).is_some_and(|shown| shown != items.plan_id) {
            self.lose("plan_update.planId");
        }
        emit(&SessionUpdate::Plan(PlanEntries { entries, meta: plan.meta.clone().or_else(|| items.meta.clone()) }));
    }

    /// The steps with the statuses and priorities that v1 has. A cancelled step is left out: no status of v1 would be true.
    fn plain_entries(&mut self, entries: &[PlanEntry]) -> Vec<PlanEntry> {
        let mut plain = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut entry = entry.clone();
            match entry.status {
                PlanStatus::Cancelled => {
                    self.lose("plan.entries.status");
                    continue;
                }
                PlanStatus::Other(_) if self.dialect == Dialect::V1 => {
                    self.lose("plan.entries.status");
                    entry.status = PlanStatus::Pending;
                }
                _ => {}
            }
            if matches!(entry.priority, PlanPriority::Other(_)) && self.dialect == Dialect::V1 {
                self.lose("plan.entries.priority");
                entry.priority = PlanPriority::Medium;
            }
            plain.push(entry);
        }
        plain
    }

    fn say_commands(&mut self, commands: &CommandsUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        let is_known = |command: &&AvailableCommand| matches!(command, AvailableCommand::Command(_));
        if commands.available_commands.iter().all(|command| is_known(&command)) {
            return emit(update);
        }
        self.lose("available_commands_update.type");
        let known = commands.available_commands.iter().filter(is_known).cloned().collect::<Vec<_>>();
        emit(&SessionUpdate::AvailableCommands(CommandsUpdate { available_commands: known, ..commands.clone() }));
    }

    /// The options in v1: those that the client understands, and the mode for clients that know modes only.
    fn say_options(&mut self, update: &ConfigOptionsUpdate, emit: Emit<'_>) {
        let mut update = update.clone();
        let all = update.config_options.len();
        update.config_options.retain(|option| match option.kind {
            ConfigKind::Select(_) => true,
            ConfigKind::Boolean(_) => self.client.boolean,
            ConfigKind::Other(_) => false,
        });
        if update.config_options.len() < all {
            self.lose("config_option_update.type");
        }
        let mut changed = Vec::new();
        let before = std::mem::take(&mut self.modes);
        for option in &update.config_options {
            let ConfigKind::Select(select) = &option.kind else { continue };
            if option.category != Some(ConfigCategory::Mode) {
                continue;
            }
            let mode = (option.id.clone(), select.current.clone());
            if !before.contains(&mode) {
                changed.push(ModeId::from(select.current.as_str()));
            }
            self.modes.push(mode);
        }
        emit(&SessionUpdate::ConfigOptions(update));
        for mode in changed {
            emit(&SessionUpdate::CurrentMode(ModeUpdate::new(mode)));
        }
    }

    #[cold]
    fn lose(&mut self, what: &'static str) {
        if !self.lost.contains(&what) {
            self.lost.push(what);
        }
    }
}

/// Whether an id is short enough to be remembered.
pub(crate) fn is_memorable(id: &str) -> bool {
    id.len() <= LONGEST_ID
}

/// v1's plan as the plan named `plan`, which is how the other dialects have it.
fn with_id(plan: &PlanEntries) -> SessionUpdate {
    let items = PlanItems { meta: plan.meta.clone(), ..PlanItems::new("plan", plan.entries.clone()) };
    SessionUpdate::PlanUpdate(PlanUpdate::new(items))
}

/// The name of an update that a dialect does not have.
fn name(update: &SessionUpdate) -> &'static str {
    match update {
        SessionUpdate::UserMessage(_) => "user_message",
        SessionUpdate::AgentMessage(_) => "agent_message",
        SessionUpdate::AgentThought(_) => "agent_thought",
        SessionUpdate::Notice(_) => "notice",
        SessionUpdate::Compaction(_) => "compaction_update",
        SessionUpdate::CompactionSummaryChunk(_) => "compaction_summary_chunk",
        SessionUpdate::Subagent(_) => "subagent_update",
        SessionUpdate::SessionMessage(_) => "session_message",
        SessionUpdate::SessionMessageChunk(_) => "session_message_chunk",
        _ => "session/update",
    }
}
