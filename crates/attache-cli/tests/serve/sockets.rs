//! Sockets that somebody else opened.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use attache_testkit::TimeLimit;
use serde_json::Value;

use crate::rig::{Server, ask, client, token};
use crate::support::Home;

/// A server whose socket somebody else opened, passed on as systemd does it: as descriptor 3, and named in variables. The shell
/// becomes the server, so that the variables have its id.
fn start_with(home: &Home, socket: std::os::fd::OwnedFd, pid: &str, options: &[&str]) -> (Server, Value) {
    let work = home.path("work");
    fs::create_dir_all(&work).unwrap();
    let script = format!("export LISTEN_PID={pid} LISTEN_FDS=1; exec \"$@\" 3<&0 </dev/null");
    let serve =
        home.command(&[&["serve", "--listen", "127.0.0.1:0", "--dir", work.to_str().unwrap()], options].concat());
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(serve.get_program()).args(serve.get_args()).current_dir(home.0.path());
    command.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::from(socket)).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let limit = TimeLimit::new(&child, Duration::from_secs(120));
    let log = BufReader::new(child.stderr.take().unwrap());
    let mut server = Server { log, child, address: String::new(), fingerprint: None, _limit: limit };
    let line = server.line();
    assert_eq!(line["event"], "listening", "{line}");
    (server, line)
}

#[test]
fn a_socket_that_somebody_else_opened_is_served_and_not_passed_on_to_agents() {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    let home = Home::new();
    let token = token(&home, "anna");
    // An agent that first writes down which sockets it has.
    let found = home.path("found");
    let agent = format!(
        "ls -l /proc/$$/fd > {}; exec {} agent --model offline",
        found.display(),
        env!("CARGO_BIN_EXE_attache")
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
    let (server, line) = start_with(&home, listener.into(), "$$", &["--sandbox", "off", "--", "sh", "-c", &agent]);
    assert_eq!(line["address"], format!("http://{address}"));
    let url = format!("ws://{address}");
    let anna = client(&url, &token);
    ask(&anna, &home, &url, "list").check(0, &["empty"], &[]);
    let found = fs::read_to_string(&found).unwrap();
    assert!(found.contains(" 0 -> ") && !found.contains(socket.to_str().unwrap()), "{found}");
    drop(server.stop());
    // A Unix socket.
    let path = home.path("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (server, line) = start_with(&home, listener.into(), "$$", &[]);
    assert_eq!(line["address"], "a socket that was passed on");
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut status = String::new();
    BufReader::new(&stream).read_line(&mut status).unwrap();
    assert_eq!(status.trim(), "HTTP/1.1 200 OK");
    drop(server.stop());
    // What was meant for another process is not taken.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (server, line) = start_with(&home, listener.into(), "1", &[]);
    assert_ne!(line["address"], format!("http://{address}"));
    drop(server.stop());
}

#[test]
fn systemd_starts_it_when_somebody_comes() {
    let Ok(true) = Command::new("systemd-socket-activate")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .map(|status| status.success())
    else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: systemd-socket-activate is not installed, so this test shows nothing"
        );
        return;
    };
    let home = Home::new();
    let token = token(&home, "anna");
    let work = home.path("work");
    fs::create_dir_all(&work).unwrap();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let serve = home.command(&["serve", "--dir", work.to_str().unwrap()]);
    let mut command = Command::new("systemd-socket-activate");
    command.args(["--listen", &address.to_string()]).env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in serve.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?))) {
        command.arg(format!("--setenv={name}={value}"));
    }
    command.arg(serve.get_program()).args(serve.get_args()).current_dir(home.0.path());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let limit = TimeLimit::new(&child, Duration::from_secs(120));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert!(line.contains("Listening on"), "{line}");
    let server = Server { log, child, address: address.to_string(), fingerprint: None, _limit: limit };
    let url = server.url("ws");
    let client = client(&url, &token);
    fs::write(work.join("note.txt"), "the milk is sour\n").unwrap();
    ask(&client, &home, &url, "read note.txt").check(0, &["the milk is sour"], &[]);
    // It has become the server, and ends as one.
    let (code, log) = server.stop();
    assert!(code == Some(0) && log.contains("\"stopped\""), "{code:?} {log}");
}
