//! Words of a text, without copying them.

/// Walks over the words of a text.
pub struct Words {
    rest: &str,
}

impl Words {
    pub fn new(text: &str) -> Words {
        Words { rest: text }
    }

    /// The next word of the text.
    pub fn next_word(&mut self) -> Option<&str> {
        let text = self.rest.trim_start();
        if text.is_empty() {
            return None;
        }
        let end = text.find(' ').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

/// The longer of two texts; the first one where they are equally long.
pub fn longer(left: &str, right: &str) -> &str {
    if right.len() > left.len() { right } else { left }
}

/// The longest word of a text, the first of several.
pub fn longest_word(text: &str) -> &str {
    let mut words = Words::new(text);
    let mut longest = "";
    while let Some(word) = words.next_word() {
        longest = longer(longest, word);
    }
    longest
}
