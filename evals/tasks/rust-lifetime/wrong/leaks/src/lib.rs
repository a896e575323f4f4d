//! Words of a text, leaked.

pub struct Words {
    rest: String,
}

impl Words {
    pub fn new(text: &str) -> Words {
        Words { rest: text.to_string() }
    }

    pub fn next_word(&mut self) -> Option<&'static str> {
        let text = self.rest.trim_start().to_string();
        if text.is_empty() {
            return None;
        }
        let end = text.find(' ').unwrap_or(text.len());
        self.rest = text[end..].to_string();
        Some(Box::leak(text[..end].to_string().into_boxed_str()))
    }
}

pub fn longer<'a>(left: &'a str, right: &'a str) -> &'a str {
    if right.len() > left.len() { right } else { left }
}

pub fn longest_word(text: &str) -> &str {
    let mut words = Words::new(text);
    let mut longest = "";
    while let Some(word) = words.next_word() {
        longest = longer(longest, word);
    }
    longest
}
