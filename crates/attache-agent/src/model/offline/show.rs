//! How texts are shown to the person: fenced, quoted and cut.

use std::fmt::Write;

/// How many lines of a file or of a command's output are shown.
const LINES: usize = 40;

/// How many bytes of it at most.
const BYTES: usize = 8000;

/// A text in a fenced block, cut where it is long. The fence is longer than any that the text has.
pub(super) fn fenced(text: &str) -> String {
    let text = text.trim_end();
    let (shown, more) = cut(text);
    let fence = "`".repeat(longest_ticks(shown).max(2) + 1);
    let mut block = format!("{fence}\n{shown}\n{fence}");
    match more {
        0 => {}
        1 => block.push_str("\n… and one more line."),
        more => _ = write!(block, "\n… and {more} more lines."),
    }
    block
}

/// A short text between backticks, on one line.
pub(super) fn code(text: &str) -> String {
    let short = brief(text, 80).replace('`', "'");
    format!("`{}`", if short.is_empty() { " " } else { &short })
}

/// The first line of a text, cut to some characters.
pub(super) fn brief(text: &str, most: usize) -> String {
    let mut lines = text.trim().lines();
    let line = lines.next().unwrap_or_default().trim_end();
    let end = line.char_indices().nth(most).map_or(line.len(), |(at, _)| at);
    let cut = end < line.len() || lines.next().is_some();
    let plain = line[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    if cut { format!("{plain}…") } else { plain }
}

/// What of a text is shown, and how many lines are not.
fn cut(text: &str) -> (&str, usize) {
    let lines = text.match_indices('\n').nth(LINES - 1).map_or(text.len(), |(at, _)| at);
    let end = if lines > BYTES { text.floor_char_boundary(BYTES) } else { lines };
    let rest = &text[end..];
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    (&text[..end], if rest.is_empty() { 0 } else { rest.lines().count() })
}

fn longest_ticks(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(fenced("a\nb\n"), "```\na\nb\n```");
        let text: String = (1..=42).map(|line| format!("{line}\n")).collect();
        assert!(fenced(&text).ends_with("\n40\n```\n… and 2 more lines."));
        assert!(fenced(&text[..text.len() - 3]).ends_with("\n40\n```\n… and one more line."));
        assert!(fenced(&"ä".repeat(9000)).ends_with("ä\n```\n… and one more line."));
        assert_eq!(fenced(""), "```\n\n```");
    }

    #[test]
    fn fences_are_longer_than_those_inside() {
        assert_eq!(fenced("```\nx\n```"), "````\n```\nx\n```\n````");
        assert_eq!(code("a`b\nc"), "`a'b…`");
        assert_eq!(brief("\u{7}x", 10), " x");
    }
}
