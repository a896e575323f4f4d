//! Results as they come: one JSON object a line.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::workloads::Metrics;

/// The measurements of a run, written as they are made.
pub struct Results {
    pub path: PathBuf,
    file: File,
}

impl Results {
    /// Begins anew. What `bench/run remote` measured stays.
    pub fn create(path: &Path) -> io::Result<Self> {
        let before = std::fs::read_to_string(path).unwrap_or_default();
        let mut file = File::create(path)?;
        for line in before.lines().filter(|line| is_of_remote(line)) {
            writeln!(file, "{line}")?;
        }
        Ok(Results { path: path.to_owned(), file })
    }

    pub fn push(&mut self, workload: &str, peer: &str, rep: usize, metrics: &Metrics) -> io::Result<()> {
        // A thousandth is below what can be told apart.
        let value = |value: f64| json!((value * 1000.0).round() / 1000.0);
        let values: Map<String, Value> = metrics.iter().map(|(name, seen)| (name.to_string(), value(*seen))).collect();
        let line = json!({"workload": workload, "peer": peer, "rep": rep + 1, "metrics": values});
        writeln!(self.file, "{line}")
    }
}

/// Whether a line of the results was made by `bench/run remote`: its workloads are R1, R2 and so on.
pub fn is_of_remote(line: &str) -> bool {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    value["workload"].as_str().is_some_and(|workload| workload.starts_with('r'))
}
