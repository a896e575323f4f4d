//! What a peer can send to make us slow, or to confuse one answer with another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache_proto::Dialect;
use attache_proto::frame::{Junk, Splitter};
use attache_proto::json::Reader;
use attache_proto::model::initialize::InitializeRequest;
use attache_proto::rpc::{Event, Peer, Side};

/// Checks that eight times the work takes about eight times as long. Quadratic work takes sixty-four times as long.
fn check_time(work: impl Fn(usize) -> Duration, size: usize) {
    // The quickest of a few runs: others use the machine too.
    let quickest = |size| (0..5).map(|_| work(size)).min().unwrap();
    let (small, large) = (quickest(size), quickest(8 * size));
    assert!(large < small * 24, "eight times the length took {:?} instead of {:?}", large, small * 8);
}

/// Reading a record takes time by its length, also when another dialect's name for a field is repeated.
#[test]
fn a_repeated_name_of_another_dialect_is_searched_for_once() {
    check_time(
        |count| {
            let repeated = r#""info":0,"#.repeat(count);
            let json = format!(r#"{{"protocolVersion":1,{repeated}"clientInfo":{{"name":"c","version":"1"}}}}"#);
            let start = Instant::now();
            let request = Reader::new(&json, Dialect::V1).decode::<InitializeRequest>().unwrap();
            let time = start.elapsed();
            assert_eq!(request.info.unwrap().name, "c");
            time
        },
        500,
    );
}

/// Cutting frames takes time by their length, also when headers announce much that turns out to be no message.
#[test]
fn headers_that_announce_the_same_bytes_do_not_have_them_all_looked_at() {
    check_time(
        |body| {
            let unit = format!("Content-Length: {body}\n\n{{ \n");
            let bytes = unit.repeat(2 * body / unit.len());
            let mut splitter = Splitter::new(None, 64 << 20);
            // A peer that has shown that it sends lines.
            splitter.feed(b"{}\n");
            while splitter.next_frame().is_some() {}
            let start = Instant::now();
            for chunk in bytes.as_bytes().chunks(64 * 1024) {
                splitter.feed(chunk);
                while splitter.next_frame().is_some() {}
            }
            start.elapsed()
        },
        1 << 18,
    );
}

/// A late answer whose id cannot be read may be the answer to a request that was given up: no other request fails for it.
#[test]
fn the_late_answer_to_a_request_that_was_given_up_is_not_anothers() {
    let mut out = Vec::new();
    let mut peer = Peer::new(Side::Client);
    peer.set_dialect(Dialect::V1);
    let one = peer.request("one", |writer| writer.raw("{}"), "one", &mut out);
    peer.request("two", |writer| writer.raw("{}"), "two", &mut out);
    peer.abandon(one, &mut out);
    let junk = Junk::TooLong(r#"{"jsonrpc":"2.0","result":{"a":"xxxx"#);
    let is_answer = |event: &Event<'_, &str>| matches!(event, Event::Answer { .. });
    assert_eq!(peer.handle_junk(junk, &mut out).find(is_answer), None);
    // Once it is clear that the answer is not to the one that was given up, it is to the one that is open.
    let late = peer.handle_frame(r#"{"jsonrpc":"2.0","id":0,"result":null}"#, &mut out);
    assert_eq!(late.filter(is_answer).count(), 0);
    let answer = peer.handle_junk(junk, &mut out).find(is_answer);
    assert!(matches!(answer, Some(Event::Answer { waiter: "two", .. })), "{answer:?}");
}
