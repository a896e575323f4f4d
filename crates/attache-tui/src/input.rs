//! One line to type into.

use attache_host::visible::{harmless, one_line};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Widget as _;
use ratatui_textarea::TextArea;

use crate::theme::Theme;

/// The most characters of one line: more than anybody types.
const LIMIT: usize = 16_384;

/// One line to type into.
#[derive(Debug, Clone)]
pub(crate) struct LineInput {
    area: TextArea<'static>,
}

impl Default for LineInput {
    fn default() -> Self {
        LineInput::new("")
    }
}

impl LineInput {
    /// A line that holds this already.
    pub(crate) fn new(text: &str) -> Self {
        let mut area = TextArea::new(vec![one_line(text)]);
        area.set_cursor_line_style(Style::new());
        area.move_cursor(ratatui_textarea::CursorMove::End);
        LineInput { area }
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().first().cloned().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Takes a key in. Whether the text is another now.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> bool {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => false,
            KeyCode::Enter | KeyCode::Tab | KeyCode::BackTab => false,
            KeyCode::Char('m' | 'j') if is_ctrl => false,
            KeyCode::Char('u') if is_ctrl => self.area.delete_line_by_head(),
            KeyCode::Char(c) if c.is_control() => false,
            KeyCode::Char(_) if !is_ctrl && self.text().len() >= LIMIT => false,
            // What turns the direction of text or is not seen is shown for what it is.
            KeyCode::Char(c) if !is_ctrl && harmless(&c.to_string()) != c.to_string() => {
                self.handle_paste(&c.to_string());
                true
            }
            _ => self.area.input(key),
        }
    }

    /// Takes in text that was pasted, as one line.
    pub(crate) fn handle_paste(&mut self, text: &str) {
        let room = LIMIT.saturating_sub(self.text().len());
        let line: String = one_line(text).chars().take(room).collect();
        self.area.insert_str(line);
    }

    /// Draws the line with its cursor.
    pub(crate) fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        self.area.set_style(theme.text);
        self.area.set_cursor_style(Style::new().add_modifier(Modifier::REVERSED));
        (&self.area).render(area, buffer);
    }
}
