//! What a scripted model answers, put together by a test.

use std::time::Duration;

use serde_json::Value;

/// One answer of a [`ModelServer`](super::ModelServer), for any of its APIs.
///
/// As with most models, the thought comes first, then the text, then the calls.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) thought: String,
    pub(super) signature: Option<String>,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Stop,
    pub(super) usage: Usage,
    pub(super) piece_size: usize,
    pub(super) write_size: Option<usize>,
    pub(super) delay: Duration,
    pub(super) raw: Vec<(usize, String)>,
    pub(super) ending: Ending,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Value>,
}

/// Why the model stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    /// It has said what it wanted, or calls tools.
    #[default]
    Done,
    /// It was cut off at its limit of tokens.
    Length,
    /// It will not answer this.
    Refusal,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    /// `None` for one that the server makes up.
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

/// How a stream ends, after so many events.
#[derive(Debug, Clone)]
pub(super) enum Ending {
    Complete,
    Cut(usize),
    Early(usize),
    Hang(usize),
    Error(usize, String),
}

impl Answer {
    /// An answer with nothing in it yet.
    pub fn new() -> Self {
        Answer {
            thought: String::new(),
            signature: None,
            text: String::new(),
            calls: Vec::new(),
            stop: Stop::Done,
            usage: Usage { input: 100, cached: 0, output: 10 },
            piece_size: 8,
            write_size: None,
            delay: Duration::ZERO,
            raw: Vec::new(),
            ending: Ending::Complete,
            status: 200,
            headers: Vec::new(),
            body: None,
        }
    }

    /// Says something.
    pub fn text(text: impl Into<String>) -> Self {
        Answer { text: text.into(), ..Answer::new() }
    }

    /// Sends the head of the answer, then nothing until the client leaves.
    pub fn hang() -> Self {
        Answer::new().hang_after(0)
    }

    /// Fails with a status, and with an error as the API words it unless there is a [`body`](Answer::body).
    pub fn status(status: u16) -> Self {
        Answer { status, ..Answer::new() }
    }

    /// Thinks before it speaks.
    pub fn thought(mut self, thought: impl Into<String>) -> Self {
        self.thought = thought.into();
        self
    }

    /// Signs its thought, as Anthropic and Gemini do: for Anthropic the signature is in the thinking block (an empty
    /// one if there is no [`thought`](Answer::thought)), for Gemini at the first call, or at the end of the text if
    /// nothing is called. OpenAI's API has no such thing.
    pub fn signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = Some(signature.into());
        self
    }

    /// Calls a tool. Several calls are made in parallel.
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// Calls a tool with arguments that need not be JSON. Gemini's API cannot say such a thing: there, the answer ends
    /// with `MALFORMED_FUNCTION_CALL`, as the real one does.
    pub fn raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push(Call { id: None, name: name.into(), arguments: arguments.into() });
        self
    }

    /// Gives the last call this id instead of one that occurs nowhere else. Gemini's calls have no id without this.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.id = Some(id.into());
        }
        self
    }

    /// Stops for this reason.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Says what it took, in tokens: what went in (from a cache or not), how much of that came from a cache, and what
    /// came out. 100, 0 and 10 without this. If there is a thought, half of what came out is said to be thought.
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.usage = Usage { input, cached, output };
        self
    }

    /// Splits thoughts, text and arguments after so many characters; 8 without this. Each piece is one event.
    pub fn piece_size(mut self, characters: usize) -> Self {
        self.piece_size = characters.max(1);
        self
    }

    /// Writes the stream so many bytes at a time. Without this, one event is written at a time, and if there are
    /// characters of several bytes in it, in two parts whose border is in the middle of the first such character.
    pub fn write_size(mut self, bytes: usize) -> Self {
        self.write_size = Some(bytes.max(1));
        self
    }

    /// Waits so long between two events.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Puts these bytes into the stream after so many events: lines that no client can understand, or comments.
    pub fn raw_after(mut self, events: usize, bytes: impl Into<String>) -> Self {
        self.raw.push((events, bytes.into()));
        self
    }

    /// Closes the connection after so many events and half of the next one, so that the client sees a broken body.
    pub fn cut_after(mut self, events: usize) -> Self {
        self.ending = Ending::Cut(events);
        self
    }

    /// Ends the body after so many events, as if nothing was missing.
    pub fn end_after(mut self, events: usize) -> Self {
        self.ending = Ending::Early(events);
        self
    }

    /// After so many events, sends nothing more until the client leaves.
    pub fn hang_after(mut self, events: usize) -> Self {
        self.ending = Ending::Hang(events);
        self
    }

    /// After so many events, ends the stream with the API's event for an overloaded server, with this message.
    pub fn error_after(mut self, events: usize, message: impl Into<String>) -> Self {
        self.ending = Ending::Error(events, message.into());
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Answers with this JSON, whatever the API, and in one piece.
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// How much of the output is thought.
    pub(super) fn thought_tokens(&self) -> u64 {
        if self.thought.is_empty() { 0 } else { self.usage.output / 2 }
    }

    /// A text in pieces; none for no text.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters.chunks(self.piece_size).map(|piece| piece.iter().collect()).collect()
    }
}

impl Default for Answer {
    fn default() -> Self {
        Answer::new()
    }
}
