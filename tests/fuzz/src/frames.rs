//! Frames: how the bytes arrive makes no difference, and the buffer is bounded.

use attache_proto::frame::{Frame, Framing, Splitter};

use crate::input::Input;
use crate::message::json;

/// What a splitter may hold beside a message of the longest kind: what is read at once, and room to move it.
const SLACK: usize = 256 * 1024;

/// Any split of a stream gives the same frames, none of them longer than the limit, and no byte is lost between them.
pub fn frames(data: &[u8]) {
    let mut input = Input::new(data);
    let framing = input.pick(&[None, Some(Framing::Lines), Some(Framing::ContentLength)]);
    let limit = input.pick(&[8, 64, 300, 100_000]);
    let steps = [1 + input.below(7), 1 + input.below(100)];
    let stream = if input.one_in(2) { input.rest().to_vec() } else { composed(input) };
    let whole = split(framing, limit, &stream, &[stream.len().max(1)]);
    assert_eq!(whole, split(framing, limit, &stream, &[1]), "one byte at a time");
    assert_eq!(whole, split(framing, limit, &stream, &steps), "in pieces of {steps:?}");
}

/// Messages with and without headers, and what may be between them.
fn composed(mut input: Input<'_>) -> Vec<u8> {
    let mut stream = Vec::new();
    while !input.is_empty() {
        let start = stream.len();
        match input.below(8) {
            0..=2 => {
                stream.extend_from_slice(json(&mut input, 2).as_bytes());
                input.pick(&[Framing::Lines, Framing::ContentLength]).finish(&mut stream, start);
            }
            3 => {
                stream.extend_from_slice(format!("Content-Length: {}\r\n", input.byte()).as_bytes());
            }
            4 => {
                let between: [&[u8]; 9] = [
                    b"\n",
                    b"\r\n",
                    b"\r\n\r\n",
                    b"\xEF\xBB\xBF",
                    b"Content-Type: x\r\n",
                    b"Content-Length: 99999999999999\r\n\r\n",
                    b"content-length:2\n\n",
                    b"Content-addressed store ready\n",
                    b"\xff",
                ];
                stream.extend_from_slice(input.pick(&between));
            }
            5 => stream.extend_from_slice(&vec![b'x'; input.below(256)]),
            6 => stream.extend_from_slice(input.bytes(20)),
            _ => stream.truncate(start.saturating_sub(input.below(8))),
        }
    }
    stream
}

fn split(framing: Option<Framing>, limit: usize, stream: &[u8], steps: &[usize]) -> Vec<String> {
    let mut splitter = Splitter::new(framing, limit);
    let (mut found, mut passed) = (Vec::new(), Vec::new());
    let mut drain = |splitter: &mut Splitter| {
        while let Some(piece) = splitter.next_piece() {
            passed.extend_from_slice(piece.bytes);
            if let Some(Frame::Message(text)) = piece.frame {
                assert!(text.len() <= limit, "a frame of {} bytes with a limit of {limit}", text.len());
            }
            found.extend(piece.frame.map(|frame| format!("{frame:?}")));
        }
    };
    let mut rest = stream;
    for step in steps.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*step).min(rest.len()));
        rest = later;
        splitter.feed(now);
        drain(&mut splitter);
        let held = splitter.buffer().capacity();
        assert!(held <= 2 * (limit + step) + SLACK, "a buffer of {held} bytes with a limit of {limit}");
    }
    splitter.end();
    drain(&mut splitter);
    if !found.iter().any(|frame| frame.contains("TooLong")) {
        assert_eq!(passed.escape_ascii().to_string(), stream.escape_ascii().to_string(), "all bytes are passed on");
    }
    found
}
