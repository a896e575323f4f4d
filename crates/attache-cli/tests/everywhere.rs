//! What holds on every system: a run with an agent, the agent that is built in with its files, commands and sessions, and where
//! things are kept. Under wine, these are the tests of the command on Windows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use attache_testkit::TimeLimit;
use serde_json::Value;

/// How long a command may take. Much more than it does, because tests share a machine.
const TOO_LONG: Duration = Duration::from_secs(120);

/// A person's directories, and a project.
struct Home(tempfile::TempDir);

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        let home = Home(tempfile::tempdir().unwrap());
        for directory in ["work", "roaming", "local"] {
            fs::create_dir(home.path(directory)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_attache"));
        command.args(words).current_dir(self.path("work")).stdin(Stdio::null());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "ATTACHE_AGENT", "VISUAL", "EDITOR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.0.path()).env("USERPROFILE", self.0.path());
        command.env("APPDATA", self.path("roaming")).env("LOCALAPPDATA", self.path("local"));
        // Whatever model servers and networks this machine has.
        command.env("ATTACHE_MODEL", "offline").env("ATTACHE_MODEL_LISTS", "off");
        command
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> Ran {
        ran(self.command(words))
    }

    /// A run with the agent that is built in, which may do everything.
    #[track_caller]
    fn perform(&self, prompt: &str) -> String {
        let ran = self.run(&["run", "-o", "quiet", "--permissions", "all", prompt]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran.out
    }
}

#[track_caller]
fn ran(mut command: Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _limit = TimeLimit::new(&child, TOO_LONG);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The agent that does as its prompt says.
fn scripted() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let name = format!("scripted_agent{}", std::env::consts::EXE_SUFFIX);
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not built", path.display());
    path
}

#[test]
fn an_agent_of_any_kind_runs_and_says_how_it_ended() {
    let home = Home::new();
    let agent = scripted();
    let agent = agent.to_str().unwrap();
    for (prompt, code, status) in [("say grüße", 0, "done"), ("stop refusal", 6, "refused"), ("error", 1, "error")] {
        let ran = home.run(&["run", "-o", "json", prompt, "--", agent]);
        let result: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
        assert_eq!((ran.code, result["status"].as_str()), (Some(code), Some(status)), "{}{}", ran.out, ran.err);
    }
    let said = home.run(&["run", "-o", "quiet", "say grüße", "--", agent]);
    assert_eq!((said.code, said.out.trim_end()), (Some(0), "grüße"), "{}", said.err);
    let late = home.run(&["run", "--timeout", "300ms", "slow", "--", agent]);
    assert_eq!(late.code, Some(3), "{}", late.err);
    let missing = home.run(&["run", "hello", "--", "no-such-agent-anywhere"]);
    assert!(missing.err.contains("no-such-agent-anywhere") && missing.code != Some(0), "{}", missing.err);
}

#[test]
fn files_are_read_changed_and_keep_their_line_ends() {
    let home = Home::new();
    home.perform("create src/notes.txt with \"one\\ntwo\\n\"");
    assert_eq!(fs::read_to_string(home.path("work/src/notes.txt")).unwrap(), "one\ntwo\n");
    fs::write(home.path("work/crlf.txt"), "a\r\nhello\r\nb\r\n").unwrap();
    home.perform("replace hello with \"good\\nmorning\" in crlf.txt");
    assert_eq!(fs::read_to_string(home.path("work/crlf.txt")).unwrap(), "a\r\ngood\r\nmorning\r\nb\r\n");
    assert!(home.perform("read crlf.txt").contains("CRLF"));
    assert!(home.perform("search tw. in src").contains("two"));
    assert!(home.perform("find **/*.txt").contains("notes.txt"));
    home.perform("move crlf.txt to other.txt");
    home.perform("delete other.txt");
    assert!(!home.path("work/crlf.txt").exists() && !home.path("work/other.txt").exists());
    // The whole path, in the words of the system.
    let whole = home.path("work").join("src").join("notes.txt");
    assert!(home.perform(&format!("read \"{}\"", whole.display().to_string().replace('\\', "\\\\"))).contains("two"));
    // What is beside the project is asked about, and nobody is there.
    fs::write(home.path("beside.txt"), "hidden words").unwrap();
    let beside = home.run(&["run", "-o", "quiet", "--permissions", "none", "read ../beside.txt"]);
    assert!(!beside.out.contains("hidden words"), "{}", beside.out);
}

#[test]
fn commands_run_in_the_project_and_are_refused_where_nobody_is_asked() {
    let home = Home::new();
    let out = home.perform("run echo hello there");
    assert!(out.contains("hello there"), "{out}");
    let out = home.perform("run exit 3");
    assert!(out.contains("exit code 3"), "{out}");
    home.perform("run echo made> made.txt");
    assert!(home.path("work/made.txt").exists());
    // Mode `code` does not run what nothing can confine, unless somebody says so.
    let unasked = home.run(&["run", "-o", "quiet", "--mode", "code", "--permissions", "none", "run echo x> not.txt"]);
    assert!(!home.path("work/not.txt").exists(), "{}{}", unasked.out, unasked.err);
}

#[test]
fn a_file_that_is_mentioned_goes_along() {
    let home = Home::new();
    fs::create_dir(home.path("work/docs")).unwrap();
    fs::write(home.path("work/docs/a.txt"), "words of the file").unwrap();
    let name = Path::new("docs").join("a.txt");
    let agent = scripted();
    let prompt = format!("blocks @{}", name.display());
    let ran = home.run(&["run", "-o", "stream-json", &prompt, "--", agent.to_str().unwrap(), "--generous"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("names no file"), "{}", ran.err);
}

#[test]
fn sessions_are_kept_and_gone_on_with() {
    let home = Home::new();
    home.perform("say the first");
    home.perform("say the second");
    let list = home.run(&["sessions", "list", "--json"]);
    let sessions: Vec<Value> = list.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((list.code, sessions.len()), (Some(0), 2), "{}{}", list.out, list.err);
    let again = home.run(&["run", "-o", "quiet", "--permissions", "all", "--continue", "say more"]);
    assert_eq!((again.code, again.out.trim_end().ends_with("more")), (Some(0), true), "{}{}", again.out, again.err);
    let list = home.run(&["sessions", "list", "--json"]);
    assert_eq!(list.out.lines().count(), 3, "a record for each run: {}", list.out);
    let agents = home.run(&["agent", "sessions", "list"]);
    assert_eq!((agents.code, agents.out.lines().count() >= 2), (Some(0), true), "{}{}", agents.out, agents.err);
}

#[test]
fn settings_and_records_are_where_the_system_has_them() {
    let home = Home::new();
    home.perform("say hello");
    let (config, state) = match cfg!(windows) {
        true => (home.path("roaming"), home.path("local")),
        false => (home.path(".config"), home.path(".local/state")),
    };
    assert!(state.join("attache").join("runs").is_dir());
    assert!(attache::private::is_private(&state.join("attache").join("runs")).unwrap());
    let doctor = home.run(&["doctor", "--json"]);
    let rows: Vec<Value> = doctor.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = |check: &str| {
        let row = rows.iter().find(|row| row["check"] == check);
        row.map(|row| row["found"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    let begins = |check: &str, path: &Path| found(check).starts_with(&path.join("attache").display().to_string());
    assert!(begins("settings", &config) && begins("records", &state), "{}", doctor.out);
    #[cfg(windows)]
    assert!(found("confinement").contains("not confined"), "{}", doctor.out);
}

#[cfg(windows)]
mod on_windows {
    use super::*;

    /// npm gives programs as batch files.
    #[test]
    fn an_agent_that_is_a_batch_file_is_found_and_started() {
        let home = Home::new();
        fs::create_dir(home.path("bin")).unwrap();
        let line = format!("@echo off\r\n\"{}\" %*\r\n", scripted().display());
        fs::write(home.path("bin/my-agent.cmd"), line).unwrap();
        // What npm puts beside it for other systems is not taken for the program.
        fs::write(home.path("bin/my-agent"), "#!/bin/sh\n").unwrap();
        let path = format!("{};{}", home.path("bin").display(), std::env::var("PATH").unwrap());
        let run = |arguments: &[&str]| {
            let mut command =
                home.command(&[&["run", "-o", "quiet", "say hello", "--", "my-agent"], arguments].concat());
            command.env("PATH", &path);
            ran(command)
        };
        let said = run(&["--show", "two words & more"]);
        assert_eq!((said.code, said.out.trim_end()), (Some(0), "hello"), "{}", said.err);
        let refused = run(&["--show", "a line\nand another"]);
        assert!(refused.code != Some(0) && refused.err.contains("batch file"), "{}", refused.err);
    }

    #[test]
    fn unix_sockets_are_refused_by_name() {
        let home = Home::new();
        let added = home.run(&["serve", "token", "add", "me"]);
        assert_eq!(added.code, Some(0), "{}", added.err);
        let ran = home.run(&["serve", "--listen", "unix:C:/a.sock"]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains("there are no Unix sockets on Windows"), "{}", ran.err);
    }
}
