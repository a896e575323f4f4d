//! CRC-32, as zlib and Ethernet have it: notices every change of up to four bytes in a row.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// The checksum of the parts, one after the other.
pub(super) fn crc32(parts: &[&[u8]]) -> u32 {
    let mut value = !0;
    for part in parts {
        for byte in *part {
            value = TABLE[usize::from(value as u8 ^ byte)] ^ (value >> 8);
        }
    }
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_everyone_else() {
        assert_eq!(crc32(&[]), 0);
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xCBF4_3926);
    }
}
