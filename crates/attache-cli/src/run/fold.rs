//! The updates of a turn, folded into one bounded view, and what is new in each of them.

use std::collections::{BTreeMap, BTreeSet};

use attache::SessionView;
use attache::model::Patch;
use attache::model::content::{ContentBlock, MessageId};
use attache::model::diff::Diff;
use attache::model::plan::{PlanContent, PlanUpdate};
use attache::model::tool::{Location, ToolCallContent, ToolCallContentChunk, ToolCallStatus, ToolCallUpdate, ToolKind};
use attache::model::update::{MessageChunk, MessageUpdate, SessionUpdate};
use attache::proto::view::{Entry, MessageRole, ToolCall};

use crate::event::{self, Cost, Event, Level, Text, Tool};
use crate::output::Waiting;

/// How much text is kept for the result. What is more was printed, or is in the journal.
const KEPT_TEXT: usize = 8 << 20;

/// How much is kept of thoughts, so that what is new in one can be told.
const KEPT_THOUGHTS: usize = 1 << 20;

/// How much all of it may take as JSON: the text if all of it has to be escaped, and tool calls without what is in them.
const KEPT: usize = 64 << 20;

/// How many tool calls, and how many files, are kept for the result.
pub(super) const KEPT_ROWS: usize = 1000;

/// How much of a title is kept.
const KEPT_TITLE: usize = 500;

/// How many files of one tool call are kept.
const KEPT_PATHS: usize = 100;

/// How many kinds of updates that are not known are named.
const NAMED_KINDS: usize = 5;

/// The updates of a turn. Only as much goes into the view as a result needs, so that the view need not forget any of it.
pub(super) struct Fold {
    view: SessionView,
    text: Kept,
    thoughts: Kept,
    /// Something came since the last text.
    is_text_broken: bool,
    /// Where something came between the pieces of one message: text goes on in a paragraph of its own there.
    breaks: BTreeMap<MessageId, Vec<usize>>,
    calls: usize,
    unknown: u64,
    unknown_kinds: BTreeSet<String>,
}

/// How much is kept of messages of one kind.
struct Kept {
    limit: usize,
    bytes: usize,
    is_truncated: bool,
    /// The message that is longer than what is kept of it, and how long it is.
    cut: Option<(MessageId, usize)>,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Kept { limit, bytes: 0, is_truncated: false, cut: None }
    }

    /// What there is room for of a text.
    fn take<'a>(&mut self, text: &'a str) -> &'a str {
        let end = text.floor_char_boundary(self.limit.saturating_sub(self.bytes));
        self.bytes += end;
        self.is_truncated |= end < text.len();
        &text[..end]
    }

    /// How long a message is of which this much is kept.
    fn length_of(&self, id: &MessageId, kept: usize) -> usize {
        self.cut.as_ref().filter(|(cut, _)| cut == id).map_or(kept, |(_, length)| *length)
    }
}

impl Fold {
    pub(super) fn new() -> Self {
        Fold {
            view: SessionView::with_limit(KEPT),
            text: Kept::new(KEPT_TEXT),
            thoughts: Kept::new(KEPT_THOUGHTS),
            is_text_broken: false,
            breaks: BTreeMap::new(),
            calls: 0,
            unknown: 0,
            unknown_kinds: BTreeSet::new(),
        }
    }

    /// Takes in an update. Returns what is new by it.
    pub(super) fn apply(&mut self, update: &SessionUpdate) -> Option<Event> {
        match update {
            // The prompt itself, which some agents say back.
            SessionUpdate::UserMessageChunk(_) | SessionUpdate::UserMessage(_) => return None,
            SessionUpdate::AgentMessageChunk(chunk) => self.piece(MessageRole::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.piece(MessageRole::Thought, chunk),
            SessionUpdate::AgentMessage(message) => return self.message(MessageRole::Agent, message),
            SessionUpdate::AgentThought(message) => return self.message(MessageRole::Thought, message),
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => self.tool_call(call),
            SessionUpdate::ToolCallContentChunk(chunk) => {
                self.is_text_broken = true;
                let id = short(chunk.tool_call_id.as_str());
                let has_room = |view: &SessionView| {
                    view.tool_call(&id.as_str().into()).is_none_or(|call| call.content.len() < KEPT_PATHS)
                };
                for path in event::from_update(update).iter().flat_map(changed_paths) {
                    if has_room(&self.view) {
                        let piece = ToolCallContentChunk::new(id.as_str(), path_only(path.clone()));
                        self.apply_call(&id, &SessionUpdate::ToolCallContentChunk(piece));
                    }
                }
            }
            SessionUpdate::Usage(_) => {
                self.view.apply(update);
            }
            SessionUpdate::Plan(_) | SessionUpdate::PlanRemoved(_) => {
                self.is_text_broken = true;
                self.view.apply(update);
            }
            SessionUpdate::PlanUpdate(PlanUpdate { plan, .. }) if !matches!(plan, PlanContent::Other(_)) => {
                self.is_text_broken = true;
                self.view.apply(update);
            }
            SessionUpdate::Other(unknown) => {
                self.unknown += 1;
                if self.unknown_kinds.len() < NAMED_KINDS {
                    self.unknown_kinds.insert(unknown.tag().chars().take(64).collect());
                }
            }
            _ => {}
        }
        event::from_update(update)
    }

    /// Takes in what a permission request says of its tool call. Some agents tell of a call only by asking for it: that is
    /// news then.
    pub(super) fn apply_permission(&mut self, call: &ToolCallUpdate) -> Option<Event> {
        let is_new = self.view.tool_call(&short(call.tool_call_id.as_str()).into()).is_none();
        self.tool_call(call);
        is_new.then(|| Event::Tool(event::tool(call)))
    }

    /// What comes without an id from now on is another message.
    pub(super) fn end_message(&mut self) {
        self.view.begin_turn();
        self.is_text_broken = true;
    }

    fn kept(&mut self, role: MessageRole) -> &mut Kept {
        if role == MessageRole::Agent { &mut self.text } else { &mut self.thoughts }
    }

    fn piece(&mut self, role: MessageRole, chunk: &MessageChunk) {
        let text = event::text_of(&chunk.content);
        let is_broken = std::mem::replace(&mut self.is_text_broken, role != MessageRole::Agent);
        if let Some(id) = chunk.message_id.as_ref().filter(|_| is_broken && role == MessageRole::Agent) {
            let said = self.length(role, id);
            let breaks = self.breaks.values().map(Vec::len).sum::<usize>();
            if said > 0 && breaks < KEPT_ROWS {
                self.breaks.entry(id.clone()).or_default().push(said);
            }
        }
        let taken = self.kept(role).take(&text);
        if let Some(id) = chunk.message_id.as_ref().filter(|_| taken.len() < text.len()) {
            let said = self.length(role, id);
            let kept = self.kept(role);
            kept.cut = Some((id.clone(), kept.length_of(id, said) + text.len()));
        }
        let mut piece = MessageChunk::new(ContentBlock::text(taken));
        piece.message_id.clone_from(&chunk.message_id);
        self.view.apply(&match role {
            MessageRole::Agent => SessionUpdate::AgentMessageChunk(piece),
            _ => SessionUpdate::AgentThoughtChunk(piece),
        });
    }

    /// How much is kept of a message.
    fn length(&self, role: MessageRole, id: &MessageId) -> usize {
        let content = self.view.message(role, id).map_or(&[][..], |message| &message.content);
        content.iter().filter_map(ContentBlock::as_text).map(str::len).sum()
    }

    /// What is kept of a message, and how long it really is.
    fn said(&mut self, role: MessageRole, id: &MessageId) -> (String, usize) {
        let said = self.view.message(role, id).map(attache::proto::view::Message::text).unwrap_or_default();
        let length = self.kept(role).length_of(id, said.len());
        (said, length)
    }

    /// A message as a whole. What came of it before is told once only.
    fn message(&mut self, role: MessageRole, message: &MessageUpdate) -> Option<Event> {
        let blocks = match &message.content {
            Patch::Keep => return None,
            Patch::Clear => &[][..],
            Patch::Set(blocks) => blocks,
        };
        let text: String = blocks.iter().map(event::text_of).collect();
        let id = &message.message_id;
        let (said, length) = self.said(role, id);
        let is_continued = text.starts_with(&said);
        if !is_continued {
            self.breaks.remove(id);
        }
        let kept = self.kept(role);
        kept.bytes -= said.len().min(kept.bytes);
        let taken = kept.take(&text);
        kept.cut.take_if(|(cut, _)| cut == id);
        if taken.len() < text.len() {
            kept.cut = Some((id.clone(), text.len()));
        }
        let mut whole = MessageUpdate::new(id.clone());
        whole.content = Patch::Set(vec![ContentBlock::text(taken)]);
        self.view.apply(&match role {
            MessageRole::Agent => SessionUpdate::AgentMessage(whole),
            _ => SessionUpdate::AgentThought(whole),
        });
        let told = |text: String| Text { text, message_id: Some(id.to_string()) };
        match role {
            _ if is_continued && text.len() == length => None,
            MessageRole::Agent if is_continued && said.len() == length => {
                Some(Event::Text(told(text[length..].into())))
            }
            MessageRole::Agent => Some(Event::TextReplaced(told(text))),
            _ if is_continued && said.len() == length => Some(Event::Thought(told(text[length..].into()))),
            _ => Some(Event::ThoughtReplaced(told(text))),
        }
    }

    fn tool_call(&mut self, call: &ToolCallUpdate) {
        self.is_text_broken = true;
        let id = short(call.tool_call_id.as_str());
        let mut kept = ToolCallUpdate::new(id.as_str());
        kept.title = call.title.map(|title| title.chars().take(KEPT_TITLE).collect());
        kept.kind = call.kind.clone();
        kept.status = call.status.clone();
        kept.locations = call.locations.map(|locations| {
            locations.iter().take(KEPT_PATHS).map(|location| Location::new(location.path.as_str())).collect()
        });
        kept.content = call.content.map(|content| {
            let paths = content.iter().filter_map(|part| match part {
                ToolCallContent::Diff(diff) => Some(event::change_of(diff).paths),
                _ => None,
            });
            paths.flatten().take(KEPT_PATHS).map(path_only).collect()
        });
        self.apply_call(&id, &SessionUpdate::ToolCallUpdate(kept.into()));
    }

    /// Applies an update of a tool call, unless there are too many to begin one more.
    fn apply_call(&mut self, id: &str, update: &SessionUpdate) {
        if self.view.tool_call(&id.into()).is_none() {
            if self.calls >= KEPT_ROWS {
                return;
            }
            self.calls += 1;
        }
        self.view.apply(update);
    }

    /// What was running when the turn was cancelled is cancelled, unless the agent says otherwise.
    pub(super) fn cancel(&mut self) {
        self.view.cancel_requested();
    }

    /// What is to be told at the end: the calls whose end the agent did not tell, and updates that nobody understood.
    pub(super) fn last_events(&self) -> Vec<Event> {
        let cancelled = self.view.tool_calls().filter(|call| call.presumed_cancelled).map(|call| {
            let status = Some(call.status.to_string());
            Event::Tool(Tool { id: call.id.to_string(), status, ..Tool::default() })
        });
        let kinds: Vec<String> =
            self.unknown_kinds.iter().map(|kind| format!("`{}`", crate::visible::one_line(kind))).collect();
        let unknown = (self.unknown > 0).then(|| {
            let what = match self.unknown {
                1 => "1 update of an unknown kind was not shown".to_owned(),
                count => format!("{count} updates of unknown kinds were not shown"),
            };
            Event::notice(Level::Warning, format!("{what}: {}", kinds.join(", ")))
        });
        cancelled.chain(unknown).collect()
    }

    /// The tool call that runs, the last if there are several.
    pub(super) fn running_call(&self) -> Option<Waiting> {
        let running = self.view.tool_calls().filter(|call| call.status == ToolCallStatus::InProgress);
        running.last().map(|call| match call.kind {
            ToolKind::Execute => Waiting::Command(call.title.clone()),
            _ => Waiting::Call(call.title.clone()),
        })
    }

    pub(super) fn unknown(&self) -> u64 {
        self.unknown
    }

    pub(super) fn is_text_truncated(&self) -> bool {
        self.text.is_truncated || self.view.omitted > 0
    }

    /// All text of the agent, with an empty line between its messages.
    pub(super) fn text(&self) -> String {
        let mut all = String::new();
        for entry in self.view.timeline() {
            let Entry::Message(message) = entry else { continue };
            let text = message.text();
            if message.role != MessageRole::Agent || text.is_empty() {
                continue;
            }
            let breaks = message.id.as_ref().and_then(|id| self.breaks.get(id));
            let mut from = 0;
            for to in breaks.into_iter().flatten().copied().chain([text.len()]).filter(|to| *to <= text.len()) {
                if !all.is_empty() {
                    all.push_str(if all.ends_with('\n') { "\n" } else { "\n\n" });
                }
                all.push_str(&text[from..to]);
                from = to;
            }
        }
        all
    }

    pub(super) fn tool_calls(&self) -> Vec<event::ToolCall> {
        let row = |call: &ToolCall| event::ToolCall {
            id: call.id.to_string(),
            title: call.title.clone(),
            kind: call.kind.to_string(),
            status: call.status.to_string(),
        };
        self.view.tool_calls().map(row).collect()
    }

    /// Whether a tool call did something. To have looked is not enough.
    pub(super) fn has_done_something(&self) -> bool {
        let looks = |kind: &ToolKind| matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think);
        self.view.tool_calls().any(|call| call.status == ToolCallStatus::Completed && !looks(&call.kind))
    }

    /// The files that completed tool calls have changed, as far as the agent tells.
    pub(super) fn files_changed(&self) -> impl Iterator<Item = String> {
        let completed = self.view.tool_calls().filter(|call| call.status == ToolCallStatus::Completed);
        completed.flat_map(|call| {
            let changed = call.content.iter().filter_map(|part| match part {
                ToolCallContent::Diff(diff) => Some(event::change_of(diff).paths),
                _ => None,
            });
            let mut paths: Vec<String> = changed.flatten().collect();
            if paths.is_empty() && matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
                paths = call.locations.iter().map(|location| location.path.clone()).collect();
            }
            paths
        })
    }

    /// The plan that the agent named last.
    pub(super) fn plan(&self) -> Option<event::Plan> {
        let plan = self.view.plans.last()?.clone();
        match event::from_update(&SessionUpdate::PlanUpdate(PlanUpdate::new(plan))) {
            Some(Event::Plan(plan)) => Some(plan),
            _ => None,
        }
    }

    /// How full the context is.
    pub(super) fn context(&self) -> Option<event::ContextUsage> {
        let usage = self.view.usage.as_ref()?;
        let cost = usage.cost.as_ref().map(|cost| Cost { amount: cost.amount, currency: cost.currency.clone() });
        Some(event::ContextUsage { used: usage.used, size: usage.size, cost })
    }
}

/// An id that is not longer than ids are: they are kept.
fn short(id: &str) -> String {
    id.chars().take(256).collect()
}

fn changed_paths(event: &Event) -> &[String] {
    match event {
        Event::Tool(Tool { changes: Some(changes), .. }) => changes.first().map_or(&[], |change| &change.paths),
        _ => &[],
    }
}

/// A change of a file without what is changed: the result names the file only.
fn path_only(path: String) -> ToolCallContent {
    ToolCallContent::Diff(Box::new(Diff::text(path, None, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(id: &str, text: &str) -> SessionUpdate {
        let mut chunk = MessageChunk::new(ContentBlock::text(text));
        chunk.message_id = Some(id.into());
        SessionUpdate::AgentMessageChunk(chunk)
    }

    fn whole(id: &str, content: Patch<Vec<ContentBlock>>) -> SessionUpdate {
        let mut message = MessageUpdate::new(id);
        message.content = content;
        SessionUpdate::AgentMessage(message)
    }

    #[test]
    fn a_message_is_told_once_and_its_end_state_is_the_result() {
        let told = |event: Option<Event>| match event {
            None => String::new(),
            Some(Event::Text(text)) => format!("+{}", text.text),
            Some(Event::TextReplaced(text)) => format!("={}", text.text),
            Some(other) => panic!("{other:?}"),
        };
        let mut fold = Fold::new();
        let set = |text: &str| Patch::Set(vec![ContentBlock::text(text)]);
        assert_eq!(told(fold.apply(&chunk("a", "one"))), "+one");
        assert_eq!(told(fold.apply(&whole("a", set("one")))), "");
        assert_eq!(told(fold.apply(&whole("a", set("one two")))), "+ two");
        assert_eq!(told(fold.apply(&chunk("b", "three"))), "+three");
        assert_eq!(told(fold.apply(&whole("a", set("ONE")))), "=ONE");
        assert_eq!(told(fold.apply(&whole("b", Patch::Keep))), "");
        assert_eq!(fold.text(), "ONE\n\nthree");
        assert_eq!(told(fold.apply(&whole("b", Patch::Clear))), "=");
        assert_eq!(told(fold.apply(&whole("a", Patch::Set(Vec::new())))), "=");
        assert_eq!(fold.text(), "");
    }

    #[test]
    fn a_long_text_is_kept_from_its_beginning_and_compared_all_the_same() {
        let mut fold = Fold::new();
        fold.text.limit = 10;
        assert!(fold.apply(&chunk("a", "0123456")).is_some());
        assert!(fold.apply(&chunk("a", "789ab")).is_some());
        assert!(fold.apply(&chunk("a", "cd")).is_some());
        assert_eq!(fold.text(), "0123456789");
        assert!(fold.is_text_truncated());
        let same = Patch::Set(vec![ContentBlock::text("0123456789abcd")]);
        assert_eq!(fold.apply(&whole("a", same)), None);
        let other = Patch::Set(vec![ContentBlock::text("short")]);
        assert!(matches!(fold.apply(&whole("a", other)), Some(Event::TextReplaced(_))));
        assert_eq!(fold.text(), "short");
        assert!(fold.apply(&chunk("b", "67890 and more")).is_some());
        assert_eq!(fold.text(), "short\n\n67890");
    }

    #[test]
    fn what_a_call_clears_is_gone() {
        let mut fold = Fold::new();
        let mut call = ToolCallUpdate::new("t").title("edit").kind(ToolKind::Edit).status(ToolCallStatus::Completed);
        call.content = Patch::Set(vec![ToolCallContent::Diff(Box::new(Diff::text("/a", Some("1".into()), "2")))]);
        fold.apply(&SessionUpdate::ToolCallUpdate(call.into()));
        assert_eq!(fold.files_changed().collect::<Vec<_>>(), ["/a"]);
        let mut call = ToolCallUpdate::new("t");
        (call.title, call.kind, call.content) = (Patch::Clear, Patch::Set(ToolKind::Read), Patch::Set(Vec::new()));
        let told = fold.apply(&SessionUpdate::ToolCallUpdate(call.into()));
        let Some(Event::Tool(tool)) = told else { panic!("{told:?}") };
        assert_eq!((tool.title.as_deref(), tool.replaces, tool.changes), (Some(""), true, None));
        assert_eq!(fold.files_changed().count(), 0);
        assert_eq!((fold.tool_calls()[0].title.as_str(), fold.tool_calls()[0].kind.as_str()), ("", "read"));
    }
}
