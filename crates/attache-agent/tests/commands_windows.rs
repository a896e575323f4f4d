//! Commands of the agent on Windows, by `cmd`: what they print, how they end, and that they end with all they started.
#![cfg(windows)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_agent::cut::Spill;
use attache_agent::model::Part;
use attache_agent::tools::Live;
use attache_agent::tools::commands::{Commands, SandboxMode, SandboxState, Setup};
use attache_host::commands::{Shell, ShellKind, shell, use_shell};
use serde_json::{Value, json};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

struct Place {
    directory: tempfile::TempDir,
    commands: Arc<Commands>,
}

impl Place {
    fn new(sandbox: SandboxMode) -> Self {
        // Whatever else is installed here. All tests of a program say the same, so it does not matter who is first.
        let program = PathBuf::from(std::env::var_os("SystemRoot").unwrap()).join("System32").join("cmd.exe");
        use_shell(Shell { kind: ShellKind::Cmd, program });
        assert_eq!(shell().kind, ShellKind::Cmd);
        let directory = tempfile::tempdir().unwrap();
        let cwd = directory.path().join("a project");
        std::fs::create_dir(&cwd).unwrap();
        let spill = Arc::new(Spill::new(directory.path().join("spill")));
        let setup = Setup { sandbox, ..Setup::new(cwd, spill) };
        Place { directory, commands: Arc::new(Commands::new(setup)) }
    }

    fn cwd(&self) -> PathBuf {
        self.directory.path().join("a project")
    }

    /// What the model is told of a call, and whether it failed.
    async fn call(&self, name: &str, arguments: Value) -> (String, bool) {
        let work = match self.commands.prepare(name, &arguments).await.unwrap() {
            Ok(prepared) => prepared.work,
            Err(refusal) => return (refusal.0, true),
        };
        let (live, mut shown) = Live::channel();
        let watching = async { while shown.recv().await.is_some() {} };
        let performing = async {
            let outcome = self.commands.perform(work, &live).await;
            drop(live);
            outcome
        };
        let (outcome, ()) = tokio::time::timeout(LONG, async { tokio::join!(performing, watching) }).await.unwrap();
        let text = |part: &Part| match part {
            Part::Text { text } => text.clone(),
            Part::Media { .. } => panic!("media"),
        };
        (outcome.parts.iter().map(text).collect(), outcome.is_error)
    }

    async fn run(&self, line: &str) -> (String, bool) {
        self.call("run_command", json!({ "command": line })).await
    }
}

#[tokio::test]
async fn a_command_brings_its_output_and_how_it_ended() {
    let place = Place::new(SandboxMode::Off);
    let (text, is_error) = place.run("echo one& echo two 1>&2& exit /b 3").await;
    assert!(text.contains("one") && text.contains("two") && text.contains("exit code 3"), "{text}");
    assert!(is_error, "{text}");
    // Quotes reach it as they are written.
    let (text, _) = place.run(r#"echo "a  b" & cd"#).await;
    assert!(text.contains(r#""a  b""#), "{text}");
    assert!(text.contains(r"\a project"), "it runs in the project: {text}");
    let (text, _) = place.run("echo made> made.txt").await;
    assert!(place.cwd().join("made.txt").exists(), "{text}");
}

#[tokio::test]
async fn a_directory_is_named_in_either_way() {
    let place = Place::new(SandboxMode::Off);
    std::fs::create_dir_all(place.cwd().join("sub/deep")).unwrap();
    let whole = place.cwd().join("sub").join("deep");
    for cwd in ["sub/deep", r"sub\deep", whole.to_str().unwrap()] {
        let (text, is_error) = place.call("run_command", json!({ "command": "cd", "cwd": cwd })).await;
        assert!(!is_error && text.contains(r"\sub\deep") && !text.contains(r"\\?\"), "{cwd}: {text}");
    }
    let (text, is_error) = place.call("run_command", json!({ "command": "cd", "cwd": "missing" })).await;
    assert!(is_error && text.contains("is no directory"), "{text}");
}

#[tokio::test]
async fn what_takes_too_long_is_ended_and_jobs_tell_what_is_new() {
    let place = Place::new(SandboxMode::Off);
    let began = Instant::now();
    // Nobody reads what it waits for: there is no input.
    let endless = "echo begun& for /l %i in (0,0,1) do @echo off";
    let (text, is_error) = place.call("run_command", json!({ "command": endless, "timeout_seconds": 2 })).await;
    assert!(is_error && text.contains("begun") && began.elapsed() < LONG, "{text}");
    let (text, _) = place.call("run_command", json!({ "command": endless, "background": true })).await;
    assert!(text.starts_with("started as `job-1`"), "{text}");
    let (text, _) = place.call("job_output", json!({ "job": "job-1", "wait_seconds": 20 })).await;
    assert!(text.contains("begun") || text.contains("is running"), "{text}");
    let (text, is_error) = place.call("stop_job", json!({ "job": "job-1" })).await;
    assert!(!is_error && text.contains("`job-1` has ended"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_confined_is_said_and_offline_does_not_run() {
    let place = Place::new(SandboxMode::On);
    let state = place.commands.sandbox_state();
    assert!(matches!(&state, SandboxState::Unavailable(why) if why.contains("no sandbox")), "{state}");
    assert!(place.commands.why_asked().is_some(), "it is asked about in every mode");
    let place = Place::new(SandboxMode::Offline);
    let (text, is_error) = place.run("echo ran> ran.txt").await;
    assert!(is_error && !place.cwd().join("ran.txt").exists(), "{text}");
}
