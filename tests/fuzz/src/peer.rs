//! One side of a connection, driven by any sequence of operations.

use std::collections::HashMap;

use attache_proto::Dialect;
use attache_proto::frame::Junk;
use attache_proto::method::Method;
use attache_proto::model::error::ErrorObject;
use attache_proto::rpc::{Call, Event, Peer, RequestKey, Side};
use serde_json::Value;

use crate::input::Input;
use crate::message::json;

/// What the peer of a [`Peer`] may have open and waiting.
struct Open {
    calls: Vec<Call>,
    waiting: HashMap<usize, RequestKey>,
    settled: usize,
}

/// Every call is answered once, every waiter is settled once, and nothing is left behind.
pub fn peer(data: &[u8]) {
    let mut input = Input::new(data);
    let mut peer: Peer<usize> = Peer::new(input.pick(&[Side::Agent, Side::Client]));
    peer.set_accepts_batches(!input.one_in(3));
    peer.set_strict(input.one_in(2));
    if !input.one_in(4) {
        peer.set_dialect(input.dialect());
    }
    let mut out = Vec::new();
    let mut open = Open { calls: Vec::new(), waiting: HashMap::new(), settled: 0 };
    let (mut served, mut answered, mut requests) = (0, 0, 0);
    while !input.is_empty() {
        match input.below(8) {
            0..=2 => {
                let frame = message(&mut input, 2);
                let before = out.len();
                let cut = input.below(256) % (frame.len() + 1);
                let start = frame.get(..cut).unwrap_or_default();
                let events: Vec<Event<'_, usize>> = match input.below(8) {
                    7 => peer.handle_junk(Junk::TooLong(start), &mut out).collect(),
                    6 => peer.handle_junk(Junk::NotUtf8(start), &mut out).collect(),
                    _ => peer.handle_frame(&frame, &mut out).collect(),
                };
                // An error for each message, with its id and a sentence.
                assert!(out.len() - before <= 4 * frame.len() + 512, "{} bytes for {frame}", out.len() - before);
                for event in events {
                    served += usize::from(open.note(event));
                }
            }
            3 => {
                let key = peer.request("ask", |writer| writer.raw("{}"), requests, &mut out);
                assert!(open.waiting.insert(requests, key).is_none());
                requests += 1;
            }
            4 if !open.calls.is_empty() => {
                let call = open.calls.swap_remove(input.below(open.calls.len().min(256)));
                peer.answer(call, |writer| writer.raw("true"), &mut out);
                peer.refuse(call, &ErrorObject::internal("twice"), &mut out);
                answered += 1;
            }
            5 => {
                peer.batch(
                    |batch| {
                        for _ in 0..input.below(3) {
                            let key = batch.request("ask", |writer| writer.raw("[]"), requests);
                            open.waiting.insert(requests, key);
                            requests += 1;
                            batch.notify("tell", |writer| writer.raw("{}"));
                        }
                    },
                    &mut out,
                );
            }
            6 => {
                let oldest = open.waiting.keys().min().copied();
                if let Some((waiter, key)) = oldest.and_then(|waiter| open.waiting.remove_entry(&waiter)) {
                    peer.cancel(key, &mut out);
                    assert_eq!(peer.abandon(key, &mut out), Some(waiter));
                    assert_eq!(peer.abandon(key, &mut out), None);
                    open.settled += 1;
                }
            }
            _ => {
                for waiter in peer.abandon_all(|waiter| waiter % 3 == 0, &mut out) {
                    assert!(open.waiting.remove(&waiter).is_some());
                    open.settled += 1;
                }
                peer.set_dialect(input.pick(&[Dialect::V1, Dialect::V2Draft, Dialect::V2]));
            }
        }
        assert_eq!((peer.open_calls(), peer.waiting()), (open.calls.len(), open.waiting.len()));
    }
    for call in open.calls.drain(..) {
        assert!(peer.is_open(call));
        peer.answer(call, |writer| writer.raw("true"), &mut out);
        answered += 1;
    }
    for waiter in peer.close() {
        assert!(open.waiting.remove(&waiter).is_some());
        open.settled += 1;
    }
    assert_eq!((peer.open_calls(), peer.waiting(), open.waiting.len()), (0, 0, 0));
    assert_eq!((served, requests), (answered, open.settled));
    // Everything that was written is JSON, one message a line, and every call has one result.
    let results = String::from_utf8(out).unwrap().lines().flat_map(entries).filter(is_true).count();
    assert_eq!(results, served);
}

impl Open {
    /// Takes note of an event; says whether it is a call.
    fn note(&mut self, event: Event<'_, usize>) -> bool {
        match event {
            Event::Call { call, .. } => {
                assert!(!self.calls.contains(&call));
                self.calls.push(call);
                return true;
            }
            Event::Answer { waiter, .. } => {
                assert!(self.waiting.remove(&waiter).is_some(), "a waiter is settled once");
                self.settled += 1;
            }
            Event::Cancel(call) => assert!(self.calls.contains(&call), "only what is open can be cancelled"),
            Event::Notification { .. } | Event::Violation(_) => {}
        }
        false
    }
}

/// A message of some kind, more or less right.
fn message(input: &mut Input<'_>, depth: usize) -> String {
    let id = input.pick(&["0", "1", "2", "3", "\"a\"", "null", "1.5", "{}", "-1", "9223372036854775807", "1e3"]);
    let method = match input.below(3) {
        0 => "initialize",
        1 => "$/cancel_request",
        _ => Method::ALL[input.below(Method::ALL.len())].any_name(),
    };
    let anything = json(input, depth);
    match input.below(if depth == 0 { 5 } else { 8 }) {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{anything}}}"#),
        1 => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id}}}}}"#),
        2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{anything}}}"#),
        3 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"m","data":{anything}}}}}"#),
        4 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{anything},"method":"{method}","error":{anything}}}"#),
        5 => {
            let entries: Vec<String> = (0..input.below(4)).map(|_| message(input, depth - 1)).collect();
            format!("[{}]", entries.join(","))
        }
        6 => String::from_utf8_lossy(input.bytes(60)).into_owned(),
        _ => {
            let mut bytes = message(input, depth - 1).into_bytes();
            if !bytes.is_empty() {
                let at = input.below(256) % bytes.len();
                bytes[at] = input.byte();
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

fn entries(line: &str) -> Vec<Value> {
    match serde_json::from_str(line).unwrap() {
        Value::Array(entries) => entries,
        one => vec![one],
    }
}

fn is_true(entry: &Value) -> bool {
    entry["result"] == true
}
