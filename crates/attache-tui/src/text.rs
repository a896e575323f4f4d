//! Text of others on lines of a given width: made harmless, measured in columns, cut and wrapped between graphemes.

use attache_host::visible::{harmless, one_line};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget as _};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::theme::Theme;
use crate::wrap;
pub(crate) use crate::wrap::width_of as columns;

/// The most characters of one grapheme: a family of four with skin tones has eleven. More of them pile up on one cell.
const GRAPHEME_LIMIT: usize = 12;

/// How far apart the stops of tabs are.
const TAB: usize = 4;

/// A text of others on one line.
pub(crate) fn shown(text: &str) -> String {
    tamed(one_line(text))
}

/// A text of others, line by line, with tabs as blanks.
pub(crate) fn shown_lines(text: &str) -> Vec<String> {
    harmless(text).lines().map(|line| tamed(without_tabs(line))).collect()
}

/// A line with its tabs as blanks.
pub(crate) fn without_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut spaced = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for (index, part) in line.split('\t').enumerate() {
        if index > 0 {
            let blanks = TAB - column % TAB;
            spaced.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        column += columns(part);
        spaced.push_str(part);
    }
    spaced
}

/// A line in which no grapheme is longer than people write them. What is left out is counted.
pub(crate) fn tamed(line: String) -> String {
    if line.is_ascii() || line.graphemes(true).all(|grapheme| grapheme.chars().nth(GRAPHEME_LIMIT).is_none()) {
        return line;
    }
    let mut tame = String::with_capacity(line.len().min(4096));
    for grapheme in line.graphemes(true) {
        match grapheme.char_indices().nth(GRAPHEME_LIMIT) {
            None => tame.push_str(grapheme),
            Some((end, _)) => {
                tame.push_str(&grapheme[..end]);
                tame.push_str(&format!("[{} more marks]", grapheme[end..].chars().count()));
            }
        }
    }
    tame
}

/// As much of the beginning of a line as has room.
pub(crate) fn cut(line: &str, room: usize, theme: &Theme) -> String {
    wrap::cut(line, room, theme.is_unicode)
}

/// As much of the end of a line as has room: the end of a path says the most.
pub(crate) fn cut_start(line: &str, room: usize, theme: &Theme) -> String {
    wrap::cut_start(line, room, theme.is_unicode)
}

/// A line broken between words where that is possible. A text without words is one empty line.
pub(crate) fn wrap_words(line: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    // Each word has the blanks before it, so that indentation and alignment stay.
    let mut rest = line;
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest[blanks..].find(char::is_whitespace).map_or(rest.len(), |end| blanks + end);
        let (mut part, after) = rest.split_at(word);
        rest = after;
        let wide = columns(part);
        if used > 0 && used + wide > room && wide - columns(&part[..blanks]) <= room {
            rows.push(std::mem::take(&mut row));
            used = 0;
            part = &part[blanks..];
        }
        for grapheme in part.graphemes(true) {
            let wide = columns(grapheme);
            if used > 0 && used + wide > room {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(grapheme);
            used += wide;
        }
    }
    rows.push(row);
    rows
}

/// A line with a sign that something was left out after it.
pub(crate) fn with_dots(line: &str, room: usize, theme: &Theme) -> String {
    let line = line.trim_end();
    // With a blank after it, it is cut even if it fits exactly.
    if columns(line) < room {
        format!("{line}{}", theme.sign("…", "~"))
    } else {
        cut(&format!("{line} "), room, theme)
    }
}

/// Text of many lines, wrapped, in one style.
pub(crate) fn paragraph(text: &str, room: usize, style: Style) -> Vec<Line<'static>> {
    let rows = shown_lines(text).into_iter().flat_map(|line| wrap_words(&line, room));
    rows.map(|row| Line::styled(row, style)).collect()
}

/// Styled text on as many rows as it needs, broken between graphemes, with rows after the first indented. Nothing is left
/// out.
pub(crate) fn wrap_spans(spans: Vec<Span<'static>>, room: usize, indent: usize) -> Vec<Line<'static>> {
    let room = room.max(1);
    let indent = if indent + 2 > room { 0 } else { indent };
    let mut rows: Vec<Line<'static>> = vec![Line::default()];
    let mut used = 0;
    for span in spans {
        let mut part = String::new();
        for grapheme in span.content.graphemes(true) {
            let wide = columns(grapheme);
            if used + wide > room && used > if rows.len() > 1 { indent } else { 0 } {
                push_span(&mut rows, std::mem::take(&mut part), span.style);
                rows.push(Line::from(" ".repeat(indent)));
                used = indent;
            }
            part.push_str(grapheme);
            used += wide;
        }
        push_span(&mut rows, part, span.style);
    }
    rows
}

fn push_span(rows: &mut [Line<'static>], text: String, style: Style) {
    if let Some(row) = rows.last_mut().filter(|_| !text.is_empty()) {
        row.push_span(Span::styled(text, style));
    }
}

/// Pieces side by side on as many rows as they need, none of them broken unless it is wider than a row.
pub(crate) fn flow(pieces: Vec<Vec<Span<'static>>>, gap: usize, room: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut rows: Vec<Line<'static>> = Vec::new();
    let mut used = 0;
    for piece in pieces {
        let wide: usize = piece.iter().map(|span| columns(&span.content)).sum();
        match rows.last_mut().filter(|_| used + gap + wide <= room) {
            Some(row) => {
                row.push_span(Span::raw(" ".repeat(gap)));
                piece.into_iter().for_each(|span| row.push_span(span));
                used += gap + wide;
            }
            None => {
                let row = Line::from(piece);
                used = wide.min(room);
                rows.push(if wide > room { cut_line(&row, room, theme) } else { row });
            }
        }
    }
    rows
}

/// A styled line cut to the room there is.
pub(crate) fn cut_line(line: &Line<'static>, room: usize, theme: &Theme) -> Line<'static> {
    let wide: usize = line.spans.iter().map(|span| columns(&span.content)).sum();
    if wide <= room {
        return line.clone();
    }
    let mut left = room;
    let mut short = Line::default().style(line.style);
    for span in &line.spans {
        let wide = columns(&span.content);
        // The last part that fits is cut even if it fits exactly, because something follows it.
        if wide < left {
            short.push_span(span.clone());
            left -= wide;
        } else {
            short.push_span(Span::styled(with_dots(&span.content, left, theme), span.style));
            break;
        }
    }
    short
}

/// Puts lines into an area, from one of them on.
pub(crate) fn draw(lines: &[Line<'static>], from: usize, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    for (line, row) in lines.iter().skip(from).zip(area.rows()) {
        buffer.set_line(row.x, row.y, line, row.width);
    }
}

/// Clears an area and puts a frame with a title around it, unless it is too small for one. Returns what is inside.
pub(crate) fn frame(title: &str, hint: &str, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Rect {
    let area = area.intersection(buffer.area);
    Clear.render(area, buffer);
    if area.width < 8 || area.height < 5 {
        return area;
    }
    let room = usize::from(area.width).saturating_sub(4);
    let ascii = border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    };
    let mut block =
        Block::bordered().border_set(if theme.is_unicode { border::ROUNDED } else { ascii }).border_style(theme.border);
    if !title.is_empty() {
        // The title stands in the frame, but is not as faint.
        let style = theme.accent.remove_modifier(Modifier::DIM);
        block = block.title_top(Line::styled(format!(" {} ", cut(title, room.saturating_sub(2), theme)), style));
    }
    if !hint.is_empty() {
        block = block.title_bottom(Line::styled(format!(" {} ", cut(hint, room.saturating_sub(2), theme)), theme.dim));
    }
    let inner = block.inner(area);
    block.render(area, buffer);
    Rect { x: inner.x + 1, width: inner.width - 2, ..inner }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, ColorDepth};

    #[test]
    fn lines_are_cut_and_wrapped_by_columns() {
        let theme = Theme::new(ColorDepth::None, Background::Dark, true);
        assert_eq!(cut("漢字漢字", 5, &theme), "漢字…");
        assert_eq!(cut("漢字", 4, &theme), "漢字");
        assert_eq!(cut("abc", 0, &theme), "");
        assert_eq!(cut_start("src/漢字.rs", 6, &theme), "…字.rs");
        assert_eq!(wrap_words("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("漢字漢字", 3), ["漢", "字", "漢", "字"]);
        assert_eq!(wrap_words("", 3), [""]);
        assert_eq!(wrap_words("  in (brackets) `here`", 12), ["  in", "(brackets)", "`here`"]);
        assert_eq!(wrap_words("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(with_dots("abc", 4, &theme), "abc…");
        assert_eq!(with_dots("abcd", 4, &theme), "abc…");
        assert_eq!(with_dots("漢字漢字", 4, &theme), "漢…");
        assert_eq!(wrap_words("👩\u{200d}💻x", 1), ["👩\u{200d}💻", "x"]);
        assert_eq!(without_tabs("a\tb\t漢\tc"), "a   b   漢  c");
        let rows = wrap_spans(vec![Span::raw("+ "), Span::raw("abcdefgh")], 6, 2);
        assert_eq!(rows.iter().map(ToString::to_string).collect::<Vec<_>>(), ["+ abcd", "  efgh"]);
        assert_eq!(tamed(format!("a{}b", "\u{301}".repeat(100))), format!("a{}[89 more marks]b", "\u{301}".repeat(11)));
        assert_eq!(shown("a\u{1b}[2J\n\u{202e}b"), "a\\x1b[2J \\u{202e}b");
    }
}
