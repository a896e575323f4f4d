//! The reader: walks JSON text from left to right and hands out what it is asked for.

use std::borrow::Cow;

use super::error::PathSegment;
use super::text::{ESCAPED, special_byte};
use super::{DecodeError, MAX_DEPTH, Reason};
use crate::Dialect;
use crate::codec::Decode;

type Result<T> = std::result::Result<T, DecodeError>;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of JSON's own kinds")]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// Reads JSON text once, from left to right.
///
/// The text stays where it is: strings without escapes and raw values are slices of it. The dialect decides how the
/// types of [`model`](crate::model) are read.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    text: &'a str,
    position: usize,
    depth: u16,
    dialect: Dialect,
    tolerated: Vec<DecodeError>,
    list_bytes: usize,
}

/// A place in the text that the reader can go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    position: usize,
    depth: u16,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `text`.
    pub fn new(text: &'a str, dialect: Dialect) -> Self {
        Reader { text, position: 0, depth: 0, dialect, tolerated: Vec::new(), list_bytes: 0 }
    }

    /// The dialect that values are read in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Reads one value and checks that nothing follows it.
    pub fn decode<T: Decode>(&mut self) -> Result<T> {
        let value = T::decode(self)?;
        self.end()?;
        Ok(value)
    }

    /// Checks that nothing but white space is left.
    pub fn end(&mut self) -> Result<()> {
        match self.peek_byte() {
            None => Ok(()),
            Some(_) => Err(DecodeError::new(Reason::Syntax)),
        }
    }

    /// Whether the reader has come to the end of the text.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.text.len()
    }

    /// Takes the errors in optional parts that were ignored.
    pub fn tolerated(&mut self) -> Vec<DecodeError> {
        std::mem::take(&mut self.tolerated)
    }

    /// The bytes that the lists read so far take in memory, without what their items own. A list of small items takes many
    /// times its length on the wire.
    pub fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    /// Counts a list that was read.
    pub(crate) fn count_list<T>(&mut self, list: &Vec<T>) {
        self.list_bytes += list.capacity() * size_of::<T>();
    }

    /// Notes an error that is ignored.
    #[cold]
    pub(crate) fn tolerate(&mut self, error: DecodeError) {
        // A list of a million invalid items needs no million notes.
        if self.tolerated.len() < 16 {
            self.tolerated.push(error);
        }
    }

    /// How many errors have been ignored so far; for [`prepend_to_tolerated`](Self::prepend_to_tolerated).
    pub(crate) fn tolerated_count(&self) -> usize {
        self.tolerated.len()
    }

    /// Adds a segment to the paths of all errors but the first `count` that were ignored.
    pub(crate) fn prepend_to_tolerated(&mut self, count: usize, segment: PathSegment) {
        if self.tolerated.len() > count {
            for error in &mut self.tolerated[count..] {
                error.prepend(segment);
            }
        }
    }

    /// The kind of the next value.
    pub fn peek(&mut self) -> Result<Kind> {
        match self.peek_byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            _ => Err(DecodeError::new(Reason::Syntax)),
        }
    }

    /// Reads `null` if it is next, and returns whether it was.
    #[inline(never)]
    pub fn null(&mut self) -> Result<bool> {
        if self.peek_byte() != Some(b'n') {
            return Ok(false);
        }
        self.literal("null")?;
        Ok(true)
    }

    /// Reads `true` or `false`.
    #[inline(never)]
    pub fn bool(&mut self) -> Result<bool> {
        match self.peek_byte() {
            Some(b't') => self.literal("true").map(|()| true),
            Some(b'f') => self.literal("false").map(|()| false),
            _ => Err(DecodeError::new(Reason::Expected("true or false"))),
        }
    }

    /// Reads a number, and returns its text.
    #[inline(never)]
    pub fn number(&mut self) -> Result<&'a str> {
        match self.peek_byte() {
            Some(b'-' | b'0'..=b'9') => {}
            _ => return Err(DecodeError::new(Reason::Expected("a number"))),
        }
        let start = self.position;
        self.skip_number()?;
        Ok(&self.text[start..self.position])
    }

    /// Reads a string; borrowed when it has no escapes.
    #[inline(never)]
    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek_byte() != Some(b'"') {
            return Err(DecodeError::new(Reason::Expected("a string")));
        }
        self.position += 1;
        let start = self.position;
        self.plain_run()?;
        if self.text.as_bytes()[self.position] == b'"' {
            let slice = &self.text[start..self.position];
            self.position += 1;
            return Ok(Cow::Borrowed(slice));
        }
        self.escaped_string(start).map(Cow::Owned)
    }

    /// Skips one value, and checks that it is JSON.
    ///
    /// Every message passes through here before its params are decoded, so this is one loop without recursion: a bit for
    /// each container that is open tells whether it is an object.
    #[inline(never)]
    pub fn skip(&mut self) -> Result<()> {
        let mut containers: u128 = 0;
        let outside = self.depth;
        loop {
            match self.peek_byte() {
                Some(b'"') => self.skip_string()?,
                Some(b'{') => {
                    self.descend()?;
                    if self.peek_byte() != Some(b'}') {
                        containers = containers << 1 | 1;
                        self.skip_key()?;
                        continue;
                    }
                    self.ascend();
                }
                Some(b'[') => {
                    self.descend()?;
                    if self.peek_byte() != Some(b']') {
                        containers <<= 1;
                        continue;
                    }
                    self.ascend();
                }
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(DecodeError::new(Reason::Syntax)),
            }
            // Behind a value: the next one, or the end of the container, and perhaps of those around it.
            loop {
                if self.depth == outside {
                    return Ok(());
                }
                let is_object = containers & 1 == 1;
                match self.peek_byte() {
                    Some(b',') => {
                        self.position += 1;
                        if is_object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    Some(b'}') if is_object => {}
                    Some(b']') if !is_object => {}
                    _ => return Err(DecodeError::new(Reason::Syntax)),
                }
                self.ascend();
                containers >>= 1;
            }
        }
    }

    /// Skips one value and returns its text.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.peek()?;
        let start = self.position;
        self.skip()?;
        Ok(&self.text[start..self.position])
    }

    /// Enters an object.
    #[inline(never)]
    pub fn begin_object(&mut self) -> Result<()> {
        if self.peek_byte() != Some(b'{') {
            return Err(DecodeError::new(Reason::Expected("an object")));
        }
        self.descend()
    }

    /// Enters an object if it begins with `start`, which is its bracket and whole members.
    pub(crate) fn object_begins_with(&mut self, start: &str) -> bool {
        let begins = self.text.as_bytes()[self.position..].starts_with(start.as_bytes()) && self.depth < MAX_DEPTH;
        if begins {
            self.depth += 1;
            self.position += start.len();
        }
        begins
    }

    /// Reads the next key of the current object, and stops before its value; `None` leaves the object.
    #[inline(never)]
    pub fn next_key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>> {
        if !self.next_member(first, b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Reads the next key of the current object if it is this one, given as `,"key":`, and there is no space around it.
    #[inline]
    pub(crate) fn next_key_is(&mut self, quoted: &str, first: &mut bool) -> bool {
        let quoted = &quoted.as_bytes()[usize::from(*first)..];
        let is_next = self.text.as_bytes()[self.position..].starts_with(quoted);
        if is_next {
            self.position += quoted.len();
            *first = false;
        }
        is_next
    }

    /// Enters an array.
    #[inline(never)]
    pub fn begin_array(&mut self) -> Result<()> {
        if self.peek_byte() != Some(b'[') {
            return Err(DecodeError::new(Reason::Expected("an array")));
        }
        self.descend()
    }

    /// Whether the current array has another item; `false` leaves the array.
    #[inline(never)]
    pub fn next_item(&mut self, first: &mut bool) -> Result<bool> {
        self.next_member(first, b']')
    }

    /// The position of the reader, to go back to.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { position: self.position, depth: self.depth }
    }

    #[inline]
    pub(crate) fn go_back(&mut self, mark: Mark) {
        (self.position, self.depth) = (mark.position, mark.depth);
    }

    /// Goes back to the value that could not be read, skips it, and notes the error.
    #[cold]
    pub(crate) fn forgive(&mut self, before: Mark, error: DecodeError) -> Result<()> {
        self.go_back(before);
        self.skip()?;
        self.tolerate(error);
        Ok(())
    }

    /// Reads a value with `read`. If that fails, skips the value; the inner result is the error.
    pub(crate) fn attempt<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<std::result::Result<T, DecodeError>> {
        let before = self.mark();
        match read(self) {
            Ok(value) => Ok(Ok(value)),
            Err(error) => {
                self.go_back(before);
                self.skip()?;
                Ok(Err(error))
            }
        }
    }

    /// The string value of `tag` in the next object. Mostly it comes first: then the reader is in the object, behind it,
    /// and the second value is true. If not, it stays before the object. `quoted` is the tag as `,"tag":`.
    #[inline(never)]
    pub(crate) fn read_tag(&mut self, tag: &'static str, quoted: &'static str) -> Result<(Option<Cow<'a, str>>, bool)> {
        let start = self.mark();
        self.begin_object()?;
        if self.next_key_is(quoted, &mut true) {
            return self.string().map(|value| (Some(value), true)).map_err(|error| error.in_field(tag));
        }
        self.go_back(start);
        Ok((self.peek_tag(tag)?, false))
    }

    /// The string value of `tag` in the next object, without moving on.
    #[inline(never)]
    pub(crate) fn peek_tag(&mut self, tag: &'static str) -> Result<Option<Cow<'a, str>>> {
        self.look_ahead(|reader| {
            reader.begin_object()?;
            let mut first = true;
            while let Some(key) = reader.next_key(&mut first)? {
                if key == tag {
                    return reader.string().map(Some).map_err(|error| error.in_field(tag));
                }
                reader.skip()?;
            }
            Ok(None)
        })
    }

    /// Whether the next object has `key`, without moving on.
    pub(crate) fn has_key(&mut self, key: &str) -> Result<bool> {
        self.look_ahead(|reader| {
            reader.begin_object()?;
            let mut first = true;
            while let Some(name) = reader.next_key(&mut first)? {
                if name == key {
                    return Ok(true);
                }
                reader.skip()?;
            }
            Ok(false)
        })
    }

    /// Reads the next value with `read`, without moving on.
    pub(crate) fn look_ahead<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.mark();
        let value = read(self);
        self.go_back(before);
        value
    }

    #[inline]
    fn peek_byte(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.position) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.position += 1,
                _ => return Some(byte),
            }
        }
        None
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek_byte() == Some(byte) {
            self.position += 1;
            Ok(())
        } else {
            Err(DecodeError::new(Reason::Syntax))
        }
    }

    fn literal(&mut self, word: &str) -> Result<()> {
        if self.text.as_bytes()[self.position..].starts_with(word.as_bytes()) {
            self.position += word.len();
            Ok(())
        } else {
            Err(DecodeError::new(Reason::Syntax))
        }
    }

    fn descend(&mut self) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(DecodeError::new(Reason::TooDeep));
        }
        self.depth += 1;
        self.position += 1;
        Ok(())
    }

    fn ascend(&mut self) {
        self.depth -= 1;
        self.position += 1;
    }

    fn next_member(&mut self, first: &mut bool, close: u8) -> Result<bool> {
        let byte = self.peek_byte();
        if byte == Some(close) {
            self.ascend();
            return Ok(false);
        }
        if *first {
            *first = false;
        } else if byte == Some(b',') {
            self.position += 1;
            // A comma before the closing bracket is not JSON.
            if self.peek_byte() == Some(close) {
                return Err(DecodeError::new(Reason::Syntax));
            }
        } else {
            return Err(DecodeError::new(Reason::Syntax));
        }
        Ok(true)
    }

    fn skip_key(&mut self) -> Result<()> {
        if self.peek_byte() != Some(b'"') {
            return Err(DecodeError::new(Reason::Syntax));
        }
        self.skip_string()?;
        self.expect(b':')
    }

    fn skip_number(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let digits = |position: &mut usize| {
            let start = *position;
            while bytes.get(*position).is_some_and(u8::is_ascii_digit) {
                *position += 1;
            }
            *position > start
        };
        let mut at = self.position;
        if bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let good = match bytes.get(at) {
            Some(b'0') => {
                at += 1;
                true
            }
            _ => digits(&mut at),
        };
        let mut good = good;
        if good && bytes.get(at) == Some(&b'.') {
            at += 1;
            good = digits(&mut at);
        }
        if good && matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
            good = digits(&mut at);
        }
        if !good {
            return Err(DecodeError::new(Reason::Syntax));
        }
        self.position = at;
        Ok(())
    }

    fn skip_string(&mut self) -> Result<()> {
        self.position += 1;
        loop {
            self.plain_run()?;
            if self.text.as_bytes()[self.position] == b'"' {
                self.position += 1;
                return Ok(());
            }
            self.escape()?;
        }
    }

    /// Moves to the next quote or backslash inside a string.
    fn plain_run(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let at = self.position + special_byte(&bytes[self.position..]);
        self.position = at;
        match bytes.get(at) {
            Some(b'"' | b'\\') => Ok(()),
            // The end of the text, or a control character that JSON wants escaped.
            _ => Err(DecodeError::new(Reason::Syntax)),
        }
    }

    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<String> {
        let mut string = String::with_capacity((self.position - start) * 2);
        string.push_str(&self.text[start..self.position]);
        loop {
            match self.text.as_bytes()[self.position] {
                b'"' => {
                    self.position += 1;
                    return Ok(string);
                }
                _ => string.push(self.escape()?),
            }
            let run = self.position;
            self.plain_run()?;
            string.push_str(&self.text[run..self.position]);
        }
    }

    /// Reads one escape, the backslash included. A lone surrogate becomes U+FFFD: JavaScript writes them, and one
    /// broken character is no reason to lose a message.
    #[inline]
    fn escape(&mut self) -> Result<char> {
        let code = self.text.as_bytes().get(self.position + 1).copied().unwrap_or_default();
        self.position += 2;
        match ESCAPED[usize::from(code)] {
            0 if code == b'u' => self.unicode_escape(),
            0 => Err(DecodeError::new(Reason::Syntax)),
            plain => Ok(plain.into()),
        }
    }

    #[inline(never)]
    fn unicode_escape(&mut self) -> Result<char> {
        let high = self.hex4()?;
        if let Some(char) = char::from_u32(high) {
            return Ok(char);
        }
        let bytes = self.text.as_bytes();
        if (0xD800..0xDC00).contains(&high) && bytes[self.position..].starts_with(b"\\u") {
            let back = self.position;
            self.position += 2;
            let low = self.hex4()?;
            if (0xDC00..0xE000).contains(&low) {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.position..self.position + 4);
        let mut code = 0;
        for &digit in digits.ok_or_else(|| DecodeError::new(Reason::Syntax))? {
            let value = (digit as char).to_digit(16).ok_or_else(|| DecodeError::new(Reason::Syntax))?;
            code = code * 16 + value;
        }
        self.position += 4;
        Ok(code)
    }
}
