//! Cuts a stream of bytes into events, in time that is linear in its length and in bounded memory.

/// The longest event that is read. The largest there are, of calls with whole files in them, have a tenth of that.
pub(super) const LONGEST_EVENT: usize = 8 << 20;

/// How a server tells one event from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: lines that begin with `data:`, up to an empty one.
    Events,
    /// A JSON value on each line, as Ollama's own API has it.
    Lines,
}

/// An event, or a line, is longer than anyone needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Cuts bytes into events. Is fed pieces of any size.
#[derive(Debug)]
pub(super) struct Cutter {
    framing: Framing,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The data of the event so far; `None` as long as it has none.
    data: Option<Vec<u8>>,
    /// Whether the last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    is_first_line: bool,
}

impl Cutter {
    pub(super) fn new(framing: Framing) -> Self {
        Cutter { framing, line: Vec::new(), data: None, after_return: false, is_first_line: true }
    }

    /// Takes in bytes, and gives out the events that they complete.
    pub(super) fn handle(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        if std::mem::take(&mut self.after_return) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&bytes[..end])?;
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut events)?;
            // The room is used again for the next line.
            self.line = line;
            self.line.clear();
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend(bytes)?;
        Ok(events)
    }

    /// What is left when nothing more comes. Some servers forget the last empty line.
    pub(super) fn finish(&mut self) -> Result<Vec<String>, TooLong> {
        self.handle(b"\n\n")
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let so_far = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if so_far + bytes.len() > LONGEST_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], events: &mut Vec<String>) -> Result<(), TooLong> {
        let mut line = line;
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if self.framing == Framing::Lines {
            events.extend((!line.trim_ascii().is_empty()).then(|| text(line)));
            return Ok(());
        }
        if line.is_empty() {
            events.extend(self.data.take().map(|data| text(&data)));
            return Ok(());
        }
        // Other fields, and comments, are of no use to us.
        let Some(value) = line.strip_prefix(b"data") else { return Ok(()) };
        let value = match value {
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [] => value,
            _ => return Ok(()),
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        // Many short lines of data are one long event, too.
        if self.data.as_ref().map_or(0, Vec::len) > LONGEST_EVENT { Err(TooLong) } else { Ok(()) }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    /// The events of a text that comes in pieces of this size.
    fn events(framing: Framing, bytes: &[u8], size: usize) -> Vec<String> {
        let mut cutter = Cutter::new(framing);
        let mut events: Vec<String> = bytes.chunks(size).flat_map(|piece| cutter.handle(piece).unwrap()).collect();
        events.extend(cutter.finish().unwrap());
        events
    }

    #[test]
    fn events_are_the_same_however_they_come() {
        let stream = "\u{feff}: hello\n\ndata: a\r\ndata:b\r\n\r\nevent: x\rdata: ü\r\rid: 7\n\ndatabase: no\n\ndata\n\ndata: last";
        for size in [1, 2, 3, 7, 1000] {
            let events = events(Framing::Events, stream.as_bytes(), size);
            assert_eq!(events, ["a\nb", "ü", "", "last"], "{size}");
        }
        for size in [1, 2, 1000] {
            assert_eq!(events(Framing::Lines, b"{\"a\":1}\r\n\n {} \n{", size), ["{\"a\":1}", " {} ", "{"], "{size}");
        }
    }

    #[test]
    fn long_events_are_read_up_to_a_limit_in_linear_time() {
        let start = std::time::Instant::now();
        let mut cutter = Cutter::new(Framing::Events);
        let piece = [b'x'; 256];
        cutter.handle(b"data: ").unwrap();
        for _ in 0..(LONGEST_EVENT - 6) / piece.len() {
            assert!(cutter.handle(&piece).unwrap().is_empty());
        }
        let events = cutter.handle(b"\n\n").unwrap();
        assert_eq!(events[0].len(), (LONGEST_EVENT - 6) / 256 * 256);
        // What is longer is refused, in one line or in many.
        let mut cutter = Cutter::new(Framing::Events);
        assert_eq!(cutter.handle(&vec![b'x'; LONGEST_EVENT + 1]), Err(TooLong));
        let mut cutter = Cutter::new(Framing::Events);
        let line = [b"data:".as_slice(), &[b'y'; 1 << 16], b"\n"].concat();
        assert_eq!(cutter.handle(&line.repeat(LONGEST_EVENT / line.len() + 2)), Err(TooLong));
        assert!(start.elapsed() < std::time::Duration::from_secs(30));
    }
}
