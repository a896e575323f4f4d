//! Where the person writes: many lines, what was sent before, completions, pasted text and attachments.
//!
//! The app asks in this order what a key means: a dialog if one is open, the queue if [`Queue::is_focused`], the composer
//! if [`Composer::has_popup`], the [`KeyMap`](crate::keymap::KeyMap), and the composer for what is left.

mod completion;
mod keys;
mod labels;
mod message;
mod paste;
mod queue;
mod render;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use attache_host::visible::harmless;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use serde::{Deserialize, Serialize};

use crate::keymap::Context;

use completion::Popup;
pub use completion::{Completion, CompletionKind, CompletionRequest};
pub use message::{Attachment, AttachmentSource, Chip, ChipContent, Message, Submission};
pub use paste::Pasted;
pub use queue::{Queue, QueueReply};

/// How many messages of the past are kept for going back to.
const HISTORY_LIMIT: usize = 1_000;

/// The widest composer in characters that a cursor can be put to: what the text area counts with.
const JUMP_LIMIT: usize = u16::MAX as usize;

/// The most bytes of text that are edited here. More is kept as a label, and is sent as it is.
const TEXT_LIMIT: usize = 128 * 1024;

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComposerReply {
    /// The key is none of the composer's.
    Ignored,
    /// It was used; the text is as it was.
    Used,
    /// The text changed: a draft is worth keeping.
    Changed,
}

/// All that was written and not sent yet, to be kept through a crash.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// What is in the composer.
    pub message: Message,
    /// What waits for the agent.
    pub queue: Vec<Message>,
}

/// Where the person writes.
#[derive(Debug, Clone)]
pub struct Composer {
    area: TextArea<'static>,
    chips: Vec<Chip>,
    mentions: Vec<String>,
    /// Words with an `@` that were pasted. They stay known when the message is sent, because it can be had back.
    pasted: BTreeSet<String>,
    /// The messages that wait for the agent, shown above the text.
    pub queue: Queue,
    history: VecDeque<String>,
    /// The message of the past that is shown, and what was being written before.
    past: Option<(usize, Message)>,
    popup: Popup,
    placeholder: String,
    /// Where the text was last drawn.
    drawn: Rect,
    /// Whether keys go here.
    is_focused: bool,
}

impl Default for Composer {
    fn default() -> Self {
        Composer::new()
    }
}

impl Composer {
    /// An empty composer.
    pub fn new() -> Self {
        Composer {
            area: text_area(""),
            chips: Vec::new(),
            mentions: Vec::new(),
            pasted: BTreeSet::new(),
            queue: Queue::new(),
            history: VecDeque::new(),
            past: None,
            popup: Popup::default(),
            placeholder: String::new(),
            drawn: Rect::ZERO,
            is_focused: true,
        }
    }

    /// What to show while there is nothing.
    pub fn set_placeholder(&mut self, text: impl Into<String>) {
        self.placeholder = text.into();
    }

    /// Whether keys go here. If they do not, there is no cursor.
    pub fn set_focused(&mut self, is_focused: bool) {
        self.is_focused = is_focused;
    }

    /// The messages that were sent before, the oldest first.
    pub fn set_history(&mut self, history: Vec<String>) {
        let skip = history.len().saturating_sub(HISTORY_LIMIT);
        self.history = history.into_iter().skip(skip).collect();
        self.past = None;
    }

    /// Whether there is nothing but blanks.
    pub fn is_empty(&self) -> bool {
        self.area.lines().iter().all(|line| line.trim().is_empty())
    }

    /// The text as it is seen, with a label for each paste and attachment.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Another text, as an external editor leaves it. Labels that are still in it keep what they stand for.
    pub fn set_text(&mut self, text: &str) {
        let message = Message { text: text.to_owned(), ..self.message() };
        self.set_message(Message { chips: self.chips.clone(), ..message });
    }

    /// Where the next key is pressed, for the [`KeyMap`](crate::keymap::KeyMap).
    pub fn context(&self) -> Context {
        if self.is_empty() { Context::EmptyComposer } else { Context::Composer }
    }

    /// Adds text at the cursor.
    pub fn insert_text(&mut self, text: &str) {
        self.area.insert_str(harmless(text));
        self.refresh();
    }

    /// Begins a new line.
    pub fn insert_newline(&mut self) {
        self.area.insert_newline();
        self.refresh();
    }

    /// Takes all text and attachments away. The queue stays.
    pub fn clear(&mut self) {
        self.set_message(Message::default());
    }

    /// The same, but the text can be had back as if it had been sent: with Up.
    pub fn discard(&mut self) {
        self.take_message();
        self.clear();
    }

    fn message(&self) -> Message {
        let text = self.text();
        let chips = self.chips.iter().filter(|chip| text.contains(&chip.label)).cloned().collect();
        let pasted: BTreeSet<&str> = message::mention_words(&text).filter(|word| self.pasted.contains(*word)).collect();
        let pasted = pasted.into_iter().map(String::from).collect();
        Message { chips, mentions: self.mentions.clone(), pasted, text }
    }

    fn set_message(&mut self, mut message: Message) {
        // More than anybody edits here: it is kept as a label.
        if message.text.len() > TEXT_LIMIT {
            let label = format!("[pasted {}]", paste::measure(&message.text));
            let content = ChipContent::Paste(message.submission().text);
            message.chips.retain(|chip| matches!(chip.content, ChipContent::Attachment(_)));
            let attached: String = message.chips.iter().map(|chip| chip.label.as_str()).collect();
            message.text = format!("{label}{attached}");
            message.chips.push(Chip { label, content });
        }
        self.area = text_area(&message.text);
        self.chips = message.chips;
        self.mentions = message.mentions;
        self.pasted.extend(message.pasted);
        self.past = None;
        self.popup.close();
    }

    /// All that was written and not sent yet.
    pub fn draft(&self) -> Draft {
        Draft { message: self.message(), queue: self.queue.messages().cloned().collect() }
    }

    /// What was written before a crash.
    pub fn set_draft(&mut self, draft: Draft) {
        self.set_message(draft.message);
        self.queue = Queue::from_messages(draft.queue);
    }

    /// Takes the message out to send it. `None` if there is nothing to send.
    pub fn take(&mut self) -> Option<Submission> {
        let message = self.take_message()?;
        Some(message.submission())
    }

    fn take_message(&mut self) -> Option<Message> {
        if self.is_empty() {
            return None;
        }
        let message = self.message();
        self.clear();
        self.keep(&message);
        Some(message)
    }

    /// Makes sure that a text can be had back.
    fn keep(&mut self, message: &Message) {
        let text = message.submission().text;
        if text.trim().is_empty() || self.history.back() == Some(&text) {
            return;
        }
        self.history.push_back(text);
        if self.history.len() > HISTORY_LIMIT {
            self.history.pop_front();
        }
    }

    /// Puts the message into the queue. Whether there was one, and room for it.
    pub fn enqueue(&mut self) -> bool {
        if self.queue.is_full() {
            return false;
        }
        match self.take_message() {
            Some(message) => {
                self.queue.push(message);
                true
            }
            None => false,
        }
    }

    /// Puts a message back that could not be sent, before what was written since.
    pub fn restore(&mut self, submission: Submission) {
        let mut message = Message::from(submission);
        let later = self.message();
        if !later.text.trim().is_empty() {
            message.text = format!("{}\n\n{}", message.text, later.text);
        }
        message.chips.extend(later.chips);
        message.mentions.extend(later.mentions);
        message.pasted.extend(later.pasted);
        self.set_message(message);
    }

    /// Takes the last message of the queue back to edit it. What was being written goes to its place.
    pub fn recall(&mut self) -> bool {
        match self.queue.pop_last() {
            Some(message) => {
                self.edit_queued(message);
                true
            }
            None => false,
        }
    }

    /// Edits a message that was taken out of the queue. What was being written is queued instead.
    pub fn edit_queued(&mut self, message: Message) {
        if !self.is_empty() {
            let written = self.message();
            self.queue.push(written);
        }
        self.set_message(message);
    }

    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// Puts another text in the place of some characters of a line. Whether that could be done.
    fn replace(&mut self, row: usize, start: usize, end: usize, text: &str) -> bool {
        if row > JUMP_LIMIT || end > JUMP_LIMIT {
            return false;
        }
        self.jump(row, start);
        self.area.delete_str(end.saturating_sub(start));
        if !text.is_empty() {
            self.area.insert_str(text);
        }
        true
    }

    fn jump(&mut self, row: usize, column: usize) {
        let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.area.cancel_selection();
        self.area.move_cursor(CursorMove::Jump(small(row), small(column)));
    }
}

fn text_area(text: &str) -> TextArea<'static> {
    let mut lines: Vec<String> = harmless(text).split('\n').map(Into::into).collect();
    // The end of the last line is not a line of its own.
    if lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let mut area = TextArea::new(lines);
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area.set_max_histories(200);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}
