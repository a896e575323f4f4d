//! The gates: what Attaché may need at most.

use crate::results::{Record, spread};

/// One gate, and what was seen.
pub struct Gate {
    pub workload: &'static str,
    pub what: String,
    pub limit: f64,
    pub seen: Option<f64>,
}

impl Gate {
    pub fn is_met(&self) -> Option<bool> {
        self.seen.map(|seen| seen <= self.limit)
    }
}

/// (workload, metric, reference or nothing for an absolute figure, limit, words)
const GATES: &[(&str, &str, Option<&str>, f64, &str)] = &[
    ("w1", "cpu_ms", Some("ht-tokio"), 1.2, "CPU to start"),
    ("w1", "rss_kib", None, 3.5 * 1024.0, "KiB resident at the start"),
    ("w2", "cpu_us", Some("ht-tokio"), 1.5, "CPU a request"),
    ("w3", "cpu_us", Some("ht-tokio"), 2.0, "CPU a message, burst"),
    ("w3", "instructions", None, 6000.0, "instructions a message"),
    ("w3p", "cpu_us", Some("ht"), 2.0, "CPU a message, paced"),
    ("w3b", "cpu_us", Some("ht-tokio"), 1.3, "CPU a message of 4 KiB"),
    ("w4", "cpu_us", Some("ht"), 2.0, "CPU a message received"),
    ("w4", "instructions", None, 16000.0, "instructions a message received"),
    ("w4b", "cpu_us", Some("ht"), 1.4, "CPU a message of 4 KiB received"),
    ("w5", "cpu_ms", Some("ht-tokio"), 1.2, "CPU of a 16 MiB prompt"),
    ("w5", "growth_ratio", None, 3.0, "× the message, peak growth"),
    // Allocators keep a little for later; what counts is that nothing of the message's size stays.
    ("w5", "kept_mib", None, 2.0, "MiB kept a second later"),
    ("w6a", "cpu_us", Some("ht-tokio"), 1.5, "CPU an update, 1,000 sessions"),
    ("w6b", "cpu_us", Some("ht-tokio"), 2.0, "CPU a read, 200 outstanding"),
    // The bounds of `Limits::default()`: an outbox of 256 KiB, an inbox of 8 MiB.
    ("w7", "growth_mib", None, 0.25 + 2.0, "MiB of growth, nobody reads"),
    ("w7b", "growth_mib", None, 8.0 + 2.0, "MiB of growth, client stalled"),
    ("w8", "cpu_s", Some("ht-tokio"), 1.5, "CPU of a clean build"),
    ("w8", "crates", None, 30.0, "crates"),
    ("w8", "stripped_mb", None, 1.3, "MB stripped"),
    ("w8", "rebuild_cpu_s", None, 3.0, "CPU seconds to rebuild a client"),
];

/// All gates with what was seen.
pub fn all(records: &[Record]) -> Vec<Gate> {
    let gate = |(workload, metric, reference, limit, words): &(&'static str, &str, Option<&str>, f64, &str)| {
        let ours = spread(records, workload, "attache", metric).map(|spread| spread.median);
        let (seen, what) = match reference {
            None => (ours, (*words).to_owned()),
            Some(reference) => {
                let theirs = spread(records, workload, reference, metric).map(|spread| spread.median);
                (ours.zip(theirs).map(|(ours, theirs)| ours / theirs), format!("× {reference}, {words}"))
            }
        };
        Gate { workload, what, limit: *limit, seen }
    };
    GATES.iter().map(gate).collect()
}
