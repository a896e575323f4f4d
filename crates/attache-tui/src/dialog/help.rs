//! All keys, to be looked through.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::scroll::Scroll;
use crate::input::LineInput;
use crate::keymap::{KeyMap, KeyRow};
use crate::text::{columns, cut, draw, frame, wrap_words};
use crate::theme::Theme;

/// All keys. What is typed narrows them down.
#[derive(Debug, Clone)]
pub struct HelpDialog {
    rows: Vec<KeyRow>,
    input: LineInput,
    scroll: Scroll,
}

impl HelpDialog {
    /// The keys of this map.
    pub fn new(keys: &KeyMap) -> Self {
        HelpDialog { rows: keys.rows(), input: LineInput::default(), scroll: Scroll::default() }
    }

    /// Takes a key in. Whether the dialog was closed.
    pub fn handle_key(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::F(1) => return true,
            KeyCode::Char('?') if self.input.is_empty() => return true,
            KeyCode::Char('c') if key.modifiers.contains(crossterm::event::KeyModifiers::CONTROL) => return true,
            _ if self.scroll.handle_key(key) => {}
            _ => {
                if self.input.handle_key(key) {
                    self.scroll.top = 0;
                }
            }
        }
        false
    }

    fn lines(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let query = self.input.text().to_lowercase();
        let keys = |row: &KeyRow| {
            let mut keys = row.keys.join(" ");
            if !row.transcript_keys.is_empty() {
                keys = format!("{keys}  ({})", row.transcript_keys.join(" "));
            }
            keys.trim().to_owned()
        };
        let fits = |row: &&KeyRow| {
            let text = format!("{} {} {}", keys(row), row.action.name(), row.action.help()).to_lowercase();
            query.split_whitespace().all(|word| text.contains(word))
        };
        let width = usize::from(width);
        let column = (width / 2).min(34);
        let mut lines = Vec::new();
        for row in self.rows.iter().filter(fits) {
            let keys = cut(&keys(row), column.saturating_sub(1), theme);
            let gap = column.saturating_sub(columns(&keys));
            let help = format!("{} ({})", row.action.help().trim_end_matches('.'), row.action.name());
            for (index, part) in wrap_words(&help, width.saturating_sub(column)).into_iter().enumerate() {
                let (keys, gap) = if index == 0 { (keys.clone(), gap) } else { (String::new(), column) };
                let keys = Span::styled(keys, theme.accent);
                lines.push(Line::from(vec![keys, Span::raw(" ".repeat(gap)), Span::raw(part)]));
            }
        }
        if lines.is_empty() {
            lines.push(Line::styled(cut("no key fits", width, theme), theme.dim));
        }
        lines
    }

    /// Draws the dialog.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let hint = "type to search  esc close  (in brackets: where nothing is typed)";
        let inner = frame("keys", hint, area, buffer, theme);
        if inner.is_empty() {
            return;
        }
        let top = Rect { height: 1, ..inner };
        let mark = theme.sign("› ", "> ");
        draw(&[Line::styled(mark, theme.accent)], 0, top, buffer);
        let used = 2.min(top.width);
        self.input.render(Rect { x: top.x + used, width: top.width - used, ..top }, buffer, theme);
        let list = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let lines = self.lines(list.width, theme);
        self.scroll.fit(lines.len(), list.height);
        draw(&lines, self.scroll.top, list, buffer);
    }
}
