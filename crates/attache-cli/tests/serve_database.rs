//! `attache serve` and its database: what it waits for at the start, and that `/ready` and the log tell when the database is away.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../attache-postgres/tests/support/mod.rs"]
mod database;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Stdio};
use std::time::{Duration, Instant};

use attache_testkit::TimeLimit;
use database::proxy::Proxy;
use serde_json::Value;
use support::Home;

fn next(log: &mut BufReader<ChildStderr>) -> Value {
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
}

/// Waits until `/ready` answers with this status.
fn wait_for(address: &str, status: &str) {
    let start = Instant::now();
    loop {
        let mut wire = TcpStream::connect(address).unwrap();
        wire.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        wire.read_to_string(&mut answer).unwrap();
        if answer.starts_with(&format!("HTTP/1.1 {status}")) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_database_that_is_away_is_told_of_and_waited_for() {
    let Some(database) = database::Server::start() else { return };
    let home = Home::new();
    home.run(&["serve", "token", "add", "anna"]).check(0, &[], &[]);
    let proxy = Proxy::new(database.port());
    proxy.close();
    let url = database.tcp_url(&database.new_database(), Some(proxy.port()));
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let limit = TimeLimit::new(&child, Duration::from_secs(120));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let waiting = next(&mut log);
    assert_eq!(waiting["event"], "waiting", "{waiting}");
    assert!(waiting["for"].as_str().unwrap().contains(&format!("127.0.0.1:{}", proxy.port())), "{waiting}");
    proxy.open();
    let listening = next(&mut log);
    assert_eq!(listening["event"], "listening", "{listening}");
    let address = listening["address"].as_str().unwrap().split("://").nth(1).unwrap().to_owned();
    wait_for(&address, "200");
    proxy.close();
    wait_for(&address, "503");
    let lost = next(&mut log);
    assert!(lost["event"] == "database lost" && lost["why"].is_string(), "{lost}");
    proxy.open();
    wait_for(&address, "200");
    assert_eq!(next(&mut log)["event"], "database back");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(limit);
}
