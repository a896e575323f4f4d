//! How often decoding and encoding ask for memory. Counts are exact, so they belong in a test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use attache_proto::Dialect;
use attache_proto::json::{Reader, Writer};
use attache_proto::model::SessionUpdate;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
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
