//! A session as its client has to remember it.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use super::options::SessionOptions;
use super::turns::{TurnEnd, TurnId, Turns};
use crate::model::Patch;
use crate::model::command::AvailableCommand;
use crate::model::error::ErrorObject;
use crate::model::permission::{PermissionRequest, PermissionSubject};
use crate::model::prompt::PromptResponse;
use crate::model::terminal::TerminalId;
use crate::model::tool::{ToolCallId, ToolCallStatus, ToolCallUpdate};
use crate::model::update::SessionUpdate;
use crate::rpc::Call;

/// Tool calls and terminals of a session that can be cancelled at a time, at most. More are simply not cancellable.
const CANCELLABLE: usize = 4096;

/// The longest id of one that can be cancelled, in bytes: with all of them, 8 MiB a session.
const LONGEST_ID: usize = 1024;

/// Tool calls whose titles are remembered, at most, and the longest title. More are not filled in.
const TITLES: usize = 256;
const LONGEST_TITLE: usize = 1024;

/// A session as its client has to remember it: open turns, open questions, options, and what can be cancelled.
#[derive(Debug, Default)]
pub struct ClientSession {
    turns: Turns,
    /// Permission requests that are not answered yet, oldest first.
    questions: Vec<Call>,
    tool_calls: HashSet<ToolCallId>,
    terminals: HashSet<TerminalId>,
    /// The titles of tool calls that have not ended.
    titles: HashMap<ToolCallId, String>,
    /// The options of the session, once it is open.
    pub options: SessionOptions,
    /// The slash commands of the session.
    pub commands: Vec<AvailableCommand>,
    /// Whether we have closed it.
    pub is_closed: bool,
}

/// What a client does with a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Put it to the person.
    Ask,
    /// Answer `cancelled`: the turn that it belongs to is.
    Cancelled,
}

impl ClientSession {
    /// A prompt is about to be sent.
    pub fn begin_turn(&mut self) -> TurnId {
        self.turns.begin()
    }

    /// Whether a turn has begun and not ended.
    pub fn is_open(&self, turn: TurnId) -> bool {
        self.turns.is_open(turn)
    }

    /// The agent has answered a prompt. Returns the end of its turn, if it has ended.
    pub fn prompt_answered(&mut self, turn: TurnId, answer: Result<PromptResponse, ErrorObject>) -> Option<TurnEnd> {
        self.turns.answered(turn, answer)
    }

    /// Takes in an update and gives it the meaning that it has in every dialect: a change of mode is a change of an option.
    /// Returns the turns that have ended by it; they end after the update.
    pub fn handle_update(&mut self, update: &mut SessionUpdate) -> Vec<TurnEnd> {
        match update {
            SessionUpdate::State(state) => return self.turns.state_changed(state),
            SessionUpdate::UserMessage(message) => self.turns.echoed(&message.message_id),
            SessionUpdate::UserMessageChunk(chunk) => {
                if let Some(message) = &chunk.message_id {
                    self.turns.echoed(message);
                }
            }
            SessionUpdate::ToolCallUpdate(call) => {
                let change = call.capabilities.map(|capabilities| capabilities.cancel.is_some());
                note(&mut self.tool_calls, &call.tool_call_id, &change);
                self.note_title(call);
            }
            SessionUpdate::ToolCall(call) => self.note_title(call),
            SessionUpdate::TerminalUpdate(terminal) => {
                let change = terminal.capabilities.map(|capabilities| capabilities.cancel.is_some());
                note(&mut self.terminals, &terminal.terminal_id, &change);
            }
            SessionUpdate::AvailableCommands(update) => self.commands.clone_from(&update.available_commands),
            SessionUpdate::CurrentMode(_) | SessionUpdate::ConfigOptions(_) => self.options.handle_update(update),
            _ => {}
        }
        Vec::new()
    }

    fn note_title(&mut self, call: &ToolCallUpdate) {
        if call.status.set().is_some_and(ToolCallStatus::is_final) {
            self.titles.remove(&call.tool_call_id);
        } else if let Some(title) = call.title.set()
            && title.len() <= LONGEST_TITLE
            && call.tool_call_id.as_str().len() <= LONGEST_ID
            && (self.titles.len() < TITLES || self.titles.contains_key(&call.tool_call_id))
        {
            self.titles.insert(call.tool_call_id.clone(), title.clone());
        }
    }

    /// Fills in the title of the tool call that a permission request is about. Agents of version 1 may name the call only,
    /// and nobody should have to say yes to a number.
    fn fill_in(&self, request: &mut PermissionRequest) {
        if let Some(PermissionSubject::ToolCall(subject)) = &mut request.subject
            && subject.tool_call.title.is_keep()
            && let Some(title) = self.titles.get(&subject.tool_call.tool_call_id)
        {
            subject.tool_call.title = Patch::Set(title.clone());
            request.title.get_or_insert_with(|| title.clone());
        }
    }

    /// The agent asks for permission. What is known of the tool call and is missing in the request is filled in.
    pub fn handle_question(&mut self, call: Call, request: &mut PermissionRequest) -> Question {
        if self.turns.oldest().is_some_and(|turn| self.turns.is_cancelled(turn)) {
            return Question::Cancelled;
        }
        self.fill_in(request);
        self.questions.push(call);
        Question::Ask
    }

    /// A permission request is answered, or needs no answer any more. False when it was before.
    pub fn question_answered(&mut self, call: Call) -> bool {
        let open = self.questions.len();
        self.questions.retain(|question| *question != call);
        self.questions.len() < open
    }

    /// The turns up to `turn`, or all there are, are cancelled. Returns the permission requests that are answered
    /// `cancelled` by that.
    pub fn cancel(&mut self, turn: Option<TurnId>) -> Vec<Call> {
        self.turns.cancel(turn);
        std::mem::take(&mut self.questions)
    }

    /// Whether the agent says that this tool call can be cancelled by itself.
    pub fn can_cancel_tool_call(&self, id: &ToolCallId) -> bool {
        self.tool_calls.contains(id)
    }

    /// Whether the agent says that this terminal can be cancelled by itself.
    pub fn can_cancel_terminal(&self, id: &TerminalId) -> bool {
        self.terminals.contains(id)
    }

    /// The agent is gone: returns the turns that were open.
    pub fn close(&mut self) -> Vec<TurnId> {
        self.questions.clear();
        self.turns.take_all()
    }
}

/// Takes note of whether something can be cancelled.
fn note<T: Clone + Eq + std::hash::Hash + Borrow<str>>(cancellable: &mut HashSet<T>, id: &T, change: &Patch<bool>) {
    match change {
        Patch::Keep => {}
        Patch::Set(true) if cancellable.len() < CANCELLABLE && id.borrow().len() <= LONGEST_ID => {
            cancellable.insert(id.clone());
        }
        Patch::Set(true) => {}
        Patch::Set(false) | Patch::Clear => {
            cancellable.remove(id.borrow());
        }
    }
}
