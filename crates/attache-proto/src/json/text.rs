//! What stands in a string: where it ends, and what its escapes mean.

/// How many bytes come before the first quote, backslash or control character.
#[inline]
pub(super) fn special_byte(bytes: &[u8]) -> usize {
    let mut at = 0;
    // Most strings end soon; a longer one is likely to be much longer.
    for word in bytes.as_chunks().0.iter().take(SHORT / WORD) {
        let hits = special_bytes(*word);
        if hits != 0 {
            return at + first(hits);
        }
        at += WORD;
    }
    at + special_byte_later(&bytes[at..])
}

/// The same for the rest of a long string, or for fewer bytes than a word.
#[inline(never)]
fn special_byte_later(bytes: &[u8]) -> usize {
    let mut at = 0;
    // Written so that the compiler makes vector instructions of it.
    for block in bytes.as_chunks::<64>().0 {
        if block.iter().fold(false, |hit, byte| hit | is_special(*byte)) {
            break;
        }
        at += block.len();
    }
    for word in bytes[at..].as_chunks().0 {
        let hits = special_bytes(*word);
        if hits != 0 {
            return at + first(hits);
        }
        at += WORD;
    }
    at + bytes[at..].iter().take_while(|byte| !is_special(**byte)).count()
}

/// What stands for which character behind a backslash; 0 for what does not, or takes more than one byte.
pub(super) static ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    let mut pairs: &[(u8, u8)] = &[
        (b'"', b'"'),
        (b'\\', b'\\'),
        (b'/', b'/'),
        (b'b', 8),
        (b'f', 12),
        (b'n', b'\n'),
        (b'r', b'\r'),
        (b't', b'\t'),
    ];
    while let [(code, plain), rest @ ..] = pairs {
        table[*code as usize] = *plain;
        pairs = rest;
    }
    table
};

/// How far a string is searched word by word.
const SHORT: usize = 128;

const WORD: usize = 8;

/// The high bit of each special byte of a word, and perhaps of bytes behind the first.
///
/// A byte that is less than what is taken from it borrows from the next one, so that its high bit is set although it was not
/// before. The borrow may spill into the bytes behind it; only the first counts.
#[inline]
fn special_bytes(word: [u8; WORD]) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(word);
    let control = word.wrapping_sub(EACH * 0x20);
    let quote = (word ^ (EACH * b'"' as u64)).wrapping_sub(EACH);
    let backslash = (word ^ (EACH * b'\\' as u64)).wrapping_sub(EACH);
    (control | quote | backslash) & !word & (EACH * 0x80)
}

/// Which byte of a word is the first whose high bit is set.
#[inline]
fn first(hits: u64) -> usize {
    (hits.trailing_zeros() / 8) as usize
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
