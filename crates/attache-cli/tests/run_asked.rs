//! What a person is asked during a run, and what an agent is told of the answer.
// On Unix, because they need terminals. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Home, in_terminal, wire_agent};

const V1: &str = "
    # initialize
    = {\"protocolVersion\":1,\"agentCapabilities\":{}}
    # initialize
    = {\"protocolVersion\":1,\"agentCapabilities\":{}}
    # session/new
    = {\"sessionId\":\"s\"}
    # session/prompt
";

const V2: &str = "
    # initialize
    = {\"protocolVersion\":2,\"info\":{\"name\":\"w\",\"version\":\"1\"},\"capabilities\":{\"session\":{}}}
    # session/new
    = {\"sessionId\":\"s\"}
    # session/prompt
    = {}
    ~ {\"sessionUpdate\":\"state_update\",\"state\":\"running\"}
";

/// A turn in which the agent asks for something and goes on only when it gets an answer with each of these words in it.
fn asking(method: &str, params: &Value, answers: &[&str], version: u8) -> String {
    let question = json!({ "jsonrpc": "2.0", "id": 77, "method": method, "params": params });
    let answers: String = answers.iter().map(|word| format!("? {word}\n")).collect();
    match version {
        1 => format!("{V1}> {question}\n{answers}= {{\"stopReason\":\"end_turn\"}}"),
        _ => {
            let end = "~ {\"sessionUpdate\":\"state_update\",\"state\":\"idle\",\"stopReason\":\"end_turn\"}";
            format!("{V2}> {question}\n{answers}{end}")
        }
    }
}

fn command(home: &Home, script: &str) -> Command {
    fs::write(home.path("script"), script).unwrap();
    let file = home.path("script").display().to_string();
    let mut command = home.command(&["run", "--timeout", "10s", "hi", "--", &wire_agent(), &file]);
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "xterm").env("NO_COLOR", "1");
    command.current_dir(home.path("work")).stdout(Stdio::null());
    command
}

/// What is seen, after the turn has ended well.
fn seen(home: &Home, script: &str, answers: &[(&str, &str)]) -> String {
    seen_with(0, home, script, answers)
}

fn seen_with(expected: i32, home: &Home, script: &str, answers: &[(&str, &str)]) -> String {
    let (seen, code) = in_terminal(command(home, script), answers);
    assert_eq!(code, expected, "{seen}");
    seen.replace('\r', "")
}

fn one_line_change(home: &Home) -> Value {
    let path = home.path("work/greeting.txt").canonicalize().unwrap().display().to_string();
    json!({
        "sessionId": "s",
        "toolCall": {
            "toolCallId": "t", "title": "Fix a typo", "kind": "edit", "status": "pending",
            "locations": [{ "path": path }],
            "content": [{ "type": "diff", "path": path, "oldText": "helo\n", "newText": "hello\n" }],
        },
        "options": [
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ],
    })
}

fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path("work")).unwrap();
    home
}

fn home_with_greeting() -> Home {
    let home = home();
    fs::write(home.path("work/greeting.txt"), "helo\n").unwrap();
    home
}

#[test]
fn a_change_of_one_line_is_asked_about_in_eight_lines() {
    let home = home_with_greeting();
    let script = asking("session/request_permission", &one_line_change(&home), &["\"yes\""], 1);
    let seen = seen(&home, &script, &[(")? ", "y\n")]);
    let begin = seen.find("says: ").unwrap();
    let begin = seen[..begin].rfind('\n').unwrap() + 1;
    let end = seen.find(")? ").unwrap();
    let question: Vec<&str> = seen[begin..end].lines().collect();
    assert!(question.len() <= 8, "{question:#?}");
    let [.., choices, answer] = question.as_slice() else { panic!("{question:?}") };
    assert!(choices.contains("[y] yes  [N] no") && choices.contains("[r] reason"), "{choices}");
    assert!(answer.starts_with("edit `greeting.txt` +1 -1 ("), "{answer}");
    assert!(question[question.len() - 3].contains("+ hello"), "{question:#?}");
    assert_eq!(seen.matches("asked because").count(), 1);
}

#[test]
fn enter_alone_is_no_and_the_choices_are_explained() {
    let home = home_with_greeting();
    let script = asking("session/request_permission", &one_line_change(&home), &["\"no\""], 1);
    // All was denied, and nothing was done.
    let seen = seen_with(6, &home, &script, &[(")? ", "?\n"), (")? ", "\n")]);
    assert!(seen.contains("do this once, exactly as shown"), "{seen}");
    assert!(seen.contains("the person said no"), "{seen}");
}

#[test]
fn a_refusal_of_what_is_done_here_says_so_and_why() {
    let home = home_with_greeting();
    let path = home.path("work/new.txt").display().to_string();
    let params = json!({ "sessionId": "s", "path": path, "content": "x" });
    let denied = r#"Permission denied: use tabs","data":{"reason":"permission_denied""#;
    let script = asking("fs/write_text_file", &params, &[denied], 1);
    let seen = seen_with(6, &home, &script, &[(")? ", "r\n"), ("to read: ", "use tabs\n")]);
    assert!(seen.contains("the person said no: use tabs"), "{seen}");
    assert!(!home.path("work/new.txt").exists());
}

#[test]
fn a_reason_that_a_question_has_no_room_for_is_the_next_prompt() {
    let home = home_with_greeting();
    let script = asking("session/request_permission", &one_line_change(&home), &["\"no\""], 1);
    let heard = "\n# session/prompt\n~ {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"understood\"}}\n= {\"stopReason\":\"end_turn\"}";
    let mut command = command(&home, &(script + heard));
    let answer = home.path("answer");
    command.stdout(fs::File::create(&answer).unwrap());
    let (seen, code) = in_terminal(command, &[(")? ", "r\n"), ("to read: ", "use tabs\n")]);
    assert_eq!(code, 0, "{seen}");
    assert!(fs::read_to_string(&answer).unwrap().contains("understood"), "{seen}");
    // What the run was asked is what it is listed by.
    let listed = home.run(&["sessions", "list"]).out;
    assert!(listed.trim_end().ends_with("  hi"), "{listed}");
}

#[test]
fn a_form_is_filled_in_line_by_line() {
    let home = home();
    let params = json!({
        "sessionId": "s", "mode": "form", "message": "Which colour?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "colour": { "type": "string", "title": "Colour", "enum": ["red", "blue"] },
                "count": { "type": "integer", "minimum": 1, "default": 3 },
                "sure": { "type": "boolean" },
            },
            "required": ["colour", "sure"],
        },
    });
    for version in [1, 2] {
        let answer = r#"{"colour":"blue","count":3,"sure":true}"#;
        let script = asking("elicitation/create", &params, &[answer], version);
        let answers = [("Colour? ", "9\n"), ("Colour? ", "2\n"), ("count? ", "\n"), ("sure? ", "y\n")];
        let seen = seen(&home, &script, &answers);
        assert!(seen.contains("it says: Which colour?") && seen.contains("expected a number from 1 to 2"), "{seen}");
    }
    let declined = asking("elicitation/create", &params, &["decline"], 1);
    seen(&home, &declined, &[("Colour? ", "!\n")]);
    let cancelled = asking("elicitation/create", &params, &["cancel"], 1);
    seen(&home, &cancelled, &[("Colour? ", "\u{4}")]);
    // Where nothing is to be filled in, only a yes accepts.
    let schema = json!({ "type": "object", "properties": {} });
    let empty = json!({ "sessionId": "s", "mode": "form", "message": "Your soul?", "requestedSchema": schema });
    for (typed, answer) in [("\n", "decline"), ("y\n", "accept")] {
        let script = asking("elicitation/create", &empty, &[answer], 1);
        seen(&home, &script, &[("accept? [y] yes   [N] no: ", typed)]);
    }
}

#[test]
fn a_page_is_shown_whole_and_opened_only_on_a_yes() {
    let home = home();
    let page =
        |url: &str| json!({ "sessionId": "s", "mode": "url", "elicitationId": "e", "message": "Log in", "url": url });
    let bin = home.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let opened = home.path("opened");
    fs::write(bin.join("xdg-open"), format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" > {}\n", opened.display()))
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("xdg-open"), mode).unwrap();
    let ask = |url: &str, answer: &str, typed: &[(&str, &str)]| {
        let mut command = command(&home, &asking("elicitation/create", &page(url), &[answer], 1));
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        let (seen, code) = in_terminal(command, typed);
        assert_eq!(code, 0, "{seen}");
        seen
    };
    let seen = ask("https://login.example/?a=1;b=$(x)&c=2", "decline", &[("`login.example`? ", "\n")]);
    assert!(seen.contains("https://login.example/?a=1;b=$(x)&c=2"), "{seen}");
    assert!(!opened.exists());
    ask("https://login.example/?a=1;b=$(x)&c=2", "accept", &[("`login.example`? ", "y\n")]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while fs::read_to_string(&opened).unwrap_or_default().lines().count() < 2 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(&opened).unwrap(), "1\nhttps://login.example/?a=1;b=$(x)&c=2\n");
    let seen = ask("file:///etc/passwd", "decline", &[]);
    assert!(!seen.contains("/etc/passwd"), "{seen}");
}

#[test]
fn files_are_not_served_to_version_2() {
    let home = home_with_greeting();
    let path = home.path("work/greeting.txt").display().to_string();
    for method in ["fs/read_text_file", "fs/write_text_file"] {
        let params = json!({ "sessionId": "s", "path": path, "content": "x" });
        seen(&home, &asking(method, &params, &["-32601"], 2), &[]);
    }
    assert_eq!(fs::read_to_string(home.path("work/greeting.txt")).unwrap(), "helo\n");
}

#[test]
fn output_of_a_command_is_told_while_it_runs() {
    let home = home();
    let fifo = home.path("work/fifo");
    let path = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let params = json!({ "sessionId": "s", "command": "sh", "args": ["-c", "echo begun; read x < fifo; echo $x"] });
    let wait = json!({ "jsonrpc": "2.0", "id": 78, "method": "terminal/wait_for_exit", "params": { "sessionId": "s", "terminalId": "terminal-1" } });
    let script = asking("terminal/create", &params, &["terminalId"], 1);
    let script = script.replace(
        "= {\"stopReason\":\"end_turn\"}",
        &format!("> {wait}\n? exitCode\n= {{\"stopReason\":\"end_turn\"}}"),
    );
    fs::write(home.path("script"), script).unwrap();
    let file = home.path("script").display().to_string();
    let arguments =
        ["run", "--timeout", "10s", "--permissions", "all", "-o", "stream-json", "hi", "--", &wire_agent(), &file];
    let mut command = home.command(&arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.current_dir(home.path("work")).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    // The command ends only when its first line has been told.
    let begun = lines.by_ref().map(Result::unwrap).find(|line| line.contains("command_output"));
    assert!(begun.unwrap().contains("begun"));
    fs::write(&fifo, "over\n").unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("\"over")), "{rest:?}");
    assert!(child.wait().unwrap().success());
}
