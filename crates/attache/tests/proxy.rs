//! The example proxy as a process: it leaves when either side does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use attache::process::Command;
use attache::{Client, Closed, Error};
use tokio::io::AsyncReadExt as _;

/// Less than the two seconds that a relay gives an agent to leave: one that is told to is quicker.
const SOON: Duration = Duration::from_millis(1500);

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(20);

/// An example, which Cargo builds beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "missing {}; build it with `cargo build -p attache --examples`", path.display());
    path
}

/// The proxy in front of a shell script.
fn proxy_of(script: &str) -> Command {
    Command::new(example("prompt_proxy")).args(["sh", "-c", script])
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("this ends soon")
}

#[tokio::test]
async fn a_proxy_ends_with_its_agent_though_its_client_says_nothing() {
    let (mut proxy, _stdin, mut stdout) = proxy_of("sleep 0.2; exit 3").spawn().unwrap();
    let mut heard = String::new();
    in_time(stdout.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "");
    assert!(in_time(proxy.wait()).await.success());
}

#[tokio::test]
async fn a_turn_fails_when_the_agent_behind_a_proxy_dies_in_it() {
    let answers = r#"
      while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case $line in
          *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id" ;;
          *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id" ;;
          *) echo 'out of cheese' >&2; exit 3 ;;
        esac
      done"#;
    let agent = in_time(Client::new("test", "1").launch(proxy_of(answers))).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let error = in_time(session.prompt("go").await.unwrap().text()).await.unwrap_err();
    let Error::Closed(Closed::AgentExited(exit)) = &error else { panic!("{error}") };
    assert_eq!(exit.stderr_tail, "out of cheese\n", "what the agent said last is passed on");
}

#[tokio::test]
async fn a_proxy_ends_at_once_when_there_is_no_client() {
    let started = Instant::now();
    let mut proxy = tokio::process::Command::new(example("prompt_proxy"));
    proxy.arg(example("echo_agent")).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let status = in_time(proxy.status()).await.unwrap();
    assert!(status.success() && started.elapsed() < SOON, "{status} after {:?}", started.elapsed());
}

#[tokio::test]
async fn a_proxy_leaves_by_itself_when_its_client_does() {
    let command = Command::new(example("prompt_proxy")).args([example("echo_agent")]);
    let agent = in_time(Client::new("test", "1").launch(command)).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let text = in_time(session.prompt("hello").await.unwrap().text()).await.unwrap();
    assert!(text.starts_with("hello") && text.ends_with("Answer in one sentence."), "{text}");
    drop(session);
    let started = Instant::now();
    let status = in_time(agent.shutdown()).await.unwrap();
    assert!(status.success() && started.elapsed() < SOON, "{status} after {:?}", started.elapsed());
}
