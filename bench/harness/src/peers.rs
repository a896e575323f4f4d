//! Who is measured: a name, and the command that starts it.

use std::path::PathBuf;
use std::process::Stdio;

/// All agents under test, in the order of the tables.
pub const AGENTS: &[&str] = &["raw", "ht", "ht-tokio", "attache", "rust-sdk", "rust-sdk-best", "ts-sdk", "py-sdk"];
/// All clients under test.
pub const CLIENTS: &[&str] = &["ht", "attache", "rust-sdk", "ts-sdk", "py-sdk"];

/// What is measured, and measured with.
pub fn versions() -> Vec<(String, String)> {
    let python = peers_home().join("py-sdk/bin/python").to_string_lossy().into_owned();
    let said = |program: &str| {
        let output = std::process::Command::new(program).arg("--version").output();
        output.map_or_else(|_| "none".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    [
        ("Attaché", std::env::var("BENCH_COMMIT").unwrap_or_else(|_| "this repository".into())),
        ("official Rust SDK", "5.0.0".into()),
        ("TypeScript SDK", "2.4.0 on node ".to_owned() + &said("node")),
        ("Python SDK", "0.12.1 on ".to_owned() + &said(&python)),
        ("compiler", said("rustc")),
        ("valgrind", said("valgrind")),
    ]
    .map(|(name, version)| (name.to_owned(), version))
    .to_vec()
}

/// The bench directory.
pub fn home() -> PathBuf {
    PathBuf::from(std::env::var_os("BENCH_HOME").unwrap_or_else(|| ".".into()))
}

/// Where the SDKs in other languages are installed.
pub fn peers_home() -> PathBuf {
    PathBuf::from(std::env::var_os("PEERS_HOME").unwrap_or_else(|| home().join(".peers").into()))
}

/// The command of an agent, if it is installed.
pub fn agent(name: &str) -> Option<Vec<String>> {
    command("agent", name)
}

/// The command of a client, if it is installed.
pub fn client(name: &str) -> Option<Vec<String>> {
    command("client", name)
}

fn command(role: &str, name: &str) -> Option<Vec<String>> {
    let peers = peers_home();
    let command = match name {
        "ts-sdk" => vec!["node".into(), home().join(format!("peers/ts/{role}.mjs"))],
        "py-sdk" => vec![peers.join("py-sdk/bin/python"), home().join(format!("peers/py/{role}.py"))],
        _ => vec![target().join("release").join(format!("{role}-{name}"))],
    };
    let is_there = command.iter().all(|part| part.as_os_str() == "node" || part.exists());
    let is_there =
        is_there && (name != "ts-sdk" || peers.join("npm/tssdk/node_modules/@agentclientprotocol/sdk").exists());
    is_there.then(|| command.into_iter().map(|part| part.to_string_lossy().into_owned()).collect())
}

/// Where cargo builds to.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| home().join("target"), PathBuf::from)
}

/// What peers print on stderr is nothing that is measured; `BENCH_STDERR` shows it.
pub fn stderr() -> Stdio {
    if std::env::var_os("BENCH_STDERR").is_some() { Stdio::inherit() } else { Stdio::null() }
}
