//! The workloads: what is done to one peer, and the figures that come of it. This process is the client.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::{Map, json};

use crate::Error;
use crate::ours::Ours;
use crate::peer::{Client, Peer, Server};
use crate::process::{self, cpu, memory};
use crate::theirs::Theirs;

/// Figures by name.
type Metrics = Vec<(String, f64)>;

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(180);

/// The workloads with their peers.
pub const WORKLOADS: &[(&str, &[&str])] = &[
    (
        "r1",
        &["attache-stdio", "attache-ws", "attache-h2", "attache-h1", "official-stdio", "official-ws", "official-h1"],
    ),
    (
        "r2",
        &["attache-stdio", "attache-ws", "attache-h2", "attache-h1", "official-stdio", "official-ws", "official-h1"],
    ),
    (
        "r2p",
        &["attache-stdio", "attache-ws", "attache-h2", "attache-h1", "official-stdio", "official-ws", "official-h1"],
    ),
    ("r3", &["attache-ws", "attache-h2", "attache-h1", "official-ws", "official-h1"]),
    ("r4", &["attache-ws", "attache-h2", "attache-h1", "official-ws", "official-h1"]),
    ("r5", &["attache-ws", "attache-h2", "official-ws"]),
];

/// Bytes of text in an update.
const SIZE: usize = 80;

/// Measures, and prints what came of it as JSON.
pub async fn print(workload: &str, peer: &str, is_quick: bool) -> Result<(), Error> {
    let peer = Peer::named(peer)?;
    if workload == "r1" {
        // One waits for the other: where the kernel puts them would decide what that takes.
        process::stay_on_one_core()?;
    }
    let server = peer.start().await?;
    let measured = async {
        if peer.is_official() {
            run::<Theirs>(workload, server, is_quick).await
        } else {
            run::<Ours>(workload, server, is_quick).await
        }
    };
    let metrics = tokio::time::timeout(LIMIT, measured).await.map_err(|_| "it took too long")??;
    let metrics: Map<_, _> = metrics.into_iter().map(|(name, value)| (name, json!(value))).collect();
    println!("{}", json!(metrics));
    // Thousands of connections need not say goodbye.
    std::process::exit(0);
}

async fn run<C: Client>(workload: &str, server: Server, is_quick: bool) -> Result<Metrics, Error> {
    let part = if is_quick { 10 } else { 1 };
    match workload {
        "r1" => requests::<C>(server, 5000 / part).await,
        "r2" => updates::<C>(server, "w3", 20_000 / part).await,
        "r2p" => updates::<C>(server, "w3p", 20_000 / part).await,
        "r3" => idle::<C>(server, 1000 / part).await,
        "r4" => together::<C>(server, 200 / part, 1000 / part).await,
        "r5" => sessions::<C>(server, if is_quick { &[10, 100] } else { &[10, 100, 1000, 10_000] }).await,
        other => Err(format!("there is no workload `{other}`").into()),
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// What both ends have used.
struct Clocks {
    server: u32,
    began: (Duration, Duration, Instant),
}

impl Clocks {
    fn start(server: &Server) -> Self {
        let server = server.pid();
        Clocks { server, began: (cpu(server), cpu(0), Instant::now()) }
    }

    fn stop(self, count: usize) -> Metrics {
        let (server, client) = (cpu(self.server) - self.began.0, cpu(0) - self.began.1);
        let wall = self.began.2.elapsed();
        vec![
            ("server_cpu_us".into(), micros(server, count)),
            ("client_cpu_us".into(), micros(client, count)),
            ("cpu_us".into(), micros(server + client, count)),
            ("messages_a_second".into(), count as f64 / wall.as_secs_f64()),
        ]
    }
}

async fn expect<C: Client>(client: &C, session: &C::Session, prompt: &str, count: usize) -> Result<(), Error> {
    match client.prompt(session, prompt).await? {
        seen if seen == count => Ok(()),
        seen => Err(format!("{seen} updates instead of {count}").into()),
    }
}

/// R1: prompts that are answered at once, one after another.
async fn requests<C: Client>(mut server: Server, count: usize) -> Result<Metrics, Error> {
    let client = C::connect(server.way()?).await?;
    let session = client.open().await?;
    for _ in 0..count / 10 {
        expect(&client, &session, "hello", 0).await?;
    }
    let mut times = Vec::with_capacity(count);
    let clocks = Clocks::start(&server);
    for _ in 0..count {
        let begun = Instant::now();
        expect(&client, &session, "hello", 0).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let mut metrics = clocks.stop(count);
    times.sort_by(f64::total_cmp);
    metrics.push(("p50_us".into(), times[times.len() / 2]));
    metrics.push(("p99_us".into(), times[times.len() * 99 / 100]));
    Ok(metrics)
}

/// R2, R2p: one turn of many small updates.
async fn updates<C: Client>(mut server: Server, word: &str, count: usize) -> Result<Metrics, Error> {
    let client = C::connect(server.way()?).await?;
    let session = client.open().await?;
    expect(&client, &session, &format!("{word} 500 {SIZE}"), 500).await?;
    let before = memory(server.pid()).0;
    let clocks = Clocks::start(&server);
    expect(&client, &session, &format!("{word} {count} {SIZE}"), count).await?;
    let mut metrics = clocks.stop(count);
    metrics.push(("growth_kib".into(), (memory(server.pid()).1 - before).max(0.0)));
    Ok(metrics)
}

/// R3: connections that do nothing, without a session and with one.
async fn idle<C: Client>(mut server: Server, count: usize) -> Result<Metrics, Error> {
    // What the first ones need once is not counted.
    let warm = C::connect(server.way()?).await?;
    let _session = warm.open().await?;
    let settle = async || tokio::time::sleep(Duration::from_millis(500)).await;
    settle().await;
    let each = |before: f64, after: f64| (after - before) / count as f64;
    let (server_before, client_before) = (memory(server.pid()).0, memory(std::process::id()).0);
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(C::connect(server.way()?).await?);
    }
    settle().await;
    let bare = each(server_before, memory(server.pid()).0);
    let mut sessions = Vec::with_capacity(count);
    for client in &clients {
        sessions.push(client.open().await?);
    }
    // A second after the last message the other end is told that it arrived.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let clocks = Clocks::start(&server);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = (cpu(clocks.server) - clocks.began.0).as_secs_f64() / 2.0;
    Ok(vec![
        ("connection_kib".into(), bare),
        ("session_kib".into(), each(server_before, memory(server.pid()).0)),
        ("client_kib".into(), each(client_before, memory(std::process::id()).0)),
        ("idle_cpu_percent".into(), idle * 100.0),
    ])
}

/// R4: many clients that have a turn of many updates at once.
async fn together<C: Client>(mut server: Server, clients: usize, count: usize) -> Result<Metrics, Error> {
    let mut all = Vec::with_capacity(clients);
    for _ in 0..clients {
        let client = C::connect(server.way()?).await?;
        let session = client.open().await?;
        all.push((client, session));
    }
    let before = memory(server.pid()).0;
    let prompt = format!("w3 {count} {SIZE}");
    let clocks = Clocks::start(&server);
    let begun = Instant::now();
    let turns = all.iter().map(async |(client, session)| {
        expect(client, session, &prompt, count).await?;
        Ok::<_, Error>(begun.elapsed().as_secs_f64() * 1e3)
    });
    let mut ends = try_join_all(turns).await?;
    let mut metrics = clocks.stop(clients * count);
    ends.sort_by(f64::total_cmp);
    metrics.push(("first_ms".into(), ends[0]));
    metrics.push(("last_ms".into(), ends[ends.len() - 1]));
    metrics.push(("growth_kib".into(), (memory(server.pid()).1 - before).max(0.0)));
    Ok(metrics)
}

/// Sessions of one connection.
const SESSIONS_EACH: usize = 250;

/// R5: sessions that one server has, more and more.
async fn sessions<C: Client>(mut server: Server, steps: &[usize]) -> Result<Metrics, Error> {
    let mut clients: Vec<(C, Vec<C::Session>)> = Vec::new();
    let (mut open, mut metrics) = (0, Metrics::new());
    let before = memory(server.pid()).0;
    for step in steps {
        let clocks = Clocks::start(&server);
        let new = step - open;
        while open < *step {
            if open % SESSIONS_EACH == 0 {
                clients.push((C::connect(server.way()?).await?, Vec::new()));
            }
            let (client, sessions) = clients.last_mut().ok_or("no client")?;
            sessions.push(client.open().await?);
            open += 1;
        }
        metrics.push((format!("open_cpu_us_{step}"), micros(cpu(clocks.server) - clocks.began.0, new)));
        tokio::time::sleep(Duration::from_millis(500)).await;
        metrics.push((format!("session_kib_{step}"), (memory(server.pid()).0 - before) / *step as f64));
        // Turns all over the place.
        let clocks = Clocks::start(&server);
        const TURNS: usize = 2000;
        for turn in 0..TURNS {
            let (client, sessions) = &clients[turn % clients.len()];
            expect(client, &sessions[turn * 7 % sessions.len()], "hello", 0).await?;
        }
        metrics.push((format!("turn_cpu_us_{step}"), micros(cpu(clocks.server) - clocks.began.0, TURNS)));
        metrics.push((format!("turn_wall_us_{step}"), micros(clocks.began.2.elapsed(), TURNS)));
    }
    Ok(metrics)
}
