//! `attache serve`, `attache connect` and agents by their address: what a person types at both ends.
// On Unix, because they need signals and Unix sockets.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod mishaps;
mod owners;
mod rig;
mod sockets;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::time::{Duration, Instant};

use rig::{Server, Wire, ask, client, token};
use serde_json::json;
use support::{Home, at_terminal, run};

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
        let hint = format!("hint: `attache login {url}`");
        let no_token = ask(&client, &home, &url, "read note.txt");
        no_token.check(4, &[], &[&format!("not logged in to {url}"), &hint]);
        ask(&client, &home, "build", "read note.txt").check(4, &[], &[&hint]);
        let mut chat = client.command(&["chat", "--plain", "--agent", &url, "-C", home.path("work").to_str().unwrap()]);
        chat.env("ATTACHE_TOKEN", "wrong");
        let (seen, code, _) = at_terminal(chat, true, &[]);
        assert!(code == 4 && seen.contains(&hint), "{code} {seen}");
        let hello = home.path("hello.jsonl");
        fs::write(
            &hello,
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n",
        )
        .unwrap();
        let mut connect = client.command(&["connect", &url]);
        connect.stdin(fs::File::open(&hello).unwrap());
        run(connect).check(4, &[], &[&hint]);
    }
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("\"stopped\"") && !log.contains("milk") && !log.contains(&token), "{log}");
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
    // What this machine reaches is not the client's to fetch.
    for (index, kind) in ["http", "sse"].iter().enumerate() {
        let server = json!({ "type": kind, "name": "x", "url": "http://127.0.0.1:9/mcp", "headers": [] });
        let answer = wire.call(23 + index as u64, "session/new", json!({ "cwd": work, "mcpServers": [server] }));
        assert!(answer["error"]["message"].as_str().unwrap().contains("--allow-mcp-url"), "{answer}");
    }
    drop(wire);
    // A client whose files are elsewhere names the directory of the server.
    let mut wire = Wire::connect(&client, &url, &["--dir", work]);
    assert!(wire.new_session(1, "/home/somebody")["result"].is_object());
}

#[test]
fn mcp_servers_of_an_origin_that_is_allowed_are_used_and_others_are_not() {
    let home = Home::new();
    let token = token(&home, "anna");
    let [allowed, other] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [origin, other_origin] = [&allowed, &other].map(|found| format!("http://{}", found.local_addr().unwrap()));
    home.run(&["serve", "--allow-mcp-url", &format!("{origin}/mcp")]).check(2, &[], &["without a path"]);
    let server = Server::start(&home, &["--allow-mcp-url", &origin]);
    let url = server.url("ws");
    let work = home.path("work");
    let mut wire = Wire::connect(&client(&url, &token), &url, &[]);
    let mut open = |id: u64, origin: &str| {
        let server = json!({ "type": "http", "name": "x", "url": format!("{origin}/mcp"), "headers": [] });
        wire.call(id, "session/new", json!({ "cwd": work.to_str().unwrap(), "mcpServers": [server] }))
    };
    // Somebody comes to the one that is allowed.
    let visited = std::thread::spawn(move || allowed.accept().unwrap());
    assert!(open(1, &origin)["result"].is_object());
    drop(visited.join().unwrap());
    let answer = open(2, &other_origin);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
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
    let hint = "agents add NAME --url URL --fingerprint";
    ask(&client, &home, &url, "list").check(9, &[], &["certificate is not trusted", hint]);
    let wrong = format!("sha256:{}", "0a".repeat(32));
    for scheme in ["wss", "https"] {
        let url = server.url(scheme);
        client.run(&["agents", "add", "wrong", "--url", &url, "--fingerprint", &wrong]).check(0, &[], &[]);
        let said = format!("is not the one with the fingerprint that was given: its own is {fingerprint}");
        ask(&client, &home, "wrong", "list").check(9, &[], &[&said]);
    }
    // Neither end is left guessing if only one of them speaks TLS.
    let plain = Server::start(&home, &[]);
    for (server, scheme, other) in [
        (&server, "http", "https://"),
        (&server, "ws", "wss://"),
        (&plain, "https", "http://"),
        (&plain, "wss", "ws://"),
    ] {
        let ran = ask(&client, &home, &server.url(scheme), "list");
        ran.check(9, &[], &[&format!("does not speak {scheme}://"), &format!("hint: try {other}")]);
    }
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
    home.run(&["serve", "--listen", "nowhere"]).check(2, &[], &["cannot listen on `nowhere`", "127.0.0.1:7316"]);
    for host in ["https://a.example", "a.example:7316", "a.example/acp"] {
        home.run(&["serve", "--host", host]).check(2, &[], &["without a scheme, a port or a path"]);
    }
    home.run(&["serve", "--model", "offline", "--", "cat"]).check(2, &[], &["`--model` is for the built-in agent"]);
    home.run(&["serve", "--listen", "127.0.0.1:0", "--", "no-such-agent"]).check(
        9,
        &[],
        &["no program `no-such-agent`"],
    );
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--writable", "state"]);
    ran.check(2, &[], &["`[commands] writable` in agent.toml"]);
    home.run(&["serve", "--dir", "missing"]).check(2, &[], &["missing"]);
    home.run(&["serve", "token", "add", "a b"]).check(2, &[], &["a name has"]);
    home.run(&["serve", "token", "list"]).check(0, &["  anna\n"], &[]);
    home.run(&["serve", "token", "add", "anna"]).check(0, &[], &["there is a token of `anna` already"]);
    let listed = home.run(&["serve", "token", "list"]).out;
    let ids: Vec<&str> = listed.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    home.run(&["serve", "token", "remove", ids[1]]).check(0, &[], &["removed 1 token"]);
    home.run(&["serve", "token", "list"]).check(0, &[&format!("{}  anna\n", ids[0])], &[]);
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

/// What the file does not say in so many words is nobody's token, and that is said once.
#[test]
fn a_token_that_cannot_be_confirmed_any_more_is_refused_and_the_reason_is_logged() {
    let home = Home::new();
    let (anna, bert) = (token(&home, "anna"), token(&home, "bert"));
    let tokens = home.path("config/attache/serve/tokens");
    let whole = fs::read_to_string(&tokens).unwrap();
    let mut server = Server::start(&home, &[]);
    let url = server.url("ws");
    let (anna, bert) = (client(&url, &anna), client(&url, &bert));
    let is_in = |client: &Home| ask(client, &home, &url, "list").code == 0;
    assert!(is_in(&anna) && is_in(&bert));
    let mut until = |event: &str| loop {
        let line = server.line();
        if line["event"] == event {
            return line;
        }
        assert!(matches!(line["event"].as_str(), Some("connected" | "disconnected")), "{line}");
    };
    // A line that was torn.
    fs::write(&tokens, whole.replace("anna ", "anna  ")).unwrap();
    let line = until("tokens not read");
    assert!(line["why"].as_str().unwrap().contains("line 1"), "{line}");
    assert!(!is_in(&anna) && is_in(&bert));
    // A file that cannot be read at all.
    fs::remove_file(&tokens).unwrap();
    fs::create_dir(&tokens).unwrap();
    until("tokens not read");
    assert!(!is_in(&anna) && !is_in(&bert));
    fs::remove_dir(&tokens).unwrap();
    fs::write(&tokens, &whole).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    until("tokens read");
    assert!(is_in(&anna) && is_in(&bert));
}

/// Whoever is served does not read the log.
#[test]
fn a_log_that_nobody_reads_keeps_nobody_from_being_served() {
    let home = Home::new();
    let token = token(&home, "anna");
    let mut server = Server::start(&home, &[]);
    let (reader, _writer) = std::io::pipe().unwrap();
    // The other end is closed.
    server.log = std::io::BufReader::new(std::process::ChildStderr::from(std::os::fd::OwnedFd::from(reader)));
    let url = server.url("http");
    let client = client(&url, &token);
    for _ in 0..3 {
        ask(&client, &home, &url, "list").check(0, &["empty"], &[]);
    }
}
