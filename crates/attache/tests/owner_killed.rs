//! A program with a keeper that is killed at any moment leaves no process behind, also none that took pains to stay.
//!
//! Alone in its file, because the test adopts every orphan of the programs it starts, and wants to be sure whose they are.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use attache::process::{Command, use_keeper};
use attache_testkit::Dice;

const KILLS: usize = 100;
const MARK: &str = "ATTACHE_TEST_MARK";
/// What the issue of leftover processes asks for.
const DEADLINE: Duration = Duration::from_secs(5);

/// Children in sessions of their own, daemons whose parents have ended, and both, none of which heeds a signal.
const STUBBORN: &str = "trap '' TERM HUP INT
    setsid sleep 100 &
    (sleep 100 &)
    (setsid sh -c '(setsid sleep 100 &); exec sleep 100' &)";

/// The program that is killed, started by the test below and idle otherwise.
#[tokio::test]
async fn program_that_owns_processes() {
    if std::env::var_os(MARK).is_none() {
        return;
    }
    use_keeper();
    println!("\nready");
    let mut owned = Vec::new();
    for turn in 0..8 {
        // Every other program ends and leaves the rest to itself.
        let last = if turn % 2 == 0 { "exec sleep 100" } else { "exit" };
        let (process, _stdin, _stdout) = Command::from(["sh", "-c", &format!("{STUBBORN}\n{last}")]).spawn().unwrap();
        if turn % 3 == 2 {
            drop(process);
        } else {
            owned.push(process);
        }
    }
    // Longer than the test waits, short enough to end by itself when the test is gone.
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[test]
fn no_process_is_left_after_kills_at_random_moments() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    // SAFETY: makes us the parent of all orphans below us, so that none escapes the count.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    let mut dice = Dice::new(2026);
    let mark = format!("{}-{:?}", std::process::id(), Instant::now());
    let (mut killed, mut slowest) = (0, Duration::ZERO);
    for _ in 0..KILLS {
        let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program_that_owns_processes", "--nocapture"])
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "ready"));
        thread::sleep(Duration::from_micros(dice.below(60_000) as u64));
        killed += marked(&mark).len();
        owner.kill().unwrap();
        owner.wait().unwrap();
        let start = Instant::now();
        while !(marked(&mark).is_empty() && is_childless()) {
            assert!(start.elapsed() < DEADLINE, "left: {:?}", marked(&mark));
            thread::sleep(Duration::from_millis(1));
        }
        slowest = slowest.max(start.elapsed());
    }
    println!("{killed} processes lived when their owners were killed; the slowest end took {slowest:?}");
    assert!(killed > 5 * KILLS, "only {killed} processes were there to be ended");
}

/// The processes that inherited the mark in their environment.
fn marked(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let is_marked = |environment: &[u8]| environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| std::fs::read(process.path().join("environ")).is_ok_and(|bytes| is_marked(&bytes)))
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether nothing that the owners started is left, keepers included. Reaps what has ended.
fn is_childless() -> bool {
    loop {
        // SAFETY: reaps a child; no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return false,
            -1 => return true,
            _ => {}
        }
    }
}
