//! The writer: appends JSON text to a buffer of bytes.

use super::text::special_byte;
use crate::Dialect;
use crate::codec::Encode;

/// Appends compact JSON to a buffer. It never writes a raw line end, so what it wrote is one line.
///
/// The dialect decides how the types of [`model`](crate::model) are written. What the dialect does not have is left out
/// and noted, see [`lost`](Writer::lost).
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    dialect: Dialect,
    lost: Vec<&'static str>,
}

impl<'b> Writer<'b> {
    /// A writer that appends to `buffer`.
    pub fn new(buffer: &'b mut Vec<u8>, dialect: Dialect) -> Self {
        Writer { buffer, dialect, lost: Vec::new() }
    }

    /// The dialect that values are written in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Takes the names of the fields that were left out because the dialect does not have them.
    pub fn lost(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.lost)
    }

    #[cold]
    pub(crate) fn lose(&mut self, what: &'static str) {
        if !self.lost.contains(&what) {
            self.lost.push(what);
        }
    }

    /// Writes any value that has a wire form.
    pub fn value<T: Encode + ?Sized>(&mut self, value: &T) {
        value.encode(self);
    }

    /// Appends text that is JSON already, on one line.
    #[inline(never)]
    pub fn raw(&mut self, json: &str) {
        self.buffer.extend_from_slice(json.as_bytes());
    }

    /// Writes a string with its quotes and escapes.
    #[inline(never)]
    pub fn string(&mut self, text: &str) {
        self.buffer.reserve(text.len() + 2);
        self.buffer.push(b'"');
        let mut rest = text.as_bytes();
        loop {
            let run = special_byte(rest);
            self.buffer.extend_from_slice(&rest[..run]);
            let Some(&byte) = rest.get(run) else { break };
            self.escape(byte);
            rest = &rest[run + 1..];
        }
        self.buffer.push(b'"');
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.raw("null");
    }

    /// Opens an object; [`key`](Writer::key) and a value follow in turn.
    pub fn begin_object(&mut self) {
        self.buffer.push(b'{');
    }

    /// Writes the comma, if one is needed, and the key of the next value. Keys are the protocol's own and need no escape.
    pub fn key(&mut self, key: &str) {
        self.separate();
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(key.as_bytes());
        self.buffer.extend_from_slice(b"\":");
    }

    /// The same for a key that has its comma and colon already, and perhaps a value: `,"name":`.
    pub(crate) fn quoted_key(&mut self, key: &'static str) {
        let is_first = matches!(self.buffer.last(), Some(b'{'));
        self.buffer.extend_from_slice(&key.as_bytes()[usize::from(is_first)..]);
    }

    /// The same for any key: it is escaped.
    pub fn free_key(&mut self, key: &str) {
        self.separate();
        self.string(key);
        self.buffer.push(b':');
    }

    /// Closes an object.
    pub fn end_object(&mut self) {
        self.buffer.push(b'}');
    }

    /// Opens an array; [`item`](Writer::item) comes before every value.
    pub fn begin_array(&mut self) {
        self.buffer.push(b'[');
    }

    /// Writes the comma before the next item, if one is needed.
    pub fn item(&mut self) {
        self.separate();
    }

    /// Closes an array.
    pub fn end_array(&mut self) {
        self.buffer.push(b']');
    }

    fn separate(&mut self) {
        // The last byte tells whether the container is still empty; no other state is needed.
        if !matches!(self.buffer.last(), Some(b'{' | b'[')) {
            self.buffer.push(b',');
        }
    }

    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => {
                let escape = [b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]];
                self.buffer.extend_from_slice(&escape);
                return;
            }
        };
        self.buffer.extend_from_slice(&[b'\\', short]);
    }
}
