//! What keys do in the composer: in the text, at its edges, and in the list of completions.

use attache_host::visible::harmless;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_textarea::CursorMove;

use super::completion::{self, Completion, CompletionKind, CompletionRequest};
use super::{Composer, ComposerReply, Message};
use crate::picker::Matches;

impl Composer {
    /// Takes a key in.
    pub fn handle_key(&mut self, key: KeyEvent) -> ComposerReply {
        if key.kind == KeyEventKind::Release {
            return ComposerReply::Ignored;
        }
        if self.has_popup()
            && let Some(reply) = self.handle_popup_key(key)
        {
            return reply;
        }
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let before = self.cursor();
        let has_changed = match key.code {
            KeyCode::Enter | KeyCode::Tab | KeyCode::BackTab | KeyCode::Esc | KeyCode::PageUp | KeyCode::PageDown => {
                return ComposerReply::Ignored;
            }
            KeyCode::Char('m' | 'j' | 'r' | 'x' | 'c' | 'v') if is_ctrl => return ComposerReply::Ignored,
            KeyCode::Char(c) if c.is_control() => return ComposerReply::Ignored,
            KeyCode::Up | KeyCode::Down if !is_ctrl && !is_alt => return self.go(key.code == KeyCode::Up),
            KeyCode::Char('u') if is_ctrl => self.area.delete_line_by_head(),
            KeyCode::Char('_' | '7' | '/') if is_ctrl => self.area.undo(),
            KeyCode::Char('z') if is_alt => self.area.redo(),
            // What turns the direction of text or is not seen is shown for what it is.
            KeyCode::Char(c) if !is_ctrl && !is_alt && harmless(&c.to_string()) != c.to_string() => {
                self.area.insert_str(harmless(&c.to_string()))
            }
            KeyCode::Backspace => self.delete_chip(true) || self.area.input(key),
            KeyCode::Char('h' | 'w') if is_ctrl => self.delete_chip(true) || self.area.input(key),
            KeyCode::Delete => self.delete_chip(false) || self.area.input(key),
            KeyCode::Char('d') if is_ctrl => self.delete_chip(false) || self.area.input(key),
            _ => self.area.input(key),
        };
        self.leave_chip(before);
        if has_changed {
            // Who edits a message of the past may want back what was being written before.
            if let Some((_, written)) = self.past.take() {
                self.keep(&written);
            }
            self.refresh();
            return ComposerReply::Changed;
        }
        if self.cursor() != before {
            self.refresh();
            return ComposerReply::Used;
        }
        ComposerReply::Ignored
    }

    /// Up or down: within the text, and beyond its edges through the queue and the past.
    fn go(&mut self, is_up: bool) -> ComposerReply {
        let before = self.cursor();
        self.area.move_cursor(if is_up { CursorMove::Up } else { CursorMove::Down });
        if self.cursor() != before {
            self.leave_chip(before);
            self.refresh();
            return ComposerReply::Used;
        }
        if is_up && self.is_empty() && self.past.is_none() && self.recall() {
            return ComposerReply::Changed;
        }
        let position = match (&self.past, is_up) {
            (None, true) => self.history.len().checked_sub(1),
            (None, false) => None,
            (Some((0, _)), true) => None,
            (Some((position, _)), true) => Some(position - 1),
            (Some((position, _)), false) => Some(position + 1),
        };
        let Some(position) = position else { return ComposerReply::Ignored };
        let written = match self.past.take() {
            Some((_, written)) => written,
            None => self.message(),
        };
        match self.history.get(position).cloned() {
            Some(text) => {
                self.set_message(Message { text, ..Message::default() });
                // Up goes on from the first line, down from the last.
                if is_up {
                    self.area.move_cursor(CursorMove::Top);
                }
                self.past = Some((position, written));
            }
            None => self.set_message(written),
        }
        ComposerReply::Changed
    }

    /// Looks for what was sent before, by a part of it.
    pub fn start_history_search(&mut self) {
        self.popup.start_search();
        self.refresh();
    }

    /// What could be completed at the cursor. The app offers items for it.
    pub fn completions(&self) -> Option<CompletionRequest> {
        let (row, column) = self.cursor();
        let line = self.area.lines().get(row)?;
        let end = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        completion::request(&line[..end], row == 0)
    }

    /// Items for what [`completions`](Self::completions) asks for, best first. Replaces what was offered before.
    pub fn offer(&mut self, items: Vec<Completion>) {
        if let Some(request) = self.completions() {
            self.popup.offer(request.kind, items);
            self.refresh();
        }
    }

    /// The same for items that took a while to find: they are dropped if something else is asked for by now.
    pub fn offer_for(&mut self, kind: CompletionKind, items: Vec<Completion>) {
        if self.completions().is_some_and(|request| request.kind == kind) {
            self.offer(items);
        }
    }

    /// Whether a list is open, which takes the keys first.
    pub fn has_popup(&self) -> bool {
        self.popup.is_open()
    }

    /// Closes the list.
    pub fn close_popup(&mut self) {
        self.popup.close();
    }

    /// Brings the list up to date with the text.
    pub(super) fn refresh(&mut self) {
        if self.popup.is_searching() {
            let newest_first: Vec<&String> = self.history.iter().rev().collect();
            let texts = newest_first.iter().map(|text| (text.as_str(), ""));
            self.popup.matches = Matches::find(&self.popup.query.text(), false, texts);
        } else {
            let request = self.completions();
            self.popup.follow(request);
        }
    }

    fn handle_popup_key(&mut self, key: KeyEvent) -> Option<ComposerReply> {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.popup.matches.rows.len();
        match key.code {
            KeyCode::Esc => self.popup.dismiss(),
            KeyCode::Char('c' | 'g') if is_ctrl => self.popup.dismiss(),
            KeyCode::Up => self.popup.matches.step(-1, count),
            KeyCode::Char('p') if is_ctrl => self.popup.matches.step(-1, count),
            KeyCode::Down => self.popup.matches.step(1, count),
            KeyCode::Char('n' | 'r') if is_ctrl => self.popup.matches.step(1, count),
            KeyCode::Tab => return Some(self.accept()),
            KeyCode::Enter if key.modifiers.is_empty() => {
                // What is written out already needs no completion: the key means what it means without a list.
                if !self.popup.is_searching() && self.is_written_out() {
                    self.popup.dismiss();
                    return None;
                }
                return Some(self.accept());
            }
            _ if self.popup.is_searching() => {
                self.popup.query.handle_key(key);
                self.refresh();
            }
            _ => return None,
        }
        Some(ComposerReply::Used)
    }

    fn is_written_out(&self) -> bool {
        let request = self.completions();
        let chosen = self.popup.chosen();
        matches!((request, chosen), (Some(request), Some(chosen)) if request.query == chosen.text)
    }

    /// Puts what is chosen in the list into the text.
    fn accept(&mut self) -> ComposerReply {
        if self.popup.is_searching() {
            let found = self.popup.matches.rows.get(self.popup.matches.selected).map(|(index, _)| *index);
            let text = found.and_then(|index| self.history.iter().rev().nth(index).cloned());
            self.popup.close();
            return match text {
                Some(text) => {
                    let written = self.message();
                    self.keep(&written);
                    self.set_message(Message { text, ..Message::default() });
                    ComposerReply::Changed
                }
                None => ComposerReply::Used,
            };
        }
        let (Some(request), Some(chosen)) = (self.completions(), self.popup.chosen().cloned()) else {
            self.popup.close();
            return ComposerReply::Used;
        };
        let (row, column) = self.cursor();
        let start = column.saturating_sub(request.typed);
        let text = chosen.insertion(request.kind);
        if self.replace(row, start, column, &text) && request.kind == CompletionKind::Mention {
            self.mentions.push(chosen.text.clone());
        }
        // A directory is on the way to a file.
        if !chosen.text.ends_with('/') {
            self.popup.dismiss_for(self.completions());
        }
        self.refresh();
        ComposerReply::Changed
    }
}
