//! Words, quotes and paths, as people write them. Every function takes time that is linear in its text.

use std::borrow::Cow;

/// What opens a quotation, and what closes it.
const QUOTES: [(char, char); 4] = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”')];

/// The pieces of a text between the characters that `cuts` says, with their places. What is quoted is not cut.
pub(super) fn split_bare(text: &str, cuts: impl Fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut bare = Bare { text, at: 0, previous: None, hopeless: [false; QUOTES.len()] };
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        for (at, character) in bare.by_ref() {
            if cuts(character) {
                start = Some(at + character.len_utf8());
                return Some((from, &text[from..at]));
            }
        }
        start = None;
        Some((from, &text[from..]))
    })
}

/// The words of a text, with their places; what is quoted is one word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    split_bare(text, char::is_whitespace).filter(|(_, word)| !word.is_empty())
}

/// Cuts a text in two at the first, or the last, of its words that is `keyword`.
pub(super) fn cut_first<'a>(text: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (at, word) = words(text).find(|(_, word)| word.eq_ignore_ascii_case(keyword))?;
    Some((text[..at].trim(), text[at + word.len()..].trim()))
}

/// See [`cut_first`].
pub(super) fn cut_last<'a>(text: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (at, word) = words(text).filter(|(_, word)| word.eq_ignore_ascii_case(keyword)).last()?;
    Some((text[..at].trim(), text[at + word.len()..].trim()))
}

/// The text without a word at its start, if that word is there and is not all there is.
pub(super) fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim();
    let rest = text.get(word.len()..)?;
    let same = text[..word.len()].eq_ignore_ascii_case(word);
    (same && rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
}

/// The text without a word at its end, if that word is there and is not all there is.
pub(super) fn before_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim();
    let at = text.len().checked_sub(word.len())?;
    let rest = text.get(..at)?;
    let same = text[at..].eq_ignore_ascii_case(word);
    (same && rest.ends_with(char::is_whitespace)).then(|| rest.trim_end())
}

/// The text without any of these words at its start, however many of them there are.
pub(super) fn after_words<'a>(text: &'a str, fillers: &[&str]) -> &'a str {
    let mut text = text.trim();
    while let Some(rest) = fillers.iter().find_map(|filler| after_word(text, filler)) {
        text = rest;
    }
    text
}

/// What is written where a quotation may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written<'a> {
    /// All of it is one quotation: what is between the quotes, with `\n`, `\t`, `\"` and `\\` understood in `"…"`.
    Quoted(Cow<'a, str>),
    /// It begins a quotation that never ends.
    Unclosed,
    /// It is no quotation, or not only one.
    Plain(&'a str),
}

/// Looks at a text that may be quoted.
pub(super) fn written(text: &str) -> Written<'_> {
    let text = text.trim();
    let Some(open) = text.chars().next() else { return Written::Plain(text) };
    let Some((_, close)) = QUOTES.iter().find(|(start, _)| *start == open) else { return Written::Plain(text) };
    let start = open.len_utf8();
    match closing(&text[start..], *close) {
        None => Written::Unclosed,
        Some(end) if start + end + close.len_utf8() == text.len() => {
            let inside = &text[start..start + end];
            Written::Quoted(if open == '"' { unescape(inside) } else { inside.into() })
        }
        Some(_) => Written::Plain(text),
    }
}

/// A path as people write it: quoted or not, with an article or a full stop, as a link or with an `@`.
/// `None` when it is not one path.
pub(super) fn path(text: &str) -> Option<String> {
    let mut text =
        after_words(text, &["the", "a", "an", "my", "file", "directory", "folder", "dir", "called", "named"]);
    while let Some(rest) = ["please", "file", "directory", "folder", "dir"].iter().find_map(|w| before_word(text, w)) {
        text = rest;
    }
    // A link of Markdown, as editors write what was mentioned.
    if let Some((_, address)) = text.strip_prefix('[').and_then(|link| link.split_once("](")) {
        text = address.trim_end_matches(['.', ',']).strip_suffix(')')?;
    }
    // A full stop or a colon after the closing quote belongs to the sentence.
    let told = match written(text) {
        Written::Plain(plain) => match written(plain.trim_end_matches(['.', ',', ':', '!', '?'])) {
            Written::Quoted(inside) => Written::Quoted(inside),
            _ => Written::Plain(plain),
        },
        other => other,
    };
    let path = match told {
        Written::Quoted(_) => {
            // Backslashes in paths are meant, so the quotes are taken off here and nothing else is.
            let bare = text.trim_end_matches(['.', ',', ':', '!', '?']);
            let mut inside = bare.chars();
            inside.next();
            inside.next_back();
            return Some(from_address(inside.as_str())).filter(|path| !path.trim().is_empty());
        }
        Written::Unclosed => return None,
        Written::Plain(plain) => plain.strip_prefix('@').unwrap_or(plain).trim_end_matches([',', ':', '!', '?']),
    };
    if path.is_empty() || path.contains(char::is_whitespace) || path.starts_with(['"', '\'', '`', '“']) {
        return None;
    }
    // `a.txt.` ends a sentence; `..` and `src/.` are paths.
    let path = match path.strip_suffix('.') {
        Some(stem) if stem.ends_with(char::is_alphanumeric) => stem,
        _ => path,
    };
    Some(from_address(path))
}

/// The path in a `file:` address; any other text as it is.
fn from_address(text: &str) -> String {
    let Some(path) = text.strip_prefix("file://") else { return text.into() };
    percent_encoding::percent_decode_str(path).decode_utf8().map_or_else(|_| path.into(), Into::into)
}

/// Where a quotation closes. Only in `"…"` does a backslash take the next character's meaning away.
fn closing(text: &str, close: char) -> Option<usize> {
    if close != '"' {
        return text.find(close);
    }
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match (character, rest.clone().next()) {
            ('\\', Some(escaped @ ('n' | 't' | '"' | '\\'))) => {
                plain.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
                rest.next();
            }
            _ => plain.push(character),
        }
    }
    plain.into()
}

/// The characters of a text that are not quoted, with their places.
struct Bare<'a> {
    text: &'a str,
    at: usize,
    previous: Option<char>,
    /// The quotes that were found not to close. They are not looked for again, which keeps this linear.
    hopeless: [bool; QUOTES.len()],
}

impl Iterator for Bare<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<(usize, char)> {
        loop {
            let at = self.at;
            let character = self.text[at..].chars().next()?;
            let after = at + character.len_utf8();
            // The apostrophe of `don't` opens nothing: a quotation begins where a word does.
            let begins = self.previous.is_none_or(|c| c.is_whitespace() || "([{=:,;/".contains(c));
            self.previous = Some(character);
            self.at = after;
            let kind = QUOTES.iter().position(|(open, _)| *open == character).filter(|_| begins);
            let Some(kind) = kind.filter(|kind| !self.hopeless[*kind]) else { return Some((at, character)) };
            let close = QUOTES[kind].1;
            match closing(&self.text[after..], close) {
                Some(end) => {
                    self.at = after + end + close.len_utf8();
                    self.previous = Some(close);
                }
                None => {
                    self.hopeless[kind] = true;
                    return Some((at, character));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_one_word_and_apostrophes_open_none() {
        let of = |text| words(text).map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(of(r#"read "my file.txt" and 'b c'"#), ["read", "\"my file.txt\"", "and", "'b c'"]);
        assert_eq!(of("don't stop; won't"), ["don't", "stop;", "won't"]);
        assert_eq!(of(r#"say "never ends"#), ["say", "\"never", "ends"]);
        assert_eq!(of(r#"call t {"a":"b c \" d"} x"#), ["call", "t", r#"{"a":"b c \" d"}"#, "x"]);
        assert_eq!(of(""), Vec::<&str>::new());
    }

    #[test]
    fn paths_are_taken_as_people_write_them() {
        for (written, meant) in [
            ("a.txt", "a.txt"),
            ("the file a.txt", "a.txt"),
            ("a", "a"),
            ("`src/main.rs`", "src/main.rs"),
            ("\"my file.txt\".", "my file.txt"),
            (r#""C:\new\table.txt""#, r"C:\new\table.txt"),
            ("a.txt.", "a.txt"),
            ("..", ".."),
            ("src/.", "src/."),
            ("the src directory please", "src"),
            ("@notes.md", "notes.md"),
            ("[@a b.txt](file:///tmp/a%20b.txt)", "/tmp/a b.txt"),
            ("file:///tmp/%zz", "/tmp/%zz"),
            ("a.txt?", "a.txt"),
            ("“x y”", "x y"),
        ] {
            assert_eq!(path(written).as_deref(), Some(meant), "{written}");
        }
        for written in ["", "   ", "the unused imports", "\"open", "\"\"", "a.txt \"b", "[x](file:///a"] {
            assert_eq!(path(written), None, "{written}");
        }
    }

    #[test]
    fn only_double_quotes_have_escapes() {
        assert_eq!(written(r#""a\n\"b\"\x""#), Written::Quoted("a\n\"b\"\\x".into()));
        assert_eq!(written(r"'a\n'"), Written::Quoted(r"a\n".into()));
        assert_eq!(written("'a' b"), Written::Plain("'a' b"));
        assert_eq!(written("'a"), Written::Unclosed);
    }
}
