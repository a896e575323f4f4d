//! The report: tables in Markdown.

use std::fmt::Write;

use crate::results::{Record, spread};
use crate::{gates, peers, workloads};

/// The figures in the order of the columns, and how they are called.
const METRICS: &[(&str, &str)] = &[
    ("cpu_us", "CPU µs"),
    ("cpu_ms", "CPU ms"),
    ("cpu_s", "CPU s"),
    ("wall_us", "wall µs"),
    ("wall_ms", "wall ms"),
    ("p50_us", "p50 µs"),
    ("p99_us", "p99 µs"),
    ("open_us", "CPU µs to open a session"),
    ("instructions", "instructions"),
    ("rss_kib", "peak RSS KiB"),
    ("peak_mib", "peak RSS MiB"),
    ("growth_mib", "growth MiB"),
    ("growth_ratio", "growth × message"),
    ("kept_mib", "kept MiB"),
    ("crates", "crates"),
    ("stripped_mb", "stripped MB"),
    ("rebuild_cpu_s", "rebuild CPU s"),
    ("rebuild_release_cpu_s", "release rebuild CPU s"),
];

/// The whole report.
pub fn render(records: &[Record], setup: &str) -> String {
    let mut out = String::from("# Results\n\n");
    let _ = writeln!(out, "{setup}\n\n## Gates\n\n| | gate | at most | seen | |\n|---|---|---|---|---|");
    for gate in gates::all(records) {
        let Some(is_met) = gate.is_met() else { continue };
        let seen = gate.seen.map_or_else(String::new, number);
        let verdict = if is_met { "met" } else { "**missed**" };
        let _ = writeln!(out, "| {} | {} | {} | {seen} | {verdict} |", gate.workload, gate.what, number(gate.limit));
    }
    for (workload, about) in workloads::ALL {
        table(&mut out, records, workload, about);
    }
    out
}

fn table(out: &mut String, records: &[Record], workload: &str, about: &str) {
    let seen = |peer: &str, metric: &str| spread(records, workload, peer, metric);
    let rows = workloads::peers_of(workload);
    let columns: Vec<_> =
        METRICS.iter().filter(|(metric, _)| rows.iter().any(|peer| seen(peer, metric).is_some())).collect();
    let Some((main, _)) = columns.first() else { return };
    let reference = if matches!(workload, "w3p" | "w4" | "w4b" | "w7b") { "ht" } else { "ht-tokio" };
    let _ = writeln!(out, "\n## {}: {about}\n", workload.to_uppercase());
    let _ = write!(out, "| peer |");
    for (_, name) in &columns {
        let _ = write!(out, " {name} |");
    }
    let _ = writeln!(out, " × {reference} |\n|---|{}", "---|".repeat(columns.len() + 1));
    for peer in rows.iter().filter(|peer| columns.iter().any(|(metric, _)| seen(peer, metric).is_some())) {
        let _ = write!(out, "| {peer} |");
        for (metric, _) in &columns {
            let cell = seen(peer, metric).map_or_else(String::new, |spread| match spread.min < spread.max {
                true => format!("{} ({}–{})", number(spread.median), number(spread.min), number(spread.max)),
                false => number(spread.median),
            });
            let _ = write!(out, " {cell} |");
        }
        let ratio = seen(peer, main).zip(seen(reference, main)).map(|(ours, theirs)| ours.median / theirs.median);
        let _ = writeln!(out, " {} |", ratio.map_or_else(String::new, number));
    }
}

/// Three digits are all that can be told apart.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// What was measured, where, and how to do it again.
pub fn setup(command: &str, reps: usize) -> String {
    let first_line = |path: &str, prefix: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default();
        line.trim_start_matches([':', '\t', ' ']).to_owned()
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let version = |program: &str| {
        let output = std::process::Command::new(program).arg("--version").output();
        output.map_or_else(|_| "none".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut out = format!(
        "By `{command}`: {reps} repetitions, medians (minimum–maximum); peers alternate within each. CPU is user and \
         system time of the process under test, by message where there are many.\n\n\
         Machine: {cpus} × {}, Linux {}, {}, node {}, {}, {}.\n\n| peer | what |\n|---|---|\n",
        first_line("/proc/cpuinfo", "model name"),
        first_line("/proc/sys/kernel/osrelease", ""),
        version("rustc"),
        version("node"),
        version("python3"),
        version("valgrind"),
    );
    for peer in peers::AGENTS {
        let _ = writeln!(out, "| {peer} | {} |", peers::version(peer));
    }
    out
}
