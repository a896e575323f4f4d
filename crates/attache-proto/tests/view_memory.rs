//! A view takes a bounded amount of memory, whatever an agent sends.

#![cfg(feature = "view")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_proto::Dialect;
use attache_proto::json::Reader;
use attache_proto::view::SessionView;
use attache_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const LIMIT: usize = 512 << 10;

/// What is sent in all: many times the limit.
const SENT: usize = 4 << 20;

/// Updates in which `%` stands for the number of the update, and how many bytes of text `$` stands for.
const FLOODS: &[(&str, usize)] = &[
    (r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"$"}}"#, 1000),
    (r#"{"sessionUpdate":"agent_message_chunk","messageId":"m%","content":{"type":"text","text":""}}"#, 0),
    (
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"image","data":"$","mimeType":""}}"#,
        100,
    ),
    (r#"{"sessionUpdate":"user_message","messageId":"$%"}"#, 10_000),
    (r#"{"sessionUpdate":"agent_thought","messageId":"m","_meta":{"%":"$"}}"#, 10_000),
    (
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"$"}}}"#,
        64,
    ),
    (r#"{"sessionUpdate":"tool_call_update","toolCallId":"t%","title":"$"}"#, 100),
    (
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t%","locations":[{"path":""},{"path":""},{"path":""},{"path":""}]}"#,
        0,
    ),
    (r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"t%","data":""}"#, 0),
    (r#"{"sessionUpdate":"terminal_update","terminalId":"t%","command":"$","exitStatus":{}}"#, 1000),
    (r#"{"sessionUpdate":"notice","severity":"info","title":"n"}"#, 0),
    (r#"{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"%","content":"$"}}"#, 1000),
    (r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"%","content":{"type":"text","text":"$"}}"#, 100),
    (r#"{"sessionUpdate":"subagent_update","sessionId":"%","title":"$"}"#, 1000),
    (r#"{"sessionUpdate":"session_message_chunk","messageId":"%","content":{"type":"text","text":"$"}}"#, 100),
    (r#"{"sessionUpdate":"session_info_update","_meta":{"%":"$"}}"#, 10_000),
    (r#"{"sessionUpdate":"session_info_update","title":"$"}"#, 2_000_000),
    (r#"{"sessionUpdate":"_unknown","text":"$"}"#, 200_000),
];

#[test]
fn no_flood_of_updates_takes_more_than_a_few_times_the_limit() {
    for (flood, length) in FLOODS {
        let text = "x".repeat(*length);
        let before = CountingAllocator::live();
        let mut view = SessionView::with_limit(LIMIT);
        let (mut sent, mut number, mut most) = (0, 0, 0);
        while sent < SENT && number < 20_000 {
            let json = flood.replace('%', &number.to_string()).replace('$', &text);
            let update = Reader::new(&json, Dialect::V2).decode().unwrap();
            view.apply(&update);
            sent += json.len();
            number += 1;
            most = most.max(CountingAllocator::live().saturating_sub(before));
        }
        assert!(most < 3 * LIMIT + 4 * length, "{most} bytes for {number} of {flood}");
    }
}
