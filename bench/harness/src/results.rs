//! Results: one JSON object a line, and the medians of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::workloads::Metrics;

/// One measurement.
#[derive(Debug, Clone)]
pub struct Record {
    pub workload: String,
    pub peer: String,
    pub metrics: Vec<(String, f64)>,
}

/// The middle, the least and the most of what was seen.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// All measurements of a run, written as they come.
pub struct Results {
    file: File,
    pub records: Vec<Record>,
}

impl Results {
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Results { file: File::create(path)?, records: Vec::new() })
    }

    pub fn push(&mut self, workload: &str, peer: &str, rep: usize, metrics: &Metrics) -> io::Result<()> {
        let values: Map<String, Value> = metrics.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
        let line = json!({"workload": workload, "peer": peer, "rep": rep, "metrics": values});
        writeln!(self.file, "{line}")?;
        self.records.push(Record::from_json(&line));
        Ok(())
    }
}

impl Record {
    fn from_json(line: &Value) -> Self {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let metrics = line["metrics"].as_object().into_iter().flatten();
        let metrics = metrics.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect();
        Record { workload: text("workload"), peer: text("peer"), metrics }
    }
}

/// Reads results that were written before.
pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| Ok(Record::from_json(&serde_json::from_str(line)?))).collect()
}

/// What was seen of one figure.
pub fn spread(records: &[Record], workload: &str, peer: &str, metric: &str) -> Option<Spread> {
    let of_peer = records.iter().filter(|record| record.workload == workload && record.peer == peer);
    let mut values: Vec<f64> = of_peer
        .flat_map(|record| &record.metrics)
        .filter(|(name, _)| name == metric)
        .map(|(_, value)| *value)
        .collect();
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(Spread { median: (low + high) / 2.0, min: values[0], max: values[values.len() - 1] })
}
