//! Clients under test: they start the raw agent themselves.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::peers;
use crate::process::Process;
use crate::workloads::{Metrics, settle};

/// The command line of a client that talks to the raw agent.
pub fn command(client: &[String], prompt: &str) -> Command {
    let mut command = Command::new(&client[0]);
    command.args(&client[1..]).args(peers::agent("raw").unwrap_or_default());
    command.env("BENCH_PROMPT", prompt).env_remove("BENCH_STALL");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(peers::stderr());
    command
}

/// W4, W4b: what it takes to receive, less what it takes to start.
pub fn receive(client: &[String], word: &str, count: usize, size: usize) -> io::Result<Metrics> {
    let start = once(client, word, 1, size)?;
    let run = once(client, word, count, size)?;
    let a_message = |time: Duration, less: Duration| time.saturating_sub(less).as_secs_f64() * 1e6 / (count - 1) as f64;
    Ok(vec![
        ("cpu_us_a_message", a_message(run.cpu, start.cpu)),
        ("wall_us_a_message", a_message(run.wall, start.wall)),
        ("rss_kib", run.peak as f64),
    ])
}

struct Run {
    cpu: Duration,
    wall: Duration,
    peak: u64,
}

fn once(client: &[String], word: &str, count: usize, size: usize) -> io::Result<Run> {
    let begun = Instant::now();
    let mut process = Process::start(&mut command(client, &format!("{word} {count} {size}")))?;
    let output = process.child.stdout.take().ok_or_else(|| io::Error::other("the client has no output"))?;
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map(|_| (line, begun.elapsed()))
    });
    let peak = process.watch_to_end(Duration::from_secs(120))?;
    let cpu = process.cpu();
    let (said, wall) = reader.join().map_err(|_| io::Error::other("the reader failed"))??;
    let seen = said.trim().strip_prefix("count ").and_then(|seen| seen.parse::<usize>().ok());
    // The first report of a tool call comes on top.
    if !seen.is_some_and(|seen| seen == count || (word == "w3b" && seen == count + 1)) {
        return Err(io::Error::other(format!("the client said `{}` instead of `count {count}`", said.trim())));
    }
    Ok(Run { cpu, wall, peak })
}

/// W7b: memory of a client whose own code reads nothing, over that of one that received a single update.
pub fn stall(client: &[String], is_quick: bool) -> io::Result<Metrics> {
    // It has to live until it is looked at: a quick one would have ended.
    let stalled = |count: usize| -> io::Result<u64> {
        let mut process = Process::start(command(client, &format!("w3 {count} 1024")).env("BENCH_STALL", "1"))?;
        let peak = settle(|| process.memory().peak);
        process.child.kill()?;
        Ok(peak)
    };
    let idle = stalled(1)?;
    let peak = stalled(if is_quick { 1 << 16 } else { 1 << 19 })?;
    Ok(vec![("growth_kib", peak.saturating_sub(idle) as f64), ("rss_kib", peak as f64)])
}
