//! From an answer to the pieces that a model would stream it in.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::model::{Call, End, EndReason, Message, Part, Piece, Reply, Request, Usage};

/// How long there is between the words of what is said slowly.
const PAUSE: Duration = Duration::from_millis(50);

/// A text comes in no more pieces than this: beyond it a piece is more than a word, so that long texts stay cheap.
const PIECES: usize = 2000;

/// How many bytes are taken for a token.
const TOKEN: usize = 4;

/// What is answered.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) bits: Vec<Bit>,
    pub(super) calls: Vec<Planned>,
    pub(super) reason: EndReason,
}

/// Something that is said, in one way or another.
#[derive(Debug, PartialEq)]
pub(super) enum Bit {
    Text(String),
    /// Text, with a pause before each word.
    Slow(String),
    Thought(String),
}

/// A call that has no id yet.
#[derive(Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Streams an answer to a request.
pub(super) fn reply(answer: Answer, request: &Request) -> Reply {
    stream::iter(pieces(answer, request))
        .then(|(piece, slow)| async move {
            if slow {
                tokio::time::sleep(PAUSE).await;
            }
            Ok(piece)
        })
        .boxed()
}

/// The pieces of an answer, and whether there is a pause before them.
fn pieces(answer: Answer, request: &Request) -> Vec<(Piece, bool)> {
    let Answer { mut bits, mut calls, mut reason } = answer;
    let most = request.max_tokens.map_or(usize::MAX, |tokens| tokens as usize * TOKEN);
    if cut(&mut bits, &mut calls, most) {
        reason = EndReason::MaxTokens;
    }
    let mut pieces = Vec::new();
    let mut output = 0;
    for bit in bits {
        let (text, slow, piece): (_, _, fn(String) -> Piece) = match bit {
            Bit::Text(text) => (text, false, Piece::Text),
            Bit::Slow(text) => (text, true, Piece::Text),
            Bit::Thought(text) => (text, false, Piece::Thought),
        };
        output += text.len();
        pieces.extend(chunks(&text).map(|chunk| (piece(chunk.into()), slow)));
    }
    let seed = fingerprint(request);
    for (number, Planned { name, arguments }) in calls.into_iter().enumerate() {
        let id = format!("call_{seed:016x}_{number}");
        output += name.len() + arguments.len();
        pieces.push((Piece::CallStarted { id: id.clone(), name: name.clone() }, false));
        let parts = if arguments.len() > 40 { 3 } else { 2 };
        for part in 1..=parts {
            let end = arguments.floor_char_boundary(arguments.len() / parts * part);
            let end = if part == parts { arguments.len() } else { end };
            pieces.push((Piece::CallGrew { id: id.clone(), arguments: arguments[..end].into() }, false));
        }
        pieces.push((Piece::Call(Call { id, name, arguments }), false));
    }
    let usage = Usage { input: tokens(size(request)), output: tokens(output), ..Usage::default() };
    pieces.push((Piece::End(End { reason, usage, opaque: None }), false));
    pieces
}

/// Cuts what is beyond `most` bytes, as a limit of tokens does. Says whether there was any.
fn cut(bits: &mut Vec<Bit>, calls: &mut Vec<Planned>, most: usize) -> bool {
    let mut left = most;
    for at in 0..bits.len() {
        let (Bit::Text(text) | Bit::Slow(text) | Bit::Thought(text)) = &mut bits[at];
        if text.len() > left {
            text.truncate(text.floor_char_boundary(left));
            bits.truncate(at + 1);
            calls.clear();
            return true;
        }
        left -= text.len();
    }
    let whole = calls.iter().take_while(|call| {
        let size = call.name.len() + call.arguments.len();
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    let whole = whole.count();
    let was_cut = whole < calls.len();
    calls.truncate(whole);
    was_cut
}

/// A text in pieces of a word each, with the space after it.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let least = text.len() / PIECES;
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = rest.floor_char_boundary(least);
        let word = rest[from..].find(char::is_whitespace).map_or(rest.len(), |at| from + at);
        let end = rest[word..].find(|c: char| !c.is_whitespace()).map_or(rest.len(), |at| word + at);
        let (chunk, after) = rest.split_at(end);
        rest = after;
        Some(chunk)
    })
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN) as u64
}

/// How many bytes go in.
fn size(request: &Request) -> usize {
    let of = |parts: &[Part]| -> usize {
        let sizes = parts.iter().map(|part| match part {
            Part::Text { text } => text.len(),
            Part::Media { data, .. } => data.len(),
        });
        sizes.sum()
    };
    let messages = request.messages.iter().map(|message| match message {
        Message::User { parts } | Message::Tool { parts, .. } => of(parts),
        Message::Assistant { text, calls, .. } => {
            text.len() + calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
        }
    });
    let tools =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len());
    request.system.len() + messages.sum::<usize>() + tools.sum::<usize>()
}

/// A number for this place in this conversation. Ids are made of it: the same conversation gives the same ids, and no
/// two places of one conversation do, also when its beginning has been replaced by a summary.
fn fingerprint(request: &Request) -> u64 {
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for message in &request.messages {
        match message {
            Message::User { parts } => {
                add(b"user");
                super::stage::texts(parts).for_each(|text| add(text.as_bytes()));
            }
            Message::Assistant { calls, .. } => {
                add(b"assistant");
                calls.iter().for_each(|call| add(call.id.as_bytes()));
            }
            // What came of calls may name folders that differ from run to run, and tells no two places apart.
            Message::Tool { .. } => add(b"tool"),
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Answer {
        Answer { bits: vec![Bit::Text(text.into())], calls: Vec::new(), reason: EndReason::Done }
    }

    #[test]
    fn words_come_one_by_one_and_make_the_text_again() {
        for text in ["one two  three\nfour ", "", " ", "ä ö", &"x".repeat(9000), &"word ".repeat(9000)] {
            let chunks: Vec<_> = chunks(text).collect();
            assert_eq!(chunks.concat(), text);
            assert!(chunks.len() <= PIECES + 1);
        }
        assert_eq!(chunks("one two  three").collect::<Vec<_>>(), ["one ", "two  ", "three"]);
    }

    #[test]
    fn arguments_grow_until_they_are_whole() {
        for arguments in ["", "{}", "{\"path\":\"ä\"}", &format!("{{\"content\":\"{}\"}}", "é".repeat(100))] {
            let calls = vec![Planned { name: "t".into(), arguments: arguments.to_string() }];
            let answer = Answer { bits: Vec::new(), calls, reason: EndReason::Done };
            let pieces: Vec<_> = pieces(answer, &Request::default()).into_iter().map(|(piece, _)| piece).collect();
            assert!(matches!(&pieces[0], Piece::CallStarted { name, .. } if name == "t"));
            let mut before = 0;
            for piece in &pieces[1..pieces.len() - 2] {
                let Piece::CallGrew { arguments: so_far, .. } = piece else { panic!("{piece:?}") };
                assert!(arguments.starts_with(so_far.as_str()) && so_far.len() >= before);
                before = so_far.len();
            }
            assert_eq!(before, arguments.len());
            assert!(matches!(&pieces[pieces.len() - 2], Piece::Call(call) if call.arguments == *arguments));
        }
    }

    #[test]
    fn a_limit_of_tokens_cuts_the_answer() {
        let request = Request { max_tokens: Some(2), ..Request::default() };
        let pieces = pieces(said("äääääääää"), &request);
        assert_eq!(pieces[0].0, Piece::Text("ääää".into()));
        assert!(matches!(&pieces[1].0, Piece::End(end) if end.reason == EndReason::MaxTokens && end.usage.output == 2));
    }

    #[test]
    fn no_two_places_of_a_conversation_have_the_same_ids() {
        let mut request = Request { messages: vec![Message::user("list")], ..Request::default() };
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let print = fingerprint(&request);
            assert!(seen.insert(print));
            let call = Call { id: format!("{print}"), name: "list_directory".into(), arguments: "{}".into() };
            request.messages.push(Message::Assistant { text: String::new(), calls: vec![call], opaque: None });
        }
    }
}
