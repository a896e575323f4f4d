//! Server-sent events: writing those of a stream, reading those of a server.

use bytes::{Buf, BytesMut};

/// A line that says nothing, so that whoever is in between does not give up.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Writes a message as an event with its number.
pub(crate) fn write(out: &mut BytesMut, number: u64, message: &str) {
    out.reserve(message.len() + 32);
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(b"\ndata: ");
    let start = out.len();
    out.extend_from_slice(message.as_bytes());
    // Line ends stand between the parts of JSON, never in its strings.
    for byte in &mut out[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\n\n");
}

/// An event of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) data: String,
    /// The id that the server gave it, or the last one before it.
    pub(crate) id: Option<String>,
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
            let rest = &self.buffer[self.searched..];
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.searched = self.buffer.len();
                let held = self.buffer.len() + self.event.data.len();
                return if held > self.longest { Err(ReadError::TooLong) } else { Ok(None) };
            };
            let line = self.buffer.split_to(self.searched + end);
            self.after_return = self.buffer[0] == b'\r';
            self.buffer.advance(1);
            self.searched = 0;
            let line = std::str::from_utf8(&line).map_err(|_| ReadError::NotText)?;
            let line = if std::mem::take(&mut self.is_first) { line.trim_start_matches('\u{feff}') } else { line };
            if line.is_empty() {
                if std::mem::take(&mut self.has_data) {
                    let id = self.event.id.clone();
                    return Ok(Some(std::mem::replace(&mut self.event, Event { data: String::new(), id })));
                }
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
                "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<(Option<String>, String)> {
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
        assert_eq!(whole, [(Some("1".into()), "{\"a\": 1}".into()), (Some("2".into()), "{}".into())]);
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
