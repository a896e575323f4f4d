//! `attache trace`, as an editor starts it and as it is left.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use attache_check::Record;
use attache_check::record::Event;
use support::Home;

/// Passes on to `sh`; where that is.
const SH: &str = "/bin/sh";

/// A trace of a shell script.
fn traced(home: &Home, options: &[&str], script: &str) -> Command {
    let file = home.path("t.jsonl");
    let mut command =
        home.command(&[&["trace", "-o", file.to_str().unwrap()], options, &["--", SH, "-c", script]].concat());
    command.env("PATH", "/usr/bin:/bin").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn events(home: &Home) -> Vec<Event> {
    let text = fs::read_to_string(home.path("t.jsonl")).unwrap();
    Record::from_trace(&text).unwrap().entries.into_iter().map(|entry| entry.event).collect()
}

/// The exit code of a child that ends in time.
#[track_caller]
fn ended(child: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it goes on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

#[test]
fn an_agent_may_answer_when_its_client_has_left_and_its_exit_code_is_passed_on() {
    let home = Home::new();
    let mut child = traced(&home, &[], "read line; exec 3>&1; sleep 6; echo late; exit 3").spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"late\n"[..]));
    let events = events(&home);
    assert_eq!(events.last(), Some(&Event::Exited { code: Some(3) }));
    assert!(!events.iter().any(|event| matches!(event, Event::Waited { .. })), "{events:?}");
    // A signal has the code that shells give it.
    let mut child = traced(&home, &[], "kill -9 $$").spawn().unwrap();
    assert_eq!(ended(&mut child), Some(137));
}

#[test]
fn an_agent_that_does_not_go_is_ended_and_the_trace_says_so() {
    let home = Home::new();
    let script = "echo '{}'; trap '' TERM; while :; do sleep 1; done";
    let mut child = traced(&home, &["--grace", "1"], script).spawn().unwrap();
    drop(child.stdin.take());
    ended(&mut child);
    let events = events(&home);
    let [.., Event::Waited { .. }, Event::Exited { .. }] = &events[..] else { panic!("{events:?}") };
    assert!(events.contains(&Event::Closed { from: attache_check::Side::Client }), "{events:?}");
}

#[test]
fn a_trace_that_is_terminated_says_that_the_client_left() {
    let home = Home::new();
    let mut child = traced(&home, &[], "while read line; do echo \"$line\"; done").spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{\"id\":1,\"method\":\"x\"}\n").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 22]).unwrap();
    terminate(&child);
    assert_eq!(ended(&mut child), Some(143));
    let events = events(&home);
    let closed = |from| events.iter().position(|event| *event == Event::Closed { from });
    let (client, agent) = (closed(attache_check::Side::Client), closed(attache_check::Side::Agent));
    assert!(client.is_some() && client < agent, "{events:?}");
    assert_eq!(events.last(), Some(&Event::Exited { code: Some(0) }));
}

/// Editors start agents and may never read their stderr.
#[test]
fn a_trace_ends_although_nobody_reads_its_stderr() {
    for by_signal in [false, true] {
        let home = Home::new();
        let script =
            "i=0; while [ $i -lt 100000 ]; do echo warning warning warning warning >&2; i=$((i+1)); done & cat";
        let mut child = traced(&home, &["--grace", "1"], script).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"{\"id\":1}\n").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 9]).unwrap();
        // Until the pipe is full.
        std::thread::sleep(Duration::from_secs(1));
        if by_signal {
            terminate(&child);
        } else {
            drop(child.stdin.take());
        }
        let begin = Instant::now();
        let code = ended(&mut child);
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(code == Some(143), by_signal);
        assert!(events(&home).contains(&Event::Closed { from: attache_check::Side::Client }));
    }
}

#[test]
fn only_a_regular_file_is_written_and_the_agent_is_not_started_for_another() {
    let home = Home::new();
    let fifo = home.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let started = home.path("started");
    let script = format!("echo > {}", started.display());
    let run = |options: &[&str]| home.run(&[&["trace"], options, &["--", SH, "-c", &script]].concat());
    run(&["-o", fifo.to_str().unwrap()]).check(2, &[], &["fifo`: it is neither a regular file nor /dev/null"]);
    run(&["--rotate", "4K", "-o", "/dev/null"]).check(2, &[], &["`/dev/null`: only a regular file can be rotated"]);
    assert!(!started.exists());
    run(&["-o", "/dev/null"]).check(0, &[], &["writing `/dev/null`"]);
    assert!(started.exists());
    home.run(&["check", "transcript", "/dev/zero"]).check(
        2,
        &[],
        &["`/dev/zero` is neither a regular file nor a pipe"],
    );
}

#[test]
fn what_cannot_be_read_of_a_trace_is_told_and_a_replay_ends_with_its_agent() {
    let home = Home::new();
    let line = |dir: &str, message: &str| format!("{{\"dir\":\"{dir}\",\"message\":{message}}}\n");
    let greeting = line("out", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
    let answers: String =
        (0..50).map(|id| line("in", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))).collect();
    fs::write(home.path("torn.jsonl"), format!("{greeting}{{\"dir\":\"in\",\"mess{answers}")).unwrap();
    let told = "Lines of the trace that cannot be read: 1, the first is line 2";
    home.run(&["trace", "view", "--text", "torn.jsonl"]).check(0, &["--> initialize", told], &[told]);
    let replayed = home.run(&["trace", "replay", "torn.jsonl", "--", SH, "-c", "exit 7"]);
    replayed.check(1, &["the agent exited with status 7: 49 recorded messages did not come\n\n1 difference"], &[]);
    assert_eq!(replayed.out.lines().count(), 3, "{}", replayed.out);
    assert!(!replayed.err.contains("exited with status"), "{}", replayed.err);
}
