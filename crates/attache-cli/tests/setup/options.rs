//! A setup by options, without anybody to ask.

use std::fs;

use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::json;

use super::{Home, KEY, editor, ran, read, setup, support, tree, with_key, write};

fn words(url: &str) -> Vec<&str> {
    let words = "--model openai:scripted --key-from MY_KEY --editor zed --yes --base-url";
    words.split(' ').chain([url]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_writes_the_settings_the_key_and_the_editor_and_asks_the_model() {
    let server = ModelServer::start(vec![Answer::text("ready"), Answer::text("ready")]).await;
    let url = format!("{}/v1", server.url());
    let home = Home::new();
    write(&home.path("config/attache/agent.toml"), "# mine\nmode = \"code\" # fast\n");
    let first = ran(&home, &words(&url));
    first.check(
        0,
        &[],
        &["--- ", "+model = \"openai:scripted\"", "+    \"Attaché\": {", "it answered in", ": ready", "in Zed,"],
    );
    let settings = read(&home.path("config/attache/agent.toml"));
    let expected = format!("# mine\nmode = \"code\" # fast\nmodel = \"openai:scripted\"\nbase_url = \"{url}\"\n");
    assert_eq!(settings, expected);
    let zed: serde_json::Value = serde_json::from_str(&read(&home.path("config/zed/settings.json"))).unwrap();
    let whole = env!("CARGO_BIN_EXE_attache");
    // It is not on PATH, so its whole path is written.
    let entry = json!({ "type": "custom", "command": whole, "args": ["agent"] });
    assert_eq!(zed, json!({ "agent_servers": { "Attaché": entry } }));
    // The key is where `attache login` keeps it, and nowhere else; the model was asked with it.
    assert_eq!(with_key(&home), [home.path("config/attache/keys.json")]);
    let asked = &server.requests()[0];
    assert!(asked.headers.values().any(|value| value.contains(KEY)), "{:?}", asked.headers.keys());
    assert!(asked.texts().iter().any(|text| text.contains("Reply with the single word: ready")));
    // What was there is kept.
    let backups: Vec<_> = fs::read_dir(home.path("state/attache/backups")).unwrap().collect();
    assert_eq!(backups.len(), 1);
    assert_eq!(read(&backups[0].as_ref().unwrap().path()), "# mine\nmode = \"code\" # fast\n");

    // A second time there is nothing to change.
    let before = tree(&home.path("config"));
    let words: Vec<&str> = words(&url).into_iter().filter(|word| !matches!(*word, "--key-from" | "MY_KEY")).collect();
    ran(&home, &words).check(0, &[], &["nothing to change", "is right as it is", ": ready"]);
    assert_eq!(tree(&home.path("config")), before);
    assert_eq!(fs::read_dir(home.path("state/attache/backups")).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_a_line_for_each_step() {
    let server = ModelServer::start(vec![Answer::text("ready")]).await;
    let url = format!("{}/v1", server.url());
    let home = Home::new();
    let ran = ran(&home, &[&words(&url)[..], &["--editor", "emacs", "--json"]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let steps = ran.json();
    let named: Vec<String> = steps.iter().map(|step| format!("{} {}", step["step"], step["status"])).collect();
    let expected = [
        "\"model\" null",
        "\"key\" \"kept\"",
        "\"file\" \"written\"",
        "\"file\" \"written\"",
        "\"file\" \"written\"",
        "\"test\" \"ok\"",
    ];
    assert_eq!(named, expected);
    assert_eq!((&steps[0]["model"], &steps[0]["base_url"]), (&json!("openai:scripted"), &json!(url)));
    assert_eq!((&steps[2]["of"], &steps[3]["of"]), (&json!("settings"), &json!("zed")));
    assert!(steps[3]["diff"].as_str().unwrap().contains("Attaché"));
    assert!(steps[4]["by_hand"]["text"].as_str().unwrap().contains("(load "));
    assert_eq!(steps[5]["answer"], "ready");
}

#[test]
fn a_dry_run_shows_the_changes_and_makes_none() {
    let home = Home::new();
    let before = tree(home.0.path());
    let words = ["--model", "openai", "--key-from", "MY_KEY", "--editor", "zed", "--editor", "jetbrains", "--dry-run"];
    let shown = ran(&home, &words);
    shown.check(0, &["+model = \"openai:gpt-5.1\"", "settings.json", "acp.json", "keys.json"], &[]);
    let rows = ran(&home, &[&words[..], &["--json"]].concat()).json();
    let would: Vec<_> = rows.iter().filter_map(|row| row["status"].as_str()).collect();
    assert_eq!(would, ["would_keep", "would_write", "would_write", "would_write"]);
    assert_eq!(tree(home.0.path()), before);
}

#[test]
fn without_a_terminal_the_missing_options_are_named() {
    let home = Home::new();
    let rows: &[(&[&str], &str)] = &[
        (&[], "`--model`, `--editor`, `--yes`"),
        (&["--model", "offline"], "`--editor`, `--yes`"),
        (&["--model", "groq", "--editor", "none", "--dry-run"], "`--key-from`"),
        (&["--model", "groq", "--editor", "none", "--key-from", "MY_KEY"], "`--yes`"),
    ];
    for (options, missing) in rows {
        let ran = ran(&home, options);
        ran.check(2, &[], &[&format!("these options are missing: {missing}\n"), "hint: attache setup --model"]);
    }
    // The model of agent.toml needs no option, and a key that is there neither.
    write(&home.path("config/attache/agent.toml"), "model = 'groq'\n");
    ran(&home, &["--editor", "none", "--yes", "--no-test"]).check(
        0,
        &[],
        &["nothing to change", "in a terminal: `attache`"],
    );
    let mut command = setup(&home, &["--model", "mistral", "--editor", "none", "--dry-run"]);
    command.env("MISTRAL_API_KEY", KEY);
    support::run(command).check(0, &["key: MISTRAL_API_KEY of the environment"], &[]);
}

#[test]
fn what_is_wrong_with_the_options_is_told_before_anything_is_done() {
    let home = Home::new();
    let rest = ["--editor", "zed", "--yes", "--no-test"];
    let before = tree(home.0.path());
    let rows: &[(&[&str], &str)] = &[
        (&["--model", "nobody:x"], "there is no provider `nobody`"),
        (&["--model", "ollama"], "`ollama` has no model of its own"),
        (&["--model", "offline", "--key-from", "MY_KEY"], "has no key"),
        (&["--model", "openai", "--key-from", "NO_SUCH_VARIABLE"], "no environment variable of that name is set"),
        (&["--model", "openai", "--key-from", "-"], "invalid API key"),
        (&["--model", "openai", "--key-from", "MY_KEY", "--base-url", "file:///x"], "--base-url: "),
        (&["--base-url", "http://127.0.0.1:1/v1"], "--model"),
    ];
    for (options, what) in rows {
        ran(&home, &[options, &rest[..]].concat()).check(2, &[], &[what]);
    }
    // Whoever gives the key itself does not see it again.
    let ran = ran(&home, &[&["--model", "openai", "--key-from", "sk-typed-by-mistake"][..], &rest].concat());
    assert!(ran.code == 2 && !ran.err.contains("sk-typed"), "{}", ran.err);
    assert_eq!(tree(home.0.path()), before);
    // Settings that are wrong are told, and not made more so.
    write(&home.path("config/attache/agent.toml"), "modle = 'x'\n");
    super::ran(&home, &editor("zed")).check(2, &[], &["line 1: unknown field `modle`"]);
    assert!(!home.path("config/zed").exists());
}

#[test]
fn a_key_comes_from_a_pipe() {
    let home = Home::new();
    let options = ["--model", "groq", "--key-from", "-", "--editor", "none", "--yes", "--no-test"];
    let mut command = setup(&home, &options);
    write(&home.path("key.txt"), &format!("{KEY}\n"));
    command.stdin(fs::File::open(home.path("key.txt")).unwrap());
    let ran = support::run(command);
    ran.check(0, &[], &["keys.json`, which only you can read"]);
    fs::remove_file(home.path("key.txt")).unwrap();
    assert_eq!(with_key(&home), [home.path("config/attache/keys.json")]);
    assert!(!ran.err.contains(KEY));
}

#[test]
fn the_offline_model_is_asked_too() {
    let home = Home::new();
    let ran = ran(&home, &["--model", "offline", "--editor", "none", "--yes"]);
    ran.check(0, &[], &["it answered in", "ready"]);
    assert_eq!(read(&home.path("config/attache/agent.toml")), "model = \"offline:rules\"\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_prompt_that_fails_says_what_to_do_and_leaves_the_settings() {
    let server = ModelServer::start(vec![Answer::status(401)]).await;
    let home = Home::new();
    let url = format!("{}/v1", server.url());
    let failed = ran(&home, &words(&url));
    failed.check(1, &[], &["the test prompt to `openai:scripted` failed", "hint: "]);
    assert!(home.path("config/zed/settings.json").exists());
    // One that is not there.
    drop(server);
    let failed = ran(&home, &words(&url));
    failed.check(1, &[], &["the test prompt to `openai:scripted` failed", "hint: "]);
}
