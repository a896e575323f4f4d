//! Text of others, made fit for a sentence to people.

/// One line of at most `limit` characters, without control characters. What is cut off leaves an ellipsis.
pub(crate) fn tidy(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || is_invisible(c) {
            gap = !out.is_empty();
            continue;
        }
        if length + usize::from(gap) >= limit {
            out.push('…');
            return out;
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
            length += 1;
        }
        out.push(c);
        length += 1;
    }
    out
}

/// Marks that change how the text around them is shown.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn control_characters_and_length_are_taken_away() {
        assert_eq!(tidy("  a\u{1b}[31m\r\n\tb\u{202e}c ", 300), "a [31m b c");
        assert_eq!(tidy("abcdef", 3), "abc…");
        assert_eq!(tidy("ab cdef", 3), "ab…");
        assert_eq!(tidy("abc", 3), "abc");
        assert_eq!(tidy("\n", 3), "");
    }
}
