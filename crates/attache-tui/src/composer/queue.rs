//! Messages that wait for the agent.

use std::collections::VecDeque;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::render::one_row;
use super::{Message, Submission};
use crate::text::draw;
use crate::theme::Theme;

/// The most messages that wait: whoever has more wants something else.
const LIMIT: usize = 100;

/// How many of them are shown.
const ROWS: usize = 4;

/// What became of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueReply {
    /// The key is none of the queue's.
    Ignored,
    /// It was used.
    Used,
    /// This message was taken out to be edited: give it to [`Composer::edit_queued`](super::Composer::edit_queued).
    Edit(Message),
    /// The queue has no more keys; the composer has.
    Closed,
}

/// Messages that wait for the agent, in the order in which they are sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    messages: VecDeque<Message>,
    selected: Option<usize>,
    /// Whether nothing of it is sent without a key.
    is_held: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue::default()
    }

    pub(super) fn from_messages(messages: Vec<Message>) -> Self {
        Queue { messages: messages.into_iter().take(LIMIT).collect(), ..Queue::default() }
    }

    /// Whether nothing of it is sent without a key: that is told then.
    pub fn set_held(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether there is no room for another.
    pub fn is_full(&self) -> bool {
        self.messages.len() >= LIMIT
    }

    /// The messages, the next first.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    /// Adds one at the end.
    pub fn push(&mut self, message: Message) {
        self.messages.push_back(message);
    }

    /// Adds one at the beginning.
    pub fn push_front(&mut self, message: Message) {
        self.selected = self.selected.map(|selected| selected + 1);
        self.messages.push_front(message);
    }

    /// Takes the next to send it.
    pub fn pop_next(&mut self) -> Option<Submission> {
        let message = self.messages.pop_front()?;
        self.selected = self.selected.map(|selected| selected.saturating_sub(1));
        self.settle();
        Some(message.submission())
    }

    /// Takes the last back.
    pub fn pop_last(&mut self) -> Option<Message> {
        let message = self.messages.pop_back();
        self.settle();
        message
    }

    /// Takes all away, such as after the turn was cancelled.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.settle();
    }

    /// Gives the queue the keys, if something is in it.
    pub fn focus(&mut self) {
        self.selected = self.messages.len().checked_sub(1);
    }

    /// Whether the queue has the keys.
    pub fn is_focused(&self) -> bool {
        self.selected.is_some()
    }

    fn settle(&mut self) {
        self.selected = match self.messages.len() {
            0 => None,
            count => self.selected.map(|selected| selected.min(count - 1)),
        };
    }

    /// Takes a key in, while the queue has the keys: arrows choose, with Alt or Shift they move, `d` deletes, Enter edits.
    pub fn handle_key(&mut self, key: KeyEvent) -> QueueReply {
        let Some(selected) = self.selected.filter(|_| key.kind != KeyEventKind::Release) else {
            return QueueReply::Ignored;
        };
        let last = self.messages.len().saturating_sub(1);
        let is_moving = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let to = match key.code {
            KeyCode::Up | KeyCode::Char('k' | 'K') => Some(selected.saturating_sub(1)),
            // Below the last message is the composer.
            KeyCode::Down | KeyCode::Char('j') if selected == last && !is_moving => {
                self.selected = None;
                return QueueReply::Closed;
            }
            KeyCode::Down | KeyCode::Char('j' | 'J') => Some((selected + 1).min(last)),
            _ => None,
        };
        if let Some(to) = to {
            if is_moving || matches!(key.code, KeyCode::Char('K' | 'J')) {
                self.messages.swap(selected, to);
            }
            self.selected = Some(to);
            return QueueReply::Used;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => {
                self.selected = None;
                QueueReply::Closed
            }
            KeyCode::Char('d' | 'x') | KeyCode::Delete | KeyCode::Backspace => {
                self.messages.remove(selected);
                self.settle();
                if self.messages.is_empty() { QueueReply::Closed } else { QueueReply::Used }
            }
            KeyCode::Enter | KeyCode::Char('e') => match self.messages.remove(selected) {
                Some(message) => {
                    self.selected = None;
                    QueueReply::Edit(message)
                }
                None => QueueReply::Closed,
            },
            _ => QueueReply::Ignored,
        }
    }

    /// How many rows it is shown on.
    pub(super) fn rows(&self) -> usize {
        match self.messages.len() {
            0 => 0,
            count => count.min(ROWS) + 1,
        }
    }

    pub(super) fn render(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        if area.is_empty() || self.messages.is_empty() {
            return;
        }
        let room = usize::from(area.width);
        let rows = usize::from(area.height).saturating_sub(1).min(ROWS);
        // The chosen one is seen, else the next ones.
        let from = self.selected.map_or(0, |selected| (selected + 1).saturating_sub(rows));
        let count = self.messages.len();
        let keys = match self.selected {
            Some(_) => "enter edit, d delete, alt-up and alt-down move, esc back",
            None if self.is_held => "enter on an empty line sends them, up takes the last one back",
            None => "up takes the last one back",
        };
        let title = format!("{count} waiting: {keys}");
        let mut lines = vec![Line::styled(crate::text::cut(&title, room, theme), theme.dim)];
        for (index, message) in self.messages.iter().enumerate().skip(from).take(rows) {
            let is_selected = self.selected == Some(index);
            let mark = format!("{} {}. ", if is_selected { theme.sign("▸", ">") } else { " " }, index + 1);
            let line = Line::from(one_row(&mark, &message.text, room, theme));
            lines.push(if is_selected { line.patch_style(theme.selected) } else { line.patch_style(theme.dim) });
        }
        draw(&lines, 0, area, buffer);
    }
}
