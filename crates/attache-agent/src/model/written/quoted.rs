//! Whether a call that was written as text only says again what the model was told. A quotation is shown, and never made.

use std::borrow::Cow;

use serde_json::Value;

use super::{WrittenCall, object};
use crate::model::{Message, Part, Request};

/// What a model was told by others, and may quote: prompts, results of tools, and what the project and the person want of
/// it. The system prompt has no calls of our own in it; worked examples come with the form that they are for.
#[derive(Debug, Default)]
pub(in crate::model) struct Told(Vec<String>);

impl Told {
    pub(in crate::model) fn new(request: &Request) -> Self {
        let parts = request.messages.iter().flat_map(|message| match message {
            Message::User { parts } | Message::Tool { parts, .. } => parts.as_slice(),
            Message::Assistant { .. } => &[],
        });
        let texts = parts.filter_map(Part::as_text).chain([request.system.as_str()]);
        // Calls have at least one of these in them.
        Told(texts.filter(|text| text.contains(['{', '<'])).map(str::to_owned).collect())
    }

    /// Whether a call is in one of the texts: in the same words, or as JSON that means the same.
    pub(in crate::model) fn has(&self, call: &WrittenCall<'_>) -> bool {
        let words = bare(call.text);
        let meant = Meant::new(call);
        self.0.iter().any(|text| is_in(text, &words) || meant.as_ref().is_some_and(|meant| meant.is_in(text)))
    }
}

/// A call that is JSON, however it is written: the order of keys and escapes make no difference. Other keys do: a model that
/// was shown one form and answers in its own says what it wants.
struct Meant {
    object: Value,
    /// What a text has in it that says the same, each without white space.
    words: Vec<String>,
    /// An object that says the same is not longer than this: every character may be an escape.
    longest: usize,
}

impl Meant {
    fn new(call: &WrittenCall<'_>) -> Option<Self> {
        let object = object(call.text).filter(Value::is_object)?;
        let mut words = Vec::new();
        strings(&object, &mut words);
        let longest = call.text.len().saturating_mul(8).saturating_add(1 << 10);
        Some(Meant { object, words, longest })
    }

    fn is_in(&self, text: &str) -> bool {
        // What has not even the words of a call does not say it, and is not looked through.
        let dense = bare(&unescaped(text));
        if !self.words.iter().all(|word| dense.contains(word)) {
            return false;
        }
        let mut compared = 0;
        // As it is; without what lines begin with; and as it is within a string.
        let without_prefixes = || text.lines().map(from_json).collect::<Vec<_>>().join("\n");
        self.is_object_in(text, &mut compared)
            || self.is_object_in(&without_prefixes(), &mut compared)
            || (text.contains("\\\"") && self.is_object_in(&out_of_string(text), &mut compared))
    }

    /// Whether one of the objects in a text is this call.
    fn is_object_in(&self, text: &str, compared: &mut usize) -> bool {
        for (start, _) in text.match_indices('{') {
            let rest = &text[start..];
            let rest = &rest[..rest.floor_char_boundary(self.longest)];
            let end = end_of_object(rest);
            *compared += end.unwrap_or(rest.len());
            if *compared > MOST_COMPARED {
                // It would take long to be sure.
                return true;
            }
            if end.and_then(|end| object(&rest[..end])).as_ref() == Some(&self.object) {
                return true;
            }
        }
        false
    }
}

/// The texts in a value.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(bare(text)),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.push(bare(key));
            strings(value, found);
        }),
        _ => {}
    }
}

/// Where the object ends that a text begins with.
fn end_of_object(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'{' if !is_quoted => depth += 1,
            b'}' if !is_quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A line from where JSON may begin: what is before it may be a number, a path or a sign.
fn from_json(line: &str) -> &str {
    line.find(['{', '}', '[', ']', '"']).map_or("", |start| &line[start..])
}

/// A text with `\u0020` and the like as what they stand for.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u") {
        let digits = after.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let c = digits.and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        out.push_str(before);
        rest = match c {
            Some(c) => {
                out.push(c);
                &after[4..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What a string of JSON says that has JSON in it. Other escapes stay for the JSON within.
fn out_of_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.next_if(|next| c == '\\' && matches!(next, '"' | '\\' | 'n' | 'r' | 't')) {
            Some('n' | 'r' | 't') => out.push('\n'),
            Some(other) => out.push(other),
            None => out.push(c),
        }
    }
    out
}

/// A text without white space and without what stands for it in strings: that makes no difference, and neither does the
/// number of backslashes before a quotation mark, for one who quotes JSON from within JSON.
fn bare(text: &str) -> String {
    let mut chars = text.chars().filter(|c| !c.is_whitespace() && !is_invisible(*c)).map(plain_quote).peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next_if(|c| matches!(c, 'n' | 'r' | 't'));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character is not seen. Models leave such out.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Quotation marks of all kinds are one: models write JSON's where they read others.
fn plain_quote(c: char) -> char {
    if matches!(c, '\'' | '“' | '”' | '„' | '‟' | '‘' | '’' | '«' | '»') { '"' } else { c }
}

/// How much is compared before a text that repeats itself is taken for a quotation.
const MOST_COMPARED: usize = 4 << 20;

/// How many ways to go on there may be at the end of a line. Only a text that repeats itself has so many.
const MOST_WAYS: usize = 64;

/// Whether a text has a call in it, in one line or over several. Whatever lines begin with may be no part of it: the number
/// of `read_file`, the path and the number of `search_files`, the sign of a diff, of a comment or of a quotation.
fn is_in(text: &str, call: &str) -> bool {
    // How much of the call has come with the lines up to here, for each way to read them.
    let mut ways: Vec<usize> = Vec::new();
    let mut compared = 0;
    for line in text.lines().map(bare) {
        let mut next = Vec::new();
        for come in ways.into_iter().chain([0]) {
            let rest = &call[come..];
            if line.contains(rest) {
                return true;
            }
            for end in line.char_indices().map(|(at, _)| &line[at..]) {
                let alike = end.bytes().zip(rest.bytes()).take_while(|(one, two)| one == two).count();
                compared += alike + 1;
                if alike == end.len() {
                    next.push(come + end.len());
                }
                if compared > MOST_COMPARED {
                    return true;
                }
            }
            if come > 0 && is_blank(&line) {
                next.push(come);
            }
        }
        next.sort_unstable();
        next.dedup();
        if next.len() > MOST_WAYS {
            // It would take long to be sure. What is not made can be asked for again.
            return true;
        }
        ways = next;
    }
    false
}

/// Whether a line has nothing on it, or nothing but its number.
fn is_blank(line: &str) -> bool {
    let line = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    line.is_empty() || line.ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Each of these would take minutes if all of it was compared.
    #[test]
    fn a_text_that_repeats_itself_is_decided_in_time_and_is_taken_for_a_quotation() {
        let begun = Instant::now();
        let call = format!("{}b", "a".repeat(50_000));
        assert!(is_in(&"a".repeat(100_000), &call));
        // Many ways to go on with the next line.
        assert!(is_in(&format!("{}\n", "ab".repeat(200)).repeat(200), &format!("{}c", "ab".repeat(100_000))));
        // Many objects, of which none ends.
        let written = r#"{"name":"run_command","arguments":{"command":"ls"}}"#;
        let calls = super::super::calls_in(written).unwrap_or_default();
        let told = "{\"name\": \"run_command\", \"arguments\": {\"command\": \"ls\", ".repeat(100_000);
        assert!(Meant::new(&calls[0]).is_some_and(|meant| meant.is_in(&told)));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_long_text_that_has_no_call_in_it_is_no_quotation() {
        let written = r#"{"name":"run_command","arguments":{"command":"ls"}}"#;
        let call = bare(written);
        let prose: String = (0..20_000).map(|number| format!("{number}: a line with {{ and \"quotes\"\n")).collect();
        assert!(!is_in(&prose, &call));
        let calls = super::super::calls_in(written).unwrap_or_default();
        let objects =
            (0..5_000).map(|number| written.replace("\"ls\"", &format!("\"ls\", \"number\": {number}")) + ",\n");
        let objects: String = objects.collect();
        assert!(!Meant::new(&calls[0]).is_some_and(|meant| meant.is_in(&objects)));
    }
}
