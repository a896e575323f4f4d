//! Chunks of messages are said without an allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use attache_proto::Dialect;
use attache_proto::conversation::UpdateTranslator;
use attache_proto::model::capability::ClientCapabilities;
use attache_proto::model::update::{MessageChunk, SessionUpdate};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all work is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the trait.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn chunks_are_said_without_an_allocation() {
    for dialect in [Dialect::V1, Dialect::V2Draft, Dialect::V2] {
        let chunk = MessageChunk::new("text").message_id("m");
        let chunk = SessionUpdate::AgentMessageChunk(chunk);
        let mut translator = UpdateTranslator::new(dialect, &ClientCapabilities::new(), "p");
        let mut said = 0;
        // The first chunk of a message may be remembered.
        translator.say(&chunk, &mut |_| said += 1);
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..1000 {
            translator.say(&chunk, &mut |_| said += 1);
        }
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
        assert_eq!(said, 1001);
    }
}
