use super::*;

/// Feeds `bytes` in pieces of `step` bytes and describes what comes out, one word a frame.
fn split(framing: Option<Framing>, limit: usize, bytes: &[u8], step: usize) -> Vec<String> {
    let mut splitter = Splitter::new(framing, limit);
    let mut found = Vec::new();
    for piece in bytes.chunks(step) {
        splitter.feed(piece);
        while let Some(frame) = splitter.next_frame() {
            found.push(describe(frame));
        }
    }
    found.extend(splitter.last_frame().map(describe));
    found
}

fn describe(frame: Frame<'_>) -> String {
    match frame {
        Frame::Message(text) => text.to_string(),
        Frame::Junk(junk) => format!("<{junk:?}>"),
    }
}

/// Whatever the pieces, the frames are the same.
#[track_caller]
fn check(framing: Option<Framing>, bytes: &[u8], expected: &[&str]) {
    for step in [1, 2, 3, 7, bytes.len().max(1)] {
        assert_eq!(split(framing, 32, bytes, step), expected, "in pieces of {step}");
    }
}

#[test]
fn lines_are_messages() {
    check(None, b"{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
    check(None, b"\xEF\xBB\xBF{}\r\n\r\n \n[]\r\n", &["{}", "[]"]);
    check(None, b"{\"a\":1}", &["{\"a\":1}"]);
}

#[test]
fn law_7_junk_lines_do_not_hide_their_neighbours() {
    check(None, b"hello\n{}\n", &["hello", "{}"]);
    check(None, b"{}\n\xff\xfe\n{}\n", &["{}", "<NotUtf8>", "{}"]);
    let long = [b"{}\n".as_slice(), &[b'x'; 100], b"\n{}\n"].concat();
    check(None, &long, &["{}", "<TooLong>", "{}"]);
}

#[test]
fn content_length_is_recognised() {
    check(None, b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: x\r\n\r\n[1]", &["{}", "[1]"]);
    check(None, b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", &["{}"]);
    check(Some(Framing::ContentLength), b"Content-Length: x\r\nContent-Length: 2\n\n{}", &["<BadHeader>", "{}"]);
}

#[test]
fn law_7_a_long_body_is_dropped_alone() {
    let bytes = [b"Content-Length: 50\r\n\r\n".as_slice(), &[b'x'; 50], b"Content-Length: 2\r\n\r\n{}"].concat();
    check(None, &bytes, &["<TooLong>", "{}"]);
}

#[test]
fn a_written_frame_reads_back() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut buffer = b"".to_vec();
        for text in ["{\"a\":\"é\"}", "[]"] {
            let start = buffer.len();
            buffer.extend_from_slice(text.as_bytes());
            framing.finish(&mut buffer, start);
        }
        check(Some(framing), &buffer, &["{\"a\":\"é\"}", "[]"]);
    }
}

#[test]
fn the_space_of_a_large_message_is_given_back() {
    let mut splitter = Splitter::new(None, 8 << 20);
    splitter.feed(&vec![b'x'; 4 << 20]);
    splitter.feed(b"\n");
    assert!(splitter.next_frame().is_some());
    assert!(splitter.buffer().capacity() < KEPT);
}
