//! What the processes that we start can reach: the person's terminal, our descriptors, our memory, and a life without us.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use super::support::Place;

/// A line for `sh` that says whether it could open the terminal that `attache` runs in.
const OPEN_TERMINAL: &str = "if (: </dev/tty) 2>/dev/null; then echo opened; else echo closed; fi";

/// What a command in a terminal of the client wrote.
fn in_terminal(line: &str) -> Value {
    json!([
        {"call": "terminal/create", "params": {"command": "sh", "args": ["-c", line]}},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
        {"call": "terminal/output", "params": {"terminalId": "$terminal"}},
    ])
}

#[test]
fn an_agent_has_no_terminal() {
    let place = Place::new();
    let ran = place.ask(place.attack(1, &[], &json!([{"run": OPEN_TERMINAL}])), &[]);
    assert_eq!(ran.log[0]["out"], "closed\n", "{ran:?}");
}

#[test]
fn a_command_of_an_agent_has_no_terminal() {
    let place = Place::new();
    let ran = place.ask(place.attack(1, &["--permissions", "all"], &in_terminal(OPEN_TERMINAL)), &[]);
    assert_eq!(ran.log[2]["result"]["output"], "closed\n", "{ran:?}");
}

#[test]
fn a_command_of_our_own_agent_has_no_terminal() {
    let place = Place::new();
    let prompt = format!("run {OPEN_TERMINAL} > seen");
    let ran = place.ask(place.command(&["run", "--permissions", "all", "--set", "mode=code", &prompt]), &[]);
    assert_eq!(place.read("project/seen"), "closed\n", "{ran:?}");
}

/// Gives the command an open file as its descriptor 9, as a careless program that starts us would.
fn leak(command: &mut Command, file: &fs::File) {
    let fd = file.as_raw_fd();
    // SAFETY: the call may be made between fork and exec, and the descriptor is open until then.
    unsafe {
        command.pre_exec(move || match libc::dup2(fd, 9) {
            9 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

#[test]
fn descriptors_that_we_inherited_reach_no_child() {
    let place = Place::new();
    let secret = fs::File::open(place.write("secret", "hidden")).unwrap();
    let line = "if (: <&9) 2>/dev/null; then echo leaked; else echo closed; fi";
    let mut command = place.attack(1, &["--permissions", "all"], &in_terminal(line));
    leak(&mut command, &secret);
    let ran = place.run(command);
    assert_eq!(ran.log[2]["result"]["output"], "closed\n", "{ran:?}");

    let mut command = place.attack(1, &[], &json!([{"run": line}]));
    leak(&mut command, &secret);
    let ran = place.run(command);
    assert_eq!(ran.log[0]["out"], "closed\n", "{ran:?}");
}
