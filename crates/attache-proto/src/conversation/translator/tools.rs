//! Tool calls in dialects that have no content chunks (v1) or no terminals of the agent (the draft).

use std::collections::HashMap;

use super::terminals::REMEMBERED_OUTPUT;
use super::{Emit, UpdateTranslator, is_memorable};
use crate::Dialect;
use crate::json::RawJson;
use crate::model::Patch;
use crate::model::content::ContentBlock;
use crate::model::terminal::TerminalId;
use crate::model::tool::{ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind};
use crate::model::update::SessionUpdate;

/// The tool calls that are remembered. Then the oldest are forgotten, ended ones first; an update of a forgotten call
/// begins it again.
const CALL_LIMIT: usize = 1024;

/// The bytes of content that are remembered of all open tool calls of a session: a quarter of the longest message, so
/// that the content of one call fits into one even when much of it is escaped. Chunks beyond that are lost.
const CONTENT_LIMIT: usize = 16 * 1024 * 1024;

/// A chunk is sent at once, with all content before it, as long as that takes at most this many bytes a call…
const RESEND_ALLOWANCE: usize = 64 * 1024;

/// …and this many times the length of the content. From then on content is held back until it has grown by a third.
const RESEND_FACTOR: usize = 3;

/// What a piece of content takes beside its text.
const PIECE_OVERHEAD: usize = 64;

/// The tool calls that the client was told of.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: HashMap<ToolCallId, Tool>,
    /// The bytes of content of all of them.
    content_bytes: usize,
    /// How often a call has begun or ended.
    events: u64,
}

/// A tool call. Of one that has ended no content is kept, unless it shows a terminal that still runs.
#[derive(Debug)]
struct Tool {
    content: Vec<ToolCallContent>,
    content_bytes: usize,
    /// The bytes of content that were sent so far, over and over again.
    sent_bytes: usize,
    /// Whether the content is all there is. If not, no chunk can be added to it.
    is_whole: bool,
    /// Whether there is content that was not sent.
    is_held_back: bool,
    has_ended: bool,
    /// Which of the events of [`Tools`] began or ended it.
    last_event: u64,
}

impl Tools {
    fn begin(&mut self, id: &ToolCallId) {
        self.events += 1;
        let tool = Tool {
            content: Vec::new(),
            content_bytes: 0,
            sent_bytes: 0,
            is_whole: true,
            is_held_back: false,
            has_ended: false,
            last_event: self.events,
        };
        self.calls.insert(id.clone(), tool);
    }

    /// Forgets the older half of the calls that have ended, or of all calls if none has.
    fn forget_oldest(&mut self) {
        let any_ended = self.calls.values().any(|tool| tool.has_ended);
        let candidates = || self.calls.values().filter(|tool| tool.has_ended || !any_ended);
        let mut ages: Vec<u64> = candidates().map(|tool| tool.last_event).collect();
        let middle = ages.len() / 2;
        let newest = *ages.select_nth_unstable(middle).1;
        self.calls.retain(|_, tool| (any_ended && !tool.has_ended) || tool.last_event > newest);
        self.content_bytes = self.calls.values().map(|tool| tool.content_bytes).sum();
    }

    /// Replaces the content of a call by what was just sent. Too much of it is not remembered.
    fn set_content(&mut self, id: &ToolCallId, content: Vec<ToolCallContent>) {
        let bytes = content.iter().map(bytes_of).sum();
        self.forget_content(id);
        let Some(tool) = self.calls.get_mut(id) else { return };
        tool.sent_bytes = bytes;
        if self.content_bytes + bytes <= CONTENT_LIMIT {
            tool.is_whole = true;
            tool.content = content;
            tool.content_bytes = bytes;
            self.content_bytes += bytes;
        }
    }

    /// Adds a piece to the content of a call; says whether there was room for it.
    fn add_content(&mut self, id: &ToolCallId, piece: &ToolCallContent) -> bool {
        let Some(tool) = self.calls.get_mut(id) else { return false };
        let mut bytes = bytes_of(piece);
        if !tool.is_whole || self.content_bytes + bytes > CONTENT_LIMIT {
            return false;
        }
        if tool.content.last_mut().is_some_and(|last| join(last, piece)) {
            bytes -= PIECE_OVERHEAD;
        } else {
            tool.content.push(piece.clone());
        }
        tool.content_bytes += bytes;
        self.content_bytes += bytes;
        true
    }

    fn forget_content(&mut self, id: &ToolCallId) {
        let Some(tool) = self.calls.get_mut(id) else { return };
        self.content_bytes -= tool.content_bytes;
        tool.content = Vec::new();
        tool.content_bytes = 0;
        tool.is_whole = false;
        tool.is_held_back = false;
    }

    /// The calls that something holds of, in the order in which they began.
    fn select(&self, choose: &dyn Fn(&Tool) -> bool) -> Vec<ToolCallId> {
        let mut chosen: Vec<_> = self.calls.iter().filter(|(_, tool)| choose(tool)).collect();
        chosen.sort_unstable_by_key(|(_, tool)| tool.last_event);
        chosen.into_iter().map(|(id, _)| id.clone()).collect()
    }
}

/// Makes text that continues a text a part of it, so that a stream of text stays one piece. Says whether it did.
fn join(last: &mut ToolCallContent, next: &ToolCallContent) -> bool {
    if let (ToolCallContent::Content(last), ToolCallContent::Content(next)) = (last, next)
        && last.meta == next.meta
        && let (ContentBlock::Text(last), ContentBlock::Text(next)) = (&mut last.content, &next.content)
        && last.annotations == next.annotations
        && last.meta == next.meta
    {
        last.text.push_str(&next.text);
        return true;
    }
    false
}

/// About how many bytes a piece of content takes.
fn bytes_of(piece: &ToolCallContent) -> usize {
    let text = match piece {
        ToolCallContent::Content(block) => block.content.as_text(),
        _ => None,
    };
    PIECE_OVERHEAD + text.map_or_else(|| RawJson::from_model(piece).as_str().len(), str::len)
}

fn shown_terminal(piece: &ToolCallContent) -> Option<&TerminalId> {
    match piece {
        ToolCallContent::Terminal(terminal) => Some(&terminal.terminal_id),
        _ => None,
    }
}

fn shows_terminal(content: &[ToolCallContent]) -> bool {
    content.iter().any(|piece| shown_terminal(piece).is_some())
}

impl UpdateTranslator {
    /// Whether a tool call passes as it is, and all there is to remember of it is its new content.
    pub(super) fn can_keep(&self, call: &ToolCallUpdate) -> bool {
        let Some(tool) = self.tools.calls.get(&call.tool_call_id) else { return false };
        let Some(content) = call.content.set() else { return false };
        !shows_terminal(content)
            && !shows_terminal(&tool.content)
            && !call.status.set().is_some_and(ToolCallStatus::is_final)
            && self.is_plain(call)
    }

    /// Remembers the content of a tool call that was sent.
    pub(super) fn keep(&mut self, call: ToolCallUpdate) {
        if let Patch::Set(content) = call.content {
            self.tools.set_content(&call.tool_call_id, content);
        }
    }

    pub(super) fn say_tool_call(&mut self, call: &ToolCallUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        let id = &call.tool_call_id;
        let is_first = self.begin_tool_call(id, emit);
        let ends = call.status.set().is_some_and(ToolCallStatus::is_final);
        match &call.content {
            Patch::Set(content) => self.tools.set_content(id, content.clone()),
            Patch::Clear => self.tools.set_content(id, Vec::new()),
            Patch::Keep => {}
        }
        let is_held_back = self.tools.calls.get(id).is_some_and(|tool| tool.is_held_back);
        let sends_content =
            (ends && is_held_back) || ((ends || !call.content.is_keep()) && self.shows_own_terminal(id));

        let begins = is_first && self.dialect == Dialect::V1;
        let is_fit = match update {
            SessionUpdate::ToolCall(call) => begins && call.title.set().is_some(),
            _ => !begins,
        };
        if is_fit && !sends_content && self.is_plain(call) {
            emit(update);
        } else {
            let mut said = call.clone();
            self.make_plain(&mut said, is_first);
            if sends_content {
                said.content = Patch::Set(self.content_to_send(id));
            }
            if begins {
                let name = said.name.set().cloned();
                let title = said.title.set().cloned().or(name);
                said.title = Patch::Set(title.unwrap_or_else(|| "Tool call".into()));
                emit(&SessionUpdate::ToolCall(said.into()));
            } else {
                emit(&SessionUpdate::ToolCallUpdate(said.into()));
            }
        }
        if ends {
            self.end_tool_call(id);
        }
    }

    pub(super) fn say_tool_content(&mut self, chunk: &ToolCallContentChunk, update: &SessionUpdate, emit: Emit<'_>) {
        let id = &chunk.tool_call_id;
        let is_first = self.begin_tool_call(id, emit);
        let is_kept = self.tools.add_content(id, &chunk.content);
        if self.dialect == Dialect::V2Draft {
            if !is_kept {
                self.tools.forget_content(id);
            }
            return match shown_terminal(&chunk.content) {
                None => emit(update),
                Some(terminal) => {
                    let content = ToolCallContent::text(self.terminals.text(terminal));
                    emit(&SessionUpdate::ToolCallContentChunk(ToolCallContentChunk { content, ..chunk.clone() }));
                }
            };
        }
        if chunk.meta.is_some() {
            self.lose("tool_call_content_chunk._meta");
        }
        if !is_kept {
            return self.lose("tool_call_content_chunk");
        }
        if is_first {
            let title = Patch::Set("Tool call".into());
            let content = Patch::Set(self.content_to_send(id));
            let begun = ToolCallUpdate { title, content, ..ToolCallUpdate::new(id.clone()) };
            return emit(&SessionUpdate::ToolCall(begun.into()));
        }
        let Some(tool) = self.tools.calls.get_mut(id) else { return };
        tool.is_held_back = tool.sent_bytes > RESEND_ALLOWANCE + RESEND_FACTOR * tool.content_bytes;
        if !tool.is_held_back {
            self.send_content(id, emit);
        }
    }

    /// Remembers a tool call, as far as it can be; says whether it was unknown.
    fn begin_tool_call(&mut self, id: &ToolCallId, emit: Emit<'_>) -> bool {
        if self.tools.calls.contains_key(id) {
            return false;
        }
        if is_memorable(id.as_str()) {
            if self.tools.calls.len() >= CALL_LIMIT {
                self.send_held_back(emit);
                self.tools.forget_oldest();
            }
            self.tools.begin(id);
        }
        true
    }

    /// Sends all content that is held back.
    pub(super) fn send_held_back(&mut self, emit: Emit<'_>) {
        for id in self.tools.select(&|tool| tool.is_held_back) {
            self.send_content(&id, emit);
        }
    }

    /// Sends the content of the tool calls that show a terminal, now that it has ended.
    pub(super) fn send_showing(&mut self, terminal: &TerminalId, emit: Emit<'_>) {
        let shows = |tool: &Tool| tool.content.iter().any(|piece| shown_terminal(piece) == Some(terminal));
        for id in self.tools.select(&shows) {
            let Some(tool) = self.tools.calls.get_mut(&id) else { continue };
            // An agent can let a terminal end again and again.
            let shown_bytes = tool.content_bytes + REMEMBERED_OUTPUT;
            tool.is_held_back = !tool.has_ended && tool.sent_bytes > RESEND_ALLOWANCE + RESEND_FACTOR * shown_bytes;
            if !tool.is_held_back {
                self.send_content(&id, emit);
            }
            if self.tools.calls.get(&id).is_some_and(|tool| tool.has_ended) {
                self.end_tool_call(&id);
            }
        }
    }

    fn send_content(&mut self, id: &ToolCallId, emit: Emit<'_>) {
        let content = Patch::Set(self.content_to_send(id));
        emit(&SessionUpdate::ToolCallUpdate(ToolCallUpdate { content, ..ToolCallUpdate::new(id.clone()) }.into()));
    }

    /// Forgets the content of a tool call, unless a terminal in it is still to send its output.
    fn end_tool_call(&mut self, id: &ToolCallId) {
        self.tools.events += 1;
        let event = self.tools.events;
        let Some(tool) = self.tools.calls.get_mut(id) else { return };
        tool.has_ended = true;
        tool.last_event = event;
        let mut shown = tool.content.iter().filter_map(shown_terminal);
        if !shown.any(|terminal| self.terminals.is_running(terminal)) {
            self.tools.forget_content(id);
        }
    }

    /// Whether a tool call shows a terminal that the client does not have. The draft has no terminals at all.
    fn shows_own_terminal(&self, id: &ToolCallId) -> bool {
        let Some(tool) = self.tools.calls.get(id) else { return false };
        let mut shown = tool.content.iter().filter_map(shown_terminal);
        shown.any(|terminal| self.dialect == Dialect::V2Draft || self.terminals.knows(terminal))
    }

    /// The content of a tool call, with the text of each terminal where it is shown first. It counts as sent.
    fn content_to_send(&mut self, id: &ToolCallId) -> Vec<ToolCallContent> {
        let Some(tool) = self.tools.calls.get_mut(id) else { return Vec::new() };
        let mut shown = Vec::new();
        let replaced = |piece| match shown_terminal(piece) {
            // Its text may be long, and is there already.
            Some(terminal) if shown.contains(&terminal) => None,
            Some(terminal) if self.terminals.knows(terminal) => {
                shown.push(terminal);
                Some(ToolCallContent::text(self.terminals.text(terminal)))
            }
            Some(_) if self.dialect == Dialect::V2Draft => Some(ToolCallContent::text("")),
            _ => Some(piece.clone()),
        };
        let content: Vec<_> = tool.content.iter().filter_map(replaced).collect();
        tool.sent_bytes += content.iter().map(bytes_of).sum::<usize>();
        tool.is_held_back = false;
        content
    }

    /// Whether the dialect has words for all but the content.
    fn is_plain(&self, call: &ToolCallUpdate) -> bool {
        let known_status = match call.status.set() {
            Some(ToolCallStatus::Paused | ToolCallStatus::Cancelled) => false,
            Some(ToolCallStatus::Other(_)) => self.dialect != Dialect::V1,
            _ => true,
        };
        let known_kind = !matches!(call.kind.set(), Some(ToolKind::Other(_)));
        let clears = call.title == Patch::Clear
            || call.name == Patch::Clear
            || call.kind == Patch::Clear
            || call.status == Patch::Clear
            || call.raw_input == Patch::Clear
            || call.raw_output == Patch::Clear;
        known_status && (self.dialect != Dialect::V1 || (known_kind && !clears))
    }

    fn make_plain(&mut self, call: &mut ToolCallUpdate, is_first: bool) {
        match call.status.set() {
            Some(ToolCallStatus::Cancelled) => call.status = Patch::Set(ToolCallStatus::Failed),
            Some(ToolCallStatus::Paused) => {
                self.lose("tool_call_update.status");
                call.status = Patch::Set(ToolCallStatus::InProgress);
            }
            Some(ToolCallStatus::Other(_)) if self.dialect == Dialect::V1 => {
                self.lose("tool_call_update.status");
                call.status = Patch::Set(ToolCallStatus::InProgress);
            }
            _ => {}
        }
        if self.dialect != Dialect::V1 {
            return;
        }
        if matches!(call.kind.set(), Some(ToolKind::Other(_))) {
            self.lose("tool_call_update.kind");
            call.kind = Patch::Set(ToolKind::Generic);
        }
        // Clearing these two means their defaults, which v1 can express.
        if call.kind == Patch::Clear {
            call.kind = Patch::Set(ToolKind::Generic);
        }
        if call.status == Patch::Clear {
            call.status = Patch::Set(ToolCallStatus::Pending);
        }
        // A tool call that begins has nothing to clear.
        for (name, cleared) in [
            ("tool_call_update.title", keep_instead(&mut call.title)),
            ("tool_call_update.name", keep_instead(&mut call.name)),
            ("tool_call_update.rawInput", keep_instead(&mut call.raw_input)),
            ("tool_call_update.rawOutput", keep_instead(&mut call.raw_output)),
        ] {
            if cleared && !is_first {
                self.lose(name);
            }
        }
    }

    #[cfg(feature = "view")]
    #[cfg(test)]
    pub(in crate::conversation) fn remembered_tool_calls(&self) -> usize {
        self.tools.calls.len()
    }
}

/// Takes back a clearing, and says whether there was one.
fn keep_instead<T>(patch: &mut Patch<T>) -> bool {
    let clears = matches!(patch, Patch::Clear);
    if clears {
        *patch = Patch::Keep;
    }
    clears
}
