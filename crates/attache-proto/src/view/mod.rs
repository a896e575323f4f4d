//! What there is to show of a session: all its updates, folded into one picture.

// Every function of this module is `inline`: so it is compiled by the client that uses a view, and by no agent.

mod beside;
mod entry;
mod room;
mod snapshot;
mod terminal;
mod timeline;
mod tool_call;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use beside::{ContextUsage, SessionState, Subagent};
pub use entry::{Compaction, Entry, Message, MessageRole, PeerMessage};
pub use room::DEFAULT_LIMIT;
pub use terminal::{OUTPUT_LIMIT, OutputBytes, Terminal};
pub use tool_call::ToolCall;

use crate::json::{DecodeError, RawJson};
use crate::model::command::AvailableCommand;
use crate::model::config::ConfigOption;
use crate::model::content::{ContentBlock, MessageId};
use crate::model::error::ErrorObject;
use crate::model::permission::PermissionRequest;
use crate::model::plan::{PlanContent, PlanId, PlanItems};
use crate::model::prompt::StopReason;
use crate::model::session::{Mode, ModeId, ModeState, SessionId};
use crate::model::state::BackgroundWork;
use crate::model::terminal::TerminalId;
use crate::model::tool::ToolCallId;
use crate::model::unstable::Usage;
use crate::model::update::SessionUpdate;
use crate::model::{Meta, Patch, Unknown};
use room::{Room, measure, measure_update, patch_meta};
use timeline::Timeline;

/// How many unknown updates are kept: enough to see what an agent is trying to send.
pub const UNKNOWN_LIMIT: usize = 16;

/// How many plans are kept: more than anybody follows.
pub const PLAN_LIMIT: usize = 64;

/// What there is to show of a session.
///
/// Feed it every update of the session, whatever the dialect, and what is said outside of updates; then show it. The
/// conversation is in [`timeline`](SessionView::timeline), the rest beside it. The view decides nothing and answers
/// nothing.
///
/// For a client that is, whatever the dialect:
///
/// 1. When the session is open: [`apply_options`](Self::apply_options) and [`apply_commands`](Self::apply_commands).
/// 2. For each prompt: [`user_prompt`](Self::user_prompt) and [`begin_turn`](Self::begin_turn), then
///    [`apply`](Self::apply) for each update and [`apply_permission`](Self::apply_permission) for each permission request,
///    then [`end_turn`](Self::end_turn).
/// 3. Between turns: `apply` for each update.
///
/// A view holds at most [`DEFAULT_LIMIT`] bytes, or what [`with_limit`](SessionView::with_limit) says, counted as JSON. When
/// it is full it forgets: the oldest entries with the terminals that they show, then what is beside the conversation. What
/// was forgotten is counted in `omitted`.
///
/// ```
/// use attache_proto::model::content::ContentBlock;
/// use attache_proto::model::prompt::StopReason;
/// use attache_proto::model::update::{MessageChunk, SessionUpdate};
/// use attache_proto::view::{Entry, SessionView};
///
/// let mut view = SessionView::new();
/// view.user_prompt(&["Say hello.".into()]);
/// view.begin_turn();
/// for text in ["Hel", "lo!"] {
///     view.apply(&SessionUpdate::AgentMessageChunk(MessageChunk::new(ContentBlock::text(text))));
/// }
/// view.end_turn(&StopReason::EndTurn);
///
/// let [Entry::Message(question), Entry::Message(answer)] = view.timeline() else { panic!() };
/// assert_eq!(question.text(), "Say hello.");
/// assert_eq!(answer.text(), "Hello!");
/// assert!(!view.state.is_busy());
/// ```
///
/// # The snapshot
///
/// [`snapshot`](SessionView::snapshot), and `serde`, write the whole view as one JSON object. Lists are always there,
/// other keys only when there is something to say. What the protocol defines is written as in protocol version 2, so
/// changes of files are always patches. [`from_snapshot`](SessionView::from_snapshot) reads it again, and what the session's
/// next updates change is the same in both views, except that a chunk without a message id begins a new message.
///
/// - `timeline`: list of objects, each with a `type`:
///   - `message`: `role` (`user`, `agent`, `thought`), `messageId?`, `content`
///   - `tool_call`: the fields of a `tool_call_update`, `presumedCancelled?` and `denied?`
///   - `notice`: the fields of a `notice`
///   - `compaction`: the fields of a `compaction_update`
///   - `session_message`: the fields of a `session_message`
/// - `plans`: list of plans, as in `plan_update`
/// - `terminals`: list of the fields of a `terminal_update`, and `undecodable?`; its `output` has `data` and `omitted?`
/// - `subagents`: list of the fields of a `subagent_update`
/// - `availableCommands`, `configOptions`, `availableModes`: the lists of the protocol
/// - `currentModeId?`, `title?`, `updatedAt?`, `_meta?`: as in the protocol
/// - `usage?`: `used`, `size`, `cost?`
/// - `state`: the name of the state
/// - `background?`: list of background work, if the agent reports it
/// - `stopReason?`, `error?`, `turnUsage?`: how the last work ended
/// - `unknown?`: `count` of the unknown updates, and the `last` of them
/// - `omitted?`: how many entries and other things were forgotten
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionView {
    timeline: Timeline,
    /// The plans, in order of first appearance. The nameless plan of v1 has the id `plan`.
    pub plans: Vec<PlanContent>,
    /// The terminals that the agent shows. Tool calls point at them.
    pub terminals: BTreeMap<TerminalId, Terminal>,
    /// The agents that work for this one (unstable).
    pub subagents: BTreeMap<SessionId, Subagent>,
    /// The slash commands.
    pub commands: Vec<AvailableCommand>,
    /// The configuration options.
    pub options: Vec<ConfigOption>,
    /// The modes to choose from. Only v1 has modes.
    pub modes: Vec<Mode>,
    /// The current mode. Only v1 has modes.
    pub current_mode: Option<ModeId>,
    /// The session's title.
    pub title: Option<String>,
    /// When the session last changed, as an ISO 8601 time.
    pub updated_at: Option<String>,
    /// The session's `_meta`.
    pub meta: Option<Meta>,
    /// How full the context is, and what the session has cost.
    pub usage: Option<ContextUsage>,
    /// What the session is doing.
    pub state: SessionState,
    /// The work that goes on beside the conversation. `None` if the agent does not report it.
    pub background: Option<Vec<BackgroundWork>>,
    /// Why the last turn ended, if the agent reported it.
    pub stop_reason: Option<StopReason>,
    /// What went wrong, if the last turn ended with an error.
    pub error: Option<ErrorObject>,
    /// The tokens that the last turn took (unstable). v1 has them in the response to the prompt: set them from there.
    pub turn_usage: Option<Usage>,
    /// The last unknown updates, at most [`UNKNOWN_LIMIT`].
    pub unknown: VecDeque<Unknown>,
    /// How many unknown updates there were.
    pub unknown_count: u64,
    /// How many entries, terminals and other things were forgotten because the view was full.
    pub omitted: u64,
    room: Room,
}

impl SessionView {
    /// A session of which nothing is known.
    #[inline]
    pub fn new() -> Self {
        SessionView::default()
    }

    /// A session of which nothing is known, in a view that holds at most this many bytes.
    #[inline]
    pub fn with_limit(limit: usize) -> Self {
        SessionView { room: Room::new(limit), ..SessionView::default() }
    }

    /// Reads the view that a snapshot shows. What is wrong in it is left out.
    #[inline]
    pub fn from_snapshot(snapshot: &RawJson) -> Result<Self, DecodeError> {
        snapshot.to_model()
    }

    /// The conversation, in order of first appearance. The first entry has the place
    /// [`first_place`](SessionView::first_place): 0, unless the oldest entries were forgotten.
    #[inline]
    pub fn timeline(&self) -> &[Entry] {
        self.timeline.entries()
    }

    /// The place of the first entry that is still there.
    #[inline]
    pub fn first_place(&self) -> usize {
        self.timeline.first_place()
    }

    /// The entry at a place that [`apply`](SessionView::apply) has returned. Entries never move, but may be forgotten.
    #[inline]
    pub fn entry(&self, place: usize) -> Option<&Entry> {
        self.timeline.entry(place)
    }

    /// A message by its id. Messages of different roles may have the same.
    #[inline]
    pub fn message(&self, role: MessageRole, id: &MessageId) -> Option<&Message> {
        self.timeline.message(role, id)
    }

    /// A tool call by its id.
    #[inline]
    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ToolCall> {
        self.timeline.tool_call(id)
    }

    /// All tool calls, in order of first appearance.
    #[inline]
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.timeline().iter().filter_map(|entry| match entry {
            Entry::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// A plan by its id.
    #[inline]
    pub fn plan(&self, id: &PlanId) -> Option<&PlanContent> {
        self.plans.iter().find(|plan| plan.plan_id().as_ref() == Some(id))
    }

    /// The whole view as JSON. Its layout is above.
    #[inline]
    pub fn snapshot(&self) -> RawJson {
        RawJson::from_model(self)
    }

    /// Takes in an update. Returns the place in the conversation that is new or different, if one is.
    #[inline]
    pub fn apply(&mut self, update: &SessionUpdate) -> Option<usize> {
        let items = self.items();
        let place = self.apply_update(update);
        self.take_room(measure_update(update), items);
        place
    }

    #[inline]
    fn apply_update(&mut self, update: &SessionUpdate) -> Option<usize> {
        let timeline = &mut self.timeline;
        match update {
            SessionUpdate::UserMessageChunk(chunk) => return Some(timeline.handle_chunk(MessageRole::User, chunk)),
            SessionUpdate::AgentMessageChunk(chunk) => return Some(timeline.handle_chunk(MessageRole::Agent, chunk)),
            SessionUpdate::AgentThoughtChunk(chunk) => return Some(timeline.handle_chunk(MessageRole::Thought, chunk)),
            SessionUpdate::UserMessage(update) => return Some(timeline.handle_message(MessageRole::User, update)),
            SessionUpdate::AgentMessage(update) => return Some(timeline.handle_message(MessageRole::Agent, update)),
            SessionUpdate::AgentThought(update) => return Some(timeline.handle_message(MessageRole::Thought, update)),
            SessionUpdate::ToolCall(update) => return Some(timeline.handle_tool_call(update)),
            SessionUpdate::ToolCallUpdate(update) => return Some(timeline.handle_tool_call(update)),
            SessionUpdate::ToolCallContentChunk(chunk) => return Some(timeline.handle_tool_call_chunk(chunk)),
            SessionUpdate::Notice(notice) => return Some(timeline.push(Entry::Notice(notice.clone()))),
            SessionUpdate::Compaction(update) => return Some(timeline.handle_compaction(update)),
            SessionUpdate::CompactionSummaryChunk(chunk) => return Some(timeline.handle_summary_chunk(chunk)),
            SessionUpdate::SessionMessage(update) => return Some(timeline.handle_peer_message(update)),
            SessionUpdate::SessionMessageChunk(chunk) => return Some(timeline.handle_peer_chunk(chunk)),

            SessionUpdate::Plan(plan) => {
                let items = PlanItems { meta: plan.meta.clone(), ..PlanItems::new("plan", plan.entries.clone()) };
                self.apply_plan(items.into());
            }
            SessionUpdate::PlanUpdate(update) => self.apply_plan(update.plan.clone()),
            SessionUpdate::PlanRemoved(removed) => {
                self.plans.retain(|plan| plan.plan_id().as_ref() != Some(&removed.plan_id));
            }
            SessionUpdate::AvailableCommands(update) => self.commands.clone_from(&update.available_commands),
            SessionUpdate::CurrentMode(update) => self.current_mode = Some(update.current_mode_id.clone()),
            SessionUpdate::ConfigOptions(update) => self.options.clone_from(&update.config_options),
            SessionUpdate::SessionInfo(update) => self.apply_info(update),
            SessionUpdate::Usage(update) => self.apply_usage(update),
            SessionUpdate::State(update) => self.apply_state(update),
            SessionUpdate::TerminalUpdate(update) => self.terminal_mut(&update.terminal_id).handle_update(update),
            SessionUpdate::TerminalOutputChunk(chunk) => self.terminal_mut(&chunk.terminal_id).handle_output(chunk),
            SessionUpdate::Subagent(update) => self.apply_subagent(update),
            SessionUpdate::Other(unknown) => self.keep_unknown(unknown),
        }
        None
    }

    /// Sets the commands that `session/new` and `session/resume` return.
    #[inline]
    pub fn apply_commands(&mut self, commands: Vec<AvailableCommand>) {
        self.commands = commands;
        self.take_room(measure(&self.commands), self.items());
    }

    /// Sets the options that `session/new`, `session/resume` and `session/set_config_option` return.
    #[inline]
    pub fn apply_options(&mut self, options: Vec<ConfigOption>) {
        self.options = options;
        self.take_room(measure(&self.options), self.items());
    }

    /// Sets the modes that `session/new` and `session/load` return in v1.
    #[inline]
    pub fn apply_modes(&mut self, modes: &ModeState) {
        self.modes.clone_from(&modes.available_modes);
        self.current_mode = Some(modes.current_mode_id.clone());
        self.take_room(measure(modes), self.items());
    }

    /// The agent asks for permission: what it says of the tool call is applied like an update. Returns the place of the
    /// tool call in the conversation. Asking and answering is not the view's business.
    #[inline]
    pub fn apply_permission(&mut self, request: &PermissionRequest) -> Option<usize> {
        let call = request.tool_call()?;
        let items = self.items();
        let place = self.timeline.handle_tool_call(call);
        self.take_room(measure(call), items);
        Some(place)
    }

    /// Adds the user's message before the agent has reported it. Returns its place in the conversation.
    ///
    /// What the agent reports of it later takes its place instead of being shown a second time. With a message id, as always
    /// in v2, that is the next user message with a new id: the one with the same content first, else the oldest.
    /// Without an id, as often in v1, it is a chunk that comes before anything else and begins like the prompt. An
    /// agent that reports nothing leaves the message as it is, and the end of the turn settles that.
    #[inline]
    pub fn user_prompt(&mut self, prompt: &[ContentBlock]) -> usize {
        let items = self.items();
        let place = self.timeline.user_prompt(prompt);
        self.take_room(prompt.iter().map(measure).sum(), items);
        place
    }

    /// Marks the beginning of a turn in v1 and the draft of v2. In v2 a `state_update` does that, and this is harmless.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.state = SessionState::Running;
        self.timeline.end_message();
    }

    /// Marks the end of a turn in v1 and the draft of v2. In v2 a `state_update` does that, and this is harmless after a turn
    /// that did not fail.
    #[inline]
    pub fn end_turn(&mut self, stop_reason: &StopReason) {
        self.state = SessionState::Idle;
        self.stop_reason = Some(stop_reason.clone());
        self.error = None;
        self.timeline.end_turn();
    }

    /// Marks unfinished tool calls as cancelled, because the user wants to stop, until the agent reports their status.
    /// Those that go on beside the conversation are not affected.
    #[inline]
    pub fn cancel_requested(&mut self) {
        let background = self.background.as_deref().unwrap_or_default();
        let beside: BTreeSet<&ToolCallId> = background.iter().filter_map(BackgroundWork::tool_call_id).collect();
        for call in self.timeline.tool_calls_mut().filter(|call| !beside.contains(&call.id)) {
            call.presume_cancelled();
        }
    }

    /// Marks a tool call as denied, because the user refused what it asked for. Agents report it as failed.
    #[inline]
    pub fn permission_denied(&mut self, id: &ToolCallId) {
        if let Some(call) = self.timeline.tool_calls_mut().find(|call| call.id == *id) {
            call.denied = true;
        }
    }
}

/// Brings a value up to date that has a default instead of being absent.
#[inline]
fn patch_value<T: Clone + Default>(stored: &mut T, patch: &Patch<T>) {
    match patch {
        Patch::Keep => {}
        Patch::Clear => *stored = T::default(),
        Patch::Set(value) => stored.clone_from(value),
    }
}

#[cfg(test)]
mod tests;
