//! Arguments that a rule for a harmless program let through: where options end, values that are none, and formats that store.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::support::Place;

/// What a person may have answered "always" to.
const RULES: &[&[&str]] = &[
    &["find"],
    &["tar"],
    &["tar", "-tf"],
    &["tar", "tf"],
    &["printf"],
    &["ls"],
    &["grep"],
    &["diff"],
    &["git", "diff"],
    &["git", "branch"],
    &["cargo"],
    &["rustc"],
];

/// What those rules are for, which runs without a question.
const HARMLESS: &[&str] =
    &["find . -name a", "tar -tf a.tar", "printf '%s\\n' x", "grep -rn some sub", "git diff -U5 a"];

/// Each ran `evil.sh`, took files away, made a branch or showed what a person had not agreed to show.
const LINES: &[&str] = &[
    "find -- sub -delete",
    "find -- . -maxdepth 0 -exec ./evil.sh ';'",
    "tar -tf -- -I./evil.sh",
    "tar tf -- -I./evil.sh",
    "printf 'aa%n' PATH; ls",
    "printf -- 'aa%n' PATH; ls",
    "printf -- '%d' 'a[$(./evil.sh)]'",
    "git diff -U ../outside a",
    "git branch --abbrev evil",
    "diff sub linked",
    "grep -r KEY .",
    "grep -rh . .",
    "grep -r KEY",
    "cargo --version",
    "rustc --version",
];

#[test]
fn a_rule_for_a_program_lets_no_option_through_that_is_not_known() {
    let place = Place::new();
    let rules: String =
        RULES.iter().map(|words| format!("[[rule]]\nverdict = \"allow\"\ncommand = {words:?}\n")).collect();
    place.rules(&rules);
    for name in ["project/evil.sh", "project/2/ls", "project/toolchain/bin/cargo", "project/toolchain/bin/rustc"] {
        let evil = place.write(name, "#!/bin/sh\n: > \"$HOME/pwned\"\n");
        std::fs::set_permissions(evil, PermissionsExt::from_mode(0o755)).unwrap();
    }
    place.write("project/rust-toolchain.toml", "[toolchain]\npath = \"toolchain\"\n");
    place.write("project/a", "some lines\n");
    place.write("project/sub/a", "some lines\n");
    place.write("project/.env", "KEY=of-the-project\n");
    place.write("outside", "of-the-person\n");
    std::fs::create_dir(place.project().join("linked")).unwrap();
    std::os::unix::fs::symlink("../../outside", place.project().join("linked/a")).unwrap();
    for arguments in [
        &["git", "init", "-q"][..],
        &["git", "add", "a"],
        &["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
        &["tar", "-cf", "a.tar", "a"],
    ] {
        let mut command = std::process::Command::new(arguments[0]);
        command.args(&arguments[1..]);
        place.prepare(&mut command);
        assert!(command.status().unwrap().success(), "{arguments:?}");
    }
    let create = |line: &str| json!({"call": "terminal/create", "params": {"command": "bash", "args": ["-c", line]}});
    let wait = json!({"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}});
    let output = json!({"call": "terminal/output", "params": {"terminalId": "$terminal"}});
    let script = HARMLESS.iter().chain(LINES).flat_map(|line| [create(line), wait.clone(), output.clone()]).collect();
    let ran = place.run(place.attack(1, &[], &Value::Array(script)));
    let answers: Vec<&Value> = ran.log.iter().filter(|entry| entry["call"] == "terminal/create").collect();
    assert_eq!(answers.len(), HARMLESS.len() + LINES.len(), "{ran:?}");
    let (harmless, others) = answers.split_at(HARMLESS.len());
    for (line, answer) in HARMLESS.iter().zip(harmless) {
        assert!(answer["result"]["terminalId"].is_string(), "{line} was not run: {answer}");
    }
    let ran_anyway: Vec<&str> =
        LINES.iter().zip(others).filter(|(_, answer)| !answer["error"].is_object()).map(|(line, _)| *line).collect();
    assert_eq!(ran_anyway, [""; 0], "pwned: {}", place.home().join("pwned").exists());
    assert!(!place.home().join("pwned").exists() && place.project().join("sub/a").exists(), "{ran:?}");
    let log = format!("{ran:?}");
    assert!(!log.contains("of-the-person") && !log.contains("of-the-project"), "{log}");
}
