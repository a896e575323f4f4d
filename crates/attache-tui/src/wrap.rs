//! Text in columns: made harmless, measured, cut and wrapped.

use std::borrow::Cow;

use attache_host::visible::harmless;
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// How many bytes one character on the screen may have. A family of emoji with skin tones has 35; a longer run carries
/// something that nobody sees.
const CLUSTER_LIMIT: usize = 64;

/// Columns between tab stops.
const TAB: usize = 4;

/// How much of a text that has to fit on one line is looked at.
const ONE_LINE_LIMIT: usize = 4 << 10;

/// Text of others as it may stand in cells: nothing in it acts upon a terminal, every character has a width, and tabs are
/// spaces. Only line ends are left of the control characters.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let text = harmless(text);
    let mut clean = String::with_capacity(text.len());
    let mut column = 0;
    for cluster in text.graphemes(true) {
        match cluster {
            "\n" => {
                clean.push('\n');
                column = 0;
            }
            "\t" => {
                let spaces = TAB - column % TAB;
                clean.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            // A control character that is left would be a mistake of the table above.
            _ if cluster.contains(char::is_control) => {}
            _ => match cluster_width(cluster) {
                0 => {}
                1 | 2 if cluster.len() <= CLUSTER_LIMIT => {
                    clean.push_str(cluster);
                    column += cluster_width(cluster);
                }
                _ => {
                    clean.push('\u{fffd}');
                    column += 1;
                }
            },
        }
    }
    Cow::Owned(clean)
}

/// Text of others on one line, without the white space around it.
pub(crate) fn clean_line(text: &str) -> String {
    let text = start_of(text, ONE_LINE_LIMIT);
    let mut line = String::new();
    for word in clean(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The start of a text, at most this many bytes.
pub(crate) fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

pub(crate) fn cluster_width(cluster: &str) -> usize {
    if cluster.len() == 1 { 1 } else { usize::from(cluster.cell_width()) }
}

/// The columns that a text takes.
pub(crate) fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(cluster_width).sum() }
}

/// The columns that spans take.
pub(crate) fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| width_of(&span.content)).sum()
}

/// A text cut at its end to this many columns, with a sign where something is missing.
pub(crate) fn cut(text: &str, columns: usize, is_unicode: bool) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let sign = if is_unicode { "…" } else { "~" };
    let mut cut = String::new();
    let mut left = columns.saturating_sub(1);
    for cluster in text.graphemes(true) {
        match left.checked_sub(cluster_width(cluster)) {
            Some(rest) => left = rest,
            None => break,
        }
        cut.push_str(cluster);
    }
    if columns > 0 {
        cut.push_str(sign);
    }
    cut
}

/// A text cut at its start: for paths, whose end tells more.
pub(crate) fn cut_start(text: &str, columns: usize, is_unicode: bool) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut from = text.len();
    for (at, cluster) in text.grapheme_indices(true).rev() {
        match left.checked_sub(cluster_width(cluster)) {
            Some(rest) => left = rest,
            None => break,
        }
        from = at;
    }
    let sign = if columns == 0 {
        ""
    } else if is_unicode {
        "…"
    } else {
        "~"
    };
    format!("{sign}{}", &text[from..])
}

/// Where lines may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// At spaces and around wide characters: for prose.
    Words,
    /// Anywhere: for code, where spaces mean something.
    Anywhere,
}

/// What stands before the lines of a block: once, and before the lines that follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) next: Vec<Span<'static>>,
}

impl Prefix {
    /// The same before all lines.
    pub(crate) fn same(spans: Vec<Span<'static>>) -> Self {
        Prefix { first: spans.clone(), next: spans }
    }

    /// Something once, then blanks of the same width.
    pub(crate) fn hanging(spans: Vec<Span<'static>>) -> Self {
        let next = vec![Span::raw(" ".repeat(spans_width(&spans)))];
        Prefix { first: spans, next }
    }
}

/// Spans in lines of at most this many columns. A character never straddles the edge.
pub(crate) fn wrap(spans: &[Span<'static>], width: usize, breaks: Break, prefix: &Prefix) -> Vec<Line<'static>> {
    struct Cluster<'a> {
        text: &'a str,
        style: Style,
        width: usize,
        span: usize,
    }
    // Something of the text is always seen, however deep it is nested.
    let is_bare = prefix.first.is_empty() && prefix.next.is_empty();
    let reserve = if is_bare { width.max(1) } else { width.div_ceil(2).max(width.min(2)) };
    let first = cut_spans(&prefix.first, width - reserve.min(width));
    let next = cut_spans(&prefix.next, width - reserve.min(width));
    let mut clusters = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        for text in span.content.graphemes(true) {
            let cluster = Cluster { text, style: span.style, width: cluster_width(text), span: index };
            match cluster.width {
                0 => {}
                wide if wide > reserve => clusters.push(Cluster { text: "?", width: 1, ..cluster }),
                _ => clusters.push(cluster),
            }
        }
    }
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let before = if lines.is_empty() { &first } else { &next };
        let room = width.saturating_sub(spans_width(before)).max(1);
        let (mut end, mut used, mut last_break) = (start, 0, None);
        while let Some(cluster) = clusters.get(end) {
            let is_space = cluster.text == " ";
            if used + cluster.width > room {
                // A space at the edge is where the line ends; it takes no room.
                if is_space && breaks == Break::Words {
                    last_break = Some(end);
                }
                break;
            }
            if breaks == Break::Words && end > start && (is_space || cluster.width > 1) {
                last_break = Some(end);
            }
            used += cluster.width;
            end += 1;
            if breaks == Break::Words && cluster.width > 1 {
                last_break = Some(end);
            }
        }
        let is_last = end == clusters.len();
        let stop = if is_last { end } else { last_break.filter(|at| *at > start).unwrap_or(end) };
        let mut line = before.clone();
        let mut last = None;
        for cluster in &clusters[start..stop] {
            match line.last_mut() {
                // Characters of two spans that would become one are kept apart.
                Some(span) if last == Some(cluster.span) || span.style == cluster.style && cluster.text.is_ascii() => {
                    span.content.to_mut().push_str(cluster.text);
                }
                _ => line.push(Span::styled(cluster.text.to_owned(), cluster.style)),
            }
            last = Some(cluster.span);
        }
        if !is_last && breaks == Break::Words {
            trim_end(&mut line);
        }
        lines.push(Line::from(line));
        start = stop;
        if breaks == Break::Words && !is_last {
            while clusters.get(start).is_some_and(|cluster| cluster.text == " ") {
                start += 1;
            }
        }
        if start >= clusters.len() {
            return lines;
        }
    }
}

fn trim_end(line: &mut [Span<'static>]) {
    if let Some(last) = line.last_mut() {
        let kept = last.content.trim_end_matches(' ').len();
        last.content.to_mut().truncate(kept);
    }
}

/// Spans up to this many columns.
pub(crate) fn cut_spans(spans: &[Span<'static>], columns: usize) -> Vec<Span<'static>> {
    let mut left = columns;
    let mut kept = Vec::new();
    for span in spans {
        let width = width_of(&span.content);
        if width <= left {
            left -= width;
            kept.push(span.clone());
            continue;
        }
        let mut text = String::new();
        for cluster in span.content.graphemes(true) {
            match left.checked_sub(cluster_width(cluster)) {
                Some(rest) => left = rest,
                None => break,
            }
            text.push_str(cluster);
        }
        kept.push(Span::styled(text, span.style));
        break;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize, breaks: Break) -> Vec<String> {
        let lines = wrap(&[Span::raw(text.to_owned())], width, breaks, &Prefix::default());
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_between_words_and_never_within_a_character() {
        assert_eq!(wrapped("one two three", 7, Break::Words), ["one two", "three"]);
        assert_eq!(wrapped("a verylongword", 5, Break::Words), ["a", "veryl", "ongwo", "rd"]);
        assert_eq!(wrapped("日本語", 5, Break::Words), ["日本", "語"]);
        assert_eq!(wrapped("a👩‍👩‍👧‍👦b", 2, Break::Words), ["a", "👩‍👩‍👧‍👦", "b"]);
        assert_eq!(wrapped("日", 1, Break::Words), ["?"]);
        assert_eq!(wrapped("", 5, Break::Words), [""]);
        assert_eq!(wrapped("ab  cd", 3, Break::Anywhere), ["ab ", " cd"]);
        assert_eq!(wrapped("שלום עולם", 5, Break::Words), ["שלום", "עולם"]);
    }

    #[test]
    fn a_prefix_leaves_room_for_the_text() {
        let prefix = Prefix::hanging(vec![Span::raw("1234567890")]);
        let lines = wrap(&[Span::raw("text")], 6, Break::Words, &prefix);
        assert!(lines.iter().all(|line| spans_width(&line.spans) <= 6), "{lines:?}");
        assert_eq!(lines[0].to_string(), "123tex");
    }

    #[test]
    fn text_of_others_has_neither_controls_nor_monsters() {
        assert_eq!(clean("a\tb\u{1b}[2J"), "a   b\\x1b[2J");
        assert_eq!(clean(&format!("e{}", "\u{301}".repeat(1000))), "\u{fffd}");
        assert_eq!(clean("\u{301}x"), "x");
        assert_eq!(clean_line(" two\n lines\u{7} "), "two lines\\x07");
        assert_eq!(cut("日本語", 5, true), "日本…");
        assert_eq!(cut_start("/a/b/c.rs", 5, true), "…c.rs");
    }
}
