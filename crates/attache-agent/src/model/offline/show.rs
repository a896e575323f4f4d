//! How texts are shown to the person: fenced, quoted and cut.

/// The most lines that are shown of a file, or of what a command printed.
const MAX_LINES: usize = 40;

/// The most bytes of it.
const MAX_BYTES: usize = 8000;

/// A text in a fenced block, cut where it is long. The fence is longer than any that the text has.
pub(super) fn fenced(text: &str) -> String {
    let text = text.trim_end();
    let end = text.match_indices('\n').nth(MAX_LINES - 1).map_or(text.len(), |(at, _)| at);
    let (shown, rest) = text.split_at(text.floor_char_boundary(end.min(MAX_BYTES)));
    let longest = shown.split(|character: char| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let more = match rest.strip_prefix('\n').unwrap_or(rest).lines().count() {
        0 => String::new(),
        1 => "\n… and one more line.".into(),
        more => format!("\n… and {more} more lines."),
    };
    format!("{fence}\n{shown}\n{fence}{more}")
}

/// A short text between backticks, on one line.
pub(super) fn code(text: &str) -> String {
    let short = brief(text, 80).replace('`', "'");
    format!("`{}`", if short.is_empty() { " " } else { &short })
}

/// The first line of a text, cut to some characters.
pub(super) fn brief(text: &str, most: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let end = line.char_indices().nth(most).map_or(line.len(), |(at, _)| at);
    let shown = line[..end].trim_end().replace(char::is_control, " ");
    if end < text.len() { format!("{shown}…") } else { shown }
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
        assert_eq!(fenced("```\nx\n```"), "````\n```\nx\n```\n````");
        assert_eq!(code("a`b\nc"), "`a'b…`");
        assert_eq!((code(""), brief("x\u{7}y", 2)), ("` `".into(), "x …".into()));
    }
}
