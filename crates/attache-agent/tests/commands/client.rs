//! Commands with a client: in its terminals, or shown to it as ours.

use std::sync::Mutex;

use attache::model::tool::ToolCallContent;
use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Event, Prompt, Protocol, SessionView, Stop, Turn};
use attache_host::terminals::{Limits, Terminals};
use serde_json::json;

use super::*;

/// An agent that runs every prompt as a command, in the way that it will be done: what is shown is said while it runs,
/// and a cancelled turn drops it.
fn agent(cwd: PathBuf, outcomes: Arc<Mutex<Vec<Outcome>>>) -> impl attache::agent::Agent {
    attache::process::use_keeper();
    attache::agent_fn("runner", "1", move |turn: Turn, prompt: Prompt| {
        let (cwd, outcomes) = (cwd.clone(), outcomes.clone());
        async move {
            let spill = Arc::new(Spill::new(cwd.join("spill")));
            let setup = Setup { client: Some((*turn).clone()), sandbox: SandboxMode::Off, ..Setup::new(&cwd, spill) };
            let commands = Commands::new(setup);
            let arguments = json!({"command": prompt.text(), "timeout_seconds": 5});
            let prepared = commands.prepare("run_command", &arguments).await.unwrap().unwrap();
            let tool = turn.tool(prepared.title).await?;
            let (live, mut shown) = Live::channel();
            let say = async |shown: Shown| match shown {
                Shown::Content(content) => {
                    let content = attache::model::Patch::Set(content);
                    tool.update(tool.blank().with(|update| update.content = content)).await
                }
                Shown::Update(update) => turn.update(update).await,
            };
            let mut performing = Box::pin(turn.unless_cancelled(commands.perform(prepared.work, &live)));
            let outcome = loop {
                tokio::select! {
                    biased;
                    Some(next) = shown.recv() => say(next).await?,
                    outcome = &mut performing => break outcome,
                }
            };
            drop(performing);
            drop(live);
            while let Some(next) = shown.recv().await {
                say(next).await?;
            }
            outcomes.lock().unwrap().push(outcome?);
            Ok(Stop::EndTurn)
        }
    })
}

async fn connect(client: Client, agent: impl attache::agent::Agent) -> Connection {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let (reader, writer) = tokio::io::split(near);
    client.connect(reader, writer).await.unwrap()
}

/// Runs a line under a v1 client with terminals. Gives what came of it and what happened, in order. `cancel` ends the
/// turn once the terminal is there.
async fn run_at_client(line: &str, cwd: &Path, cancel: bool) -> (Option<Outcome>, Vec<String>) {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new("test", "1").protocol(Protocol::V1).terminals();
    let connection = connect(client, agent(cwd.to_owned(), outcomes.clone())).await;
    let session = connection.session(cwd.to_str().unwrap()).open().await.unwrap();
    let terminals = Arc::new(Terminals::new(Limits::default()));
    let mut turn = session.prompt(line).await.unwrap();
    let mut log = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::CreateTerminal(call) => {
                assert_eq!(call.output_byte_limit, Some(1 << 20));
                log.push(format!("create {} {:?}", call.command, call.args[0]));
                let request = call.request().clone();
                assert_eq!(Path::new(request.cwd.as_deref().unwrap()), cwd);
                assert!(request.env.iter().any(|variable| variable.name == "GIT_PAGER"));
                let created = terminals.create(&request, cwd).unwrap();
                call.reply(Ok(created)).await.unwrap();
                if cancel {
                    pids(cwd).await;
                    turn.cancel().await.unwrap();
                }
            }
            Event::WaitForTerminalExit(call) => {
                let terminals = terminals.clone();
                tokio::spawn(async move {
                    let exit = terminals.wait_for_exit(call.request()).await.map_err(|error| error.to_peer());
                    call.reply(exit).await
                });
            }
            Event::TerminalOutput(call) => {
                log.push("output".into());
                let output = terminals.output(call.request()).unwrap();
                call.reply(Ok(output)).await.unwrap();
            }
            Event::KillTerminal(call) => {
                log.push("kill".into());
                let killed = terminals.kill(call.request()).await.unwrap();
                call.reply(Ok(killed)).await.unwrap();
            }
            Event::ReleaseTerminal(call) => {
                log.push("release".into());
                let released = terminals.release(call.request()).unwrap();
                call.reply(Ok(released)).await.unwrap();
            }
            Event::Update(SessionUpdate::ToolCallUpdate(update)) => {
                if let Some([ToolCallContent::Terminal(_)]) = update.content.set().map(Vec::as_slice) {
                    log.push("embed".into());
                }
            }
            Event::Update(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let outcome = outcomes.lock().unwrap().pop();
    (outcome, log)
}

#[tokio::test]
async fn a_version_1_client_with_terminals_runs_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let work = run_at_client("echo 'a b' | cat; exit 2", directory.path(), false);
    let (outcome, log) = tokio::time::timeout(LONG, work).await.unwrap();
    let outcome = outcome.unwrap();
    assert_eq!((text(&outcome), outcome.is_error), ("exit code 2\n\na b\n".into(), true));
    assert_eq!(outcome.content, None, "the terminal stays");
    assert_eq!(log, ["create sh \"-c\"", "embed", "output", "release"]);
}

#[tokio::test]
async fn a_command_in_a_clients_terminal_has_a_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, log) = tokio::time::timeout(LONG, run_at_client(TREE, directory.path(), false)).await.unwrap();
    let outcome = outcome.unwrap();
    assert!(outcome.is_error && text(&outcome).ends_with("\n\nready\n"), "{outcome:?}");
    assert_eq!(log, ["create sh \"-c\"", "embed", "kill", "output", "release"]);
    are_gone(&pids(directory.path()).await).await;
}

#[tokio::test]
async fn a_cancelled_command_in_a_clients_terminal_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, log) = tokio::time::timeout(LONG, run_at_client(TREE, directory.path(), true)).await.unwrap();
    assert!(outcome.is_none());
    assert_eq!(log.last().unwrap(), "release", "{log:?}");
    are_gone(&pids(directory.path()).await).await;
}

/// Runs a line under a v2 client. Gives what came of it, and what the client knows then.
async fn run_under_v2(line: &str, cwd: &Path, cancel: bool) -> (Option<Outcome>, SessionView) {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new("test", "1").protocol(Protocol::V2);
    let connection = connect(client, agent(cwd.to_owned(), outcomes.clone())).await;
    let session = connection.session(cwd.to_str().unwrap()).open().await.unwrap();
    let mut turn = session.prompt(line).await.unwrap();
    let mut view = SessionView::new();
    while let Some(event) = turn.next().await.unwrap() {
        let Event::Update(update) = event else { panic!("{event:?}") };
        let known = view.terminals.len();
        view.apply(&update);
        if cancel && view.terminals.len() > known {
            pids(cwd).await;
            turn.cancel().await.unwrap();
        }
    }
    let outcome = outcomes.lock().unwrap().pop();
    (outcome, view)
}

#[tokio::test]
async fn a_version_2_client_is_shown_a_terminal_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let line = "printf 'caf\\303'; sleep 0.2; printf '\\251\\n'; exit 3";
    let work = run_under_v2(line, directory.path(), false);
    let (outcome, view) = tokio::time::timeout(LONG, work).await.unwrap();
    let outcome = outcome.unwrap();
    assert_eq!((text(&outcome), outcome.is_error), ("exit code 3\n\ncafé\n".into(), true));
    let (id, terminal) = view.terminals.first_key_value().unwrap();
    assert_eq!(terminal.command.as_deref(), Some(line));
    assert_eq!(terminal.cwd.as_deref(), directory.path().to_str());
    assert_eq!(terminal.output.text(), "café\n");
    assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
    let call = view.tool_calls().next().unwrap();
    assert!(matches!(&call.content[..], [ToolCallContent::Terminal(shown)] if shown.terminal_id == *id));

    let (_, again) = run_under_v2("true", directory.path(), false).await;
    assert_ne!(again.terminals.first_key_value().unwrap().0, id, "no name comes twice");
}

#[tokio::test]
async fn a_flood_is_shown_to_a_version_2_client_by_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let work = run_under_v2("seq 3000000", directory.path(), false);
    let (_, view) = tokio::time::timeout(LONG, work).await.unwrap();
    let terminal = view.terminals.values().next().unwrap();
    assert!(terminal.output.text().ends_with("\n2999999\n3000000\n"));
    assert!(terminal.output.bytes().len() <= 64 << 10);
}

#[tokio::test]
async fn a_terminal_of_a_cancelled_command_has_ended_for_the_client_too() {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, view) = tokio::time::timeout(LONG, run_under_v2(TREE, directory.path(), true)).await.unwrap();
    assert!(outcome.is_none());
    let terminal = view.terminals.values().next().unwrap();
    assert!(terminal.exit_status.is_some(), "{terminal:?}");
    are_gone(&pids(directory.path()).await).await;
}
