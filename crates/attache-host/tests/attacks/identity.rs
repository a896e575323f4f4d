//! Who an agent is: what a rule or a session of one agent gives to another.

use std::process::Command;

use serde_json::json;

use super::support::{ANSWER, Place, Ran, hostile_agent};

/// `attache run` with an agent that is a script of this name, run by `sh`. It makes a file by a command of the client.
fn agent(place: &Place, name: &str, options: &[&str]) -> Command {
    let script = place.write(
        "script.json",
        json!([
            {"call": "terminal/create", "params": {"command": "touch", "args": ["made"]}},
            {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
        ])
        .to_string(),
    );
    let log = place.write("project/.log.jsonl", "");
    let line = format!("exec '{}' '{}' '{}' 1\n", hostile_agent().display(), script.display(), log.display());
    place.write(&format!("project/{name}"), line);
    let mut command = place.command(&["run"]);
    command.args(options).args(["go", "--", "sh", name]);
    command
}

fn has_made(place: &Place, ran: &Ran) -> bool {
    let made = place.project().join("made");
    let is_there = made.exists();
    let _ = std::fs::remove_file(made);
    // A turn in which all was denied is not done.
    assert_eq!(ran.code, Some(if is_there { 0 } else { 6 }), "{ran:?}");
    is_there
}

#[test]
fn a_rule_for_one_script_is_no_rule_for_another_that_the_same_program_runs() {
    let place = Place::new();
    let ran = place.ask(agent(&place, "good.sh", &[]), &[(ANSWER, "a\r")]);
    assert!(has_made(&place, &ran), "{ran:?}");
    assert!(
        ran.err.replace("\r\n", "").contains("/project/good.sh"),
        "the agent is named where the rule is made: {}",
        ran.err
    );
    let ran = place.run(agent(&place, "good.sh", &[]));
    assert!(has_made(&place, &ran), "the rule is for it: {ran:?}");
    let ran = place.run(agent(&place, "evil.sh", &[]));
    assert!(!has_made(&place, &ran), "{ran:?}");
}

#[test]
fn an_old_rule_for_a_launcher_allows_nothing_and_still_denies() {
    let place = Place::new();
    place.rules("[[rule]]\nverdict = \"allow\"\ncommand = [\"touch\"]\nagent = \"sh\"\n");
    let ran = place.run(agent(&place, "a.sh", &[]));
    assert!(!has_made(&place, &ran), "{ran:?}");
    assert!(ran.err.contains("rules for the agent `sh`"), "{}", ran.err);
    place.rules("[[rule]]\nverdict = \"deny\"\ncommand = [\"touch\"]\nagent = \"sh\"\n");
    let ran = place.run(agent(&place, "a.sh", &["--permissions", "all"]));
    assert!(!has_made(&place, &ran), "{ran:?}");
}

#[test]
fn a_session_of_one_script_is_not_gone_on_with_by_another() {
    let place = Place::new();
    has_made(&place, &place.run(agent(&place, "a.sh", &[])));
    let ran = place.run(agent(&place, "b.sh", &["--continue"]));
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.err.contains("no earlier session"), "{}", ran.err);
    // A record of the first version does not say which script it was.
    let runs = place.home().join(".local/state/attache/runs");
    for entry in std::fs::read_dir(runs).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(",\"identity\":\"").unwrap();
        std::fs::write(&path, format!("{before}{}", rest.split_once('"').unwrap().1)).unwrap();
    }
    let ran = place.run(agent(&place, "a.sh", &["--continue"]));
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.err.contains("if session `s1` of `sh` is meant, name it with --resume"), "{}", ran.err);
}

#[test]
fn an_agent_of_a_project_does_not_take_the_name_of_another() {
    let place = Place::new();
    place.rules("[[rule]]\nverdict = \"allow\"\ncommand = [\"touch\"]\nagent = \"claude\"\n");
    let _ = agent(&place, "evil.sh", &[]);
    let script = place.project().join("evil.sh");
    place.write(
        "project/.attache/agents.toml",
        format!("[agents.claude]\ncommand = [\"/bin/sh\", \"{}\"]\n", script.display()),
    );
    let mut trust = place.command(&["trust"]);
    trust.arg("--yes");
    let trusted = place.run(trust);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let mut command = place.command(&["run"]);
    command.args(["--agent", "claude", "go"]);
    let ran = place.run(command);
    assert!(!has_made(&place, &ran), "{ran:?}");
}
