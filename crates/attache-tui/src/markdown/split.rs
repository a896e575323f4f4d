//! Markdown that still grows, in parts: those that nothing can change any more, and an open end.

use std::ops::Range;
use std::rc::Rc;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::OPTIONS;

/// How far the end of a text is looked at for blocks, and so the longest that one can be. A longer one is shown in
/// parts, so that what one more chunk costs does not depend on what came before.
const WINDOW: usize = 16 << 10;

/// How many bytes of items are one part, about: a list of short items has not as many parts as items.
const ITEM_BYTES: usize = 512;

/// How many lines of code or plain text are one part.
const PART_LINES: usize = 40;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Where it is in the text.
    pub(crate) range: Range<usize>,
    /// All that it was made of, from the end of the part before: fences too.
    pub(crate) source: Range<usize>,
    /// Whether an empty line stands before it.
    pub(crate) gap: bool,
    pub(crate) kind: PartKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartKind {
    /// Text as it is.
    Plain,
    /// One or more blocks.
    Markdown {
        /// The number of the first item, if this goes on with a numbered list.
        number: Option<u64>,
    },
    /// Lines between fences.
    Code {
        language: Rc<str>,
        /// How many parts of the same code come before.
        index: usize,
    },
}

/// How far a text is split.
#[derive(Debug, Clone)]
pub(crate) struct Splitter {
    is_plain: bool,
    /// How many lines of code are one part.
    code_lines: usize,
    /// Where the open end begins.
    at: usize,
    /// Where what the next part is made of begins.
    mark: usize,
    fence: Option<Fence>,
    /// The number that the next item of the open list has.
    number: Option<u64>,
    gap: bool,
}

#[derive(Debug, Clone)]
struct Fence {
    mark: char,
    length: usize,
    language: Rc<str>,
    index: usize,
    /// Whether an empty line stands before the code.
    gap: bool,
}

impl Splitter {
    /// For Markdown.
    pub(crate) fn markdown() -> Self {
        Splitter { is_plain: false, code_lines: PART_LINES, at: 0, mark: 0, fence: None, number: None, gap: false }
    }

    /// For text that is shown as it is.
    pub(crate) fn plain() -> Self {
        Splitter { is_plain: true, ..Splitter::markdown() }
    }

    /// For Markdown of which every line of code and every item of a list is shown as soon as it is there.
    pub(crate) fn by_line() -> Self {
        Splitter { code_lines: 1, ..Splitter::markdown() }
    }

    fn is_by_line(&self) -> bool {
        self.code_lines == 1
    }

    /// Where the open end begins.
    pub(crate) fn open_from(&self) -> usize {
        self.at
    }

    /// What was read without being part of anything finished: a fence that is open.
    pub(crate) fn read_ahead(&self) -> Range<usize> {
        self.mark..self.at
    }

    /// Moves the places in the text by so many bytes, which were taken from its front.
    pub(crate) fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
        self.mark = self.mark.saturating_sub(bytes);
    }

    /// The parts of a text that are finished, since the last time. The text is the same as then, or has more at its end.
    pub(crate) fn advance(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            let is_stuck = if self.is_plain {
                self.advance_plain(text, &mut parts)
            } else if self.fence.is_some() {
                self.advance_code(text, &mut parts)
            } else {
                self.advance_blocks(text, &mut parts)
            };
            if is_stuck {
                return parts;
            }
        }
    }

    /// What is not finished, as if nothing followed.
    pub(crate) fn open(&self, text: &str) -> Option<Part> {
        let mut end = text.len();
        let kind = match &self.fence {
            None if self.is_plain => PartKind::Plain,
            None => PartKind::Markdown { number: self.number },
            Some(fence) => {
                // The closing fence may be there without a line end.
                let last = text[self.at..].rfind('\n').map_or(self.at, |at| self.at + at + 1);
                if fence.is_closed_by(&text[last..]) {
                    end = last;
                }
                PartKind::Code { language: fence.language.clone(), index: fence.index }
            }
        };
        let gap = match &self.fence {
            Some(fence) if fence.index == 0 => fence.gap,
            Some(_) => false,
            None => self.gap,
        };
        let is_blank = text[self.at..end].trim().is_empty() && !matches!(&self.fence, Some(fence) if fence.index == 0);
        (!is_blank).then_some(Part { range: self.at..end, source: self.mark..text.len(), gap, kind })
    }

    fn advance_plain(&mut self, text: &str, parts: &mut Vec<Part>) -> bool {
        let rest = &text[self.at..];
        let lines = rest.match_indices('\n').nth(PART_LINES - 1).map(|(at, _)| at + 1);
        let Some(end) = lines.filter(|end| *end <= WINDOW).or_else(|| window_of(rest)) else { return true };
        let range = self.at..self.at + end;
        self.mark = range.end;
        self.at = range.end;
        parts.push(Part { source: range.clone(), range, gap: false, kind: PartKind::Plain });
        false
    }

    fn advance_code(&mut self, text: &str, parts: &mut Vec<Part>) -> bool {
        let Some(fence) = &mut self.fence else { return true };
        let mark = &mut self.mark;
        let mut push = |range: Range<usize>, end: usize, fence: &mut Fence| {
            let kind = PartKind::Code { language: fence.language.clone(), index: fence.index };
            parts.push(Part { range, source: *mark..end, gap: fence.gap && fence.index == 0, kind });
            *mark = end;
            fence.index += 1;
        };
        let (mut end, mut lines) = (self.at, 0);
        while let Some(length) = text[end..].find('\n') {
            if fence.is_closed_by(&text[end..end + length]) {
                if end > self.at || fence.index == 0 {
                    push(self.at..end, end + length + 1, fence);
                }
                self.at = end + length + 1;
                self.fence = None;
                self.gap = true;
                return false;
            }
            end += length + 1;
            lines += 1;
            if lines == self.code_lines || end - self.at > WINDOW {
                push(self.at..end, end, fence);
                self.at = end;
                lines = 0;
            }
        }
        match window_of(&text[self.at..]) {
            Some(length) => {
                push(self.at..self.at + length, self.at + length, fence);
                self.at += length;
                false
            }
            None => true,
        }
    }

    fn advance_blocks(&mut self, text: &str, parts: &mut Vec<Part>) -> bool {
        let start = self.at;
        let tail = &text[start..];
        let cut = window_of(tail);
        // What the last line is cannot be told before it is whole: `|` may begin the next row of a table.
        let whole = || tail.rfind('\n').map_or(0, |at| at + 1);
        let window = &tail[..cut.unwrap_or_else(whole)];
        // The parser ends lines at a carriage return too, and nothing else here does.
        let blocks = blocks_of(&window.replace('\r', " "));
        let Some(last) = blocks.len().checked_sub(1) else {
            // Nothing but blanks and definitions of links.
            let Some(end) = cut else { return true };
            self.push_blocks(start + end, parts);
            return false;
        };
        for (index, block) in blocks.iter().enumerate() {
            let block_start = if index == 0 { start } else { start + block.start };
            if block_start < self.at {
                // Where the code ends was seen differently: look again from there.
                return false;
            }
            let next = blocks.get(index + 1).map(|next| start + next.start);
            match &block.kind {
                BlockKind::Code { fence, content } => {
                    // What stands before the first block are definitions of links.
                    if block.start > 0 && !text[self.at..start + block.start].trim().is_empty() {
                        self.push_blocks(start + block.start, parts);
                    }
                    self.number = None;
                    self.fence = Some(Fence { gap: self.gap, ..fence.clone() });
                    self.at = start + content;
                    if self.advance_code(text, parts) {
                        return true;
                    }
                    if self.fence.is_some() {
                        return false;
                    }
                    continue;
                }
                BlockKind::List { number, items } => {
                    let mut number = if index == 0 { self.number.or(*number) } else { *number };
                    let mut first = number;
                    for pair in items.windows(2) {
                        number = number.map(|number| number.saturating_add(1));
                        let length = (start + pair[1]).saturating_sub(self.at);
                        if length == 0 || !self.is_by_line() && length < ITEM_BYTES {
                            continue;
                        }
                        self.number = first;
                        first = number;
                        self.push_blocks(start + pair[1], parts);
                        // Items are apart if there is an empty line between them.
                        self.gap = window[..pair[1]].trim_end_matches([' ', '\t']).ends_with("\n\n");
                    }
                    self.number = first;
                }
                BlockKind::Other => self.number = None,
            }
            if let Some(next) = next {
                self.push_blocks(next, parts);
                self.number = None;
                self.gap = true;
            } else if let Some(end) = cut {
                // One block that is longer than the window: what follows is shown as a block of its own.
                if index == last && self.at == start {
                    self.push_blocks(start + end, parts);
                    self.gap = false;
                }
                return false;
            } else {
                return true;
            }
        }
        false
    }

    /// Everything up to here is finished.
    fn push_blocks(&mut self, end: usize, parts: &mut Vec<Part>) {
        let kind = PartKind::Markdown { number: self.number };
        parts.push(Part { range: self.at..end, source: self.mark..end, gap: self.gap, kind });
        (self.at, self.mark) = (end, end);
    }
}

impl Fence {
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim_end_matches('\r');
        let indent = line.len() - line.trim_start_matches(' ').len();
        let marks = line.trim_start_matches(' ').chars().take_while(|c| *c == self.mark).count();
        indent < 4 && marks >= self.length && line.trim_matches([' ', '\t']).len() == marks
    }
}

/// How much of a text is looked at, if it is longer than that: up to the end of a line, or of a word.
fn window_of(text: &str) -> Option<usize> {
    if text.len() <= WINDOW {
        return None;
    }
    let window = &text[..text.floor_char_boundary(WINDOW)];
    let end = window.rfind('\n').or_else(|| window.rfind(' ')).map(|at| at + 1);
    Some(end.filter(|end| *end > WINDOW / 2).unwrap_or(window.len()))
}

struct Block {
    start: usize,
    kind: BlockKind,
}

enum BlockKind {
    Code { fence: Fence, content: usize },
    List { number: Option<u64>, items: Vec<usize> },
    Other,
}

/// The outermost blocks of a text.
fn blocks_of(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                match (depth, tag) {
                    (1, Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                        let kind = code_block(text, range.start, &info).unwrap_or(BlockKind::Other);
                        blocks.push(Block { start: range.start, kind });
                    }
                    (1, Tag::List(number)) => {
                        blocks.push(Block { start: range.start, kind: BlockKind::List { number, items: Vec::new() } });
                    }
                    (1, _) => blocks.push(Block { start: range.start, kind: BlockKind::Other }),
                    (2, Tag::Item) => {
                        if let Some(Block { kind: BlockKind::List { items, .. }, .. }) = blocks.last_mut() {
                            // The blanks before an item belong to it: they say how deep it is.
                            items.push(text[..range.start].rfind('\n').map_or(0, |at| at + 1));
                        }
                    }
                    _ => {}
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(Block { start: range.start, kind: BlockKind::Other }),
            _ => {}
        }
    }
    blocks
}

/// Code between fences, once the line of the first is complete.
fn code_block(text: &str, start: usize, info: &str) -> Option<BlockKind> {
    let line = &text[start..start + text[start..].find('\n')?];
    let opening = line.trim_start_matches(' ');
    let mark = opening.chars().next()?;
    let length = opening.chars().take_while(|c| *c == mark).count();
    let language = info.split(|c: char| c.is_whitespace() || c == ',' || c == '{').next().unwrap_or_default();
    let fence = Fence { mark, length, language: Rc::from(language), index: 0, gap: false };
    Some(BlockKind::Code { fence, content: start + line.len() + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a text that comes whole, and of one that comes in pieces: the same.
    fn parts(text: &str) -> Vec<(String, bool)> {
        let all = |mut splitter: Splitter, lengths: &mut dyn Iterator<Item = usize>| {
            let (mut parts, mut length) = (Vec::new(), 0);
            while length < text.len() {
                length = text.ceil_char_boundary(length + lengths.next().unwrap_or(text.len()));
                parts.extend(splitter.advance(&text[..length]));
            }
            parts.extend(splitter.open(text));
            parts.into_iter().map(|part| (text[part.range].to_owned(), part.gap)).collect::<Vec<_>>()
        };
        let whole = all(Splitter::markdown(), &mut std::iter::empty());
        for size in [1, 3, 7] {
            let seen = all(Splitter::markdown(), &mut std::iter::repeat(size));
            assert_eq!(seen, whole, "in pieces of {size}");
        }
        whole
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, bool)]) {
        let seen = parts(text);
        let seen: Vec<(&str, bool)> = seen.iter().map(|(text, gap)| (&**text, *gap)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn blocks_are_finished_when_another_follows() {
        check("# One\n\ntwo\nthree\n\nfour\n", &[("# One\n\n", false), ("two\nthree\n\n", true), ("four\n", true)]);
        check("a\n```rust\nlet x;\n```\nb\n", &[("a\n", false), ("let x;\n", true), ("b\n", true)]);
        check("```\nopen\nend", &[("open\nend", false)]);
        check("```\nopen\n```", &[("open\n", false)]);
        check("1. a\n2. b\n\nc\n", &[("1. a\n2. b\n\n", false), ("c\n", true)]);
        check("- a\n\n- b\n", &[("- a\n\n- b\n", false)]);
        check("a\n\nb", &[("a\n\nb", false)]);
        check("~~~~\n```\n~~~~\nx", &[("```\n", false), ("x", true)]);
        check("", &[]);
    }

    #[test]
    fn carriage_returns_end_no_lines_and_nobody_panics() {
        for text in [
            "p\r1. a\r1. b\nx",
            "a\r\n1. a\r\n2. b\r\n",
            "```\rx\n```\r\ny",
            "- a\r- b\r\n\r- c\n",
            "\r\r\n> 1. x\r2. y\n",
        ] {
            let all: String = parts(text).into_iter().map(|(text, _)| text).collect();
            assert!(all.len() <= text.len(), "{text:?}");
            for splitter in [Splitter::by_line(), Splitter::plain()] {
                let mut splitter = splitter;
                for end in 0..=text.len() {
                    splitter.advance(&text[..end]);
                    splitter.open(&text[..end]);
                }
            }
        }
    }

    #[test]
    fn long_blocks_are_split() {
        let code = format!("```\n{}```\nend", "line\n".repeat(100));
        assert_eq!(parts(&code).len(), 4);
        let mut splitter = Splitter::markdown();
        let word = "x".repeat(100_000);
        let finished = splitter.advance(&word);
        assert!(finished.len() >= 6, "{}", finished.len());
        assert!(word.len() - splitter.open_from() <= WINDOW);
        let rows = format!("| a |\n|---|\n{}", "| b |\n".repeat(10_000));
        let mut splitter = Splitter::markdown();
        splitter.advance(&rows);
        assert!(rows.len() - splitter.open_from() <= WINDOW);
    }

    #[test]
    fn numbers_go_on() {
        let mut splitter = Splitter::by_line();
        let text = "1. a\n1. b\n1. c\n";
        let numbers: Vec<_> =
            splitter.advance(text).into_iter().chain(splitter.open(text)).map(|part| part.kind).collect();
        let number = |number| PartKind::Markdown { number: Some(number) };
        assert_eq!(numbers, [number(1), number(2), number(3)]);
    }
}
