//! Drives agents and clients as child processes over pipes, and measures what they take.

mod agents;
mod builds;
mod check;
mod clients;
mod driver;
mod instructions;
mod peers;
mod process;
mod report;
mod results;
mod workloads;

use std::io;
use std::process::ExitCode;

use results::Results;

struct Options {
    workloads: Vec<String>,
    peers: Option<Vec<String>>,
    reps: usize,
    is_quick: bool,
    report_only: bool,
    /// Measure coding agents instead.
    agents: bool,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Options { workloads: Vec::new(), peers: None, reps: 5, is_quick: false, report_only: false, agents: false };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--reps" => options.reps = value()?.parse().map_err(|_| "`--reps` needs a number")?,
                "--peers" => options.peers = Some(value()?.split(',').map(str::to_owned).collect()),
                "--quick" => options.is_quick = true,
                "--report" => options.report_only = true,
                "agents" => options.agents = true,
                word if workloads::ALL.contains(&word) => options.workloads.push(arg),
                _ => return Err(format!("there is no workload or option `{arg}`")),
            }
        }
        Ok(options)
    }

    fn is_full(&self) -> bool {
        self.workloads.is_empty() && self.peers.is_none() && !self.is_quick
    }

    fn wants(&self, workload: &str, peer: &str) -> bool {
        let by_name = self.workloads.is_empty() || self.workloads.iter().any(|name| name == workload);
        // Builds take minutes, so a quick look leaves them out.
        let is_asked = workload != "w8" || self.workloads.iter().any(|name| name == "w8") || self.is_full();
        by_name && is_asked && self.peers.as_ref().is_none_or(|peers| peers.iter().any(|name| name == peer))
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: run [agents | WORKLOAD…] [--reps N] [--peers A,B] [--quick] [--report]");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// False when something could not be measured.
fn run(options: &Options) -> io::Result<bool> {
    let home = peers::home();
    let command = std::env::var("BENCH_COMMAND").unwrap_or_else(|_| "bench/run".into());
    if options.agents {
        return agents::run(options.reps, options.peers.as_deref(), command);
    }
    if options.report_only {
        let command = command.replace(" --report", "");
        report::write(&home.join("results.jsonl"), &home, &report::Context::here(command, peers::versions()))?;
        return Ok(true);
    }
    let mut is_whole = check_wire(options)?;
    let path = if options.is_full() { home.join("results.jsonl") } else { peers::target().join("partial.jsonl") };
    let mut results = Results::create(&path)?;
    for rep in 0..options.reps {
        for workload in workloads::ALL {
            // A build takes minutes and varies little.
            if *workload == "w8" && rep > 0 {
                continue;
            }
            let mut peers: Vec<_> = workloads::peers_of(workload);
            peers.retain(|peer| options.wants(workload, peer));
            let count = peers.len().max(1);
            peers.rotate_left(rep % count);
            for peer in peers {
                eprint!("{}/{} {workload} {peer}", rep + 1, options.reps);
                match workloads::run(workload, peer, options.is_quick) {
                    Ok(metrics) => {
                        for (name, value) in &metrics {
                            eprint!("  {name} {value:.2}");
                        }
                        eprintln!();
                        results.push(workload, peer, rep, &metrics)?;
                    }
                    Err(error) => {
                        eprintln!("  {error}");
                        is_whole = false;
                    }
                }
            }
        }
    }
    is_whole &= count_instructions(options, &mut results)?;
    let context = report::Context::here(command, peers::versions());
    println!("{}", report::page(&results.path, &context)?);
    if options.is_full() {
        report::write(&results.path, &home, &context)?;
    }
    Ok(is_whole)
}

fn count_instructions(options: &Options, results: &mut Results) -> io::Result<bool> {
    let mut is_whole = true;
    for workload in ["w3", "w4"] {
        let peers = instructions::PEERS.iter().filter(|peer| workloads::peers_of(workload).contains(peer));
        for peer in peers.filter(|peer| options.wants(workload, peer)) {
            if !instructions::is_possible() {
                eprintln!("instructions are not counted: valgrind is missing");
                return Ok(is_whole);
            }
            match instructions::count(workload, peer) {
                Ok(count) => {
                    eprintln!("{workload} {peer}  instructions {count:.0}");
                    results.push(workload, peer, 0, &vec![("instructions", count)])?;
                }
                Err(error) => {
                    eprintln!("{workload} {peer}  instructions: {error}");
                    is_whole = false;
                }
            }
        }
    }
    Ok(is_whole)
}

/// Whether all agents say the same.
fn check_wire(options: &Options) -> io::Result<bool> {
    let Some(reference) = peers::agent("ht") else { return Err(io::Error::other("nothing is built: use bench/run")) };
    let expected = check::said(&reference)?;
    let mut is_same = true;
    for peer in
        peers::AGENTS.iter().filter(|peer| options.peers.as_ref().is_none_or(|only| only.iter().any(|o| o == *peer)))
    {
        let Some(agent) = peers::agent(peer) else {
            eprintln!("wire check: {peer} is not installed");
            continue;
        };
        match check::said(&agent) {
            Ok(said) if said == expected => eprintln!("wire check: {peer} says the same"),
            Ok(said) => {
                is_same = false;
                let differs = said.iter().zip(&expected).find(|(said, expected)| said != expected);
                eprintln!("wire check: {peer} DIFFERS, {} messages instead of {}", said.len(), expected.len());
                if let Some((said, expected)) = differs {
                    eprintln!("  {said}\n  {expected}");
                }
            }
            Err(error) => {
                is_same = false;
                eprintln!("wire check: {peer}: {error}");
            }
        }
    }
    Ok(is_same)
}
