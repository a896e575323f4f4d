//! `attache run` with the built-in agent: what it may do, what it is given, what it remembers, and with a language model.
// On Unix, because programs in it are shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::{Value, json};
use support::{Home, Ran, check_result, in_terminal, run};

/// A home with a directory to work in, which is not among the temporary files.
fn home() -> Home {
    let home = Home::new();
    for directory in ["work", "tmp"] {
        fs::create_dir(home.path(directory)).unwrap();
    }
    home
}

fn command(home: &Home, options: &[&str]) -> Command {
    let work = home.path("work");
    let mut command = home.command(&[&["run", "-C", work.to_str().unwrap()], options].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", home.path("tmp"));
    command
}

fn result(home: &Home, options: &[&str]) -> (Ran, Value) {
    let ran = run(command(home, &[&["-o", "json"], options].concat()));
    let value = check_result(home, &ran);
    (ran, value)
}

fn text(home: &Home, options: &[&str]) -> String {
    let (ran, result) = result(home, options);
    // What is denied is not done, and says so.
    assert!(matches!(ran.code, 0 | 6), "{options:?}: {}{}", ran.out, ran.err);
    result["text"].as_str().unwrap().to_owned()
}

fn rules(home: &Home, text: &str) {
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("config/attache/permissions.toml"), text).unwrap();
}

#[test]
fn the_tour_ends_well_and_leaves_nothing() {
    for version in ["1", "2"] {
        let home = home();
        // No test looks at the network.
        rules(&home, "[[rule]]\nverdict = 'deny'\ntool = ['fetch:*']\n");
        let ran = run(command(&home, &["--protocol", version, "--permissions", "all", "tour"]));
        let seen = ["That was the tour: 16 of 17 stops.", "| failed command | ✓ | it failed on purpose |"];
        let told =
            ["plan\n  [>] Look around\n", "* Create `attache-tour/hello.txt`", "+It says good morning.", "exit code 3"];
        ran.check(0, &seen, &told);
        // What has not changed is not told again.
        assert_eq!(ran.err.matches("[x] Look around").count(), 1, "{}", ran.err);
        assert!(!ran.err.contains("Plan with"), "{}", ran.err);
        assert_eq!(fs::read_dir(home.path("work")).unwrap().count(), 0);
    }
}

#[test]
fn nothing_is_done_without_a_yes() {
    let home = home();
    let rows: &[(&[&str], &str, i32, bool)] = &[
        (&[], "create a.txt with hello", 6, false),
        (&["--fail-on-denied"], "create a.txt with hello", 5, false),
        (&["--permissions", "reads"], "create a.txt with hello", 6, false),
        (&["--permissions", "all", "--mode", "architect"], "create a.txt with hello", 0, false),
        (&["--permissions", "all", "--mode", "architect"], "run touch a.txt", 0, false),
        (&["--permissions", "edits"], "run touch a.txt", 6, false),
        (&["--permissions", "none", "--mode", "code"], "run touch a.txt", 6, false),
        (&["--permissions", "none", "--fail-on-denied"], "run touch a.txt", 5, false),
        // What is said here goes before the mode: a command that could be confined is asked about, too.
        (&["--permissions", "ask", "--mode", "code"], "run touch a.txt", 6, false),
        (&["--permissions", "ask", "--mode", "code"], "create a.txt with hello", 6, false),
        (&["--permissions", "edits"], "create a.txt with hello", 0, true),
        (&["--mode", "code"], "create a.txt with hello", 0, true),
        (&["--permissions", "all"], "run touch a.txt", 0, true),
    ];
    for version in ["1", "2"] {
        for (options, prompt, code, is_done) in rows {
            let _ = fs::remove_file(home.path("work/a.txt"));
            let (ran, _) = result(&home, &[&["--protocol", version], *options, &[prompt]].concat());
            assert_eq!(ran.code, *code, "{options:?} {}{}", ran.out, ran.err);
            assert_eq!(home.path("work/a.txt").exists(), *is_done, "{options:?} {prompt} {}{}", ran.out, ran.err);
        }
    }
    for (options, said) in [
        (["--mode", "free"], "it can be ask, architect, code"),
        (["--set", "sandbox=maybe"], "it can be on, offline, off"),
        (["--set", "colour=red"], "it has mode, model, sandbox"),
    ] {
        result(&home, &[&options[..], &["say hi"]].concat()).0.check(2, &[], &[said]);
    }
}

/// The mode `code` runs a confined command unasked; whoever wants to be asked is.
#[test]
fn permissions_ask_asks_about_a_command_in_mode_code() {
    let home = home();
    for (answer, is_done) in [("n\n", false), ("y\n", true)] {
        let mut asked = command(&home, &["--mode", "code", "--permissions", "ask", "run touch a.txt"]);
        asked.env("TERM", "xterm").env("NO_COLOR", "1").stdout(Stdio::null());
        let (seen, _) = in_terminal(asked, &[(")? ", answer)]);
        assert!(seen.contains("touch a.txt"), "{seen}");
        assert_eq!(home.path("work/a.txt").exists(), is_done, "{seen}");
    }
}

/// What nobody uses goes when a command starts, and the settings say above which size.
#[test]
fn layers_above_the_limit_are_removed() {
    let home = home();
    let other = home.path("state/attache/layers/other/tmp");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("file"), vec![1; 2 << 20]).unwrap();
    let told = home.run(&["doctor"]).out;
    assert!(told.contains("MiB in private layers (projects: 1); removed above 5120 MiB in one project"), "{told}");
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("config/attache/agent.toml"), "[commands]\nmax_layers_mib = 1\n").unwrap();
    // It happens beside the command, and what is not done when that ends is done beside the next one.
    let is_gone = (0..20).any(|_| {
        text(&home, &["--permissions", "all", "run sleep 0.2"]);
        !other.exists()
    });
    assert!(is_gone);
}

#[test]
fn always_is_kept_once_for_the_project_and_taken_back() {
    let home = home();
    let mut asked = command(&home, &["create a.txt with hello"]);
    asked.env("TERM", "xterm").env("NO_COLOR", "1").stdout(Stdio::null());
    let (seen, code) = in_terminal(asked, &[(")? ", "p\n")]);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("attache says: ") && seen.contains("+hello"), "{seen}");
    text(&home, &["create b.txt with hello"]);
    assert!(home.path("work/b.txt").exists());
    let listed = text(&home, &["/permissions"]);
    assert!(listed.contains("1. allow edit") && !listed.contains("2. "), "{listed}");
    assert!(text(&home, &["/permissions remove 1"]).contains("Removed: allow edit"));
    assert!(text(&home, &["/permissions"]).contains("There are no rules"));
    text(&home, &["create c.txt with hello"]);
    assert!(!home.path("work/c.txt").exists());
}

#[test]
fn a_session_goes_on_where_it_was() {
    let home = home();
    let (_, first) = result(&home, &["--mode", "code", "say one"]);
    let id = first["session_id"].as_str().unwrap();
    for version in ["1", "2"] {
        let (_, next) = result(&home, &["--protocol", version, "--continue", "say two"]);
        assert_eq!((&next["session_id"], &next["text"]), (&json!(id), &json!("two")));
        let (_, next) = result(&home, &["--protocol", version, "--resume", id, "/status"]);
        let status = next["text"].as_str().unwrap();
        assert!(status.contains("Mode: code") && status.contains(id), "{status}");
    }
    let (ran, _) = result(&home, &["--resume", "sess_unknown", "say two"]);
    assert_eq!(ran.code, 8, "{}", ran.err);
    let listed = home.run(&["sessions", "list", "--agent", "attache"]);
    listed.check(0, &[id, "say one"], &[]);
}

#[test]
fn a_session_stays_in_its_directory() {
    let home = home();
    let (_, first) = result(&home, &["--permissions", "all", "create a.txt with hello"]);
    let id = first["session_id"].as_str().unwrap();
    fs::create_dir(home.path("other")).unwrap();
    let other = home.path("other").display().to_string();
    let elsewhere = |options: &[&str]| {
        let mut command = home.command(&[&["run", "--resume", id], options].concat());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", home.path("tmp"));
        command.current_dir(home.path("other"));
        run(command)
    };
    let work = home.path("work").display().to_string();
    let refused = format!("belongs to `{work}` and cannot go on in `{other}`\nhint: leave out `-C`");
    elsewhere(&["-C", &other, "/undo"]).check(2, &[], &[&refused]);
    assert!(home.path("work/a.txt").exists());
    // Without a directory it goes on where it was, and says so.
    elsewhere(&["/undo"]).check(0, &["a.txt"], &[&format!("working in `{work}`, the directory of the session")]);
    assert!(!home.path("work/a.txt").exists());
    elsewhere(&["-C", &work, "say here"]).check(0, &["here"], &[]);
    // Of one that is gone nothing can be undone, and the person says where to go on.
    fs::remove_dir_all(home.path("work")).unwrap();
    elsewhere(&["say lost"]).check(2, &[], &["is gone: ", "hint: `-C DIR` takes it elsewhere"]);
    elsewhere(&["-C", &other, "say moved"]).check(0, &["moved"], &[]);
}

#[test]
fn files_are_given_to_it_as_far_as_the_model_takes_them() {
    let home = home();
    fs::write(home.path("work/a.txt"), "content\n").unwrap();
    fs::write(home.path("work/a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::create_dir(home.path("more")).unwrap();
    fs::write(home.path("more/b.txt"), "elsewhere\n").unwrap();
    assert!(text(&home, &["read @a.txt"]).contains("content"));
    assert!(text(&home, &["--attach", "a.txt", "say hi"]).contains("hi"));
    let more = home.path("more").display().to_string();
    assert!(!text(&home, &[&format!("read {more}/b.txt")]).contains("elsewhere"));
    assert!(text(&home, &["--add-dir", &more, &format!("read {more}/b.txt")]).contains("elsewhere"));
    let (ran, refused) = result(&home, &["--image", "a.png", "say hi"]);
    ran.check(2, &[], &["the agent takes no images", "choose another agent or model"]);
    // No session is left behind by what could not be asked.
    assert_eq!(refused["session_id"], Value::Null);
}

#[test]
fn its_commands_are_confined_unless_that_is_switched_off() {
    let home = home();
    if home.run(&["doctor"]).out.contains("without a sandbox") {
        return;
    }
    fs::create_dir(home.path("outside")).unwrap();
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("config/attache/keys.json"), "{\"vllm\":\"sk-very-secret\"}").unwrap();
    fs::set_permissions(home.path("config/attache/keys.json"), fs::Permissions::from_mode(0o600)).unwrap();
    let touch = format!("run touch {}", home.path("outside/a").display());
    let cat = format!("run cat {}", home.path("config/attache/keys.json").display());
    let state = format!("run ls {}", home.path("state/attache/agent/sessions").display());
    for options in [&[][..], &["--sandbox"], &["--sandbox", "--set", "sandbox=offline"]] {
        let all = [options, &["--permissions", "all"]].concat();
        let said =
            text(&home, &[&all[..], &["create in.txt with x\nrun echo works > out.txt && cat out.txt"]].concat());
        assert!(said.contains("works"), "{options:?} {said}");
        fs::remove_file(home.path("work/in.txt")).unwrap();
        text(&home, &[&all[..], &[&touch]].concat());
        assert!(!home.path("outside/a").exists(), "{options:?}");
        assert!(!text(&home, &[&all[..], &[&cat]].concat()).contains("sk-very-secret"), "{options:?}");
        assert!(!text(&home, &[&all[..], &[&state]].concat()).contains(".log"), "{options:?}");
        // Its own records and settings are its own business.
        assert!(text(&home, &[options, &["--continue", "say again"]].concat()).contains("again"), "{options:?}");
    }
    text(&home, &["--permissions", "all", "--set", "sandbox=off", &touch]);
    assert!(home.path("outside/a").exists());
}

const MCP_SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) answer='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) answer='{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer='{"content":[{"type":"text","text":"hello from '$WHO'"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer"
done
"#;

#[test]
fn tools_of_mcp_servers_are_called_and_a_broken_server_is_told() {
    let home = home();
    let server = home.path("server.sh");
    fs::write(&server, MCP_SERVER).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let list = json!({ "mcpServers": {
        "notes": { "command": server, "env": { "WHO": "the server" } },
        "broken": { "command": "/nowhere/at/all" },
    } });
    fs::write(home.path("mcp.json"), list.to_string()).unwrap();
    let config = home.path("mcp.json").display().to_string();
    let options = ["--mcp-config", &config, "--permissions", "all", "call notes__greet {}"];
    let ran = run(command(&home, &options));
    ran.check(0, &["hello from the server"], &["broken"]);
    // It is asked about like everything else.
    let (_, denied) = result(&home, &["--mcp-config", &config, "call notes__greet {}"]);
    assert_eq!(denied["permissions"]["denied"], 1, "{denied}");
}

/// Runs with the model of a server, beside which the test's own thread has to live.
async fn with_model(home: &Home, server: &ModelServer, options: &[&str]) -> (Ran, Value) {
    let mut command = command(home, &[&["-o", "json"], options].concat());
    command.env("ATTACHE_MODEL", "openai:scripted").env("ATTACHE_BASE_URL", format!("{}/v1", server.url()));
    command.env("OPENAI_API_KEY", KEY);
    let ran = tokio::task::spawn_blocking(|| run(command)).await.unwrap();
    let value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{}{}", ran.out, ran.err);
    (ran, value)
}

const KEY: &str = "sk-very-secret-0002";

#[tokio::test]
async fn a_language_model_is_given_everything_and_remembers() {
    let home = home();
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("config/attache/agent.toml"), "[models.'openai:scripted']\nimages = true\n").unwrap();
    fs::write(home.path("work/a.txt"), "what stands in it\n").unwrap();
    fs::write(home.path("work/a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let server = ModelServer::start(vec![
        Answer::text("I run it.").call("run_command", json!({ "command": "printenv OPENAI_API_KEY || echo none" })),
        Answer::text("It was quiet."),
        Answer::text("I remember."),
    ])
    .await;
    let options = ["--permissions", "all", "--image", "a.png", "look at @a.txt"];
    let (ran, done) = with_model(&home, &server, &options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(done["text"], "I run it.\n\nIt was quiet.");
    assert!(done["context"]["size"].as_u64().unwrap() > 0);
    let (_, next) = with_model(&home, &server, &["--continue", "and now?"]).await;
    assert_eq!((&next["text"], &next["session_id"]), (&json!("I remember."), &done["session_id"]));
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    let first = requests[0].body.to_string();
    assert!(first.contains("what stands in it") && first.contains("iVBORw0KGgo="), "{first}");
    // Commands do not get the key.
    assert!(requests[1].body.to_string().contains("none") && !requests[1].body.to_string().contains(KEY));
    let last = requests[2].body.to_string();
    assert!(last.contains("look at @a.txt") && last.contains("It was quiet.") && last.contains("and now?"), "{last}");
}

#[tokio::test]
async fn a_run_tells_what_it_took_itself_and_goes_on_with_the_model_of_its_session() {
    for version in ["1", "2"] {
        let home = home();
        fs::create_dir_all(home.path("config/attache")).unwrap();
        let price = "[models.'openai:scripted']\nprice = { input = 1.0, output = 10.0, cached = 0.5 }\n";
        fs::write(home.path("config/attache/agent.toml"), price).unwrap();
        let server = ModelServer::with(|_| Answer::text("ok").usage(2_000, 1_000, 100)).await;
        let (_, first) = with_model(&home, &server, &["--protocol", version, "one"]).await;
        assert_eq!(first["cost"], json!({ "amount": 0.0025, "currency": "USD" }), "{first}");
        // Whoever takes it up would begin a session with another model.
        let again = |options: &[&str]| {
            let options = [&["--protocol", version, "--continue"], options].concat();
            let mut command = command(&home, &options);
            command.env("ATTACHE_MODEL", "openai:other").env("ATTACHE_BASE_URL", format!("{}/v1", server.url()));
            command.env("OPENAI_API_KEY", KEY);
            tokio::task::spawn_blocking(|| run(command))
        };
        let ran = again(&["-o", "json", "two"]).await.unwrap();
        let second: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(second["session_id"], first["session_id"]);
        assert_eq!(second["cost"], first["cost"], "{second}");
        assert_eq!(second["context"]["cost"]["amount"], 0.005, "{second}");
        assert_eq!(second["model"], json!({ "id": "openai:scripted" }));
        let ran = again(&["three"]).await.unwrap();
        ran.check(0, &["ok"], &["2k in (1k cached) · 100 out · $0.0025 ($0.0075 in this session) · session "]);
        assert!(server.requests().iter().all(|request| request.model() == "scripted"));
    }
}

#[tokio::test]
async fn models_are_asked_for_when_no_list_is_kept() {
    let home = home();
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    server.list_models(&["scripted", "other"]);
    let list = |lists: &'static str| {
        let mut command = home.command(&["models"]);
        command.env("ATTACHE_MODEL", "vllm:scripted").env("ATTACHE_BASE_URL", format!("{}/v1", server.url()));
        command.env("ATTACHE_MODEL_LISTS", lists);
        tokio::task::spawn_blocking(|| run(command))
    };
    let ran = list("off").await.unwrap();
    assert!(!ran.out.contains("vllm:other") && !ran.err.contains("fetching"), "{}{}", ran.out, ran.err);
    list("remote").await.unwrap().check(0, &["vllm:other"], &["fetching lists of models: vllm\n"]);
    let ran = list("remote").await.unwrap();
    ran.check(0, &["vllm:other"], &["would use: vllm:scripted"]);
    assert!(!ran.err.contains("fetching"), "{}", ran.err);
}

#[tokio::test]
async fn a_model_that_fails_is_explained() {
    let home = home();
    let rows = [
        // Whoever starts it can tell a wrong key from everything else.
        (Answer::status(401), 4, "rejected the API key (401)"),
        (Answer::status(403), 4, "(403): the script wants this error"),
        (Answer::status(400), 1, "`openai` rejected the request (400)"),
        (Answer::status(404), 1, "`openai` has no model `scripted`"),
    ];
    for (answer, code, said) in rows {
        let server = ModelServer::start(vec![answer]).await;
        let (ran, failed) = with_model(&home, &server, &["hello"]).await;
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        assert_eq!(failed["stop_reason"], Value::Null);
    }
}
