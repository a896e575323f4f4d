//! Base64, as terminal output comes in it.

/// Appends the bytes of `text`. What is no base64 is skipped: a broken piece of output is better than none.
pub(super) fn decode(text: &str, bytes: &mut Vec<u8>) {
    let mut bits = 0u32;
    let mut count = 0;
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_come_out() {
        for (text, expected) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob")] {
            let mut bytes = Vec::new();
            super::decode(text, &mut bytes);
            assert_eq!(bytes, expected.as_bytes());
        }
    }
}
