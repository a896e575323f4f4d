//! Server-sent events: writing those of a stream, reading those of a server.

use std::fmt::Write;

use bytes::{Buf, BytesMut};
use memchr::memchr2;

/// A line that says nothing, so that whoever is in between does not give up.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Writes a message as an event with its number.
pub(crate) fn write(out: &mut BytesMut, number: u64, message: &str) {
    out.reserve(message.len() + 36);
    // Writing into a buffer does not fail.
    let _ = write!(out, "id: {number}\ndata: ");
    let start = out.len();
    out.extend_from_slice(message.as_bytes());
    // Line ends stand between the parts of JSON, never in its strings.
    let mut from = start;
    while let Some(at) = memchr2(b'\n', b'\r', &out[from..]) {
        out[from + at] = b' ';
        from += at + 1;
    }
    out.extend_from_slice(b"\n\n");
}

/// An event of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) data: String,
    /// The id that the server gave it, or the last one before it, if that is a number.
    pub(crate) id: Option<u64>,
}

/// The longest line that is not data.
const LONGEST_OTHER: usize = 64 << 10;

/// Lines of data that are longer are not copied.
const LONGEST_ALONE: usize = 64 << 10;

/// The number that an id is: digits alone, as many as the largest one has.
fn read_id(value: &str) -> Option<u64> {
    let is_number = value.len() <= 20 && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.parse().ok() } else { None }
}

/// Why a stream of events cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// A line or an event is longer than allowed.
    TooLong,
    /// It is not UTF-8.
    NotText,
}

/// Cuts a stream of bytes into events.
#[derive(Debug)]
pub(crate) struct EventReader {
    buffer: BytesMut,
    /// Bytes of the buffer that have no line end in them.
    searched: usize,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    is_first: bool,
    longest: usize,
}

impl EventReader {
    pub(crate) fn new(longest: usize) -> Self {
        EventReader {
            buffer: BytesMut::new(),
            searched: 0,
            event: Event::default(),
            has_data: false,
            after_return: false,
            is_first: true,
            longest,
        }
    }

    /// How many bytes are held of what is not whole yet.
    pub(crate) fn held(&self) -> usize {
        self.buffer.len() + self.event.data.len()
    }

    /// Makes the data of the event of a long line `data:`, which ends before `end`, without a second copy of it.
    fn take_line(&mut self, end: usize) -> Result<(), ReadError> {
        let rest = BytesMut::from(&self.buffer[end + 1..]);
        let mut line = Vec::from(std::mem::replace(&mut self.buffer, rest));
        line.truncate(end);
        let start = memchr::memchr(b':', &line).map_or(0, |at| at + 1);
        line.drain(..start + usize::from(line.get(start) == Some(&b' ')));
        if line.len() > self.longest {
            return Err(ReadError::TooLong);
        }
        self.event.data = String::from_utf8(line).map_err(|_| ReadError::NotText)?;
        self.has_data = true;
        Ok(())
    }

    /// Takes bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event that is whole.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            if self.after_return && !self.buffer.is_empty() {
                self.after_return = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                    self.searched = self.searched.saturating_sub(1);
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                let is_data = self.buffer.starts_with(b"data") || self.buffer.starts_with("\u{feff}data".as_bytes());
                let is_too_long = self.held() > self.longest || (!is_data && self.buffer.len() > LONGEST_OTHER);
                return if is_too_long { Err(ReadError::TooLong) } else { Ok(None) };
            };
            let end = self.searched + end;
            self.searched = 0;
            self.after_return = self.buffer[end] == b'\r';
            let line = std::str::from_utf8(&self.buffer[..end]).map_err(|_| ReadError::NotText)?;
            let line = if std::mem::take(&mut self.is_first) { line.trim_start_matches('\u{feff}') } else { line };
            let is_end = line.is_empty();
            if end > LONGEST_ALONE && !self.has_data && line.starts_with("data:") {
                self.take_line(end)?;
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => {
                    if self.has_data {
                        self.event.data.push('\n');
                    }
                    self.has_data = true;
                    if self.event.data.len() + value.len() > self.longest {
                        return Err(ReadError::TooLong);
                    }
                    self.event.data.push_str(value);
                }
                "id" if !value.contains('\0') => self.event.id = read_id(value),
                _ => {}
            }
            self.buffer.advance(end + 1);
            if is_end && std::mem::take(&mut self.has_data) {
                let id = self.event.id;
                return Ok(Some(std::mem::replace(&mut self.event, Event { data: String::new(), id })));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<(Option<u64>, String)> {
        let mut reader = EventReader::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            reader.feed(chunk);
            while let Some(event) = reader.next().unwrap() {
                events.push((event.id, event.data));
            }
        }
        events
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let mut out = BytesMut::new();
        write(&mut out, 1, "{\"a\":\n1}");
        out.extend_from_slice(KEEP_ALIVE);
        write(&mut out, 2, "{}");
        let whole = read(&[&out]);
        assert_eq!(whole, [(Some(1), "{\"a\": 1}".into()), (Some(2), "{}".into())]);
        let bytes: Vec<&[u8]> = out.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn all_line_ends_and_unknown_fields_are_understood() {
        let text = b"\xef\xbb\xbfevent: x\r\ndata: a\r\ndata:b\r\n\r\ndata: c\r\rdata\n\n: hm\n\n";
        let events: Vec<String> = read(&[text]).into_iter().map(|(_, data)| data).collect();
        assert_eq!(events, ["a\nb", "c", ""]);
        let split = read(&[b"data: a\r", b"\n\r", b"\n", b"data: b\n\n"]);
        assert_eq!(split.len(), 2);
    }

    #[test]
    fn an_id_is_a_number_and_no_line_but_data_is_long() {
        let ids: Vec<Option<u64>> =
            read(&[b"id: 7\ndata: a\n\nid: +8\ndata: b\n\nid: 000000000000000000009\ndata: c\n\n"])
                .into_iter()
                .map(|(id, _)| id)
                .collect();
        assert_eq!(ids, [Some(7), None, None]);
        let mut reader = EventReader::new(10 << 20);
        reader.feed(b"id: ");
        reader.feed(&vec![b'9'; LONGEST_OTHER]);
        assert_eq!(reader.next(), Err(ReadError::TooLong));
        // Data may be, and is held once.
        let mut reader = EventReader::new(10 << 20);
        for (prefix, more) in [("data: ", ""), ("data:", ""), ("data: ", "data: z\n")] {
            let long = "x".repeat(LONGEST_ALONE + 1);
            reader.feed(format!("id: 4\n{prefix}{long}\n{more}\ndata: y\n\n").as_bytes());
            let event = reader.next().unwrap().unwrap();
            let expected = if more.is_empty() { long } else { format!("{long}\nz") };
            assert!(event.data == expected && event.id == Some(4), "{}", event.data.len());
            assert_eq!(reader.next().unwrap().unwrap().data, "y");
            assert_eq!(reader.held(), 0);
        }
    }

    #[test]
    fn what_is_too_long_is_an_error() {
        let mut reader = EventReader::new(10);
        reader.feed(b"data: 12345678901");
        assert_eq!(reader.next(), Err(ReadError::TooLong));
        let mut reader = EventReader::new(10);
        reader.feed(b"data: 123456\ndata: 123456\n\n");
        assert_eq!(reader.next(), Err(ReadError::TooLong));
        let mut reader = EventReader::new(10);
        reader.feed(b"data: \xff\n\n");
        assert_eq!(reader.next(), Err(ReadError::NotText));
    }
}
