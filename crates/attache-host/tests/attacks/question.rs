//! The question on the person's terminal.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{ANSWER, Place};

/// A permission request about a command, with what the agent says about it.
fn request(title: &str, command: &str, locations: usize) -> Value {
    let locations: Vec<Value> = (0..locations).map(|number| json!({"path": format!("/p/{number}")})).collect();
    json!({
        "toolCall": {
            "toolCallId": "t1", "title": title, "kind": "execute", "rawInput": {"command": command},
            "locations": locations,
        },
        "options": [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    })
}

fn text(text: &str) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
}

/// What a person sees of a screen of 24 lines of 80 columns that all this was written to.
fn last_screen(written: &str) -> String {
    let mut rows: Vec<String> = Vec::new();
    for line in written.replace("\r\n", "\n").split('\n') {
        let characters: Vec<char> = line.chars().collect();
        match characters.is_empty() {
            true => rows.push(String::new()),
            false => rows.extend(characters.chunks(80).map(|row| row.iter().collect::<String>())),
        }
    }
    rows.split_off(rows.len().saturating_sub(24)).join("\n")
}

#[test]
fn nothing_is_painted_while_a_person_is_asked() {
    let place = Place::new();
    let mut script =
        vec![json!({"post": "session/request_permission", "params": request("List files", "rm -rf precious", 0)})];
    script.extend((0..40).map(|_| text("harmless\n")));
    script.push(text("PAINTED wants to run a command\n  $ ls\n  [y] yes  [N] no\n"));
    script.push(json!({"update": {"sessionUpdate": "plan", "entries": [{"content": "PAINTED", "priority": "low", "status": "pending"}]}}));
    script.push(json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "t2", "title": "PAINTED"}}));
    script.push(json!({"sleep": 700}));
    for options in [&[][..], &["-o", "stream-json"], &["-o", "acp"]] {
        let command = place.attack(1, options, &json!(script));
        let ran = place.ask_slowly(command, Duration::from_millis(400), &[(ANSWER, "n\n")]);
        let (question, _) = ran.err.split_once(ANSWER).unwrap();
        assert!(last_screen(question).contains("\n$ rm -rf precious"), "{options:?} {}", ran.err);
        let answer = ran.err.find(ANSWER).unwrap() + ANSWER.len();
        let after = &ran.err[answer..];
        // The terminal echoes the answer; whatever else there is comes after it.
        assert!(after.starts_with("n\r\n"), "{options:?} {after:?}");
        assert!(ran.err.contains("PAINTED"), "what was held is lost: {}", ran.err);
    }
}

#[test]
fn what_the_agent_says_does_not_push_the_command_off_the_screen() {
    let long = "Only lists files, promise. ".repeat(5_000);
    let lines = "harmless\n".repeat(2_000);
    for title in [long.as_str(), lines.as_str(), "\u{1b}[2J\u{202e}x"] {
        let place = Place::new();
        let script = json!([{"call": "session/request_permission", "params": request(title, "rm -rf precious", 300)}]);
        let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "n\n")]);
        let screen = last_screen(ran.err.split_once(ANSWER).unwrap().0);
        assert!(screen.contains("\n$ rm -rf precious\n"), "{screen}");
        let last = screen.lines().last().unwrap();
        assert!(last.starts_with("run `rm -rf precious` ("), "{screen}");
        assert!(screen.contains(" says: "), "{screen}");
        assert!(!ran.err.contains(['\u{1b}', '\u{202e}']), "{:?}", ran.err);
        assert_eq!(ran.log[0]["result"]["outcome"]["optionId"], "no");
    }
    // In version 2 the agent has a title and a description of its own.
    let place = Place::new();
    let mut params = request("x", "x", 0);
    params["title"] = json!(long);
    params["description"] = json!(lines);
    params["subject"] = json!({"type": "command", "command": "rm -rf precious", "cwd": "$cwd"});
    params.as_object_mut().unwrap().remove("toolCall");
    let script = json!([{"call": "session/request_permission", "params": params}]);
    let ran = place.ask(place.attack(2, &[], &script), &[(ANSWER, "n\n")]);
    let screen = last_screen(ran.err.split_once(ANSWER).unwrap().0);
    assert!(screen.contains("\n$ rm -rf precious\n") && screen.contains(" says: "), "{screen}");
}

#[test]
fn blanks_do_not_push_the_rest_of_a_command_out_of_sight() {
    let place = Place::new();
    let command = format!("ls {}; rm -rf precious", " ".repeat(5_000));
    let script = json!([{"call": "session/request_permission", "params": request("List", &command, 0)}]);
    let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "n\n")]);
    let screen = last_screen(ran.err.split_once(ANSWER).unwrap().0);
    assert!(screen.contains("\n$ ls[5001 blanks]; rm -rf precious"), "{screen}");
}

#[test]
fn what_was_typed_before_a_question_appears_is_no_answer() {
    let place = Place::new();
    let script = json!([
        {"sleep": 500},
        {"call": "session/request_permission", "params": request("x", "rm -rf precious", 0)},
    ]);
    let ran = place.ask(place.attack(1, &[], &script), &[("protocol 1", "y\n"), (ANSWER, "n\n")]);
    assert_eq!(ran.log[0]["result"]["outcome"]["optionId"], "no", "{}", ran.err);
}

#[test]
fn two_questions_that_look_alike_have_different_digests() {
    let digest = |command: &str| {
        let place = Place::new();
        let script = json!([{"call": "session/request_permission", "params": request("x", command, 0)}]);
        let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "n\n")]);
        let before = ran.err.split_once(ANSWER).unwrap().0;
        before[before.rfind('(').unwrap()..].to_owned()
    };
    assert_ne!(digest("make  x"), digest("make x"));
}

#[test]
fn the_end_of_a_long_command_is_in_sight_where_the_answer_is_typed() {
    let place = Place::new();
    let command = format!("{}rm -rf precious", "echo harmless && ".repeat(400));
    let script = json!([{"call": "session/request_permission", "params": request("List", &command, 0)}]);
    let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "n\n")]);
    let screen = last_screen(ran.err.split_once(ANSWER).unwrap().0);
    let last = screen.lines().last().unwrap();
    assert!(last.starts_with("run `echo harmless") && last.contains("rm -rf precious` ("), "{screen}");
    assert!(screen.contains("lines long: scroll up to see all of it"), "{screen}");
}

#[test]
fn nothing_is_asked_and_nothing_done_after_ctrl_c() {
    let place = Place::new();
    place.rules("[[rule]]\nverdict = \"allow\"\ncommand = [\"touch\", \"made\"]\n");
    let create = |line: &str| json!({"post": "terminal/create", "params": {"command": line}});
    let script = json!([
        {"post": "session/request_permission", "params": request("x", "make", 0)},
        // By now the person has pressed Ctrl-C.
        {"sleep": 1500},
        create("touch made"),
        create("rm -rf precious"),
        {"post": "session/request_permission", "params": request("x", "rm -rf precious", 0)},
        {"sleep": 300},
    ]);
    let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "\u{3}")]);
    assert_eq!(ran.err.matches(ANSWER).count(), 1, "{}", ran.err);
    assert!(!place.project().join("made").exists(), "{}", ran.err);
}

#[test]
fn an_agent_is_told_yes_for_this_once_whatever_is_remembered() {
    let place = Place::new();
    let mut params = request("x", "make all", 0);
    params["options"] = json!([
        {"optionId": "all", "name": "Always allow everything", "kind": "allow_always"},
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    ]);
    let script = json!([{"call": "session/request_permission", "params": params}]);
    let ran = place.ask(place.attack(1, &[], &script), &[(ANSWER, "p\n")]);
    assert_eq!(ran.log[0]["result"]["outcome"]["optionId"], "yes", "{}", ran.err);
    assert!(ran.err.contains("saved:") && ran.err.contains("to take it back"), "{}", ran.err);
}
