//! Frames: where one message ends and the next begins.

use std::mem;

/// How messages are told apart on a stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Framing {
    /// One message a line, as ACP has it.
    #[default]
    Lines,
    /// A `Content-Length` header before each message, as LSP has it.
    ContentLength,
}

impl Framing {
    /// Closes the message that was appended to `buffer` from `start` on.
    pub fn finish(self, buffer: &mut Vec<u8>, start: usize) {
        match self {
            Framing::Lines => buffer.push(b'\n'),
            Framing::ContentLength => {
                let header = format!("Content-Length: {}\r\n\r\n", buffer.len() - start);
                buffer.splice(start..start, header.into_bytes());
            }
        }
    }
}

/// What the splitter found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One message, not looked at yet.
    Message(&'a str),
    /// Bytes that cannot be a message. They are gone; what follows them is not touched.
    Junk(Junk),
}

/// Why some bytes cannot be a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Junk {
    /// They are not UTF-8.
    NotUtf8,
    /// They are longer than the limit.
    TooLong,
    /// A header is not `Content-Length: number`.
    BadHeader,
}

/// The space to read into: as much as a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// A buffer that a message made larger than this is given back when the message is through.
const KEPT: usize = 1024 * 1024;

/// Cuts a stream of bytes into frames, however the bytes arrive.
///
/// Blank lines, line ends of either kind and a byte order mark at the start are no frames and no junk.
///
/// ```
/// use attache_proto::frame::{Frame, Splitter};
///
/// let mut splitter = Splitter::new(None, 1024);
/// splitter.feed(b"{\"a\":1}\n\n{\"b\"");
/// assert_eq!(splitter.next_frame(), Some(Frame::Message("{\"a\":1}")));
/// assert_eq!(splitter.next_frame(), None);
/// splitter.feed(b":2}\r\n");
/// assert_eq!(splitter.next_frame(), Some(Frame::Message("{\"b\":2}")));
/// ```
#[derive(Debug)]
pub struct Splitter {
    /// Bytes before `start` are done with.
    buffer: Vec<u8>,
    start: usize,
    /// Bytes from `start` that hold no line end, so that no byte is searched twice.
    searched: usize,
    /// `None` until the first message shows which it is.
    framing: Option<Framing>,
    limit: usize,
    state: State,
    at_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a line.
    Line,
    /// Inside a line that is too long: everything up to its end is dropped.
    DropLine,
    /// Behind a header that announced so many bytes; more headers may follow.
    Header(usize),
    /// Inside a message of so many bytes.
    Body(usize),
    /// Inside a message that is too long: so many bytes are still to be dropped.
    DropBody(usize),
}

impl Splitter {
    /// A splitter for messages of at most `limit` bytes. Without a framing, the first message decides.
    pub fn new(framing: Option<Framing>, limit: usize) -> Self {
        Splitter { buffer: Vec::new(), start: 0, searched: 0, framing, limit, state: State::Line, at_start: true }
    }

    /// The framing, once it is known.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The buffer to append bytes to, with room for a good many. Only append: what is in it is looked after here.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > KEPT {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            self.buffer.reserve(CHUNK);
        }
        &mut self.buffer
    }

    /// Takes bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer().extend_from_slice(bytes);
    }

    /// Whether the stream ended in the middle of a message. A last line without a line end counts as one.
    pub fn is_in_message(&self) -> bool {
        self.buffer.len() > self.start || !matches!(self.state, State::Line)
    }

    /// The next frame, when all of it is there.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            match self.state {
                State::Line | State::DropLine | State::Header(_) => {
                    let Some(line) = self.next_line() else {
                        if self.buffer.len() - self.start > self.limit {
                            let fresh = !matches!(self.state, State::DropLine);
                            self.drop_held();
                            self.state = State::DropLine;
                            if fresh {
                                return Some(Frame::Junk(Junk::TooLong));
                            }
                        }
                        return None;
                    };
                    match self.take_line(line) {
                        Taken::Nothing => {}
                        Taken::Message(from, to) => return Some(self.message(from, to)),
                        Taken::Junk(junk) => return Some(Frame::Junk(junk)),
                    }
                }
                State::Body(length) => {
                    if self.buffer.len() - self.start < length {
                        return None;
                    }
                    let from = self.start;
                    self.advance(length);
                    self.state = State::Line;
                    return Some(self.message(from, from + length));
                }
                State::DropBody(left) => {
                    let count = left.min(self.buffer.len() - self.start);
                    self.advance(count);
                    self.state = if left == count { State::Line } else { State::DropBody(left - count) };
                    if left != count {
                        return None;
                    }
                }
            }
        }
    }

    /// What is left when the stream has ended: a last line without its line end.
    pub fn last_frame(&mut self) -> Option<Frame<'_>> {
        if self.state != State::Line || self.framing == Some(Framing::ContentLength) {
            return None;
        }
        let (from, to) = trim(&self.buffer, self.start, self.buffer.len());
        self.drop_held();
        (from < to).then(|| self.message(from, to))
    }

    /// Moves behind the next line end; returns where the line stood.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        let from = self.start + self.searched;
        let Some(length) = memchr::memchr(b'\n', &self.buffer[from..self.buffer.len()]) else {
            self.searched = self.buffer.len() - self.start;
            return None;
        };
        let line = (self.start, from + length);
        self.advance(line.1 + 1 - self.start);
        Some(line)
    }

    fn take_line(&mut self, (from, to): (usize, usize)) -> Taken {
        let state = mem::replace(&mut self.state, State::Line);
        if state == State::DropLine {
            return Taken::Nothing;
        }
        let mut from = from;
        if mem::take(&mut self.at_start) && self.buffer[from..to].starts_with(b"\xEF\xBB\xBF") {
            from += 3;
        }
        let (from, to) = trim(&self.buffer, from, to);
        let line = &self.buffer[from..to];
        if let State::Header(length) = state {
            if !line.is_empty() {
                // Another header, such as Content-Type: of no interest.
                self.state = state;
                return Taken::Nothing;
            }
            if length > self.limit {
                self.state = State::DropBody(length);
                return Taken::Junk(Junk::TooLong);
            }
            self.state = State::Body(length);
            return Taken::Nothing;
        }
        if line.is_empty() {
            return Taken::Nothing;
        }
        if self.framing != Some(Framing::Lines) && has_prefix(line, b"content-") {
            self.framing = Some(Framing::ContentLength);
            return match content_length(line) {
                Some(length) => {
                    self.state = State::Header(length);
                    Taken::Nothing
                }
                // A header before Content-Length.
                None if !has_prefix(line, b"content-length") => Taken::Nothing,
                None => Taken::Junk(Junk::BadHeader),
            };
        }
        if self.framing == Some(Framing::ContentLength) {
            return Taken::Junk(Junk::BadHeader);
        }
        if matches!(line[0], b'{' | b'[') {
            self.framing = Some(Framing::Lines);
        }
        if line.len() > self.limit {
            return Taken::Junk(Junk::TooLong);
        }
        Taken::Message(from, to)
    }

    fn message(&self, from: usize, to: usize) -> Frame<'_> {
        match std::str::from_utf8(&self.buffer[from..to]) {
            Ok(text) => Frame::Message(text),
            Err(_) => Frame::Junk(Junk::NotUtf8),
        }
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
        self.searched = 0;
    }

    fn drop_held(&mut self) {
        self.advance(self.buffer.len() - self.start);
    }
}

enum Taken {
    Nothing,
    Message(usize, usize),
    Junk(Junk),
}

fn trim(buffer: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    while from < to && buffer[from].is_ascii_whitespace() {
        from += 1;
    }
    while to > from && buffer[to - 1].is_ascii_whitespace() {
        to -= 1;
    }
    (from, to)
}

fn has_prefix(line: &[u8], prefix: &[u8]) -> bool {
    line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn content_length(line: &[u8]) -> Option<usize> {
    let value = line.get(b"content-length".len()..).filter(|_| has_prefix(line, b"content-length"))?;
    std::str::from_utf8(value).ok()?.trim().strip_prefix(':')?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
