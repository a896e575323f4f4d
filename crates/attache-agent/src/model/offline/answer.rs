//! From an answer to the pieces that a model would stream it in.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::model::{Call, End, EndReason, Message, Part, Piece, Reply, Request, Usage};
use crate::tokens;

/// The time before each word of what is said slowly.
const PAUSE: Duration = Duration::from_millis(50);

/// A longer text comes in one piece: nobody watches so many words, and each piece has its price.
const MAX_STREAMED: usize = 64 << 10;

/// What is answered to a request.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) segments: Vec<Segment>,
    /// The tool that is called in the end, and its arguments.
    pub(super) call: Option<(String, String)>,
    pub(super) reason: EndReason,
}

/// Something that is said.
#[derive(Debug, PartialEq)]
pub(super) enum Segment {
    Text(String),
    /// Text with a pause before each word.
    SlowText(String),
    Thought(String),
}

/// Streams an answer to a request.
pub(super) fn stream(answer: Answer, request: &Request) -> Reply {
    stream::iter(pieces(answer, request))
        .then(|(piece, is_slow)| async move {
            if is_slow {
                tokio::time::sleep(PAUSE).await;
            }
            Ok(piece)
        })
        .boxed()
}

/// The pieces of an answer, and whether there is a pause before them.
fn pieces(answer: Answer, request: &Request) -> Vec<(Piece, bool)> {
    let mut pieces = Vec::new();
    let mut output = 0;
    for segment in answer.segments {
        let (text, is_slow, piece): (_, _, fn(String) -> Piece) = match segment {
            Segment::Text(text) => (text, false, Piece::Text),
            Segment::SlowText(text) => (text, true, Piece::Text),
            Segment::Thought(text) => (text, false, Piece::Thought),
        };
        output += text.len();
        if text.len() > MAX_STREAMED {
            pieces.push((piece(text), is_slow));
        } else {
            pieces.extend(text.split_inclusive(char::is_whitespace).map(|word| (piece(word.into()), is_slow)));
        }
    }
    if let Some((name, arguments)) = answer.call {
        let id = call_id(request);
        output += name.len() + arguments.len();
        let half = arguments[..arguments.floor_char_boundary(arguments.len() / 2)].to_string();
        let call = Call { id: id.clone(), name: name.clone(), arguments: arguments.clone() };
        let call = [
            Piece::CallStarted { id: id.clone(), name },
            Piece::CallGrew { id: id.clone(), arguments: half },
            Piece::CallGrew { id, arguments },
            Piece::Call(call),
        ];
        pieces.extend(call.map(|piece| (piece, false)));
    }
    let input = tokens::of_instructions(request) + tokens::of_messages(&request.messages);
    let usage = Usage { input, output: tokens::of_bytes(output), ..Usage::default() };
    pieces.push((Piece::End(End { reason: answer.reason, usage, opaque: None }), false));
    pieces
}

/// The id of the call that is made at this place of a conversation: the same each time it is asked, and not that of any
/// other place, also when the beginning of the conversation has been replaced by a summary.
fn call_id(request: &Request) -> String {
    let mut hasher = DefaultHasher::new();
    for message in &request.messages {
        match message {
            Message::User { parts } => parts.iter().filter_map(Part::as_text).for_each(|text| text.hash(&mut hasher)),
            Message::Assistant { calls, .. } => calls.iter().for_each(|call| call.id.hash(&mut hasher)),
            // Results may name folders that differ from run to run, and tell no two places apart.
            Message::Tool { .. } => {}
        }
    }
    format!("call_{:016x}", hasher.finish())
}
