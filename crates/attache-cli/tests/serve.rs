//! `attache serve`, `attache connect` and agents by their address: what a person types at both ends.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use attache_testkit::TimeLimit;
use serde_json::{Value, json};
use support::{Home, Ran, run};

/// A server as it is typed, on a port of its own.
struct Server {
    child: Child,
    log: BufReader<ChildStderr>,
    /// Such as `127.0.0.1:40123`.
    address: String,
    fingerprint: Option<String>,
    _limit: TimeLimit,
}

impl Server {
    fn start(home: &Home, options: &[&str]) -> Self {
        let work = home.path("work");
        fs::create_dir_all(&work).unwrap();
        let all = [&["serve", "--listen", "127.0.0.1:0", "--dir", work.to_str().unwrap()], options].concat();
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

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.log.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// Asks it to stop, as systemd does; its exit code, and what it logged.
    fn stop(mut self) -> (Option<i32>, String) {
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

fn token(home: &Home, name: &str) -> String {
    let ran = home.run(&["serve", "token", "add", name]);
    ran.check(0, &[], &["shown once"]);
    ran.out.trim().to_owned()
}

/// A client on a machine of its own: another home.
fn client(url: &str, token: &str) -> Home {
    let home = Home::new();
    let mut login = home.command(&["login", url]);
    let mut child = login.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{token}").unwrap();
    assert!(child.wait().unwrap().success());
    home
}

fn ask(client: &Home, server: &Home, url: &str, prompt: &str) -> Ran {
    let work = server.path("work");
    let mut command = client.command(&["run", "--agent", url, "-C", work.to_str().unwrap(), prompt]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    run(command)
}

#[test]
fn the_built_in_agent_is_reached_by_its_address_over_both_profiles() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &[]);
    fs::write(home.path("work/note.txt"), "the milk is sour\n").unwrap();
    for scheme in ["http", "ws"] {
        let url = server.url(scheme);
        let client = client(&url, &token);
        let started = Instant::now();
        ask(&client, &home, &url, "read note.txt").check(0, &["the milk is sour"], &[]);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        // By a name, too.
        client.run(&["agents", "add", "build", "--url", &url]).check(0, &[], &["added `build`"]);
        ask(&client, &home, "build", "read note.txt").check(0, &["the milk is sour"], &[]);
        client.run(&["logout", &url]).check(0, &[], &["forgotten"]);
        ask(&client, &home, &url, "read note.txt").check(9, &[], &["did not accept the token"]);
    }
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("\"stopped\"") && !log.contains("milk") && !log.contains(&token), "{log}");
}

/// Sends messages through `attache connect` and returns the answers by id.
struct Wire {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    _limit: TimeLimit,
}

impl Wire {
    fn connect(client: &Home, url: &str, options: &[&str]) -> Self {
        let mut command: Command = client.command(&[&["connect", url], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let limit = TimeLimit::new(&child, Duration::from_secs(60));
        let mut wire = Wire { out: BufReader::new(child.stdout.take().unwrap()), child, _limit: limit };
        let answer = wire.call(0, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        wire
    }

    fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "no answer to {method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
        }
    }

    fn new_session(&mut self, id: u64, cwd: &str) -> Value {
        self.call(id, "session/new", json!({ "cwd": cwd, "mcpServers": [] }))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// What one has opened another can neither see nor touch; both agents alike: the built-in one, and any program.
fn check_principals(options: &[&str]) {
    let home = Home::new();
    let (anna, bert) = (token(&home, "anna"), token(&home, "bert"));
    let server = Server::start(&home, options);
    let work = home.path("work");
    let work = work.to_str().unwrap();
    let (url, other_url) = (server.url("ws"), server.url("http"));
    let (anna, bert) = (client(&url, &anna), client(&other_url, &bert));
    let mut hers = Wire::connect(&anna, &url, &[]);
    let session = hers.new_session(1, work)["result"]["sessionId"].as_str().unwrap().to_owned();
    // A session is listed when something was said in it.
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "help" }] });
    assert_eq!(hers.call(2, "session/prompt", prompt.clone())["result"]["stopReason"], "end_turn");
    let mut his = Wire::connect(&bert, &other_url, &[]);
    let ids = |answer: &Value| -> Vec<String> {
        let sessions = answer["result"]["sessions"].as_array().unwrap_or_else(|| panic!("{answer}"));
        sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&hers.call(3, "session/list", json!({}))), [session.as_str()]);
    assert_eq!(ids(&his.call(3, "session/list", json!({}))), Vec::<String>::new());
    for (index, method) in
        ["session/load", "session/resume", "session/prompt", "session/delete", "session/fork"].iter().enumerate()
    {
        let mut params = prompt.clone();
        params["cwd"] = work.into();
        params["mcpServers"] = json!([]);
        let answer = his.call(10 + index as u64, method, params);
        // A session that is not there counts as deleted; that hers is still there is seen below.
        assert!(answer["error"].is_object() || *method == "session/delete", "{method}: {answer}");
        assert!(!answer.to_string().contains("help"), "{answer}");
    }
    // On a connection of her own, she has it again, after she has let it go.
    drop(hers);
    let mut again = Wire::connect(&anna, &other_url, &[]);
    let load = json!({ "sessionId": session, "cwd": work, "mcpServers": [] });
    let answer = again.call(1, "session/load", load);
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn what_one_has_opened_another_cannot_see_in_the_built_in_agent() {
    check_principals(&[]);
}

#[test]
fn what_one_has_opened_another_cannot_see_in_any_other_agent() {
    check_principals(&["--sandbox", "off", "--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"]);
}

#[test]
fn sessions_stay_in_the_directories_that_are_served_and_start_no_programs() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &[]);
    let url = server.url("ws");
    let client = client(&url, &token);
    let work = home.path("work");
    std::os::unix::fs::symlink("/etc", work.join("link")).unwrap();
    fs::create_dir(work.join("inside")).unwrap();
    let work = work.to_str().unwrap();
    let mut wire = Wire::connect(&client, &url, &[]);
    let outside = ["/", "/etc", &format!("{work}/.."), &format!("{work}/link"), &format!("{work}/missing"), ""];
    for (index, cwd) in outside.iter().enumerate() {
        let answer = wire.new_session(index as u64 + 1, cwd);
        assert_eq!(answer["error"]["code"], -32602, "{cwd}: {answer}");
    }
    assert!(wire.new_session(20, &format!("{work}/inside"))["result"].is_object());
    let more = json!({ "cwd": work, "mcpServers": [], "additionalDirectories": ["/etc"] });
    assert_eq!(wire.call(21, "session/new", more)["error"]["code"], -32602);
    // What is changed for all is for whoever runs the server, and what is not known is for nobody.
    for (index, method) in ["authenticate", "logout", "auth/login", "providers/set", "_x/y"].iter().enumerate() {
        let answer = wire.call(30 + index as u64, method, json!({ "methodId": "x" }));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    // Other readings of the same message are none.
    for (index, params) in [
        json!({ "cwd": work, "CWD": "/etc", "mcpServers": [] }),
        json!({ "cwd": work, "mcpServers": { "x": { "command": "/bin/sh" } } }),
        json!({ "cwd": work, "mcpServers": [], "additionalDirectories": "/etc" }),
        json!(["/etc", []]),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = wire.call(40 + index as u64, "session/new", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let program = json!({ "cwd": work, "mcpServers": [{ "name": "x", "command": "/bin/sh", "args": [], "env": [] }] });
    let answer = wire.call(22, "session/new", program);
    assert!(answer["error"]["message"].as_str().unwrap().contains("programs of clients"), "{answer}");
    drop(wire);
    // A client whose files are elsewhere names the directory of the server.
    let mut wire = Wire::connect(&client, &url, &["--dir", work]);
    assert!(wire.new_session(1, "/home/somebody")["result"].is_object());
}

#[test]
fn whoever_answers_questions_does_not_get_out_of_the_directories_or_the_sandbox() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &[]);
    let url = server.url("ws");
    let client = client(&url, &token);
    let tokens = home.path("config/attache/serve/tokens");
    let outside = home.path("outside.txt");
    fs::write(&outside, "the cheese is old\n").unwrap();
    let work = home.path("work");
    fs::write(work.join("in.txt"), "the milk is sour\n").unwrap();
    let ask = |prompt: &str| {
        let work = work.to_str().unwrap();
        let mut command =
            client.command(&["run", "--agent", &url, "-C", work, "--permissions", "all", "--protocol", "2", prompt]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        run(command)
    };
    ask("read in.txt").check(0, &["the milk is sour"], &[]);
    for path in [&tokens, &outside] {
        let ran = ask(&format!("read {}", path.display()));
        assert!(!ran.out.contains("cheese") && !ran.out.contains("anna "), "{}{}", ran.out, ran.err);
        let ran = ask(&format!("run cat {}", path.display()));
        assert!(path == &outside || !ran.out.contains("anna "), "{}{}", ran.out, ran.err);
        ask(&format!("write {} with changed", path.display()));
        assert!(!fs::read_to_string(path).unwrap().contains("changed"));
    }
    let mut wire = Wire::connect(&client, &url, &[]);
    let session = wire.new_session(1, work.to_str().unwrap());
    assert!(!session["result"]["configOptions"].to_string().contains("\"sandbox\""), "{session}");
    let set = json!({ "sessionId": session["result"]["sessionId"], "configId": "sandbox", "value": "off" });
    assert!(wire.call(2, "session/set_config_option", set)["error"].is_object());
}

#[test]
fn versions_are_bridged() {
    let home = Home::new();
    let token = token(&home, "anna");
    // The agent is made to speak version 1 alone by its relay.
    let agent =
        ["--protocol", "1", "--sandbox", "off", "--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"];
    let server = Server::start(&home, &agent);
    let url = server.url("ws");
    let client = client(&url, &token);
    fs::write(home.path("work/note.txt"), "the milk is sour\n").unwrap();
    let work = home.path("work");
    for version in ["1", "2"] {
        let mut command = client.command(&[
            "run",
            "--agent",
            &url,
            "-C",
            work.to_str().unwrap(),
            "--protocol",
            version,
            "read note.txt",
        ]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        run(command).check(0, &["the milk is sour"], &[&format!("protocol {version}")]);
    }
}

#[test]
fn tls_with_a_certificate_of_ones_own_is_trusted_by_its_fingerprint() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &["--tls-self-signed"]);
    let fingerprint = server.fingerprint.clone().unwrap();
    let url = server.url("wss");
    let client = client(&url, &token);
    let work = home.path("work");
    let options =
        ["agents", "add", "safe", "--url", &url, "--fingerprint", &fingerprint, "--dir", work.to_str().unwrap()];
    client.run(&options).check(0, &[], &[]);
    ask(&client, &home, "safe", "list").check(0, &["empty"], &[]);
    ask(&client, &home, &url, "list").check(9, &[], &["certificate is not trusted"]);
    // The same certificate after a restart.
    drop(server.stop());
    let server = Server::start(&home, &["--tls-self-signed"]);
    assert_eq!(server.fingerprint.as_ref(), Some(&fingerprint));
}

#[test]
fn a_server_that_nobody_could_use_or_anybody_could_read_does_not_start() {
    let home = Home::new();
    home.run(&["serve", "--listen", "127.0.0.1:0"]).check(2, &[], &["there is no token", "attache serve token add"]);
    token(&home, "anna");
    home.run(&["serve", "--listen", "0.0.0.0:0"]).check(2, &[], &["without TLS", "--behind-proxy"]);
    home.run(&["serve", "--listen", "nowhere"]).check(2, &[], &["cannot listen on `nowhere`"]);
    home.run(&["serve", "--dir", "missing"]).check(2, &[], &["missing"]);
    home.run(&["serve", "token", "add", "a b"]).check(2, &[], &["a name has"]);
    home.run(&["serve", "token", "list"]).check(0, &["anna\n"], &[]);
    home.run(&["serve", "token", "remove", "bert"]).check(8, &[], &["no token of `bert`"]);
    let tokens = home.path("config/attache/serve/tokens");
    assert!(
        !fs::read_to_string(&tokens).unwrap().contains(' ')
            || fs::read_to_string(&tokens).unwrap().starts_with("anna ")
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&tokens).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&["serve", "--listen", "127.0.0.1:0"]).check(2, &[], &["others can read it"]);
    for wrong in ["connect nonsense", "connect ftp://x", "connect http://user:secret@localhost"] {
        let words: Vec<&str> = wrong.split(' ').collect();
        let ran = home.run(&words);
        ran.check(2, &[], &["invalid address"]);
        assert!(!ran.err.contains("secret"), "{}", ran.err);
    }
}

#[test]
fn a_token_that_is_removed_is_refused_while_the_server_runs() {
    let home = Home::new();
    let (anna, _) = (token(&home, "anna"), token(&home, "bert"));
    let server = Server::start(&home, &[]);
    let url = server.url("ws");
    let client = client(&url, &anna);
    ask(&client, &home, &url, "list").check(0, &[], &[]);
    home.run(&["serve", "token", "remove", "anna"]).check(0, &[], &[]);
    let until = Instant::now() + Duration::from_secs(20);
    while ask(&client, &home, &url, "list").code == 0 {
        assert!(Instant::now() < until, "the token is still taken");
        std::thread::sleep(Duration::from_millis(200));
    }
}
