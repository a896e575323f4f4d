//! How often decoding and encoding ask for memory, and for how much. Counts are exact, so they belong in a test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use attache_proto::Dialect;
use attache_proto::json::{Reader, Writer};
use attache_proto::model::update::{SessionNotification, SessionUpdate};
use attache_proto::rpc::{Event, Peer, Side};

thread_local! {
    /// How often memory was asked for.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// The bytes that are in use, and the most that ever were.
    static USED: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Memory goes from `from` bytes to `to`.
fn resize(from: usize, to: usize) {
    USED.set(USED.get().wrapping_sub(from).wrapping_add(to));
    PEAK.set(PEAK.get().max(USED.get()));
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        resize(0, layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        resize(layout.size(), 0);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        resize(layout.size(), size);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = COUNT.get();
    let value = run();
    (value, COUNT.get() - before)
}

#[test]
fn a_chunk_of_text_costs_its_id_and_its_text() {
    let json = r#"{"sessionUpdate":"agent_message_chunk","messageId":"m-1","content":{"type":"text","text":"hello"}}"#;
    for dialect in [Dialect::V1, Dialect::V2Draft, Dialect::V2] {
        let (update, reads) = count(|| Reader::new(json, dialect).decode::<SessionUpdate>().unwrap());
        assert_eq!(reads, 2);
        let mut buffer = Vec::with_capacity(256);
        let ((), writes) = count(|| Writer::new(&mut buffer, dialect).value(&update));
        assert_eq!(writes, 0);
    }
}

/// The most memory that `run` has in use at once.
fn peak<T>(run: impl FnOnce() -> T) -> usize {
    let before = USED.get();
    PEAK.set(before);
    drop(run());
    PEAK.get() - before
}

/// Checks that handling a frame takes at most `times` its own length, a few KiB aside.
#[track_caller]
fn check_bounded(what: &str, frame: &str, times: usize) {
    let mut out = Vec::new();
    let mut peer: Peer<()> = Peer::new(Side::Client);
    peer.set_strict(true);
    peer.set_max_open_calls(100);
    let used = peak(|| {
        let events: Vec<_> = peer.handle_frame(frame, &mut out).collect();
        for event in &events {
            if let Event::Notification { params: Some(params), .. } = event {
                Reader::new(params, Dialect::V1).decode::<SessionNotification>().unwrap();
            }
        }
    });
    assert!(used <= times * frame.len() + 64 * 1024, "{what}: {used} bytes for a frame of {} bytes", frame.len());
}

#[test]
fn law_3_no_frame_takes_much_more_memory_than_its_length() {
    let update = |content: &str| {
        let update = format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","content":[{content}]}}"#);
        let params = format!(r#"{{"sessionId":"s","update":{update}}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
    };
    let block = |text: &str| format!(r#"{{"type":"content","content":{{"type":"text","text":"{text}"}}}}"#);
    let items = |item: &str, count: usize| vec![item; count].join(",");
    for (before, after) in [(0, 100_000), (70_000, 100_000), (100_000, 0)] {
        let text = format!("{}\\n{}", "x".repeat(before), "x".repeat(after));
        check_bounded("long strings", &update(&items(&block(&text), 20)), 3);
    }
    check_bounded("escapes", &update(&block(&"\\u00e9".repeat(300_000))), 3);
    let nested = "[".repeat(100) + &"]".repeat(100);
    check_bounded("nesting", &update(&format!(r#"{{"type":"x","y":[{}]}}"#, items(&nested, 10_000))), 3);
    let call = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
    let batch = |entries: Vec<String>| format!("[{}]", entries.join(","));
    check_bounded("requests", &batch((0..1000).map(call).collect()), 20);
    check_bounded("more requests", &batch((0..100_000).map(call).collect()), 1);
    check_bounded("tiny messages", &batch(vec!["1".into(); 300_000]), 1);
    check_bounded("a half batch", &batch((0..100_000).map(call).collect())[1..], 1);
    let errors = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#;
    check_bounded("errors", &batch(vec![errors.into(); 900]), 10);
    check_bounded("a long id", &format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(1_000_000)), 2);
    let members = items(r#""id":1"#, 200_000);
    check_bounded("members", &format!(r#"{{"jsonrpc":"2.0",{members},"method":"m"}}"#), 1);
}
