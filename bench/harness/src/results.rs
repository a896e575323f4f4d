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
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Results { path: path.to_owned(), file: File::create(path)? })
    }

    pub fn push(&mut self, workload: &str, peer: &str, rep: usize, metrics: &Metrics) -> io::Result<()> {
        // A thousandth is below what can be told apart.
        let value = |value: f64| json!((value * 1000.0).round() / 1000.0);
        let values: Map<String, Value> = metrics.iter().map(|(name, seen)| (name.to_string(), value(*seen))).collect();
        let line = json!({"workload": workload, "peer": peer, "rep": rep + 1, "metrics": values});
        writeln!(self.file, "{line}")
    }
}
