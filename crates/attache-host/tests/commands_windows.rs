//! Commands on Windows: run by the shell that is there, judged only where rules know its grammar.
#![cfg(windows)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache_host::{
    commands::{Command, Invocation, Shell, ShellKind, shell, use_shell},
    environment,
    permission::{Engine, Grants, Places, Policy, Session, Subject, Verdict},
};

/// The shell that is on every Windows, and also where the tests are run on something that only looks like Windows.
fn with_cmd() {
    use_shell(Shell { kind: ShellKind::Cmd, program: r"C:\Windows\System32\cmd.exe".into() });
    assert_eq!(shell().kind, ShellKind::Cmd);
}

async fn run(command: Command, cwd: &std::path::Path) -> (Option<i64>, String) {
    let invocation = Invocation::new(command, cwd);
    let run = invocation.start(1 << 20, |command| environment::start_from(command, &[])).unwrap();
    let code = run.wait().await.exit_code;
    (code, run.output().text)
}

#[tokio::test]
async fn a_line_is_read_by_the_shell_and_words_are_not() {
    with_cmd();
    let directory = tempfile::tempdir().unwrap();
    let line = |line: &str| Command::Line(line.into());
    let (code, text) = run(line("echo one& echo two& exit 3"), directory.path()).await;
    assert_eq!((code, text.as_str()), (Some(3), "one\r\ntwo\r\n"));
    let (_, text) = run(line(r#"echo "a b" c"#), directory.path()).await;
    assert_eq!(text, "\"a b\" c\r\n");
    let (code, _) = run(line("echo x> made.txt"), directory.path()).await;
    assert_eq!((code, directory.path().join("made.txt").exists()), (Some(0), true));
    // A program that a project has put there is not what is run.
    std::fs::write(directory.path().join("attache-tool.cmd"), "@echo taken\r\n").unwrap();
    let (code, text) = run(line("attache-tool"), directory.path()).await;
    if std::env::var_os("WINEPREFIX").is_none() {
        assert!(code != Some(0) && !text.contains("taken"), "{text}");
    }
    // What nobody listed does not reach it.
    let (_, text) = run(line("echo %SystemRoot% %CARGO_PKG_NAME%"), directory.path()).await;
    assert!(text.to_lowercase().starts_with(r"c:\windows %cargo_pkg_name%"), "{text}");
}

#[tokio::test]
async fn a_killed_command_ends_at_once() {
    with_cmd();
    let directory = tempfile::tempdir().unwrap();
    let invocation =
        Invocation::new(Command::Line("echo begun& pause& pause".into()), directory.path()).input(Vec::new());
    let run = invocation.start(1 << 20, |command| command).unwrap();
    let begin = Instant::now();
    run.kill().await;
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(run.exit_status().is_some());
}

#[test]
fn a_line_is_not_taken_for_one_of_another_shell() {
    with_cmd();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(Command::from_words(words(&["sh", "-c", "ls"])).words(), words(&["sh", "-c", "ls"]));
    assert_eq!(Command::from_text(r"C:\tools\make.exe"), Command::Words(words(&[r"C:\tools\make.exe"])));
    let session = Session::new("agent", "s1", r"C:\");
    let run = |command| Invocation::new(command, r"C:\").action();
    let (line, shown) = ("echo x", Command::Line("echo x".into()));
    let other = Command::Shell { shell: "bash".into(), flag: "-c".into(), line: line.into() };
    let mut grants = Grants::default();
    let now = Instant::now();
    grants.add(&Subject::new(session.clone(), vec![run(shown.clone())]), now);
    assert!(!grants.take(&session, &run(other), now));
    assert!(grants.take(&session, &run(shown), now));
}

#[test]
fn a_line_for_another_shell_is_asked_about_whatever_rules_allow() {
    with_cmd();
    let directory = tempfile::tempdir().unwrap();
    let rules = "
        [[rule]]
        verdict = 'allow'
        command = ['git', 'status']
        [[rule]]
        verdict = 'allow'
        command = ['echo']
        args = 'any'
        [[rule]]
        verdict = 'deny'
        command = ['git', 'push']
    ";
    let places = Places { config_dir: directory.path().into(), state_dir: directory.path().into(), project: None };
    std::fs::write(places.user_file(), rules).unwrap();
    let project = directory.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let engine = Engine::open(places, Policy::Ask);
    assert_eq!(engine.problems().count(), 0);
    let verdict = |command: Command| {
        let session = Session::new("agent", "s1", &project);
        let action = Invocation::new(command, &project).action();
        engine.decide(&Subject::new(session, vec![action])).verdict
    };
    let words = |words: &[&str]| Command::Words(words.iter().map(|word| (*word).into()).collect());
    assert_eq!(verdict(words(&["git", "status"])), Verdict::Allow);
    assert_eq!(verdict(Command::Line("git status".into())), Verdict::Ask);
    assert_eq!(verdict(Command::Line("echo %PATH%".into())), Verdict::Ask);
    let shell = |shell: &str| Command::Shell { shell: shell.into(), flag: "-c".into(), line: "git status".into() };
    assert_eq!(verdict(shell("bash")), Verdict::Ask);
    assert_eq!(verdict(shell("powershell")), Verdict::Ask);
    // However a program is spelled, it is the one that a rule denies.
    for program in ["git", "git.exe", "GIT", r"C:\Program Files\Git\bin\Git.EXE", "C:/git/git.cmd"] {
        assert_eq!(verdict(words(&[program, "push"])), Verdict::Deny, "{program}");
    }
    assert_ne!(verdict(Command::Line("git push".into())), Verdict::Allow);
}
