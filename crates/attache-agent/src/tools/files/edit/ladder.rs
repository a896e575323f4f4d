//! The ways to find a piece of text, from the strictest to the loosest.

use std::borrow::Cow;
use std::ops::Range;

use super::indent::Indent;
use super::lines::{Line, find_all, lines};

/// How many places are looked for. Two are too many already, but of the looser ways' places not all may do.
const MOST: usize = 50;

/// A way to find a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rung {
    /// As it is.
    Exact,
    /// Lines may end in `\r\n` or `\n`.
    LineEnds,
    /// Whole lines, whatever white space they end with.
    LineTails,
    /// Whole lines, whatever white space they begin and end with, as long as lines that were indented alike still are.
    Indentation,
    /// Whole lines, with the same words in the same order.
    WhiteSpace,
}

/// Where a piece of text was found, and what is to be put there.
#[derive(Debug)]
pub(super) struct Spot<'a> {
    pub(super) range: Range<usize>,
    pub(super) new: Cow<'a, str>,
}

impl Rung {
    pub(super) const ALL: [Rung; 5] =
        [Rung::Exact, Rung::LineEnds, Rung::LineTails, Rung::Indentation, Rung::WhiteSpace];

    /// What the model is told where the text was not exact.
    pub(super) fn difference(self) -> Option<&'static str> {
        match self {
            Rung::Exact => None,
            Rung::LineEnds => Some("lines end with CRLF here, or do not, and the new text was given the same"),
            Rung::LineTails => Some("the white space at the ends of lines differs"),
            Rung::Indentation => Some("the indentation differs, and the new text was indented to fit"),
            Rung::WhiteSpace => Some("white space differs, and the new text was indented like the first line"),
        }
    }

    pub(super) fn find<'a>(self, content: &str, old: &str, new: &'a str) -> Vec<Spot<'a>> {
        match self {
            Rung::Exact => exact(content, old, new),
            Rung::LineEnds => line_ends(content, old, new),
            // A blank piece is everywhere once white space does not count.
            _ if old.trim().is_empty() => Vec::new(),
            Rung::LineTails => whole_lines(content, old, new, str::trim_end, false),
            Rung::Indentation => whole_lines(content, old, new, str::trim, true),
            Rung::WhiteSpace => words(content, old, new),
        }
    }
}

fn exact<'a>(content: &str, old: &str, new: &'a str) -> Vec<Spot<'a>> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut spots = Vec::new();
    let mut from = 0;
    // Places that overlap count too: it cannot be told which of them is meant.
    while spots.len() < MOST
        && let Some(at) = content[from..].find(old)
    {
        let start = from + at;
        spots.push(Spot { range: start..start + old.len(), new: new.into() });
        from = start + step;
    }
    spots
}

fn line_ends<'a>(content: &str, old: &str, new: &'a str) -> Vec<Spot<'a>> {
    if !content.contains("\r\n") && !old.contains("\r\n") {
        return Vec::new();
    }
    let narrow = content.replace("\r\n", "\n");
    let mut spots = exact(&narrow, &old.replace("\r\n", "\n"), new);
    // Each place is as many bytes farther on as there are `\r` before it.
    let mut removed = 0;
    let mut wide_ends = content.match_indices("\r\n").map(|(at, _)| at).peekable();
    let mut offsets: Vec<&mut usize> =
        spots.iter_mut().flat_map(|spot| [&mut spot.range.start, &mut spot.range.end]).collect();
    offsets.sort();
    for offset in offsets {
        while wide_ends.next_if(|at| at - removed < *offset).is_some() {
            removed += 1;
        }
        *offset += removed;
    }
    spots
}

fn whole_lines<'a>(content: &str, old: &str, new: &'a str, key: fn(&str) -> &str, reindents: bool) -> Vec<Spot<'a>> {
    let (hay, wanted) = (lines(content), lines(old));
    let hay_keys: Vec<&str> = hay.iter().map(|line| key(line.text)).collect();
    let old_keys: Vec<&str> = wanted.iter().map(|line| key(line.text)).collect();
    let found = find_all(&hay_keys, &old_keys, MOST).into_iter();
    found
        .filter_map(|at| {
            let there = &hay[at..at + wanted.len()];
            let new = if reindents {
                let pairs = wanted.iter().zip(there).map(|(old, there)| (old.text, there.text));
                Cow::Owned(Indent::between(pairs)?.apply(new))
            } else {
                Cow::Borrowed(new)
            };
            Some(spot_of_lines(content, there, old, new))
        })
        .collect()
}

fn words<'a>(content: &str, old: &str, new: &'a str) -> Vec<Spot<'a>> {
    let all = lines(content);
    // Each word with the number of its line, and whether it is the first and the last there.
    let mut hay = Vec::new();
    let mut places = Vec::new();
    for (number, line) in all.iter().enumerate() {
        let mut words = line.text.split_whitespace().peekable();
        let mut is_first = true;
        while let Some(word) = words.next() {
            hay.push(word);
            places.push((number, is_first, words.peek().is_none()));
            is_first = false;
        }
    }
    let wanted: Vec<&str> = old.split_whitespace().collect();
    let first_old = old.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let found = find_all(&hay, &wanted, MOST).into_iter();
    found
        .filter_map(|at| {
            // Only whole lines: what stands beside them would have to be kept, and where cannot be told.
            let (begin, is_first, _) = places[at];
            let (end, _, is_last) = places[at + wanted.len() - 1];
            let indent = Indent::between([(first_old, all[begin].text)])?;
            let spot = || spot_of_lines(content, &all[begin..=end], old, Cow::Owned(indent.apply(new)));
            (is_first && is_last).then(spot)
        })
        .collect()
}

/// The place of some whole lines. With the end of the last of them if `old` has one.
fn spot_of_lines<'a>(content: &str, there: &[Line<'_>], old: &str, mut new: Cow<'a, str>) -> Spot<'a> {
    let (start, last) = match (there.first(), there.last()) {
        (Some(first), Some(last)) => (first.start, *last),
        _ => (0, Line { start: 0, text: "", end: 0 }),
    };
    if !old.ends_with('\n') {
        return Spot { range: start..last.start + last.text.len(), new };
    }
    if !new.is_empty() && !new.ends_with('\n') {
        new.to_mut().push('\n');
    }
    // The file does not end with a line end, and keeps it that way.
    if !content[..last.end].ends_with('\n') && new.ends_with('\n') {
        new.to_mut().pop();
    }
    Spot { range: start..last.end, new }
}
