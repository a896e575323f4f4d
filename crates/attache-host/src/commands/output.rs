//! The end of what a command wrote, as text.

use std::collections::VecDeque;

/// What stands for bytes that are no text.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The last bytes of a stream, as valid UTF-8 that begins and ends between two characters.
#[derive(Debug)]
pub(super) struct Output {
    limit: usize,
    kept: VecDeque<u8>,
    /// How many bytes of text came before those that are kept.
    dropped: u64,
    /// The beginning of a character whose other bytes have not arrived.
    incomplete: Vec<u8>,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: VecDeque::new(), dropped: 0, incomplete: Vec::new() }
    }

    /// How much is kept at most.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds bytes as they arrive.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.incomplete.is_empty() {
            return self.push_text(bytes);
        }
        let mut joined = std::mem::take(&mut self.incomplete);
        joined.extend_from_slice(bytes);
        self.push_text(&joined);
    }

    /// No bytes will come: what is incomplete stays so.
    pub(super) fn finish(&mut self) {
        if !self.incomplete.is_empty() {
            self.incomplete.clear();
            self.keep(REPLACEMENT);
        }
    }

    fn push_text(&mut self, mut bytes: &[u8]) {
        while let Err(error) = std::str::from_utf8(bytes) {
            let (text, rest) = bytes.split_at(error.valid_up_to());
            self.keep(text);
            match error.error_len() {
                Some(length) => {
                    self.keep(REPLACEMENT);
                    bytes = &rest[length..];
                }
                None => {
                    self.incomplete.extend_from_slice(rest);
                    return;
                }
            }
        }
        self.keep(bytes);
    }

    /// Keeps text, and as much of what was there as there is room for.
    fn keep(&mut self, text: &[u8]) {
        let end = self.end() + text.len() as u64;
        let mut text = text;
        if text.len() > self.limit {
            self.kept.clear();
            text = &text[text.len() - self.limit..];
            let cut = text.iter().take_while(|byte| is_continuation(**byte)).count();
            text = &text[cut..];
        } else {
            let surplus = (self.kept.len() + text.len()).saturating_sub(self.limit);
            let cut = self.kept.range(surplus..).take_while(|byte| is_continuation(**byte)).count();
            self.kept.drain(..surplus + cut);
        }
        self.kept.extend(text);
        self.dropped = end - self.kept.len() as u64;
    }

    /// Where the text ends, in bytes from the beginning of all text.
    pub(super) fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.dropped > 0
    }

    /// All that is kept.
    pub(super) fn text(&self) -> String {
        self.since(0).1
    }

    /// What is kept from a byte on, or from the first character after it, and where that begins.
    pub(super) fn since(&self, offset: u64) -> (u64, String) {
        let from = offset.clamp(self.dropped, self.end());
        let mut index = (from - self.dropped) as usize;
        index += self.kept.range(index..).take_while(|byte| is_continuation(**byte)).count();
        let (front, back) = self.kept.as_slices();
        let front_from = index.min(front.len());
        let bytes = [&front[front_from..], &back[index - front_from..]].concat();
        // Valid by construction, so nothing is replaced here and nothing is copied again.
        let text = String::from_utf8(bytes).unwrap_or_else(|error| error.to_string());
        (self.dropped + index as u64, text)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use attache_testkit::Dice;

    use super::*;

    #[test]
    fn characters_are_whole_however_the_bytes_arrive() {
        let text = "aé€😀\u{fffd}z";
        for size in 1..text.len() {
            let mut output = Output::new(100);
            for chunk in text.as_bytes().chunks(size) {
                output.push(chunk);
                assert!(text.starts_with(&output.text()));
            }
            assert_eq!(output.text(), text);
        }
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        let mut output = Output::new(100);
        output.push(b"a\xff\xe2\x82");
        assert_eq!(output.text(), "a\u{fffd}");
        output.push(b"b\xe2\x82");
        assert_eq!(output.text(), "a\u{fffd}\u{fffd}b");
        output.finish();
        assert_eq!(output.text(), "a\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn the_front_is_cut_between_characters() {
        for limit in 0..12 {
            let mut output = Output::new(limit);
            output.push("€€".as_bytes());
            output.push("€".as_bytes());
            assert_eq!(output.text(), "€".repeat(limit.min(9) / 3), "limit {limit}");
            assert_eq!(output.is_truncated(), limit < 9);
            assert_eq!(output.end(), 9);
        }
    }

    #[test]
    fn a_reader_from_an_offset_misses_nothing_that_is_kept() {
        let mut output = Output::new(7);
        output.push("ab€€".as_bytes());
        assert_eq!(output.since(0), (1, "b€€".into()));
        assert_eq!(output.since(3), (5, "€".into()));
        assert_eq!(output.since(8), (8, String::new()));
        assert_eq!(output.since(u64::MAX), (8, String::new()));
    }

    #[test]
    fn any_bytes_in_any_pieces_end_as_the_lossy_text_does() {
        let pieces: [&[u8]; 8] =
            [b"a", b"\n", "é".as_bytes(), "€".as_bytes(), "😀".as_bytes(), b"\xff", b"\xe2\x82", b"\x80"];
        for seed in 0..2000 {
            let mut dice = Dice::new(seed);
            let bytes: Vec<u8> = (0..dice.below(40)).flat_map(|_| dice.pick(&pieces).to_vec()).collect();
            let whole = String::from_utf8_lossy(&bytes);
            let limit = dice.below(60);
            let mut output = Output::new(limit);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(1 + dice.below(rest.len()));
                output.push(chunk);
                rest = after;
            }
            output.finish();
            let text = output.text();
            assert!(whole.ends_with(&text) && text.len() <= limit, "seed {seed}");
            assert!(text.len() == whole.len() || text.len() + 4 > limit, "seed {seed}");
            assert_eq!(output.is_truncated(), text.len() < whole.len(), "seed {seed}");
            assert_eq!(output.end(), whole.len() as u64, "seed {seed}");
        }
    }
}
