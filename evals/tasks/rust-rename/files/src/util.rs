//! Helpers for text.

/// The text in brackets.
pub fn foo(text: &str) -> String {
    format!("[{text}]")
}

/// Two texts in brackets.
pub fn pair(left: &str, right: &str) -> String {
    foo(left) + &foo(right)
}

/// What the word `food` is in brackets.
pub fn food() -> String {
    foo("food")
}
