//! A server as it is typed, and clients on machines of their own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use attache_testkit::TimeLimit;
use serde_json::{Value, json};

use crate::support::{Home, Ran, run};

/// A server as it is typed, on a port of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) log: BufReader<ChildStderr>,
    /// Such as `127.0.0.1:40123`.
    pub(crate) address: String,
    pub(crate) fingerprint: Option<String>,
    pub(crate) _limit: TimeLimit,
}

impl Server {
    pub(crate) fn start(home: &Home, options: &[&str]) -> Self {
        Server::start_at(home, "127.0.0.1:0", options)
    }

    /// The same where another one was.
    pub(crate) fn start_at(home: &Home, address: &str, options: &[&str]) -> Self {
        let work = home.path("work");
        fs::create_dir_all(&work).unwrap();
        let all = [&["serve", "--listen", address, "--dir", work.to_str().unwrap()], options].concat();
        let mut command = home.command(&all);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let limit = TimeLimit::new(&child, Duration::from_secs(120));
        let mut server = Server {
            log: BufReader::new(child.stderr.take().unwrap()),
            child,
            address: String::new(),
            fingerprint: None,
            _limit: limit,
        };
        let line = server.line();
        assert_eq!(line["event"], "listening", "{line}");
        let address = line["address"].as_str().unwrap();
        server.address = address.split("://").nth(1).unwrap().to_owned();
        if options.contains(&"--tls-self-signed") {
            server.fingerprint = server.line()["fingerprint"].as_str().map(str::to_owned);
        }
        server
    }

    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.log.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// Kills it, as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, as systemd does; its exit code, and what it logged.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        // SAFETY: the child is ours and was not waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let mut rest = String::new();
        while self.log.read_line(&mut rest).unwrap() > 0 {}
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that fails leaves no server behind; one that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn token(home: &Home, name: &str) -> String {
    let ran = home.run(&["serve", "token", "add", name]);
    ran.check(0, &[], &["shown once"]);
    ran.out.trim().to_owned()
}

/// A client on a machine of its own: another home.
pub(crate) fn client(url: &str, token: &str) -> Home {
    let home = Home::new();
    let mut login = home.command(&["login", url]);
    let mut child = login.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{token}").unwrap();
    assert!(child.wait().unwrap().success());
    home
}

pub(crate) fn ask(client: &Home, server: &Home, url: &str, prompt: &str) -> Ran {
    let work = server.path("work");
    let mut command = client.command(&["run", "--agent", url, "-C", work.to_str().unwrap(), prompt]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    run(command)
}

/// Sends messages through `attache connect` and returns the answers by id.
pub(crate) struct Wire {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    _limit: TimeLimit,
}

impl Wire {
    pub(crate) fn connect(client: &Home, url: &str, options: &[&str]) -> Self {
        let mut command: Command = client.command(&[&["connect", url], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let limit = TimeLimit::new(&child, Duration::from_secs(60));
        let mut wire = Wire { out: BufReader::new(child.stdout.take().unwrap()), child, _limit: limit };
        let answer = wire.call(0, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        wire
    }

    pub(crate) fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.answer_to(&request.to_string(), &json!(id))
    }

    /// Sends a line, whatever is in it, and returns what is answered to this id.
    pub(crate) fn answer_to(&mut self, line: &str, id: &Value) -> Value {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "no answer to {id}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == *id && message["method"].is_null() {
                return message;
            }
        }
    }

    pub(crate) fn new_session(&mut self, id: u64, cwd: &str) -> Value {
        self.call(id, "session/new", json!({ "cwd": cwd, "mcpServers": [] }))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}
