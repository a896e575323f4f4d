//! The workloads: what is done to one peer, and the figures that come of it.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Driver, prompt};
use crate::{builds, clients, peers};

/// Figures by name.
pub type Metrics = Vec<(&'static str, f64)>;

/// All workloads, in the order they are run.
pub const ALL: &[&str] = &["w1", "w2", "w3", "w3p", "w3b", "w4", "w4b", "w5", "w6a", "w6b", "w7", "w7b", "w8"];

/// The bounds that Attaché is configured with by default, in KiB: `Limits::outbox` and `Limits::inbox`.
const OUTBOX: f64 = 256.0;
const INBOX: f64 = 8.0 * 1024.0;

/// The peers of a workload.
pub fn peers_of(workload: &str) -> Vec<&'static str> {
    let without = |left_out: &[&str]| peers::AGENTS.iter().copied().filter(|peer| !left_out.contains(peer)).collect();
    match workload {
        "w4" | "w4b" => peers::CLIENTS.to_vec(),
        // A blocking client that does not read holds nothing, and says nothing.
        "w7b" => peers::CLIENTS.iter().copied().filter(|peer| *peer != "ht").collect(),
        // These need JSON.
        "w5" => without(&["raw"]),
        "w8" => builds::PEERS.to_vec(),
        _ => without(&[]),
    }
}

/// Sizes, smaller for a quick look and for peers that would take minutes. Figures are a message, so they compare.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub is_quick: bool,
    pub is_slow: bool,
}

impl Scale {
    pub fn of(peer: &str, is_quick: bool) -> Self {
        Scale { is_quick, is_slow: peer == "py-sdk" }
    }

    pub fn count(self, full: usize) -> usize {
        full / if self.is_quick { 10 } else { 1 } / if self.is_slow { 10 } else { 1 }
    }
}

/// Runs a workload on a peer.
pub fn run(workload: &str, peer: &str, is_quick: bool) -> io::Result<Metrics> {
    let scale = Scale::of(peer, is_quick);
    let missing = || io::Error::other("not installed");
    if workload == "w8" {
        return builds::measure(peer);
    }
    if matches!(workload, "w4" | "w4b" | "w7b") {
        let client = peers::client(peer).ok_or_else(missing)?;
        // The start of a slow client is as long as a short run, and is subtracted: it needs a long one.
        let full = Scale { is_slow: false, ..scale };
        return match workload {
            "w4" => clients::receive(&client, "w3", full.count(200_000), 80),
            "w4b" => clients::receive(&client, "w3b", full.count(20_000), 4096),
            _ => Ok(with_bound(clients::stall(&client, is_quick)?, peer, INBOX)),
        };
    }
    let agent = peers::agent(peer).ok_or_else(missing)?;
    match workload {
        "w1" => start(&agent, if is_quick { 5 } else { 20 }),
        "w2" => requests(&agent, scale.count(20_000)),
        "w3" | "w3p" => updates(&agent, workload, scale.count(200_000), 80),
        "w3b" => updates(&agent, "w3b", scale.count(20_000), 4096),
        "w5" => large_prompt(&agent, if is_quick { 2 << 20 } else { 16 << 20 }),
        "w6a" => sessions(&agent, if is_quick { 100 } else { 1000 }, 20),
        "w6b" => reads(&agent, 200, if is_quick { 5 } else { 50 }),
        "w7" => Ok(with_bound(flood(&agent, if is_quick { 1 << 17 } else { 1 << 20 })?, peer, OUTBOX)),
        _ => Err(io::Error::other("no such workload")),
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The middle of a list, which is sorted for it.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() - 1) as f64 * part).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// CPU and wall time of what is done with an agent, by message.
fn timed(driver: &mut Driver, count: usize, work: impl FnOnce(&mut Driver) -> io::Result<()>) -> io::Result<Metrics> {
    let (cpu, wall) = (driver.process.cpu(), Instant::now());
    work(driver)?;
    let (wall, cpu) = (wall.elapsed(), driver.process.cpu() - cpu);
    let peak = driver.process.memory().peak as f64;
    Ok(vec![("cpu_us_a_message", micros(cpu, count)), ("wall_us_a_message", micros(wall, count)), ("rss_kib", peak)])
}

/// W1.
fn start(agent: &[String], times: usize) -> io::Result<Metrics> {
    let (mut wall, mut cpu, mut rss) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        let begun = Instant::now();
        let driver = Driver::greet(agent)?;
        wall.push(millis(begun.elapsed()));
        cpu.push(millis(driver.process.cpu()));
        rss.push(driver.process.memory().peak as f64);
    }
    let middle = |mut values: Vec<f64>| quantile(&mut values, 0.5);
    Ok(vec![("wall_ms", middle(wall)), ("cpu_ms", middle(cpu)), ("rss_kib", middle(rss))])
}

/// W2.
fn requests(agent: &[String], count: usize) -> io::Result<Metrics> {
    let (mut driver, session) = Driver::open(agent)?;
    let line = |id: usize| {
        let params = format!("{{\"sessionId\":\"{session}\",\"modeId\":\"{}\"}}", ["a", "b"][id % 2]);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/set_mode\",\"params\":{params}}}\n")
    };
    let mut times = Vec::with_capacity(count);
    let mut metrics = timed(&mut driver, count, |driver| {
        for id in 0..count {
            let line = line(100 + id);
            let begun = Instant::now();
            driver.write(line.as_bytes())?;
            // A change of mode may be told as an update beside the answer.
            while memchr::memmem::find(&driver.line()?, b"\"result\"").is_none() {}
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok(())
    })?;
    metrics.retain(|(name, _)| *name != "wall_us_a_message");
    metrics.push(("p50_us", quantile(&mut times, 0.5)));
    metrics.push(("p99_us", quantile(&mut times, 0.99)));
    Ok(metrics)
}

/// W3, W3 paced, W3b.
fn updates(agent: &[String], word: &str, count: usize, size: usize) -> io::Result<Metrics> {
    let (mut driver, session) = Driver::open(agent)?;
    timed(&mut driver, count, |driver| {
        driver.prompt(&session, &format!("{word} {count} {size}"))?;
        let turn = driver.drain(1)?;
        match turn.lines > count {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} lines instead of {count}", turn.lines))),
        }
    })
}

/// W5.
fn large_prompt(agent: &[String], size: usize) -> io::Result<Metrics> {
    let (mut driver, session) = Driver::open(agent)?;
    let line = "\tlet greeting = \"hello, \\\"world\\\"\"; // a line of a file, more or less, as they are\n";
    let mut text = line.repeat(size / line.len() + 1);
    text.truncate(size);
    let resource = json!({"uri": "file:///tmp/large.txt", "mimeType": "text/plain", "text": text});
    let blocks = json!([{"type": "text", "text": "size"}, {"type": "resource", "resource": resource}]);
    let params = json!({"sessionId": session, "prompt": blocks});
    let mut message =
        json!({"jsonrpc": "2.0", "id": 99, "method": "session/prompt", "params": params}).to_string().into_bytes();
    message.push(b'\n');
    drop((text, params));
    std::thread::sleep(Duration::from_millis(50));
    let idle = driver.process.memory().now as f64;
    let (cpu, wall) = (driver.process.cpu(), Instant::now());
    let writer = driver.write_aside(message);
    let said: Value = loop {
        let line: Value = serde_json::from_slice(&driver.line()?)?;
        if line["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
            break line["params"]["update"]["content"]["text"].clone();
        }
    };
    driver.drain(1)?;
    let (wall, cpu) = (wall.elapsed(), driver.process.cpu() - cpu);
    driver.rejoin(writer);
    if said.as_str().and_then(|said| said.parse().ok()) != Some(size) {
        return Err(io::Error::other(format!("the agent saw {said} bytes instead of {size}")));
    }
    let growth = driver.process.memory().peak as f64 - idle;
    std::thread::sleep(Duration::from_secs(1));
    let kept = driver.process.memory().now as f64 - idle;
    Ok(vec![("cpu_ms", millis(cpu)), ("wall_ms", millis(wall)), ("growth_kib", growth), ("kept_kib", kept)])
}

/// W6a.
fn sessions(agent: &[String], sessions: usize, count: usize) -> io::Result<Metrics> {
    let mut driver = Driver::greet(agent)?;
    let begun = driver.process.cpu();
    let ids = (0..sessions).map(|_| driver.new_session()).collect::<io::Result<Vec<_>>>()?;
    let opening = micros(driver.process.cpu() - begun, sessions);
    let mut prompts = Vec::new();
    for (at, session) in ids.iter().enumerate() {
        let params = prompt(session, &format!("w3 {count} 80"));
        let line = json!({"jsonrpc": "2.0", "id": 10_000 + at, "method": "session/prompt", "params": params});
        prompts.extend_from_slice(format!("{line}\n").as_bytes());
    }
    let mut metrics = timed(&mut driver, sessions * count, |driver| {
        let writer = driver.write_aside(prompts);
        let turn = driver.drain(sessions)?;
        driver.rejoin(writer);
        match turn.lines >= sessions * (count + 1) {
            true => Ok(()),
            false => Err(io::Error::other(format!("only {} lines", turn.lines))),
        }
    })?;
    metrics.push(("open_us", opening));
    Ok(metrics)
}

/// W6b.
fn reads(agent: &[String], outstanding: usize, rounds: usize) -> io::Result<Metrics> {
    let (mut driver, session) = Driver::open(agent)?;
    timed(&mut driver, outstanding * rounds, |driver| {
        driver.prompt(&session, &format!("w6b {outstanding} {rounds}"))?;
        let turn = driver.drain_serving_files()?;
        match turn.lines > outstanding * rounds {
            true => Ok(()),
            false => Err(io::Error::other(format!("only {} lines", turn.lines))),
        }
    })
}

/// W7.
fn flood(agent: &[String], count: usize) -> io::Result<Metrics> {
    let (mut driver, session) = Driver::open(agent)?;
    let idle = driver.process.memory().now;
    driver.prompt(&session, &format!("w3 {count} 1024"))?;
    let peak = settle(|| driver.process.memory().peak);
    Ok(vec![("growth_kib", peak.saturating_sub(idle) as f64), ("rss_kib", peak as f64)])
}

/// Only Attaché says how much it will hold at most.
fn with_bound(mut metrics: Metrics, peer: &str, bound: f64) -> Metrics {
    if peer == "attache" {
        metrics.push(("bound_kib", bound));
    }
    metrics
}

/// Watches a peak of memory until it has stood still for a second.
pub fn settle(peak: impl Fn() -> u64) -> u64 {
    let begun = Instant::now();
    let (mut highest, mut since) = (0, Instant::now());
    // Half a minute is longer than any peer needs for a gigabyte, and 3 GiB is more than enough to make the point.
    while begun.elapsed() < Duration::from_secs(30) && highest < 3 << 20 {
        std::thread::sleep(Duration::from_millis(25));
        let now = peak();
        if now > highest + 64 {
            (highest, since) = (now, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    highest.max(peak())
}
