//! Some lines of a file, without the rest of it in memory.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::PathBuf,
};

use super::FileError;

/// How much is read at once. Larger brings nothing, as the kernel reads ahead.
const BUFFER: usize = 64 << 10;

/// How far into a file lines are looked for. A sparse file may claim any size, and a thread that reads cannot be called
/// off.
pub(super) const FARTHEST: u64 = 4 << 30;

/// Why the lines could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    TooLarge { limit: usize },
    TooFar,
    NotText,
    Io(io::Error),
}

impl ReadError {
    pub(super) fn at(self, path: PathBuf) -> FileError {
        match self {
            Self::TooLarge { limit } => FileError::TooLarge { path, limit },
            Self::TooFar => FileError::TooFar { path },
            Self::NotText => FileError::NotText { path },
            Self::Io(error) => FileError::io(error, &path),
        }
    }
}

/// Reads `limit` lines from line `line` on: at most `most` bytes, and none after `farthest`.
pub(super) fn lines(
    file: File,
    line: Option<u32>,
    limit: Option<u32>,
    most: usize,
    farthest: u64,
) -> Result<String, ReadError> {
    let size = file.metadata().map_err(ReadError::Io)?.len();
    if line.is_none() && limit.is_none() && size > most as u64 {
        return Err(ReadError::TooLarge { limit: most });
    }
    let mut input = BufReader::with_capacity(BUFFER, file.take(farthest));
    for _ in 1..line.unwrap_or(1) {
        // Each line is counted only, however long it is.
        if input.skip_until(b'\n').map_err(ReadError::Io)? == 0 {
            break;
        }
    }
    let mut text = Vec::new();
    let mut lines_left = limit.map_or(u64::MAX, u64::from);
    while lines_left > 0 {
        let buffer = input.fill_buf().map_err(ReadError::Io)?;
        if buffer.is_empty() {
            // The end of the file, or of what we may read.
            if input.get_ref().limit() == 0 {
                return Err(ReadError::TooFar);
            }
            break;
        }
        let taken = match limit {
            None => buffer.len(),
            Some(_) => {
                let mut rest = buffer;
                let taken = rest.skip_until(b'\n').map_err(ReadError::Io)?;
                lines_left -= u64::from(buffer[taken - 1] == b'\n');
                taken
            }
        };
        if text.len() + taken > most {
            return Err(ReadError::TooLarge { limit: most });
        }
        text.extend_from_slice(&buffer[..taken]);
        input.consume(taken);
    }
    String::from_utf8(text).map_err(|_| ReadError::NotText)
}

/// Reads all of a file, if that is no more than `most` bytes. What it says of its size is only where to begin.
pub(super) fn bytes(file: File, most: usize) -> Result<Vec<u8>, ReadError> {
    if file.metadata().map_err(ReadError::Io)?.len() > most as u64 {
        return Err(ReadError::TooLarge { limit: most });
    }
    let mut bytes = Vec::new();
    file.take((most as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() > most { Err(ReadError::TooLarge { limit: most }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(content: &[u8], line: Option<u32>, limit: Option<u32>, expected: Result<&str, &str>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let result = lines(file, line, limit, 8, 20).map_err(|error| format!("{error:?}"));
        assert_eq!(result.as_deref().map_err(String::as_str), expected, "{content:?} {line:?} {limit:?}");
    }

    #[test]
    fn lines_are_counted_from_one_and_keep_their_ends() {
        check(b"a\r\nb\n\nc", None, None, Ok("a\r\nb\n\nc"));
        check(b"a\r\nb\n\nc", Some(0), Some(1), Ok("a\r\n"));
        check(b"a\r\nb\n\nc", Some(1), Some(2), Ok("a\r\nb\n"));
        check(b"a\r\nb\n\nc", Some(3), None, Ok("\nc"));
        check(b"a\r\nb\n\nc", Some(4), Some(u32::MAX), Ok("c"));
        check(b"a\r\nb\n\nc", Some(5), Some(1), Ok(""));
        check(b"a\r\nb\n\nc", Some(u32::MAX), None, Ok(""));
        check(b"a\nb", None, Some(0), Ok(""));
        check(b"", None, None, Ok(""));
    }

    #[test]
    fn what_is_too_large_or_no_text_is_an_error_only_if_it_was_asked_for() {
        check(b"123456789", None, None, Err("TooLarge { limit: 8 }"));
        check(b"123456789", Some(1), None, Err("TooLarge { limit: 8 }"));
        check(b"123456789\n1234567\n", Some(2), Some(1), Ok("1234567\n"));
        check(b"123456789\n12345678\n\nx\n", Some(2), Some(1), Err("TooLarge { limit: 8 }"));
        check(b"123456789\n12345678\n\nx\n", Some(3), Some(1), Ok("\n"));
        check(b"123456789\n12345678\n\nx\n", Some(3), Some(2), Err("TooFar"));
        check(b"123456789\n12345678\n\nx\n", Some(9), Some(2), Err("TooFar"));
        check(b"\xff\nb\n", None, None, Err("NotText"));
        check(b"\xff\nb\n", Some(2), None, Ok("b\n"));
    }
}
