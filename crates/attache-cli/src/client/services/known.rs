//! What is known of the tool calls that go on, for what their permission requests leave out.

use std::collections::HashMap;

use attache::SessionView;
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::tool::{ToolCallContent, ToolCallId, ToolCallUpdate};
use attache::model::update::SessionUpdate;
use attache::proto::view::ToolCall;

use crate::event;

/// How many tool calls are known at once, how much of each, and of all.
const MOST_CALLS: usize = 64;
const MOST_BYTES: usize = 1 << 20;
const MOST_BYTES_OF_ALL: usize = 8 << 20;

/// About what a part of a list takes beside its text.
const PART: usize = 256;

/// The tool calls that go on. What is too much to keep is not known, and then its request has to speak for itself.
#[derive(Default)]
pub(super) struct KnownCalls {
    calls: HashMap<ToolCallId, (SessionView, usize)>,
    bytes: usize,
}

impl KnownCalls {
    /// What is known of a tool call.
    pub(super) fn get(&self, id: &ToolCallId) -> Option<&ToolCall> {
        self.calls.get(id)?.0.tool_call(id)
    }

    /// Learns what a tool call is about: no more of it than a permission request may leave out.
    pub(super) fn note(&mut self, update: &SessionUpdate) {
        let (id, is_final, size) = match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                (&call.tool_call_id, call.status.set().is_some_and(|status| status.is_final()), size_of_call(call))
            }
            SessionUpdate::ToolCallContentChunk(chunk) => (&chunk.tool_call_id, false, size_of_content(&chunk.content)),
            _ => return,
        };
        let (mut view, before) = self.calls.remove(id).unwrap_or_default();
        self.bytes -= before;
        let total = before + size;
        let is_too_much =
            total > MOST_BYTES || self.bytes + total > MOST_BYTES_OF_ALL || self.calls.len() >= MOST_CALLS;
        if is_final || is_too_much {
            return;
        }
        match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                let mut kept = ToolCallUpdate::new(call.tool_call_id.clone());
                kept.kind = call.kind.clone();
                kept.title = call.title.clone();
                kept.raw_input = call.raw_input.clone();
                kept.content = call.content.clone();
                kept.locations = call.locations.clone();
                view.apply(&SessionUpdate::ToolCallUpdate(kept.into()))
            }
            other => view.apply(other),
        };
        self.bytes += total;
        self.calls.insert(id.clone(), (view, total));
    }
}

/// About how much is kept of a tool call.
fn size_of_call(call: &ToolCallUpdate) -> usize {
    let content: usize = call.content.set().into_iter().flatten().map(size_of_content).sum();
    let input = call.raw_input.set().map_or(0, |input| input.as_str().len());
    let title = call.title.set().map_or(0, String::len);
    let locations: usize = call.locations.set().into_iter().flatten().map(|place| place.path.len() + PART).sum();
    PART + content + input + title + locations
}

/// About how much there is in a part of a tool call.
fn size_of_content(content: &ToolCallContent) -> usize {
    PART + match content {
        ToolCallContent::Content(block) => match &block.content {
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::Audio(audio) => audio.data.len(),
            other => event::text_of(other).len(),
        },
        ToolCallContent::Diff(diff) => match &**diff {
            Diff::Text(diff) => diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len),
            Diff::Patch(diff) => diff.patch.as_ref().map_or(0, |patch| patch.text.len()) + diff.changes.len() * 256,
        },
        _ => 0,
    }
}
