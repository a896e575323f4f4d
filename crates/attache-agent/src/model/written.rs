//! Calls that a model writes as text: its server does not know its template, or the model was never taught to call.
//!
//! Such an answer is a call only if all of it is, if it names a tool that there is, and if it is nobody else's text: what
//! stands in a file, a result or a prompt and is said again is a quotation, and is shown.

mod quoted;
mod templates;

use futures_util::stream::{self, BoxStream, StreamExt};

use super::remote::{Out, Trouble, spare_id};
use super::{EndReason, Piece, Request};
use crate::tools::usual_name;
pub(super) use quoted::Told;
pub(super) use templates::{WrittenCall, call_of, calls_in, object};

/// How much of an answer is held back until it is known what it is.
const MOST_HELD: usize = 256 << 10;

/// The pieces of an answer, with calls in the place of text that is nothing but calls.
pub(super) fn recognise(
    answer: BoxStream<'static, Result<Piece, Trouble>>,
    request: &Request,
) -> BoxStream<'static, Result<Piece, Trouble>> {
    let holder = Holder {
        out: Out::new(&request.messages),
        names: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        told: Told::new(request),
        held: Some(String::new()),
    };
    let pieces = stream::unfold((answer, holder), |(mut answer, mut holder)| async move {
        loop {
            if let Some(piece) = holder.out.pop() {
                return Some((Ok(piece), (answer, holder)));
            }
            match answer.next().await? {
                Ok(piece) => holder.handle(piece),
                Err(trouble) => return Some((Err(trouble), (answer, holder))),
            }
        }
    });
    pieces.boxed()
}

/// Holds text back that may turn out to be a call.
struct Holder {
    out: Out,
    names: Vec<String>,
    told: Told,
    /// `None` when it is known to be no call.
    held: Option<String>,
}

impl Holder {
    fn handle(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => match &mut self.held {
                Some(held) => {
                    add(held, &text);
                    if held.len() > MOST_HELD || !may_be_call(held) {
                        self.give_up();
                    } else {
                        self.out.push(Piece::Held);
                    }
                }
                None => self.out.text(&text),
            },
            Piece::End(end) => {
                let held = self.held.take().unwrap_or_default();
                match self.calls(&held).filter(|_| end.reason == EndReason::Done) {
                    Some(calls) => {
                        for (number, call) in (0..).zip(calls) {
                            if self.out.start(number, "", usual_name(&call.name), spare_id).is_ok() {
                                self.out.grow(number, &call.arguments);
                                self.out.finish(number);
                            }
                        }
                    }
                    None => self.out.text(&held),
                }
                self.out.push(Piece::End(end));
            }
            // A call of the model's own, or a sign of one: what it says beside that is said.
            Piece::CallStarted { .. } | Piece::CallGrew { .. } | Piece::Call(_) => {
                self.give_up();
                self.out.push(piece);
            }
            other => self.out.push(other),
        }
    }

    fn give_up(&mut self) {
        let held = self.held.take().unwrap_or_default();
        self.out.text(&held);
    }

    /// The calls that a whole answer is. `None` if it is anything else.
    fn calls<'a>(&self, text: &'a str) -> Option<Vec<WrittenCall<'a>>> {
        let is_known = |call: &WrittenCall<'_>| self.names.iter().any(|known| known == usual_name(&call.name));
        calls_in(text).filter(|calls| calls.iter().all(|call| is_known(call) && !self.told.has(call)))
    }
}

/// How answers begin that are calls.
const BEGINNINGS: [&str; 10] =
    ["{\"", "[{", "```json", "```tool", "```\n", "<tool_call>", "<function", "[TOOL_CALLS]", "<|", "<｜tool"];

/// How many bytes of white space are kept before an answer.
const MOST_BLANK: usize = 256;

/// Adds a piece to an answer. White space before it says nothing, however much of it there is.
pub(super) fn add(all: &mut String, text: &str) {
    let is_blank = all.len() <= MOST_BLANK && all.trim_start().is_empty();
    let blank = if is_blank { text.len() - text.trim_start().len() } else { 0 };
    let kept = text.floor_char_boundary(blank.min(MOST_BLANK.saturating_sub(all.len())));
    all.push_str(&text[..kept]);
    all.push_str(&text[blank..]);
}

/// Whether an answer that begins like this may become a call.
pub(super) fn may_be_call(text: &str) -> bool {
    let text = text.trim_start();
    // White space is allowed in JSON.
    let dense: String = text.chars().take(40).filter(|c| !matches!(c, ' ' | '\t' | '\r' | '\n')).collect();
    let fits = |beginning: &str| {
        let is_fence = beginning.ends_with('\n');
        let head = if is_fence { text } else { dense.as_str() };
        head.starts_with(beginning) || beginning.starts_with(head)
    };
    BEGINNINGS.iter().any(|beginning| fits(beginning))
}

#[cfg(test)]
mod tests;
