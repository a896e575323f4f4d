//! The rows of a change, one below the other or side by side.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{FileDiff, MAX_HIGHLIGHTED, Row, Words, skip_text};
use crate::highlight::{Highlight, language_of};
use crate::theme::{ColorDepth, Theme};
use crate::wrap::{Break, Prefix, clean, cut, spans_width, wrap};

/// Draws the rows of one file.
pub(super) struct Painter<'a> {
    file: &'a FileDiff,
    theme: &'a Theme,
    width: usize,
    /// The columns of line numbers.
    digits: usize,
    old: Option<Highlight>,
    new: Option<Highlight>,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Kept,
    Removed,
    Added,
}

impl<'a> Painter<'a> {
    pub(super) fn new(file: &'a FileDiff, width: usize, theme: &'a Theme) -> Self {
        let last = file.rows.iter().map(|row| match row {
            Row::Kept { old, new, .. } => *old.max(new),
            Row::Removed { old, .. } => *old,
            Row::Added { new, .. } => *new,
            Row::Skipped(_) => 0,
        });
        let digits = last.max().unwrap_or(0).to_string().len().max(3);
        // With sixteen colours the colour of the text tells what is added and removed, and is not to be had for code.
        let is_cheap = file.rows.len() <= MAX_HIGHLIGHTED && theme.depth >= ColorDepth::Ansi256;
        let highlight = Highlight::start(language_of(&file.path), theme).filter(|_| is_cheap);
        Painter { file, theme, width, digits, old: highlight.clone(), new: highlight }
    }

    pub(super) fn unified(&mut self, lines: &mut Vec<Line<'static>>) {
        for row in &self.file.rows {
            match row {
                Row::Kept { new, text, .. } => {
                    let spans = self.kept(text);
                    lines.extend(self.row(Side::Kept, *new, spans, self.width));
                }
                Row::Removed { old, words } => {
                    let spans = self.changed(Side::Removed, words);
                    lines.extend(self.row(Side::Removed, *old, spans, self.width));
                }
                Row::Added { new, words } => {
                    let spans = self.changed(Side::Added, words);
                    lines.extend(self.row(Side::Added, *new, spans, self.width));
                }
                Row::Skipped(count) => lines.push(self.skipped(*count)),
            }
        }
    }

    pub(super) fn side_by_side(&mut self, lines: &mut Vec<Line<'static>>) {
        let between = self.theme.sign(" │ ", " | ");
        let half = (self.width - 3) / 2;
        let mut rows = self.file.rows.iter().peekable();
        while let Some(row) = rows.next() {
            let (left, right) = match row {
                Row::Skipped(count) => {
                    lines.push(self.skipped(*count));
                    continue;
                }
                Row::Kept { old, new, text } => {
                    let spans = self.kept(text);
                    (self.row(Side::Kept, *old, spans.clone(), half), self.row(Side::Kept, *new, spans, half))
                }
                Row::Added { new, words } => {
                    let spans = self.changed(Side::Added, words);
                    (Vec::new(), self.row(Side::Added, *new, spans, half))
                }
                Row::Removed { old, words } => {
                    // All that is removed here, then all that is added, line beside line.
                    let mut removed = vec![(*old, words)];
                    while let Some(Row::Removed { old, words }) = rows.peek() {
                        removed.push((*old, words));
                        rows.next();
                    }
                    let mut added = Vec::new();
                    while let Some(Row::Added { new, words }) = rows.peek() {
                        added.push((*new, words));
                        rows.next();
                    }
                    for index in 0..removed.len().max(added.len()) {
                        let left = removed.get(index).map(|(number, words)| {
                            let spans = self.changed(Side::Removed, words);
                            self.row(Side::Removed, *number, spans, half)
                        });
                        let right = added.get(index).map(|(number, words)| {
                            let spans = self.changed(Side::Added, words);
                            self.row(Side::Added, *number, spans, half)
                        });
                        let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
                        beside(left, right, half, between, self.theme, lines);
                    }
                    continue;
                }
            };
            beside(left, right, half, between, self.theme, lines);
        }
    }

    fn skipped(&self, count: usize) -> Line<'static> {
        let text = format!("{} {}", " ".repeat(self.digits), skip_text(count, "line", self.theme));
        Line::styled(cut(&text, self.width, self.theme.is_unicode), self.theme.dim)
    }

    fn kept(&mut self, text: &str) -> Vec<Span<'static>> {
        let text = clean(text.trim_end_matches(['\n', '\r'])).into_owned();
        if let Some(old) = &mut self.old {
            old.line(&text, self.theme);
        }
        match &mut self.new {
            Some(new) => new.line(&text, self.theme),
            None => vec![Span::styled(text, self.theme.text)],
        }
    }

    fn changed(&mut self, side: Side, words: &Words) -> Vec<Span<'static>> {
        let (highlight, line, word) = match side {
            Side::Removed => (&mut self.old, self.theme.removed, self.theme.removed_word),
            _ => (&mut self.new, self.theme.added, self.theme.added_word),
        };
        let words: Words = words
            .iter()
            .map(|(differs, text)| (*differs, clean(text.trim_end_matches(['\n', '\r'])).into_owned()))
            .collect();
        let text: String = words.iter().map(|(_, text)| &**text).collect();
        let spans = match highlight {
            Some(highlight) => highlight.line(&text, self.theme),
            None => vec![Span::raw(text)],
        };
        marked(&spans, &words, line, word)
    }

    /// A line with its number and its sign.
    fn row(&self, side: Side, number: usize, spans: Vec<Span<'static>>, width: usize) -> Vec<Line<'static>> {
        let (sign, style) = match side {
            Side::Kept => (" ", self.theme.text),
            Side::Removed => ("-", self.theme.removed),
            Side::Added => ("+", self.theme.added),
        };
        let digits = self.digits;
        let number = Span::styled(format!("{number:>digits$} "), self.theme.dim);
        let blank = Span::raw(" ".repeat(digits + 1));
        let first = vec![number, Span::styled(format!("{sign} "), style)];
        let next = vec![blank, Span::styled("  ", style)];
        let mut lines = wrap(&spans, width, Break::Anywhere, &Prefix { first, next });
        if style.bg.is_some() {
            for line in &mut lines {
                let blank = width.saturating_sub(spans_width(&line.spans));
                line.spans.push(Span::styled(" ".repeat(blank), style));
            }
        }
        lines
    }
}

fn beside(
    left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    half: usize,
    between: &'static str,
    theme: &Theme,
    lines: &mut Vec<Line<'static>>,
) {
    for index in 0..left.len().max(right.len()) {
        let mut spans = left.get(index).map(|line| line.spans.clone()).unwrap_or_default();
        let blank = half.saturating_sub(spans_width(&spans));
        spans.push(Span::raw(" ".repeat(blank)));
        spans.push(Span::styled(between, theme.border));
        spans.extend(right.get(index).map(|line| line.spans.clone()).unwrap_or_default());
        lines.push(Line::from(spans));
    }
}

/// Highlighted text on the ground of its line, with the words that differ on their own.
fn marked(spans: &[Span<'static>], words: &Words, line: Style, word: Style) -> Vec<Span<'static>> {
    let mut marked = Vec::new();
    let mut words = words.iter().map(|(differs, text)| (*differs, text.len()));
    let (mut differs, mut left) = words.next().unwrap_or((false, usize::MAX));
    for span in spans {
        let mut text = &*span.content;
        while !text.is_empty() {
            while left == 0 {
                (differs, left) = words.next().unwrap_or((false, usize::MAX));
            }
            let (head, rest) = text.split_at(text.floor_char_boundary(left.min(text.len())).max(1).min(text.len()));
            left = left.saturating_sub(head.len());
            text = rest;
            let ground = if differs { word } else { line };
            marked.push(Span::styled(head.to_owned(), ground.patch(span.style)));
        }
    }
    marked
}
