//! The translation of updates into a dialect: what a client of any dialect is shown.

use std::collections::HashSet;

use attache_proto::conversation::UpdateTranslator;
use attache_proto::json::{RawJson, Reader};
use attache_proto::model::capability::ClientCapabilities;
use attache_proto::model::tool::{ToolCallContent, ToolCallId};
use attache_proto::model::update::SessionUpdate;
use attache_proto::view::{SessionView, ToolCall};
use attache_proto::{Dialect, Encode};

use crate::input::Input;
use crate::message;

/// What comes of an update can be read in the dialect, is not much more than the update, and shows the same text of tool
/// calls, unless something is reported as lost.
pub fn translator(data: &[u8]) {
    let mut input = Input::new(data);
    let dialect = input.dialect();
    let mut translator = UpdateTranslator::new(dialect, &ClientCapabilities::new(), "p");
    let (mut source, mut shown) = (SessionView::new(), SessionView::new());
    let (mut received, mut sent) = (0, 0);
    // Tool calls that are not shown as they are.
    let mut different: HashSet<ToolCallId> = HashSet::new();
    while !input.is_empty() {
        if input.one_in(12) {
            translator.flush(&mut |update| sent += show(&mut shown, dialect, update));
            continue;
        }
        let json = message::update(&mut input);
        let Ok(update) = Reader::new(&json, Dialect::V2).decode::<SessionUpdate>() else { continue };
        received += json.len();
        source.apply(&update);
        let mut emit = |update: &SessionUpdate| sent += show(&mut shown, dialect, update);
        let lost = if input.one_in(2) {
            translator.say_owned(update.clone(), &mut emit)
        } else {
            translator.say(&update, &mut emit)
        };
        if lost.iter().any(|what| what.starts_with("tool_call_content_chunk")) {
            different.extend(tool_call_id(&update));
        }
    }
    translator.flush(&mut |update| sent += show(&mut shown, dialect, update));
    // All content of a call is sent again at most once for each chunk, as long as it is short.
    assert!(sent <= 64 * received + (64 << 10), "{received} bytes become {sent}");
    for call in source.tool_calls().filter(|call| is_text(call) && !different.contains(&call.id)) {
        let there = shown.tool_call(&call.id).unwrap_or_else(|| panic!("no tool call `{}` in {dialect:?}", call.id));
        assert_eq!(text(there), text(call), "{dialect:?}");
    }
}

/// Shows a client what it is sent; returns the length.
fn show(view: &mut SessionView, dialect: Dialect, update: &SessionUpdate) -> usize {
    let json = encode(update, dialect);
    let read = Reader::new(&json, dialect).decode::<SessionUpdate>();
    view.apply(&read.unwrap_or_else(|error| panic!("{error} in {json}")));
    json.len()
}

fn encode<T: Encode>(value: &T, dialect: Dialect) -> String {
    RawJson::encode_in(value, dialect).as_str().to_owned()
}

fn tool_call_id(update: &SessionUpdate) -> Option<ToolCallId> {
    match update {
        SessionUpdate::ToolCallContentChunk(chunk) => Some(chunk.tool_call_id.clone()),
        _ => None,
    }
}

/// Whether the content of a call is plain text, which every dialect has.
fn is_text(call: &ToolCall) -> bool {
    call.content
        .iter()
        .all(|piece| matches!(piece, ToolCallContent::Content(block) if block.content.as_text().is_some()))
}

fn text(call: &ToolCall) -> String {
    call.content
        .iter()
        .filter_map(|piece| match piece {
            ToolCallContent::Content(block) => block.content.as_text(),
            _ => None,
        })
        .collect()
}
