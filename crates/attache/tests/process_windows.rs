//! Real processes on Windows: they end with everything they started, however they and we end, and are found where they should.
#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::{
    env, fs,
    io::{Read as _, Write as _},
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    path::{Path, PathBuf},
    process::{Command as StdCommand, Stdio},
    thread,
    time::{Duration, Instant},
};

use attache::process::{Command, SpawnError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windows_sys::Win32::{
    Foundation::WAIT_OBJECT_0,
    System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject},
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
/// What this program is to be when it is started by a test, and where it tells its descendants' ids.
const ROLE: &str = "ATTACHE_TEST_ROLE";
const IDS: &str = "ATTACHE_TEST_IDS";

/// What this program does when a test starts it. As a test of its own it does nothing.
#[test]
fn role() {
    let Ok(role) = env::var(ROLE) else { return };
    let next = |role: &str| {
        let mut command = StdCommand::new(env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture"]).env(ROLE, role).stdin(Stdio::null());
        command
    };
    match role.as_str() {
        // Starts a descendant and lives on.
        "parent" => {
            tell_id();
            // Nobody waits for it, which is the point.
            let _child = std::mem::ManuallyDrop::new(next("sleeper").spawn().unwrap());
            thread::sleep(LONG);
        }
        // Starts a descendant and is gone.
        "leaver" => {
            let mut child = next("sleeper").spawn().unwrap();
            wait_for_ids(1);
            assert!(child.try_wait().unwrap().is_none());
        }
        "sleeper" => {
            tell_id();
            thread::sleep(LONG);
        }
        // Has a process of ours, and lives until it is killed.
        "owner" => runtime().block_on(async {
            let (_process, _stdin, _stdout) = ourselves("parent").spawn().unwrap();
            tokio::time::sleep(LONG).await;
        }),
        // What goes in comes out, on both streams in turn.
        "echo" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            for (index, word) in text.split_whitespace().enumerate() {
                match index % 2 {
                    0 => std::io::stdout().write_all(format!("<{word}>").as_bytes()).unwrap(),
                    _ => std::io::stderr().write_all(format!("[{word}]").as_bytes()).unwrap(),
                }
                std::io::stdout().flush().unwrap();
            }
            std::process::exit(7);
        }
        other => panic!("{other}"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// This program in a role.
fn ourselves(role: &str) -> Command {
    Command::new(env::current_exe().unwrap()).args(["--exact", "role", "--nocapture"]).env(ROLE, role)
}

fn tell_id() {
    let path = PathBuf::from(env::var_os(IDS).unwrap());
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
}

/// The ids of so many processes, once they are told.
fn wait_for_ids(count: usize) -> Vec<u32> {
    ids_in(Path::new(&env::var_os(IDS).unwrap()), count)
}

fn ids_in(path: &Path, count: usize) -> Vec<u32> {
    let begin = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        let ids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if ids.len() >= count && text.ends_with('\n') {
            return ids;
        }
        assert!(begin.elapsed() < LONG, "only {} processes have started", ids.len());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Processes that are held, so that their ids mean no others.
struct Held(Vec<OwnedHandle>);

impl Held {
    fn open(ids: &[u32]) -> Self {
        let open = |id: &u32| {
            // SAFETY: gives a new handle or none.
            let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, *id) };
            assert!(!handle.is_null(), "{id} is gone");
            // SAFETY: nobody else has it.
            unsafe { OwnedHandle::from_raw_handle(handle) }
        };
        Held(ids.iter().map(open).collect())
    }

    /// How many have ended within some time.
    fn ended(&self, within: Duration) -> usize {
        let wait = |handle: &&OwnedHandle| {
            // SAFETY: the handle is open.
            unsafe { WaitForSingleObject(handle.as_raw_handle(), within.as_millis() as u32) == WAIT_OBJECT_0 }
        };
        self.0.iter().filter(wait).count()
    }
}

/// A directory of the test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("attache-windows-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn ids(&self) -> PathBuf {
        self.0.join("ids")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_dropped_process_ends_with_its_descendants() {
    let scratch = Scratch::new("dropped");
    let (process, _stdin, _stdout) = ourselves("parent").env(IDS, scratch.ids()).spawn().unwrap();
    let held = Held::open(&ids_in(&scratch.ids(), 2));
    assert_eq!(held.ended(Duration::ZERO), 0);
    drop(process);
    assert_eq!(held.ended(LONG), 2);
}

#[tokio::test]
async fn a_shut_down_process_leaves_nobody_behind() {
    let scratch = Scratch::new("shutdown");
    let (mut process, stdin, _stdout) = ourselves("leaver").env(IDS, scratch.ids()).spawn().unwrap();
    let held = Held::open(&ids_in(&scratch.ids(), 1));
    assert_eq!(process.wait().await.code, Some(0));
    assert_eq!(held.ended(Duration::ZERO), 0, "what was left in the background ends with the process, not before");
    drop(stdin);
    process.shutdown(Duration::from_millis(10)).await;
    assert_eq!(held.ended(Duration::ZERO), 1, "nobody is left when this returns");
}

#[test]
fn a_killed_owner_takes_everything_along() {
    let scratch = Scratch::new("owner");
    let mut owner = StdCommand::new(env::current_exe().unwrap());
    owner.args(["--exact", "role", "--nocapture"]).env(ROLE, "owner").env(IDS, scratch.ids());
    let mut owner = owner.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let held = Held::open(&ids_in(&scratch.ids(), 2));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(held.ended(LONG), 2);
}

#[tokio::test]
async fn output_of_both_streams_is_in_order_and_all_there_at_the_end() {
    let words: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let command = ourselves("echo").input(words.join(" "));
    let (mut process, mut output) = command.spawn_merged().unwrap();
    assert_eq!(process.wait().await.code, Some(7));
    let mut text = Vec::new();
    let mut buffer = vec![0; 1000];
    loop {
        match output.read_available(&mut buffer).await {
            0 => break,
            length => text.extend_from_slice(&buffer[..length]),
        }
    }
    let text = String::from_utf8(text).unwrap();
    let expected: String = words
        .iter()
        .enumerate()
        .map(|(index, word)| if index % 2 == 0 { format!("<{word}>") } else { format!("[{word}]") })
        .collect();
    assert!(text.contains(&expected), "{text}");
    // And then the end, as a reader is told it.
    assert_eq!(output.read(&mut buffer).await.unwrap(), 0);
}

#[tokio::test]
async fn stdin_and_stdout_are_the_childs() {
    let (mut process, mut stdin, mut stdout) = ourselves("echo").spawn().unwrap();
    stdin.write_all(b"one two").await.unwrap();
    drop(stdin);
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("<one>"), "{text}");
    assert_eq!(process.wait().await.code, Some(7));
    assert!(process.stderr_tail().contains("[two]"));
}

#[tokio::test]
async fn a_program_is_not_looked_for_where_it_is_started() {
    let scratch = Scratch::new("lookup");
    let here = scratch.0.join("here");
    let there = scratch.0.join("there");
    for (directory, text) in [(&here, "here"), (&there, "there")] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("attache-tool.cmd"), format!("@echo {text} %1\r\n")).unwrap();
    }
    let error = Command::new("attache-tool").cwd(&here).spawn_merged().unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
    let command = Command::new("attache-tool").args(["a&b"]).cwd(&here).env("Path", &there);
    let (mut process, mut output) = command.spawn_merged().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert!(process.wait().await.success(), "{text}");
    assert!(text.starts_with("there"), "{text}");
    // A path is meant from where it is started.
    let (_process, mut output) = Command::new(r".\attache-tool").cwd(&here).spawn_merged().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("here"), "{text}");
    for (program, cwd) in [("attache-no-such-program", &here), (r".\nothing", &here), ("", &here)] {
        assert!(Command::new(program).cwd(cwd).spawn_merged().is_err(), "{program}");
    }
    let error = Command::new("attache-tool").cwd(scratch.0.join("missing")).spawn_merged().unwrap_err();
    assert!(matches!(error, SpawnError::NoDirectory { .. }), "{error}");
}
