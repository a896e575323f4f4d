//! Commands that are processes of our own.

use attache::model::tool::ToolCallContent;
use attache_agent::tools::commands::{SandboxState, Setup};
use attache_host::commands::Command;
use attache_host::permission::Action;
use attache_host::sandbox::Sandbox;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_command_brings_its_output_and_how_it_ended() {
    let place = Place::new(SandboxMode::Off);
    let rows = [
        ("echo out; echo err >&2", "out\nerr\n", false),
        ("true", "(no output)", false),
        ("echo bad; exit 3", "exit code 3\n\nbad\n", true),
        ("exit 1", "exit code 1", true),
        ("kill -9 $$", "killed by SIGKILL", true),
        ("no-such-program-at-all 2>/dev/null", "exit code 127", true),
        ("cat", "(no output)", false),
        ("printf 'caf\\303'; sleep 0.05; printf '\\251 \\377'", "café \u{fffd}", false),
        ("printf '\\033[31mred\\033[0m 1%%\\r2%%\\r\\ndone'", "2%\ndone", false),
        ("sleep 1000 & echo left", "left\n", false),
        ("pwd -P | sed 's/.*\\///'", "project\n", false),
    ];
    for (line, expected, is_error) in rows {
        assert_eq!(place.text("run_command", json!({"command": line})).await, (expected.into(), is_error), "{line}");
    }
}

#[tokio::test]
async fn a_call_is_looked_at_before_anything_is_done() {
    let place = Place::new(SandboxMode::Off);
    std::fs::create_dir(place.cwd().join("sub")).unwrap();
    let prepared =
        place.prepare("run_command", json!({"command": "touch x\ntouch y", "cwd": "sub/../sub"})).await.unwrap();
    assert_eq!(prepared.title, "touch x…");
    let [Action::Execute { command: Command::Line(line), cwd: Some(cwd), .. }] = &prepared.actions[..] else {
        panic!("{:?}", prepared.actions)
    };
    assert_eq!(line, "touch x\ntouch y");
    assert_eq!(Path::new(cwd), place.cwd().canonicalize().unwrap().join("sub"));
    assert_eq!(prepared.content.len(), 1, "the whole command is shown");

    let plain = place.prepare("run_command", json!({"command": "ls", "cwd": "."})).await.unwrap();
    assert!(matches!(&plain.actions[..], [Action::Execute { cwd: Some(_), .. }]));
    assert!(plain.content.is_empty());
    assert!(place.commands.prepare("read_file", &json!({})).await.is_none());
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused_in_a_sentence() {
    let place = Place::new(SandboxMode::Off);
    let rows = [
        (json!({}), "`command` is missing"),
        (json!("ls"), "a JSON object"),
        (json!({"command": ["ls", "-l"]}), "`command` has to be text"),
        (json!({"command": " \n"}), "`command` is empty"),
        (json!({"command": "a\u{0}b"}), "zero character"),
        (json!({"command": "x".repeat(200_000)}), "hint: write a script"),
        (json!({"command": "ls", "cwd": "nowhere"}), "`nowhere` is no directory"),
        (json!({"command": "ls", "timeout_seconds": "soon"}), "`timeout_seconds` has to be a number"),
        (json!({"command": "ls", "timeout_seconds": [1]}), "`timeout_seconds` has to be a number"),
        (json!({"command": "ls", "background": "yes"}), "`background` has to be true or false"),
    ];
    for (arguments, expected) in rows {
        let refusal = place.prepare("run_command", arguments).await.unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
    for (given, seconds) in [(json!(0), 1), (json!(-5), 1), (json!("7"), 7), (json!(1e300), 600), (json!(null), 120)] {
        let prepared = place.prepare("run_command", json!({"command": "ls", "timeout_seconds": given})).await.unwrap();
        let CommandWork::Run { limit, .. } = prepared.work else { panic!("{:?}", prepared.work) };
        assert_eq!(limit.as_secs(), seconds);
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let place = Place::new(SandboxMode::Off);
    let (text, is_error) = place.text("run_command", json!({"command": TREE, "timeout_seconds": 5})).await;
    assert!(is_error);
    assert!(text.starts_with("the command did not end within 5 seconds"), "{text}");
    assert!(text.ends_with("\n\nready\n"), "{text}");
    are_gone(&pids(&place.cwd()).await).await;
}

#[tokio::test]
async fn a_command_that_is_dropped_ends_at_once_with_all_it_started() {
    let place = Place::new(SandboxMode::On);
    let work = place.prepare("run_command", json!({"command": TREE})).await.unwrap().work;
    let commands = place.commands.clone();
    let task = tokio::spawn(async move { perform(&commands, work).await });
    let pids = pids(&place.cwd()).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    task.abort();
    are_gone(&pids).await;
}

#[tokio::test]
async fn the_directory_has_to_be_the_one_that_was_allowed() {
    let place = Place::new(SandboxMode::Off);
    let sub = place.cwd().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let work = place.prepare("run_command", json!({"command": "pwd", "cwd": "sub"})).await.unwrap().work;
    std::fs::remove_dir(&sub).unwrap();
    std::os::unix::fs::symlink("/", &sub).unwrap();
    let (outcome, _) = perform(&place.commands, work).await;
    assert!(outcome.is_error && text(&outcome).contains("has changed since it was approved"), "{outcome:?}");
}

#[tokio::test]
async fn commands_get_what_is_let_through_and_no_pagers() {
    let place = Place::with(|setup| Setup { pass_env: vec!["CARGO_PKG_VERSION".into()], ..setup });
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && std::env::var_os("CARGO_PKG_VERSION").is_some());
    let (text, _) = place.text("run_command", json!({"command": "env"})).await;
    let has = |line: &str| text.lines().any(|other| other.starts_with(line));
    assert!(!has("CARGO_PKG_NAME=") && has("CARGO_PKG_VERSION=") && has("PATH="), "{text}");
    assert!(has("TERM=dumb") && has("PAGER=cat") && has("GIT_PAGER=cat") && has("NO_COLOR=1"), "{text}");
    assert!(has("GIT_TERMINAL_PROMPT=0"));
}

#[tokio::test]
async fn long_output_is_cut_and_kept_in_a_file() {
    let place = Place::new(SandboxMode::Off);
    let (text, _) = place.text("run_command", json!({"command": "seq 100000"})).await;
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n99999\n100000\n") && text.len() < 40 << 10);
    let path = text.split('`').nth(1).unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    assert!(whole.starts_with("1\n2\n") && whole.lines().count() == 100_000);

    let (text, _) = place.text("run_command", json!({"command": "seq 1000000"})).await;
    assert!(text.starts_with("[output truncated: only the last 1024 KiB are kept]\n"), "{text}");
}

#[tokio::test]
async fn output_is_shown_as_text_while_it_comes() {
    let place = Place::new(SandboxMode::Off);
    let line = "echo one; while ! [ -e go ]; do sleep 0.01; done; echo two";
    let work = place.prepare("run_command", json!({"command": line})).await.unwrap().work;
    let (live, mut shown) = Live::channel();
    let performing = place.commands.perform(work, &live);
    let watching = async {
        let first = shown.recv().await.unwrap();
        assert_eq!(first, Shown::Content(vec![ToolCallContent::text("```console\none\n```")]));
        std::fs::write(place.cwd().join("go"), "").unwrap();
    };
    let (outcome, ()) = tokio::time::timeout(LONG, async { tokio::join!(performing, watching) }).await.unwrap();
    assert_eq!(outcome.content, Some(vec![ToolCallContent::text("```console\none\ntwo\n```")]));
}

#[tokio::test]
async fn a_viewer_that_does_not_look_does_not_stop_the_clock() {
    let place = Place::new(SandboxMode::Off);
    let line = "while :; do seq 10000; sleep 0.05; done";
    let work = place.prepare("run_command", json!({"command": line, "timeout_seconds": 1})).await.unwrap().work;
    let (live, _shown) = Live::channel();
    let outcome = tokio::time::timeout(LONG, place.commands.perform(work, &live)).await.unwrap();
    assert!(outcome.is_error);
}

#[tokio::test]
async fn confined_commands_cannot_read_what_is_hidden_from_them() {
    let secrets = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = secrets.path().join("keys.json");
    std::fs::write(&file, "a key").unwrap();
    let place = Place::with(|setup| Setup { hidden: vec![secrets.path().to_owned()], ..setup });
    let (text, is_error) = place.text("run_command", json!({"command": format!("cat {}", file.display())})).await;
    assert_eq!(is_error, Sandbox::check().is_ok(), "{text}");
    assert_eq!(text.contains("a key"), Sandbox::check().is_err(), "{text}");
}

#[tokio::test]
async fn commands_are_confined_where_that_can_be_enforced() {
    let place = Place::new(SandboxMode::On);
    let line = "echo in >here && echo out >../there";
    let (text, is_error) = place.text("run_command", json!({"command": line})).await;
    assert!(place.cwd().join("here").exists());
    match Sandbox::check() {
        Ok(_) => {
            let state = place.commands.sandbox_state();
            assert!(matches!(state, SandboxState::On { offline: false, .. }), "{state:?}");
            assert!(is_error && text.contains("(it ran in a sandbox: files can be changed only"), "{text}");
            assert!(text.contains("git's settings and hooks") && text.contains("`[commands] writable`"), "{text}");
            assert!(!place.directory.path().join("there").exists());
        }
        Err(error) => {
            assert_eq!(place.commands.sandbox_state(), SandboxState::Unavailable(error.to_string()));
            assert!(!is_error, "{text}");
        }
    }
    place.commands.set_sandbox(SandboxMode::Off);
    assert_eq!(place.commands.sandbox_state(), SandboxState::Off);
    assert!(!place.text("run_command", json!({"command": line})).await.1);
}

#[tokio::test]
async fn without_a_network_means_that_or_nothing() {
    let place = Place::new(SandboxMode::Offline);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("echo ran; exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let (text, is_error) = place.text("run_command", json!({"command": format!("bash -c '{line}'")})).await;
    assert!(is_error && !text.contains("connected"), "{text}");
    assert_eq!(text.contains("ran\n"), Sandbox::check().is_ok(), "{text}");
    place.commands.set_sandbox(SandboxMode::On);
    assert!(place.text("run_command", json!({"command": format!("bash -c '{line}'")})).await.0.contains("connected"));
}
