//! What the composer looks like.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::Composer;
use crate::text::{columns, cut, draw, shown, without_tabs, wrap_words};
use crate::theme::Theme;

impl Composer {
    /// Where the cursor of the terminal belongs, for those who read the screen by it, after the composer was drawn.
    pub fn cursor_position(&self) -> Option<Position> {
        let cursor = self.area.screen_cursor();
        let (top, left) = self.area.scroll_offset();
        let x = cursor.col.checked_sub(usize::from(left)).and_then(|x| u16::try_from(x).ok())?;
        let y = cursor.row.checked_sub(usize::from(top)).and_then(|y| u16::try_from(y).ok())?;
        let position = Position::new(self.drawn.x.checked_add(x)?, self.drawn.y.checked_add(y)?);
        self.drawn.contains(position).then_some(position)
    }

    /// The rows of the text itself.
    fn text_rows(&self, width: u16) -> usize {
        let room = usize::from(width).saturating_sub(2).max(1);
        // The cursor stands behind the last character.
        self.area.lines().iter().map(|line| wrap_words(&format!("{}_", without_tabs(line)), room).len()).sum()
    }

    /// How many rows it needs, the queue and the line above it included: at most a third of the screen.
    pub fn height(&self, width: u16, screen_height: u16) -> u16 {
        let wanted = self.text_rows(width) + 1 + self.queue.rows();
        let most = usize::from(screen_height / 3).max(2);
        u16::try_from(wanted.min(most)).unwrap_or(u16::MAX)
    }

    /// Draws the queue, a line, and the text with its cursor.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let text_rows = u16::try_from(self.text_rows(area.width)).unwrap_or(u16::MAX);
        let above = area.height.saturating_sub(text_rows.min(area.height).max(1));
        let rule = u16::from(area.height > 1);
        let queue_rows = above.saturating_sub(rule).min(u16::try_from(self.queue.rows()).unwrap_or(u16::MAX));
        self.queue.render(Rect { height: queue_rows, ..area }, buffer, theme);
        let mut rest = Rect { y: area.y + queue_rows, height: area.height - queue_rows, ..area };
        if rule > 0 && rest.height > 1 {
            let line = theme.sign("─", "-").repeat(usize::from(area.width));
            draw(&[Line::styled(line, theme.border)], 0, rest, buffer);
            rest = Rect { y: rest.y + 1, height: rest.height - 1, ..rest };
        }
        let mark = theme.sign("› ", "> ");
        let used = if rest.width > 4 { 2 } else { 0 };
        if used > 0 {
            let style = if self.is_focused { theme.accent } else { theme.dim };
            draw(&[Line::styled(mark, style)], 0, Rect { height: 1, ..rest }, buffer);
        }
        let text = Rect { x: rest.x + used, width: rest.width - used, ..rest };
        let (style, cursor) = match self.is_focused {
            true => (theme.text, Style::new().add_modifier(Modifier::REVERSED)),
            false => (theme.dim, Style::new()),
        };
        self.area.set_style(style);
        self.area.set_cursor_style(cursor);
        self.area.set_placeholder_text(cut(
            &shown(&self.placeholder),
            usize::from(text.width).saturating_sub(1),
            theme,
        ));
        self.area.set_placeholder_style(theme.dim);
        (&self.area).render(text, buffer);
        self.drawn = text;
        self.mark_chips(text, buffer, theme);
        self.render_hint(text, buffer, theme);
    }

    /// Labels look like what they are, wherever they are in the text.
    fn mark_chips(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        for row in area.rows() {
            let cells: Vec<(String, u16)> = row.positions().map(|at| (buffer[at].symbol().to_owned(), at.x)).collect();
            let line: String = cells.iter().map(|(symbol, _)| symbol.as_str()).collect();
            for chip in &self.chips {
                let Some(at) = line.find(&chip.label) else { continue };
                let mut from = 0;
                for (symbol, x) in &cells {
                    if (at..at + chip.label.len()).contains(&from) {
                        let cell = &mut buffer[Position::new(*x, row.y)];
                        cell.set_style(theme.accent);
                    }
                    from += symbol.len();
                }
            }
        }
    }

    /// The input that a command takes, behind it while there is none.
    fn render_hint(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let [line] = self.area.lines() else { return };
        let Some(name) = line.strip_prefix('/').and_then(|line| line.strip_suffix(' ')) else { return };
        let Some(hint) = self.popup.hints.get(name).filter(|hint| !hint.is_empty()) else { return };
        let used = columns(line) + 1;
        let room = usize::from(area.width).saturating_sub(used);
        if room > 0 && area.height > 0 {
            let x = area.x + u16::try_from(used).unwrap_or(u16::MAX);
            let place = Rect { x, y: area.y, width: area.right() - x, height: 1 };
            draw(&[Line::styled(cut(&shown(hint), room, theme), theme.dim)], 0, place, buffer);
        }
    }

    /// How many rows the list needs, above the composer.
    pub fn popup_height(&self) -> u16 {
        self.popup.height()
    }

    /// Draws the list at the bottom of an area, which is what is above the composer.
    pub fn render_popup(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let newest_first = self.history.iter().rev().map(String::as_str);
        let history: Vec<&str> = newest_first.filter(|_| self.popup.is_searching()).collect();
        self.popup.render(&history, area, buffer, theme);
    }
}

/// A line of the queue or of the past, cut to fit.
pub(super) fn one_row(mark: &str, text: &str, room: usize, theme: &Theme) -> Vec<Span<'static>> {
    let room = room.saturating_sub(columns(mark));
    vec![Span::styled(mark.to_owned(), theme.accent), Span::raw(cut(&shown(text), room, theme))]
}
