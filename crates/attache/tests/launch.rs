//! Starting agents that are none, or that die: what a person is told.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::time::{Duration, Instant};

use attache::process::Command;
use attache::{Client, Error, Protocol};

/// What launching a shell script comes to.
async fn launch(script: &str) -> String {
    let command = Command::from(["sh", "-c", script]).env("API_KEY", "hush-hush");
    let launched = Client::new("test", "1").launch(command).await;
    let error = launched.expect_err("this is no agent");
    assert!(!format!("{error} {error:?}").contains("hush-hush"), "secrets are not shown");
    error.to_string()
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_a_hint() {
    let error = Client::new("test", "1").launch(["no-such-agent-anywhere", "--acp"]).await.unwrap_err().to_string();
    assert!(error.contains("`no-such-agent-anywhere`") && error.contains("hint:"), "{error}");
}

#[tokio::test]
async fn an_agent_that_dies_at_once_is_shown_with_all_it_said() {
    let error = launch("echo 'Welcome to the agent!'; echo 'out of cheese' >&2; exit 3").await;
    for part in ["sh -c", "exit code 3", "Welcome to the agent!", "out of cheese"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_is_shown_with_its_signal() {
    let error = launch("kill -9 $$").await;
    assert!(error.contains("SIGKILL"), "{error}");
}

#[tokio::test]
async fn escape_sequences_of_an_agent_do_not_reach_the_terminal() {
    let error = launch("printf '\\033[31mred\\033[0m\\n'; printf '\\033]0;title\\007x\\n' >&2; exit 1").await;
    assert!(!error.contains('\x1b') && !error.contains('\x07'), "{error:?}");
}

#[tokio::test]
async fn an_agent_that_answers_nonsense_is_refused() {
    let script =
        r#"read -r line; printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"1"}}\n'; cat >/dev/null"#;
    let error = Client::new("test", "1").launch(["sh", "-c", script]).await.unwrap_err();
    assert!(matches!(error, Error::BadAnswer { method: "initialize", .. }), "{error}");
    let script = r#"read -r line; printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":7}}\n'; cat >/dev/null"#;
    let error = Client::new("test", "1").launch(["sh", "-c", script]).await.unwrap_err();
    assert!(matches!(error, Error::Version { peer: 7 }), "{error}");
}

/// A shell that answers `initialize` and `session/new` in version 1, however often it is greeted.
const ANSWERS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id" ;;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id" ;;
    *'"session/prompt"'*) AFTER_PROMPT ;;
  esac
done"#;

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_fails_the_turn() {
    let script = ANSWERS.replace("AFTER_PROMPT", "kill -9 $$");
    let client = Client::new("test", "1").read_files();
    let agent = client.launch(["sh", "-c", &script]).await.unwrap();
    assert_eq!(agent.dialect(), attache::Dialect::V1);
    let session = agent.session("/tmp").open().await.unwrap();
    let failed = session.prompt("go").await.unwrap().text().await;
    assert!(matches!(failed, Err(Error::Closed(_))), "{failed:?}");
    assert!(matches!(session.prompt("again").await, Err(Error::Closed(_))));
    let status = agent.shutdown().await.unwrap();
    assert_eq!(status.signal, Some(9));
}

#[tokio::test]
async fn shutting_down_ends_an_agent_that_does_not_listen() {
    let script = format!("trap '' TERM; {}; sleep 1000", ANSWERS.replace("AFTER_PROMPT", ":"));
    let agent = Client::new("test", "1").protocol(Protocol::V1).launch(["sh", "-c", &script]).await.unwrap();
    let started = Instant::now();
    let status = agent.shutdown().await.unwrap();
    assert!(!status.success() && started.elapsed() < Duration::from_secs(15), "{status} after {:?}", started.elapsed());
}
