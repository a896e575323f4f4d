//! Real processes without a keeper: what is promised to a program that does not ask for one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader as StdBufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use attache::process::{Command, Process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// A running shell script, and the process id that is its first line of output.
async fn start(script: &str) -> (Process, ChildStdin, BufReader<ChildStdout>, u32) {
    let (process, stdin, stdout) = Command::from(["/bin/sh", "-c", script]).spawn().unwrap();
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    (process, stdin, stdout, line.trim().parse().unwrap())
}

/// The state and the parent of a process; `None` when it has ended.
fn look(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
    // A zombie has ended; whoever adopted it may take its time to reap it.
    let has_ended = matches!(fields.next()?, "Z" | "X");
    (!has_ended).then(|| fields.next().unwrap().parse().unwrap())
}

fn is_alive(pid: u32) -> bool {
    look(pid).is_some()
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn no_copy_of_this_program_is_made() {
    let (process, stdin, _stdout, child) = start("echo $$; cat").await;
    assert_eq!(process.id(), Some(child));
    assert_eq!(look(child), Some(std::process::id()), "its parent is this program");
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let parent = entry.file_name().to_str().and_then(|pid| pid.parse().ok()).and_then(look);
        assert!(!(name.trim() == "attache-keeper" && parent == Some(std::process::id())));
    }
    drop(stdin);
    assert!(process.shutdown(LONG).await.success());
}

#[tokio::test]
async fn a_dropped_process_ends_with_its_group() {
    for script in ["sleep 1000 & echo $!; wait", "trap '' TERM HUP INT; (sleep 1000 & echo $!); read line"] {
        let (process, _stdin, _stdout, descendant) = start(script).await;
        let child = process.id().unwrap();
        drop(process);
        wait_until("the descendant has ended", || !is_alive(descendant)).await;
        wait_until("the child has been reaped", || !std::path::Path::new(&format!("/proc/{child}")).exists()).await;
    }
}

#[tokio::test]
async fn a_group_is_ended_although_its_first_process_has_exited() {
    let (mut process, _stdin, _stdout, descendant) = start("sleep 1000 </dev/null 2>&0 & echo $!; exit 5").await;
    assert_eq!(process.wait().await.code, Some(5));
    assert!(is_alive(descendant));
    drop(process);
    wait_until("the descendant has ended", || !is_alive(descendant)).await;
}

#[tokio::test]
async fn shutdown_gives_the_group_time_to_leave() {
    // The child leaves when stdin ends; what it started has to be asked.
    let script = "sh -c 'trap \"echo left in peace; exit\" TERM; echo $$; while :; do sleep 0.01; done' & cat; exit 6";
    let (process, stdin, mut stdout, _) = start(script).await;
    drop(stdin);
    assert_eq!(process.shutdown(LONG).await.code, Some(6));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "left in peace\n");
}

#[tokio::test]
async fn what_ignores_sigterm_is_killed_after_the_grace() {
    let (process, stdin, _stdout, descendant) = start("trap '' TERM; sleep 1000 & echo $!; wait").await;
    drop(stdin);
    assert_eq!(process.shutdown(Duration::from_millis(50)).await.signal, Some(9));
    wait_until("the descendant has ended", || !is_alive(descendant)).await;
}

#[tokio::test]
async fn a_process_outlives_the_thread_that_launched_it() {
    let runtime = tokio::runtime::Handle::current();
    let launch = move || {
        let _guard = runtime.enter();
        Command::from(["sh", "-c", "read line; echo \"$line\""]).spawn().unwrap()
    };
    let (process, mut stdin, mut stdout) = std::thread::spawn(launch).join().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"still here\n").await.unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "still here\n");
    assert!(process.shutdown(LONG).await.success());
}

#[tokio::test]
async fn a_hook_runs_in_the_child_and_can_refuse_it() {
    let refuse = || Err(std::io::Error::from_raw_os_error(libc::ENOSYS));
    // SAFETY: it makes a value without allocating.
    let error = unsafe { Command::new("cat").before_exec(std::sync::Arc::new(refuse)) }.spawn().unwrap_err();
    assert_eq!(error.to_string(), "cannot start `cat`: Function not implemented (os error 38)");
}

/// The owner's half of the test below, started by it and idle otherwise.
#[tokio::test]
async fn program_that_owns_a_process() {
    if std::env::var_os("ATTACHE_TEST_OWNER").is_none() {
        return;
    }
    let (mut process, _stdin, _stdout) = Command::from(["sleep", "1000"]).spawn().unwrap();
    println!("\nchild {}", process.id().unwrap());
    process.wait().await;
}

#[tokio::test]
async fn a_child_ends_when_its_owner_is_killed() {
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program_that_owns_a_process", "--nocapture"])
        .env("ATTACHE_TEST_OWNER", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = StdBufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let child = lines.find_map(|line| line.strip_prefix("child ")?.parse().ok()).unwrap();
    assert!(is_alive(child));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the child has ended", || !is_alive(child)).await;
}

/// The session of a process, and the number of the terminal that controls it, 0 for none.
fn session_of(pid: u32) -> (u32, u32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_ascii_whitespace().skip(3);
    (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_child_has_a_session_of_its_own_without_a_terminal() {
    let (process, _stdin, _stdout, child) = start("echo $$; cat").await;
    assert_eq!(session_of(child), (child, 0));
    drop(process);
    wait_until("the child has ended", || !is_alive(child)).await;
}

#[tokio::test]
async fn a_child_gets_no_descriptors_but_its_three() {
    // The fourth is the list itself.
    // SAFETY: duplicates our stdin, without close-on-exec, as a careless library would leave it.
    let leaked = unsafe { libc::dup(0) };
    assert!(leaked > 2);
    let (_process, mut output) = Command::from(["ls", "/proc/self/fd"]).spawn_merged().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.split_ascii_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    // SAFETY: closes what was opened above.
    unsafe { libc::close(leaked) };
}
