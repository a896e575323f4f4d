//! Changes of files: what differs, and how it looks.

mod paint;
mod patch;

use attache_proto::model::diff::{Diff, TextDiff};
use ratatui::text::{Line, Span};
use similar::{ChangeTag, DiffOp, TextDiff as Comparison};

use crate::image::counted;
use crate::theme::Theme;
use crate::wrap::{clean_line, cut, cut_start, width_of};
use paint::Painter;
use patch::of_patch;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The largest table of line pairs that is compared: some milliseconds. A larger change is shown as a replacement of
/// everything between the first and the last line that differ.
const MAX_PAIRS: usize = 4 << 20;

/// The longest replacement whose words are compared, in bytes.
const MAX_WORDS: usize = 8 << 10;

/// How many rows of a change are shown at most.
const MAX_ROWS: usize = 2_000;

/// How many rows are highlighted at most.
const MAX_HIGHLIGHTED: usize = 300;

/// The width from which old and new stand side by side.
pub(crate) const SIDE_BY_SIDE: usize = 120;

/// The longest line that is shown whole.
const LONGEST_LINE: usize = 16 << 10;

/// The change of one file.
#[derive(Debug, Default)]
pub(crate) struct FileDiff {
    path: String,
    /// What happened to it, unless it was only modified.
    note: String,
    rows: Vec<Row>,
    added: usize,
    removed: usize,
    /// How many rows are left out at the end.
    hidden: usize,
}

#[derive(Debug)]
enum Row {
    Kept {
        old: usize,
        new: usize,
        text: String,
    },
    Removed {
        old: usize,
        words: Words,
    },
    Added {
        new: usize,
        words: Words,
    },
    /// So many lines that are the same.
    Skipped(usize),
}

/// A line in pieces, each with whether it differs from the line that it replaces.
type Words = Vec<(bool, String)>;

/// The changes of files that a diff holds.
pub(crate) fn files(diff: &Diff) -> Vec<FileDiff> {
    match diff {
        Diff::Text(diff) => vec![of_texts(diff)],
        Diff::Patch(diff) => of_patch(diff),
    }
}

fn of_texts(diff: &TextDiff) -> FileDiff {
    let note = if diff.old_text.is_none() { "new file" } else { "" };
    let mut file = FileDiff { path: diff.path.clone(), note: note.into(), ..FileDiff::default() };
    let old: Vec<&str> = diff.old_text.as_deref().unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = diff.new_text.split_inclusive('\n').collect();

    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);

    // The lines that are the same since the last change; they are shown when it is known what follows.
    let mut same = 0..before;
    let mut shift = 0_isize;
    let mut is_first = true;
    let mut change =
        |old_at: usize, old_length: usize, new_at: usize, new_length: usize, same: std::ops::Range<usize>| {
            file.push_context(&old, same, shift, is_first, false);
            is_first = false;
            file.push_change(&old[old_at..old_at + old_length], &new[new_at..new_at + new_length], old_at, new_at);
            shift = (new_at + new_length) as isize - (old_at + old_length) as isize;
        };
    if old_middle.len().saturating_mul(new_middle.len()) > MAX_PAIRS {
        change(before, old_middle.len(), before, new_middle.len(), same);
        same = before + old_middle.len()..before + old_middle.len();
    } else {
        for op in Comparison::from_slices(old_middle, new_middle).ops() {
            let (old_range, new_range) = (op.old_range(), op.new_range());
            if let DiffOp::Equal { .. } = op {
                same.end += old_range.len();
                continue;
            }
            change(before + old_range.start, old_range.len(), before + new_range.start, new_range.len(), same);
            same = before + old_range.end..before + old_range.end;
        }
    }
    same.end = old.len();
    if !is_first {
        file.push_context(&old, same, shift, false, true);
    }
    file
}

impl FileDiff {
    /// Lines that are the same: those next to a change, and a number for the others.
    fn push_context(
        &mut self,
        old: &[&str],
        same: std::ops::Range<usize>,
        shift: isize,
        is_first: bool,
        is_last: bool,
    ) {
        let head = if is_first { 0 } else { CONTEXT };
        let tail = if is_last { 0 } else { CONTEXT };
        // One line takes as much room as the word that it is left out.
        let is_folded = same.len() > head + tail + 1;
        for index in same.clone() {
            let is_near = index < same.start + head || index + tail >= same.end;
            if is_folded && !is_near {
                if index == same.start + head {
                    self.push(Row::Skipped(same.len() - head - tail));
                }
                continue;
            }
            let new = index.checked_add_signed(shift).unwrap_or(index);
            self.push(Row::Kept { old: index + 1, new: new + 1, text: shortened(old[index]) });
        }
    }

    /// Lines that others take the place of.
    fn push_change(&mut self, old: &[&str], new: &[&str], old_at: usize, new_at: usize) {
        self.removed += old.len();
        self.added += new.len();
        let (old, new) = (&old[..old.len().min(MAX_ROWS)], &new[..new.len().min(MAX_ROWS)]);
        let (old_words, new_words) = words(old, new);
        for (index, words) in old_words.into_iter().enumerate() {
            self.push(Row::Removed { old: old_at.saturating_add(index + 1), words });
        }
        for (index, words) in new_words.into_iter().enumerate() {
            self.push(Row::Added { new: new_at.saturating_add(index + 1), words });
        }
    }

    fn push(&mut self, row: Row) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.hidden += 1;
        }
    }
}

/// A line as it is shown: of one that is far longer than a screen, the beginning.
fn shortened(line: &str) -> String {
    if line.len() <= LONGEST_LINE {
        return line.to_owned();
    }
    let end = line.floor_char_boundary(LONGEST_LINE);
    format!("{} [{} more bytes]\n", &line[..end], line.len() - end)
}

/// Both sides of a replacement, with the words that differ.
fn words(old: &[&str], new: &[&str]) -> (Vec<Words>, Vec<Words>) {
    let whole = |lines: &[&str]| lines.iter().map(|line| vec![(false, shortened(line))]).collect::<Vec<Words>>();
    let length: usize = old.iter().chain(new).map(|line| line.len()).sum();
    if old.is_empty() || new.is_empty() || length > MAX_WORDS {
        return (whole(old), whole(new));
    }
    let comparison = Comparison::from_slices(old, new);
    let (mut old_words, mut new_words) = (Vec::new(), Vec::new());
    for op in comparison.ops() {
        for change in comparison.iter_inline_changes(op) {
            let words: Words = change.values().iter().map(|(differs, text)| (*differs, (*text).to_owned())).collect();
            match change.tag() {
                ChangeTag::Delete => old_words.push(words),
                ChangeTag::Insert => new_words.push(words),
                ChangeTag::Equal => {
                    old_words.push(words.clone());
                    new_words.push(words);
                }
            }
        }
    }
    // Each line once, whatever the comparison made of them.
    if old_words.len() == old.len() && new_words.len() == new.len() {
        (old_words, new_words)
    } else {
        (whole(old), whole(new))
    }
}

/// How the changes look, with a path as `shown` shows it.
pub(crate) fn lines(
    files: &[FileDiff],
    width: usize,
    theme: &Theme,
    shown: &dyn Fn(&str) -> String,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for file in files {
        lines.push(head(file, width, theme, shown));
        let mut painter = Painter::new(file, width, theme);
        if width >= SIDE_BY_SIDE && file.added > 0 && file.removed > 0 {
            painter.side_by_side(&mut lines);
        } else {
            painter.unified(&mut lines);
        }
        if file.hidden > 0 {
            let text = skip_text(file.hidden, "more line", theme);
            lines.push(Line::styled(cut(&text, width, theme.is_unicode), theme.dim));
        }
    }
    lines
}

/// The path, what happened to it, and `+n -m`.
fn head(file: &FileDiff, width: usize, theme: &Theme, shown: &dyn Fn(&str) -> String) -> Line<'static> {
    let counts = format!("+{} -{}", file.added, file.removed);
    let note = if file.note.is_empty() { String::new() } else { format!(" ({})", clean_line(&file.note)) };
    let room = width.saturating_sub(counts.len() + 2);
    let note = if width_of(&note) + 12 > room { String::new() } else { note };
    let path = cut_start(&clean_line(&shown(&file.path)), room.saturating_sub(width_of(&note)), theme.is_unicode);
    let mut spans = vec![Span::styled(path, theme.accent), Span::styled(note, theme.dim), Span::raw("  ")];
    spans.push(Span::styled(format!("+{}", file.added), theme.success));
    spans.push(Span::raw(" "));
    spans.push(Span::styled(format!("-{}", file.removed), theme.error));
    spans.retain(|span| !span.content.is_empty());
    Line::from(crate::wrap::cut_spans(&spans, width))
}

fn skip_text(count: usize, thing: &str, theme: &Theme) -> String {
    format!("{} {}", theme.sign("…", "..."), counted(count, thing))
}

#[cfg(test)]
mod tests;
