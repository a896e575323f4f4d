//! Tables that fit.

use pulldown_cmark::Alignment;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::theme::Theme;
use crate::wrap::{Break, Prefix, spans_width, wrap};

type Cell = Vec<Span<'static>>;

/// A table while it is read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the head.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// The narrowest column that can be read.
const MIN_COLUMN: usize = 4;

impl Table {
    /// The table in lines of at most this width: as a table if the columns fit, else row by row.
    pub(super) fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let between = 3 * columns.saturating_sub(1);
        if columns == 0 {
            return Vec::new();
        }
        if between + columns * MIN_COLUMN > width {
            return self.stacked(width, theme);
        }
        let widths = self.widths(columns, width - between);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, &widths, index == 0, theme));
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| theme.sign("─", "-").repeat(*width)).collect();
                lines.push(Line::styled(rule.join(theme.sign("─┼─", "-+-")), theme.border));
            }
        }
        lines
    }

    /// As wide as the contents, but the widest give way until all fit.
    fn widths(&self, columns: usize, room: usize) -> Vec<usize> {
        let wanted = |column: usize| {
            let widths = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| spans_width(cell));
            widths.max().unwrap_or(0).max(1)
        };
        let wanted: Vec<usize> = (0..columns).map(wanted).collect();
        if wanted.iter().sum::<usize>() <= room {
            return wanted;
        }
        // The level at which all columns that are wider are cut, so that the rest is kept whole.
        let (mut low, mut high) = (MIN_COLUMN.min(room), room);
        while low < high {
            let level = (low + high).div_ceil(2);
            let total: usize = wanted.iter().map(|width| (*width).min(level)).sum();
            if total <= room { low = level } else { high = level - 1 }
        }
        let mut widths: Vec<usize> = wanted.iter().map(|width| (*width).min(low)).collect();
        let mut left = room.saturating_sub(widths.iter().sum());
        for (width, wanted) in widths.iter_mut().zip(&wanted) {
            if left > 0 && *width < *wanted {
                *width += 1;
                left -= 1;
            }
        }
        widths
    }

    fn row(&self, row: &[Cell], widths: &[usize], is_head: bool, theme: &Theme) -> Vec<Line<'static>> {
        let cells: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let mut cell = row.get(column).cloned().unwrap_or_default();
                if is_head {
                    for span in &mut cell {
                        span.style = span.style.add_modifier(Modifier::BOLD);
                    }
                }
                wrap(&cell, *width, Break::Words, &Prefix::default())
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let mut spans = Vec::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    spans.push(Span::styled(theme.sign(" │ ", " | "), theme.border));
                }
                let cell = cell.get(index).map(|line| line.spans.clone()).unwrap_or_default();
                let blank = width.saturating_sub(spans_width(&cell));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => blank,
                    Some(Alignment::Center) => blank / 2,
                    _ => 0,
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(cell);
                let is_last = column + 1 == widths.len();
                spans.push(Span::raw(" ".repeat(if is_last { 0 } else { blank - before })));
            }
            spans.retain(|span| !span.content.is_empty());
            Line::from(spans)
        };
        (0..height).map(line).collect()
    }

    /// Each row as lines of `head: cell`, for a screen that is too narrow for a table.
    fn stacked(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::styled(theme.sign("─", "-").repeat(width.min(8)), theme.border));
            }
            for (name, cell) in head.iter().zip(row) {
                let mut spans: Vec<Span<'static>> = name.clone();
                for span in &mut spans {
                    span.style = span.style.add_modifier(Modifier::BOLD);
                }
                spans.push(Span::raw(": "));
                spans.extend(cell.iter().cloned());
                lines.extend(wrap(&spans, width, Break::Words, &Prefix::default()));
            }
        }
        if rows.is_empty() {
            for name in head {
                lines.extend(wrap(name, width, Break::Words, &Prefix::default()));
            }
        }
        lines
    }
}
