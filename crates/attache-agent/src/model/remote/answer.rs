//! One answer on its way: bytes come in, the reader makes pieces of their events.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;

use super::failure::{Trouble, Who};
use super::out::Out;
use super::reader::Reader;
use super::sse::{Cutter, LONGEST_EVENT, TooLong};
use crate::model::{Failure, Piece, Usage};

/// How much an answer may have: its text, thoughts, arguments and signatures, not what the provider wraps around them.
/// The longest answers there are have a tenth of it.
const MOST_TEXT: usize = 32 << 20;

/// How much may come without any of that.
const MOST_WRAPPING: usize = 32 << 20;

/// How often a server may say that it is still there, each time for as long as it may be silent, before it says more.
const MOST_SIGNS: u32 = 5;

/// An answer as it comes. Dropping it drops the request.
pub(super) struct Answer {
    response: Option<Response>,
    cutter: Cutter,
    reader: Reader,
    out: Out,
    who: Who,
    /// The model's id, for what has to go back to it.
    id: String,
    /// How long the server may be silent.
    patience: Duration,
    /// When the last event was complete.
    heard: Instant,
    /// When the server has been silent for too long.
    deadline: Instant,
    /// What has come since the answer last grew.
    wrapping: usize,
    /// What was last told of what the answer takes.
    counted: Usage,
    trouble: Option<Trouble>,
}

impl Answer {
    pub(super) fn new(response: Response, reader: Reader, out: Out, who: Who, id: String, patience: Duration) -> Self {
        let heard = Instant::now();
        Answer {
            response: Some(response),
            cutter: Cutter::new(reader.framing()),
            reader,
            out,
            who,
            id,
            patience,
            heard,
            deadline: heard + patience,
            wrapping: 0,
            counted: Usage::default(),
            trouble: None,
        }
    }

    /// The next piece; nothing after the end or an error.
    pub(super) async fn next(mut self) -> Option<(Result<Piece, Trouble>, Self)> {
        loop {
            if let Some(piece) = self.out.pop() {
                return Some((Ok(piece), self));
            }
            if let Some(trouble) = self.trouble.take() {
                return Some((Err(trouble), self));
            }
            let response = self.response.as_mut()?;
            // A server that floods us is never waited for, so the clock has to be looked at.
            let is_late = Instant::now() >= self.deadline;
            match tokio::time::timeout_at(self.deadline, response.chunk()).await {
                Ok(Ok(Some(_))) | Err(_) if is_late => self.fall_silent(),
                Ok(Ok(Some(bytes))) => self.handle(&bytes),
                Ok(Ok(None)) => self.end(),
                Ok(Err(error)) => {
                    let trouble = self.who.transport(&error);
                    self.finish(Some(trouble));
                }
                Err(_) => self.fall_silent(),
            }
        }
    }

    /// Takes in what has come before anything was looked at.
    pub(super) fn handle(&mut self, bytes: &[u8]) {
        // Comments, and what there is of an event, are signs of life; but not for ever.
        let latest = self.heard + self.patience * MOST_SIGNS;
        self.deadline = latest.min(Instant::now() + self.patience);
        self.wrapping = self.wrapping.saturating_add(bytes.len());
        match self.cutter.handle(bytes) {
            Ok(events) => self.read(&events),
            Err(TooLong) => {
                self.too_long(&format!("one event of the response from `{}`", self.who.name), LONGEST_EVENT)
            }
        }
    }

    fn read(&mut self, events: &[String]) {
        for event in events {
            let before = self.out.bytes();
            if let Err(trouble) = self.reader.handle(event, &mut self.out, &self.who) {
                return self.fail(trouble);
            }
            if self.reader.is_over() {
                return self.finish(None);
            }
            // The end tells it once more; not every answer comes to it.
            let usage = self.reader.usage();
            if usage != self.counted {
                self.counted = usage;
                self.out.push(Piece::Usage(usage));
            }
            self.heard = Instant::now();
            self.deadline = self.heard + self.patience;
            if self.out.bytes() > before {
                self.wrapping = 0;
            }
        }
        if self.out.bytes() > MOST_TEXT {
            self.too_long(&format!("response from `{}`", self.who.name), MOST_TEXT);
        } else if self.wrapping > MOST_WRAPPING + LONGEST_EVENT {
            self.too_long(&format!("response from `{}`", self.who.name), MOST_WRAPPING);
        }
    }

    fn too_long(&mut self, what: &str, limit: usize) {
        self.fail(Trouble::new(Failure::Request, format!("{what} exceeded {} MiB", limit >> 20)));
    }

    fn fail(&mut self, trouble: Trouble) {
        self.response = None;
        self.trouble = Some(trouble);
    }

    fn fall_silent(&mut self) {
        let silence = self.who.silence();
        self.finish(Some(silence));
    }

    /// The server has closed the stream.
    fn end(&mut self) {
        if let Ok(events) = self.cutter.finish() {
            self.read(&events);
        }
        if self.response.is_some() {
            self.finish(None);
        }
    }

    /// Nothing more comes. If the answer is whole, it does not matter why.
    fn finish(&mut self, why: Option<Trouble>) {
        self.response = None;
        if let Err(cut) = self.reader.finish(&mut self.out, &self.id, &self.who) {
            self.trouble = Some(why.unwrap_or(cut));
        }
    }
}
