//! Programs that turn on their keeper: whatever they do to it, they end with everything they started.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader as StdBufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use attache::process::{Command, Process, use_keeper};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// A daemon in a session of its own, whose parent has ended, and its id.
const DAEMON: &str = "trap '' TERM HUP INT; (setsid sh -c '(setsid sleep 1000 & echo $!)' &); cat";

async fn start(script: &str) -> (Process, ChildStdin, BufReader<ChildStdout>, u32) {
    use_keeper();
    let (process, stdin, stdout) = Command::from(["/bin/sh", "-c", script]).spawn().unwrap();
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    (process, stdin, stdout, line.trim().parse().unwrap())
}

/// A field of `/proc/<pid>/stat`, counted from the state, which is 0.
fn stat_field(pid: u32, field: usize) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    String::from_utf8_lossy(&stat).rsplit(')').next()?.split_ascii_whitespace().nth(field).map(str::to_owned)
}

fn is_alive(pid: u32) -> bool {
    stat_field(pid, 0).is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

fn keeper_of(process: &Process) -> u32 {
    stat_field(process.id().unwrap(), 1).unwrap().parse().unwrap()
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: sends a signal to a process that the test has started.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn is_reaped(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_keeper_that_is_killed_takes_its_tree_along() {
    let (mut process, _stdin, _stdout, daemon) = start(DAEMON).await;
    let child = process.id().unwrap();
    signal(keeper_of(&process), libc::SIGKILL);
    process.wait().await;
    assert!(!is_alive(daemon) && !is_alive(child), "the wait lasts until the tree has ended");
    wait_until("the daemon has been reaped", || is_reaped(daemon)).await;
}

#[tokio::test]
async fn the_tree_of_a_killed_keeper_ends_although_nobody_waits_for_it() {
    let (process, _stdin, _stdout, daemon) = start(DAEMON).await;
    signal(keeper_of(&process), libc::SIGKILL);
    wait_until("the daemon has ended", || !is_alive(daemon)).await;

    // Killed when the process has been dropped already, which is when a tree that means harm would do it.
    let (process, _stdin, _stdout, daemon) = start(DAEMON).await;
    let keeper = keeper_of(&process);
    signal(keeper, libc::SIGSTOP);
    drop(process);
    signal(keeper, libc::SIGKILL);
    wait_until("the daemon has ended", || !is_alive(daemon)).await;
}

#[tokio::test]
async fn a_killed_keeper_takes_along_what_never_stays() {
    // It lives for a moment only and hands over to a child in a new session, so that whoever was seen is gone.
    let directory = std::env::temp_dir().join(format!("attache-keeper-hop-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("hop"), "echo >> steps; [ -e hop ] && (setsid sh hop &)").unwrap();
    use_keeper();
    let command = Command::from(["sh", "-c", "sh hop; cat"]).cwd(&directory);
    let (mut process, _stdin, _stdout) = command.spawn().unwrap();
    let steps = || std::fs::read(directory.join("steps")).unwrap_or_default().len();
    wait_until("it is on its way", || steps() > 10).await;
    signal(keeper_of(&process), libc::SIGKILL);
    process.wait().await;
    let last_step = steps();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(steps(), last_step);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn other_processes_of_this_program_outlive_a_killed_keeper() {
    let (killed, _stdin, _stdout, daemon) = start(DAEMON).await;
    let (other, _other_stdin, _other_stdout, other_daemon) = start(DAEMON).await;
    let mut plain = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    signal(keeper_of(&killed), libc::SIGKILL);
    wait_until("the daemon has ended", || !is_alive(daemon)).await;
    assert!(is_alive(other.id().unwrap()) && is_alive(other_daemon) && plain.try_wait().unwrap().is_none());
    plain.kill().unwrap();
    plain.wait().unwrap();
}

#[tokio::test]
async fn a_keeper_without_descriptors_ends_its_tree() {
    for script in [DAEMON, "trap '' TERM HUP INT; setsid sh -c 'sleep 1000 & echo $!; wait' & wait"] {
        let (process, _stdin, _stdout, descendant) = start(script).await;
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let keeper = keeper_of(&process);
        // SAFETY: sets a limit of a process that the test has started; the old one is not asked for.
        let set = unsafe { libc::prlimit(keeper as i32, libc::RLIMIT_NOFILE, &none, std::ptr::null_mut()) };
        assert_eq!(set, 0);
        drop(process);
        wait_until("the descendant has ended", || !is_alive(descendant)).await;
        wait_until("the keeper has ended", || !is_alive(keeper)).await;
    }
}

#[tokio::test]
async fn a_keeper_that_was_stopped_ends_its_tree() {
    let (process, _stdin, _stdout, daemon) = start(DAEMON).await;
    signal(keeper_of(&process), libc::SIGSTOP);
    process.shutdown(Duration::from_millis(50)).await;
    assert!(!is_alive(daemon), "shutdown returns when the tree is gone");

    let (process, _stdin, _stdout, daemon) = start(DAEMON).await;
    signal(keeper_of(&process), libc::SIGSTOP);
    drop(process);
    wait_until("the daemon has ended", || !is_alive(daemon)).await;
}

/// The owner's half of the test below, started by it and idle otherwise.
#[tokio::test]
async fn program_that_owns_a_stopped_keeper() {
    if std::env::var_os("ATTACHE_TEST_OWNER").is_none() {
        return;
    }
    let (mut process, _stdin, _stdout, daemon) = start(DAEMON).await;
    signal(keeper_of(&process), libc::SIGSTOP);
    println!("\ndaemon {daemon}");
    process.wait().await;
}

#[tokio::test]
async fn a_stopped_keeper_goes_on_when_its_owner_is_killed() {
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program_that_owns_a_stopped_keeper", "--nocapture"])
        .env("ATTACHE_TEST_OWNER", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = StdBufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let daemon = lines.find_map(|line| line.strip_prefix("daemon ")?.parse().ok()).unwrap();
    assert!(is_alive(daemon));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the daemon has ended", || !is_alive(daemon)).await;
}

#[tokio::test]
async fn nobody_but_root_reads_the_memory_of_a_keeper() {
    let (process, _stdin, _stdout, _) = start("echo $$; cat").await;
    let keeper = keeper_of(&process);
    // The kernel shows who may by whom it says that they belong to.
    let owner = || std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{keeper}/environ")).unwrap());
    wait_until("it belongs to root", || owner() == 0).await;
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        assert!(std::fs::File::open(format!("/proc/{keeper}/environ")).is_err());
    }
}
