//! Frames: where one message ends and the next begins.

mod header;

#[cfg(test)]
mod tests;

use std::ops::Range;

use self::header::Header;

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
    /// Bytes that cannot be a message.
    Junk(Junk<'a>),
}

/// Why some bytes cannot be a message, and how they begin: at most [`JUNK_START`] bytes, up to the first that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Junk<'a> {
    /// They are not UTF-8.
    NotUtf8(&'a str),
    /// They are longer than the limit.
    TooLong(&'a str),
}

impl<'a> Junk<'a> {
    /// How the bytes begin.
    pub fn start(self) -> &'a str {
        match self {
            Junk::NotUtf8(start) | Junk::TooLong(start) => start,
        }
    }
}

/// How much of what cannot be a message is shown, in bytes. The id of a message is almost always among its first bytes.
pub const JUNK_START: usize = 4096;

/// A piece of the stream. All pieces together are the stream, except for messages that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The bytes as they came, with the line end or the header; empty when they are too long.
    pub bytes: &'a [u8],
    /// What they are; `None` for a blank line, and for half a message at the end of the stream.
    pub frame: Option<Frame<'a>>,
    /// How messages are framed, as far as that is known here: see [`Splitter::framing`].
    pub framing: Option<Framing>,
}

/// The space to read into: as much as a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// A buffer that a message made larger than this is given back when the message is through.
const KEPT: usize = 1024 * 1024;

/// Cuts a stream of bytes into frames, however the bytes arrive.
///
/// A message is a line, or comes behind a `Content-Length` header. Each is recognised at any time, so nothing that a program
/// prints before or between its messages decides how the rest is read. A header counts only if it is followed by a
/// blank line and by as much JSON as it says; after the first such message, later headers are taken at their word.
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
    /// How the last message was framed.
    framing: Option<Framing>,
    limit: usize,
    state: State,
    /// The next line is text, although it looks like a header.
    is_text: bool,
    at_start: bool,
    at_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a line.
    Line,
    /// Inside a line that is too long: everything up to its end is dropped.
    DropLine,
    /// Inside a block of headers, of which so many bytes and lines have been read.
    Header { read: usize, lines: usize, length: Option<usize> },
    /// Behind so many bytes of headers, which announced so many bytes.
    Body { header: usize, length: usize, has_line_end: bool },
    /// The same, with a message that is too long.
    LongBody { header: usize, length: usize },
    /// Inside a message that is too long: so many bytes are still to be dropped.
    DropBody(usize),
}

/// A piece, as ranges of the buffer.
enum Cut {
    /// No frame: a blank line, or half a message at the end of the stream.
    Blank {
        bytes: Range<usize>,
    },
    Message {
        bytes: Range<usize>,
        text: Range<usize>,
    },
    TooLong {
        start: Range<usize>,
    },
}

impl Splitter {
    /// A splitter for messages of at most `limit` bytes. `framing` is what the first message is expected to have.
    pub fn new(framing: Option<Framing>, limit: usize) -> Self {
        Splitter {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            framing,
            limit,
            state: State::Line,
            is_text: false,
            at_start: true,
            at_end: false,
        }
    }

    /// How the last message was framed. What begins like no message, such as a banner, does not count.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The buffer to append bytes to, with room for a good many. Only append: what is in it is looked after here.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.make_room(CHUNK / 4);
        &mut self.buffer
    }

    /// Appends bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Makes room for so many bytes. What is done with gives its room first, so that a buffer is never much larger than the longest
    /// message and what is fed at once.
    fn make_room(&mut self, wanted: usize) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > KEPT {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.capacity() - self.buffer.len() < wanted {
            // Moved only when less is left than was taken since the last time, so that a byte is moved once on average.
            if self.start > self.held() {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            self.buffer.reserve(CHUNK.max(wanted));
        }
    }

    /// Notes that the stream has ended: what is left are lines, even without a line end, unless it is half a message.
    pub fn end(&mut self) {
        self.at_end = true;
    }

    /// The next frame, when all of it is there.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            match self.cut()? {
                Cut::Blank { .. } => {}
                Cut::Message { text, .. } => return Some(self.message(text)),
                Cut::TooLong { start } => return Some(self.too_long(start)),
            }
        }
    }

    /// The next piece of the stream, for whoever passes all bytes on.
    pub fn next_piece(&mut self) -> Option<Piece<'_>> {
        let (bytes, frame) = match self.cut()? {
            Cut::Blank { bytes } => (bytes, None),
            Cut::Message { bytes, text } => (bytes, Some(self.message(text))),
            Cut::TooLong { start } => (0..0, Some(self.too_long(start))),
        };
        Some(Piece { bytes: &self.buffer[bytes], frame, framing: self.framing })
    }

    #[inline]
    fn cut(&mut self) -> Option<Cut> {
        loop {
            let cut = match self.state {
                State::Line => self.cut_line()?,
                State::DropLine => self.drop_line()?,
                State::Header { read, lines, length } => self.read_header(read, lines, length)?,
                State::Body { header, length, has_line_end } => self.cut_body(header, length, has_line_end)?,
                State::LongBody { header, length } => self.cut_long_body(header, length)?,
                State::DropBody(left) => self.drop_body(left)?,
            };
            if cut.is_some() {
                return cut;
            }
        }
    }

    // Each step returns `None` when it needs more bytes, and `Some(None)` when the next step has to go on.

    #[inline]
    fn cut_line(&mut self) -> Option<Option<Cut>> {
        let Some(end) = self.find_line_end() else {
            if self.is_too_long(self.buffer.len()) {
                return Some(Some(self.cut_long_line()));
            }
            return (self.at_end && self.held() > 0).then(|| Some(self.cut_last_line()));
        };
        let line = &self.buffer[self.start..end];
        if self.is_too_long(end) {
            return Some(Some(self.cut_long_line()));
        }
        // Nearly every line is a message, and ends like one.
        let is_text = std::mem::take(&mut self.is_text) || matches!(line, [.., b'}' | b']']);
        if !is_text && let Some(at) = header::find(line) {
            if at > 0 {
                return Some(Some(self.cut_text(self.start + at)));
            }
            self.searched = 0;
            self.state = State::Header { read: 0, lines: 0, length: None };
            return Some(None);
        }
        if header::begins_like_message(line) {
            self.framing = Some(Framing::Lines);
        }
        Some(Some(self.cut_text(end + 1)))
    }

    /// Cuts a line that ends before `end`, with its line end if it has one.
    fn cut_text(&mut self, end: usize) -> Cut {
        let bytes = self.start..end;
        let mut text = bytes.clone();
        if self.at_start {
            self.at_start = false;
            if self.buffer[text.clone()].starts_with(b"\xEF\xBB\xBF") {
                text.start += 3;
            }
        }
        while text.start < text.end && self.buffer[text.start].is_ascii_whitespace() {
            text.start += 1;
        }
        while text.start < text.end && self.buffer[text.end - 1].is_ascii_whitespace() {
            text.end -= 1;
        }
        self.advance(bytes.len());
        if text.is_empty() { Cut::Blank { bytes } } else { Cut::Message { bytes, text } }
    }

    /// Cuts a line without a line end at the end of the stream. A message that was cut off is not one.
    fn cut_last_line(&mut self) -> Cut {
        match self.cut_text(self.buffer.len()) {
            Cut::Message { bytes, text } if header::is_cut_off(&self.buffer[text.clone()]) => Cut::Blank { bytes },
            cut => cut,
        }
    }

    fn cut_long_line(&mut self) -> Cut {
        self.at_start = false;
        self.is_text = false;
        self.state = State::DropLine;
        Cut::TooLong { start: self.start..self.start + JUNK_START.min(self.limit) }
    }

    fn drop_line(&mut self) -> Option<Option<Cut>> {
        let Some(end) = self.find_line_end() else {
            // The end of the line may be a header.
            let kept = if self.at_end { 0 } else { self.held().min(header::REACH) };
            self.advance(self.held() - kept);
            self.searched = kept;
            return None;
        };
        // How the line begins is gone, or would be if its bytes had come one by one.
        self.advance((end - self.start).saturating_sub(header::REACH));
        let line = &self.buffer[self.start..end];
        match header::find(line).filter(|at| line.len() - at <= self.limit) {
            Some(at) => self.advance(at),
            None => self.advance(end + 1 - self.start),
        }
        self.state = State::Line;
        Some(None)
    }

    fn read_header(&mut self, read: usize, lines: usize, length: Option<usize>) -> Option<Option<Cut>> {
        self.searched = self.searched.max(read);
        let Some(end) = self.find_line_end() else {
            if !self.at_end && self.held() - read <= header::MAX_LINE {
                return None;
            }
            return self.reject_header();
        };
        let line = &self.buffer[self.start + read..end];
        // Counted with the blanks around it, as where the line end has not arrived yet.
        if line.len() > header::MAX_LINE {
            return self.reject_header();
        }
        let line = line.trim_ascii();
        let read = end + 1 - self.start;
        if line.is_empty() {
            return self.end_header(read, length);
        }
        let length = match header::read(line) {
            Some(Header::Length(length)) => Some(length),
            Some(Header::Other) => length,
            None => return self.reject_header(),
        };
        if lines == header::MAX_LINES {
            return self.reject_header();
        }
        self.state = State::Header { read, lines: lines + 1, length };
        Some(None)
    }

    fn end_header(&mut self, header: usize, length: Option<usize>) -> Option<Option<Cut>> {
        let Some(length) = length.filter(|length| self.trusts_headers() || *length <= self.limit) else {
            return self.reject_header();
        };
        self.searched = header;
        self.state = if length > self.limit {
            State::LongBody { header, length }
        } else {
            State::Body { header, length, has_line_end: false }
        };
        Some(None)
    }

    fn cut_body(&mut self, header: usize, length: usize, has_line_end: bool) -> Option<Option<Cut>> {
        let start = self.start + header;
        let text = start..start.saturating_add(length);
        let is_whole = self.buffer.len() >= text.end;
        if !self.trusts_headers() {
            let there = &self.buffer[text.start..text.end.min(self.buffer.len())];
            if !header::begins_like_message(there) && (is_whole || there.len() >= 2) {
                return self.reject_header();
            }
            if !has_line_end && let Some(end) = self.find_line_end().filter(|end| *end + 1 < text.end) {
                // A whole message on a line of its own: this is a stream of lines after all.
                if header::is_json(&self.buffer[text.start..end]) {
                    return self.reject_header();
                }
                self.state = State::Body { header, length, has_line_end: true };
            }
            if is_whole && !header::is_json(&self.buffer[text.clone()]) {
                return self.reject_header();
            }
        }
        if !is_whole {
            return if self.at_end { self.reject_header() } else { None };
        }
        let bytes = self.start..text.end;
        self.at_start = false;
        self.framing = Some(Framing::ContentLength);
        self.state = State::Line;
        self.advance(bytes.len());
        Some(Some(if text.is_empty() { Cut::Blank { bytes } } else { Cut::Message { bytes, text } }))
    }

    fn cut_long_body(&mut self, header: usize, length: usize) -> Option<Option<Cut>> {
        let shown = self.start + header..self.start + header + JUNK_START.min(self.limit);
        if self.buffer.len() < shown.end {
            return if self.at_end { self.reject_header() } else { None };
        }
        self.advance(header);
        self.state = State::DropBody(length);
        Some(Some(Cut::TooLong { start: shown }))
    }

    fn drop_body(&mut self, left: usize) -> Option<Option<Cut>> {
        let count = left.min(self.held());
        self.advance(count);
        if count < left {
            self.state = State::DropBody(left - count);
            return None;
        }
        self.state = State::Line;
        Some(None)
    }

    /// Goes back to where the block of headers began, whose first line is text. All that follows is looked at anew.
    fn reject_header(&mut self) -> Option<Option<Cut>> {
        self.is_text = true;
        self.searched = 0;
        self.state = State::Line;
        Some(None)
    }

    /// Whether the peer has shown that it frames its messages by headers.
    fn trusts_headers(&self) -> bool {
        self.framing == Some(Framing::ContentLength)
    }

    fn message(&self, text: Range<usize>) -> Frame<'_> {
        let bytes = &self.buffer[text];
        match std::str::from_utf8(bytes) {
            Ok(text) => Frame::Message(text),
            Err(_) => Frame::Junk(Junk::NotUtf8(start_of(bytes))),
        }
    }

    fn too_long(&self, start: Range<usize>) -> Frame<'_> {
        Frame::Junk(Junk::TooLong(start_of(&self.buffer[start])))
    }

    /// Where the first line end is.
    fn find_line_end(&mut self) -> Option<usize> {
        let from = self.start + self.searched;
        let found = memchr::memchr(b'\n', &self.buffer[from..]);
        self.searched = found.map_or(self.held(), |at| from + at - self.start);
        found.map(|at| from + at)
    }

    /// Whether the line that ends before `end`, or goes on there, is longer than the limit.
    fn is_too_long(&self, end: usize) -> bool {
        let length = end - self.start;
        // A carriage return is part of the line end, or may turn out to be.
        length > self.limit && (length - 1 > self.limit || self.buffer[end - 1] != b'\r')
    }

    fn held(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
        self.searched = 0;
    }
}

/// The beginning of some bytes, as far as it is text.
#[cold]
fn start_of(bytes: &[u8]) -> &str {
    let bytes = &bytes[..bytes.len().min(JUNK_START)];
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
