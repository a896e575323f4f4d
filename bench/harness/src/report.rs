//! The report of a run: `RESULTS.md` with tables and gates, and the plot `speed.svg`.
//!
//! The results are lines of JSON, one for each repetition of a workload with a peer:
//!
//! ```json
//! {"workload":"w3","peer":"attache","rep":1,"metrics":{"cpu_ms":95.2,"wall_ms":130.0,"rss_kib":3120}}
//! ```
//!
//! A metric that could not be measured is left out or `null`. `WORKLOADS`, `PEERS` and `METRICS` name what is known; what
//! they do not name is shown under its own name after the rest.

pub mod agents;
mod gates;
mod plot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

use crate::results::is_of_remote;
use gates::{GATES, Limit, Seen};

/// Where, when and how the results were made.
pub struct Context {
    /// Cores and memory.
    pub machine: String,
    /// The model of the processor.
    pub cpu: String,
    /// The name and version of the operating system's kernel.
    pub kernel: String,
    /// The day, as `2026-01-31`.
    pub date: String,
    /// The command that made the results.
    pub command: String,
    /// What was measured and measured with: name and version.
    pub versions: Vec<(String, String)>,
}

impl Context {
    /// This machine, today. What the system does not tell is `unknown`.
    pub fn here(command: String, versions: Vec<(String, String)>) -> Self {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
        let memory = field("/proc/meminfo", "MemTotal")
            .and_then(|size| size.trim_end_matches(" kB").parse::<f64>().ok())
            .map_or_else(|| "unknown memory".to_owned(), |kib| format!("{:.1} GiB of memory", kib / 1024.0 / 1024.0));
        Self {
            machine: format!("{cores} cores, {memory}"),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            kernel: said_by("uname", &["-sr"]),
            date: said_by("date", &["-u", "+%Y-%m-%d"]),
            command,
            versions,
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn said_by(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success());
    output.map_or_else(unknown, |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Reads the results and returns the page.
pub fn page(results: &Path, context: &Context) -> io::Result<String> {
    Ok(markdown(&Results::parse(&fs::read_to_string(results)?)?, context))
}

/// Reads the results and writes `RESULTS.md` and `speed.svg` into a directory.
/// The part of the page that `bench/run remote` writes stays.
pub fn write(results: &Path, out_dir: &Path, context: &Context) -> io::Result<()> {
    let results = Results::parse(&fs::read_to_string(results)?)?;
    let path = out_dir.join("RESULTS.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let remote = before.find(REMOTE).map_or(String::new(), |at| format!("\n{}", &before[at..]));
    fs::write(path, markdown(&results, context) + &remote)?;
    fs::write(out_dir.join("speed.svg"), plot::svg(&results, context))
}

/// Where the part of the page begins that `bench/run remote` writes.
const REMOTE: &str = "<!-- bench/run remote";

struct Workload {
    id: &'static str,
    what: &'static str,
    /// How many messages the CPU time is divided by. A run of another size has its own metric `messages`.
    messages: Option<f64>,
}

const WORKLOADS: &[Workload] = &[
    workload("w1", "from spawn to the `initialize` response", None),
    workload("w2", "small requests one after another (`session/set_mode`)", None),
    workload("w3", "agent sends 200,000 `agent_message_chunk` of 80 bytes in one turn, burst", Some(200_000.0)),
    workload("w3p", "agent sends the messages of W3, each flushed", Some(200_000.0)),
    workload("w3b", "agent sends 20,000 `tool_call_update` of 4 KiB", Some(20_000.0)),
    workload("w4", "client receives the messages of W3 from a raw agent", Some(200_000.0)),
    workload("w4b", "client receives the messages of W3b from a raw agent", Some(20_000.0)),
    workload("w5", "one `session/prompt` with a 16 MiB embedded resource", None),
    workload("w6a", "1,000 sessions, 20 updates each, interleaved on one connection", Some(20_000.0)),
    workload("w6b", "200 outstanding `fs/read_text_file`, 50 rounds", Some(10_000.0)),
    workload("w7", "agent whose client does not read, 1 GiB offered", None),
    workload("w7b", "client whose handlers are stalled, 512 MiB offered", None),
    workload("w8", "clean release build of the smallest agent, rebuild of a 40-line client", None),
];

const fn workload(id: &'static str, what: &'static str, messages: Option<f64>) -> Workload {
    Workload { id, what, messages }
}

/// Peers in the order of the tables: id and name.
const PEERS: &[(&str, &str)] = &[
    ("attache", "Attaché"),
    ("raw", "raw: prebuilt bytes"),
    ("ht", "ht: hand-tuned, blocking"),
    ("ht-tokio", "ht-tokio: hand-tuned, async"),
    ("rust-sdk", "official Rust SDK"),
    ("rust-sdk-best", "official Rust SDK, best case"),
    ("ts-sdk", "TypeScript SDK"),
    ("py-sdk", "Python SDK"),
];

struct Metric {
    id: &'static str,
    heading: &'static str,
    /// How many of the unit in the results make one of the unit in the heading.
    divisor: f64,
}

/// Metrics in the order of the columns.
const METRICS: &[Metric] = &[
    metric("cpu_ms", "CPU, ms", 1.0),
    metric(CPU_A_MESSAGE, "CPU a message, µs", 1.0),
    metric("instructions", "instructions a message", 1.0),
    metric("wall_ms", "wall, ms", 1.0),
    metric("wall_us_a_message", "wall a message, µs", 1.0),
    metric("p50_us", "p50, µs", 1.0),
    metric("p99_us", "p99, µs", 1.0),
    metric("rss_kib", "peak RSS, MiB", 1024.0),
    metric("growth_kib", "peak growth, MiB", 1024.0),
    metric("kept_kib", "kept, MiB", 1024.0),
    metric("open_us", "CPU to open a session, µs", 1.0),
    metric("bound_kib", "bound, MiB", 1024.0),
    metric("rebuild_cpu_ms", "rebuild CPU, ms", 1.0),
    metric("rebuild_release_cpu_ms", "release rebuild CPU, ms", 1.0),
    metric("crates", "crates", 1.0),
    metric("stripped_bytes", "stripped, MB", 1e6),
];

const fn metric(id: &'static str, heading: &'static str, divisor: f64) -> Metric {
    Metric { id, heading, divisor }
}

/// Measured, or worked out from `cpu_ms` and the number of messages.
const CPU_A_MESSAGE: &str = "cpu_us_a_message";

/// How many messages a repetition had. It is no column.
const MESSAGES: &str = "messages";

/// Workload, peer, metric: what the repetitions measured.
#[derive(Default)]
struct Results(BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<f64>>>>);

impl Results {
    fn parse(lines: &str) -> io::Result<Self> {
        let mut results = Self::default();
        let is_ours = |line: &str| !line.trim().is_empty() && !is_of_remote(line);
        for (index, line) in lines.lines().enumerate().filter(|(_, line)| is_ours(line)) {
            let wrong = |what: &str| {
                let error = format!("line {} of the results: {what}", index + 1);
                io::Error::new(io::ErrorKind::InvalidData, error)
            };
            let value: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            let text = |name: &str| value[name].as_str().ok_or_else(|| wrong(&format!("`{name}` is not a string")));
            let (workload, peer) = (text("workload")?, text("peer")?);
            let metrics = value["metrics"].as_object().ok_or_else(|| wrong("`metrics` is not an object"))?;
            let mut numbers = BTreeMap::new();
            for (name, value) in metrics.iter().filter(|(_, value)| !value.is_null()) {
                let number = value.as_f64().ok_or_else(|| wrong(&format!("`{name}` is not a number")))?;
                numbers.insert(name.as_str(), number);
            }
            let usual = WORKLOADS.iter().find(|known| known.id == workload).and_then(|known| known.messages);
            let messages = numbers.remove(MESSAGES).or(usual);
            if let (Some(cpu_ms), Some(messages)) = (numbers.get("cpu_ms"), messages.filter(|count| *count > 0.0)) {
                numbers.insert(CPU_A_MESSAGE, cpu_ms * 1000.0 / messages);
            }
            let samples = results.0.entry(workload.to_owned()).or_default().entry(peer.to_owned()).or_default();
            for (name, number) in numbers {
                samples.entry(name.to_owned()).or_default().push(number);
            }
        }
        Ok(results)
    }

    fn spread(&self, workload: &str, peer: &str, metric: &str) -> Option<Spread> {
        Spread::of(self.0.get(workload)?.get(peer)?.get(metric)?)
    }

    /// The most repetitions that any peer had of any workload.
    fn repetitions(&self) -> usize {
        let metrics = self.0.values().flat_map(|peers| peers.values()).flat_map(|metrics| metrics.values());
        metrics.map(Vec::len).max().unwrap_or(0)
    }
}

/// What the repetitions have between them.
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: (low + high) / 2.0, min, max })
    }

    /// The spread in a unit that is this many times as large, as `3.20 (3.10–3.40)`.
    fn figures(&self, divisor: f64) -> String {
        let [median, min, max] = [self.median, self.min, self.max].map(|value| figure(value / divisor));
        if min == max { median } else { format!("{median} ({min}–{max})") }
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

/// What is there, in the order of the known; the unknown comes last.
fn in_order<'a>(known: impl Iterator<Item = &'a str>, there: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let mut ordered: Vec<&str> = known.filter(|known| there.clone().any(|found| found == *known)).collect();
    let unknown: Vec<&str> = there.filter(|found| !ordered.contains(found)).collect();
    ordered.extend(unknown);
    ordered
}

fn markdown(results: &Results, context: &Context) -> String {
    let mut page = String::from("# Speed, side by side\n\n");
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    line(format!("Made by `{}` on {}. Do not edit: the next run writes it anew.\n", context.command, context.date));
    line("![CPU time a message, Attaché and the others](speed.svg)\n".to_owned());
    line("| | |\n|---|---|".to_owned());
    let place = [("machine", &context.machine), ("processor", &context.cpu), ("kernel", &context.kernel)];
    let versions = context.versions.iter().map(|(name, version)| (name.as_str(), version));
    for (name, value) in place.into_iter().chain(versions) {
        line(format!("| {} | {} |", cell(name), cell(value)));
    }
    line(format!(
        "\nEvery figure is the median (minimum–maximum) of up to {} repetitions. The peers take turns within each \
         repetition. CPU is user and system time of the process under test.\n",
        results.repetitions()
    ));
    line("## Gates\n".to_owned());
    line(gate_table(results));
    for id in in_order(WORKLOADS.iter().map(|known| known.id), results.0.keys().map(String::as_str)) {
        let what = WORKLOADS.iter().find(|known| known.id == id).map_or("", |known| known.what);
        let title = heading_of(id);
        line(if what.is_empty() { format!("## {title}\n") } else { format!("## {title}: {what}\n") });
        line(workload_table(results, id));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// `w3b` is the id, `W3b` the heading.
fn heading_of(workload: &str) -> String {
    let mut characters = workload.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}

/// Text that stays within one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn gate_table(results: &Results) -> String {
    let mut table = String::from("| gate | at most | seen | |\n|---|---|---|---|\n");
    let mut counts = [0; 3];
    for gate in GATES {
        let (seen, verdict, column) = match gate.judge(results) {
            Seen::Met(seen) => (seen, "met", 0),
            Seen::NotMet(seen) => (seen, "**not met**", 1),
            Seen::NotMeasured => ("–".to_owned(), "not measured", 2),
        };
        counts[column] += 1;
        _ = writeln!(table, "| {} | {} | {seen} | {verdict} |", gate.id, gate.text);
    }
    let [met, missed, unknown] = counts;
    table + &format!("\n{met} met, {missed} not met, {unknown} not measured.\n")
}

/// One row a peer, one column a metric, and the ratios that the workload's gates look at.
fn workload_table(results: &Results, workload: &str) -> String {
    let peers = &results.0[workload];
    let names = peers.values().flat_map(BTreeMap::keys).map(String::as_str);
    let metrics = in_order(METRICS.iter().map(|known| known.id), names);
    let ratios = GATES.iter().filter(|gate| gate.workload == workload).filter_map(|gate| match gate.limit {
        Limit::Times(_, reference) => Some((gate.metric, reference)),
        Limit::AtMost(_) | Limit::Above(..) => None,
    });
    let ratios: Vec<(&str, &str)> = ratios.collect();
    let known = |id: &str| METRICS.iter().find(|known| known.id == id);

    let mut table = String::from("| peer |");
    for id in &metrics {
        _ = write!(table, " {} |", known(id).map_or_else(|| cell(id), |known| known.heading.to_owned()));
    }
    for (id, reference) in &ratios {
        let heading = known(id).map_or(*id, |known| known.heading);
        _ = write!(table, " {} ÷ {reference} |", heading.split(',').next().unwrap_or(heading));
    }
    _ = write!(table, "\n|---|{}\n", "--:|".repeat(metrics.len() + ratios.len()));
    for peer in in_order(PEERS.iter().map(|(id, _)| *id), peers.keys().map(String::as_str)) {
        let name = PEERS.iter().find(|(id, _)| *id == peer).map_or_else(|| cell(peer), |(_, name)| (*name).to_owned());
        _ = write!(table, "| {name} |");
        for id in &metrics {
            let divisor = known(id).map_or(1.0, |known| known.divisor);
            let figures = results.spread(workload, peer, id).map(|spread| spread.figures(divisor));
            _ = write!(table, " {} |", figures.unwrap_or_else(|| "–".to_owned()));
        }
        for (id, reference) in &ratios {
            let median = |peer: &str| results.spread(workload, peer, id).map(|spread| spread.median);
            let ratio = median(peer).zip(median(reference)).map(|(own, theirs)| format!("{} ×", figure(own / theirs)));
            _ = write!(table, " {} |", ratio.unwrap_or_else(|| "–".to_owned()));
        }
        table.push('\n');
    }
    table
}
