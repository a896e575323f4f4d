//! How much a view holds, and what it forgets when that is too much.

use std::collections::BTreeSet;

use super::snapshot::Beside;
use super::{Entry, SessionView};
use crate::codec::Encode;
use crate::json::RawJson;
use crate::model::content::ContentBlock;
use crate::model::terminal::TerminalId;
use crate::model::tool::ToolCallContent;
use crate::model::update::{MessageChunk, SessionUpdate};
use crate::model::{Meta, Patch};

/// How much a view holds unless told otherwise, in bytes: weeks of work, and little enough for a dozen sessions.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// How much of one `_meta` is kept, in bytes. Its keys are merged, so it could grow without end.
const META_LIMIT: usize = 64 << 10;

/// What an entry, a terminal or a subagent takes beside its content: itself, and its id in an index.
const ITEM_OVERHEAD: usize = 512;

/// How much a view may hold, and about how much it does.
///
/// Every update adds its own length, but what it replaces is not taken off. So `used` is too much, and when it reaches
/// the limit everything is measured. That is rare, because at least a quarter of the limit has arrived since the last time.
#[derive(Debug, Clone)]
pub(super) struct Room {
    limit: usize,
    used: usize,
}

impl Default for Room {
    #[inline]
    fn default() -> Self {
        Room { limit: DEFAULT_LIMIT, used: 0 }
    }
}

/// Two views that show the same are equal.
impl PartialEq for Room {
    #[inline]
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Room {
    #[inline]
    pub(super) fn new(limit: usize) -> Self {
        Room { limit, used: 0 }
    }
}

impl SessionView {
    /// How many entries, terminals and subagents there are; entries that were forgotten count as well.
    #[inline]
    pub(super) fn items(&self) -> usize {
        self.timeline.end() + self.terminals.len() + self.subagents.len()
    }

    /// Counts what was just added to a view that had so many items, and forgets the oldest if that is too much.
    #[inline]
    pub(super) fn take_room(&mut self, bytes: usize, items_before: usize) {
        let new_items = self.items().saturating_sub(items_before);
        self.room.used = self.room.used.saturating_add(bytes + new_items * ITEM_OVERHEAD);
        if self.room.used > self.room.limit {
            self.shrink();
        }
    }

    /// Forgets until three quarters of the limit are left: first the oldest entries with the terminals that they show,
    /// then what is beside the conversation, and last everything but the state.
    #[inline]
    fn shrink(&mut self) {
        let target = self.room.limit / 4 * 3;
        let mut used = self.measure();
        let mut count = 0;
        let mut terminals = BTreeSet::new();
        for entry in self.timeline().iter().rev().skip(1).rev() {
            if used <= target {
                break;
            }
            used = used.saturating_sub(measure_entry(entry));
            count += 1;
            for id in shown_terminals(entry) {
                if let Some(terminal) = self.terminals.get(id).filter(|terminal| terminal.exit_status.is_some())
                    && terminals.insert(id.clone())
                {
                    used = used.saturating_sub(measure(terminal) + ITEM_OVERHEAD);
                }
            }
        }
        self.timeline.forget_oldest(count);
        self.terminals.retain(|id, _| !terminals.contains(id));
        self.omitted += (count + terminals.len()) as u64;

        let steps: [fn(&mut SessionView) -> usize; 4] = [
            |view| std::mem::take(&mut view.unknown).len(),
            |view| {
                let all = view.terminals.len();
                view.terminals.retain(|_, terminal| terminal.exit_status.is_none());
                all - view.terminals.len()
            },
            |view| std::mem::take(&mut view.subagents).len() + std::mem::take(&mut view.plans).len(),
            |view| {
                let entries = view.timeline().len();
                view.timeline.forget_oldest(entries);
                let SessionView { timeline, room, state, omitted, unknown_count, .. } = std::mem::take(view);
                *view = SessionView { timeline, room, state, omitted, unknown_count, ..SessionView::default() };
                entries.max(1)
            },
        ];
        for forget in steps {
            if used <= target {
                break;
            }
            self.omitted += forget(self) as u64;
            used = self.measure();
        }
        self.room.used = used;
    }

    /// Counts all that there is, and forgets the oldest if that is too much.
    #[inline]
    pub(super) fn recount(&mut self) {
        self.room.used = self.measure();
        self.take_room(0, self.items());
    }

    #[inline]
    fn measure(&self) -> usize {
        let entries: usize = self.timeline().iter().map(measure_entry).sum();
        entries + measure(&Beside(self)) + (self.terminals.len() + self.subagents.len()) * ITEM_OVERHEAD
    }
}

/// About how many bytes an update adds at most.
#[inline]
pub(super) fn measure_update(update: &SessionUpdate) -> usize {
    match update {
        SessionUpdate::UserMessageChunk(MessageChunk { content: ContentBlock::Text(text), meta: None, .. })
        | SessionUpdate::AgentMessageChunk(MessageChunk { content: ContentBlock::Text(text), meta: None, .. })
        | SessionUpdate::AgentThoughtChunk(MessageChunk { content: ContentBlock::Text(text), meta: None, .. })
            if text.annotations.is_none() && text.meta.is_none() =>
        {
            text.text.len()
        }
        SessionUpdate::TerminalOutputChunk(chunk) => chunk.data.len(),
        update => measure(update),
    }
}

/// About how many bytes a value takes: its length as JSON.
#[inline]
pub(super) fn measure<T: Encode>(value: &T) -> usize {
    RawJson::from_model(value).as_str().len()
}

#[inline]
fn measure_entry(entry: &Entry) -> usize {
    measure(entry) + ITEM_OVERHEAD
}

#[inline]
fn shown_terminals(entry: &Entry) -> impl Iterator<Item = &TerminalId> {
    let content = match entry {
        Entry::ToolCall(call) => call.content.as_slice(),
        _ => &[],
    };
    content.iter().filter_map(|piece| match piece {
        ToolCallContent::Terminal(terminal) => Some(&terminal.terminal_id),
        _ => None,
    })
}

/// Brings `_meta` up to date, key by key. If that makes it too long, only the newest part is kept.
#[inline]
pub(super) fn patch_meta(stored: &mut Option<Meta>, patch: &Patch<Meta>) {
    match patch {
        Patch::Keep => {}
        Patch::Clear => *stored = None,
        Patch::Set(patch) => {
            let length = |meta: &Meta| meta.as_raw().as_str().len();
            let old = stored.take().filter(|stored| length(stored) + length(patch) <= META_LIMIT);
            *stored = old.map_or_else(|| patch.merge(patch), |stored| stored.merge(patch));
        }
    }
}
