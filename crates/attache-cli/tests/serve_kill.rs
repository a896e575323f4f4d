//! Two `attache serve` on one database, of which one is killed in the middle of a turn, with the database paused, restarted and cut
//! off. What the client has seen is there, nothing is there twice, the session goes on at the other server, and there are never
//! two writers.
//!
//! `ATTACHE_TEST_KILLS` is how often: six times unless it says otherwise. If it says so, leases end by the clock in every tenth
//! round; in the others the database is told that they have ended, as if the time had passed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../attache-postgres/tests/support/mod.rs"]
mod database;
mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use attache::client::Session;
use attache::model::error::ErrorObject;
use attache::model::session::SessionId;
use attache::proto::view::{Entry, MessageRole};
use attache::{Client, Connection, Error, Event, SessionView};
use attache_http::Remote;
use attache_testkit::{Dice, TimeLimit};
use database::proxy::Proxy;
use serde_json::{Value, json};
use support::{Home, run};

/// How long anything may take. Much more than it does.
const TOO_LONG: Duration = Duration::from_secs(90);

/// A server as it is typed, which reaches the database through a wire of its own.
struct Serve {
    child: Child,
    address: String,
    /// What it tells clients of other servers.
    name: String,
    proxy: Proxy,
    _limit: TimeLimit,
}

impl Serve {
    fn start(world: &World<'_>, number: u32) -> Self {
        let proxy = Proxy::new(world.database.port());
        let url = world.database.tcp_url(&world.url, Some(proxy.port()));
        let (name, work) = (format!("https://s{number}.example"), world.work());
        let options = ["--listen", "127.0.0.1:0", "--dir", work.to_str().unwrap(), "--store", &url, "--address", &name];
        let mut command = world.home.command(&[&["serve"], &options[..]].concat());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let limit = TimeLimit::new(&child, Duration::from_secs(300));
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let address = listening["address"].as_str().unwrap().split("://").nth(1).unwrap().to_owned();
        // Whatever else it says has to go somewhere.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Serve { child, address, name, proxy, _limit: limit }
    }

    async fn connect(&self, world: &World<'_>, scheme: &str) -> Connection {
        let remote = Remote::new(&format!("{scheme}://{}", self.address)).unwrap().token(&world.token);
        Client::new("test", "1.0").over(remote.connect().await.unwrap().transport).await.unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What both servers share, and a client of them.
struct World<'a> {
    database: &'a database::Server,
    url: String,
    home: Home,
    token: String,
}

impl World<'_> {
    fn work(&self) -> PathBuf {
        let work = self.home.path("work");
        std::fs::create_dir_all(&work).unwrap();
        work
    }

    /// Loads a session as soon as its lease has ended. While it has not, the error names the server that has it.
    async fn load_when_free(&self, connection: &Connection, id: &SessionId, holder: &str) -> Session {
        let start = Instant::now();
        loop {
            match connection.session(self.work()).load(id.clone()).await {
                Ok(session) => return session,
                Err(Error::Refused(error)) => {
                    if error.message.contains("on another machine") {
                        assert_eq!(server_of(&error).as_deref(), Some(holder), "{error:?}");
                    }
                    // The database may be away, too.
                    assert!(start.elapsed() < TOO_LONG, "{error:?}");
                }
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// As if the time of all leases had passed.
    fn end_leases(&self) {
        self.database.psql(&self.url, "update attache_session set lease_until = now() - interval '1 s'");
    }
}

fn server_of(error: &ErrorObject) -> Option<String> {
    error.data.as_ref()?.get("server")?.parse().ok()
}

/// The prompt of a round: words that are nowhere else, one after the other, each a twentieth of a second. More than are waited for.
fn prompt(round: u32) -> String {
    let words: Vec<String> =
        (0..if round == 0 { 1000 } else { 200 }).map(|number| format!("r{round}.{number}")).collect();
    format!("slowly {}", words.join(" "))
}

fn said(view: &SessionView, role: MessageRole) -> Vec<String> {
    let texts = view.timeline().iter().filter_map(|entry| match entry {
        Entry::Message(message) if message.role == role => Some(message.text().to_string()),
        _ => None,
    });
    texts.collect()
}

/// How many words of a round there are; fails unless they are the first ones, in order, each once.
#[track_caller]
fn words(view: &SessionView, round: u32) -> usize {
    let (all, prefix) = (said(view, MessageRole::Agent).join(" "), format!("r{round}."));
    let numbers = all.split_whitespace().filter_map(|word| word.strip_prefix(&prefix)?.parse::<usize>().ok());
    numbers.enumerate().inspect(|(expected, number)| assert_eq!(expected, number, "round {round}: {all}")).count()
}

/// What a session shows that was just loaded.
async fn history(session: &Session) -> SessionView {
    let mut view = SessionView::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(200), session.next()).await {
        if let Event::Update(update) = event.unwrap() {
            view.apply(&update);
        }
    }
    view
}

/// Runs a whole turn.
async fn turn(session: &Session, prompt: &str) -> Result<SessionView, Error> {
    let mut turn = session.prompt(prompt).await?;
    let mut view = SessionView::new();
    while let Some(event) = turn.next().await? {
        if let Event::Update(update) = event {
            view.apply(&update);
        }
    }
    Ok(view)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_killed_in_a_turn_lose_nothing_and_the_other_goes_on() {
    let Some(database) = database::Server::start() else { return };
    let by_hand = std::env::var("ATTACHE_TEST_KILLS").ok().map(|kills| kills.parse::<u32>().unwrap());
    let kills = by_hand.unwrap_or(6);
    let home = Home::new();
    let token = home.run(&["serve", "token", "add", "anna"]).out.trim().to_owned();
    let world = World { url: database.new_database(), database: &database, home, token };
    let mut dice = Dice::new(7);
    let mut active = Serve::start(&world, 0);
    let mut connection = active.connect(&world, "ws").await;
    let mut session = connection.session(world.work()).open().await.unwrap();
    let id = session.id().clone();
    let (mut disturbances, start) = (HashMap::<&str, u32>::new(), Instant::now());
    let (mut seen, mut slowest) = (Vec::new(), Duration::ZERO);
    for round in 0..kills {
        let other = Serve::start(&world, round + 1);
        let mut running = session.prompt(prompt(round)).await.unwrap();
        let (mut shown, wanted) = (SessionView::new(), 1 + dice.below(25));
        while words(&shown, round) < wanted {
            match running.next().await.unwrap() {
                Some(Event::Update(update)) => _ = shown.apply(&update),
                Some(other) => other.decline().await.unwrap(),
                None => panic!("round {round}: the turn ended by itself"),
            }
        }
        seen.push(words(&shown, round));
        let disturbance: &str = match round {
            // Each of them once, also where there are few.
            0..6 => ["none", "pause", "INT", "QUIT", "cut", "cut off"][round as usize],
            _ => dice.pick(&["none", "pause", "INT", "QUIT", "cut", "cut off"]),
        };
        *disturbances.entry(disturbance).or_default() += 1;
        if round == 0 {
            check_commands(&world, &other, &id, &active.name).await;
        }
        match disturbance {
            "none" => active.kill(),
            "pause" => {
                database.pause();
                tokio::time::sleep(Duration::from_millis(dice.below(800) as u64)).await;
                active.kill();
                database.go_on();
            }
            signal @ ("INT" | "QUIT") => {
                database.stop(signal);
                if dice.below(2) == 0 {
                    active.kill();
                }
                database.launch();
                active.kill();
            }
            "cut" => {
                for _ in 0..dice.below(8) {
                    active.proxy.cut();
                    active.proxy.cut_at_answer(dice.below(4) as i64);
                    tokio::time::sleep(Duration::from_millis(dice.below(30) as u64)).await;
                }
                active.kill();
            }
            // It lives, and does not hear that the other one takes the session over.
            _ => active.proxy.close(),
        }
        let freed = Instant::now();
        if by_hand.is_none() || round % 10 != 0 {
            world.end_leases();
        }
        let next = other.connect(&world, if round % 2 == 0 { "http" } else { "ws" }).await;
        let resumed = world.load_when_free(&next, &id, &active.name).await;
        slowest = slowest.max(freed.elapsed());
        let loaded = history(&resumed).await;
        check(&loaded, &seen, round, disturbance);
        let after = format!("after{round}");
        let answered = turn(&resumed, &format!("say {after}")).await.unwrap();
        assert!(said(&answered, MessageRole::Agent).concat().contains(&after), "round {round}, {disturbance}");
        if disturbance == "cut off" {
            // It is told when it comes back, and what it has not written by then it does not write any more.
            active.proxy.open();
            let told = tokio::time::timeout(TOO_LONG, async {
                loop {
                    match running.next().await {
                        Ok(Some(_)) => {}
                        ended => return ended,
                    }
                }
            });
            let told = told.await.expect("the turn ends");
            assert!(matches!(&told, Err(Error::Refused(_))), "round {round}: {told:?}");
            active.kill();
        }
        drop(running);
        drop((session, connection));
        (active, connection, session) = (other, next, resumed);
    }
    // What the session is for somebody who comes to it anew.
    let last = Serve::start(&world, kills + 1);
    let fresh = last.connect(&world, "ws").await;
    drop((session, connection));
    active.kill();
    world.end_leases();
    let resumed = world.load_when_free(&fresh, &id, &active.name).await;
    check(&history(&resumed).await, &seen, kills - 1, "end");
    let turned_back = "select count(*) from (select fence < lag(fence) over (order by number) as is_back \
                       from attache_record) as records where is_back";
    assert_eq!(database.psql(&world.url, turned_back), "0", "one writer after the other");
    database::say(&format!(
        "{kills} kills of `attache serve` in {:.0} s, {} messages seen, none lost, none twice; {disturbances:?}; the other \
         server had the session after {:.1} s at most",
        start.elapsed().as_secs_f64(),
        seen.iter().sum::<usize>(),
        slowest.as_secs_f64(),
    ));
}

/// Each prompt is there once, and of each turn at least what was seen, each word once.
#[track_caller]
fn check(loaded: &SessionView, seen: &[usize], round: u32, disturbance: &str) {
    let prompts = said(loaded, MessageRole::User);
    for (number, seen) in (0..).zip(seen) {
        let found = words(loaded, number);
        assert!(found >= *seen, "round {round}, {disturbance}: {found} of {seen} words of round {number}");
        let times = prompts.iter().filter(|text| **text == prompt(number)).count();
        assert_eq!(times, 1, "round {round}, {disturbance}: the prompt of round {number}");
        let after = format!("say after{number}");
        let times = prompts.iter().filter(|text| **text == after).count();
        assert_eq!(
            times,
            usize::from(number < round || disturbance == "end"),
            "round {round}, {disturbance}: `{after}`"
        );
    }
}

/// While a turn runs elsewhere, people are told where.
async fn check_commands(world: &World<'_>, other: &Serve, id: &SessionId, holder: &str) {
    let (url, work) = (format!("ws://{}", other.address), world.work());
    let client = |args: &[&str]| {
        let mut command = world.home.command(args);
        command.env("ATTACHE_TOKEN", &world.token).env("PATH", std::env::var_os("PATH").unwrap());
        command
    };
    let ran = run(client(&["run", "--agent", &url, "-C", work.to_str().unwrap(), "--resume", id.as_str(), "say no"]));
    let hint = format!(
        "or go on with it there: `attache chat --agent {holder} --resume {id}`, after `attache login {holder}`"
    );
    ran.check(1, &[], &[&format!("session `{id}` is open on {holder}"), &hint]);
    // An editor, which shows what the error says.
    let mut child = client(&["connect", &url]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _limit = TimeLimit::new(&child, TOO_LONG);
    let mut stdin = child.stdin.take().unwrap();
    for (number, method, params) in [
        (0, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })),
        (1, "session/load", json!({ "sessionId": id.as_str(), "cwd": work, "mcpServers": [] })),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
        writeln!(stdin, "{request}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.into_iter().find(|answer| answer["id"] == 1).unwrap();
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(
        message.starts_with(&format!("the session is open on {holder}\nhint: close it there"))
            && message.contains(&format!("`attache connect {holder}`, after `attache login {holder}`")),
        "{answer}"
    );
    assert_eq!(answer["error"]["data"]["server"], holder, "{answer}");
    drop(stdin);
    child.wait().unwrap();
}
