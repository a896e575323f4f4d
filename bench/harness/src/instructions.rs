//! Instructions a message, counted by valgrind: the slope between two sizes, so that the start does not count.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::driver::Driver;
use crate::{clients, peers};

/// Whose instructions are counted.
pub const PEERS: &[&str] = &["ht", "ht-tokio", "attache", "rust-sdk"];

const SMALL: usize = 1_000;
const LARGE: usize = 6_000;

/// Whether there is a valgrind.
pub fn is_possible() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Instructions a message.
pub fn count(workload: &str, peer: &str) -> io::Result<f64> {
    let missing = || io::Error::other("not installed");
    let is_client = workload == "w4";
    let command = if is_client { peers::client(peer) } else { peers::agent(peer) }.ok_or_else(missing)?;
    let mut totals = Vec::new();
    for size in [SMALL, LARGE] {
        let directory = peers::target().join("callgrind");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory)?;
        let mut counted: Vec<String> = ["valgrind", "--tool=callgrind", "--quiet"].map(String::from).to_vec();
        counted.push(format!("--callgrind-out-file={}/%p", directory.display()));
        counted.extend(command.iter().cloned());
        if is_client {
            let status = clients::command(&counted, &format!("w3 {size} 80")).spawn()?.wait()?;
            if !status.success() {
                return Err(io::Error::other("the client failed under valgrind"));
            }
        } else {
            let (mut driver, session) = Driver::open(&counted)?;
            driver.prompt(&session, &format!("w3 {size} 80"))?;
            driver.drain(1)?;
            driver.finish()?;
        }
        totals.push(largest_total(&directory)?);
    }
    Ok((totals[1] - totals[0]) / (LARGE - SMALL) as f64)
}

/// The total of the process that did the most: forks that became another program did little before.
fn largest_total(directory: &Path) -> io::Result<f64> {
    let mut totals = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let total = text.lines().find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")));
        totals.extend(total.and_then(|total| total.trim().parse::<f64>().ok()));
    }
    totals.into_iter().reduce(f64::max).ok_or_else(|| io::Error::other("valgrind left no counts"))
}
