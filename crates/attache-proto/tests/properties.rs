//! What must hold for any input: checked with many inputs from repeatable dice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use attache_proto::Dialect;
use attache_proto::frame::{Frame, Framing, Splitter};
use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{AgentNotification, AgentRequest, ClientNotification, ClientRequest, Method};
use attache_proto::rpc::{Call, Event, Peer, RequestKey, Side};
use attache_testkit::Dice;

const SEEDS: u64 = 400;

/// A piece of JSON of any shape, sometimes broken.
fn json(dice: &mut Dice, depth: usize) -> String {
    let words = ["", "type", "text", "sessionId", "é\u{1F600}", "\\u00e9\\n\\\"", "\\ud83d\\ude00", "content", "x y"];
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => "null".into(),
        1 => dice.pick(&["true", "false"]).into(),
        2 => dice.pick(&["0", "-1", "3.25", "1e3", "-0.5E-2", "9007199254740993", "18446744073709551615"]).into(),
        3..=5 => format!("\"{}\"", dice.pick(&words)),
        6 | 7 => {
            let members: Vec<String> = (0..dice.below(4))
                .map(|number| format!("\"{}{number}\":{}", dice.pick(&words), json(dice, depth - 1)))
                .collect();
            format!("{{{}}}", members.join(dice.pick(&[",", " , "])))
        }
        _ => {
            let items: Vec<String> = (0..dice.below(4)).map(|_| json(dice, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
    }
}

/// The same text with a byte changed, removed or doubled.
fn damage(dice: &mut Dice, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.is_empty() {
        return String::new();
    }
    let at = dice.below(bytes.len());
    match dice.below(3) {
        0 => bytes[at] = *b"{}[]\",:\\ntu0-.e \t\x01"[..].get(dice.below(19)).unwrap_or(&b'x'),
        1 => {
            bytes.remove(at);
        }
        _ => bytes.insert(at, bytes[at]),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn our_reader_takes_what_the_fields_parser_takes() {
    for seed in 0..20 * SEEDS {
        let dice = &mut Dice::new(seed);
        let mut text = json(dice, 4);
        if dice.one_in(2) {
            text = damage(dice, &text);
        }
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match (RawJson::new(&text), theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert!(same(&serde_json::to_value(&ours).unwrap(), &theirs), "seed {seed}: {text}");
            }
            (Err(_), Err(_)) => {}
            // We read a lone surrogate as U+FFFD, and leave numbers that no type holds as they are.
            (Ok(_), Err(error)) => {
                let why = error.to_string();
                let known = ["surrogate", "hex escape", "number out of range"].iter().any(|known| why.contains(known));
                assert!(known, "seed {seed}: {why}: {text}");
            }
            (Err(error), Ok(_)) => panic!("seed {seed}: {error}: {text}"),
        }
    }
}

/// Equal, but for the last digit of a float: by default the other parser trades it for speed.
fn same(ours: &serde_json::Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            ours == theirs || (a - b).abs() <= a.abs() * 1e-15
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len() && ours.iter().all(|(key, a)| theirs.get(key).is_some_and(|b| same(a, b)))
        }
        _ => ours == theirs,
    }
}

#[test]
fn any_split_of_the_bytes_gives_the_same_frames() {
    for seed in 0..SEEDS {
        let dice = &mut Dice::new(seed);
        let framing = if dice.one_in(2) { Framing::Lines } else { Framing::ContentLength };
        let mut bytes = Vec::new();
        for _ in 0..dice.below(12) {
            let start = bytes.len();
            bytes.extend_from_slice(json(dice, 3).as_bytes());
            framing.finish(&mut bytes, start);
            if framing == Framing::Lines && dice.one_in(4) {
                bytes.extend_from_slice(dice.pick(&[&b"\n"[..], b"junk\xff\n", b"\r\n", b"banner\n"]));
            }
        }
        let whole = frames(framing, &bytes, |_| bytes.len().max(1));
        let split = frames(framing, &bytes, |dice| 1 + dice.below(9));
        assert_eq!(whole, split, "seed {seed}");

        fn frames(framing: Framing, bytes: &[u8], step: impl Fn(&mut Dice) -> usize) -> Vec<String> {
            let mut splitter = Splitter::new(Some(framing), 1000);
            let mut dice = Dice::new(7);
            let mut rest = bytes;
            let mut found = Vec::new();
            while !rest.is_empty() {
                let count = step(&mut dice).min(rest.len());
                splitter.feed(&rest[..count]);
                rest = &rest[count..];
                while let Some(frame) = splitter.next_frame() {
                    found.push(match frame {
                        Frame::Message(text) => text.to_string(),
                        Frame::Junk(junk) => format!("{junk:?}"),
                    });
                }
            }
            found
        }
    }
}

/// A message of some kind, its params or result free.
fn message(dice: &mut Dice) -> String {
    let id = dice.pick(&["0", "1", "2", "\"a\"", "null", "1.5", "{}"]).to_string();
    let method = match dice.below(3) {
        0 => "initialize".to_string(),
        1 => "$/cancel_request".to_string(),
        _ => Method::ALL[dice.below(Method::ALL.len())].any_name().to_string(),
    };
    let free = json(dice, 3);
    match dice.below(6) {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{free}}}"#),
        1 => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id}}}}}"#),
        2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{free}}}"#),
        3 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"m","data":{free}}}}}"#),
        4 => {
            let entries: Vec<String> = (0..dice.below(4)).map(|_| message(dice)).collect();
            format!("[{}]", entries.join(","))
        }
        _ => {
            let whole = message(dice);
            damage(dice, &whole)
        }
    }
}

#[test]
fn random_operations_never_answer_twice_and_leave_nothing_behind() {
    for seed in 0..SEEDS {
        let dice = &mut Dice::new(seed);
        let side = if dice.one_in(2) { Side::Agent } else { Side::Client };
        let mut peer: Peer<usize> = Peer::new(side);
        if dice.one_in(3) {
            peer.set_accepts_batches(false);
        }
        peer.set_dialect([Dialect::V1, Dialect::V2Draft, Dialect::V2][dice.below(3)]);
        peer.set_strict(true);
        let mut out = Vec::new();
        let mut open: Vec<Call> = Vec::new();
        let mut waiting: HashMap<usize, RequestKey> = HashMap::new();
        let (mut served, mut requests, mut refused_or_answered) = (0, 0, 0);
        for _ in 0..60 {
            match dice.below(5) {
                0 | 1 => {
                    let frame = message(dice);
                    for event in peer.handle_frame(&frame, &mut out) {
                        match event {
                            Event::Call { call, .. } => {
                                served += 1;
                                open.push(call);
                            }
                            Event::Answer { waiter, .. } => {
                                assert!(waiting.remove(&waiter).is_some(), "seed {seed}: answered once");
                            }
                            Event::Cancel(call) => assert!(open.contains(&call), "seed {seed}: an open call"),
                            _ => {}
                        }
                    }
                }
                2 => {
                    let key = peer.request("ask", |writer| writer.raw("{}"), requests, &mut out);
                    waiting.insert(requests, key);
                    requests += 1;
                }
                3 if !open.is_empty() => {
                    let call = open.swap_remove(dice.below(open.len()));
                    peer.answer(call, |writer| writer.raw("true"), &mut out);
                    peer.answer(call, |writer| writer.raw("false"), &mut out);
                    refused_or_answered += 1;
                }
                _ => {
                    if let Some(waiter) = waiting.keys().next().copied() {
                        let key = waiting.remove(&waiter).unwrap();
                        assert_eq!(peer.abandon(key, &mut out), Some(waiter), "seed {seed}");
                    }
                }
            }
            assert_eq!(peer.owed(), open.len(), "seed {seed}");
            assert_eq!(peer.waiting(), waiting.len(), "seed {seed}");
        }
        for call in open.drain(..) {
            peer.answer(call, |writer| writer.raw("true"), &mut out);
            refused_or_answered += 1;
        }
        assert_eq!((peer.close().len(), peer.waiting(), peer.owed()), (waiting.len(), 0, 0), "seed {seed}");
        assert_eq!(served, refused_or_answered, "seed {seed}");
        // Everything that was written is JSON, one message a line, and no call has two results.
        let answered = String::from_utf8(out).unwrap().lines().flat_map(entries).filter(has_true).count();
        assert_eq!(answered, served, "seed {seed}");
    }

    fn entries(line: &str) -> Vec<serde_json::Value> {
        match serde_json::from_str(line).unwrap() {
            serde_json::Value::Array(entries) => entries,
            one => vec![one],
        }
    }

    fn has_true(entry: &serde_json::Value) -> bool {
        assert_ne!(entry["result"], false, "the second answer was not written");
        entry["result"] == true
    }
}

#[test]
fn no_params_make_any_method_panic() {
    for seed in 0..10 * SEEDS {
        let dice = &mut Dice::new(seed);
        let text = json(dice, 5);
        for dialect in [Dialect::V1, Dialect::V2Draft, Dialect::V2] {
            for method in Method::ALL.iter().copied() {
                let mut tolerated = Vec::new();
                let _ = ClientRequest::decode(method, Some(&text), dialect, &mut tolerated);
                let _ = AgentRequest::decode(method, Some(&text), dialect, &mut tolerated);
                let _ = ClientNotification::decode(method, Some(&text), dialect, &mut tolerated);
                let _ = AgentNotification::decode(method, Some(&text), dialect, &mut tolerated);
            }
            if seed % 10 == 0 {
                let _ = Reader::new(&text, dialect).decode::<attache_proto::model::SessionUpdate>();
            }
        }
    }
}
