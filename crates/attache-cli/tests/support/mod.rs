//! What the tests of the command line share: a home of their own, and the command as it is typed.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub, reason = "each test uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A home of its own for a test.
pub struct Home(pub TempDir);

/// What a command printed, and its exit code.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn config(&self) -> PathBuf {
        self.path("config/attache/agents.toml")
    }

    pub fn write_config(&self, text: &str) {
        fs::create_dir_all(self.path("config/attache")).unwrap();
        fs::write(self.config(), text).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_attache"));
        command.args(args).env_clear().current_dir(self.0.path());
        command.env("HOME", self.0.path()).env("PATH", self.path("bin")).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_STATE_HOME", self.path("state"));
        // Whatever model servers this machine has.
        command.env("ATTACHE_MODEL", "offline");
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    /// A program on PATH that does nothing.
    pub fn install(&self, name: &str) {
        let path = self.path("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a command of `agents` on the scripted agent.
    pub fn scripted(&self, args: &[&str], agent: &[&str]) -> Ran {
        self.run(&[&["agents"], args, &["--", &scripted()], agent].concat())
    }
}

pub fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    #[track_caller]
    pub fn check(&self, code: i32, in_out: &[&str], in_err: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let missing = |text: &str, parts: &[&str]| parts.iter().any(|part| !text.contains(part));
        assert!(!missing(&self.out, in_out), "{in_out:?} in stdout:\n{}", self.out);
        assert!(!missing(&self.err, in_err), "{in_err:?} in stderr:\n{}", self.err);
        let harmful = |text: &str| text.contains(['\u{1b}', '\u{7}', '\u{202e}']);
        assert!(!harmful(&self.out) && !harmful(&self.err), "{}{}", self.out, self.err);
    }

    pub fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The agent for tests: cargo builds examples together with tests, and puts them beside each other.
pub fn scripted() -> String {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/scripted_agent");
    assert!(path.exists(), "{} is not built", path.display());
    path.to_str().unwrap().into()
}

/// A terminal: its screen and keyboard for a program, and its other end for us.
fn open_terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: two numbers are written; the rest may be null.
    let opened = unsafe {
        libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
    };
    assert_eq!(opened, 0);
    // SAFETY: both were opened just now, and nobody else has them. No child gets them unless it is given them.
    unsafe {
        libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(theirs, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(theirs), OwnedFd::from_raw_fd(ours))
    }
}

/// Runs a command on a terminal of its own, where its stderr goes. Each answer is typed when its question has been seen
/// after the one before. Returns the whole screen and the exit code.
pub fn in_terminal(command: Command, answers: &[(&str, &str)]) -> (String, i32) {
    let (seen, code, _) = at_terminal(command, false, answers);
    (seen, code)
}

/// The same; with `typing`, its stdin is the terminal too. Tells also whether the terminal shows what is typed in the end.
pub fn at_terminal(mut command: Command, typing: bool, answers: &[(&str, &str)]) -> (String, i32, bool) {
    let (screen, ours) = open_terminal();
    let theirs = screen.as_raw_fd();
    // SAFETY: both calls may be made between fork and exec, and the descriptor is open until then.
    unsafe {
        command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(theirs, libc::TIOCSCTTY, 0) >= 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        });
    }
    if typing {
        command.stdin(screen.try_clone().unwrap());
    }
    let mut child = command.stderr(screen.try_clone().unwrap()).spawn().unwrap();
    drop((command, screen));
    let mut ours = fs::File::from(ours);
    let (mut seen, mut from) = (String::new(), 0);
    let mut answers = answers.iter();
    let mut next = answers.next();
    let mut buffer = [0; 1024];
    // Reading fails when the last process has let go of the terminal.
    while let Ok(length @ 1..) = ours.read(&mut buffer) {
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
        if let Some((question, answer)) = next
            && let Some(at) = seen[from..].find(question)
        {
            from += at + question.len();
            ours.write_all(answer.as_bytes()).unwrap();
            next = answers.next();
        }
    }
    // SAFETY: all zeros is a valid `termios`; the descriptor is open, and what is pointed to lives through the call.
    let shows = unsafe {
        let mut state: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(ours.as_raw_fd(), &mut state), 0);
        state.c_lflag & libc::ECHO != 0
    };
    (seen, child.wait().unwrap().code().unwrap(), shows)
}

/// Waits until no process has this in its command line.
#[track_caller]
pub fn wait_until_gone(marker: &str) {
    let is_running = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
    };
    let began = Instant::now();
    while is_running() {
        assert!(began.elapsed() < Duration::from_secs(5), "it is still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}
