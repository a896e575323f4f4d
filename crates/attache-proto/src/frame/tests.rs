use super::*;

/// The longest message in these tests.
const LIMIT: usize = 48;

/// Feeds `bytes` in pieces of `step` bytes and describes what comes out, one text a frame. What comes only because the
/// stream has ended stands behind `<end>`.
fn split(framing: Option<Framing>, limit: usize, bytes: &[u8], step: usize) -> Vec<String> {
    let mut splitter = Splitter::new(framing, limit);
    let mut found = Vec::new();
    for piece in bytes.chunks(step) {
        splitter.feed(piece);
        found.extend(frames(&mut splitter));
    }
    splitter.end();
    let last = frames(&mut splitter);
    if !last.is_empty() {
        found.push("<end>".into());
        found.extend(last);
    }
    found
}

fn frames(splitter: &mut Splitter) -> Vec<String> {
    std::iter::from_fn(|| splitter.next_frame().map(describe)).collect()
}

fn describe(frame: Frame<'_>) -> String {
    match frame {
        Frame::Message(text) => text.to_string(),
        Frame::Junk(Junk::NotUtf8(start)) => format!("<not UTF-8: {start}>"),
        Frame::Junk(Junk::TooLong(start)) => format!("<too long: {start}>"),
    }
}

/// Whatever the pieces, the frames are the same, and all bytes but those of messages that are too long are in a piece.
#[track_caller]
fn check(framing: Option<Framing>, bytes: &[u8], expected: &[&str]) {
    for step in [1, 2, 3, 7, bytes.len().max(1)] {
        assert_eq!(split(framing, LIMIT, bytes, step), expected, "in pieces of {step}");
    }
    let mut splitter = Splitter::new(framing, usize::MAX);
    splitter.feed(bytes);
    splitter.end();
    let mut passed = Vec::new();
    while let Some(piece) = splitter.next_piece() {
        passed.extend_from_slice(piece.bytes);
    }
    assert_eq!(passed.escape_ascii().to_string(), bytes.escape_ascii().to_string());
}

/// However much goes through, and in whatever pieces, a buffer has room for a few of the longest messages.
#[test]
fn a_buffer_does_not_grow_with_what_goes_through_it() {
    let length = 100_000;
    let line = [vec![b'x'; length - 1], vec![b'\n']].concat();
    for piece in [1000, CHUNK / 4, CHUNK, 65_536, 3 * length] {
        let mut splitter = Splitter::new(None, 16 << 20);
        let (mut found, mut pending) = (0, Vec::new());
        for _ in 0..400 {
            pending.extend_from_slice(&line);
            while pending.len() >= piece {
                splitter.feed(&pending[..piece]);
                pending.drain(..piece);
                found += frames(&mut splitter).len();
            }
            let most = 4 * (length + piece + CHUNK);
            assert!(splitter.buffer.capacity() <= most, "{} bytes in pieces of {piece}", splitter.buffer.capacity());
        }
        splitter.feed(&pending);
        assert_eq!(found + frames(&mut splitter).len(), 400, "in pieces of {piece}");
    }
}

#[test]
fn lines_are_messages() {
    check(None, b"{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
    check(None, b"\xEF\xBB\xBF{}\r\n\r\n \n[]\r\n", &["{}", "[]"]);
    check(None, b"{\"a\":1}", &["<end>", "{\"a\":1}"]);
    check(None, b"{}\nbye", &["{}", "<end>", "bye"]);
    check(None, b"{}\n{\"a\":1", &["{}"]);
    check(None, b"{}\n{", &["{}"]);
}

#[test]
fn law_7_junk_lines_do_not_hide_their_neighbours() {
    check(None, b"hello\n{}\n", &["hello", "{}"]);
    check(None, b"{}\nab\xff\xfe\n{}\n", &["{}", "<not UTF-8: ab>", "{}"]);
    let long = [b"{}\n".as_slice(), &[b'x'; 100], b"\n{}\n"].concat();
    check(None, &long, &["{}", &format!("<too long: {}>", "x".repeat(LIMIT)), "{}"]);
}

#[test]
fn the_limit_is_the_length_of_a_line_without_its_end() {
    let fits = "x".repeat(LIMIT);
    check(None, format!("{fits}\r\n{fits}\n").as_bytes(), &[&fits, &fits]);
    let too_long = format!("<too long: {fits}>");
    check(None, format!("{fits}x\r\n{fits}\rx\n").as_bytes(), &[&too_long, &too_long]);
    check(None, format!("{fits}x\n").as_bytes(), &[&too_long]);
    check(None, format!("{fits}x").as_bytes(), &[&too_long]);
}

#[test]
fn a_line_that_is_too_long_is_reported_before_it_ends() {
    let mut splitter = Splitter::new(None, 5000);
    splitter.feed(format!("{{\"id\":1,{}", "é".repeat(2500)).as_bytes());
    let Some(Frame::Junk(Junk::TooLong(start))) = splitter.next_frame() else { panic!() };
    assert!(start.starts_with("{\"id\":1,é") && (JUNK_START - 1..=JUNK_START).contains(&start.len()));
    for _ in 0..100 {
        splitter.feed(&[b'x'; 5000]);
        assert_eq!(splitter.next_frame(), None);
        assert!(splitter.held() < 100, "nothing of it is held");
    }
    splitter.feed(b"\n{}\n");
    assert_eq!(splitter.next_frame(), Some(Frame::Message("{}")));
}

#[test]
fn content_length_is_recognised() {
    check(None, b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: x\r\n\r\n[1]", &["{}", "[1]"]);
    check(None, b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", &["{}"]);
    check(None, b"Content-Length: 5\n\n{\n\n }Content-Length: 4\n\n{}\r\n", &["{\n\n }", "{}\r\n"]);
    check(None, b"hello\n\nContent-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]", &["hello", "{}", "[]"]);
}

#[test]
fn text_that_looks_like_a_header_is_text() {
    let first = "{\"id\":1}";
    let banners = [
        "Content-addressed store ready",
        "Content-Length: 99999999999999",
        "Content-Length: 9999999999999999999999999",
        "Content-Type: text",
        "Content-Length: x",
        "Content-Length: -1",
        "Content-Length:",
        "Content-Length: 5",
        "Content-Length: 28",
    ];
    for banner in banners {
        check(None, format!("{banner}\n{first}\n").as_bytes(), &[banner, first]);
        check(None, format!("{banner}\r\n\r\n{first}\r\n{first}\n").as_bytes(), &[banner, first, first]);
        check(None, format!("{banner}\n\n[info] ok\n{first}\n").as_bytes(), &[banner, "[info] ok", first]);
        check(None, format!("{first}\n{banner}\n\n{first}\n").as_bytes(), &[first, banner, first]);
    }
    check(None, b"Content-Length: 5", &["<end>", "Content-Length: 5"]);
    check(None, b"Content-Length: 5\n\n{", &["<end>", "Content-Length: 5"]);
}

#[test]
fn a_stream_that_was_read_the_wrong_way_is_read_the_right_way_again() {
    // Headers, after something that looked like lines.
    check(None, b"{}\nContent-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]", &["{}", "{}", "[]"]);
    // Lines, after something that looked like headers.
    check(None, b"Content-Length: 2\r\n\r\n{}{\"a\":1}\n{\"b\":2}\n", &["{}", "{\"a\":1}", "{\"b\":2}"]);
    // A length that is too short, which cuts the rest of the message off.
    check(
        None,
        b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n{\"a\":1}Content-Length: 2\r\n\r\n[]",
        &["{}", "{\"a", "\":1}", "[]"],
    );
    // A length that is too long, which takes a part of the next header.
    check(
        None,
        b"Content-Length: 2\r\n\r\n{}Content-Length: 4\r\n\r\n{}Content-Length: 2\r\n\r\n[]Content-Length: 2\r\n\r\n{}",
        &["{}", "{}Co", "ntent-Length: 2", "[]", "{}"],
    );
    // The first message is too long to be trusted.
    let long = format!("Content-Length: 60\r\n\r\n{{{}}}Content-Length: 2\r\n\r\n[]", " ".repeat(58));
    let start = format!("<too long: {{{}>", " ".repeat(LIMIT - 1));
    check(None, long.as_bytes(), &["Content-Length: 60", &start, "[]"]);
    // A header that is itself too long for a line.
    let long = format!("Content-Length: {}\n{{}}\n", "9".repeat(LIMIT));
    check(None, long.as_bytes(), &[&format!("<too long: Content-Length: {}>", "9".repeat(LIMIT - 16)), "{}"]);
}

#[test]
fn headers_without_end_are_text_soon() {
    let mut splitter = Splitter::new(None, 1 << 20);
    for _ in 0..1000 {
        splitter.feed(b"Content-Type: x\n");
        while splitter.next_frame().is_some() {}
        assert!(splitter.held() <= 100);
    }
    splitter.feed(b"Content-Type: ");
    for _ in 0..1000 {
        splitter.feed(b"xxxxxxxxxxxxxxxx");
        while splitter.next_frame().is_some() {}
    }
    splitter.feed(b"\n{}\n");
    assert!(matches!(splitter.next_frame(), Some(Frame::Message(text)) if text.len() > 16_000));
    assert_eq!(splitter.next_frame(), Some(Frame::Message("{}")));
}

#[test]
fn law_7_a_long_body_is_dropped_alone() {
    let long = [b"Content-Length: 50\r\n\r\n".as_slice(), &[b'x'; 50], b"Content-Length: 2\r\n\r\n{}"].concat();
    let start = format!("<too long: {}>", "x".repeat(LIMIT));
    check(Some(Framing::ContentLength), &long, &[&start, "{}"]);
    check(None, &[b"Content-Length: 2\r\n\r\n[]", &long[..]].concat(), &["[]", &start, "{}"]);
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
        check(None, &buffer, &["{\"a\":\"é\"}", "[]"]);
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
