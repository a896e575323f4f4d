//! A new account on a machine with nothing but the program: from the setup to a file that a model edited.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use attache_testkit::model_server::ModelServer;

use super::support::{at_terminal, run};
use super::{Home, KEY, read, with_key};

/// The longest that a person should need.
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_new_account_gets_to_an_edited_file_in_a_minute() {
    let server = ModelServer::scripted().await;
    let home = Home::new();
    fs::create_dir_all(home.path("project")).unwrap();
    fs::write(home.path("project/greeting.txt"), "helo\n").unwrap();
    // The program lies where a download puts it, not on PATH, and nothing is set.
    let program = home.path("Downloads/attache");
    fs::create_dir(home.path("Downloads")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_attache"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let ours = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).env_clear().env("HOME", home.0.path()).env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
        command.current_dir(home.path("project")).stdin(Stdio::null());
        command
    };
    let begun = Instant::now();
    let (url, key) = (format!("{}/v1\n", server.url()), format!("{KEY}\n"));
    let answers = [
        ("Number [1]: ", "server\n"),
        ("host:8000/v1: ", url.as_str()),
        ("name there: ", "scripted\n"),
        ("Enter alone is none): ", &key),
        ("Number, or several [1]: ", "zed\n"),
        ("[N] no: ", "y\n"),
    ];
    let mut setup = ours(&["setup"]);
    setup.stdout(Stdio::null());
    let (seen, code, _) = at_terminal(setup, true, &answers);
    assert_eq!(code, 0, "{seen}");
    let set_up = begun.elapsed();
    let entry = format!("\"command\": \"{}\"", program.canonicalize().unwrap().display());
    assert!(read(&home.path(".config/zed/settings.json")).contains(&entry), "{seen}");
    assert_eq!(with_key(&home), [home.path(".config/attache/keys.json")]);

    let prompt = r#"use read {"path": "greeting.txt"}
        use write {"path": "greeting.txt", "content": "hello\n"}"#;
    run(ours(&["run", "--permissions", "edits", prompt])).check(0, &["done"], &["Write `greeting.txt`"]);
    assert_eq!(read(&home.path("project/greeting.txt")), "hello\n");
    let whole = begun.elapsed();
    eprintln!("set up and tried in {:.1} s, a file edited after {:.1} s", set_up.as_secs_f64(), whole.as_secs_f64());
    assert!(whole < MINUTE, "{whole:?}");
}
