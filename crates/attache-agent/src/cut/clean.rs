//! Text without what only a terminal understands.

/// Takes out escape sequences and control characters other than line ends and tabs. A carriage return that ends no line
/// becomes a line end.
///
/// ```
/// assert_eq!(attache_agent::cut::clean("\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07\ta\x00b"), "red\n\tab");
/// ```
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => skip_escape(&mut rest),
            // The same introducers in one character.
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            '\n' | '\t' => clean.push(c),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape character.
fn skip_escape(rest: &mut Rest<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        _ => {
            // Intermediate characters, then one that ends it.
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

/// Skips parameters and the character that ends them. Anything else is no part of it, such as a line end.
fn skip_control_sequence(rest: &mut Rest<'_>) {
    while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
    rest.next_if(|c| ('@'..='~').contains(c));
}

/// Skips a title or the like. One that does not end on its line was cut off, and takes only that line with it.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}
