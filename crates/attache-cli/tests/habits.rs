//! Habits of real agents that `attache run` has to live with.
// On Unix, because their home is that of Unix, with programs that are shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::Value;
use support::{Home, check_result, scripted};

fn result(options: &[&str]) -> Value {
    let home = Home::new();
    let ran = home.run(&[&["run", "-o", "json"], options, &["--", &scripted()]].concat());
    check_result(&home, &ran)
}

#[test]
fn a_denial_may_be_the_end_of_the_turn() {
    let denied = result(&["ask make; stop cancelled"]);
    assert_eq!((&denied["exit_code"], &denied["status"]), (&1.into(), &"cancelled".into()));
    assert_eq!(denied["error"]["message"], "the agent cancelled the turn after a request of it was denied");
    let denied = result(&["--fail-on-denied", "ask make; stop cancelled"]);
    assert_eq!((&denied["exit_code"], &denied["status"]), (&5.into(), &"denied".into()));
    assert_eq!(denied["error"]["message"], "denied to the agent: 1");
}

#[test]
fn text_after_a_question_without_a_tool_call_begins_anew() {
    let denied = result(&["--protocol", "1", "say one; write /w/new.txt two"]);
    let text = denied["text"].as_str().unwrap();
    assert!(text.starts_with("one\n\n"), "{text:?}");
}
