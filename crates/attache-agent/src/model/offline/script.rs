//! Scripts: what is done for a prompt, written as if tools answered at once. [`Script`] makes that true: each request
//! runs the script again from its beginning, every call that the conversation has gives its result, and the first that it
//! does not have is made.

use super::answer::{Answer, Segment};
use crate::model::{EndReason, Message, Part, Request};

/// How the tool reports that the person said no; see `gate.rs` and `turn/calls.rs`.
const REFUSED: &str = "the person refused";

/// Why a script does not go on.
#[derive(Debug)]
pub(super) enum Exit {
    /// This tool has to be called first, with these arguments.
    Call(String, String),
    /// The answer ends here, for this reason.
    End(EndReason),
    /// The person said no.
    Refused,
}

/// What a part of a script gives, unless the script does not go on.
pub(super) type ScriptResult<T> = Result<T, Exit>;

/// A script that runs for a request.
pub(super) struct Script<'a> {
    request: &'a Request,
    /// The message that it has come to.
    at: usize,
    /// What it has said since its last call.
    segments: Vec<Segment>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolResult<'a> {
    parts: &'a [Part],
    pub(super) is_error: bool,
}

impl<'a> Script<'a> {
    /// A script at its beginning, which is after the last prompt.
    pub(super) fn new(request: &'a Request) -> Self {
        let prompt = request.messages.iter().rposition(|message| matches!(message, Message::User { .. }));
        Script { request, at: prompt.map_or(0, |at| at + 1), segments: Vec::new() }
    }

    /// The text of the prompt. What is attached to it begins with a tag, and is no command.
    pub(super) fn prompt(&self) -> String {
        let Some(Message::User { parts }) = self.request.messages[..self.at].last() else { return String::new() };
        let texts = parts.iter().filter_map(Part::as_text).filter(|text| !text.trim_start().starts_with('<'));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether nothing has been answered in this conversation before the prompt.
    pub(super) fn is_first(&self) -> bool {
        !self.request.messages[..self.at].iter().any(|message| matches!(message, Message::Assistant { .. }))
    }

    /// Says something, as a paragraph of its own.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        let text = self.paragraph(text.as_ref());
        self.segments.push(Segment::Text(text));
    }

    /// Says something a word at a time.
    pub(super) fn say_slowly(&mut self, text: &str) {
        let text = self.paragraph(text);
        self.segments.push(Segment::SlowText(text));
    }

    /// Thinks something.
    pub(super) fn think(&mut self, text: &str) {
        self.segments.push(Segment::Thought(text.into()));
    }

    /// A text, set off from what has been said before it.
    fn paragraph(&self, text: &str) -> String {
        let is_first = self.segments.iter().all(|segment| matches!(segment, Segment::Thought(_)));
        if is_first { text.into() } else { format!("\n\n{text}") }
    }

    /// Calls a tool. `None` when there is, or was, no such tool.
    pub(super) fn call(&mut self, tool: &str, arguments: impl ToString) -> ScriptResult<Option<ToolResult<'a>>> {
        let messages = &self.request.messages;
        let next = messages[self.at..].iter().enumerate().find_map(|(at, message)| match message {
            Message::Assistant { calls, .. } => Some((self.at + at + 1, calls.first()?)),
            _ => None,
        });
        match next {
            // Another call was made here, so there was no such tool then; the mode may have changed since.
            Some((_, call)) if call.name != tool => Ok(None),
            Some((after, call)) => {
                self.at = after;
                self.segments.clear();
                Ok(Some(ToolResult::find(&messages[after..], &call.id)))
            }
            None if self.request.tools.iter().any(|spec| spec.name == tool) => {
                Err(Exit::Call(tool.into(), arguments.to_string()))
            }
            None => Ok(None),
        }
    }

    /// The answer of a script that has come to its end, or does not go on.
    pub(super) fn answer(self, result: ScriptResult<()>) -> Answer {
        let (call, reason) = match result {
            Ok(()) | Err(Exit::Refused) => (None, EndReason::Done),
            Err(Exit::Call(tool, arguments)) => (Some((tool, arguments)), EndReason::Done),
            Err(Exit::End(reason)) => (None, reason),
        };
        Answer { segments: self.segments, call, reason }
    }
}

impl<'a> ToolResult<'a> {
    /// The result of a call, among the messages up to the next answer.
    fn find(messages: &'a [Message], call: &str) -> Self {
        let until_answer = messages.iter().take_while(|message| !matches!(message, Message::Assistant { .. }));
        let mut results = until_answer.filter_map(|message| match message {
            Message::Tool { id, parts, is_error, .. } if id == call => Some(ToolResult { parts, is_error: *is_error }),
            _ => None,
        });
        // Every call has a result. Where it is missing, somebody made a mistake, and the call counts as failed.
        results.next().unwrap_or(ToolResult { parts: &[], is_error: true })
    }

    /// What it says, with the types of images and sounds in their places.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Media { mime, .. } => mime,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether the person did not want this call.
    pub(super) fn is_refused(&self) -> bool {
        self.is_error && self.parts.first().and_then(Part::as_text).is_some_and(|text| text.starts_with(REFUSED))
    }
}
