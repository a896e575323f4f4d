//! What the tests of the command line share: a home of their own, and the command as it is typed.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use attache_testkit::TimeLimit;
use serde_json::Value;
use tempfile::TempDir;

/// How long a command may take. Much more than it does, because tests share a machine.
const TOO_LONG: Duration = Duration::from_secs(120);

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
        // And whatever networks it has.
        command.env("ATTACHE_MODEL_LISTS", "off");
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
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _limit = TimeLimit::new(&child, TOO_LONG);
    let output = child.wait_with_output().unwrap();
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

/// The result that `-o json` printed, checked against the published schema.
#[track_caller]
pub fn check_result(home: &Home, ran: &Ran) -> Value {
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    let schema = Schema::of(home);
    let line: Value = serde_json::json!({ "type": "result", "ms": 0 });
    let mut line = line.as_object().unwrap().clone();
    line.extend(value.as_object().unwrap().clone());
    schema.check_line(&Value::Object(line));
    value
}

/// The lines that `-o stream-json` printed, checked against the published schema.
#[track_caller]
pub fn check_events(home: &Home, ran: &Ran) -> Vec<Value> {
    let lines = ran.json();
    let schema = Schema::of(home);
    lines.iter().for_each(|line| schema.check_line(line));
    lines
}

/// The schema of events, as far as it is used: types, references, properties, required, items, enum, const, oneOf, anyOf.
struct Schema(Value);

impl Schema {
    fn of(home: &Home) -> Self {
        Schema(serde_json::from_str(&home.run(&["schema", "events"]).out).unwrap())
    }

    #[track_caller]
    fn check_line(&self, line: &Value) {
        let kinds = self.0["oneOf"].as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["properties"]["type"]["const"] == line["type"]);
        let kind = kind.unwrap_or_else(|| panic!("{} is no type of the schema", line["type"]));
        let fields = line.as_object().unwrap();
        let known = |name: &str| self.knows(&self.0, name) || self.knows(kind, name);
        assert!(fields.keys().all(|name| known(name)), "there is more than the schema has in {line}");
        if let Err(problem) = self.fits(kind, line).and_then(|()| self.fits_object(&self.0, line)) {
            panic!("{problem} in {line}");
        }
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => &self.0["$defs"][name.trim_start_matches("#/$defs/")],
            None => schema,
        }
    }

    fn knows(&self, schema: &Value, name: &str) -> bool {
        !schema["properties"][name].is_null() || !schema["$ref"].is_null() && self.knows(self.resolved(schema), name)
    }

    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if !schema["$ref"].is_null() {
            self.fits(self.resolved(schema), value)?;
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(all) = schema[key].as_array()
                && !all.iter().any(|one| self.fits(one, value).is_ok())
            {
                return Err(format!("{value} fits none of {schema}"));
            }
        }
        let is_type = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            _ => false,
        };
        let types: Vec<&str> = match &schema["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_type(name)) {
            return Err(format!("{value} is no {types:?}"));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            return Err(format!("{value} is none of {allowed:?}"));
        }
        if !schema["const"].is_null() && schema["const"] != *value {
            return Err(format!("{value} is not {}", schema["const"]));
        }
        if schema["items"].is_object() {
            value.as_array().into_iter().flatten().try_for_each(|item| self.fits(&schema["items"], item))?;
        }
        self.fits_object(schema, value)
    }

    fn fits_object(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let Some(fields) = value.as_object() else { return Ok(()) };
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(required) {
                return Err(format!("no `{required}`"));
            }
        }
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, property) in properties {
            if let Some(value) = fields.get(name) {
                self.fits(property, value).map_err(|problem| format!("`{name}`: {problem}"))?;
            }
        }
        Ok(())
    }
}

/// A run that goes on, and its output as it comes.
pub struct Running {
    pub child: Child,
    pub out: BufReader<std::process::ChildStdout>,
    _limit: TimeLimit,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { _limit: TimeLimit::new(&child, TOO_LONG), child, out }
    }

    /// Reads lines until one has this in it.
    pub fn wait_for(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "no {part}");
        }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: it is our child, which was not waited for yet.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    pub fn end(mut self) -> Ran {
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Ran { code: self.child.wait().unwrap().code().unwrap(), out, err }
    }
}

/// The agent for tests: cargo builds examples together with tests, and puts them beside each other.
pub fn scripted() -> String {
    example("scripted_agent")
}

/// The agent that says what a file tells it to.
pub fn wire_agent() -> String {
    example("wire_agent")
}

fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not built", path.display());
    path.to_str().unwrap().into()
}

/// A terminal: its screen and keyboard for a program, and its other end for us.
pub fn open_terminal() -> (OwnedFd, OwnedFd) {
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

/// Has a command begin a session of its own, on this terminal.
fn on_terminal(command: &mut Command, screen: &OwnedFd) {
    let theirs = screen.as_raw_fd();
    // SAFETY: both calls may be made between fork and exec, and the descriptor is open until then.
    unsafe {
        command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(theirs, libc::TIOCSCTTY, 0) >= 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        });
    }
}

/// Runs a command on a terminal of its own that is closed when this was seen there. Returns the exit code.
pub fn hang_up(mut command: Command, when: &str) -> i32 {
    let (screen, ours) = open_terminal();
    on_terminal(&mut command, &screen);
    command.stdout(screen.try_clone().unwrap()).stderr(screen.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let _limit = TimeLimit::new(&child, TOO_LONG);
    drop((command, screen));
    let mut ours = fs::File::from(ours);
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    while !seen.contains(when) {
        let length = ours.read(&mut buffer).unwrap();
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    drop(ours);
    child.wait().unwrap().code().unwrap()
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
    on_terminal(&mut command, &screen);
    if typing {
        command.stdin(screen.try_clone().unwrap());
    }
    let mut child = command.stderr(screen.try_clone().unwrap()).spawn().unwrap();
    let _limit = TimeLimit::new(&child, TOO_LONG);
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
