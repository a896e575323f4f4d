//! Where scripts are played. A script is written as if tools answered at once; the stage makes that true: it goes
//! through the conversation again, gives what came of the calls that were made, and halts at the first that was not.

use std::borrow::Cow;

use serde_json::Value;

use super::speak::{Answer, Bit, Planned};
use crate::model::{EndReason, Message, Part, Request};

/// Why a script does not go on now.
#[derive(Debug)]
pub(super) enum Halt {
    /// These calls have to be made first.
    Calls(Vec<Planned>),
    /// The answer ends here, for this reason.
    Stop(EndReason),
    /// The person said no, and has been told what that means.
    Refused,
}

/// What a script brings, unless it halts.
pub(super) type Played<T> = Result<T, Halt>;

/// The stage of one request.
pub(super) struct Stage<'a> {
    request: &'a Request,
    /// The message of the conversation that the script has come to.
    at: usize,
    /// What has been said since the last call.
    said: Vec<Bit>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came<'a> {
    parts: &'a [Part],
    pub(super) is_error: bool,
}

impl<'a> Stage<'a> {
    /// The stage, with the script at its beginning.
    pub(super) fn new(request: &'a Request) -> Self {
        let last = request.messages.iter().rposition(|message| matches!(message, Message::User { .. }));
        Stage { request, at: last.map_or(request.messages.len(), |last| last + 1), said: Vec::new() }
    }

    /// What the person said last.
    pub(super) fn prompt(&self) -> &'a [Part] {
        let last = self.request.messages.iter().rfind(|message| matches!(message, Message::User { .. }));
        if let Some(Message::User { parts }) = last { parts } else { &[] }
    }

    /// Whether nothing was answered yet in this conversation when the person said this.
    pub(super) fn is_first(&self) -> bool {
        !self.request.messages[..self.at].iter().any(|message| matches!(message, Message::Assistant { .. }))
    }

    /// Whether the model may call this tool now.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|spec| spec.name == tool)
    }

    /// Whether a file was read or written up to this point of the conversation.
    pub(super) fn knows(&self, path: &str) -> bool {
        let plain = |path: &str| path.strip_prefix("./").unwrap_or(path).to_string();
        let before = &self.request.messages[..self.at];
        let calls = before.iter().enumerate().filter_map(|(at, message)| match message {
            Message::Assistant { calls, .. } => Some((at, calls)),
            _ => None,
        });
        let mut known = false;
        for (at, calls) in calls {
            for call in calls {
                let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { continue };
                let is = |key: &str| arguments[key].as_str().is_some_and(|found| plain(found) == plain(path));
                if found(before, at + 1, &call.id).is_error {
                    continue;
                }
                match call.name.as_str() {
                    // Some of the lines are not the file.
                    "read_file" if arguments["line"].is_null() && is("path") => known = true,
                    "write_file" if is("path") => known = true,
                    "delete_file" if is("path") => known = false,
                    "move_file" if is("from") || is("to") => known = false,
                    _ => {}
                }
            }
        }
        known
    }

    /// Says something, as a paragraph of its own.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        let text = self.paragraph(text.as_ref());
        match self.said.last_mut() {
            Some(Bit::Text(said)) => said.push_str(&text),
            _ => self.said.push(Bit::Text(text)),
        }
    }

    /// Says something a word at a time.
    pub(super) fn say_slowly(&mut self, text: &str) {
        let text = self.paragraph(text);
        self.said.push(Bit::Slow(text));
    }

    /// A text, set off from what has been said before it.
    fn paragraph(&self, text: &str) -> String {
        let is_first = !self.said.iter().any(|bit| matches!(bit, Bit::Text(_) | Bit::Slow(_)));
        if is_first { text.into() } else { format!("\n\n{text}") }
    }

    /// Thinks something.
    pub(super) fn think(&mut self, text: &str) {
        self.said.push(Bit::Thought(text.into()));
    }

    /// Calls a tool with each of these arguments, side by side. `None` when there is, or was, no such tool.
    pub(super) fn call_all(&mut self, tool: &str, arguments: Vec<String>) -> Played<Option<Vec<Came<'a>>>> {
        let messages = &self.request.messages;
        let next = (self.at..messages.len()).find_map(|at| match &messages[at] {
            Message::Assistant { calls, .. } if !calls.is_empty() => Some((at, calls)),
            _ => None,
        });
        match next {
            Some((at, calls)) => {
                // Another call was made here, so there was no such tool then: the mode may have changed since.
                if calls.len() != arguments.len() || calls.iter().any(|call| call.name != tool) {
                    return Ok(None);
                }
                let results = calls.iter().map(|call| found(messages, at + 1, &call.id)).collect();
                self.at = at + 1;
                self.said.clear();
                Ok(Some(results))
            }
            None if !self.has(tool) => Ok(None),
            None => {
                let calls = arguments.into_iter().map(|arguments| Planned { name: tool.into(), arguments });
                Err(Halt::Calls(calls.collect()))
            }
        }
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Played<Option<Came<'a>>> {
        let results = self.call_all(tool, vec![arguments.to_string()])?;
        Ok(results.and_then(|results| results.first().copied()))
    }

    /// What is answered, now that the script has halted or is through.
    pub(super) fn answer(self, played: Played<()>) -> Answer {
        let (calls, reason) = match played {
            Ok(()) | Err(Halt::Refused) => (Vec::new(), EndReason::Done),
            Err(Halt::Calls(calls)) => (calls, EndReason::Done),
            Err(Halt::Stop(reason)) => (Vec::new(), reason),
        };
        Answer { bits: self.said, calls, reason }
    }
}

/// What came of a call: looked for from the message after it, up to the next answer.
fn found<'a>(messages: &'a [Message], from: usize, call: &str) -> Came<'a> {
    let until_answer = messages[from..].iter().take_while(|message| !matches!(message, Message::Assistant { .. }));
    let mut results = until_answer.filter_map(|message| match message {
        Message::Tool { id, parts, is_error, .. } if id == call => Some(Came { parts, is_error: *is_error }),
        _ => None,
    });
    // Every call has a result; a conversation without it is somebody's mistake, and the call counts as failed.
    results.next().unwrap_or(Came { parts: &[], is_error: true })
}

impl<'a> Came<'a> {
    /// Whether the call did what it should.
    pub(super) fn is_ok(&self) -> bool {
        !self.is_error
    }

    /// What it says.
    pub(super) fn text(&self) -> Cow<'a, str> {
        match self.parts {
            [Part::Text { text }] => Cow::Borrowed(text),
            parts => Cow::Owned(texts(parts).collect::<Vec<_>>().join("\n")),
        }
    }

    /// The images and sounds that it brought.
    pub(super) fn media(&self) -> impl Iterator<Item = &'a str> {
        media(self.parts)
    }

    /// The line that `read_file` and `list_directory` put before what they show, and the rest.
    pub(super) fn headed(text: &str) -> (Option<&str>, &str) {
        match text.split_once('\n').unwrap_or((text, "")) {
            (head, rest) if head.starts_with('`') && head.ends_with(':') => (Some(head), rest),
            _ => (None, text),
        }
    }

    /// All of a file that was read. `None` when this is not all of it, or that cannot be told.
    pub(super) fn whole_file(&self) -> Option<String> {
        let text = self.text();
        if text.starts_with('`') && text.ends_with("` is empty") && !text.contains('\n') {
            return Some(String::new());
        }
        let (head, rest) = Came::headed(&text);
        // The name may have anything in it, so the head is read from its end.
        let head = head?.strip_suffix("):")?;
        let (lines, notes) = head.rsplit_once(" (of ")?;
        let count = notes.split(',').next()?;
        let is_whole = lines.ends_with(&format!("`, lines 1-{count}")) && !rest.contains("more bytes in this line]");
        is_whole.then(|| rest.to_string())
    }

    /// Whether the person did not want this call: it begins with a sentence about them, and that they said no.
    pub(super) fn is_refused(&self) -> bool {
        let text = self.text();
        let line = text.trim_start().lines().next().unwrap_or_default();
        let line = line[..line.floor_char_boundary(200)].to_lowercase();
        let line = line.strip_prefix("the ").unwrap_or(&line);
        let person = line.starts_with("person ") || line.starts_with("user ");
        let no = ["refused", "declined", "rejected", "said no", "not allow", "denied", "cancelled", "did not want"];
        self.is_error && person && no.iter().any(|no| line.contains(no))
    }
}

/// The texts among some parts.
pub(super) fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
}

/// The types of the images and sounds among some parts.
pub(super) fn media(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| if let Part::Media { mime, .. } = part { Some(mime.as_str()) } else { None })
}
