//! Helpers for text.

/// The text in brackets.
pub fn bar(text: &str) -> String {
    format!("[{text}]")
}

/// Two texts in brackets.
pub fn pair(left: &str, right: &str) -> String {
    bar(left) + &bar(right)
}

/// What the word `food` is in brackets.
pub fn food() -> String {
    bar("food")
}
