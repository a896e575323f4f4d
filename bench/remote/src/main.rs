//! Measures the protocol over a network, beside the official HTTP crate and beside pipes.
//!
//!     remote [WORKLOAD…] [--reps N] [--quick]   measures, and writes results.jsonl and a part of RESULTS.md
//!     remote --report                           that part anew, from results.jsonl
//!     remote measure WORKLOAD PEER [--quick]    one measurement, as JSON
//!     remote serve|stdio attache|official       an agent under test

mod measure;
mod ours;
mod peer;
mod process;
mod report;
mod run;
mod serve;
mod theirs;

use std::process::ExitCode;

/// What can go wrong here is told to a person, and nothing else.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", agent] => block_on(serve::tcp(agent)),
        ["stdio", agent] => block_on(serve::stdio(agent)),
        ["measure", workload, peer] => block_on(measure::print(workload, peer, false)),
        ["measure", workload, peer, "--quick"] => block_on(measure::print(workload, peer, true)),
        _ => run::Options::parse(&words).and_then(|options| run::run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// On one thread, as `attache serve` does, and as everybody else here.
fn block_on(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
