//! Programs that are served: where they may write, and what is said of one that does not work.

use std::fs;

use serde_json::json;

use crate::rig::{Server, Wire, ask, client, token};
use crate::support::Home;

/// An agent that opens a session if it can write in a directory.
fn writer(state: &str) -> String {
    let answer = |id: u8, rest: &str| format!(r#"echo '{{"jsonrpc":"2.0","id":{id},{rest}}}'"#);
    let (hello, opened, failed) = (
        answer(0, r#""result":{"protocolVersion":1,"agentCapabilities":{}}"#),
        answer(1, r#""result":{"sessionId":"s1"}"#),
        answer(1, r#""error":{"code":-32603,"message":"cannot write: Read-only file system"}"#),
    );
    format!("read a; {hello}; read b; if echo x > {state}/x; then {opened}; else {failed}; fi; cat > /dev/null")
}

#[test]
fn our_own_agent_keeps_its_sessions_in_the_sandbox_of_the_server() {
    let home = Home::new();
    let token = token(&home, "anna");
    let server = Server::start(&home, &["--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"]);
    let url = server.url("http");
    let client = client(&url, &token);
    fs::write(home.path("work/note.txt"), "the milk is sour\n").unwrap();
    ask(&client, &home, &url, "read note.txt").check(0, &["the milk is sour"], &[]);
    // What is the server's own is not the agent's.
    let ran = ask(&client, &home, &url, &format!("run cat {}", home.path("config/attache/serve/tokens").display()));
    assert!(!ran.out.contains("anna "), "{}", ran.out);
}

struct Removed<'a>(&'a std::path::Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

#[test]
fn an_agent_that_may_not_write_where_it_keeps_its_state_is_told_of_the_option() {
    let home = Home::new();
    let token = token(&home, "anna");
    // Beneath `/tmp`, everything is writable.
    let state = std::path::PathBuf::from(format!("/var/tmp/attache-kept-{}", std::process::id()));
    fs::create_dir(&state).unwrap();
    let _removed = Removed(&state);
    let script = writer(state.to_str().unwrap());
    let work = home.path("work");
    for is_writable in [false, true] {
        let writable = ["--writable", state.to_str().unwrap()];
        let options = [if is_writable { &writable[..] } else { &[] }, &["--", "sh", "-c", &script]].concat();
        let mut server = Server::start(&home, &options);
        let confined = server.line();
        assert_eq!(confined["event"], "confined", "{confined}");
        assert_eq!(confined["state"].to_string().contains("kept"), is_writable, "{confined}");
        let url = server.url("ws");
        let mut wire = Wire::connect(&client(&url, &token), &url, &[]);
        let answer = wire.call(1, "session/new", json!({ "cwd": work.to_str().unwrap(), "mcpServers": [] }));
        match is_writable {
            true => assert_eq!(answer["result"]["sessionId"], "s1", "{answer}"),
            false => assert!(answer["error"]["message"].as_str().unwrap().contains("`--writable DIR`"), "{answer}"),
        }
    }
}

#[test]
fn an_agent_that_ends_at_once_is_told_of_at_both_ends() {
    let home = Home::new();
    let token = token(&home, "anna");
    let agent = ["--", "sh", "-c", "read a; echo 'no key for the model' >&2; exit 3"];
    let server = Server::start(&home, &agent);
    for scheme in ["http", "ws"] {
        let url = server.url(scheme);
        let client = client(&url, &token);
        let said = "the agent ended before it answered `initialize`";
        ask(&client, &home, &url, "list").check(9, &[], &[said]);
    }
    let (_, log) = server.stop();
    assert!(log.contains("exit code 3") && log.contains("\"stderr\":\"no key for the model\""), "{log}");
}
