//! What stands around a command that a rule allows: redirections, variables, `time` and `cd`.

use serde_json::{Value, json};

use super::support::Place;

/// Each would write a file, or run or show something else, if what stands around `cat` and `ls` did not count.
const LINES: &[&str] = &[
    "ls > pwned",
    "ls 2> pwned",
    "ls >&pwned",
    "ls &>pwned",
    "ls >/dev/null > pwned",
    "ls 2>&1>pwned",
    "ls >/dev/null/../../pwned",
    "ls < a > pwned",
    "CI=1 ls > pwned",
    "time ls > pwned",
    "time -o pwned ls",
    "ls | time -o pwned ls",
    "PATH=. ls",
    "CI=1 PATH=. ls",
    "time PATH=. ls",
    "LD_PRELOAD=./evil.so ls",
    "RUST_BACKTRACE=`touch pwned` ls",
    "cd out && cat secret",
    "cd deep && cat ../../../secret",
    "cd ../.. && cat secret",
    "CDPATH=../.. cd home && ls",
    "cd deep && cat link",
];

#[test]
fn what_stands_around_an_allowed_command_is_judged_with_it() {
    let place = Place::new();
    place.rules(
        "[[rule]]\nverdict = \"allow\"\ncommand = [\"ls\"]\n[[rule]]\nverdict = \"allow\"\ncommand = [\"cat\"]\n",
    );
    place.write("project/deep/a", "text\n");
    place.write("secret", "THE SECRET\n");
    let evil = place.write("project/ls", "#!/bin/sh\necho > pwned\n");
    std::fs::set_permissions(evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(place.home(), place.project().join("out")).unwrap();
    std::os::unix::fs::symlink("../../secret", place.project().join("deep/link")).unwrap();
    let create = |line: &str| json!({"call": "terminal/create", "params": {"command": "sh", "args": ["-c", line]}});
    let wait = json!({"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}});
    // What the rules are for runs without a question.
    let harmless = "cd deep 2>/dev/null && NO_COLOR=1 cat a 2>&1 | cat; ls >/dev/null";
    let mut script = vec![create(harmless), wait];
    script.extend(LINES.iter().map(|line| create(line)));
    let ran = place.run(place.attack(1, &[], &Value::Array(script)));
    let answers: Vec<&Value> = ran.log.iter().filter(|entry| entry["call"] == "terminal/create").collect();
    assert_eq!(answers.len(), LINES.len() + 1, "{ran:?}");
    assert!(answers[0]["result"]["terminalId"].is_string(), "{} {ran:?}", answers[0]);
    for (line, answer) in LINES.iter().zip(&answers[1..]) {
        assert!(answer["error"].is_object(), "{line} was run: {answer}");
    }
    for name in ["project/pwned", "pwned", "project/deep/pwned"] {
        assert!(!place.home().join(name).exists(), "{name}");
    }
}
