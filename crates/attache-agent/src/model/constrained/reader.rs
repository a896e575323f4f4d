//! Reads an answer in JSON while it is still coming: what ends the work is shown as it is said.

use serde_json::Value;

use super::DONE;
use crate::model::written::{self, Told};

/// How an answer begins that ends the work: these, with or without white space between them. What follows is text.
const OPENING: [&str; 11] =
    ["{", "\"action\"", ":", "\"done\"", ",", "\"arguments\"", ":", "{", "\"message\"", ":", "\""];

/// The answer so far. Whatever it turns out to be, nothing of it is lost: what is not the JSON that was asked for is
/// said as it is.
#[derive(Debug)]
pub(super) struct AnswerReader {
    /// The tools that there are.
    names: Vec<String>,
    told: Told,
    /// All that came.
    all: String,
    /// How far of that was shown, or looked at.
    at: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may still be anything.
    Opening,
    /// In the text that ends the work.
    Saying,
    /// After it.
    Said,
    /// Some other JSON: what it means is known when it is whole.
    Json,
    /// It is not JSON.
    Plain,
}

/// What an answer comes to in the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// What was not said yet.
    Text(String),
    /// The tool to use. The arguments are as they came; those of an answer that was cut off are no JSON.
    Call { name: String, arguments: String },
}

impl AnswerReader {
    pub(super) fn new(names: Vec<String>, told: Told) -> Self {
        AnswerReader { names, told, all: String::new(), at: 0, state: State::Opening }
    }

    /// Takes in some text, and gives what of it is for people.
    pub(super) fn handle(&mut self, text: &str) -> String {
        written::add(&mut self.all, text);
        if self.state == State::Opening {
            self.open();
        }
        match self.state {
            State::Plain => {
                let more = self.all[self.at..].to_owned();
                self.at = self.all.len();
                more
            }
            State::Saying => self.say(),
            State::Opening | State::Said | State::Json => String::new(),
        }
    }

    /// Looks how the answer begins.
    fn open(&mut self) {
        let mut rest = self.all.trim_start();
        match rest.chars().next() {
            None => return,
            Some('{') => {}
            // Too early to say what it is.
            Some(_) if written::may_be_call(rest) => return,
            Some(_) => {
                self.state = State::Plain;
                return;
            }
        }
        for token in OPENING {
            rest = rest.trim_start();
            match rest.strip_prefix(token) {
                Some(after) => rest = after,
                None if token.starts_with(rest) => return,
                None => {
                    self.state = State::Json;
                    return;
                }
            }
        }
        self.state = State::Saying;
        self.at = self.all.len() - rest.len();
    }

    /// What has come of the text that ends the work.
    fn say(&mut self) -> String {
        let mut said = String::new();
        while let Some((decoded, length)) = character(&self.all[self.at..]) {
            self.at += length;
            match decoded {
                Some(c) => said.push(c),
                None => {
                    self.state = State::Said;
                    break;
                }
            }
        }
        said
    }

    /// The answer is complete. Gives what it comes to.
    pub(super) fn finish(&self) -> Ending {
        let all = self.all.as_str();
        match self.state {
            State::Saying | State::Said | State::Plain => return Ending::Text(String::new()),
            State::Opening | State::Json => {}
        }
        let body = all.find('{').map(|start| &all[start..]).unwrap_or_default();
        let object = written::object(body).filter(Value::is_object);
        if let Some((DONE, arguments)) = object.as_ref().and_then(written::call_of) {
            let message = arguments.get("message").and_then(Value::as_str).unwrap_or("Done.");
            return Ending::Text(message.to_owned());
        }
        let as_it_is = || Ending::Text(all.to_owned());
        match written::calls_in(all) {
            Some(calls) if calls.iter().any(|call| self.told.has(call)) => as_it_is(),
            // One at a time: what comes of it is told before the next.
            Some(calls) => calls.into_iter().next().map_or_else(as_it_is, |call| {
                let written::WrittenCall { name, arguments, .. } = call;
                Ending::Call { name, arguments }
            }),
            // An object of another shape, or one with words beside it, is all that the model had to say.
            None if object.is_some() => as_it_is(),
            None => self.broken(body).unwrap_or_else(as_it_is),
        }
    }

    /// An answer that is cut off, or no JSON, and says what it wants to do all the same.
    fn broken(&self, body: &str) -> Option<Ending> {
        let after = body.split_once("\"action\"")?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let (name, rest) = after.split_once('"')?;
        let name = self.names.iter().find(|known| *known == name)?.clone();
        let arguments = rest.split_once("\"arguments\"").map_or(rest, |(_, rest)| rest.trim_start_matches([' ', ':']));
        // Arguments that are JSON for once would be done as if they were whole.
        Some(Ending::Call { name, arguments: format!("{arguments} …") })
    }
}

/// The next character of a JSON string and how much text it took; no character at the end of the string. `None` if it has
/// not come whole.
fn character(rest: &str) -> Option<(Option<char>, usize)> {
    let mut chars = rest.chars();
    match chars.next()? {
        '"' => return Some((None, 1)),
        '\\' => {}
        c => return Some((Some(c), c.len_utf8())),
    }
    let c = match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' | 'f' => ' ',
        'u' => return escape(rest.as_bytes()),
        c => return Some((Some(c), 1 + c.len_utf8())),
    };
    Some((Some(c), 2))
}

/// A character in hexadecimal, or in two such halves.
fn escape(rest: &[u8]) -> Option<(Option<char>, usize)> {
    let unit = |start: usize| {
        let digits = rest.get(start..start + 4)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        Some(digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()))
    };
    let Some(first) = unit(2)? else { return Some((Some('\u{fffd}'), 2)) };
    if let Some(c) = char::from_u32(first.into()) {
        return Some((Some(c), 6));
    }
    // The other half has to follow at once.
    let follows = rest.get(6..8)? == b"\\u";
    let second = if follows { unit(8)? } else { None };
    match second.and_then(|second| char::decode_utf16([first, second]).next()?.ok()) {
        Some(c) => Some((Some(c), 12)),
        None => Some((Some('\u{fffd}'), 6)),
    }
}
