//! Starting agents that are none, or that die: what a person is told.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::time::Duration;

use attache::process::Command;
use attache::{AgentExit, Client, Closed, Connection, Error, Event, LaunchCause, Protocol};

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
    for part in ["sh -c", "exited with status 3", "Welcome to the agent!", "out of cheese"] {
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

/// Launches `ANSWERS` with this reaction to a prompt.
async fn launch_answering(reaction: &str) -> Connection {
    let script = ANSWERS.replace("AFTER_PROMPT", reaction);
    Client::new("test", "1").protocol(Protocol::V1).launch(["sh", "-c", &script]).await.unwrap()
}

/// A bound on what must not hang.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("this ends soon")
}

#[track_caller]
fn exit_of(error: &Error) -> &AgentExit {
    match error {
        Error::Closed(Closed::AgentExited(exit)) => exit,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_fails_the_turn() {
    let agent = launch_answering("kill -9 $$").await;
    let session = agent.session("/tmp").open().await.unwrap();
    let failed = in_time(session.prompt("go").await.unwrap().text()).await.unwrap_err();
    assert_eq!(exit_of(&failed).status.signal, Some(9));
    assert_eq!(failed.to_string(), "agent was killed by signal 9 (SIGKILL)");
    let again = in_time(session.prompt("again")).await.unwrap_err();
    assert_eq!(exit_of(&again).status.signal, Some(9));
    let status = agent.shutdown().await.unwrap();
    assert_eq!(status.signal, Some(9));
}

#[tokio::test]
async fn the_death_of_an_agent_is_told_with_its_status_and_stderr_to_everybody_who_waits() {
    let agent = launch_answering("printf '\\033[31mout of\\033[0m cheese\\n' >&2; exit 3").await;
    let session = agent.session("/tmp").open().await.unwrap();
    let request = attache::model::session::ListSessionsRequest::new();
    let (turn, event, call) = in_time(async {
        tokio::join!(async { session.prompt("go").await?.text().await }, agent.next(), agent.call(&request))
    })
    .await;
    for error in [turn.unwrap_err(), event.unwrap_err(), call.unwrap_err()] {
        let exit = exit_of(&error);
        assert_eq!((exit.status.code, exit.stderr_tail.as_str()), (Some(3), "out of cheese\n"));
        assert_eq!(error.to_string(), "agent exited with status 3 (last stderr lines below)\nout of cheese");
    }
}

#[tokio::test]
async fn an_agent_that_exits_while_its_child_holds_stdout_open_ends_the_connection() {
    let agent = launch_answering("sleep 1000 & echo 'out of cheese' >&2; exit 3").await;
    let session = agent.session("/tmp").open().await.unwrap();
    let error = in_time(session.prompt("go").await.unwrap().text()).await.unwrap_err();
    let exit = exit_of(&error);
    assert_eq!((exit.status.code, exit.stderr_tail.as_str()), (Some(3), "out of cheese\n"));
}

#[tokio::test]
async fn what_an_agent_wrote_before_it_exited_is_read_first() {
    // Of more than a pipe holds, so that it exits when the client has begun to read.
    let reaction = r#"
      sleep 1000 &
      text=$(printf '%01000d' 0)
      for i in $(seq 200); do
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
        printf '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$text"
      done
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id"
      exit 0"#;
    let agent = launch_answering(reaction).await;
    let session = agent.session("/tmp").open().await.unwrap();
    let text = in_time(session.prompt("go").await.unwrap().text()).await.unwrap();
    assert_eq!(text.len(), 200_000);
    let gone = in_time(agent.next()).await.unwrap_err();
    assert_eq!(gone.to_string(), "agent exited with status 0");
}

#[tokio::test]
async fn a_request_to_an_agent_that_has_exited_is_told_of_its_exit_and_not_of_a_broken_pipe() {
    // It shows that nobody reads its stdin any more, and lives on for a moment.
    let reaction = r#"
      exec 0<&-
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
      printf '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bye"}}}}\n'
      echo 'out of cheese' >&2
      sleep 0.05
      exit 3"#;
    let agent = launch_answering(reaction).await;
    let session = agent.session("/tmp").open().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    assert!(matches!(in_time(turn.next()).await, Ok(Some(Event::Update(_)))));
    let error = in_time(agent.call(&attache::model::session::ListSessionsRequest::new())).await.unwrap_err();
    assert_eq!(exit_of(&error).status.code, Some(3));
    let error = in_time(turn.next()).await.map(drop).unwrap_err();
    assert_eq!(error.to_string(), "agent exited with status 3 (last stderr lines below)\nout of cheese");
}

#[tokio::test]
async fn shutting_down_ends_an_agent_that_does_not_listen() {
    let script = format!("trap '' TERM; {}; sleep 1000", ANSWERS.replace("AFTER_PROMPT", ":"));
    let client = Client::new("test", "1").protocol(Protocol::V1).shutdown_grace(Duration::from_millis(50));
    let agent = client.launch(["sh", "-c", &script]).await.unwrap();
    let status = in_time(agent.shutdown()).await.unwrap();
    assert_eq!(status.signal, Some(9));
}

#[tokio::test]
async fn an_agent_that_exits_before_it_answers_while_its_child_holds_stdout_open_fails_the_launch() {
    let error = in_time(launch("sleep 1000 & echo 'out of cheese' >&2; exit 3")).await;
    assert!(error.contains("exited with status 3") && error.ends_with("--- stderr\nout of cheese"), "{error}");
}

#[tokio::test]
async fn a_program_that_prints_without_end_is_no_agent() {
    let error = in_time(launch("yes 'Welcome to the agent!'")).await;
    assert!(error.contains("does not speak the Agent Client Protocol\nhint: "), "{error}");
    assert!(error.contains("--- stdout\nWelcome to the agent!\n"), "{error}");
}

#[tokio::test]
async fn an_agent_that_does_not_answer_is_given_up_with_all_it_said() {
    let (printed, mut wait_printed) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::new("test", "1").launch_timeout(Duration::from_secs(10));
    let client = client.on_report(move |report| printed.send(report.to_string()).unwrap());
    let script = "echo 'waiting for cheese' >&2; echo 'Welcome to the agent!'; cat >/dev/null";
    let launching = tokio::spawn(client.launch(["sh", "-c", script]));
    in_time(wait_printed.recv()).await.unwrap();
    // From here on, time passes as soon as there is nothing else to do.
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let error = launching.await.unwrap().unwrap_err();
    assert!(started.elapsed() <= Duration::from_secs(10));
    let Error::Launch(failure) = &error else { panic!("{error:?}") };
    assert!(matches!(failure.cause, LaunchCause::TimedOut(limit) if limit == Duration::from_secs(10)));
    let shown = error.to_string();
    for part in ["timed out after 10 s", "--- stdout\nWelcome to the agent!", "--- stderr\nwaiting for cheese"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[tokio::test]
async fn a_launch_may_take_for_ever() {
    let launched = Client::new("test", "1").launch_timeout(Duration::MAX).launch(["true"]).await;
    assert!(matches!(launched, Err(Error::Launch(_))), "{launched:?}");
}

#[tokio::test]
async fn arguments_in_the_name_of_a_program_are_explained() {
    let error = Client::new("test", "1").launch("no-such-agent --acp").await.unwrap_err();
    let hint = r#"hint: give the arguments separately: ["no-such-agent", "--acp"]"#;
    assert!(error.to_string().ends_with(hint), "{error}");
    let error = Client::new("test", "1").launch("/no/such/agent --acp").await.unwrap_err();
    assert!(error.to_string().ends_with(r#"["/no/such/agent", "--acp"]"#), "{error}");
}

#[tokio::test]
async fn a_program_that_echoes_is_no_agent() {
    let error = in_time(launch("exec cat")).await;
    assert!(error.starts_with("`sh -c 'exec cat'` does not speak the Agent Client Protocol\nhint: "), "{error}");
}

#[tokio::test]
async fn what_main_prints_of_an_error_is_its_text() {
    let error = Client::new("test", "1").launch(["no-such-agent-anywhere"]).await.unwrap_err();
    assert!(error.to_string().starts_with("program `no-such-agent-anywhere` not found"));
    assert_eq!(format!("{error:?}"), error.to_string());
    let Error::Launch(failure) = &error else { panic!("{error}") };
    assert_eq!(format!("{failure:?}"), error.to_string());
    let refused = Error::Refused(attache::model::error::ErrorObject::new(7, "\x1b[2Jno\u{7}"));
    assert_eq!(format!("{refused:?}"), refused.to_string().replace(['\x1b', '\u{7}'], ""));
}

#[tokio::test]
async fn rubbish_before_the_first_message_is_reported_once() {
    let (noted, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::new("test", "1").protocol(Protocol::V1).strict();
    let client = client.on_report(move |report| noted.send(report.to_string()).unwrap());
    let banner = r"printf 'Welcome!\n\377\377\n'; yes rubbish | head -100; ";
    let in_a_turn = r#"echo rubbish; echo rubbish; exit"#;
    let script = format!("{banner} {}", ANSWERS.replace("AFTER_PROMPT", in_a_turn));
    let agent = in_time(client.launch(["sh", "-c", &script])).await.unwrap();
    assert!(reports.recv().await.unwrap().ends_with("message is not JSON"));
    assert!(reports.try_recv().is_err());
    let session = agent.session("/tmp").open().await.unwrap();
    in_time(session.prompt("go").await.unwrap().text()).await.unwrap_err();
    let mut later = Vec::new();
    while let Ok(report) = reports.try_recv() {
        later.push(report);
    }
    assert_eq!(later.len(), 2, "an agent that has spoken is reported every time: {later:?}");
}

fn without_runtime<T>(future: impl Future<Output = Result<T, Error>>) -> String {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => error.to_string(),
        _ => panic!("nothing can be done without a runtime"),
    }
}

#[test]
fn a_missing_runtime_is_named() {
    const NEEDED: &str = "needs a tokio runtime with IO and time enabled";
    let client = || Client::new("test", "1");
    let server = || attache::serve(attache::agent_fn("test", "1", async |_, _| Ok(attache::Stop::EndTurn)));
    let (near, far) = attache::pair();
    let (reader, writer) = tokio::io::split(tokio::io::duplex(64).0);
    let (other_reader, other_writer) = tokio::io::split(tokio::io::duplex(64).0);
    for error in [
        without_runtime(client().launch(["true"])),
        without_runtime(client().over(near)),
        without_runtime(client().connect(reader, writer)),
        without_runtime(server().stdio()),
        without_runtime(server().over(far)),
        without_runtime(server().connect(other_reader, other_writer)),
    ] {
        assert!(error.contains(NEEDED), "{error}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(client().launch(["true"])).unwrap_err().to_string();
    assert!(error.contains(NEEDED), "{error}");
}
