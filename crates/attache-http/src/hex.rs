//! Bytes as hexadecimal digits.

use std::fmt;

/// Writes bytes, two digits each.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Reads exactly so many bytes.
pub(crate) fn read<const BYTES: usize>(digits: &str) -> Option<[u8; BYTES]> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let mut bytes = [0; BYTES];
    if digits.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}
