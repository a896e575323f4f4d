//! Writing down a conversation as it goes over the wire, without its secrets.
//!
//! One JSON object a line, so that a trace can be searched, cut and replayed:
//!
//! ```text
//! {"time":"2026-11-15T09:30:00.125Z","dir":"out","message":{"jsonrpc":"2.0","id":0,"method":"initialize",…}}
//! {"time":"2026-11-15T09:30:00.250Z","dir":"in","message":{"jsonrpc":"2.0","id":0,"result":{…}}}
//! {"time":"2026-11-15T09:30:00.251Z","dir":"in","junk":17}
//! ```

mod names;
mod redact;
mod text;
mod time;

pub use time::rfc3339;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, time::SystemTime};

use attache_proto::frame::{Frame, Splitter};
use redact::Texts;

use crate::private;

/// Writes down what goes over a connection. Clones write to the same place.
///
/// Left out, as `…`, are
///
/// - the values of environment variables and headers, and whatever a key calls a token, key, password, secret, signature, cookie,
///   credential or login (`auth`), wherever it is; numbers of tokens stay, and so do ids of sessions, tool calls and messages,
/// - of MCP servers all but the name, the program and the host; the arguments after `--token` and its likes,
/// - users, passwords and queries in addresses, in any text,
/// - in any text, also JSON in a string: tokens of well-known forms (`Bearer …`, `sk-…`, `ghp_…`, `xoxb-…`, `AKIA…`, JSON web tokens and
///   others), private keys, and what is assigned to a name that says so (`API_KEY=…`, `password: …`).
///
/// Other text that people or models write is kept: a password in a sentence is in the trace, and so is a token that comes in pieces,
/// or one of a form that nobody knows. What is not JSON is counted, not repeated.
///
/// A trace that cannot be written never disturbs the conversation.
///
/// ```
/// use attache::trace::Tap;
///
/// # fn main() -> std::io::Result<()> {
/// # let path = std::env::temp_dir().join(format!("attache-doc-{}.jsonl", std::process::id()));
/// let tap = Tap::file(&path)?;
/// // ... have a connection write to it ...
/// assert_eq!(tap.failures(), 0);
/// # std::fs::remove_file(&path)
/// # }
/// ```
#[derive(Clone)]
pub struct Tap(Arc<Inner>);

struct Inner {
    writer: Mutex<Box<dyn Write + Send>>,
    /// Messages are written as they are, without time and direction.
    is_bare: bool,
    /// Somebody else who writes down the same.
    also: Option<Tap>,
    failures: AtomicU64,
}

impl Tap {
    /// Writes to `writer`, a line at a time, and flushes after each. It is called where the conversation goes on, so it
    /// should not take long.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Tap::with(writer, false, None)
    }

    /// Writes the messages alone, one a line, without their time and direction; what is not JSON is left out. They are for programs:
    /// texts are not looked through, and stay as they are.
    pub fn messages(writer: impl Write + Send + 'static) -> Self {
        Tap::with(writer, true, None)
    }

    /// Writes the messages alone to `writer`, and has `self` write them down too.
    #[must_use]
    pub fn and_messages(self, writer: impl Write + Send + 'static) -> Self {
        Tap::with(writer, true, Some(self))
    }

    fn with(writer: impl Write + Send + 'static, is_bare: bool, also: Option<Tap>) -> Self {
        Tap(Arc::new(Inner { writer: Mutex::new(Box::new(writer)), is_bare, also, failures: AtomicU64::new(0) }))
    }

    /// Appends to a file. A new one can be read by its owner only, for conversations are private.
    pub fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        private::append(path.as_ref()).map(Tap::new)
    }

    /// How many messages could not be written down.
    pub fn failures(&self) -> u64 {
        let also = self.0.also.as_ref().map_or(0, Tap::failures);
        self.0.failures.load(Ordering::Relaxed) + also
    }

    /// Writes down messages as they were sent: one or more, each in its frame.
    pub(crate) fn sent(&self, bytes: &[u8]) {
        if bytes.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-")) {
            let mut splitter = Splitter::new(None, bytes.len());
            splitter.feed(bytes);
            while let Some(frame) = splitter.next_frame() {
                match frame {
                    Frame::Message(text) => self.write("out", text.as_bytes()),
                    Frame::Junk(_) => self.write("out", b"?"),
                }
            }
        } else {
            bytes.split(|byte| *byte == b'\n').for_each(|line| self.write("out", line));
        }
    }

    /// Writes down a message as it was received, without its frame.
    pub(crate) fn received(&self, text: &str) {
        self.write("in", text.as_bytes());
    }

    fn write(&self, direction: &str, message: &[u8]) {
        let message = message.trim_ascii();
        if message.is_empty() {
            return;
        }
        if let Some(also) = &self.0.also {
            also.write(direction, message);
        }
        let text = std::str::from_utf8(message);
        let mut line = Vec::new();
        if self.0.is_bare {
            if !text.is_ok_and(|text| redact::redact(text, &mut line, Texts::Kept)) {
                return;
            }
        } else {
            line = format!(r#"{{"time":"{}","dir":"{direction}","#, rfc3339(SystemTime::now())).into_bytes();
            let start = line.len();
            line.extend_from_slice(br#""message":"#);
            if !text.is_ok_and(|text| redact::redact(text, &mut line, Texts::Masked)) {
                line.truncate(start);
                line.extend_from_slice(format!(r#""junk":{}"#, message.len()).as_bytes());
            }
            line.push(b'}');
        }
        line.push(b'\n');
        let mut writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.write_all(&line).and_then(|()| writer.flush()).is_err() {
            self.0.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Appends a message to `line` as a trace has it: on one line, without its secrets. `false` when it is not JSON; then nothing is
/// appended.
///
/// ```
/// let mut line = String::new();
/// assert!(attache::trace::redact(r#"{"env":[{"name":"KEY","value":"secret"}]}"#, &mut line));
/// assert_eq!(line, r#"{"env":[{"name":"KEY","value":"…"}]}"#);
/// ```
pub fn redact(message: &str, line: &mut String) -> bool {
    let length = line.len();
    let mut bytes = std::mem::take(line).into_bytes();
    let is_json = redact::redact(message, &mut bytes, Texts::Masked);
    if !is_json {
        bytes.truncate(length);
    }
    *line = String::from_utf8(bytes).expect("the writer takes strings and adds ASCII");
    is_json
}

/// A text as a trace has it: without what looks like a secret. JSON in it is redacted like a message.
///
/// ```
/// assert_eq!(attache::trace::redact_text("GET /me\nAuthorization: Bearer 5f3c"), "GET /me\nAuthorization: …");
/// ```
pub fn redact_text(text: &str) -> Cow<'_, str> {
    redact::redact_text(text, 0)
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("failures", &self.failures()).finish_non_exhaustive()
    }
}
