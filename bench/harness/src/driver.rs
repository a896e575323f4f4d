//! The client's end of an agent under test: as little work as possible, so that the agent is what is measured.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use memchr::{memchr_iter, memmem};
use serde_json::{Value, json};

use crate::process::Process;

/// How long an agent may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

/// An agent under test.
pub struct Driver {
    // Dropped before the process, so that it ends by itself.
    input: Option<ChildStdin>,
    pub process: Process,
    output: ChildStdout,
    /// What was read and not used.
    unread: Vec<u8>,
    next_id: u64,
}

/// What came back of a turn.
#[derive(Debug, Default, Clone, Copy)]
pub struct Turn {
    pub lines: usize,
    pub ends: usize,
}

impl Driver {
    /// Starts an agent, and no more.
    pub fn start(command: &[String]) -> io::Result<Self> {
        Driver::start_command(Command::new(&command[0]).args(&command[1..]))
    }

    /// Starts an agent by a command that has all but its streams.
    pub fn start_command(command: &mut Command) -> io::Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(crate::peers::stderr());
        let mut process = Process::start(command)?;
        let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("the agent has no output"))?;
        Ok(Driver { process, input, output, unread: Vec::new(), next_id: 0 })
    }

    /// Starts an agent and greets it.
    pub fn greet(command: &[String]) -> io::Result<Self> {
        let mut driver = Driver::start(command)?;
        driver.initialize()?;
        Ok(driver)
    }

    /// Starts an agent and opens a session.
    pub fn open(command: &[String]) -> io::Result<(Self, String)> {
        let mut driver = Driver::greet(command)?;
        let session = driver.new_session()?;
        Ok((driver, session))
    }

    pub fn initialize(&mut self) -> io::Result<Value> {
        let files = json!({"readTextFile": true, "writeTextFile": false});
        self.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {"fs": files}}))
    }

    pub fn new_session(&mut self) -> io::Result<String> {
        let opened = self.call("session/new", &json!({"cwd": "/tmp", "mcpServers": []}))?;
        let session = opened["sessionId"].as_str();
        session.map(str::to_owned).ok_or_else(|| io::Error::other("a session without an id"))
    }

    /// Sends a request and waits for its result. Notifications before it are passed over.
    pub fn call(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let line: Value = serde_json::from_slice(&self.line()?)?;
            if line["id"] == id && line.get("method").is_none() {
                return match line.get("error") {
                    Some(error) => Err(io::Error::other(format!("{method}: {error}"))),
                    None => Ok(line["result"].clone()),
                };
            }
        }
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        line.push('\n');
        self.write(line.as_bytes())?;
        Ok(id)
    }

    pub fn prompt(&mut self, session: &str, words: &str) -> io::Result<u64> {
        self.send("session/prompt", &prompt(session, words))
    }

    /// Bytes to the agent, as they are.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("the input is closed"))?;
        input.write_all(bytes)
    }

    /// Writes from a thread of its own, for what may not fit into the pipe before the agent is read.
    pub fn write_aside(&mut self, bytes: Vec<u8>) -> std::thread::JoinHandle<Option<ChildStdin>> {
        let input = self.input.take();
        std::thread::spawn(move || {
            let mut input = input?;
            input.write_all(&bytes).ok()?;
            Some(input)
        })
    }

    /// Takes the input back from [`Driver::write_aside`].
    pub fn rejoin(&mut self, writer: std::thread::JoinHandle<Option<ChildStdin>>) {
        self.input = writer.join().ok().flatten();
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.unread[searched..]) {
                let mut line: Vec<u8> = self.unread.drain(..=searched + end).collect();
                line.pop();
                return Ok(line);
            }
            searched = self.unread.len();
            self.fill()?;
        }
    }

    /// Reads until so many turns have ended. Nothing is looked at but line ends and stop reasons.
    pub fn drain(&mut self, ends: usize) -> io::Result<Turn> {
        let mut turn = Turn::default();
        let stop = memmem::Finder::new("\"stopReason\"");
        loop {
            let whole = memchr::memrchr(b'\n', &self.unread).map_or(0, |end| end + 1);
            turn.lines += memchr_iter(b'\n', &self.unread[..whole]).count();
            turn.ends += stop.find_iter(&self.unread[..whole]).count();
            self.unread.drain(..whole);
            if turn.ends >= ends {
                return Ok(turn);
            }
            self.fill()?;
        }
    }

    /// The same while every file that the agent wants is given to it.
    pub fn drain_serving_files(&mut self) -> io::Result<Turn> {
        let mut turn = Turn::default();
        loop {
            let mut replies = Vec::new();
            let whole = memchr::memrchr(b'\n', &self.unread).map_or(0, |end| end + 1);
            for line in self.unread[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                turn.lines += 1;
                if memmem::find(line, b"\"fs/read_text_file\"").is_some() {
                    replies.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                    replies.extend_from_slice(raw_id(line).unwrap_or(b"null"));
                    replies.extend_from_slice(b",\"result\":{\"content\":\"x\"}}\n");
                } else if memmem::find(line, b"\"stopReason\"").is_some() {
                    turn.ends += 1;
                } else if memmem::find(line, b"\"error\"").is_some() {
                    return Err(io::Error::other(String::from_utf8_lossy(line).into_owned()));
                }
            }
            self.unread.drain(..whole);
            self.write(&replies)?;
            if turn.ends > 0 {
                return Ok(turn);
            }
            self.fill()?;
        }
    }

    /// Closes the input and waits for the agent to end by itself.
    pub fn finish(mut self) -> io::Result<()> {
        drop(self.input.take());
        self.process.watch_to_end(Duration::from_secs(30)).map(|_| ())
    }

    /// Reads what there is.
    fn fill(&mut self) -> io::Result<()> {
        let mut ready = libc::pollfd { fd: self.output.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        match unsafe { libc::poll(&mut ready, 1, PATIENCE.as_millis() as i32) } {
            0 => return Err(io::Error::other("the agent said nothing for too long")),
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
        let length = self.unread.len();
        self.unread.resize(length + 256 * 1024, 0);
        let read = self.output.read(&mut self.unread[length..]);
        self.unread.truncate(length + read.as_ref().copied().unwrap_or(0));
        match read? {
            0 => Err(io::Error::other("the agent has ended")),
            _ => Ok(()),
        }
    }
}

/// The params of a prompt of one text.
pub fn prompt(session: &str, words: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]})
}

/// The id of a request as it was written, a number or a string.
fn raw_id(line: &[u8]) -> Option<&[u8]> {
    let start = memmem::find(line, b"\"id\":")? + 5;
    let rest = line[start..].trim_ascii_start();
    let end = match rest.first()? {
        b'"' => memchr::memchr(b'"', &rest[1..])? + 2,
        _ => rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' '))?,
    };
    Some(&rest[..end])
}
