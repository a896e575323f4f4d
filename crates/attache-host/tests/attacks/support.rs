//! A home of its own for an attack, the real command, a person at a terminal, and an agent that means harm.
#![allow(dead_code, unreachable_pub, reason = "each attack uses a part of it")]

use std::ffi::CString;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use attache_testkit::TimeLimit;
use serde_json::Value;
use tempfile::TempDir;

/// The user and group that attacks run as when the tests run as root: nobody.
const NOBODY: u32 = 65534;

/// What every question ends with, where the answer is typed. What is typed before it can be seen is no answer.
pub const ANSWER: &str = ")? ";

/// How long a run may take. Much more than it does, because tests share a machine.
const TOO_LONG: Duration = Duration::from_secs(120);

/// The command, built from this source.
pub fn attache() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--bin", "attache"], "attache"))
}

/// The agent of `examples/hostile_agent.rs`.
pub fn hostile_agent() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--example", "hostile_agent"], "examples/hostile_agent"))
}

/// The attacks of `examples/sandbox_attacker.rs`.
pub fn sandbox_attacker() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--example", "sandbox_attacker"], "examples/sandbox_attacker"))
}

/// Builds something, in a place where every user can execute it: the target directory may be out of their reach.
fn build(what: &[&str], path: &str) -> PathBuf {
    static OPEN: OnceLock<PathBuf> = OnceLock::new();
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let target = profile.parent().unwrap();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--workspace", "--target-dir"])
        .arg(target)
        .args(what)
        .status();
    assert!(status.unwrap().success(), "{what:?} is not built");
    let open = OPEN.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("attache-attacks-{}", std::process::id()));
        let _ = fs::create_dir(&directory);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        directory
    });
    let copy = open.join(Path::new(path).file_name().unwrap());
    fs::copy(profile.join(path), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// Whether the tests run as root, and attacks as another user.
pub fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

/// A home and a project in it, which belong to the user that attacks run as.
pub struct Place {
    directory: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    /// Stderr, or the whole screen when there was a terminal.
    pub err: String,
    /// What the agent noted, a value for each answer.
    pub log: Vec<Value>,
}

impl Place {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("attack-").tempdir().unwrap();
        let place = Place { directory };
        for name in ["home", "home/project"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        place.own();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub fn project(&self) -> PathBuf {
        self.path("home/project")
    }

    /// Writes a file, named from the home, with the directories above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.own();
        path
    }

    /// Reads a file, named from the home; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home().join(name)).unwrap_or_default()
    }

    /// Writes rules for always.
    pub fn rules(&self, text: &str) {
        self.write(".config/attache/permissions.toml", text);
    }

    /// Gives everything to the user that attacks run as.
    pub fn own(&self) {
        if is_root() {
            own(self.directory.path());
        }
    }

    /// `attache` with these arguments, in the project, as the user.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(attache());
        command.args(args);
        self.prepare(&mut command);
        command
    }

    /// Makes any command one of the user, in the project, with an environment of its own.
    pub fn prepare(&self, command: &mut Command) {
        self.prepare_for_us(command);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    /// The same for whoever runs the tests: what is in their home may be out of everybody else's reach.
    pub fn prepare_for_us(&self, command: &mut Command) {
        command.current_dir(self.project()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("ATTACHE_MODEL", "offline");
    }

    /// `attache run` with these options and an agent that plays a script, in the version of the protocol.
    pub fn attack(&self, version: u8, options: &[&str], script: &Value) -> Command {
        let script_path = self.write("script.json", script.to_string());
        let log = self.write("project/.log.jsonl", "");
        let mut command = self.command(&["run"]);
        command.args(options).args(["go", "--"]).arg(hostile_agent()).args([script_path, log]).arg(version.to_string());
        command
    }

    /// Runs it without a person.
    pub fn run(&self, mut command: Command) -> Ran {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _limit = TimeLimit::new(&child, TOO_LONG);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr), log: self.log() }
    }

    /// Runs it with a person at a terminal of 24 lines, who sees stdout and stderr there. Each answer is typed when its
    /// question has been seen after the one before.
    pub fn ask(&self, command: Command, answers: &[(&str, &str)]) -> Ran {
        self.ask_slowly(command, Duration::ZERO, answers)
    }

    /// The same with a person who takes some time to answer.
    pub fn ask_slowly(&self, mut command: Command, thinking: Duration, answers: &[(&str, &str)]) -> Ran {
        let (screen, ours) = open_terminal();
        let theirs = screen.as_raw_fd();
        // SAFETY: both calls may be made between fork and exec, and the descriptor is open until then.
        unsafe {
            command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(theirs, libc::TIOCSCTTY, 0) >= 0 {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            });
        }
        // Without colours of our own, every escape on the screen is somebody else's.
        command.env("NO_COLOR", "1").stdout(screen.try_clone().unwrap()).stderr(screen.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let _limit = TimeLimit::new(&child, TOO_LONG);
        drop((command, screen));
        let mut ours = fs::File::from(ours);
        let (mut seen, mut from) = (String::new(), 0);
        let mut answers = answers.iter();
        let mut next = answers.next();
        let mut buffer = [0; 4096];
        // Reading fails when the last process has let go of the terminal.
        while let Ok(length @ 1..) = ours.read(&mut buffer) {
            seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
            while let Some((question, answer)) = next
                && let Some(at) = seen[from..].find(question)
            {
                from += at + question.len();
                std::thread::sleep(thinking);
                ours.write_all(answer.as_bytes()).unwrap();
                next = answers.next();
            }
        }
        assert!(next.is_none(), "{next:?} was never asked:\n{seen}");
        Ran { code: child.wait().unwrap().code(), out: String::new(), err: seen, log: self.log() }
    }

    pub fn log(&self) -> Vec<Value> {
        self.read("project/.log.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Gives a tree to the user that attacks run as. Links are not followed.
fn own(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name lives through the call.
    assert_eq!(unsafe { libc::lchown(name.as_ptr(), NOBODY, NOBODY) }, 0);
    if path.symlink_metadata().unwrap().is_dir() {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| own(&entry.path()));
    }
}

/// A terminal of 24 lines: its screen and keyboard for a program, and its other end for us.
pub fn open_terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: two numbers are written, the size is read; the rest may be null.
    let opened = unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), &size) };
    assert_eq!(opened, 0);
    if is_root() {
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fchown(theirs, NOBODY, NOBODY) }, 0);
    }
    // SAFETY: both were opened just now, and nobody else has them. No child gets them unless it is given them.
    unsafe {
        libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(theirs, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(theirs), OwnedFd::from_raw_fd(ours))
    }
}
