//! What a tool brings, made fit for a model: harmless characters, head and tail of what is long, the whole in a file.

mod clean;
mod spill;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use clean::clean;
pub use spill::Spill;

/// How much of a text the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its beginning.
    pub head: usize,
    /// Bytes of its end.
    pub tail: usize,
}

impl Default for Limits {
    /// 32 KiB: some eight thousand tokens, half of them for the beginning. Errors stand at either end.
    fn default() -> Self {
        Limits { head: 16 << 10, tail: 16 << 10 }
    }
}

impl Limits {
    /// Whether all of a text is within them.
    fn allow(self, text: &str) -> bool {
        text.len() <= self.head.saturating_add(self.tail)
    }
}

/// The text as the model gets it: [cleaned](clean), and if it is longer than the limits, its head and its tail with a
/// line between them that says how much is left out, in which file the whole is, and how to look there.
pub fn cut(text: &str, limits: Limits, spill: &Spill) -> String {
    let text = clean(text);
    if limits.allow(&text) { text } else { without_middle(&text, limits, spill) }
}

/// The same where a file must not be written on the runtime's thread.
pub(crate) async fn cut_off_thread(text: &str, limits: Limits, spill: &Arc<Spill>) -> String {
    let text = clean(text);
    if limits.allow(&text) {
        return text;
    }
    let spill = spill.clone();
    crate::off_thread(move || without_middle(&text, limits, &spill)).await
}

fn without_middle(text: &str, limits: Limits, spill: &Spill) -> String {
    let head = head(text, limits.head);
    let tail = tail(text, limits.tail);
    let left_out = &text[head.len()..text.len() - tail.len()];
    let whole = match spill.keep(text) {
        Ok(path) => format!(
            "the whole text is in `{}`: use `search_files` or `grep -n` on it, or `read_file` with `line`",
            path.display()
        ),
        Err(error) => format!("the whole text could not be kept: {error}"),
    };
    let lines = left_out.bytes().filter(|byte| *byte == b'\n').count();
    let amount = match lines {
        0 => String::new(),
        1 => "1 line, ".to_owned(),
        lines => format!("{lines} lines, "),
    };
    let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{line_end}[… {amount}{} bytes are left out here; {whole} …]\n{tail}", left_out.len())
}

/// The beginning of a text: whole lines if they make up at least half of what there is room for, else whole characters.
fn head(text: &str, limit: usize) -> &str {
    let most = &text[..text.floor_char_boundary(limit)];
    match most.rfind('\n') {
        Some(end) if end >= limit / 2 => &most[..=end],
        _ => most,
    }
}

/// The end of a text, in the same way.
fn tail(text: &str, limit: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    // A line that begins exactly there is whole.
    let most = &text[start..];
    if start == 0 || text[..start].ends_with('\n') {
        return most;
    }
    match most.find('\n') {
        Some(end) if end < limit / 2 => &most[end + 1..],
        _ => most,
    }
}
