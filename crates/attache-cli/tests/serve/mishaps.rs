//! What goes wrong between two machines, and what a person is told of it.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::rig::{Server, Wire, ask, client, token};
use crate::support::{Home, Ran, run};

/// Begins a long turn, and waits until it has said something.
fn long_turn(client: &Home, server: &Home, url: &str) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let work = server.path("work");
    let words = "word ".repeat(2000);
    let prompt = format!("slowly {words}");
    let mut command = client.command(&["run", "--agent", url, "-C", work.to_str().unwrap(), &prompt]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert!(!out.fill_buf().unwrap().is_empty());
    (child, out)
}

fn ended((child, mut out): (std::process::Child, BufReader<std::process::ChildStdout>)) -> (Option<i32>, String) {
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn a_server_that_is_killed_and_started_again_in_a_turn_has_ended_the_connection() {
    let home = Home::new();
    let token = token(&home, "anna");
    for scheme in ["http", "ws"] {
        let server = Server::start(&home, &["--model", "offline"]);
        let (url, address) = (server.url(scheme), server.address.clone());
        let client = client(&url, &token);
        let turn = long_turn(&client, &home, &url);
        server.kill();
        let again = Server::start_at(&home, &address, &["--model", "offline"]);
        let (code, err) = ended(turn);
        assert!(code == Some(9) && err.contains("the server has ended the connection"), "{scheme}: {code:?} {err}");
        drop(again);
    }
}

#[test]
fn a_turn_that_ends_with_its_server_is_told_as_that() {
    let home = Home::new();
    let token = token(&home, "anna");
    for scheme in ["http", "ws"] {
        let server = Server::start(&home, &["--", "sh", "-c", STUBBORN]);
        let url = server.url(scheme);
        let client = client(&url, &token);
        let mut connect = client.command(&["connect", &url]);
        let mut child = connect.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
        writeln!(stdin, "{hello}").unwrap();
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("\"result\""), "{line}");
        let work = home.path("work");
        let params = json!({ "cwd": work.to_str().unwrap(), "mcpServers": [] });
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).unwrap();
        line.clear();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("\"s1\""), "{line}");
        let params = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "work" }] });
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }))
            .unwrap();
        line.clear();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("working"), "{line}");
        let (code, _) = server.stop();
        assert_eq!(code, Some(0));
        line.clear();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("the server is stopping; sessions are kept") && line.contains("\"id\":2"), "{line}");
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(9) && err.contains("error: the server is stopping"), "{scheme}: {err}");
        drop(stdin);
    }
}

/// An agent that says hello, and ends a turn as cancelled when nobody is there any more.
const STUBBORN: &str = r#"read a; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
    read b; echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}'
    read c; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"working"}}}}'
    cat > /dev/null; echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}'"#;

#[test]
fn a_line_that_is_no_message_is_answered_and_the_connection_lives() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &[]);
    for scheme in ["http", "ws"] {
        let url = server.url(scheme);
        let mut wire = Wire::connect(&client(&url, &token), &url, &[]);
        assert_eq!(wire.answer_to("{nonsense", &Value::Null)["error"]["code"], -32700, "{scheme}");
        let invalid = r#"{"jsonrpc":"2.0","id":5,"method":7}"#;
        assert_eq!(wire.answer_to(invalid, &json!(5))["error"]["code"], -32600, "{scheme}");
        let work = home.path("work");
        assert!(wire.new_session(6, work.to_str().unwrap())["result"].is_object(), "{scheme}");
    }
}

#[test]
fn a_directory_that_is_not_served_is_told_with_what_to_do() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &[]);
    let url = server.url("http");
    let mut wire = Wire::connect(&client(&url, &token), &url, &[]);
    let said = |answer: Value| answer["error"]["message"].as_str().unwrap().to_owned();
    let cwd = said(wire.new_session(1, "/etc"));
    assert!(cwd.contains("cwd: this directory is not served here") && cwd.contains("agents add --url"), "{cwd}");
    let work = home.path("work");
    let more = json!({ "cwd": work.to_str().unwrap(), "mcpServers": [], "additionalDirectories": ["/etc"] });
    let more = said(wire.call(2, "session/new", more));
    assert!(more.contains("additionalDirectories: this directory") && !more.contains(work.to_str().unwrap()), "{more}");
}

fn log_in(home: &Home, url: &str, token: &str) -> Ran {
    let input = home.path("token-typed");
    std::fs::write(&input, format!("{token}\n")).unwrap();
    let mut login = home.command(&["login", url]);
    login.stdin(std::fs::File::open(input).unwrap());
    run(login)
}

#[test]
fn a_login_tries_the_token_and_a_refusal_says_which_token_it_was() {
    let home = Home::new();
    let first = token(&home, "anna");
    let server = Server::start(&home, &[]);
    let url = server.url("ws");
    let client = Home::new();
    log_in(&client, &url, "").check(2, &[], &["no token was given"]);
    log_in(&client, &url, "wrong").check(4, &[], &["does not accept this token, and it is not kept"]);
    ask(&client, &home, &url, "list").check(4, &[], &["there is no token"]);
    // One that was made a moment ago is known at once.
    let second = token(&home, "bert");
    log_in(&client, &url, &second).check(0, &[], &["the server accepts it"]);
    ask(&client, &home, &url, "list").check(0, &[], &[]);
    home.run(&["serve", "token", "remove", "bert"]).check(0, &[], &[]);
    let file = client.path("token.txt");
    std::fs::write(&file, "wrong\n").unwrap();
    let mut by_file = client.command(&["connect", &url, "--token-file", file.to_str().unwrap()]);
    by_file.stdin(Stdio::null());
    run(by_file).check(4, &[], &["the token in `", "token.txt`"]);
    let mut by_variable = client.command(&["connect", &url]);
    by_variable.env("ATTACHE_TOKEN", "wrong").stdin(Stdio::null());
    run(by_variable).check(4, &[], &["the token in ATTACHE_TOKEN"]);
    let (_, log) = server.stop();
    assert!(!log.contains(&first) && !log.contains(&second), "{log}");
    log_in(&client, &url, &first).check(0, &[], &["it was not tried"]);
    client.run(&["agents", "add", "x", "--url", "http://a.example"]).check(2, &[], &["without TLS"]);
    client.run(&["agents", "add", "x", "--url", &url, "--dir", "shop"]).check(2, &[], &["not absolute"]);
}
