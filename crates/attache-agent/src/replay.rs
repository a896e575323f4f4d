//! A session taken up again: from its log to where it was, and to what the client has seen of it.

use std::collections::HashSet;

use attache::agent::SessionHandle;
use attache::model::Patch;
use attache::model::content::MessageId;
use attache::model::notice::{CompactionId, CompactionStatus, CompactionUpdate};
use attache::model::prompt::StopReason;
use attache::model::session::SessionId;
use attache::model::state::StateUpdate;
use attache::model::terminal::{ExitStatus, TerminalId, TerminalUpdate};
use attache::model::tool::{ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate};
use attache::model::unstable::SubagentUpdate;
use attache::model::update::{MessageUpdate, SessionUpdate};
use attache::{Dialect, Error};

use crate::model::metered::Total;
use crate::model::{Call, Message, Part};
use crate::store::{self, Entry};

/// What a log says of where its session was.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) messages: Vec<Message>,
    /// Which of the messages is the summary of those that are gone.
    pub(crate) summary: Option<usize>,
    /// The options that were set, in order.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) title: Option<String>,
    /// What its requests took.
    pub(crate) spent: Total,
    /// How many tokens its context held when that was last told, and how many messages these were.
    pub(crate) context: Option<(u64, usize)>,
    /// What has to be added, because the agent was stopped in the middle of a turn.
    pub(crate) repairs: Vec<Entry>,
}

/// What the model is told of a call that was interrupted.
const INTERRUPTED: &str = "interrupted: the agent was stopped before this was done";

impl Past {
    pub(crate) fn read(entries: &[Entry]) -> Self {
        let mut past = Past::default();
        let mut running = Running::default();
        for entry in entries {
            match entry {
                Entry::Said { message } => past.messages.push(message.clone()),
                Entry::Compacted { messages, summary } => {
                    past.messages.clone_from(messages);
                    past.context = None;
                    // In older logs the summary is all that was left.
                    past.summary = summary.or((messages.len() == 1).then_some(0)).filter(|at| *at < messages.len());
                }
                Entry::Set { option, value } => past.settings.push((option.clone(), value.clone())),
                Entry::Title { title } => past.title = Some(title.clone()),
                Entry::Spent(spent) => past.spent.add(spent),
                Entry::Update { update } => {
                    if let SessionUpdate::Usage(usage) = &**update {
                        // The answer is counted, and is said next.
                        past.context = Some((usage.used, past.messages.len() + 1));
                    }
                    running.see(update);
                }
                _ => {}
            }
        }
        past.repairs = running.ends().map(|update| Entry::Update { update: Box::new(update) }).collect();
        past.messages = mended(past.messages);
        past
    }
}

/// What the client sees as running, in order.
#[derive(Default)]
struct Running {
    calls: Vec<ToolCallId>,
    terminals: Vec<TerminalId>,
    compactions: Vec<CompactionId>,
    subagents: Vec<SessionId>,
}

impl Running {
    fn see(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::ToolCallUpdate(call) | SessionUpdate::ToolCall(call) => {
                let is_final = call.status.set().map(|status| status.is_final());
                note(&mut self.calls, &call.tool_call_id, is_final);
            }
            SessionUpdate::TerminalUpdate(terminal) => {
                note(&mut self.terminals, &terminal.terminal_id, Some(terminal.exit_status.set().is_some()));
            }
            SessionUpdate::Compaction(compaction) => {
                let is_final = compaction.status != CompactionStatus::InProgress;
                note(&mut self.compactions, &compaction.compaction_id, Some(is_final));
            }
            SessionUpdate::Subagent(subagent) => {
                let is_final = subagent.state.set().map(|state| matches!(state, StateUpdate::Idle(_)));
                note(&mut self.subagents, &subagent.session_id, is_final);
            }
            _ => {}
        }
    }

    /// How all of it ended when the agent was stopped.
    fn ends(self) -> impl Iterator<Item = SessionUpdate> {
        let terminals = self.terminals.into_iter().map(|id| {
            let exit_status = Patch::Set(ExitStatus::new());
            SessionUpdate::TerminalUpdate(
                TerminalUpdate::new(id).with(|update| update.exit_status = exit_status).into(),
            )
        });
        let calls = self.calls.into_iter().map(|id| {
            let status = Patch::Set(ToolCallStatus::Failed);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id).with(|update| update.status = status).into())
        });
        let compactions = self.compactions.into_iter();
        let compactions =
            compactions.map(|id| SessionUpdate::Compaction(CompactionUpdate::new(id, CompactionStatus::Cancelled)));
        let subagents = self.subagents.into_iter().map(|id| {
            let state = Patch::Set(StateUpdate::idle(StopReason::Cancelled));
            SessionUpdate::Subagent(SubagentUpdate::new(id).with(|update| update.state = state).into())
        });
        terminals.chain(calls).chain(compactions).chain(subagents)
    }
}

/// Notes what an update says: `None` says nothing of an end.
fn note<T: Clone + PartialEq>(running: &mut Vec<T>, id: &T, is_final: Option<bool>) {
    let is_new = !running.contains(id);
    match is_final {
        Some(true) => running.retain(|other| other != id),
        Some(false) if is_new => running.push(id.clone()),
        _ => {}
    }
}

/// The conversation with a result for every call: what was stopped, or could not be kept, left calls without one.
fn mended(messages: Vec<Message>) -> Vec<Message> {
    let mut mended = Vec::with_capacity(messages.len());
    let mut missing: Vec<Call> = Vec::new();
    for message in messages {
        match &message {
            Message::Tool { id, .. } => {
                let Some(place) = missing.iter().position(|call| call.id == *id) else { continue };
                missing.remove(place);
            }
            Message::Assistant { calls, .. } => {
                mended.extend(missing.drain(..).map(interrupted));
                missing.clone_from(calls);
            }
            Message::User { .. } => mended.extend(missing.drain(..).map(interrupted)),
        }
        mended.push(message);
    }
    mended.extend(missing.into_iter().map(interrupted));
    mended
}

fn interrupted(call: Call) -> Message {
    Message::Tool { id: call.id, name: call.name, parts: vec![Part::text(INTERRUPTED)], is_error: true }
}

/// Tells a client the whole history, as it was shown live.
pub(crate) async fn tell(handle: &SessionHandle, entries: &[Entry]) -> Result<(), Error> {
    let shown = Terminals::of(entries, handle.client().dialect);
    let withdrawn = withdrawn(entries);
    // Calls whose terminal is gone: text stands for it.
    let mut plain: HashSet<ToolCallId> = HashSet::new();
    let mut begun: HashSet<(bool, MessageId)> = HashSet::new();
    for entry in store::merged(entries.to_vec()) {
        match entry {
            Entry::Prompt { id, content } => {
                let message = MessageUpdate::new(MessageId::from(id)).content(content);
                handle.update(SessionUpdate::UserMessage(message)).await?;
            }
            Entry::Update { update } if message_of(&update).is_some_and(|id| withdrawn.contains(id)) => {}
            // A notice is of its moment, and no part of the history.
            Entry::Update { update } if matches!(*update, SessionUpdate::Notice(_)) => {}
            Entry::Update { update } => {
                if let Some(update) = shown.keep(*update, &mut plain) {
                    if let Some(first) = beginning(&update, &mut begun, handle.client().dialect) {
                        handle.update(first).await?;
                    }
                    handle.update(update).await?;
                }
            }
            Entry::Plain { update } if plain.contains(&update.tool_call_id) => {
                handle.update(SessionUpdate::ToolCallUpdate(update)).await?;
            }
            Entry::Title { title } => handle.title(title).await?,
            _ => {}
        }
    }
    Ok(())
}

/// Tells a client that has the history how full the context was at last, and what the session has cost.
pub(crate) async fn tell_usage(handle: &SessionHandle, entries: &[Entry]) -> Result<(), Error> {
    let last = entries.iter().rev().find_map(|entry| match entry {
        Entry::Update { update } if matches!(**update, SessionUpdate::Usage(_)) => Some((**update).clone()),
        _ => None,
    });
    match last {
        Some(usage) => handle.update(usage).await,
        None => Ok(()),
    }
}

/// What a message begins with where there are whole messages: nothing yet. A client that has some of it already does not
/// show that twice.
fn beginning(
    update: &SessionUpdate,
    begun: &mut HashSet<(bool, MessageId)>,
    dialect: Dialect,
) -> Option<SessionUpdate> {
    if dialect == Dialect::V1 {
        return None;
    }
    let (is_thought, id) = match update {
        SessionUpdate::AgentMessageChunk(chunk) => (false, chunk.message_id.clone()?),
        SessionUpdate::AgentThoughtChunk(chunk) => (true, chunk.message_id.clone()?),
        _ => return None,
    };
    let nothing = MessageUpdate::new(id.clone()).content([]);
    begun.insert((is_thought, id)).then_some(match is_thought {
        false => SessionUpdate::AgentMessage(nothing),
        true => SessionUpdate::AgentThought(nothing),
    })
}

/// The messages that were taken back: not every version can do that, and there is no need to show them again.
fn withdrawn(entries: &[Entry]) -> HashSet<MessageId> {
    let id = |entry: &Entry| match entry {
        Entry::Update { update } => match &**update {
            SessionUpdate::AgentMessage(message) | SessionUpdate::AgentThought(message) => {
                let is_empty = match &message.content {
                    Patch::Set(content) => content.is_empty(),
                    Patch::Clear => true,
                    Patch::Keep => false,
                };
                is_empty.then(|| message.message_id.clone())
            }
            _ => None,
        },
        _ => None,
    };
    entries.iter().filter_map(id).collect()
}

/// The message of the agent that an update is about.
fn message_of(update: &SessionUpdate) -> Option<&MessageId> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => chunk.message_id.as_ref(),
        SessionUpdate::AgentMessage(message) | SessionUpdate::AgentThought(message) => Some(&message.message_id),
        _ => None,
    }
}

/// The terminals that a client can be shown again: our own, where the version has such. Those of a client are gone.
struct Terminals(HashSet<TerminalId>);

impl Terminals {
    fn of(entries: &[Entry], dialect: Dialect) -> Self {
        let own = entries.iter().filter_map(|entry| match entry {
            Entry::Update { update } => match &**update {
                SessionUpdate::TerminalUpdate(terminal) => Some(terminal.terminal_id.clone()),
                _ => None,
            },
            _ => None,
        });
        Terminals(own.filter(|_| dialect.shows_terminals()).collect())
    }

    /// The update without terminals that are gone. Notes the calls that had some.
    fn keep(&self, mut update: SessionUpdate, plain: &mut HashSet<ToolCallId>) -> Option<SessionUpdate> {
        let is_there = |id: &TerminalId| self.0.contains(id);
        match &mut update {
            SessionUpdate::TerminalUpdate(terminal) if !is_there(&terminal.terminal_id) => return None,
            SessionUpdate::TerminalOutputChunk(chunk) if !is_there(&chunk.terminal_id) => return None,
            SessionUpdate::ToolCallUpdate(call) => {
                if let Patch::Set(content) = &mut call.content {
                    let is_kept = |part: &ToolCallContent| match part {
                        ToolCallContent::Terminal(terminal) => is_there(&terminal.terminal_id),
                        _ => true,
                    };
                    let before = content.len();
                    content.retain(is_kept);
                    if content.len() < before {
                        plain.insert(call.tool_call_id.clone());
                    }
                }
            }
            _ => {}
        }
        Some(update)
    }
}

#[cfg(test)]
mod tests;
