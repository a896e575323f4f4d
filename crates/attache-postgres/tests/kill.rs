//! Servers that are killed while they write, with the database paused, restarted and cut off. Nothing that was
//! acknowledged is lost, nothing is there twice, the other server goes on, and there are never two writers.
//!
//! `ATTACHE_TEST_KILLS` is how often: 10 times unless it says otherwise.

// On Unix, because the database that they start is a program of Unix.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../../attache-agent/tests/store_suite/mod.rs"]
mod store_suite;
mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use attache_agent::store::{Entry, Store, StoreError};
use attache_postgres::{PostgresStore, Settings};
use attache_testkit::Dice;
use store_suite::{opened, title};
use support::Server;
use support::proxy::Proxy;

const WRITER: &str = "ATTACHE_TEST_POSTGRES_WRITER";
const NAME: &str = "ATTACHE_TEST_POSTGRES_WRITER_NAME";

fn settings(url: &str, name: &str) -> Settings {
    let mut settings = support::settings(url);
    settings.address = Some(name.to_owned());
    settings.lease = Duration::from_millis(800);
    settings.statement_timeout = Duration::from_millis(500);
    settings.connect_timeout = Duration::from_millis(500);
    settings
}

/// The process that is killed: started by the test below, idle otherwise. Waits for the session, then writes to it and
/// says what was acknowledged.
#[test]
fn process_that_writes() {
    let Ok(url) = std::env::var(WRITER) else { return };
    let name = std::env::var(NAME).unwrap();
    let store = PostgresStore::connect(settings(&url, &name)).unwrap();
    println!("\nstarted");
    let (mut log, _) = loop {
        match store.open_log("s") {
            Err(StoreError::Busy { .. } | StoreError::Unavailable { .. }) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => break opened.unwrap(),
        }
    };
    println!("\nready");
    for number in 0.. {
        let entry = title(&format!("{name} {number}"));
        loop {
            match log.append(&entry) {
                Ok(()) => break,
                // The same again, as a client does that was told so.
                Err(StoreError::Unavailable { .. }) => std::thread::sleep(Duration::from_millis(20)),
                Err(StoreError::Lost { .. }) => {
                    println!("\nlost");
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
        println!("\nwritten {number}");
    }
}

struct Writer {
    name: String,
    child: Child,
    output: BufReader<ChildStdout>,
    proxy: Proxy,
    /// How many entries were acknowledged.
    written: usize,
}

impl Writer {
    fn start(server: &Server, url: &str, number: u32) -> Self {
        let name = format!("w{number}");
        let proxy = Proxy::new(server.port());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_that_writes", "--nocapture"])
            .env(WRITER, server.tcp_url(url, Some(proxy.port())))
            .env(NAME, &name)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut writer = Writer { name, child, output, proxy, written: 0 };
        writer.read_until("started");
        writer
    }

    /// Reads what it says up to a line.
    fn read_until(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim() != wanted {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "{} ended before `{wanted}`", self.name);
            self.note(&line);
        }
    }

    fn note(&mut self, line: &str) {
        // Only whole lines: the last one may be cut off.
        let number = line.strip_prefix("written ").and_then(|rest| rest.strip_suffix('\n')?.parse::<usize>().ok());
        if let Some(number) = number {
            assert_eq!(number, self.written, "{}", self.name);
            self.written = number + 1;
        }
    }

    /// Kills it, and reads what it said before.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest.split_inclusive('\n').for_each(|line| self.note(line));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn servers_that_are_killed_lose_nothing_and_the_other_goes_on() {
    let Some(server) = Server::start() else { return };
    let kills: u32 = std::env::var("ATTACHE_TEST_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let url = server.new_database();
    let store = PostgresStore::connect(settings(&url, "test")).unwrap();
    drop(store.create("s", opened("/p")).unwrap());
    let mut dice = Dice::new(11);
    let mut acknowledged: HashMap<String, usize> = HashMap::new();
    let mut active = Writer::start(&server, &url, 0);
    active.read_until("ready");
    let (mut disturbances, start) = (HashMap::<&str, u32>::new(), Instant::now());
    for round in 1..=kills {
        let mut other = Writer::start(&server, &url, round);
        active.read_until(&format!("written {}", active.written + dice.below(30)));
        let disturbance: &str = dice.pick(&["none", "pause", "INT", "QUIT", "cut", "cut off"]);
        *disturbances.entry(disturbance).or_default() += 1;
        match disturbance {
            "none" => active.kill(),
            "pause" => {
                server.pause();
                std::thread::sleep(Duration::from_millis(dice.below(1500) as u64));
                active.kill();
                server.go_on();
            }
            signal @ ("INT" | "QUIT") => {
                server.stop(signal);
                std::thread::sleep(Duration::from_millis(dice.below(500) as u64));
                if dice.below(2) == 0 {
                    active.kill();
                }
                server.launch();
                active.kill();
            }
            "cut" => {
                // In the middle of what it says, and of what it hears.
                for _ in 0..dice.below(20) {
                    active.proxy.cut();
                    active.proxy.cut_at_answer(dice.below(4) as i64);
                    std::thread::sleep(Duration::from_millis(dice.below(20) as u64));
                }
                active.kill();
            }
            _ => {
                // It lives, and does not hear that the other one took the session over.
                active.proxy.close();
                other.read_until("written 3");
                active.proxy.open();
                active.read_until("lost");
                active.kill();
            }
        }
        acknowledged.insert(active.name.clone(), active.written);
        if disturbance != "cut off" {
            other.read_until("ready");
        }
        let entries = store.read("s").unwrap();
        check(&entries[1..], &acknowledged, &other.name, round, disturbance);
        active = other;
    }
    active.kill();
    acknowledged.insert(active.name.clone(), active.written);
    check(&store.read("s").unwrap()[1..], &acknowledged, &active.name, kills, "end");
    // The database says the same: one writer after the other.
    let turned_back = "select count(*) from (select fence < lag(fence) over (order by number) as is_back \
                       from attache_record where session = 's') as records where is_back";
    assert_eq!(server.psql(&url, turned_back), "0");
    let total: usize = acknowledged.values().sum();
    support::say(&format!(
        "{kills} kills in {:.0} s, {total} acknowledged messages, none lost, none twice; {disturbances:?}",
        start.elapsed().as_secs_f64()
    ));
}

/// Each writer's entries stand together, in order, each once; and at least those that were acknowledged.
fn check(entries: &[Entry], acknowledged: &HashMap<String, usize>, last: &str, round: u32, disturbance: &str) {
    let mut found: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for entry in entries {
        let Entry::Title { title } = entry else { panic!("{entry:?}") };
        let (name, number) = title.split_once(' ').unwrap();
        if order.last() != Some(&name) {
            assert!(!order.contains(&name), "round {round}, {disturbance}: {name} writes after another one");
            order.push(name);
        }
        let next = found.entry(name).or_default();
        assert_eq!(number.parse::<usize>().unwrap(), *next, "round {round}, {disturbance}: {name}");
        *next += 1;
    }
    for (name, written) in acknowledged {
        let found = found.get(name.as_str()).copied().unwrap_or_default();
        assert!(found >= *written, "round {round}, {disturbance}: {name} has {found} of {written}");
        // What was not acknowledged any more is one at most.
        assert!(name == last || found <= *written + 1, "round {round}, {disturbance}: {name} has {found} of {written}");
    }
}
