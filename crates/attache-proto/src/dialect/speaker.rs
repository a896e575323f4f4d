//! What an agent has to say, put into the words of a dialect.

mod terminals;
mod tools;

use std::collections::VecDeque;

use crate::Dialect;
use crate::model::{
    AvailableCommand, ClientCapabilities, CommandsUpdate, ConfigCategory, ConfigId, ConfigKind, ConfigOptionsUpdate,
    ConfigValueId, MessageChunk, MessageId, MessageUpdate, ModeId, ModeUpdate, Patch, PlanContent, PlanEntries,
    PlanEntry, PlanId, PlanItems, PlanPriority, PlanStatus, PlanUpdate, SessionUpdate, UsageUpdate,
};
use terminals::Terminals;
use tools::Tools;

/// What takes the words of a dialect, one update at a time.
type Emit<'a> = &'a mut dyn FnMut(&SessionUpdate);

/// Messages of which v1 remembers that something was said. An upsert of an older one is said again.
const REMEMBERED_MESSAGES: usize = 1024;

/// Turns the updates of one session, written with v2's meaning, into what a dialect can say.
///
/// It remembers what was said only where the dialect needs that: v1 has no upserts of messages and no pieces of tool
/// content, for instance. Chunks of messages pass through as they are.
///
/// ```
/// use attache_proto::Dialect;
/// use attache_proto::dialect::Speaker;
/// use attache_proto::model::{ClientCapabilities, Patch, SessionUpdate, ToolCallUpdate};
///
/// let mut speaker = Speaker::new(Dialect::V1, &ClientCapabilities::new());
/// let call = ToolCallUpdate { name: Patch::Set("grep".into()), ..ToolCallUpdate::new("call-1") };
/// let mut said = Vec::new();
/// let lost = speaker.say(&SessionUpdate::ToolCallUpdate(call.into()), &mut |update| said.push(update.clone()));
/// assert!(lost.is_empty());
/// assert!(matches!(&said[0], SessionUpdate::ToolCall(call) if call.title == Patch::Set("grep".into())));
/// ```
#[derive(Debug)]
pub struct Speaker {
    dialect: Dialect,
    client: Understands,
    /// The message that chunks without an id belong to now.
    stream: Option<(Voice, MessageId)>,
    streams: u64,
    /// Messages of which something was said.
    messages: VecDeque<(Voice, MessageId)>,
    tools: Tools,
    terminals: Terminals,
    /// The plan that is shown, where there can be only one.
    plan: Option<PlanId>,
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

/// Whose message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Agent,
    Thought,
}

impl Voice {
    fn chunk(self, chunk: MessageChunk) -> SessionUpdate {
        match self {
            Voice::User => SessionUpdate::UserMessageChunk(chunk),
            Voice::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

impl Speaker {
    /// A speaker for one session.
    pub fn new(dialect: Dialect, client: &ClientCapabilities) -> Self {
        let options = client.session.config_options.as_ref();
        Speaker {
            dialect,
            client: Understands {
                boolean: options.is_some_and(|options| options.boolean.is_some()),
                notices: client.session.notices.is_some(),
                compaction: client.session.compaction.is_some(),
                subagents: client.subagents.is_some(),
                plan: client.plan.is_some(),
            },
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

    /// Says an update; returns what could not be said.
    pub fn say(&mut self, update: &SessionUpdate, emit: Emit<'_>) -> Vec<&'static str> {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.say_chunk(Voice::User, chunk, update, emit),
            SessionUpdate::AgentMessageChunk(chunk) => self.say_chunk(Voice::Agent, chunk, update, emit),
            SessionUpdate::AgentThoughtChunk(chunk) => self.say_chunk(Voice::Thought, chunk, update, emit),
            SessionUpdate::UserMessage(message) => self.say_message(Voice::User, message, update, emit),
            SessionUpdate::AgentMessage(message) => self.say_message(Voice::Agent, message, update, emit),
            SessionUpdate::AgentThought(message) => self.say_message(Voice::Thought, message, update, emit),
            update if self.dialect == Dialect::V2 => self.say_v2(update, emit),
            update => self.say_old(update, emit),
        }
        std::mem::take(&mut self.lost)
    }

    /// The same for an update that is not needed any more: what has to be remembered of it is kept and not copied.
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
            SessionUpdate::State(_) => self.stream = None,
            update => emit(update),
        }
    }

    fn say_chunk(&mut self, voice: Voice, chunk: &MessageChunk, update: &SessionUpdate, emit: Emit<'_>) {
        match &chunk.message_id {
            Some(id) => {
                if self.dialect == Dialect::V1 {
                    self.remember(voice, id);
                }
                self.stream = None;
                emit(update);
            }
            None if self.dialect == Dialect::V1 => emit(update),
            None => {
                let id = match &self.stream {
                    Some((speaking, id)) if *speaking == voice => id.clone(),
                    _ => {
                        self.streams += 1;
                        let id = MessageId::from(format!("msg-{}", self.streams));
                        self.stream = Some((voice, id.clone()));
                        id
                    }
                };
                emit(&voice.chunk(MessageChunk { message_id: Some(id), ..chunk.clone() }));
            }
        }
    }

    fn say_message(&mut self, voice: Voice, message: &MessageUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        self.stream = None;
        if self.dialect != Dialect::V1 {
            return emit(update);
        }
        let content = match &message.content {
            Patch::Keep => return,
            Patch::Clear => &[],
            Patch::Set(content) => content.as_slice(),
        };
        if self.remember(voice, &message.message_id) {
            return self.lose(name(update));
        }
        for (index, block) in content.iter().enumerate() {
            let meta = message.meta.set().filter(|_| index == 0).cloned();
            let message_id = Some(message.message_id.clone());
            emit(&voice.chunk(MessageChunk { message_id, meta, ..MessageChunk::new(block.clone()) }));
        }
    }

    /// Whether something was said of this message before. From now on it was.
    fn remember(&mut self, voice: Voice, id: &MessageId) -> bool {
        // The last one is the usual one.
        if self.messages.iter().rev().any(|(said, message)| *said == voice && message == id) {
            return true;
        }
        if self.messages.len() == REMEMBERED_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back((voice, id.clone()));
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
        // A session of v1 has one plan: the last one that was told.
        if self.plan.replace(items.plan_id.clone()).is_some_and(|shown| shown != items.plan_id) {
            self.lose("plan_update.planId");
        }
        emit(&SessionUpdate::Plan(PlanEntries { entries, meta: plan.meta.clone().or_else(|| items.meta.clone()) }));
    }

    /// The steps in words that v1 has. A step that was given up is left out: none of v1's words would be true of it.
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
        for option in &update.config_options {
            let ConfigKind::Select(select) = &option.kind else { continue };
            if option.category != Some(ConfigCategory::Mode) {
                continue;
            }
            match self.modes.iter_mut().find(|(id, _)| *id == option.id) {
                Some((_, current)) if *current == select.current => continue,
                Some((_, current)) => *current = select.current.clone(),
                None => self.modes.push((option.id.clone(), select.current.clone())),
            }
            changed.push(ModeId::from(select.current.as_str()));
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

/// v1's plan as the plan of this name, which is how the other dialects have it.
fn with_id(plan: &PlanEntries) -> SessionUpdate {
    let items = PlanItems { meta: plan.meta.clone(), ..PlanItems::new("plan", plan.entries.clone()) };
    SessionUpdate::PlanUpdate(PlanUpdate::new(items))
}

/// What to call an update that a dialect does not have.
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
