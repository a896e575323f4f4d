//! What processes learn from the environment: their own, and that of the processes above them.

use std::process::Command;

use serde_json::{Value, json};

use super::support::{Place, Ran, hostile_agent};

/// Keys under names of all kinds, and a proxy that has a password.
const KEYS: [(&str, &str); 7] = [
    ("OPENAI_API_KEY", "hidden-1"),
    ("ANTHROPIC_API_KEY", "hidden-2"),
    ("DIFY_KEY", "hidden-3"),
    ("GITHUB_TOKEN", "hidden-4"),
    ("AWS_SECRET_ACCESS_KEY", "hidden-5"),
    ("DATABASE", "postgres://me:hidden-6@host/db"),
    ("https_proxy", "http://me:hidden-7@127.0.0.1:9"),
];

fn with_keys(mut command: Command) -> Command {
    command.envs(KEYS).env("LC_ALL", "C.UTF-8").env("CARGO_HOME", "/cargo");
    command
}

/// Checks that of the keys only these, by the end of their values, were printed, and that what is harmless was.
fn check(printed: &str, keys: &[u8], ran: &Ran) {
    for number in 1..=7 {
        let is_there = printed.contains(&format!("hidden-{number}"));
        assert_eq!(is_there, keys.contains(&number), "hidden-{number}: {printed}\n{ran:?}");
    }
    for line in ["PATH=", "HOME=", "LC_ALL=C.UTF-8", "CARGO_HOME=/cargo"] {
        assert!(printed.lines().any(|printed| printed.starts_with(line)), "{line}: {printed}\n{ran:?}");
    }
    if !keys.contains(&7) {
        assert!(printed.contains("https_proxy=http://127.0.0.1:9"), "{printed}");
    }
}

fn in_terminal(line: &str) -> Value {
    json!([
        {"call": "terminal/create", "params": {"command": "sh", "args": ["-c", line]}},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
        {"call": "terminal/output", "params": {"terminalId": "$terminal"}},
    ])
}

#[test]
fn a_command_in_a_terminal_of_ours_gets_no_keys() {
    let place = Place::new();
    let attack = || with_keys(place.attack(1, &["--permissions", "all"], &in_terminal("env")));
    let ran = place.run(attack());
    check(ran.log[2]["result"]["output"].as_str().unwrap(), &[], &ran);

    place.write(".config/attache/agents.toml", "[commands]\npass_env = ['GITHUB_TOKEN', 'https_proxy']\n");
    let ran = place.run(attack());
    check(ran.log[2]["result"]["output"].as_str().unwrap(), &[4, 7], &ran);
}

#[test]
fn a_command_of_our_own_agent_gets_no_keys() {
    let place = Place::new();
    let run = || {
        let args = ["run", "--permissions", "all", "--set", "mode=code", "run env > seen"];
        let ran = place.run(with_keys(place.command(&args)));
        (place.read("project/seen"), ran)
    };
    let (seen, ran) = run();
    check(&seen, &[], &ran);
    place.write(".config/attache/agent.toml", "[commands]\npass_env = ['AWS_*']\n");
    let (seen, ran) = run();
    check(&seen, &[5], &ran);
}

#[test]
fn an_agent_gets_the_keys_that_were_named_for_it() {
    let place = Place::new();
    let attack = |options: &[&str]| place.run(with_keys(place.attack(1, options, &json!([{"run": "env"}]))));
    let seen = |ran: &Ran| ran.log[0]["out"].as_str().unwrap().to_owned();
    let ran = attack(&[]);
    check(&seen(&ran), &[], &ran);
    let ran = attack(&["--env", "DIFY_KEY", "--env", "AWS_*"]);
    check(&seen(&ran), &[3, 5], &ran);

    // One that is known by its name gets its own, and what its entry names.
    let script = place.write("script.json", json!([{"run": "env"}]).to_string());
    let words = json!([hostile_agent(), script, place.project().join(".log.jsonl"), "1"]);
    let entry = format!("[agents.codex]\ncommand = {words}\npass_env = ['DIFY_KEY']\n");
    place.write(".config/attache/agents.toml", entry);
    place.write("project/.log.jsonl", "");
    let ran = place.run(with_keys(place.command(&["run", "--agent", "codex", "go"])));
    check(&seen(&ran), &[1, 3], &ran);
}

#[test]
fn a_value_is_not_taken_on_the_command_line() {
    let place = Place::new();
    let ran = place.run(place.attack(1, &["--env", "KEY=hidden-1"], &json!([])));
    assert!(ran.code == Some(2) && ran.err.contains("without a value"), "{ran:?}");
}

#[test]
fn an_mcp_server_gets_what_its_configuration_names() {
    let place = Place::new();
    let server = json!({"mcpServers": {"s": {
        "command": "sh", "args": ["-c", "env > ../seen"], "env": {"MINE": "given"},
    }}});
    let config = place.write("mcp.json", server.to_string());
    let ran = place.run(with_keys(place.command(&["run", "--mcp-config", config.to_str().unwrap(), "say hello"])));
    let seen = place.read("seen");
    check(&seen, &[], &ran);
    assert!(seen.contains("MINE=given"), "{seen}");
}

/// A line for `sh` that prints the environments of all processes above it, and whose memory can be opened.
const LOOK_UP: &str = r#"p=$$; while [ "$p" -gt 1 ]; do
    p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status); [ "$p" -gt 1 ] || break
    n=$(cat /proc/$p/comm); echo "$n"; tr '\0' '\n' < /proc/$p/environ
    case "$n" in attache*) if (: < /proc/$p/mem); then echo open; fi;; esac
done 2>/dev/null"#;

#[test]
fn the_processes_above_a_command_show_no_keys() {
    let place = Place::new();
    let ran = place.run(with_keys(place.attack(1, &["--permissions", "all"], &in_terminal(LOOK_UP))));
    let seen = ran.log[2]["result"]["output"].as_str().unwrap();
    assert!(seen.contains("attache-keeper\nattache\n"), "{seen}");
    assert!(!seen.contains("hidden-") && !seen.contains("open\n"), "{seen}");

    let script = place.write("project/look.sh", LOOK_UP);
    let prompt = format!("run sh {} > seen", script.display());
    let args = ["run", "--permissions", "all", "--set", "mode=code", "--set", "sandbox=off", &prompt];
    let ran = place.run(with_keys(place.command(&args)));
    let seen = place.read("project/seen");
    // Both of our processes, and the keepers between them and their children.
    assert!(seen.contains("attache-keeper\nattache\nattache-keeper\nattache\n"), "{seen}\n{ran:?}");
    assert!(!seen.contains("hidden-") && !seen.contains("open\n"), "{seen}");
}

#[test]
fn a_key_that_was_overwritten_is_still_known_to_us() {
    let place = Place::new();
    let ran = place.run(with_keys(place.command(&["agent", "models", "--json"])));
    let openai = ran.out.lines().find(|line| line.contains("\"openai\"")).unwrap_or_default();
    assert!(openai.contains("\"yes\""), "{ran:?}");
}
