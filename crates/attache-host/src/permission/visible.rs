//! Making visible what would hide or rearrange text.

/// Text with every character shown that a reader would not see or that would rearrange what is seen: control characters
/// as `\x1b`, all others as `\u{202e}`. Line ends and tabs too; see [`visible_lines`].
///
/// ```
/// use attache_host::permission::visible;
///
/// assert_eq!(visible("rm \u{202e}txt.exe\x1b[2K\n"), "rm \\u{202e}txt.exe\\x1b[2K\\x0a");
/// ```
pub fn visible(text: &str) -> String {
    shown(text, false)
}

/// The same, but with line ends and tabs as they are: for texts of many lines.
///
/// ```
/// use attache_host::permission::visible_lines;
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
            c if (c as u32) < 0x100 => shown.push_str(&format!("\\x{:02x}", c as u32)),
            c => shown.push_str(&format!("\\u{{{:x}}}", c as u32)),
        }
    }
    shown
}

/// Whether a character looks like what it is.
pub(crate) fn is_plain(c: char) -> bool {
    !c.is_control()
        && (c == ' ' || !c.is_whitespace())
        && !matches!(c as u32,
            0xAD                                    // soft hyphen
            | 0x034F | 0x061C                       // joiner, direction mark
            | 0x115F..=0x1160 | 0x17B4..=0x17B5     // fillers
            | 0x180B..=0x180F                       // variation selectors and a separator of Mongolian
            | 0x200B..=0x200F | 0x202A..=0x202E     // zero width, direction
            | 0x2060..=0x206F                       // zero width, direction
            | 0x2800                                // a blank of Braille
            | 0x3164 | 0xFFA0                       // fillers
            | 0xFE00..=0xFE0F | 0xFEFF              // variation selectors, byte order mark
            | 0xFFF0..=0xFFFB                       // annotations
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A // format controls
            | 0xE000..=0xF8FF                       // private use
            | 0xE0000..=0x10FFFF) // tags, variation selectors, private use
}
