//! Text of others, made harmless for whoever looks at it.
//!
//! One table for all: what acts upon a terminal (control characters, in one byte or in two), what turns the direction of
//! text, what cannot be seen, and what ends a line for some readers and not for others. Three uses of it:
//!
//! - [`visible`] and [`visible_lines`] for what a person decides about, such as a command or a path: every character is
//!   seen for what it is, odd spaces included;
//! - [`harmless`] and [`one_line`] for what an agent says, on a terminal: spaces, emoji and scripts stay as they are meant;
//! - [`json`] and [`escaped_json`] for data: nothing is lost, and nothing acts when it is shown.

use std::borrow::Cow;

/// Text with every character shown that a reader would not see or that would rearrange what is seen: control characters
/// as `\x1b`, all others as `\u{202e}`. Line ends and tabs too; see [`visible_lines`].
///
/// ```
/// use attache_host::visible::visible;
///
/// assert_eq!(visible("rm \u{202e}txt.exe\x1b[2K\n"), "rm \\u{202e}txt.exe\\x1b[2K\\x0a");
/// ```
pub fn visible(text: &str) -> String {
    shown(text, false)
}

/// The same, but with line ends and tabs as they are: for texts of many lines.
///
/// ```
/// use attache_host::visible::visible_lines;
///
/// assert_eq!(visible_lines("a\tb\r\nc\x07"), "a\tb\\x0d\nc\\x07");
/// ```
pub fn visible_lines(text: &str) -> String {
    shown(text, true)
}

fn shown(text: &str, lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' if lines => shown.push(c),
            c if is_plain(c) => shown.push(c),
            c => push_escaped(&mut shown, c),
        }
    }
    shown
}

/// Text that does nothing on a terminal but to be read. Line ends and tabs stay. Sequences that only set colours go,
/// because they hide nothing; everything else that acts is shown as [`visible`] shows it.
///
/// Joiners and variation selectors stay where scripts and emoji need them, two in a row at most: more of them carry
/// something that nobody sees.
///
/// ```
/// use attache_host::visible::harmless;
///
/// assert_eq!(harmless("\u{1b}[31mred\u{1b}[0m\r\n\u{1b}]0;title\u{7}"), "red\n\\x1b]0;title\\x07");
/// assert_eq!(harmless("caf\u{e9} ❤\u{fe0f}"), "café ❤\u{fe0f}");
/// ```
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| acts(c) || is_joiner(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    // The joiners since the last character that is seen.
    let mut joiners: Vec<char> = Vec::new();
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_colour(rest) {
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if is_joiner(c) && joiners.len() < 2 && joiners.last() != Some(&c) {
            joiners.push(c);
            shown.push(c);
            continue;
        }
        match c {
            '\r' if rest.starts_with('\n') => {}
            '\n' | '\t' => shown.push(c),
            c if acts(c) || is_joiner(c) => push_escaped(&mut shown, c),
            c => shown.push(c),
        }
        joiners.clear();
    }
    Cow::Owned(shown)
}

/// The same on one line, for rows of a table: line ends and tabs become spaces.
pub fn one_line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value as JSON on one line, in which such characters are written as escapes: nothing is lost. Empty if the value
/// cannot be written as JSON.
pub fn json(value: &impl serde::Serialize) -> String {
    escaped_json(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// The same for a text that is JSON already.
///
/// ```
/// use attache_host::visible::escaped_json;
///
/// assert_eq!(escaped_json("\"\u{9b}2J\u{e0041}\""), r#""\u009b2J\udb40\udc41""#);
/// ```
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && c != '\t' && (acts(c) || is_joiner(c));
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // Outside of strings, where it is but a space. Inside there cannot be one.
            '\r' => escaped.push(' '),
            c if is_odd(c) => escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character looks like what it is.
pub(crate) fn is_plain(c: char) -> bool {
    !acts(c)
        && !is_joiner(c)
        && (c == ' ' || !c.is_whitespace())
        && !matches!(u32::from(c),
            0x2800                                  // a blank of Braille
            | 0xE000..=0xF8FF | 0xF0000..=0x10FFFF) // private use
}

/// Whether a character does something to a terminal or to a reader, or is not seen. Line ends and tabs among them.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD                                    // soft hyphen
            | 0x034F | 0x061C                       // joiner, direction mark
            | 0x115F..=0x1160 | 0x17B4..=0x17B5     // fillers
            | 0x180B..=0x180F                       // variation selectors and a separator of Mongolian
            | 0x200B | 0x200E..=0x200F              // zero width, direction
            | 0x2028..=0x202E                       // line and paragraph separators, direction
            | 0x2060..=0x206F                       // zero width, direction
            | 0x3164 | 0xFFA0                       // fillers
            | 0xFE00..=0xFE0D | 0xFEFF              // variation selectors, byte order mark
            | 0xFFF0..=0xFFFB                       // annotations
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A // format controls
            | 0xE0000..=0xE0FFF) // tags, variation selectors
}

/// What is not seen itself and changes how its neighbours look: joiners, and whether a character is an emoji.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

fn push_escaped(text: &mut String, c: char) {
    match u32::from(c) {
        code @ 0..0x100 => text.push_str(&format!("\\x{code:02x}")),
        code => text.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// What follows, when the text begins with a sequence that sets colours.
fn after_colour(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';' || c == ':').strip_prefix('m')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_shown() {
        let rows = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("line\r\nline\rover", "line\nline\\x0dover"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}\u{1b}[0m[2J", "\\x1b[2J"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "\\x1b[2J\\x1b]0;title\\x07"),
            ("\u{9b}2J\u{7f}\0\u{85}", "\\x9b2J\\x7f\\x00\\x85"),
            ("safe\u{202e}fdp.exe\u{2066}\u{2028}", "safe\\u{202e}fdp.exe\\u{2066}\\u{2028}"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("grüße 👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥", "grüße 👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥"),
            ("a\u{fe0f}\u{fe0f}\u{fe0e}\u{200d}\u{200c}", "a\u{fe0f}\\u{fe0f}\u{fe0e}\u{200d}\\u{200c}"),
            ("un\u{a0}mot", "un\u{a0}mot"),
            ("\u{1b}[", "\\x1b["),
        ];
        for (text, shown) in rows {
            assert_eq!(harmless(text), shown, "{text:?}");
        }
        assert_eq!(visible("un\u{a0}mot\u{200d}"), "un\\xa0mot\\u{200d}");
        assert_eq!(one_line(" two\n\tlines "), "two lines");
    }

    #[test]
    fn json_loses_nothing() {
        let value = "a\u{9b}2J\u{7f}\u{202e}\u{e0041}\u{200d}\u{2028}\n\r";
        assert_eq!(json(&value), r#""a\u009b2J\u007f\u202e\udb40\udc41\u200d\u2028\n\r""#);
        assert_eq!(serde_json::from_str::<String>(&json(&value)).unwrap(), value);
        assert_eq!(escaped_json("{\r\n\t\"a\": 1}"), "{ \n\t\"a\": 1}");
    }
}
