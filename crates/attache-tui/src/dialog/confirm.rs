//! Yes or no; and a text to read.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::scroll::Scroll;
use super::{is_meant, letter};
use crate::text::{draw, flow, frame, paragraph, shown};
use crate::theme::Theme;

/// Asks yes or no. Enter alone is no.
#[derive(Debug, Clone)]
pub struct ConfirmDialog {
    title: String,
    text: String,
    yes: String,
    scroll: Scroll,
    /// Whether the last row has been on the screen.
    is_read: bool,
}

impl ConfirmDialog {
    /// Asks this; `yes` says what a yes does, such as `delete it`.
    pub fn new(title: impl Into<String>, text: impl Into<String>, yes: impl Into<String>) -> Self {
        ConfirmDialog {
            title: title.into(),
            text: text.into(),
            yes: yes.into(),
            scroll: Scroll::default(),
            is_read: false,
        }
    }

    /// Takes a key in that was pressed this long after the dialog appeared. `Some(true)` is yes.
    pub fn handle_key(&mut self, key: KeyEvent, elapsed: Duration) -> Option<bool> {
        if !is_meant(key, elapsed) || self.scroll.handle_key(key) {
            return None;
        }
        match key.code {
            KeyCode::Enter | KeyCode::Esc => Some(false),
            _ => match letter(key)? {
                'y' if self.is_read => Some(true),
                // Nobody says yes to what they cannot have seen.
                'y' => {
                    self.scroll.page_down();
                    None
                }
                'n' => Some(false),
                _ => None,
            },
        }
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self, width: u16, theme: &Theme) -> u16 {
        let rows = paragraph(&self.text, usize::from(width.saturating_sub(4)), theme.text).len();
        u16::try_from(rows + 3).unwrap_or(u16::MAX)
    }

    /// Draws the dialog.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let inner = frame("", "", area, buffer, theme);
        let keys = [('y', self.yes.as_str()), ('N', "no")];
        let piece = |(key, label): &(char, &str)| {
            vec![Span::styled(format!("[{key}]"), theme.accent), Span::raw(format!(" {}", shown(label)))]
        };
        let keys = flow(keys.iter().map(piece).collect(), 2, usize::from(inner.width), theme);
        let rows = u16::try_from(keys.len()).unwrap_or(1).min(inner.height);
        let lines = paragraph(&self.text, usize::from(inner.width), theme.text);
        let page = inner.height - rows;
        self.scroll.fit(lines.len(), page);
        let below = self.scroll.below();
        self.is_read |= below == 0 && page > 0;
        let hint = if below > 0 { format!("{below} more lines below: pagedown") } else { String::new() };
        let inner = frame(&shown(&self.title), &hint, area, buffer, theme);
        draw(&lines, self.scroll.top, Rect { height: page, ..inner }, buffer);
        draw(&keys, 0, Rect { y: inner.y + page, height: rows, ..inner }, buffer);
    }
}

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextReply {
    /// The agent is to be started again.
    Restart,
    /// The text is to be copied.
    Copy,
    /// The text was read.
    Closed,
}

/// A text to read, such as the stderr of an agent that has ended.
#[derive(Debug, Clone)]
pub struct TextDialog {
    title: String,
    text: String,
    /// What the key that starts the agent again does, in words.
    restart: Option<&'static str>,
    scroll: Scroll,
    is_at_end: bool,
    laid_out: Option<(u16, Vec<Line<'static>>)>,
}

impl TextDialog {
    /// Shows this, from its beginning.
    pub fn new(title: impl Into<String>, text: impl Into<String>) -> Self {
        TextDialog {
            title: title.into(),
            text: text.into(),
            restart: None,
            scroll: Scroll::default(),
            is_at_end: false,
            laid_out: None,
        }
    }

    /// What an agent wrote before it ended; its last lines tell the most. One key starts it again.
    pub fn of_dead_agent(title: impl Into<String>, stderr: impl Into<String>) -> Self {
        TextDialog { restart: Some("restart and resume"), is_at_end: true, ..TextDialog::new(title, stderr) }
    }

    /// Why an agent does not open a session. One key begins a new one.
    pub fn of_refused_session(title: impl Into<String>, why: impl Into<String>) -> Self {
        TextDialog { restart: Some("begin a new session"), ..TextDialog::new(title, why) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes a key in.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<TextReply> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if self.scroll.handle_key(key) {
            self.is_at_end = false;
            return None;
        }
        match (key.code, letter(key)) {
            (KeyCode::Esc | KeyCode::Enter, _) | (_, Some('q')) => Some(TextReply::Closed),
            (_, Some('r')) if self.restart.is_some() => Some(TextReply::Restart),
            (_, Some('c' | 'y')) => Some(TextReply::Copy),
            _ => None,
        }
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&mut self, width: u16, theme: &Theme) -> u16 {
        u16::try_from(self.lines(width.saturating_sub(4), theme).len() + 2).unwrap_or(u16::MAX)
    }

    fn lines(&mut self, width: u16, theme: &Theme) -> &[Line<'static>] {
        if self.laid_out.as_ref().is_none_or(|(known, _)| *known != width) {
            let mut lines = paragraph(&self.text, usize::from(width), theme.text);
            if lines.is_empty() {
                lines.push(Line::styled("(nothing)", theme.dim));
            }
            self.laid_out = Some((width, lines));
        }
        self.laid_out.as_ref().map_or(&[], |(_, lines)| lines)
    }

    /// Draws the dialog.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let restart = self.restart.map(|words| format!("r {words}  ")).unwrap_or_default();
        let inner = frame(&shown(&self.title), &format!("{restart}c copy  esc close"), area, buffer, theme);
        let count = self.lines(inner.width, theme).len();
        self.scroll.fit(count, inner.height);
        if self.is_at_end {
            self.scroll.by(isize::MAX);
        }
        let top = self.scroll.top;
        draw(self.lines(inner.width, theme), top, inner, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_counts_when_the_end_was_seen() {
        let theme = Theme::new(crate::theme::ColorDepth::None, crate::theme::Background::Dark, true);
        let text: String = (1..=30).map(|number| format!("line {number}\n")).collect();
        let mut dialog = ConfirmDialog::new("Log in", text, "run it");
        let area = Rect::new(0, 0, 60, 12);
        let mut presses = 0;
        loop {
            let mut buffer = Buffer::empty(area);
            dialog.render(area, &mut buffer, &theme);
            presses += 1;
            let yes = KeyEvent::from(KeyCode::Char('y'));
            if dialog.handle_key(yes, Duration::from_secs(1)) == Some(true) {
                let last: String = (0..area.width).map(|x| buffer[(x, 9)].symbol().to_owned()).collect();
                assert!(last.contains("line 30"), "{last}");
                break;
            }
        }
        assert!(presses > 3, "{presses}");
    }
}
