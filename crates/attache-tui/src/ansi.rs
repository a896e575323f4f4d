//! The output of commands as lines, and lines as text with colours for a terminal.

use std::borrow::Cow;
use std::fmt::Write;
use std::num::NonZeroU16;

use attache_proto::model::terminal::TerminalSize;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::theme::{Background, ColorDepth, Theme, fit_style};
use crate::wrap::clean;

/// How many bytes and lines at the end of an output are looked at to show its last rows: more than what programs go
/// back over to show how far they are.
const TAIL: usize = 16 << 10;
const TAIL_LINES: usize = 64;

/// How many bytes are looked at to show all of it.
const WHOLE: usize = 256 << 10;

/// How many rows are shown of an output that is unfolded.
pub(crate) const MAX_ROWS: usize = 2_000;

/// The widest and the highest terminal that is believed: each cell takes memory.
const MAX_COLUMNS: u16 = 500;
const MAX_HEIGHT: u16 = 200;

/// The width for an output that is taken as text: its lines are joined again, so it is only a matter of memory.
const TEXT_COLUMNS: usize = 120;

/// The rows of a command's output.
pub(crate) struct Output {
    /// The last rows.
    pub(crate) lines: Vec<Line<'static>>,
    /// Whether each of them goes on in the next.
    wraps: Vec<bool>,
    /// How many rows before these are not shown, at least.
    pub(crate) hidden: usize,
}

/// What a terminal would show after this output: at most the last `rows` rows.
pub(crate) fn output(bytes: &[u8], size: Option<&TerminalSize>, width: usize, rows: usize, theme: &Theme) -> Output {
    let (limit, lines) = if rows < TAIL_LINES { (TAIL, TAIL_LINES) } else { (WHOLE, usize::MAX) };
    let mut start = bytes.len().saturating_sub(limit);
    if start > 0 {
        // From the next line on, so that no sequence is cut in the middle.
        start += bytes[start..].iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    }
    let ends = bytes[start..].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    start += ends.map(|(at, _)| at + 1).nth(lines).unwrap_or(0);
    let skipped = bytes[..start].iter().filter(|byte| **byte == b'\n').count();
    let bytes = &bytes[start..];

    let columns = size.map_or(u16::try_from(width).unwrap_or(u16::MAX), |size| size.cols).clamp(8, MAX_COLUMNS);
    let height = size.map_or(24, |size| size.rows).clamp(1, MAX_HEIGHT);
    let non_zero = |number: u16| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    let mut parser = vt100::Parser::new(non_zero(height), non_zero(columns), rows.min(MAX_ROWS));
    // Commands that do not write to a terminal end their lines without a carriage return.
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        parser.process(&rest[..at]);
        parser.process(b"\r\n");
        rest = &rest[at + 1..];
    }
    parser.process(rest);

    let screen = parser.screen_mut();
    let above = screen.scrollback_len();
    let (mut lines, mut wraps) = (Vec::new(), Vec::new());
    let mut back = above;
    loop {
        screen.set_scrollback(back);
        let count = if back == 0 { height } else { height.min(u16::try_from(back).unwrap_or(height)) };
        lines.extend((0..count).map(|row| row_of(screen, row, columns, theme)));
        wraps.extend((0..count).map(|row| screen.row_wrapped(row)));
        if back == 0 {
            break;
        }
        back -= usize::from(count);
    }
    while lines.last().is_some_and(|line: &Line<'_>| line.spans.is_empty()) {
        lines.pop();
    }
    // Rows that the parser has dropped are counted by their ends.
    let is_full = above == screen.scrollback_capacity();
    let ends = if is_full { bytes.iter().filter(|byte| **byte == b'\n').count() } else { 0 };
    let hidden = lines.len().max(ends).saturating_sub(rows);
    let over = lines.len().saturating_sub(rows);
    lines.drain(..over);
    wraps.drain(..over);
    Output { lines, wraps, hidden: skipped + hidden }
}

/// The same as text, for copying: lines are whole again.
pub(crate) fn output_text(bytes: &[u8], size: Option<&TerminalSize>) -> String {
    let theme = Theme::new(ColorDepth::None, Background::Dark, true);
    let output = output(bytes, size, TEXT_COLUMNS, MAX_ROWS, &theme);
    let mut text = String::new();
    for (line, wraps) in output.lines.iter().zip(&output.wraps) {
        line.spans.iter().for_each(|span| text.push_str(&span.content));
        if !wraps {
            text.push('\n');
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

fn row_of(screen: &vt100::Screen, row: u16, columns: u16, theme: &Theme) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    // Blanks matter only when something follows, or when they have a colour.
    let mut blanks = 0;
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { break };
        if cell.is_wide_continuation() {
            continue;
        }
        if !cell.has_contents() && cell.bgcolor() == vt100::Color::Default && !cell.inverse() {
            blanks += 1;
            continue;
        }
        let style = theme.fit(style_of(cell));
        if blanks > 0 {
            push(&mut spans, &" ".repeat(blanks), Style::new());
            blanks = 0;
        }
        match cell.contents() {
            "" => push(&mut spans, " ", style),
            // What joins characters belongs to one cell.
            text => push(&mut spans, clean(text).trim_end_matches('\u{200d}'), style),
        }
    }
    if let Some(last) = spans.last_mut().filter(|span| span.style == Style::new()) {
        let kept = last.content.trim_end_matches(' ').len();
        last.content.to_mut().truncate(kept);
        if kept == 0 {
            spans.pop();
        }
    }
    for span in &mut spans {
        span.content = Cow::Owned(clean(&span.content).into_owned());
    }
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(span) if span.style == style => span.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

fn style_of(cell: &vt100::Cell) -> Style {
    let color = |color: vt100::Color| match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(Color::Indexed(index)),
        vt100::Color::Rgb(red, green, blue) => Some(Color::Rgb(red, green, blue)),
    };
    let mut style = Style { fg: color(cell.fgcolor()), bg: color(cell.bgcolor()), ..Style::new() };
    for (is_set, modifier) in [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ] {
        if is_set {
            style = style.add_modifier(modifier);
        }
    }
    style
}

/// A line as text for a terminal, with the sequences for its styles. Control characters in it are left out.
pub fn to_ansi(line: &Line<'_>, depth: ColorDepth) -> String {
    let mut text = String::new();
    for span in &line.spans {
        let style = fit_style(line.style.patch(span.style), depth);
        let codes = codes(style);
        if !codes.is_empty() {
            let _ = write!(text, "\x1b[{}m", codes.join(";"));
        }
        text.extend(span.content.chars().filter(|c| !c.is_control()));
        if !codes.is_empty() {
            text.push_str("\x1b[0m");
        }
    }
    text
}

fn codes(style: Style) -> Vec<String> {
    let mut codes = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    codes.extend(style.fg.and_then(|color| color_code(color, 30)));
    codes.extend(style.bg.and_then(|color| color_code(color, 40)));
    codes
}

/// The code of a colour; `base` is 30 for the text and 40 for what is behind it.
fn color_code(color: Color, base: u8) -> Option<String> {
    let dark = |number: u8| Some((base + number).to_string());
    let bright = |number: u8| Some((base + 60 + number).to_string());
    match color {
        Color::Reset => None,
        Color::Black => dark(0),
        Color::Red => dark(1),
        Color::Green => dark(2),
        Color::Yellow => dark(3),
        Color::Blue => dark(4),
        Color::Magenta => dark(5),
        Color::Cyan => dark(6),
        Color::Gray => dark(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(index) => Some(format!("{};5;{index}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &str, rows: usize) -> (Vec<String>, usize) {
        let theme = Theme::new(ColorDepth::Ansi16, Background::Dark, true);
        let output = output(bytes.as_bytes(), None, 20, rows, &theme);
        (output.lines.iter().map(ToString::to_string).collect(), output.hidden)
    }

    #[test]
    fn output_looks_as_on_a_terminal() {
        assert_eq!(shown("a\nb\r\n", 10), (vec!["a".into(), "b".into()], 0));
        assert_eq!(shown("10%\r20%\r100%\ndone", 10), (vec!["100%".into(), "done".into()], 0));
        assert_eq!(shown("\x1b[2J\x1b]0;title\x07\x1b[Hx", 10), (vec!["x".into()], 0));
        let many: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(shown(&many, 2), (vec!["98".into(), "99".into()], 98));
    }

    #[test]
    fn long_lines_are_copied_whole() {
        let line = format!("{} end", "x".repeat(300));
        assert_eq!(output_text(format!("$\n{line}\nlast\n\n").as_bytes(), None), format!("$\n{line}\nlast"));
    }

    #[test]
    fn colours_are_kept() {
        let theme = Theme::new(ColorDepth::Ansi16, Background::Dark, true);
        let output = output(b"\x1b[1;31mred\x1b[0m plain", None, 20, 5, &theme);
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        assert_eq!(output.lines, [Line::from(vec![Span::styled("red", style), Span::raw(" plain")])]);
        assert_eq!(to_ansi(&output.lines[0], ColorDepth::Ansi16), "\x1b[1;31mred\x1b[0m plain");
        assert_eq!(to_ansi(&output.lines[0], ColorDepth::None), "\x1b[1mred\x1b[0m plain");
        assert_eq!(to_ansi(&Line::raw("a\x1b[2J\u{9b}b"), ColorDepth::None), "a[2Jb");
    }

    /// Whatever comes, at whatever size: no panic, and nothing but text in the lines.
    #[test]
    fn no_output_breaks_the_screen() {
        let theme = Theme::new(ColorDepth::True, Background::Dark, true);
        let pieces: [&[u8]; 20] = [
            b"\x1b[",
            b"999",
            b";",
            b"H",
            b"A",
            b"\x1b[?1049h",
            b"\x1b[?1049l",
            b"\x1bM",
            b"\x1b[2;1r",
            b"\n",
            b"\r",
            b"\x08",
            b"\t",
            "日".as_bytes(),
            "e\u{301}".as_bytes(),
            b"\xff",
            b"\x1b[5L",
            b"\x1b[9P",
            b"\x1b[9@",
            b"xyz",
        ];
        let mut dice = attache_testkit::Dice::new(7);
        for _ in 0..400 {
            let bytes: Vec<u8> = (0..60).flat_map(|_| dice.pick(&pieces).iter().copied()).collect();
            let size = TerminalSize::new(dice.below(40) as u16, dice.below(12) as u16);
            for size in [Some(&size), None] {
                let output = output(&bytes, size, 1 + dice.below(60), 1 + dice.below(20), &theme);
                let text: String = output.lines.iter().map(ToString::to_string).collect();
                assert!(!text.contains(char::is_control), "{text:?}");
            }
        }
    }
}
