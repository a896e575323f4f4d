//! Terminals with real commands: what they run, what they keep, and that they end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use attache::{
    model::{
        error::ErrorObject,
        mcp::EnvVariable,
        terminal::{
            CreateTerminalRequest, ExitStatus, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
            TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
        },
    },
    process::Command,
};
use attache_host::terminals::{Limits, TerminalError, TerminalView, Terminals};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

fn request(command: &str) -> CreateTerminalRequest {
    CreateTerminalRequest::new("s", command)
}

fn create(terminals: &Terminals, request: &CreateTerminalRequest) -> TerminalId {
    terminals.create(request, Path::new("/")).unwrap().terminal_id
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("still waiting")
}

async fn wait(terminals: &Terminals, id: &TerminalId) -> ExitStatus {
    in_time(terminals.wait_for_exit(&WaitForTerminalExitRequest::new("s", id.clone()))).await.unwrap()
}

fn output(terminals: &Terminals, id: &TerminalId) -> TerminalOutputResponse {
    terminals.output(&TerminalOutputRequest::new("s", id.clone())).unwrap()
}

async fn run(request: &CreateTerminalRequest) -> (String, ExitStatus) {
    let terminals = Terminals::new(Limits::default());
    let id = create(&terminals, request);
    let exit = wait(&terminals, &id).await;
    let answer = output(&terminals, &id);
    assert_eq!(answer.exit_status, Some(exit.clone()));
    (answer.output, exit)
}

fn code(code: i64) -> ExitStatus {
    ExitStatus::new().exit_code(code)
}

/// Waits for text of a running command.
async fn wait_for_text(view: &mut TerminalView, is_enough: impl Fn(&str) -> bool) -> String {
    loop {
        let text = view.output_since(0).text;
        if is_enough(&text) {
            return text;
        }
        assert!(in_time(view.changed()).await, "it ended with {text:?}");
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !matches!(stat.rsplit(')').next().unwrap_or_default().trim().chars().next(), None | Some('Z' | 'X'))
}

async fn wait_until_dead(pid: &str) {
    let deadline = Instant::now() + LONG;
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "{pid} still lives");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn commands_run_as_given() {
    let plain = request("printf").args(["%s|", "a b", "$HOME;"]);
    assert_eq!(run(&plain).await, ("a b|$HOME;|".into(), code(0)));
    // A whole shell line, as some agents send it.
    assert_eq!(run(&request("echo a b | tr a-z A-Z; exit 3")).await, ("A B\n".into(), code(3)));
    assert_eq!(run(&request("true")).await, (String::new(), code(0)));
    let env = request("echo $GREETING; pwd; cat").env([EnvVariable::new("GREETING", "hi = there")]).cwd("/usr");
    assert_eq!(run(&env).await, ("hi = there\n/usr\n".into(), code(0)));
    // Both streams in the order in which they were written.
    assert_eq!(run(&request("echo 1; echo 2 >&2; echo 3; echo 4 >&2")).await.0, "1\n2\n3\n4\n");
}

#[tokio::test]
async fn a_line_is_a_line_whatever_files_there_are() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("my tools")).unwrap();
    std::fs::copy("/bin/true", dir.path().join("my tools/it")).unwrap();
    let path = dir.path().join("my tools/it");
    // What is judged as a line is run as one; who means the file says so, by quotes or with arguments.
    assert_eq!(run(&request(path.to_str().unwrap())).await.1, code(127));
    assert_eq!(run(&request(&format!("'{}'", path.display()))).await, (String::new(), code(0)));
    assert_eq!(run(&request(path.to_str().unwrap()).args(["x"])).await, (String::new(), code(0)));
}

#[tokio::test]
async fn a_signal_is_told_by_its_name() {
    let (_, exit) = run(&request("kill -TERM $$")).await;
    assert_eq!((exit.exit_code, exit.signal.as_deref()), (None, Some("SIGTERM")));
}

#[tokio::test]
async fn output_is_cut_from_the_front_between_characters() {
    let terminals = Terminals::new(Limits { most_output: 100, ..Limits::default() });
    let check = async |limit: u64, expected: &str, is_truncated: bool| {
        let request = request("printf 'é€😀'").output_byte_limit(limit);
        let id = create(&terminals, &request);
        wait(&terminals, &id).await;
        let answer = output(&terminals, &id);
        assert_eq!((answer.output.as_str(), answer.truncated), (expected, is_truncated), "limit {limit}");
    };
    check(9, "é€😀", false).await;
    check(8, "€😀", true).await;
    check(7, "€😀", true).await;
    check(6, "😀", true).await;
    check(3, "", true).await;
    check(0, "", true).await;
    check(u64::MAX, "é€😀", false).await;
    let much = request("seq 1000").output_byte_limit(u64::MAX);
    let id = create(&terminals, &much);
    wait(&terminals, &id).await;
    assert_eq!(output(&terminals, &id).output.len(), 100);
}

/// Lets whoever reads from a FIFO go on.
async fn open_fifo(path: &Path) {
    let path = path.to_owned();
    in_time(tokio::task::spawn_blocking(move || std::fs::write(path, "\n").unwrap())).await.unwrap();
}

#[tokio::test]
async fn a_character_that_is_not_complete_is_held_back() {
    let terminals = Terminals::new(Limits::default());
    let dir = tempfile::tempdir().unwrap();
    // One for each step: the shell's second opening must not meet our first.
    let [go, end] = ["go", "end"].map(|name| dir.path().join(name));
    assert!(std::process::Command::new("mkfifo").args([&go, &end]).status().unwrap().success());
    let (first, second) = (go.display(), end.display());
    let line = format!("printf 'a\\342\\202'; read x < {first}; printf '\\254b\\377'; read x < {second}");
    let id = create(&terminals, &request(&line));
    let mut view = terminals.view(&"s".into(), &id).unwrap();
    assert_eq!(wait_for_text(&mut view, |text| !text.is_empty()).await, "a");
    open_fifo(&go).await;
    assert_eq!(wait_for_text(&mut view, |text| text.len() > 1).await, "a€b\u{fffd}");
    open_fifo(&end).await;
    wait(&terminals, &id).await;
}

#[tokio::test]
async fn a_killed_command_can_be_read_and_a_released_one_cannot() {
    let terminals = Terminals::new(Limits::default());
    let id = create(&terminals, &request("sleep 1000 & echo $!; wait"));
    let mut view = terminals.view(&"s".into(), &id).unwrap();
    let sleeper = wait_for_text(&mut view, |text| text.ends_with('\n')).await;
    assert_eq!(output(&terminals, &id).exit_status, None);
    let waiting = terminals.wait_for_exit(&WaitForTerminalExitRequest::new("s", id.clone()));

    in_time(terminals.kill(&KillTerminalRequest::new("s", id.clone()))).await.unwrap();
    let exit = output(&terminals, &id).exit_status.unwrap();
    assert!(matches!(exit.signal.as_deref(), Some("SIGTERM" | "SIGKILL")), "{exit:?}");
    assert_eq!(in_time(waiting).await.unwrap(), exit);
    assert_eq!(output(&terminals, &id).output, sleeper);
    wait_until_dead(&sleeper).await;
    // Once more is no harm.
    in_time(terminals.kill(&KillTerminalRequest::new("s", id.clone()))).await.unwrap();

    terminals.release(&ReleaseTerminalRequest::new("s", id.clone())).unwrap();
    let error = terminals.output(&TerminalOutputRequest::new("s", id.clone())).unwrap_err();
    assert_eq!(error.to_peer().code, -32002);
    assert!(terminals.release(&ReleaseTerminalRequest::new("s", id.clone())).is_err());
    assert!(in_time(terminals.kill(&KillTerminalRequest::new("s", id.clone()))).await.is_err());
    assert!(in_time(terminals.wait_for_exit(&WaitForTerminalExitRequest::new("s", id))).await.is_err());
    // Who shows it still can.
    assert_eq!((view.output_since(0).text, view.exit_status()), (sleeper, Some(exit)));
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_its_terminal() {
    attache::process::use_keeper();
    let terminals = Terminals::new(Limits::default());
    let id = create(&terminals, &request("setsid sleep 1000 > /dev/null 2>&1 & echo $!"));
    assert_eq!(wait(&terminals, &id).await, code(0));
    let sleeper = output(&terminals, &id).output;
    assert!(is_alive(&sleeper));
    terminals.release(&ReleaseTerminalRequest::new("s", id)).unwrap();
    wait_until_dead(&sleeper).await;
}

#[tokio::test]
async fn commands_end_with_the_session_and_with_the_terminals() {
    let terminals = Terminals::new(Limits::default());
    let mut pids = Vec::new();
    for session in ["one", "two"] {
        let request = CreateTerminalRequest::new(session, "echo $$; exec sleep 1000");
        let id = create(&terminals, &request);
        let mut view = terminals.view(&session.into(), &id).unwrap();
        pids.push(wait_for_text(&mut view, |text| text.ends_with('\n')).await);
    }
    terminals.end_session(&"one".into());
    wait_until_dead(&pids[0]).await;
    assert!(is_alive(&pids[1]));
    let left = terminals.list();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].session_id(), left[0].cwd()), (&"two".into(), Path::new("/")));
    assert_eq!(left[0].command(), "sh -c 'echo $$; exec sleep 1000'");
    drop(terminals);
    wait_until_dead(&pids[1]).await;
    assert!(left[0].exit_status().is_some() || in_time(left[0].clone().changed()).await);
}

#[test]
fn commands_end_with_the_runtime_and_nobody_waits_for_ever() {
    let terminals = Terminals::new(Limits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (pid, mut view) = runtime.block_on(async {
        let id = create(&terminals, &request("echo $$; exec sleep 1000"));
        let mut view = terminals.view(&"s".into(), &id).unwrap();
        (wait_for_text(&mut view, |text| text.ends_with('\n')).await, view)
    });
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        wait_until_dead(&pid).await;
        wait(&terminals, view.id()).await;
        while in_time(view.changed()).await {}
    });
}

#[tokio::test]
async fn there_are_only_so_many() {
    let terminals = Terminals::new(Limits { running: 2, kept: 3, ..Limits::default() });
    let one = create(&terminals, &request("sleep 1000"));
    create(&terminals, &request("sleep 1000"));
    let error = terminals.create(&request("true"), Path::new("/")).unwrap_err();
    assert!(matches!(error, TerminalError::TooManyRunning { limit: 2 }));
    assert!(error.to_string().contains("\nhint: "));
    in_time(terminals.kill(&KillTerminalRequest::new("s", one.clone()))).await.unwrap();
    create(&terminals, &request("sleep 1000"));
    let error = terminals.create(&request("true"), Path::new("/")).unwrap_err();
    assert!(matches!(error, TerminalError::TooManyKept { limit: 3 }));
    terminals.release(&ReleaseTerminalRequest::new("s", one)).unwrap();
    let error = terminals.create(&request("true"), Path::new("/")).unwrap_err();
    assert!(matches!(error, TerminalError::TooManyRunning { limit: 2 }));
}

#[tokio::test]
async fn what_cannot_be_started_is_said_without_repeating_it() {
    let terminals = Terminals::new(Limits::default());
    let secret = "hunter2";
    let check = |request: CreateTerminalRequest, code: i32| {
        let error = terminals.create(&request, Path::new("/")).unwrap_err().to_peer();
        assert_eq!(error.code, code, "{error:?}");
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
    };
    check(request(secret), ErrorObject::NOT_FOUND);
    check(request(""), ErrorObject::INVALID_PARAMS);
    check(request("true").args(["\0"]), ErrorObject::INTERNAL_ERROR);
    let check_cwd = |cwd: &str| check(request("true").cwd(cwd), -32602);
    check_cwd("relative/hunter2");
    check_cwd("/nowhere/hunter2");
    check_cwd("/bin/sh");
    for (name, value) in [("", secret), ("A=B", secret), ("A\0", secret), ("A", "hunter2\0")] {
        check(request("true").env([EnvVariable::new(name, value)]), -32602);
    }
    assert!(terminals.list().is_empty());
}

#[tokio::test]
async fn every_command_is_confined_before_it_starts() {
    let terminals = Terminals::new(Limits::default())
        .confine(|command: Command| Command::from(["echo", "confined:"]).args([command.to_string()]));
    let id = create(&terminals, &request("rm -r /x"));
    wait(&terminals, &id).await;
    assert_eq!(output(&terminals, &id).output, "confined: sh -c 'rm -r /x'\n");
    assert_eq!(terminals.list()[0].command(), "sh -c 'rm -r /x'");
}
