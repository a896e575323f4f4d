//! The part of `RESULTS.md` about networks and stores: goals, and a table for each workload.

mod goals;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Error;
use crate::peer::PEERS;

/// Where the part begins. What stands before it is written by the harness, which leaves this as it is.
const MARK: &str = "<!-- bench/run remote writes what follows -->";

/// A workload, and what to know of it.
struct Workload {
    id: &'static str,
    title: &'static str,
    columns: &'static [Column],
    /// Metrics have the number of sessions at their end, and each has a row for itself.
    is_growing: bool,
}

/// A metric, its heading, and how many of its unit make one of the heading's.
type Column = (&'static str, &'static str, f64);

const BOTH: [Column; 3] =
    [("server_cpu_us", "server CPU, µs", 1.0), ("client_cpu_us", "client CPU, µs", 1.0), ("cpu_us", "both, µs", 1.0)];

const WORKLOADS: &[Workload] = &[
    workload(
        "r1",
        "R1: prompts that are answered at once, one after another; CPU and time of one, both ends on one core",
        &[BOTH[0], BOTH[1], BOTH[2], ("p50_us", "p50, µs", 1.0), ("p99_us", "p99, µs", 1.0)],
    ),
    workload(
        "r2",
        "R2: a turn of 20,000 updates of 80 bytes of text, as fast as they go; CPU of one",
        &[
            BOTH[0],
            BOTH[1],
            BOTH[2],
            ("messages_a_second", "messages a second", 1.0),
            ("growth_kib", "growth of the server, MiB", 1024.0),
        ],
    ),
    workload(
        "r2p",
        "R2p: the same with each update flushed before the next",
        &[
            BOTH[0],
            BOTH[1],
            BOTH[2],
            ("messages_a_second", "messages a second", 1.0),
            ("growth_kib", "growth of the server, MiB", 1024.0),
        ],
    ),
    workload(
        "r3",
        "R3: 1,000 connections that do nothing; memory of one",
        &[
            ("connection_kib", "server, KiB", 1.0),
            ("session_kib", "server, with a session, KiB", 1.0),
            ("client_kib", "client, with a session, KiB", 1.0),
            ("idle_cpu_percent", "CPU of the server for all, %", 1.0),
        ],
    ),
    workload(
        "r4",
        "R4: 200 clients that have a turn of 1,000 updates at once",
        &[
            BOTH[0],
            BOTH[2],
            ("messages_a_second", "messages a second", 1.0),
            ("first_ms", "first is done, ms", 1.0),
            ("last_ms", "last is done, ms", 1.0),
            ("growth_kib", "growth of the server, MiB", 1024.0),
        ],
    ),
    Workload {
        id: "r5",
        title: "R5: 10 to 10,000 sessions of one server, 250 on each connection",
        columns: &[
            ("open_cpu_us", "server CPU to open one, µs", 1.0),
            ("session_kib", "memory of one, KiB", 1.0),
            ("turn_cpu_us", "server CPU of a turn, µs", 1.0),
            ("turn_wall_us", "a turn, µs", 1.0),
        ],
        is_growing: true,
    },
    workload(
        "r6",
        "R6: a turn of 20 entries in the log, which survives a loss of power when it is done",
        &[
            ("turn_batch_us", "in 3 batches, µs", 1.0),
            ("cpu_batch_us", "CPU, µs", 1.0),
            ("database_batch_us", "CPU of the database, µs", 1.0),
            ("turn_each_us", "one by one, µs", 1.0),
            ("cpu_each_us", "CPU, µs", 1.0),
            ("database_each_us", "CPU of the database, µs", 1.0),
        ],
    ),
    Workload {
        id: "r7",
        title: "R7: 10 to 10,000 sessions in a store, of 21 entries each",
        columns: &[
            ("create_us", "create, µs", 1.0),
            ("open_us", "open, µs", 1.0),
            ("read_us", "read, µs", 1.0),
            ("turn_us", "open and write a turn, µs", 1.0),
            ("list_us", "list the newest 50, µs", 1.0),
            ("rss_kib", "memory of the process, MiB", 1024.0),
        ],
        is_growing: true,
    },
];

const fn workload(id: &'static str, title: &'static str, columns: &'static [Column]) -> Workload {
    Workload { id, title, columns, is_growing: false }
}

/// Workload, peer, metric: what the repetitions measured.
pub struct Results(BTreeMap<(String, String, String), Vec<f64>>);

impl Results {
    fn parse(lines: &str) -> Result<Self, Error> {
        let mut results = BTreeMap::<_, Vec<f64>>::new();
        for line in lines.lines() {
            let value: Value = serde_json::from_str(line)?;
            let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            if !WORKLOADS.iter().any(|known| known.id == text("workload")) {
                continue;
            }
            for (metric, value) in value["metrics"].as_object().into_iter().flatten() {
                let key = (text("workload"), text("peer"), metric.clone());
                results.entry(key).or_default().extend(value.as_f64());
            }
        }
        Ok(Results(results))
    }

    /// Median, lowest and highest.
    fn spread(&self, workload: &str, peer: &str, metric: &str) -> Option<(f64, f64, f64)> {
        let mut sorted = self.0.get(&(workload.to_owned(), peer.to_owned(), metric.to_owned()))?.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.get((sorted.len().max(1) - 1) / 2)?, *sorted.get(sorted.len() / 2)?);
        Some(((low + high) / 2.0, sorted[0], sorted[sorted.len() - 1]))
    }

    fn median(&self, workload: &str, peer: &str, metric: &str) -> Option<f64> {
        Some(self.spread(workload, peer, metric)?.0)
    }

    fn cell(&self, workload: &str, peer: &str, metric: &str, divisor: f64) -> String {
        let Some((median, low, high)) = self.spread(workload, peer, metric) else { return "–".into() };
        let [median, low, high] = [median, low, high].map(|value| figure(value / divisor));
        if low == high { median } else { format!("{median} ({low}–{high})") }
    }
}

/// A number with about three digits that count, and commas where it is long.
fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut long = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if left % 3 == 0 && long.ends_with(|before: char| before.is_ascii_digit()) {
            long.push(',');
        }
        long.push(digit);
    }
    long + rest
}

const STORES: [(&str, &str); 2] = [("files", "file store"), ("postgres", "PostgreSQL store")];

/// The peers that a workload has results of, with their names.
fn peers<'a>(results: &'a Results, workload: &'a str) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    let known = PEERS.iter().map(|peer| (peer.id, peer.name)).chain(STORES);
    known.filter(move |(id, _)| results.0.keys().any(|(of, peer, _)| of == workload && peer == id))
}

fn table(results: &Results, workload: &Workload) -> Result<String, Error> {
    let mut table = format!("## {}\n\n| peer |", workload.title);
    if workload.is_growing {
        table += " sessions |";
    }
    for (_, heading, _) in workload.columns {
        write!(table, " {heading} |")?;
    }
    writeln!(table, "\n|---|{}", "--:|".repeat(workload.columns.len() + usize::from(workload.is_growing)))?;
    for (peer, name) in peers(results, workload.id) {
        let steps: &[&str] = if workload.is_growing { &["10", "100", "1000", "10000"] } else { &[""] };
        for step in steps {
            write!(table, "| {name} |")?;
            if workload.is_growing {
                write!(table, " {} |", figure(step.parse()?))?;
            }
            for (metric, _, divisor) in workload.columns {
                let metric = if step.is_empty() { (*metric).to_owned() } else { format!("{metric}_{step}") };
                write!(table, " {} |", results.cell(workload.id, peer, &metric, *divisor))?;
            }
            table += "\n";
        }
    }
    Ok(table)
}

/// The goals, and the tables of what there are results of.
pub fn tables(lines: &str) -> Result<String, Error> {
    let results = Results::parse(lines)?;
    let mut text = goals::table(&results)?;
    for workload in WORKLOADS.iter().filter(|workload| peers(&results, workload.id).next().is_some()) {
        text += "\n";
        text += &table(&results, workload)?;
    }
    Ok(text)
}

/// Writes the part anew, from the lines of the results.
pub fn write(lines: &str, home: &Path) -> Result<(), Error> {
    let path = home.join("RESULTS.md");
    let page = std::fs::read_to_string(&path)?;
    let before = page.split(MARK).next().unwrap_or_default().trim_end();
    let about = include_str!("about.md");
    let (date, kernel) = (said_by("date", &["-u", "+%Y-%m-%d"]), said_by("uname", &["-sr"]));
    let load = said_by("cut", &["-d", " ", "-f", "1-3", "/proc/loadavg"]);
    let commit = std::env::var("BENCH_COMMIT").unwrap_or_else(|_| "this repository".into());
    let made = format!("Made by `bench/run remote` on {date}: {commit}, {kernel}, load at the end {load}.");
    let page = format!("{before}\n\n{MARK}\n\n# Over a network, and in stores\n\n{made} {about}\n{}", tables(lines)?);
    Ok(std::fs::write(path, page)?)
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
