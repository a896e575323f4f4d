//! W8: what it takes to build.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::peers;
use crate::workloads::{Metrics, quantile};

/// Whose builds are measured.
pub const PEERS: &[&str] = &["ht-tokio", "attache", "rust-sdk"];

pub fn measure(peer: &str) -> io::Result<Metrics> {
    let agent = peers::home().join("smallest").join(format!("{peer}-agent"));
    let target = peers::target().join("w8").join(peer);
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    // What is downloaded is not part of the build.
    run(&agent, &target, &["fetch", "--quiet"])?;
    let cpu = run(&agent, &target, &["build", "--release", "--quiet"])?;
    let binary = target.join("release").join(format!("smallest-{peer}-agent"));
    let mut metrics = vec![("cpu_ms", cpu), ("crates", crates(&agent)? as f64), ("stripped_bytes", stripped(&binary)?)];
    // The references have no client library to rebuild against.
    let client = peers::home().join("smallest").join(format!("{peer}-client"));
    if client.exists() {
        run(&client, &target, &["fetch", "--quiet"])?;
        metrics.push(("rebuild_cpu_ms", rebuild(&client, &target, &["build", "--quiet"])?));
        metrics.push(("rebuild_release_cpu_ms", rebuild(&client, &target, &["build", "--release", "--quiet"])?));
    }
    std::fs::remove_dir_all(&target)?;
    Ok(metrics)
}

/// What a rebuild takes after an edit.
fn rebuild(client: &Path, target: &Path, build: &[&str]) -> io::Result<f64> {
    run(client, target, build)?;
    let mut rebuilds = Vec::new();
    // A touch alone changes nothing, and the compiler notices. `BENCH_EDIT` is a word in its `main`: an edit.
    for edit in ["one", "two", "three"] {
        let main = client.join("src/main.rs");
        std::fs::File::options().append(true).open(main)?.set_modified(std::time::SystemTime::now())?;
        rebuilds.push(run_with(client, target, build, edit)?);
    }
    Ok(quantile(&mut rebuilds, 0.5))
}

/// Runs cargo and returns the CPU milliseconds of it and of all that it started.
fn run(directory: &Path, target: &Path, args: &[&str]) -> io::Result<f64> {
    run_with(directory, target, args, "")
}

fn run_with(directory: &Path, target: &Path, args: &[&str], edit: &str) -> io::Result<f64> {
    let before = children_cpu();
    let status = Command::new("cargo")
        .args(args)
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", target)
        .env("BENCH_EDIT", edit)
        .stderr(Stdio::inherit())
        .status()?;
    match status.success() {
        true => Ok(children_cpu() - before),
        false => Err(io::Error::other("cargo failed")),
    }
}

fn children_cpu() -> f64 {
    // SAFETY: all zero is a valid rusage, and it is ours.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let millis = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    millis(usage.ru_utime) + millis(usage.ru_stime)
}

/// How many crates there are besides the agent's own.
fn crates(directory: &Path) -> io::Result<usize> {
    let tree = Command::new("cargo")
        .args(["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
        .current_dir(directory)
        .output()?;
    let text = String::from_utf8_lossy(&tree.stdout).into_owned();
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(name_and_version).collect();
    lines.sort();
    lines.dedup();
    Ok(lines.len().saturating_sub(1))
}

/// The size without symbols, in bytes.
fn stripped(binary: &Path) -> io::Result<f64> {
    let stripped = binary.with_extension("stripped");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(binary).status()?;
    match status.success() {
        true => Ok(std::fs::metadata(&stripped)?.len() as f64),
        false => Err(io::Error::other("strip failed")),
    }
}
