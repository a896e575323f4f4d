//! Logs that end in the middle, and what is made of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn call(id: &str) -> Call {
    Call { id: id.into(), name: "read_file".into(), arguments: "{}".into() }
}

fn said(calls: &[&str]) -> Message {
    Message::Assistant { text: String::new(), calls: calls.iter().map(|id| call(id)).collect(), opaque: None }
}

fn result(id: &str, text: &str) -> Message {
    let is_error = text == INTERRUPTED;
    Message::Tool { id: id.into(), name: "read_file".into(), parts: vec![Part::text(text)], is_error }
}

#[test]
fn every_call_of_a_conversation_has_one_result_behind_it() {
    let user = || Message::user("go on");
    for (messages, expected) in [
        (vec![user(), said(&[]), user()], vec![user(), said(&[]), user()]),
        (vec![said(&["a"])], vec![said(&["a"]), result("a", INTERRUPTED)]),
        (
            vec![said(&["a", "b"]), result("b", "x"), user(), said(&["c"]), said(&[])],
            vec![
                said(&["a", "b"]),
                result("b", "x"),
                result("a", INTERRUPTED),
                user(),
                said(&["c"]),
                result("c", INTERRUPTED),
                said(&[]),
            ],
        ),
        // Results of nothing, and twice.
        (
            vec![result("z", "x"), said(&["a"]), result("a", "1"), result("a", "2")],
            vec![said(&["a"]), result("a", "1")],
        ),
    ] {
        assert_eq!(mended(messages), expected);
    }
}

fn update(json: &str) -> Entry {
    let json = attache::proto::json::RawJson::new(&json.replace('\'', "\"")).unwrap();
    Entry::Update { update: Box::new(json.to_model().unwrap()) }
}

#[test]
fn what_was_running_when_the_agent_was_stopped_is_ended() {
    let call = |id: &str, status: &str| {
        update(&format!("{{'sessionUpdate':'tool_call_update','toolCallId':'{id}','status':'{status}'}}"))
    };
    let terminal =
        |id: &str, more: &str| update(&format!("{{'sessionUpdate':'terminal_update','terminalId':'{id}'{more}}}"));
    let compaction = |id: &str, status: &str| {
        update(&format!("{{'sessionUpdate':'compaction_update','compactionId':'{id}','status':'{status}'}}"))
    };
    let past = Past::read(&[
        call("a", "pending"),
        terminal("t", ""),
        terminal("u", ""),
        call("b", "in_progress"),
        compaction("x", "in_progress"),
        compaction("x", "completed"),
        call("a", "completed"),
        terminal("t", ",'exitStatus':{'exitCode':0}"),
        compaction("y", "in_progress"),
        update("{'sessionUpdate':'tool_call_update','toolCallId':'a','content':[]}"),
    ]);
    let ends = [terminal("u", ",'exitStatus':{}"), call("b", "failed"), compaction("y", "cancelled")];
    assert_eq!(past.repairs, ends);
    assert!(Past::read(&past.repairs).repairs.is_empty());
}
