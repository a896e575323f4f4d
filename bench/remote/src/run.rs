//! A whole run: every workload with every peer, in turns.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::measure::WORKLOADS;
use crate::{Error, report};

/// Workloads of the program `stores`, with their stores.
const STORES: &[(&str, &[&str])] = &[("r6", &["files", "postgres"]), ("r7", &["files", "postgres"])];

pub struct Options {
    workloads: Vec<String>,
    reps: usize,
    is_quick: bool,
    report_only: bool,
}

impl Options {
    pub fn parse(words: &[&str]) -> Result<Self, Error> {
        let mut options = Options { workloads: Vec::new(), reps: 5, is_quick: false, report_only: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--reps" => options.reps = words.next().ok_or("`--reps` needs a number")?.parse()?,
                "--quick" => options.is_quick = true,
                "--report" => options.report_only = true,
                word if all().any(|(known, _)| *known == word) => options.workloads.push(word.to_owned()),
                word => return Err(format!("there is no workload or option `{word}`").into()),
            }
        }
        Ok(options)
    }

    fn wants(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|wanted| wanted == workload)
    }
}

fn all() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    WORKLOADS.iter().chain(STORES)
}

pub fn run(options: &Options) -> Result<(), Error> {
    let home = PathBuf::from(std::env::var_os("BENCH_HOME").unwrap_or_else(|| ".".into()));
    let results = home.join("results.jsonl");
    if options.report_only {
        return report::write(&std::fs::read_to_string(&results)?, &home);
    }
    let mut lines = String::new();
    let mut failures = 0;
    for rep in 0..options.reps {
        for (workload, peers) in all() {
            if !options.wants(workload) {
                continue;
            }
            // What takes long and counts for itself is done twice at most.
            if matches!(*workload, "r5" | "r7") && rep > 1 {
                continue;
            }
            let mut peers = peers.to_vec();
            let count = peers.len();
            peers.rotate_left(rep % count);
            for peer in peers {
                eprint!("{}/{} {workload} {peer}", rep + 1, options.reps);
                match measure(workload, peer, options.is_quick) {
                    Ok(Value::Null) => eprintln!("  left out"),
                    Ok(metrics) => {
                        eprintln!("  {metrics}");
                        let line = json!({"workload": workload, "peer": peer, "rep": rep + 1, "metrics": metrics});
                        writeln!(lines, "{line}")?;
                    }
                    Err(error) => {
                        eprintln!("  {error}");
                        failures += 1;
                    }
                }
            }
        }
    }
    print!("{}", report::tables(&lines)?);
    if !options.is_quick {
        let all = others(&results, options)? + &lines;
        std::fs::write(&results, &all)?;
        report::write(&all, &home)?;
    }
    if failures > 0 { Err(format!("{failures} measurements failed").into()) } else { Ok(()) }
}

/// The results of other programs, and of workloads that were not measured now.
fn others(results: &Path, options: &Options) -> Result<String, Error> {
    let text = std::fs::read_to_string(results)?;
    let is_ours = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        all().any(|(workload, _)| value["workload"] == *workload && options.wants(workload))
    };
    Ok(text.lines().filter(|line| !is_ours(line)).map(|line| format!("{line}\n")).collect())
}

/// One measurement in a process of its own; null where it is not possible.
fn measure(workload: &str, peer: &str, is_quick: bool) -> Result<Value, Error> {
    let mut program = std::env::current_exe()?;
    let is_store = STORES.iter().any(|(known, _)| *known == workload);
    if is_store {
        program.set_file_name("stores");
    }
    let mut command = Command::new(program);
    command.args((!is_store).then_some("measure")).args([workload, peer]).args(is_quick.then_some("--quick"));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("it failed".into());
    }
    let metrics: Value = serde_json::from_slice(&output.stdout)?;
    Ok(rounded(metrics))
}

/// A thousandth is below what can be told apart.
fn rounded(mut metrics: Value) -> Value {
    for value in metrics.as_object_mut().into_iter().flat_map(|metrics| metrics.values_mut()) {
        if let Some(number) = value.as_f64() {
            *value = json!((number * 1000.0).round() / 1000.0);
        }
    }
    metrics
}
