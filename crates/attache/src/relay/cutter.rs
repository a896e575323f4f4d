//! Cuts a stream into frames without losing a byte of them.

use std::io;
use std::ops::Range;

use attache_proto::frame::Framing;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The space to read into: as much as a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// A buffer that a message made larger than this is given back.
const KEPT: usize = 1024 * 1024;

/// A frame, as places in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// A frame, and the message in it. A blank line is a frame without a message.
    Frame { raw: Range<usize>, body: Range<usize> },
    /// A message over the limit. Its bytes are gone.
    TooLong,
}

/// Unlike [`Splitter`](attache_proto::frame::Splitter) it keeps what it does not understand.
#[derive(Debug)]
pub(super) struct Cutter {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes from `start` that hold no line end.
    searched: usize,
    framing: Option<Framing>,
    limit: usize,
    skipping: Skipping,
    is_at_start: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Skipping {
    Nothing,
    ToLineEnd,
    Bytes(usize),
}

enum Header {
    /// More bytes are needed to tell.
    Unfinished,
    /// It says nothing about the length: these bytes are passed as they are.
    Useless(usize),
    /// So many bytes of headers, then so many of the message.
    Good(usize, usize),
}

impl Cutter {
    pub(super) fn new(limit: usize) -> Self {
        Cutter {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            framing: None,
            limit,
            skipping: Skipping::Nothing,
            is_at_start: true,
        }
    }

    /// How messages are framed here; lines until something else was seen.
    pub(super) fn framing(&self) -> Framing {
        self.framing.unwrap_or_default()
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Reads more; `false` at the end of the stream. Frames that were cut before are gone then.
    pub(super) async fn fill(&mut self, reader: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.buffer.len() > KEPT {
            self.buffer = Vec::new();
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.resize((self.end * 2).max(CHUNK), 0);
        }
        let count = reader.read(&mut self.buffer[self.end..]).await?;
        self.end += count;
        Ok(count > 0)
    }

    /// The next frame, when all of it is there.
    pub(super) fn cut(&mut self) -> Option<Cut> {
        if !self.skip() {
            return None;
        }
        let held = &self.buffer[self.start..self.end];
        let Some(length) = held[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = held.len();
            return (held.len() > self.limit).then(|| {
                self.skipping = Skipping::ToLineEnd;
                self.skip();
                Cut::TooLong
            });
        };
        let length = self.searched + length + 1;
        if self.framing != Some(Framing::Lines) && has_prefix(&held[..length], b"content-") {
            return self.cut_headed();
        }
        Some(self.cut_line(length))
    }

    /// What is left at the end of the stream.
    pub(super) fn last(&mut self) -> Option<Cut> {
        let length = self.end - self.start;
        if length == 0 || self.skipping != Skipping::Nothing { None } else { Some(self.cut_line(length)) }
    }

    fn cut_line(&mut self, length: usize) -> Cut {
        let raw = self.start..self.start + length;
        self.advance(length);
        let mut body = raw.clone();
        if std::mem::take(&mut self.is_at_start) && self.buffer[body.clone()].starts_with(b"\xEF\xBB\xBF") {
            body.start += 3;
        }
        while body.start < body.end && self.buffer[body.start].is_ascii_whitespace() {
            body.start += 1;
        }
        while body.start < body.end && self.buffer[body.end - 1].is_ascii_whitespace() {
            body.end -= 1;
        }
        if body.len() > self.limit {
            return Cut::TooLong;
        }
        if self.framing.is_none() && matches!(self.buffer.get(body.start), Some(b'{' | b'[')) && !body.is_empty() {
            self.framing = Some(Framing::Lines);
        }
        Cut::Frame { raw, body }
    }

    fn cut_headed(&mut self) -> Option<Cut> {
        self.searched = 0;
        match header(&self.buffer[self.start..self.end]) {
            Header::Unfinished if self.end - self.start > self.limit => {
                self.advance(self.end - self.start);
                Some(Cut::TooLong)
            }
            Header::Unfinished => None,
            Header::Useless(length) => Some(self.cut_line(length)),
            Header::Good(head, length) if length > self.limit => {
                self.framing = Some(Framing::ContentLength);
                self.advance(head);
                self.skipping = Skipping::Bytes(length);
                self.skip();
                Some(Cut::TooLong)
            }
            Header::Good(head, length) => {
                self.framing = Some(Framing::ContentLength);
                self.is_at_start = false;
                let raw = self.start..self.start + head + length;
                if self.end < raw.end {
                    return None;
                }
                self.advance(raw.len());
                Some(Cut::Frame { body: raw.start + head..raw.end, raw })
            }
        }
    }

    /// Skips what belongs to a message over the limit; whether all of it is skipped.
    fn skip(&mut self) -> bool {
        let held = &self.buffer[self.start..self.end];
        let (count, rest) = match self.skipping {
            Skipping::Nothing => return true,
            Skipping::ToLineEnd => match held.iter().position(|byte| *byte == b'\n') {
                Some(length) => (length + 1, Skipping::Nothing),
                None => (held.len(), Skipping::ToLineEnd),
            },
            Skipping::Bytes(left) if left > held.len() => (held.len(), Skipping::Bytes(left - held.len())),
            Skipping::Bytes(left) => (left, Skipping::Nothing),
        };
        self.advance(count);
        self.skipping = rest;
        self.skipping == Skipping::Nothing
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
        self.searched = 0;
    }
}

/// Reads headers up to the blank line behind them.
fn header(held: &[u8]) -> Header {
    let mut length = None;
    let mut at = 0;
    while let Some(line_length) = held[at..].iter().position(|byte| *byte == b'\n') {
        let line = held[at..at + line_length].trim_ascii();
        at += line_length + 1;
        if line.is_empty() {
            return length.map_or(Header::Useless(at), |length| Header::Good(at, length));
        }
        let text = std::str::from_utf8(line).unwrap_or_default();
        let value = text.split_once(':').filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"));
        length = length.or_else(|| value.and_then(|(_, value)| value.trim().parse().ok()));
    }
    Header::Unfinished
}

fn has_prefix(line: &[u8], prefix: &[u8]) -> bool {
    line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
