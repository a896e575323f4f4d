//! Text of others, made harmless for a terminal.

use std::borrow::Cow;

/// The text with everything shown that a terminal would act upon or that a reader would not see: control characters,
/// escape sequences, characters that turn the direction of text or have no width. Line ends and tabs stay; sequences
/// that only set colours go, because they hide nothing.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_colour(rest) {
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\r' if rest.starts_with('\n') => {}
            c if !acts(c) => shown.push(c),
            '\0'..='\u{1f}' => shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => shown.push('\u{2421}'),
            c => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

/// The same on one line, for rows of a table: line ends and tabs become spaces.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value as JSON on one line, in which the same characters are written as escapes: nothing is lost.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    escaped(&serde_json::to_string(value).unwrap_or_default())
}

/// The same for a value that is JSON already.
pub(crate) fn escaped(text: &str) -> String {
    if !text.contains(acts) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    // They can only stand in strings.
    for c in text.chars() {
        match acts(c) {
            true => escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => escaped.push(c),
        }
    }
    escaped
}

fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Directions of text, line separators, and what has no width. The joiners U+200C and U+200D are left: scripts
        // and emoji need them.
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
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
            ("line\r\nline\rover", "line\nline␍over"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "␛[2J␛]0;title␇"),
            ("\u{9b}2J\u{7f}\0", "\\u{9b}2J␡␀"),
            ("safe\u{202e}fdp.exe\u{2066}", "safe\\u{202e}fdp.exe\\u{2066}"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("grüße 👩\u{200d}💻", "grüße 👩\u{200d}💻"),
            ("\u{1b}[", "␛["),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown, "{text:?}");
        }
        let value = "a\u{9b}2J\u{202e}\u{e0041}\n";
        assert_eq!(json(&value), r#""a\u009b2J\u202e\udb40\udc41\n""#);
        assert_eq!(serde_json::from_str::<String>(&json(&value)).unwrap(), value);
        assert_eq!(one_line(" two\n\tlines "), "two lines");
    }
}
