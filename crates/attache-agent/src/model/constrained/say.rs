//! Takes what a model has to say out of its JSON while that is still coming.

use serde_json::Value;

/// The answer so far. Whatever it turns out to be, nothing of it is lost: what is not the JSON that was asked for is
/// said as it is.
#[derive(Debug, Default)]
pub(super) struct Say {
    /// All that came.
    all: String,
    /// How far it was read.
    at: usize,
    state: State,
    depth: u32,
    /// The string that is being read, when it is a key or its value.
    string: String,
    key: String,
    said: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but space or a fence has come.
    #[default]
    Before,
    /// Between strings, in JSON.
    Json,
    /// In a string that matters to nobody, a key, or what is said.
    Skip,
    Key,
    Said,
    /// It is not JSON.
    Plain,
    /// The object is closed.
    After,
}

impl Say {
    /// Takes in some text, and gives what of it is for people.
    pub(super) fn handle(&mut self, text: &str) -> String {
        self.all.push_str(text);
        let mut out = String::new();
        while self.step(&mut out).is_some() {}
        self.said |= !out.is_empty();
        out
    }

    /// Reads one more thing. `None` if that has not come whole.
    fn step(&mut self, out: &mut String) -> Option<()> {
        let rest = &self.all[self.at..];
        let c = rest.chars().next()?;
        let mut taken = c.len_utf8();
        match self.state {
            State::Before => match c {
                '{' => {
                    self.state = State::Json;
                    self.depth = 1;
                }
                _ if c.is_whitespace() => {}
                // A fence: ```json and a new line. It is too early to say until the line is whole.
                '`' => {
                    let line = rest.find('\n')?;
                    if rest[..line].trim_end().len() > 10 {
                        self.state = State::Plain;
                        taken = 0;
                    } else {
                        taken = line + 1;
                    }
                }
                _ => {
                    self.state = State::Plain;
                    taken = 0;
                }
            },
            State::Plain => {
                // All of it, from its first sign on.
                let start = if self.said || !out.is_empty() { self.at } else { 0 };
                out.push_str(&self.all[start..]);
                taken = rest.len();
            }
            State::Json => match c {
                '{' | '[' => self.depth += 1,
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.state = State::After;
                    }
                }
                ',' if self.depth == 1 => self.key.clear(),
                '"' if self.depth == 1 && self.key.is_empty() => {
                    self.string.clear();
                    self.state = State::Key;
                }
                '"' if self.depth == 1 && self.key == "say" => self.state = State::Said,
                '"' => self.state = State::Skip,
                _ => {}
            },
            State::Skip | State::Key | State::Said => {
                let (decoded, length) = self.character()?;
                taken = length;
                match decoded {
                    None if self.state == State::Key => {
                        self.key = std::mem::take(&mut self.string);
                        self.state = State::Json;
                    }
                    None => self.state = State::Json,
                    Some(c) => match self.state {
                        State::Key => self.string.push(c),
                        State::Said => out.push(c),
                        _ => {}
                    },
                }
            }
            State::After => taken = rest.len(),
        }
        self.at += taken;
        Some(())
    }

    /// The next character of a JSON string and how much text it took; no character at the end of the string.
    /// `None` if it has not come whole.
    fn character(&self) -> Option<(Option<char>, usize)> {
        let rest = &self.all[self.at..];
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
            'u' => return self.escape(),
            c => return Some((Some(c), 1 + c.len_utf8())),
        };
        Some((Some(c), 2))
    }

    /// A character in hexadecimal, or in two such halves.
    fn escape(&self) -> Option<(Option<char>, usize)> {
        let rest = &self.all.as_bytes()[self.at..];
        let unit = |start: usize| {
            let digits = rest.get(start..start + 4)?;
            let digits =
                std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
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

    /// The answer is complete. Gives what it comes to.
    pub(super) fn finish(&mut self) -> Finish {
        let all = std::mem::take(&mut self.all);
        let body = all.find('{').map(|start| &all[start..]).unwrap_or_default();
        let value = match self.state {
            State::Plain => return Finish::default(),
            _ => object(body).or_else(|| object(&repaired(body))),
        };
        let Some(value) = value else {
            return if self.said { Finish { is_broken: true, ..Finish::default() } } else { Finish::text(all) };
        };
        let name = value.pointer("/tool/name").and_then(Value::as_str).unwrap_or_default();
        let tool = (!name.is_empty()).then(|| {
            let parameters = value.pointer("/tool/parameters").filter(|value| !value.is_null());
            (name.to_owned(), parameters.map_or_else(|| "{}".to_owned(), Value::to_string))
        });
        // An object of another shape is all that the model had to say.
        if tool.is_none() && value.get("say").is_none() && !self.said {
            return Finish::text(all);
        }
        Finish { tool, ..Finish::default() }
    }
}

/// What an answer comes to in the end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Finish {
    /// What was not said yet.
    pub(super) text: String,
    /// The tool to use, with its parameters.
    pub(super) tool: Option<(String, String)>,
    /// Part of it was said, and the rest cannot be read.
    pub(super) is_broken: bool,
}

impl Finish {
    fn text(text: String) -> Self {
        Finish { text, ..Finish::default() }
    }
}

/// The object at the beginning of a text. Models like to add something after it.
fn object(text: &str) -> Option<Value> {
    let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    value.is_object().then_some(value)
}

/// The same with new lines and tabs in strings written as JSON wants them, which models without a schema forget.
fn repaired(text: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        match c {
            '\n' if quoted => out.push_str("\\n"),
            '\r' if quoted => {}
            '\t' if quoted => out.push_str("\\t"),
            _ => out.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}
