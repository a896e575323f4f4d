//! The entries of the conversation, and their places.

use std::collections::{BTreeMap, VecDeque};

use super::entry::append;
use super::{Compaction, Entry, Message, MessageRole, PeerMessage, ToolCall, patch_meta, patch_value};
use crate::model::Patch;
use crate::model::content::{ContentBlock, MessageId};
use crate::model::notice::{CompactionId, CompactionStatus, CompactionSummaryChunk, CompactionUpdate};
use crate::model::tool::{ToolCallContentChunk, ToolCallId, ToolCallUpdate};
use crate::model::unstable::{SessionMessage, SessionMessageChunk};
use crate::model::update::{MessageChunk, MessageUpdate};

/// Entries are added at the end and forgotten at the front. A place counts from the first entry that there ever was, so it
/// stays right once it is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Timeline {
    entries: Vec<Entry>,
    /// The place of the first entry: how many were forgotten.
    first_place: usize,
    messages: BTreeMap<(MessageRole, MessageId), usize>,
    tool_calls: BTreeMap<ToolCallId, usize>,
    compactions: BTreeMap<CompactionId, usize>,
    peer_messages: BTreeMap<MessageId, usize>,
    /// Prompts that the agent has not reported, oldest first.
    prompts: VecDeque<usize>,
    /// Whether the last entry is over, so that a chunk without an id begins a new message.
    is_ended: bool,
}

impl Timeline {
    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    #[inline]
    pub(super) fn first_place(&self) -> usize {
        self.first_place
    }

    /// The place that the next entry will have.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.first_place + self.entries.len()
    }

    #[inline]
    pub(super) fn entry(&self, place: usize) -> Option<&Entry> {
        self.entries.get(place.checked_sub(self.first_place)?)
    }

    #[inline]
    fn entry_mut(&mut self, place: usize) -> &mut Entry {
        &mut self.entries[place - self.first_place]
    }

    /// Adds an entry of a snapshot. Of two with the same id the first is found by it.
    #[inline]
    pub(super) fn restore(&mut self, entry: Entry) {
        let place = self.end();
        match &entry {
            Entry::Message(Message { role, id: Some(id), .. }) => {
                self.messages.entry((*role, id.clone())).or_insert(place);
            }
            Entry::ToolCall(call) => {
                self.tool_calls.entry(call.id.clone()).or_insert(place);
            }
            Entry::Compaction(compaction) => {
                self.compactions.entry(compaction.id.clone()).or_insert(place);
            }
            Entry::PeerMessage(message) => {
                self.peer_messages.entry(message.id.clone()).or_insert(place);
            }
            Entry::Message(_) | Entry::Notice(_) => {}
        }
        self.push(entry);
        self.end_message();
    }

    /// Forgets entries at the front.
    #[inline]
    pub(super) fn forget_oldest(&mut self, count: usize) {
        self.entries.drain(..count);
        self.first_place += count;
        let first = self.first_place;
        self.messages.retain(|_, place| *place >= first);
        self.tool_calls.retain(|_, place| *place >= first);
        self.compactions.retain(|_, place| *place >= first);
        self.peer_messages.retain(|_, place| *place >= first);
        self.prompts.retain(|place| *place >= first);
    }

    #[inline]
    pub(super) fn message(&self, role: MessageRole, id: &MessageId) -> Option<&Message> {
        let place = *self.messages.get(&(role, id.clone()))?;
        Some(self.message_at(place))
    }

    #[inline]
    pub(super) fn tool_call(&self, id: &ToolCallId) -> Option<&ToolCall> {
        match self.entry(*self.tool_calls.get(id)?) {
            Some(Entry::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn tool_calls_mut(&mut self) -> impl Iterator<Item = &mut ToolCall> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::ToolCall(call) => Some(&mut **call),
            _ => None,
        })
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) -> usize {
        let place = self.end();
        self.entries.push(entry);
        self.is_ended = false;
        place
    }

    /// Nothing more comes of the last message, unless it is called by its id.
    #[inline]
    pub(super) fn end_message(&mut self) {
        self.is_ended = true;
    }

    #[inline]
    pub(super) fn end_turn(&mut self) {
        self.end_message();
        self.prompts.clear();
    }

    #[inline]
    pub(super) fn user_prompt(&mut self, prompt: &[ContentBlock]) -> usize {
        let message = Message { content: prompt.to_vec(), ..Message::new(MessageRole::User) };
        let place = self.push(Entry::Message(message));
        self.prompts.push_back(place);
        place
    }

    #[inline]
    pub(super) fn handle_chunk(&mut self, role: MessageRole, chunk: &MessageChunk) -> usize {
        let id = chunk.message_id.as_ref();
        let known = match id {
            Some(id) => self.messages.get(&(role, id.clone())).copied(),
            None => self.open_message(role),
        };
        let place = known.unwrap_or_else(|| {
            let prompt = match id {
                Some(_) => self.oldest_prompt(role),
                None => self.echoed_prompt(role, &chunk.content),
            };
            let place = self.begin_message(role, id, prompt);
            let message = self.message_mut(place);
            message.content.clear();
            message.meta.clone_from(&chunk.meta);
            place
        });
        append(&mut self.message_mut(place).content, &chunk.content);
        place
    }

    #[inline]
    pub(super) fn handle_message(&mut self, role: MessageRole, update: &MessageUpdate) -> usize {
        let id = &update.message_id;
        let place = self.messages.get(&(role, id.clone())).copied().unwrap_or_else(|| {
            let prompt = self.same_prompt(role, &update.content).or_else(|| self.oldest_prompt(role));
            self.begin_message(role, Some(id), prompt)
        });
        let message = self.message_mut(place);
        patch_value(&mut message.content, &update.content);
        patch_meta(&mut message.meta, &update.meta);
        place
    }

    #[inline]
    pub(super) fn handle_tool_call(&mut self, update: &ToolCallUpdate) -> usize {
        let place = self.tool_call_place(&update.tool_call_id);
        self.tool_call_mut(place).handle_update(update);
        place
    }

    #[inline]
    pub(super) fn handle_tool_call_chunk(&mut self, chunk: &ToolCallContentChunk) -> usize {
        let place = self.tool_call_place(&chunk.tool_call_id);
        self.tool_call_mut(place).content.push(chunk.content.clone());
        place
    }

    #[inline]
    pub(super) fn handle_compaction(&mut self, update: &CompactionUpdate) -> usize {
        let place = self.compaction_place(&update.compaction_id);
        let compaction = self.compaction_mut(place);
        compaction.status.clone_from(&update.status);
        patch_value(&mut compaction.summary, &update.summary);
        update.error.clone().apply(&mut compaction.error);
        patch_meta(&mut compaction.meta, &update.meta);
        place
    }

    #[inline]
    pub(super) fn handle_summary_chunk(&mut self, chunk: &CompactionSummaryChunk) -> usize {
        let place = self.compaction_place(&chunk.compaction_id);
        append(&mut self.compaction_mut(place).summary, &chunk.content);
        place
    }

    #[inline]
    pub(super) fn handle_peer_message(&mut self, update: &SessionMessage) -> usize {
        let place = self.peer_message_place(&update.message_id);
        let message = self.peer_message_mut(place);
        update.sender_session_id.clone().apply(&mut message.sender_session_id);
        update.recipient_session_id.clone().apply(&mut message.recipient_session_id);
        update.sender_message_id.clone().apply(&mut message.sender_message_id);
        update.recipient_message_id.clone().apply(&mut message.recipient_message_id);
        patch_value(&mut message.content, &update.content);
        patch_meta(&mut message.meta, &update.meta);
        place
    }

    #[inline]
    pub(super) fn handle_peer_chunk(&mut self, chunk: &SessionMessageChunk) -> usize {
        let place = self.peer_message_place(&chunk.message_id);
        append(&mut self.peer_message_mut(place).content, &chunk.content);
        place
    }

    /// The place of a message that begins now: that of the prompt which it reports, or a new one.
    #[inline]
    fn begin_message(&mut self, role: MessageRole, id: Option<&MessageId>, prompt: Option<usize>) -> usize {
        let place = prompt.unwrap_or_else(|| self.push(Entry::Message(Message::new(role))));
        self.prompts.retain(|prompt| *prompt != place);
        if place + 1 == self.end() {
            self.is_ended = false;
        }
        if let Some(id) = id {
            self.message_mut(place).id = Some(id.clone());
            self.messages.insert((role, id.clone()), place);
        }
        place
    }

    /// The message that a chunk without an id continues: the last entry, if it is one of this role that the agent sent.
    #[inline]
    fn open_message(&self, role: MessageRole) -> Option<usize> {
        let is_open = matches!(self.entries.last()?, Entry::Message(message) if message.role == role);
        let place = self.end() - 1;
        (is_open && !self.is_ended && !self.prompts.contains(&place)).then_some(place)
    }

    #[inline]
    fn oldest_prompt(&self, role: MessageRole) -> Option<usize> {
        self.prompts.front().copied().filter(|_| role == MessageRole::User)
    }

    /// The prompt with this very content.
    #[inline]
    fn same_prompt(&self, role: MessageRole, content: &Patch<Vec<ContentBlock>>) -> Option<usize> {
        let content = content.set().filter(|_| role == MessageRole::User)?;
        self.prompts.iter().copied().find(|prompt| self.message_at(*prompt).content == *content)
    }

    /// The prompt just sent, if it begins like this chunk without an id. Other chunks are messages of their own.
    #[inline]
    fn echoed_prompt(&self, role: MessageRole, chunk: &ContentBlock) -> Option<usize> {
        let is_last = |prompt: &usize| role == MessageRole::User && prompt + 1 == self.end();
        let prompt = self.prompts.back().copied().filter(is_last)?;
        let first = self.message_at(prompt).content.first()?;
        let is_echo = match (first.as_text(), chunk.as_text()) {
            (Some(prompt), Some(chunk)) => prompt.starts_with(chunk) || chunk.starts_with(prompt),
            _ => first == chunk,
        };
        is_echo.then_some(prompt)
    }

    #[inline]
    fn message_at(&self, place: usize) -> &Message {
        match self.entry(place) {
            Some(Entry::Message(message)) => message,
            _ => unreachable!("the place of a message holds a message"),
        }
    }

    #[inline]
    fn message_mut(&mut self, place: usize) -> &mut Message {
        match self.entry_mut(place) {
            Entry::Message(message) => message,
            _ => unreachable!("the place of a message holds a message"),
        }
    }

    #[inline]
    fn tool_call_place(&mut self, id: &ToolCallId) -> usize {
        self.tool_calls.get(id).copied().unwrap_or_else(|| {
            let place = self.push(Entry::ToolCall(Box::new(ToolCall::new(id.clone()))));
            self.tool_calls.insert(id.clone(), place);
            place
        })
    }

    #[inline]
    fn tool_call_mut(&mut self, place: usize) -> &mut ToolCall {
        match self.entry_mut(place) {
            Entry::ToolCall(call) => call,
            _ => unreachable!("the place of a tool call holds a tool call"),
        }
    }

    #[inline]
    fn compaction_place(&mut self, id: &CompactionId) -> usize {
        self.compactions.get(id).copied().unwrap_or_else(|| {
            let place = self.push(Entry::Compaction(Compaction::new(id.clone(), CompactionStatus::InProgress)));
            self.compactions.insert(id.clone(), place);
            place
        })
    }

    #[inline]
    fn compaction_mut(&mut self, place: usize) -> &mut Compaction {
        match self.entry_mut(place) {
            Entry::Compaction(compaction) => compaction,
            _ => unreachable!("the place of a compaction holds a compaction"),
        }
    }

    #[inline]
    fn peer_message_place(&mut self, id: &MessageId) -> usize {
        self.peer_messages.get(id).copied().unwrap_or_else(|| {
            let place = self.push(Entry::PeerMessage(Box::new(PeerMessage::new(id.clone()))));
            self.peer_messages.insert(id.clone(), place);
            place
        })
    }

    #[inline]
    fn peer_message_mut(&mut self, place: usize) -> &mut PeerMessage {
        match self.entry_mut(place) {
            Entry::PeerMessage(message) => message,
            _ => unreachable!("the place of a message between agents holds one"),
        }
    }
}
