//! Bytes as text and back: base64 with the standard alphabet and padding, as the protocol has it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as text.
///
/// ```
/// use attache_proto::base64;
///
/// assert_eq!(base64::encode(b"passed"), "cGFzc2Vk");
/// assert_eq!(base64::decode("cGFzc2Vk").unwrap(), b"passed");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0, |bits, (place, byte)| bits | u32::from(*byte) << (16 - 8 * place));
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Reads text that [`encode`] could have written; anything else is `None`.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    let digits = &text.as_bytes()[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut bits = 0;
        for (place, digit) in group.iter().enumerate() {
            bits |= value(*digit)? << (18 - 6 * place);
        }
        let [_, decoded @ ..] = bits.to_be_bytes();
        let (whole, rest) = decoded.split_at(group.len() * 6 / 8);
        // The bits that the padding leaves over are zero, so that there is one text for the same bytes.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(whole);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn every_length_reads_back() {
        // The rows of RFC 4648, section 10, and the two last digits of the alphabet.
        let rows = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
            ("~~?~?>", "fn4/fj8+"),
        ];
        for (bytes, text) in rows {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn only_the_one_right_text_is_read() {
        for text in
            ["Zg", "Zg=", "Z", "Z===", "====", "=", "Zh==", "Zm9=", "Zm9v\n", "Zm 9v", "Zg==Zg==", "Zm_-", "é==="]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
