//! What people and scripts see, word for word: help, errors and every format. `BLESS=1` takes what there is for right.
// On Unix, because paths are in what is shown. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use support::{Home, scripted};

/// Compares with a file, after taking out what differs from run to run.
#[track_caller]
fn check(name: &str, seen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, seen).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(seen == kept, "{name} is not as it was; look at it, then BLESS=1\n--- was\n{kept}\n--- is\n{seen}");
}

/// Replaces ids, times and places by their names.
fn plain(text: &str, home: &Home) -> String {
    let place = home.0.path().canonicalize().unwrap().display().to_string();
    let mut plain = String::new();
    let text = text.replace(&place, "HOME").replace(&home.0.path().display().to_string(), "HOME");
    let text = text.replace(&scripted(), "AGENT").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        for (before, name, is_part) in [
            ("sess_", "ID", (|c| c.is_ascii_alphanumeric()) as fn(char) -> bool),
            ("msg_", "ID", |c| c.is_ascii_alphanumeric() || c == '_'),
            ("call_", "ID", |c| c.is_ascii_hexdigit()),
            ("\"run\":\"", "RUN", |c| c.is_ascii_alphanumeric() || c == '-'),
            ("\"time\":\"", "TIME", |c| c != '"'),
            ("\"ms\":", "0", |c| c.is_ascii_digit()),
            ("\"duration_ms\":", "0", |c| c.is_ascii_digit()),
        ] {
            line = replace_after(&line, before, name, is_part);
        }
        // The time that a person sees: `0.1 s`.
        if let Some(at) = line.find(" s · ") {
            let start = line[..at].rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |start| start + 1);
            line.replace_range(start..at, "0.0");
        }
        plain.push_str(&line);
    }
    plain
}

fn replace_after(line: &str, before: &str, name: &str, is_part: fn(char) -> bool) -> String {
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(before) {
        let start = at + before.len();
        let end = rest[start..].find(|c| !is_part(c)).map_or(rest.len(), |length| start + length);
        done.push_str(&rest[..start]);
        // An empty id is no id, but part of another word.
        done.push_str(if end > start { name } else { "" });
        rest = &rest[end..];
    }
    done + rest
}

const STEPS: &str = "think hm; say one; plan; tool read the book; say two; notice look; edit HOME/work/a.txt; \
     fail execute the order; read HOME/work/a.txt; write HOME/work/b.txt new; run echo hi; usage; ask rm -rf x";

fn seen(options: &[&str]) -> String {
    let home = Home::new();
    fs::create_dir(home.path("work")).unwrap();
    fs::write(home.path("work/a.txt"), "text\n").unwrap();
    let (work, place) = (home.path("work"), home.0.path().display().to_string());
    let options: Vec<String> = options.iter().map(|option| option.replace("HOME", &place)).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let start = ["run", "--protocol", "1", "-C", work.to_str().unwrap()];
    let mut command = home.command(&[&start[..], &options, &["--", &scripted()]].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let ran = support::run(command);
    plain(&format!("--- exit code {}\n--- stdout\n{}\n--- stderr\n{}", ran.code, ran.out, ran.err), &home)
}

#[test]
fn formats() {
    for format in ["text", "json", "stream-json", "acp", "quiet"] {
        check(&format!("output-{format}"), &seen(&["-o", format, "--permissions", "edits", STEPS]));
    }
}

#[test]
fn errors() {
    let rows: &[(&str, &[&str])] = &[
        ("denied", &["--fail-on-denied", "ask make"]),
        ("refusal", &["stop refusal"]),
        ("agent-error", &["error"]),
        ("no-such-mode", &["--mode", "fast", "hi"]),
        ("no-such-option", &["--set", "speed=1", "hi"]),
        ("no-such-session", &["--resume", "unknown", "hi"]),
        ("no-images", &["--image", "HOME/work/a.txt", "hi"]),
        ("timeout", &["--timeout", "200ms", "slow"]),
    ];
    let shown: String = rows.iter().map(|(name, options)| format!("===== {name}\n{}\n", seen(options))).collect();
    check("errors", &shown);
    let home = Home::new();
    let rows: &[&[&str]] = &[
        &["run", "--model", "nobody:x", "hi"],
        &["run", "--model", "openai", "hi"],
        &["run", "--agent", "cluade", "hi"],
        &["run", "--agent", "claude", "hi"],
        &["run", "--permissions", "maybe", "hi"],
        &["run", "--timeout", "soon", "hi"],
        &["run", "--agent", "claude"],
        &["run", "--allow", "make all", "hi"],
        &["run", "--deny", "kind = 'x'", "hi"],
        &["run", "--max-cost", "much", "hi"],
        &["sessions", "show", "x"],
        &["agents", "remove", "x"],
        &["agents", "remove", "attache"],
        &["login", "nobody"],
        &["login", "gemini"],
        &["agent", "login", "nobody"],
        &["agent", "sessions", "export", "x"],
        &["agent", "sessions", "delete", "a/b"],
        &["nonsense"],
    ];
    let show = |args: &&[&str]| {
        let ran = home.run(args);
        plain(&format!("===== attache {}\n{}{}--- exit code {}\n", args.join(" "), ran.out, ran.err, ran.code), &home)
    };
    check("mistakes", &rows.iter().map(show).collect::<String>());
}

#[test]
fn help() {
    let home = Home::new();
    let rows: &[&[&str]] = &[
        &[],
        &["setup"],
        &["run"],
        &["chat"],
        &["agent"],
        &["agents"],
        &["agents", "list"],
        &["agents", "refresh"],
        &["agents", "add"],
        &["agents", "remove"],
        &["agents", "show"],
        &["agents", "probe"],
        &["login"],
        &["logout"],
        &["models"],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "export"],
        &["sessions", "delete"],
        &["sessions", "prune"],
        &["permissions"],
        &["permissions", "list"],
        &["permissions", "remove"],
        &["mcp"],
        &["mcp", "login"],
        &["mcp", "logout"],
        &["trust"],
        &["sandbox"],
        &["sandbox", "explain"],
        &["sandbox", "run"],
        &["doctor"],
        &["update"],
        &["schema"],
        &["completions"],
        &["man"],
    ];
    let show = |args: &&[&str]| {
        let ran = home.run(&[args, &["--help"][..]].concat());
        assert_eq!(ran.code, 0);
        format!("===== attache {} --help\n{}{}\n", args.join(" "), ran.out, ran.err)
    };
    check("help", &rows.iter().map(show).collect::<String>());
    assert_eq!(home.run(&["schema", "events"]).out, include_str!("../src/event.schema.json"));
    home.run(&["man"]).check(0, &[".TH attache 1", "agent"], &[]);
    home.run(&["man", "agent"]).check(0, &[".TH attache-agent 1", "max\\-turn\\-requests"], &[]);
}
