//! What comes out of an answer: pieces in order, with calls put together from their parts.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::model::{Call, Message, Piece};

/// No model calls more tools than this in one answer, unless it or its server is out of its mind.
const MOST_CALLS: usize = 128;

/// Pieces that are ready, and calls that are not.
#[derive(Debug, Default)]
pub(crate) struct Out {
    ready: VecDeque<Piece>,
    /// The calls whose arguments still come, by the number that the reader gave them.
    open: BTreeMap<u64, OpenCall>,
    /// The ids of all calls of the conversation, because providers repeat theirs.
    taken: HashSet<String>,
    calls: usize,
    /// How much has come in all, in bytes: text, thoughts, arguments, and what is kept for the provider.
    bytes: usize,
    /// Whether the model has said anything that a person would miss.
    pub(crate) spoke: bool,
}

#[derive(Debug)]
struct OpenCall {
    id: String,
    name: String,
    arguments: String,
    /// How long the arguments were when they were last given out.
    shown: usize,
}

/// The model called more tools than anyone can.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyCalls;

impl Out {
    pub(crate) fn new(conversation: &[Message]) -> Self {
        let taken = conversation
            .iter()
            .filter_map(|message| match message {
                Message::Assistant { calls, .. } => Some(calls.iter().map(|call| call.id.clone())),
                _ => None,
            })
            .flatten()
            .collect();
        Out { taken, ..Out::default() }
    }

    pub(crate) fn pop(&mut self) -> Option<Piece> {
        self.ready.pop_front()
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        self.ready.push_back(piece);
    }

    /// How much has come in all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes that something came which nobody is shown, such as a signature.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.note(text.len());
            self.spoke = true;
            self.ready.push_back(Piece::Text(text.to_owned()));
        }
    }

    pub(crate) fn thought(&mut self, text: &str) {
        if !text.is_empty() {
            self.note(text.len());
            self.ready.push_back(Piece::Thought(text.to_owned()));
        }
    }

    /// A call begins. Gives the id that it has from now on: the provider's, or one of ours where that is missing or taken.
    pub(crate) fn start(
        &mut self,
        number: u64,
        id: &str,
        name: &str,
        spare: impl Fn(u64) -> String,
    ) -> Result<String, TooManyCalls> {
        self.calls += 1;
        if self.calls > MOST_CALLS {
            return Err(TooManyCalls);
        }
        self.spoke = true;
        self.note(id.len() + name.len());
        let mut id = id.to_owned();
        while id.is_empty() || self.taken.contains(&id) {
            id = spare(fastrand::u64(..));
        }
        self.taken.insert(id.clone());
        self.ready.push_back(Piece::CallStarted { id: id.clone(), name: name.to_owned() });
        let call = OpenCall { id: id.clone(), name: name.to_owned(), arguments: String::new(), shown: 0 };
        if let Some(earlier) = self.open.insert(number, call) {
            self.ready.push_back(earlier.done());
        }
        Ok(id)
    }

    /// The arguments of a call go on. They are given out whole, so only when they have grown by a fair share: giving
    /// out each step of a long file would take its length squared.
    pub(crate) fn grow(&mut self, number: u64, more: &str) {
        self.note(more.len());
        let Some(call) = self.open.get_mut(&number) else { return };
        call.arguments.push_str(more);
        if call.arguments.len() > call.shown + call.shown / 16 {
            call.shown = call.arguments.len();
            self.ready.push_back(Piece::CallGrew { id: call.id.clone(), arguments: call.arguments.clone() });
        }
    }

    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    pub(crate) fn finish(&mut self, number: u64) {
        if let Some(call) = self.open.remove(&number) {
            self.ready.push_back(call.done());
        }
    }

    pub(crate) fn finish_all(&mut self) {
        for (_, call) in std::mem::take(&mut self.open) {
            self.ready.push_back(call.done());
        }
    }
}

impl OpenCall {
    fn done(mut self) -> Piece {
        // A tool without arguments is often called with none at all.
        if self.arguments.trim().is_empty() {
            self.arguments = "{}".to_owned();
        }
        Piece::Call(Call { id: self.id, name: self.name, arguments: self.arguments })
    }
}

/// An id for a call that came without one: nine letters and digits, which is what the strictest of servers takes.
pub(crate) fn spare_id(random: u64) -> String {
    const SIGNS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut rest = random;
    let mut id = String::with_capacity(9);
    for _ in 0..9 {
        id.push(char::from(SIGNS[(rest % 36) as usize]));
        rest /= 36;
    }
    id
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn drain(out: &mut Out) -> Vec<Piece> {
        std::iter::from_fn(|| out.pop()).collect()
    }

    #[test]
    fn ids_are_unique_in_the_conversation() {
        let earlier = Call { id: "call_0".into(), name: "read".into(), arguments: "{}".into() };
        let message = Message::Assistant { text: String::new(), calls: vec![earlier], opaque: None };
        let mut out = Out::new(&[message]);
        let ids = ["call_0", "", "fresh", "fresh"]
            .iter()
            .enumerate()
            .map(|(number, id)| out.start(number as u64, id, "read", spare_id).unwrap())
            .collect::<Vec<_>>();
        assert_eq!(ids[2], "fresh");
        assert_eq!(ids.iter().chain(["call_0".to_owned()].iter()).collect::<HashSet<_>>().len(), 5, "{ids:?}");
        assert!(ids.iter().all(|id| id == "fresh" || id.len() == 9), "{ids:?}");
    }

    #[test]
    fn long_arguments_are_not_given_out_at_every_step() {
        let mut out = Out::default();
        out.start(0, "a", "write", spare_id).unwrap();
        for _ in 0..100_000 {
            out.grow(0, "xy");
        }
        out.finish(0);
        let pieces = drain(&mut out);
        assert!(pieces.len() < 300, "{}", pieces.len());
        let Some(Piece::Call(call)) = pieces.last() else { panic!("no call") };
        assert_eq!(call.arguments.len(), 200_000);
    }

    #[test]
    fn calls_without_number_end_somewhere() {
        let mut out = Out::default();
        let failed = (0..1000).find(|number| out.start(*number, "", "x", spare_id).is_err());
        assert_eq!(failed, Some(128));
    }
}
