//! The tags of a page.

use super::entities;

/// What begins with a bracket.
pub(super) enum Markup<'a> {
    /// A bracket that is text.
    None,
    /// A comment or the like.
    Skip(&'a str),
    Start(Tag<'a>, &'a str),
    End(String, &'a str),
}

pub(super) struct Tag<'a> {
    /// In small letters.
    pub(super) name: String,
    attributes: Vec<(&'a str, &'a str)>,
}

impl Tag<'_> {
    /// An attribute, as it is meant.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let found = self.attributes.iter().find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(entities::decode(found.1))
    }
}

/// Reads what begins with a bracket. What does not end takes all the rest with it, as in browsers.
pub(super) fn markup(text: &str) -> Markup<'_> {
    let after = |end: &str| text.find(end).map_or("", |at| &text[at + end.len()..]);
    match text.as_bytes().get(1) {
        Some(b'!') if text.starts_with("<!--") => Markup::Skip(after("-->")),
        Some(b'!' | b'?') => Markup::Skip(after(">")),
        Some(b'/') if text.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic) => {
            Markup::End(name(&text[2..]).to_ascii_lowercase(), after(">"))
        }
        Some(byte) if byte.is_ascii_alphabetic() => {
            let name = name(&text[1..]);
            let (attributes, rest) = attributes(&text[1 + name.len()..]);
            Markup::Start(Tag { name: name.to_ascii_lowercase(), attributes }, rest)
        }
        _ => Markup::None,
    }
}

fn name(text: &str) -> &str {
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(text.len());
    &text[..end]
}

/// The attributes of a tag, and what comes after it.
fn attributes(mut text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut attributes = Vec::new();
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(rest) = text.strip_prefix('>') {
            return (attributes, rest);
        }
        if text.is_empty() {
            return (attributes, "");
        }
        let is_end = |c: char| c.is_ascii_whitespace() || c == '/' || c == '>';
        // The first character belongs to the name whatever it is, so every round gets further.
        let first = text.chars().next().map_or(0, char::len_utf8);
        let end = text[first..].find(|c| is_end(c) || c == '=').map_or(text.len(), |at| first + at);
        let name = &text[..end];
        text = text[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let mut value = "";
        if let Some(rest) = text.strip_prefix('=') {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let quote = rest.chars().next().filter(|c| *c == '"' || *c == '\'');
            (value, text) = match quote {
                Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
                None => rest.split_at(rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len())),
            };
        }
        // Nobody looks at more than a few.
        if attributes.len() < 32 {
            attributes.push((name, value));
        }
    }
}

/// The content of an element in which nothing is markup but its end, and what comes after it.
pub(super) fn raw<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = text[from..].find("</").map(|at| from + at) {
        let rest = &text.as_bytes()[at + 2..];
        if rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            let after = text[at..].find('>').map_or("", |end| &text[at + end + 1..]);
            return (&text[..at], after);
        }
        from = at + 2;
    }
    (text, "")
}
