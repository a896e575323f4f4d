//! A record of a log: a line `number time length checksum entry`.
//!
//! The numbers count from 0, so that a record that is missing is noticed. The time is in milliseconds since 1970. The
//! checksum is of all that the line has beside it.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::entry::MAX_ENTRY;

/// The longest line: four numbers of at most 20 digits, five separators and the entry.
pub(super) const MAX_LINE: usize = MAX_ENTRY + 128;

/// A record as it stands in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) number: u64,
    pub(super) time: u64,
    pub(super) entry: &'a str,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is no record, or not a whole one, or was changed.
    Wrong,
    /// It is two records: the end of the first was changed.
    Unended,
    /// It begins like a record of so many bytes, which is too long.
    TooLong(u64),
}

impl Record<'_> {
    /// The line, with its end.
    pub(super) fn to_line(self) -> Vec<u8> {
        let head = format!("{} {} {} ", self.number, self.time, self.entry.len());
        let checksum = crc32(head.as_bytes(), self.entry.as_bytes());
        format!("{head}{checksum:08x} {}\n", self.entry).into_bytes()
    }
}

/// Reads a line, with its end.
pub(super) fn read(line: &[u8]) -> Result<Record<'_>, Flaw> {
    match split(line)? {
        (record, b"\n") => Ok(record),
        (_, [_, next @ ..]) if split(next).is_ok() => Err(Flaw::Unended),
        _ => Err(Flaw::Wrong),
    }
}

/// The record that a line begins with, and what follows it.
fn split(line: &[u8]) -> Result<(Record<'_>, &[u8]), Flaw> {
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().take(21).position(|byte| *byte == b' ').ok_or(Flaw::Wrong)?;
        let word = std::str::from_utf8(&rest[..end]).map_err(|_| Flaw::Wrong)?;
        rest = &rest[end + 1..];
        Ok(word)
    };
    let mut number = || -> Result<u64, Flaw> { word()?.parse().map_err(|_| Flaw::Wrong) };
    let (number, time, length) = (number()?, number()?, number()?);
    let head = &line[..line.len() - rest.len()];
    let (Some((checksum, b" ")), Some(rest)) = (rest.get(..9).map(|word| word.split_at(8)), rest.get(9..)) else {
        return Err(Flaw::Wrong);
    };
    if length > MAX_ENTRY as u64 && checksum.iter().all(u8::is_ascii_hexdigit) {
        return Err(Flaw::TooLong(length));
    }
    let (entry, end) = rest.split_at_checked(length as usize).ok_or(Flaw::Wrong)?;
    if format!("{:08x}", crc32(head, entry)).as_bytes() != checksum {
        return Err(Flaw::Wrong);
    }
    let entry = std::str::from_utf8(entry).map_err(|_| Flaw::Wrong)?;
    Ok((Record { number, time, entry }, end))
}

/// A CRC-32, as zlib and Ethernet have it: notices every change of up to four bytes in a row.
fn crc32(head: &[u8], entry: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(entry);
    hasher.finalize()
}

/// The time now, as records have it.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// A time of a record, as RFC 3339 has it.
pub(super) fn rfc3339(time: u64) -> String {
    // Beyond the year 9999 there is no RFC 3339, nor an honest record.
    const LAST: u64 = 253_402_300_799_999;
    attache::trace::rfc3339(UNIX_EPOCH + std::time::Duration::from_millis(time.min(LAST)))
}
