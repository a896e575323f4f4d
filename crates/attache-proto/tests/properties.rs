//! What must hold for any input: checked with many inputs from repeatable dice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use attache_proto::Dialect;
use attache_proto::frame::{Frame, Framing, Junk, Splitter};
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

/// Feeds bytes in pieces whose sizes `step` chooses. Returns a description of each frame, and the bytes of all pieces.
fn split(
    framing: Option<Framing>,
    limit: usize,
    bytes: &[u8],
    mut step: impl FnMut() -> usize,
) -> (Vec<String>, Vec<u8>) {
    let mut splitter = Splitter::new(framing, limit);
    let (mut found, mut passed) = (Vec::new(), Vec::new());
    let (mut rest, mut is_at_end) = (bytes, false);
    loop {
        while let Some(piece) = splitter.next_piece() {
            passed.extend_from_slice(piece.bytes);
            match piece.frame {
                Some(Frame::Message(text)) => found.push(text.to_string()),
                Some(Frame::Junk(junk)) => found.push(format!("{junk:?}")),
                None => {}
            }
        }
        if !rest.is_empty() {
            let (piece, after) = rest.split_at(step().min(rest.len()));
            splitter.feed(piece);
            rest = after;
        } else if is_at_end {
            return (found, passed);
        } else {
            is_at_end = true;
            splitter.end();
            found.push("end".into());
        }
    }
}

#[test]
fn any_split_of_the_bytes_gives_the_same_frames() {
    let pieces: [&[u8]; 24] = [
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"\r\n\r\n",
        b"Content-Length: 2",
        b"content-length :7 ",
        b"Content-Length: 40",
        b"Content-Length: 150",
        b"Content-Length: 99999999999999",
        b"Content-Length: x",
        b"Content-Length: 2\r\n\r\n{}",
        b"Content-Length: 7\n\n{\"a\":1}",
        b"Content-Type: text\r\n",
        b"{}",
        b"{\"a\":1}",
        b"{\"a\":1}\n",
        b"[\n",
        b"hello\n",
        b"\xff",
        b"\xc3\xa9",
        b"\xEF\xBB\xBF",
        b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        b"                                                                      ",
    ];
    for seed in 0..20 * SEEDS {
        let dice = &mut Dice::new(seed);
        let framing = [None, Some(Framing::Lines), Some(Framing::ContentLength)][dice.below(3)];
        let bytes = (0..dice.below(16)).map(|_| dice.pick(&pieces)).collect::<Vec<_>>().concat();
        let limit = [80, 100, 10_000][dice.below(3)];
        let (whole, passed) = split(framing, limit, &bytes, || usize::MAX);
        let shown = bytes.escape_ascii();
        if limit == 10_000 && !whole.iter().any(|frame| frame.starts_with("TooLong")) {
            assert_eq!(passed, bytes, "seed {seed}: all bytes are passed on: {shown}");
        }
        for step in [1, 9] {
            let steps = &mut Dice::new(seed);
            let (split, _) = split(framing, limit, &bytes, || 1 + steps.below(step));
            assert_eq!(whole, split, "seed {seed}, in pieces of up to {step}: {shown}");
        }
    }
}

#[test]
fn every_message_arrives_whatever_is_printed_between_them() {
    let printed = [
        "\n",
        "\r\n",
        "Content-addressed store ready\n",
        "[info] listening\n",
        "Content-Length: 2000\n",
        "Content-Length: 99999999999999\n",
        "Content-Length: 700\r\n\r\n",
        "Content-Type: text/plain\n\n",
        "warning: Content-Length: 12\n",
    ];
    for seed in 0..5 * SEEDS {
        let dice = &mut Dice::new(seed);
        let framing = if dice.one_in(2) { Framing::Lines } else { Framing::ContentLength };
        let (mut bytes, mut sent) = (Vec::new(), Vec::new());
        for number in 0..1 + dice.below(12) {
            // Whoever frames by headers prints text before it begins, if at all: its log goes elsewhere.
            while dice.one_in(2) && (framing == Framing::Lines || number == 0) {
                bytes.extend_from_slice(dice.pick(&printed).as_bytes());
            }
            let message = format!("{{\"id\":{number},\"params\":{}}}", valid_json(dice));
            let start = bytes.len();
            bytes.extend_from_slice(message.as_bytes());
            framing.finish(&mut bytes, start);
            sent.push(message);
        }
        let steps = &mut Dice::new(seed);
        let (found, _) = split(None, 1000, &bytes, || 1 + steps.below(99));
        let in_time = found.split(|frame| frame == "end").next().unwrap();
        let arrived: Vec<_> = in_time.iter().filter(|frame| frame.starts_with("{\"id\"")).collect();
        assert!(arrived.into_iter().eq(&sent), "seed {seed}: {}: {found:?}", bytes.escape_ascii());
    }
}

/// A piece of JSON of any shape.
fn valid_json(dice: &mut Dice) -> String {
    loop {
        let text = json(dice, 3);
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            return text;
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
                    let cut = dice.below(frame.len() + 1);
                    let start = frame.get(..cut).unwrap_or_default();
                    let events: Vec<_> = match dice.below(8) {
                        0 => peer.handle_junk(Junk::TooLong(start), &mut out).collect(),
                        1 => peer.handle_junk(Junk::NotUtf8(start), &mut out).collect(),
                        _ => peer.handle_frame(&frame, &mut out).collect(),
                    };
                    for event in events {
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
            assert_eq!(peer.open_calls(), open.len(), "seed {seed}");
            assert_eq!(peer.waiting(), waiting.len(), "seed {seed}");
        }
        for call in open.drain(..) {
            peer.answer(call, |writer| writer.raw("true"), &mut out);
            refused_or_answered += 1;
        }
        assert_eq!((peer.close().len(), peer.waiting(), peer.open_calls()), (waiting.len(), 0, 0), "seed {seed}");
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
                let _ = Reader::new(&text, dialect).decode::<attache_proto::model::update::SessionUpdate>();
            }
        }
    }
}
