//! Whether a call that was written as text only says again what the model was told. A quotation is shown, and never made.

use super::WrittenCall;
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

    /// Whether a call is in one of the texts.
    pub(in crate::model) fn has(&self, call: &WrittenCall<'_>) -> bool {
        let call = bare(call.text);
        self.0.iter().any(|text| is_in(text, &call))
    }
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
