//! News that stand above the rest for a moment.

use std::collections::VecDeque;
use std::time::Duration;

use attache_proto::model::notice::{Notice, NoticeSeverity};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget as _};

use crate::text::{columns, draw, shown, with_dots, wrap_words};
use crate::theme::Theme;

/// How many news are kept, how long they stay, and how many rows each has.
const TOASTS: usize = 3;
const TOAST_TIME: Duration = Duration::from_secs(6);
const TOAST_ROWS: usize = 3;

/// How much a piece of news matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something failed.
    Error,
}

/// News that stand above the rest for a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Toasts {
    shown: VecDeque<(Level, String, Duration)>,
}

impl Toasts {
    /// None.
    pub fn new() -> Self {
        Toasts::default()
    }

    /// Adds one. `now` is the time since any moment, the same for all calls.
    pub fn push(&mut self, level: Level, text: impl AsRef<str>, now: Duration) {
        self.shown.push_back((level, shown(text.as_ref()), now));
        if self.shown.len() > TOASTS {
            self.shown.pop_front();
        }
    }

    /// Adds a notice of the agent.
    pub fn push_notice(&mut self, notice: &Notice, now: Duration) {
        let level = match notice.severity {
            NoticeSeverity::Error => Level::Error,
            NoticeSeverity::Warning => Level::Warning,
            _ => Level::Info,
        };
        let more = notice.description.as_deref().map(|more| format!(": {more}")).unwrap_or_default();
        self.push(level, format!("{}{more}", notice.title), now);
    }

    /// Takes those away that were seen long enough. Whether the screen is another now.
    pub fn expire(&mut self, now: Duration) -> bool {
        let before = self.shown.len();
        self.shown.retain(|(_, _, since)| now.saturating_sub(*since) < TOAST_TIME);
        self.shown.len() != before
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Draws them at the top right of an area.
    pub fn render(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let area = area.intersection(buffer.area);
        let width = area.width.min(48);
        if width < 4 {
            return;
        }
        let mut y = area.y;
        for (level, text, _) in &self.shown {
            let (sign, style) = match level {
                Level::Info => (theme.sign("i ", "i "), theme.accent),
                Level::Warning => ("! ", theme.warning),
                Level::Error => (theme.sign("✗ ", "x "), theme.error),
            };
            let room = usize::from(width) - 3;
            let mut rows = wrap_words(text, room);
            if rows.len() > TOAST_ROWS {
                rows.truncate(TOAST_ROWS);
                if let Some(last) = rows.last_mut() {
                    *last = with_dots(last, room, theme);
                }
            }
            let wide = rows.iter().map(|row| columns(row)).max().unwrap_or(0) + 3;
            let wide = u16::try_from(wide).unwrap_or(width).min(width);
            let height = u16::try_from(rows.len()).unwrap_or(0);
            if y + height > area.bottom() {
                return;
            }
            let place = Rect { x: area.right() - wide, y, width: wide, height };
            Clear.render(place, buffer);
            let line = |(index, row): (usize, String)| {
                let mark = if index == 0 { sign } else { "  " };
                Line::from(vec![Span::styled(mark, style), Span::styled(row, theme.text)])
            };
            draw(&rows.into_iter().enumerate().map(line).collect::<Vec<_>>(), 0, place, buffer);
            y += height;
        }
    }
}
