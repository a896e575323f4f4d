//! A session taken up again: from its log to where it was, and to what the client has seen of it.

use std::collections::HashMap;

use attache::agent::SessionHandle;
use attache::model::{
    MessageId, MessageUpdate, Patch, SessionUpdate, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
};
use attache::{Dialect, Error};

use crate::model::{Message, Part};
use crate::store::{self, Entry};

/// What a log says of where its session was.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) messages: Vec<Message>,
    /// The options that were set, in order.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) title: Option<String>,
    /// What has to be added, because the agent was stopped in the middle of a turn.
    pub(crate) repairs: Vec<Entry>,
}

/// What the model is told of a call that was interrupted.
const INTERRUPTED: &str = "interrupted: the agent was stopped before this was done";

impl Past {
    pub(crate) fn read(entries: &[Entry]) -> Self {
        let mut past = Past::default();
        let mut statuses: HashMap<ToolCallId, bool> = HashMap::new();
        let mut order: Vec<ToolCallId> = Vec::new();
        for entry in entries {
            match entry {
                Entry::Said { message } => past.messages.push(message.clone()),
                Entry::Compacted { messages } => past.messages.clone_from(messages),
                Entry::Set { option, value } => past.settings.push((option.clone(), value.clone())),
                Entry::Title { title } => past.title = Some(title.clone()),
                Entry::Update { update } => {
                    if let SessionUpdate::ToolCallUpdate(call) | SessionUpdate::ToolCall(call) = &**update {
                        let id = call.tool_call_id.clone();
                        if !statuses.contains_key(&id) {
                            order.push(id.clone());
                        }
                        let is_final = statuses.entry(id).or_default();
                        if let Patch::Set(status) = &call.status {
                            *is_final = status.is_final();
                        }
                    }
                }
                _ => {}
            }
        }
        for id in order.into_iter().filter(|id| !statuses[id]) {
            let update = ToolCallUpdate { status: Patch::Set(ToolCallStatus::Failed), ..ToolCallUpdate::new(id) };
            past.repairs.push(Entry::Update { update: Box::new(SessionUpdate::ToolCallUpdate(update.into())) });
        }
        for message in unanswered(&past.messages) {
            past.repairs.push(Entry::Said { message: message.clone() });
            past.messages.push(message);
        }
        past
    }
}

/// Results for the calls that have none. Only the last message with calls can lack some.
fn unanswered(messages: &[Message]) -> Vec<Message> {
    let mut missing = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => missing = calls.clone(),
            Message::Tool { id, .. } => missing.retain(|call| call.id != *id),
            Message::User { .. } => {}
        }
    }
    let result = |call: crate::model::Call| Message::Tool {
        id: call.id,
        name: call.name,
        parts: vec![Part::text(INTERRUPTED)],
        is_error: true,
    };
    missing.into_iter().map(result).collect()
}

/// Tells a client the whole history, as it was shown live.
pub(crate) async fn tell(handle: &SessionHandle, entries: &[Entry]) -> Result<(), Error> {
    let has_terminals = handle.client().dialect == Dialect::V2;
    for entry in store::merged(entries.to_vec()) {
        match entry {
            Entry::Prompt { id, content } => {
                let message = MessageUpdate { content: Patch::Set(content), ..MessageUpdate::new(MessageId::from(id)) };
                handle.update(SessionUpdate::UserMessage(message)).await?;
            }
            Entry::Update { update } if has_terminals => handle.update(*update).await?,
            Entry::Update { update } => {
                if let Some(update) = without_terminals(*update) {
                    handle.update(update).await?;
                }
            }
            Entry::Plain { update } if !has_terminals => {
                handle.update(SessionUpdate::ToolCallUpdate(update)).await?;
            }
            Entry::Title { title } => handle.title(title).await?,
            _ => {}
        }
    }
    Ok(())
}

/// The same without terminals that are gone.
fn without_terminals(mut update: SessionUpdate) -> Option<SessionUpdate> {
    match &mut update {
        SessionUpdate::TerminalUpdate(_) | SessionUpdate::TerminalOutputChunk(_) => return None,
        SessionUpdate::ToolCallUpdate(call) => {
            if let Patch::Set(content) = &mut call.content {
                content.retain(|part| !matches!(part, ToolCallContent::Terminal(_)));
            }
        }
        _ => {}
    }
    Some(update)
}
