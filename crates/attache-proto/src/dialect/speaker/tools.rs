//! Tool calls where the dialect has no pieces of content, or no terminals of the agent.

use std::collections::HashMap;

use super::{Emit, Speaker};
use crate::Dialect;
use crate::json::RawJson;
use crate::model::{
    Patch, SessionUpdate, TerminalId, ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};

/// The content that is remembered of one tool call. More pieces than fit are lost.
const REMEMBERED_CONTENT: usize = 1024 * 1024;

/// The tool calls that were told. Of those that have ended only the id is kept.
pub(super) type Tools = HashMap<ToolCallId, Tool>;

#[derive(Debug)]
pub(super) struct Tool {
    content: Vec<ToolCallContent>,
    weight: usize,
    /// Whether the content is all there is. If not, no piece can be added to it.
    is_whole: bool,
    has_ended: bool,
}

impl Tool {
    fn new() -> Self {
        Tool { content: Vec::new(), weight: 0, is_whole: true, has_ended: false }
    }

    fn set(&mut self, content: &[ToolCallContent]) {
        self.forget();
        self.is_whole = content.iter().all(|piece| self.push(piece));
        if !self.is_whole {
            self.forget();
        }
    }

    fn push(&mut self, piece: &ToolCallContent) -> bool {
        let weight = weight(piece);
        if self.weight + weight > REMEMBERED_CONTENT {
            return false;
        }
        self.weight += weight;
        self.content.push(piece.clone());
        true
    }

    fn forget(&mut self) {
        self.content = Vec::new();
        self.weight = 0;
        self.is_whole = false;
    }

    pub(super) fn shows(&self, terminal: &TerminalId) -> bool {
        self.content.iter().any(|piece| shown_terminal(piece) == Some(terminal))
    }
}

/// About how many bytes a piece of content takes.
fn weight(piece: &ToolCallContent) -> usize {
    match piece {
        ToolCallContent::Content(block) if block.content.as_text().is_some() => {
            block.content.as_text().map_or(0, str::len) + 32
        }
        piece => RawJson::from_model(piece).as_str().len(),
    }
}

fn shown_terminal(piece: &ToolCallContent) -> Option<&TerminalId> {
    match piece {
        ToolCallContent::Terminal(terminal) => Some(&terminal.terminal_id),
        _ => None,
    }
}

impl Speaker {
    /// Whether a tool call passes as it is, and all there is to remember of it is its new content.
    pub(super) fn can_keep(&self, call: &ToolCallUpdate) -> bool {
        let shows_terminal = |content: &[ToolCallContent]| content.iter().any(|piece| shown_terminal(piece).is_some());
        let Some(tool) = self.tools.get(&call.tool_call_id) else { return false };
        let Some(content) = call.content.set() else { return false };
        !shows_terminal(content)
            && !shows_terminal(&tool.content)
            && !call.status.set().is_some_and(ToolCallStatus::is_final)
            && self.is_plain(call)
    }

    /// Remembers the content of a tool call that was told.
    pub(super) fn keep(&mut self, call: ToolCallUpdate) {
        let (Some(tool), Patch::Set(content)) = (self.tools.get_mut(&call.tool_call_id), call.content) else { return };
        tool.weight = content.iter().map(weight).sum();
        tool.is_whole = tool.weight <= REMEMBERED_CONTENT;
        if tool.is_whole { tool.content = content } else { tool.forget() }
    }

    pub(super) fn say_tool_call(&mut self, call: &ToolCallUpdate, update: &SessionUpdate, emit: Emit<'_>) {
        let is_first = !self.tools.contains_key(&call.tool_call_id);
        let ends = call.status.set().is_some_and(ToolCallStatus::is_final);
        let tool = self.tools.entry(call.tool_call_id.clone()).or_insert_with(Tool::new);
        match &call.content {
            Patch::Set(content) => tool.set(content),
            Patch::Clear => tool.set(&[]),
            Patch::Keep => {}
        }
        let speaks_whole = (ends || !call.content.is_keep()) && self.shows_own_terminal(&call.tool_call_id);

        let begins = is_first && self.dialect == Dialect::V1;
        let is_fit = match update {
            SessionUpdate::ToolCall(call) => begins && call.title.set().is_some(),
            _ => !begins,
        };
        if is_fit && !speaks_whole && self.is_plain(call) {
            emit(update);
        } else {
            let mut said = call.clone();
            self.make_plain(&mut said, is_first);
            if speaks_whole {
                said.content = Patch::Set(self.told_content(&call.tool_call_id));
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
            self.end_tool_call(&call.tool_call_id);
        }
    }

    pub(super) fn say_tool_content(&mut self, chunk: &ToolCallContentChunk, update: &SessionUpdate, emit: Emit<'_>) {
        let id = &chunk.tool_call_id;
        let is_first = !self.tools.contains_key(id);
        let tool = self.tools.entry(id.clone()).or_insert_with(Tool::new);
        let kept = tool.is_whole && tool.push(&chunk.content);
        let draft = self.dialect == Dialect::V2Draft;
        if draft && !kept {
            tool.forget();
        }
        if draft && shown_terminal(&chunk.content).is_none() && !self.shows_own_terminal(id) {
            return emit(update);
        }
        if !kept {
            return self.lose("tool_call_content_chunk");
        }
        let content = Patch::Set(self.told_content(id));
        let said = ToolCallUpdate { content, ..ToolCallUpdate::new(id.clone()) };
        if is_first && !draft {
            emit(&SessionUpdate::ToolCall(ToolCallUpdate { title: Patch::Set("Tool call".into()), ..said }.into()));
        } else {
            emit(&SessionUpdate::ToolCallUpdate(said.into()));
        }
    }

    /// Tells the content of the tool calls that show a terminal, now that it has ended.
    pub(super) fn say_shown(&mut self, terminal: &TerminalId, emit: Emit<'_>) {
        let mut showing: Vec<ToolCallId> =
            self.tools.iter().filter(|(_, tool)| tool.shows(terminal)).map(|(id, _)| id.clone()).collect();
        showing.sort();
        for id in showing {
            let content = Patch::Set(self.told_content(&id));
            emit(&SessionUpdate::ToolCallUpdate(ToolCallUpdate { content, ..ToolCallUpdate::new(id.clone()) }.into()));
            if self.tools.get(&id).is_some_and(|tool| tool.has_ended) {
                self.end_tool_call(&id);
            }
        }
    }

    /// Forgets the content of a tool call, unless a terminal in it has still something to tell.
    fn end_tool_call(&mut self, id: &ToolCallId) {
        let Some(tool) = self.tools.get_mut(id) else { return };
        tool.has_ended = true;
        if !tool.content.iter().filter_map(shown_terminal).any(|terminal| self.terminals.is_running(terminal)) {
            tool.forget();
        }
    }

    /// Whether a tool call shows a terminal that the client does not have. The draft has no terminals at all.
    fn shows_own_terminal(&self, id: &ToolCallId) -> bool {
        let Some(tool) = self.tools.get(id) else { return false };
        let mut shown = tool.content.iter().filter_map(shown_terminal);
        shown.any(|terminal| self.dialect == Dialect::V2Draft || self.terminals.knows(terminal))
    }

    /// The content of a tool call, with the text of terminals in their place.
    fn told_content(&self, id: &ToolCallId) -> Vec<ToolCallContent> {
        let content = self.tools.get(id).map_or(&[][..], |tool| &tool.content);
        let told = |piece: &ToolCallContent| match shown_terminal(piece) {
            Some(terminal) if self.terminals.knows(terminal) => ToolCallContent::text(self.terminals.text(terminal)),
            Some(_) if self.dialect == Dialect::V2Draft => ToolCallContent::text(""),
            _ => piece.clone(),
        };
        content.iter().map(told).collect()
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
        // Clearing these two means their defaults, which v1 can say.
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
}

/// Takes back a clearing, and says whether there was one.
fn keep_instead<T>(patch: &mut Patch<T>) -> bool {
    let clears = matches!(patch, Patch::Clear);
    if clears {
        *patch = Patch::Keep;
    }
    clears
}
