//! `Content-Length` headers: how they are told from lines of text.

use crate::Dialect;
use crate::json::Reader;

/// The part of a line, counted from its end, in which a header behind other text is looked for.
pub(super) const REACH: usize = 64;

/// The longest line that can be a header. Far longer than any that is in use.
pub(super) const MAX_LINE: usize = 256;

/// The most lines of a header block. Only two headers are in use, `Content-Length` and `Content-Type`.
pub(super) const MAX_LINES: usize = 4;

/// What one line of a header block says.
pub(super) enum Header {
    /// How long the message is.
    Length(usize),
    /// Something else, such as the type of the message.
    Other,
}

/// Where in a line a header block begins, if one does.
///
/// A header may stand behind other text: a message that is framed by a header has no line end, so to whoever reads lines
/// the next header is a part of its line.
pub(super) fn find(line: &[u8]) -> Option<usize> {
    if line.first().is_some_and(|byte| byte | 0x20 == b'c') && has_prefix(line, b"content-type:") {
        return Some(0);
    }
    let skipped = line.len().saturating_sub(REACH);
    let end = line[skipped..].trim_ascii_end();
    let name_and_colon = trim_end_matches(end, u8::is_ascii_digit);
    if name_and_colon.len() == end.len() {
        return None;
    }
    let name = name_and_colon.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    let at = name.len().checked_sub(b"content-length".len())?;
    has_prefix(&name[at..], b"content-length").then_some(skipped + at)
}

/// Reads one line of a header block; `None` when it is not a header.
pub(super) fn read(line: &[u8]) -> Option<Header> {
    let colon = memchr::memchr(b':', line)?;
    let name = line[..colon].trim_ascii();
    if !name.first()?.is_ascii_alphabetic() {
        return None;
    }
    if !name.eq_ignore_ascii_case(b"content-length") {
        return Some(Header::Other);
    }
    let digits = line[colon + 1..].trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number that does not fit is longer than any limit.
    let length = std::str::from_utf8(digits).ok()?.parse().unwrap_or(usize::MAX);
    Some(Header::Length(length))
}

/// Whether bytes begin like an object or like an array of objects. Log lines begin with a bracket, too: `[info] ready`.
pub(super) fn begins_like_message(bytes: &[u8]) -> bool {
    match bytes {
        [b'{', next, ..] => matches!(next, b'"' | b'}') || next.is_ascii_whitespace(),
        [b'[', next, ..] => matches!(next, b'{' | b']') || next.is_ascii_whitespace(),
        _ => false,
    }
}

/// Whether bytes are a message of which the end is missing.
pub(super) fn is_cut_off(bytes: &[u8]) -> bool {
    (matches!(bytes, b"{" | b"[") || begins_like_message(bytes)) && !is_json(bytes)
}

/// Whether bytes are one whole JSON value.
///
/// Looks at ever more lines and stops at the first mistake. Many headers can announce the same bytes: each costs no more than
/// what is JSON behind it, and no header is.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    let mut end = 0;
    loop {
        // Nothing in JSON goes on behind a line end, so a mistake in whole lines is one, whatever follows.
        let line_end = memchr::memchr(b'\n', &bytes[end..]);
        end = line_end.map_or(bytes.len(), |at| end + at + 1);
        let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return false };
        let mut reader = Reader::new(text, Dialect::V1);
        let is_whole = reader.skip().and_then(|()| reader.end()).is_ok();
        if end == bytes.len() {
            return is_whole;
        }
        if !is_whole && !reader.is_at_end() {
            return false;
        }
        end = bytes.len().min(2 * end);
    }
}

fn has_prefix(line: &[u8], prefix: &[u8]) -> bool {
    line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn trim_end_matches(mut bytes: &[u8], matches: impl Fn(&u8) -> bool) -> &[u8] {
    while let [rest @ .., last] = bytes
        && matches(last)
    {
        bytes = rest;
    }
    bytes
}
