//! The end of what a process wrote to stderr, made harmless for a terminal.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::watch,
    time::timeout,
};

/// Enough for a stack trace, little enough for an error message.
const TAIL: usize = 8 * 1024;

/// How long to wait for the end of stderr once the child has ended. What the child wrote is in the pipe by then, so this
/// is only used up when a descendant holds the pipe open.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// The last bytes that were written to a stream. Clones share them.
#[derive(Clone)]
pub(crate) struct Tail {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Closed when the stream has been read to its end.
    end: watch::Receiver<()>,
}

impl Tail {
    /// The tail of nothing.
    pub(super) fn none() -> Self {
        Tail { bytes: Arc::default(), end: watch::channel(()).1 }
    }

    /// Reads the stream to its end, in a task of the runtime that we are in, and keeps the tail.
    pub(super) fn of(stream: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let (reading, end) = watch::channel(());
        let tail = Tail { bytes: Arc::default(), end };
        if let Some(mut stream) = stream {
            let tail = tail.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; TAIL];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    tail.push(&buffer[..length]);
                }
                drop(reading);
            });
        }
        tail
    }

    /// Waits until the stream has been read to its end, for a short time at most: for when its writer has exited.
    pub(crate) async fn ended(&mut self) {
        let _ = timeout(STDERR_GRACE, self.end.changed()).await;
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        // Twice the tail is kept at most, so that bytes are moved once per tail and not once per write.
        if kept.len() + bytes.len() > 2 * TAIL {
            let surplus = kept.len().saturating_sub(TAIL);
            kept.drain(..surplus);
        }
        kept.extend_from_slice(bytes);
    }

    /// What was kept, as harmless text.
    pub(crate) fn text(&self) -> String {
        let kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = &kept[kept.len().saturating_sub(TAIL)..];
        if bytes.len() < kept.len() {
            // The cut may go through a character; its rest is not an error of the writer.
            let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            bytes = &bytes[rest..];
        }
        harmless(&String::from_utf8_lossy(bytes))
    }
}

/// Whether a character can do more to a terminal than appear: controls and overrides of the writing direction.
pub(super) fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text without escape sequences and control characters, except tabs and line ends.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next_if(|next| !next.is_control()) {
                Some('[') => skip_control_sequence(&mut chars),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_control_string(&mut chars),
                // A short escape: intermediate characters up to a final one.
                Some(' '..='/') => {
                    while chars.next_if(|next| (' '..='/').contains(next)).is_some() {}
                    chars.next_if(|next| !next.is_control());
                }
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_control_string(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            // A progress bar draws over its line; here each state becomes a line.
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if is_harmful(c) => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the parameters and the final character of a sequence like `ESC [ 31 m`.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Skips a string like a window title, up to its terminator. A line end also ends it, so that one that is never
/// terminated does not swallow the rest.
fn skip_control_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_controls_are_removed() {
        let check = |input: &str, output: &str| assert_eq!(harmless(input), output, "{input:?}");
        check("plain\ttext é 你\n", "plain\ttext é 你\n");
        check("\u{1b}[1;31merror\u{1b}[0m: no", "error: no");
        check("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c", "abc");
        check("a\u{1b}P1$r\u{1b}\\b\u{9b}2Jc\u{9d}0;t\u{9c}d", "abcd");
        check("a\u{1b}(Bb\u{1b}cc\u{1b}", "abc");
        check("10%\r20%\r\ndone\u{8}\u{0}\u{7f}", "10%\n20%\ndone");
        check("\u{1b}]never ended\nnext line", "\nnext line");
        check("\u{1b}\u{1b}[31mx\u{202e}y", "xy");
    }

    #[test]
    fn the_tail_is_bounded_and_cut_between_characters() {
        let tail = Tail { bytes: Arc::default(), end: watch::channel(()).1 };
        for _ in 0..10 * TAIL {
            tail.push("é".as_bytes());
        }
        tail.push(b"!");
        assert!(tail.bytes.lock().unwrap().len() <= 2 * TAIL);
        let text = tail.text();
        assert_eq!(text.len(), TAIL - 1);
        assert!(text.trim_end_matches('!').chars().all(|c| c == 'é'));
    }
}
