//! What is no message, or answers nothing, and what came of it.
//!
//! An error without an id says only by its place and its code what it answers. It is given to the oldest mistake that has no answer yet
//! and that calls for its code, so that a side which answers in order, or only some things late, is not misunderstood.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use attache_proto::json::MAX_DEPTH;
use attache_proto::model::request::RequestId;
use attache_proto::rpc::{Envelope, Violation, parse};
use serde_json::Value;

use super::calls::Answer;
use super::message::{Body, Message, MessageIndex, RpcError};
use crate::record::Side;

/// Something in the place of a message that nobody can do what it asks for.
#[derive(Debug)]
pub struct Mishap {
    /// Who sent it.
    pub from: Side,
    /// Where.
    pub at: MessageIndex,
    /// What is wrong.
    pub what: Mistake,
    /// How the other side answered it.
    pub answer: Option<Answer>,
}

/// What is wrong with something in the place of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// A line without anything in it.
    Blank,
    /// A line that is not JSON.
    NotJson,
    /// JSON of more levels than a reader has to take.
    TooDeep,
    /// Bytes that were not kept.
    Junk,
    /// An array without anything in it.
    EmptyBatch,
    /// JSON that is no message, and not meant as a response.
    Invalid(Violation),
    /// A response that cannot be read, or that answers nothing.
    Response,
}

impl Mistake {
    /// The code of the error that it calls for, if it calls for one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Mistake::NotJson | Mistake::TooDeep | Mistake::Junk => Some(-32700),
            Mistake::EmptyBatch | Mistake::Invalid(_) => Some(-32600),
            Mistake::Blank | Mistake::Response => None,
        }
    }
}

/// An array of messages.
#[derive(Debug)]
pub struct Batch {
    /// Who sent it.
    pub from: Side,
    /// The messages in it.
    pub messages: Range<MessageIndex>,
    /// The error that refuses all of it.
    pub refusal: Option<Answer>,
    is_served: bool,
}

/// A response to nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Stray {
    /// Who sent it.
    pub from: Side,
    /// Where.
    pub at: MessageIndex,
    /// Its id.
    pub id: RequestId,
    /// What it seems to be meant for: a notification, a response, a blank line, or a request that was never answered.
    pub to: Option<MessageIndex>,
}

/// What may be answered by an error without an id.
#[derive(Debug, Clone, Copy)]
enum Open {
    Mishap(usize),
    Batch(usize),
}

/// What one side sent and the other has not answered.
#[derive(Debug, Default)]
struct Unanswered {
    unparsed: VecDeque<Open>,
    invalid: VecDeque<Open>,
    /// Arrays that hold nothing to be answered: refused by some, and by the others not answered.
    optional: VecDeque<Open>,
}

/// Finds mishaps and their answers.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    pub(super) mishaps: Vec<Mishap>,
    pub(super) batches: Vec<Batch>,
    pub(super) strays: Vec<Stray>,
    unanswered: [Unanswered; 2],
    /// Mishaps by who sent them and their id, as JSON.
    by_id: HashMap<(Side, String), VecDeque<usize>>,
    /// Bytes that were not kept, by who sent them, which may have had any id.
    junk: [VecDeque<usize>; 2],
    /// Responses that answer nothing or cannot be read, likewise.
    responses: HashMap<(Side, String), MessageIndex>,
}

impl Tracker {
    /// Takes in the beginning of an array.
    pub(super) fn begin_batch(&mut self, messages: &[Message<'_>], at: MessageIndex) {
        let first = &messages[at];
        let size = messages[at..].iter().take_while(|message| message.entry == first.entry).count();
        let entries = at..at + size;
        let asks = |message: &Message<'_>| {
            matches!(message.body, Body::Request { .. } | Body::Invalid { is_response: false, .. })
        };
        let open = Open::Batch(self.batches.len());
        let unanswered = &mut self.unanswered[place(first.from)];
        match messages[entries.clone()].iter().any(asks) {
            true => unanswered.invalid.push_back(open),
            false => unanswered.optional.push_back(open),
        }
        self.batches.push(Batch { from: first.from, messages: entries, refusal: None, is_served: false });
    }

    /// Takes in what is no message.
    pub(super) fn note(&mut self, message: &Message<'_>, at: MessageIndex) {
        let what = match &message.body {
            Body::EmptyBatch => Mistake::EmptyBatch,
            Body::Junk => Mistake::Junk,
            Body::NotJson if message.text.trim().is_empty() => Mistake::Blank,
            Body::NotJson if is_broken_response(message.text) => Mistake::Response,
            Body::NotJson if depth(message.text).is_some_and(|depth| depth > usize::from(MAX_DEPTH)) => {
                Mistake::TooDeep
            }
            Body::NotJson => Mistake::NotJson,
            Body::Invalid { is_response: true, .. } => Mistake::Response,
            Body::Invalid { violation, .. } => Mistake::Invalid(violation.clone()),
            Body::Request { .. } | Body::Notification { .. } | Body::Response { .. } => Mistake::Response,
        };
        let index = self.mishaps.len();
        if let Some(id) = id_of(message) {
            match &what {
                Mistake::Response => {
                    self.responses.insert((message.from, id), at);
                }
                _ => self.by_id.entry((message.from, id)).or_default().push_back(index),
            }
        }
        if what == Mistake::Junk {
            self.junk[place(message.from)].push_back(index);
        }
        let unanswered = &mut self.unanswered[place(message.from)];
        match what.code() {
            Some(-32700) => unanswered.unparsed.push_back(Open::Mishap(index)),
            Some(_) => unanswered.invalid.push_back(Open::Mishap(index)),
            None => {}
        }
        self.mishaps.push(Mishap { from: message.from, at, what, answer: None });
    }

    /// Takes in a response with an id that no open request has. It is handed back if it answers no mishap of the other side.
    pub(super) fn answer_by_id(&mut self, to: Side, id: String, answer: Answer) -> Result<(), Answer> {
        let open = self.by_id.get_mut(&(to, id)).and_then(VecDeque::pop_front);
        match open.and_then(|index| self.mishaps.get_mut(index)).filter(|mishap| mishap.answer.is_none()) {
            Some(mishap) => {
                mishap.answer = Some(answer);
                Ok(())
            }
            None => Err(answer),
        }
    }

    /// Takes in a response with an id that no request has. It is handed back unless bytes that were not kept may have had the id.
    pub(super) fn answer_to_junk(&mut self, to: Side, answer: Answer) -> Result<(), Answer> {
        while let Some(index) = self.junk[place(to)].pop_front() {
            if let Some(mishap) = self.mishaps.get_mut(index).filter(|mishap| mishap.answer.is_none()) {
                mishap.answer = Some(answer);
                return Ok(());
            }
        }
        Err(answer)
    }

    /// Takes in an error without an id. `asked` is where an open request with the id null was sent, which it may answer. It is handed
    /// back if it answers no mishap.
    pub(super) fn answer_without_id(
        &mut self,
        to: Side,
        in_batch: bool,
        asked: Option<MessageIndex>,
        answer: Answer,
    ) -> Result<(), Answer> {
        let Err(error) = &answer.outcome else { return Err(answer) };
        let code = error.code;
        let unanswered = &mut self.unanswered[place(to)];
        let (mishaps, batches) = (&self.mishaps, &self.batches);
        for queue in [&mut unanswered.unparsed, &mut unanswered.invalid, &mut unanswered.optional] {
            while queue.front().is_some_and(|open| is_settled(*open, mishaps, batches, in_batch)) {
                queue.pop_front();
            }
        }
        let where_is = |open: &Open| match open {
            Open::Mishap(index) => mishaps[*index].at,
            Open::Batch(index) => batches[*index].messages.start,
        };
        let [unparsed, invalid, optional] = [&unanswered.unparsed, &unanswered.invalid, &unanswered.optional]
            .map(|queue| queue.front().map(where_is).filter(|at| *at < answer.at));
        let is_older = |mishap: Option<MessageIndex>| asked.is_none_or(|asked| mishap.is_some_and(|at| at < asked));
        let queue = match code {
            -32700 if unparsed.is_some() => &mut unanswered.unparsed,
            -32600 if invalid.is_some() && is_older(invalid) => &mut unanswered.invalid,
            -32600 if optional.is_some() && is_older(optional) => &mut unanswered.optional,
            _ if asked.is_some() => return Err(answer),
            _ if unparsed.is_some_and(|at| invalid.is_none_or(|other| at < other)) => &mut unanswered.unparsed,
            _ if invalid.is_some() => &mut unanswered.invalid,
            _ => return Err(answer),
        };
        match queue.pop_front() {
            Some(Open::Mishap(index)) => self.mishaps[index].answer = Some(answer),
            Some(Open::Batch(index)) => self.batches[index].refusal = Some(answer),
            None => return Err(answer),
        }
        Ok(())
    }

    /// A request of an array was answered by itself, so that the array was not refused.
    pub(super) fn serve(&mut self, entry_of: MessageIndex) {
        let after = self.batches.partition_point(|batch| batch.messages.start <= entry_of);
        let batch = after.checked_sub(1).and_then(|index| self.batches.get_mut(index));
        let Some(batch) = batch.filter(|batch| batch.messages.contains(&entry_of)) else { return };
        batch.is_served = true;
        // What seemed to refuse it was meant for something else.
        if let Some(answer) = batch.refusal.take() {
            let from = batch.from;
            let at = answer.at;
            if self.answer_without_id(from, false, None, answer).is_err() {
                self.stray(super::other(from), at, RequestId::Null);
            }
        }
    }

    /// Takes in a response that answers nothing.
    pub(super) fn stray(&mut self, from: Side, at: MessageIndex, id: RequestId) {
        let to = self.responses.get(&(super::other(from), json_of(&id))).copied();
        self.strays.push(Stray { from, at, id, to });
    }

    /// Finds out what strays without an id seem to be meant for. `is_open` says of a request whether it was never answered.
    pub(super) fn explain(&mut self, messages: &[Message<'_>], is_open: impl Fn(MessageIndex) -> bool) {
        let stray_at: HashMap<MessageIndex, usize> =
            self.strays.iter().enumerate().map(|(index, stray)| (stray.at, index)).collect();
        let mishaps: HashMap<MessageIndex, &Mistake> =
            self.mishaps.iter().map(|mishap| (mishap.at, &mishap.what)).collect();
        let mut last: [Option<MessageIndex>; 2] = [None, None];
        for (at, message) in messages.iter().enumerate() {
            let provokes = match &message.body {
                Body::Notification { .. } => true,
                Body::Request { .. } => is_open(at),
                _ => stray_at.contains_key(&at) || mishaps.get(&at).is_some_and(|what| what.code().is_none()),
            };
            if let Some(stray) = stray_at.get(&at).map(|index| &mut self.strays[*index])
                && stray.id == RequestId::Null
                && stray.to.is_none()
            {
                stray.to = last[place(super::other(message.from))];
            }
            if provokes {
                last[place(message.from)] = Some(at);
            }
        }
    }
}

/// Whether something needs no error without an id any more. An error in an array does not refuse an array.
fn is_settled(open: Open, mishaps: &[Mishap], batches: &[Batch], in_batch: bool) -> bool {
    match open {
        Open::Batch(index) => in_batch || batches[index].is_served || batches[index].refusal.is_some(),
        Open::Mishap(index) => {
            let mishap = &mishaps[index];
            let after = batches.partition_point(|batch| batch.messages.start <= mishap.at);
            let batch = after.checked_sub(1).map(|index| &batches[index]);
            let is_refused = batch.is_some_and(|batch| batch.refusal.is_some() && batch.messages.contains(&mishap.at));
            mishap.answer.is_some() || is_refused
        }
    }
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Client)
}

/// Whether a text is not JSON, but begins as a response does.
fn is_broken_response(text: &str) -> bool {
    matches!(parse(text), Envelope::NotJson { response_to } if !response_to.is_empty())
}

/// How deep the arrays and objects of a text nest, if they are all closed as they were opened.
pub fn depth(text: &str) -> Option<usize> {
    let (mut open, mut deepest) = (Vec::new(), 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                open.push(byte);
                deepest = deepest.max(open.len());
            }
            b']' | b'}' => {
                let begin = if byte == b']' { b'[' } else { b'{' };
                if open.pop() != Some(begin) {
                    return None;
                }
            }
            _ => {}
        }
    }
    (open.is_empty() && !in_string).then_some(deepest)
}

/// An id as JSON.
pub(super) fn json_of(id: &RequestId) -> String {
    match id {
        RequestId::Null => "null".to_owned(),
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => Value::from(&**text).to_string(),
    }
}

/// The id that stands in a message, as JSON, also where it is none; absent and null are the same.
pub(super) fn id_of(message: &Message<'_>) -> Option<String> {
    match &message.body {
        Body::Invalid { id: Some(id), .. } | Body::Request { id, .. } | Body::Response { id, .. } => {
            Some(json_of(id)).filter(|_| *id != RequestId::Null)
        }
        Body::Invalid { .. } if message.in_batch.is_none() => {
            let message: Value = serde_json::from_str(message.text).ok()?;
            message.get("id").filter(|id| !id.is_null()).map(Value::to_string)
        }
        Body::NotJson => leading_id(message.text),
        _ => None,
    }
}

/// The id that stands at the beginning of a line that cannot be read, as JSON. Somebody else may be able to read it: one that is very
/// deep, for example.
fn leading_id(text: &str) -> Option<String> {
    const BEGINNING: usize = 200;
    let end = text.char_indices().nth(BEGINNING).map_or(text.len(), |(end, _)| end);
    let (_, rest) = text[..end].split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let id = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
    (id.is_string() || id.is_number()).then(|| id.to_string())
}

/// What a response says that cannot be read as one: at least whether it is an error.
pub(super) fn outcome_of(message: &Message<'_>) -> Result<Value, RpcError> {
    let value: Value = serde_json::from_str(message.text).unwrap_or_default();
    match &value["error"] {
        Value::Null => Ok(value["result"].clone()),
        error => Err(RpcError {
            code: error["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        }),
    }
}
