//! Text in a file: its encoding and its line ends, which a change keeps.

/// How text is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With a byte order mark, as some programs want it.
    Utf8Marked,
    Utf16Little,
    Utf16Big,
    /// One byte a character. What is in another encoding of that kind is shown wrongly, and kept as it is all the same.
    Latin1,
}

/// The text of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    /// Without the byte order mark.
    pub(crate) content: String,
    pub(crate) encoding: Encoding,
}

/// Why bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextError {
    /// There are zero bytes: it is a program, an archive, a picture.
    Binary,
    /// It may be text in an encoding that is not known here.
    Encoding,
}

const MARK: char = '\u{feff}';

/// Where zero bytes are looked for. What has none here and is no UTF-8 is told from it as well as can be.
const SNIFFED: usize = 8 << 10;

impl Text {
    pub(crate) fn new(content: impl Into<String>) -> Self {
        Text { content: content.into(), encoding: Encoding::Utf8 }
    }

    /// A text as others hand it over: a mark at its beginning is one of the encoding.
    pub(crate) fn from_marked(mut content: String) -> Self {
        let encoding = if content.starts_with(MARK) {
            content.drain(..MARK.len_utf8());
            Encoding::Utf8Marked
        } else {
            Encoding::Utf8
        };
        Text { content, encoding }
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self, TextError> {
        let wide = |encoding, unit: fn([u8; 2]) -> u16| {
            let (units, rest) = bytes[2..].as_chunks::<2>();
            let content: Result<String, _> = char::decode_utf16(units.iter().map(|pair| unit(*pair))).collect();
            match content {
                Ok(content) if rest.is_empty() => Ok(Text { content, encoding }),
                _ => Err(TextError::Encoding),
            }
        };
        match bytes.as_slice() {
            [0xff, 0xfe, ..] => wide(Encoding::Utf16Little, u16::from_le_bytes),
            [0xfe, 0xff, ..] => wide(Encoding::Utf16Big, u16::from_be_bytes),
            _ if is_binary(&bytes) => Err(TextError::Binary),
            _ => match String::from_utf8(bytes) {
                Ok(content) => Ok(Text::from_marked(content)),
                Err(error) => {
                    let content = error.as_bytes().iter().copied().map(char::from).collect();
                    Ok(Text { content, encoding: Encoding::Latin1 })
                }
            },
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mark = |is_big| std::iter::once(MARK).chain(self.content.chars()).flat_map(move |c| wide(c, is_big));
        match self.encoding {
            Encoding::Utf8 => self.content.clone().into_bytes(),
            Encoding::Utf8Marked => self.marked().into_bytes(),
            Encoding::Utf16Little => mark(false).collect(),
            Encoding::Utf16Big => mark(true).collect(),
            Encoding::Latin1 => self.content.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        }
    }

    /// The text as others are handed it, with the mark.
    pub(crate) fn marked(&self) -> String {
        let mark = if self.encoding == Encoding::Utf8Marked { "\u{feff}" } else { "" };
        format!("{mark}{}", self.content)
    }

    /// A character that the encoding does not have.
    pub(crate) fn unwritable(&self) -> Option<char> {
        self.content.chars().find(|c| self.encoding == Encoding::Latin1 && u8::try_from(*c).is_err())
    }

    pub(crate) fn is_utf8(&self) -> bool {
        matches!(self.encoding, Encoding::Utf8 | Encoding::Utf8Marked)
    }

    /// The same with another content, of which the line ends are those of this text.
    pub(crate) fn with(&self, content: impl Into<String>) -> Self {
        let content = content.into();
        // Who writes `\r` means it; who does not may not know that the file has it.
        let content = if has_wide_ends(&self.content) && !content.contains("\r\n") { widen(&content) } else { content };
        Text { content, encoding: self.encoding }
    }
}

fn wide(c: char, is_big: bool) -> impl Iterator<Item = u8> {
    let mut units = [0; 2];
    let length = c.encode_utf16(&mut units).len();
    let bytes = units.map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() });
    bytes.into_iter().take(length).flatten()
}

/// Whether bytes look like no text at all.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(SNIFFED)].contains(&0)
}

/// Whether lines end as they do on Windows: more of them than not.
pub(crate) fn has_wide_ends(content: &str) -> bool {
    let wide = content.matches("\r\n").count();
    wide > 0 && wide * 2 >= content.matches('\n').count()
}

/// Ends every line with `\r\n`.
pub(crate) fn widen(content: &str) -> String {
    content.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The beginning of a text, and a sign where there is more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The type of an image that models take, by its first bytes.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn text_is_written_as_it_was_read() {
        for (bytes, content, encoding) in [
            (&b"a\r\n"[..], "a\r\n", Encoding::Utf8),
            (b"", "", Encoding::Utf8),
            (b"\xef\xbb\xbf\xc3\xa9", "é", Encoding::Utf8Marked),
            (b"\xff\xfea\0\x3d\xd8\x00\xde", "a😀", Encoding::Utf16Little),
            (b"\xfe\xff\0a\xd8\x3d\xde\x00", "a😀", Encoding::Utf16Big),
            (b"caf\xe9 \x85\r\n", "café \u{85}\r\n", Encoding::Latin1),
        ] {
            let text = Text::decode(bytes.to_vec()).unwrap();
            assert_eq!((text.content.as_str(), text.encoding), (content, encoding));
            assert_eq!(text.encode(), bytes);
        }
        for (bytes, error) in [
            (&b"\x7fELF\0"[..], TextError::Binary),
            (b"\xff\xfea", TextError::Encoding),
            (b"\xff\xfe\x00\xd8", TextError::Encoding),
        ] {
            assert_eq!(Text::decode(bytes.to_vec()), Err(error), "{bytes:?}");
        }
    }

    #[test]
    fn a_new_content_gets_the_line_ends_of_the_old_one() {
        for (old, new, expected) in [
            ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"),
            ("a\r\nb\r\n", "c\r\nd\n", "c\r\nd\n"),
            ("a\nb\n", "c\nd\n", "c\nd\n"),
            ("a\nb\n", "c\r\nd\n", "c\r\nd\n"),
            ("a\r\nb\nc\n", "d\n", "d\n"),
            ("", "d\n", "d\n"),
        ] {
            assert_eq!(Text::new(old).with(new).content, expected, "{old:?} {new:?}");
        }
    }
}
