//! A session as its agent has to remember it, and what its client hears of it.

use super::opening::OpenedSession;
use super::options::{models_of, modes_of, option_of, shown_options};
use super::translator::UpdateTranslator;
use crate::Dialect;
use crate::model::capability::ClientCapabilities;
use crate::model::command::AvailableCommand;
use crate::model::config::{ConfigCategory, ConfigId, ConfigOption};
use crate::model::content::{ContentBlock, MessageId};
use crate::model::error::ErrorObject;
use crate::model::prompt::{PromptResponse, StopReason};
use crate::model::session::ModeId;
use crate::model::state::{BackgroundWork, IdleState, RequiresActionState, RunningState, StateUpdate};
use crate::model::unstable::Usage;
use crate::model::update::{
    CommandsUpdate, ConfigOptionsUpdate, MessageChunk, MessageUpdate, ModeUpdate, SessionUpdate,
};
use crate::model::{Meta, Patch};

/// What is to be sent to the client, in this order.
#[derive(Debug)]
pub enum Emitted<'a> {
    /// A `session/update`.
    Update(&'a SessionUpdate),
    /// The answer to the prompt.
    Answer(PromptResponse),
    /// The prompt failed.
    Refusal(ErrorObject),
}

/// Takes what is to be sent.
type Emit<'a> = &'a mut dyn FnMut(Emitted<'_>);

/// Which message of the agent's a piece of content belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// The answer.
    Answer,
    /// The reasoning.
    Thought,
}

impl MessageKind {
    /// The update that says a piece of such a message.
    pub fn chunk(self, id: MessageId, content: ContentBlock) -> SessionUpdate {
        let chunk = MessageChunk { message_id: Some(id), ..MessageChunk::new(content) };
        match self {
            MessageKind::Answer => SessionUpdate::AgentMessageChunk(chunk),
            MessageKind::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

/// A session as its agent has to remember it: the turns that run, the questions that are open, its options, the ids in
/// use, and what was sent before as far as the dialect builds on it.
#[derive(Debug)]
pub struct AgentSession {
    dialect: Dialect,
    translator: UpdateTranslator,
    /// Whether the client understands options that are switches.
    knows_switches: bool,
    options: Vec<ConfigOption>,
    /// The mode that a client of version 1 knows of.
    said_mode: Option<ModeId>,
    commands: Vec<AvailableCommand>,
    /// Prompts whose turn runs: more than one when prompts are taken up in mid-turn.
    turns: usize,
    /// Questions that the person has not answered.
    questions: usize,
    /// Work beside the conversation, once it was told.
    background: Option<Vec<BackgroundWork>>,
    /// The message that is being said.
    message: Option<(MessageKind, MessageId)>,
    id_prefix: String,
    messages: u64,
    /// Ids of other things that were handed out.
    ids: u64,
    lost: Vec<&'static str>,
}

impl AgentSession {
    /// A session of a client that speaks this dialect and understands this. Ids of messages and tool calls begin with
    /// the prefix, which no earlier process may have used for the same session.
    pub fn new(dialect: Dialect, client: &ClientCapabilities, id_prefix: impl Into<String>) -> Self {
        let id_prefix = id_prefix.into();
        let options = client.session.config_options.as_ref();
        AgentSession {
            dialect,
            translator: UpdateTranslator::new(dialect, client, id_prefix.clone()),
            knows_switches: options.is_some_and(|options| options.boolean.is_some()),
            options: Vec::new(),
            said_mode: None,
            commands: Vec::new(),
            turns: 0,
            questions: 0,
            background: None,
            message: None,
            id_prefix,
            messages: 0,
            ids: 0,
            lost: Vec::new(),
        }
    }

    /// What could not be said in the dialect since this was asked last.
    pub fn take_lost(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.lost)
    }

    /// The session is open. Returns the answer to the request that opened it, and an update that says what the answer
    /// has no place for.
    pub fn open(
        &mut self,
        options: Vec<ConfigOption>,
        commands: Vec<AvailableCommand>,
        meta: Option<Meta>,
    ) -> (OpenedSession, Option<SessionUpdate>) {
        let mut shown = options.clone();
        if shown_options(&mut shown, self.knows_switches, self.dialect != Dialect::V1) {
            self.lost.push("configOptions.type");
        }
        let mut opened = OpenedSession { meta, ..OpenedSession::default() };
        if self.dialect == Dialect::V1 {
            opened.modes = modes_of(&options);
            opened.models = models_of(&options);
        }
        opened.config_options = (!shown.is_empty()).then_some(shown);
        let mut later = None;
        if !commands.is_empty() {
            match self.dialect {
                Dialect::V2 => opened.available_commands = Some(commands.clone()),
                _ => later = Some(SessionUpdate::AvailableCommands(CommandsUpdate::new(commands.clone()))),
            }
        }
        self.said_mode = opened.modes.as_ref().map(|modes| modes.current_mode_id.clone());
        self.options = options;
        self.commands = commands;
        (opened, later)
    }

    /// The session's options and commands as they were last sent.
    pub fn opened_with(&self) -> (&[ConfigOption], &[AvailableCommand]) {
        (&self.options, &self.commands)
    }

    /// An option was set: returns the options that the client understands.
    pub fn set_options(&mut self, options: Vec<ConfigOption>) -> Vec<ConfigOption> {
        let mut shown = options.clone();
        self.options = options;
        shown_options(&mut shown, self.knows_switches, self.dialect != Dialect::V1);
        shown
    }

    /// Tells a client of version 1 of an option that was set, where the answer does not: of the options if a mode or a
    /// model was set, and of the mode if an option was. To be called after [`set_options`](Self::set_options).
    pub fn say_option_change(&mut self, is_old_style: bool, emit: Emit<'_>) {
        if self.dialect != Dialect::V1 {
            return;
        }
        if is_old_style {
            let options = ConfigOptionsUpdate::new(self.options.clone());
            return self.say(&SessionUpdate::ConfigOptions(options), emit);
        }
        let mode = modes_of(&self.options).map(|modes| modes.current_mode_id);
        if self.said_mode != mode
            && let Some(mode) = &mode
        {
            self.say(&SessionUpdate::CurrentMode(ModeUpdate::new(mode.clone())), emit);
        }
        self.said_mode = mode;
    }

    /// The option that a client of version 1 means by its mode or model.
    pub fn option_of(&self, category: &ConfigCategory) -> Option<&ConfigId> {
        option_of(&self.options, category).map(|option| &option.id)
    }

    /// A prompt is taken up. Where the dialect has it, the client is sent that, the prompt's id and the session's state.
    pub fn begin_turn(&mut self, prompt: &[ContentBlock], meta: Option<Meta>, emit: Emit<'_>) -> Option<MessageId> {
        self.message = None;
        self.turns += 1;
        if self.dialect.answers_at_end() {
            // There are no words for it, but a message that was being said ends here.
            self.say_state(emit);
            return None;
        }
        let id = self.next_message_id();
        emit(Emitted::Answer(PromptResponse { meta, ..PromptResponse::inserted(id.clone()) }));
        let echo = MessageUpdate { content: Patch::Set(prompt.to_vec()), ..MessageUpdate::new(id.clone()) };
        self.say(&SessionUpdate::UserMessage(echo), emit);
        if self.turns == 1 {
            self.say_state(emit);
        }
        Some(id)
    }

    /// A prompt will not be taken up, because it was cancelled before.
    pub fn cancel_prompt(&self, emit: Emit<'_>) {
        match self.dialect.answers_at_end() {
            true => emit(Emitted::Answer(PromptResponse::ended(StopReason::Cancelled))),
            false => emit(Emitted::Refusal(ErrorObject::cancelled())),
        }
    }

    /// A turn has ended.
    pub fn end_turn(
        &mut self,
        result: Result<StopReason, ErrorObject>,
        usage: Option<Usage>,
        meta: Option<Meta>,
        emit: Emit<'_>,
    ) {
        self.flush(emit);
        self.message = None;
        self.turns = self.turns.saturating_sub(1);
        if self.dialect.answers_at_end() {
            return match result {
                // Before version 2 there is no such reason: the prompt fails.
                Ok(StopReason::Error) => {
                    emit(Emitted::Refusal(ErrorObject::internal("the agent failed")));
                }
                Ok(stop) => {
                    let stop = self.known_stop(stop);
                    emit(Emitted::Answer(PromptResponse { usage, meta, ..PromptResponse::ended(stop) }));
                }
                Err(error) => emit(Emitted::Refusal(error)),
            };
        }
        if self.turns > 0 {
            return;
        }
        let (stop_reason, error) = match result {
            Ok(stop) => (stop, None),
            Err(error) if error.code == ErrorObject::CANCELLED => (StopReason::Cancelled, None),
            Err(error) => (StopReason::Error, Some(error)),
        };
        let background = self.background.clone();
        let idle = IdleState { stop_reason: Some(stop_reason), error, usage, background, meta };
        self.say(&SessionUpdate::State(idle.into()), emit);
    }

    /// A reason that the dialect has a word for.
    fn known_stop(&mut self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::Other(_) if self.dialect == Dialect::V1 => {
                self.lost.push("stopReason");
                StopReason::EndTurn
            }
            stop => stop,
        }
    }

    /// Whether a turn runs.
    pub fn is_running(&self) -> bool {
        self.turns > 0
    }

    /// The person is asked something: as long as they are, the session waits for them.
    pub fn ask(&mut self, emit: Emit<'_>) {
        self.flush(emit);
        self.questions += 1;
        if self.questions == 1 && self.turns > 0 {
            self.say_state(emit);
        }
    }

    /// A question has come to an end, with an answer or without.
    pub fn end_question(&mut self, emit: Emit<'_>) {
        if self.questions == 0 {
            return;
        }
        self.questions -= 1;
        if self.questions == 0 && self.turns > 0 {
            self.say_state(emit);
        }
    }

    /// Says which work goes on beside the conversation.
    pub fn set_background(&mut self, work: Vec<BackgroundWork>, emit: Emit<'_>) {
        self.background = Some(work);
        self.say_state(emit);
    }

    /// Says what the session is doing, where the dialect has words for that.
    pub fn say_state(&mut self, emit: Emit<'_>) {
        let background = self.background.clone();
        let state: StateUpdate = match (self.turns, self.questions) {
            (0, _) => IdleState { background, ..IdleState::new() }.into(),
            (_, 0) => RunningState { background, ..RunningState::new() }.into(),
            _ => RequiresActionState { background, ..RequiresActionState::new() }.into(),
        };
        self.say(&SessionUpdate::State(state), emit);
    }

    /// Says an update.
    pub fn say(&mut self, update: &SessionUpdate, emit: Emit<'_>) {
        self.note(update);
        let lost = self.translator.say(update, &mut |update| emit(Emitted::Update(update)));
        self.lost.extend(lost);
    }

    /// Says an update that is not needed any more: what has to be remembered of it is kept and not copied.
    pub fn say_owned(&mut self, update: SessionUpdate, emit: Emit<'_>) {
        self.note(&update);
        let lost = self.translator.say_owned(update, &mut |update| emit(Emitted::Update(update)));
        self.lost.extend(lost);
    }

    /// Says what the dialect made us hold back.
    fn flush(&mut self, emit: Emit<'_>) {
        let lost = self.translator.flush(&mut |update| emit(Emitted::Update(update)));
        self.lost.extend(lost);
    }

    fn note(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_) => return,
            SessionUpdate::ConfigOptions(options) => {
                self.options.clone_from(&options.config_options);
                if self.dialect == Dialect::V1 {
                    self.said_mode = modes_of(&self.options).map(|modes| modes.current_mode_id);
                }
            }
            SessionUpdate::AvailableCommands(commands) => self.commands.clone_from(&commands.available_commands),
            _ => {}
        }
        self.message = None;
    }

    /// The message that a piece of content belongs to: the one that is being said, or a new one. The flag tells which.
    pub fn message(&mut self, kind: MessageKind) -> (MessageId, bool) {
        match &self.message {
            Some((current, id)) if *current == kind => (id.clone(), true),
            _ => {
                let id = self.next_message_id();
                self.message = Some((kind, id.clone()));
                (id, false)
            }
        }
    }

    /// Whether a piece of content would go on with the message that is being said.
    pub fn goes_on(&self, kind: MessageKind) -> bool {
        self.message.as_ref().is_some_and(|(current, _)| *current == kind)
    }

    /// An id for a tool call that no other has.
    pub fn next_tool_call_id(&mut self) -> String {
        self.next_id("call")
    }

    /// An id for a terminal that no other has.
    pub fn next_terminal_id(&mut self) -> String {
        self.next_id("term")
    }

    /// An id for a compaction that no other has.
    pub fn next_compaction_id(&mut self) -> String {
        self.next_id("compaction")
    }

    fn next_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}_{}", self.id_prefix, self.ids)
    }

    fn next_message_id(&mut self) -> MessageId {
        self.messages += 1;
        MessageId::from(format!("msg_{}_{}", self.id_prefix, self.messages))
    }
}
