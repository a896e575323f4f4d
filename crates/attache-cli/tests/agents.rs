//! The commands `attache agents` and `attache doctor`, as they are typed.
// On Unix, because they need terminals, signals and shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

mod support;

use support::{Home, in_terminal, run, scripted};

#[test]
fn agents_are_added_listed_shown_and_removed() {
    let home = Home::new();
    let secret = "sk-very-secret";
    let added =
        home.run(&["agents", "add", "mine", "--env", &format!("KEY={secret}"), "--default", "--", "./tool", "a b"]);
    added.check(0, &[], &["added `mine`", "tool 'a b'", "not there yet"]);
    assert!(added.out.is_empty());
    assert_eq!(fs::metadata(home.config()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path("config/attache")).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(fs::read_to_string(home.config()).unwrap().contains(secret));

    let listed = home.run(&["agents", "list"]);
    listed.check(0, &["mine*", "claude", "codex"], &[]);
    let shown = home.run(&["agents", "show", "mine"]);
    shown.check(0, &["mine (default)", "KEY=…", "tool 'a b'"], &[]);
    let json = home.run(&["agents", "show", "mine", "--json"]).json();
    assert_eq!(json[0]["env"], serde_json::json!(["KEY"]));
    // It was typed relative to the directory of then, and stays that program.
    assert_eq!(json[0]["command"][0], home.path("tool").canonicalize().unwrap_or(home.path("tool")).to_str().unwrap());
    for args in
        [&["agents", "list", "--json"][..], &["agents", "show", "mine"], &["doctor", "--json"], &["agents", "list"]]
    {
        let ran = home.run(args);
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{args:?}");
    }

    home.run(&["agents", "add", "mine", "--", "other"]).check(0, &[], &["replaced `mine`"]);
    home.run(&["agents", "remove", "mine"]).check(0, &[], &["removed `mine`", "was the default"]);
    home.run(&["agents", "remove", "mine"]).check(8, &[], &["no agent `mine`"]);
    home.run(&["agents", "remove", "claude"]).check(8, &[], &["it is built in"]);
}

#[test]
fn names_that_are_wrong_are_answered_with_help() {
    let home = Home::new();
    home.run(&["agents", "show", "claud"]).check(8, &[], &["no agent `claud`", "did you mean `claude`?"]);
    home.run(&["agents", "probe", "./agent"]).check(2, &[], &["after `--`"]);
    home.run(&["agents", "probe", "sh -c ls"]).check(2, &[], &["after `--`"]);
    home.run(&["agents", "probe", "a\u{1b}[2J"]).check(8, &[], &["a\\x1b[2J"]);
    for name in ["Bad", "-x=", "a/b", "a b", ""] {
        assert_eq!(home.run(&["agents", "add", name, "--", "x"]).code, 2, "{name}");
    }
    home.run(&["agents", "add", "mine"]).check(2, &[], &["missing command for agent `mine`"]);
    home.run(&["agents", "add", "mine", "--default"]).check(8, &[], &["no agent `mine`"]);
    home.run(&["agents", "add", "claude", "--default"]).check(0, &[], &["`claude` is the default now"]);
    home.run(&["agents", "list"]).check(0, &["claude*"], &[]);
    // A built-in agent that is not installed, and cannot be fetched.
    home.run(&["agents", "probe", "gemini"]).check(9, &[], &["not found", "npm install -g @google/gemini-cli"]);
}

#[test]
fn a_program_comes_before_a_package() {
    let home = Home::new();
    let command = |home: &Home| home.run(&["agents", "show", "gemini", "--json"]).json()[0].clone();
    assert_eq!(command(&home)["installed"], "no");
    home.install("npx");
    assert_eq!(command(&home)["command"][0], "npx");
    assert_eq!(command(&home)["installed"], "on_demand");
    home.install("gemini");
    assert_eq!(command(&home)["command"], serde_json::json!(["gemini", "--acp"]));
    assert_eq!(command(&home)["installed"], "yes");
}

#[test]
fn a_file_that_is_wrong_is_told_by_line_and_left_alone() {
    let home = Home::new();
    let text = "# mine\n[agents.a]\ncommand = ['x']\nenv = { KEY = ['sk-secret'] }\n";
    home.write_config(text);
    for args in [&["agents", "list"][..], &["agents", "add", "b", "--", "y"], &["agents", "remove", "a"]] {
        let ran = home.run(args);
        ran.check(2, &[], &["agents.toml`: line 4: agent `a`"]);
        assert!(!ran.err.contains("sk-secret"));
    }
    home.run(&["doctor"]).check(1, &["FAIL  agents.toml"], &["checks failed"]);
    assert_eq!(fs::read_to_string(home.config()).unwrap(), text);
    home.write_config("defualt = 'x'\n");
    home.run(&["agents", "list"]).check(2, &[], &["line 1: unknown field `defualt`"]);
}

#[test]
fn comments_and_links_survive_a_change() {
    let home = Home::new();
    let before = "# my agents\n[agents.a] # the first\ncommand = [\"x\"]\n";
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("dotfile"), before).unwrap();
    std::os::unix::fs::symlink(home.path("dotfile"), home.config()).unwrap();
    home.run(&["agents", "add", "b", "--", "y"]).check(0, &[], &[]);
    assert!(fs::symlink_metadata(home.config()).unwrap().is_symlink());
    assert!(fs::read_to_string(home.path("dotfile")).unwrap().starts_with(before));
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let home = Home::new();
    let names: Vec<String> = (0..12).map(|number| format!("agent-{number}")).collect();
    let start = |name| home.command(&["agents", "add", name, "--", "x"]).stderr(Stdio::null()).spawn().unwrap();
    let children: Vec<_> = names.iter().map(|name| start(name)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = home.run(&["agents", "list", "--json"]).json();
    let own: Vec<_> = listed.iter().filter(|agent| agent["source"] == "own").collect();
    assert_eq!(own.len(), names.len());
    let left: Vec<_> =
        fs::read_dir(home.path("config/attache")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

const REGISTRY: &str = r#"{"version":"1.0.0","agents":[
    {"id":"one","name":"One\u001b[2J","version":"1.2.3","description":"First\nof all",
     "distribution":{"npx":{"package":"one-agent@1.2.3","args":["--acp"],"env":{"QUIET":"1"}}}},
    {"id":"two","name":"Two","version":"2","description":"","distribution":{"uvx":{"package":"two"}}},
    {"id":"three","name":"Three","version":"3","distribution":{"binary":{
        "linux-x86_64":{"archive":"https://x.example/three.tgz","cmd":"./three","args":["acp"]},
        "linux-aarch64":{"archive":"https://x.example/three.tgz","cmd":"./three","args":["acp"]},
        "darwin-aarch64":{"archive":"https://x.example/three.tgz","cmd":"./three","args":["acp"]}}}},
    {"id":"evil","distribution":{"npx":{"package":"--call=evil"}}}]}"#;

#[test]
fn agents_of_a_registry_are_listed_and_added() {
    let home = Home::new();
    fs::write(home.path("registry.json"), REGISTRY).unwrap();
    home.run(&["agents", "list", "--registry", "registry.json"]).check(
        0,
        &["one", "1.2.3", "npx", "One\\x1b[2J", "First of all", "uvx", "binary"],
        &["skipped 1 invalid registry entries"],
    );
    assert_eq!(home.run(&["agents", "list", "--json", "--registry", "registry.json"]).json().len(), 3);
    // All of it is shown, and nothing is kept without a yes.
    let shown = ["program   npx", "argument  one-agent@1.2.3", "argument  --acp", "variable  QUIET=1"];
    let unasked = home.run(&["agents", "add", "one", "--registry", "registry.json"]);
    unasked.check(2, &[], &[&shown[..], &["nobody is there to ask", "--yes"]].concat());
    assert!(!home.path("config/attache/agents.toml").exists());
    home.run(&["agents", "add", "one", "--env", "KEY=x", "--registry", "registry.json", "--yes"]).check(
        0,
        &[],
        &[&shown[..], &["npx -y one-agent@1.2.3 --acp"]].concat(),
    );
    home.run(&["agents", "show", "one"]).check(0, &["KEY=…", "QUIET=…", "First of all"], &[]);
    let archive = home.run(&["agents", "add", "three", "--registry", "registry.json"]);
    archive.check(8, &[], &["https://x.example/three.tgz", "agents add three -- COMMAND"]);
    home.install("three");
    home.run(&["agents", "add", "three", "--registry", "registry.json", "--yes"]).check(0, &[], &["three acp"]);
    home.run(&["agents", "add", "on", "--registry", "registry.json"]).check(8, &[], &["did you mean `one`?"]);
    home.run(&["agents", "add", "one", "--registry", "nowhere.json"]).check(2, &[], &["cannot read the registry"]);
    home.run(&["agents", "list", "--registry", "http://192.0.2.1/r"]).check(2, &[], &["only https"]);
}

#[test]
fn a_registry_is_fetched_and_bounded() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/registry.json", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n";
        let endless = format!("{head}{}", " ".repeat(9 << 20));
        for answer in [format!("{head}{REGISTRY}"), elsewhere.into(), endless] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            // The client hangs up on what is too long.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    home.run(&["agents", "list", "--registry", &address]).check(0, &["one"], &[]);
    home.run(&["agents", "list", "--registry", &address]).check(2, &[], &["cannot read the registry"]);
    home.run(&["agents", "list", "--registry", &address]).check(2, &[], &["cannot read the registry"]);
    server.join().unwrap();
}

#[test]
fn an_agent_is_probed() {
    let home = Home::new();
    home.scripted(&["probe"], &[]).check(
        0,
        &["scripted\\x1b[2J 1.0", "version 2", "session     opened", "modes       mode = ask*, auto", "/help"],
        &[],
    );
    let v1 = home.scripted(&["probe", "--protocol", "1", "--json"], &[]);
    let found = &v1.json()[0];
    assert_eq!(found["protocol"], "1");
    assert_eq!(found["session"]["status"], "opened");
    assert_eq!(found["session"]["commands"], serde_json::json!(["help"]));
    assert_eq!(found["session"]["options"][0]["current"], "ask");
    // Named agents get their environment.
    home.run(&["agents", "add", "mine", "--env", "KEY=value-of-key", "--", &scripted(), "--show", "KEY"]).check(
        0,
        &[],
        &[],
    );
    home.run(&["agents", "probe", "mine"]).check(0, &["value-of-key"], &[]);
}

#[test]
fn an_agent_that_does_not_start_is_explained() {
    let home = Home::new();
    home.scripted(&["probe"], &["--die", "start"]).check(9, &[], &["exited with status 7", "cannot go on"]);
    home.scripted(&["probe"], &["--die", "session"]).check(9, &["could not be opened"], &[]);
    home.scripted(&["probe"], &["--junk"]).check(0, &["opened"], &[]);
    home.run(&["agents", "probe", "--", "no-such-program"]).check(9, &[], &["`no-such-program` not found"]);
}

#[test]
fn a_missing_login_is_told_and_done() {
    let home = Home::new();
    let state = home.path("state-of-login");
    let agent = ["--auth", "agent", "--state", state.to_str().unwrap()];
    home.scripted(&["probe"], &agent).check(0, &["wants a login first", "key: API key, Just do\\u{202e} it"], &[]);
    let wrong = home.scripted(&["login", "--auth", "kee"], &agent);
    wrong.check(2, &[], &["has no login `kee`", "key: API key", "attache login --auth key -- "]);
    home.scripted(&["login"], &agent).check(0, &[], &["logged in to `scripted_agent`"]);
    assert!(state.exists());
    home.scripted(&["probe"], &agent).check(0, &["session     opened"], &[]);
    home.scripted(&["logout"], &agent).check(0, &[], &["logged out"]);
    assert!(!state.exists());
    home.scripted(&["probe", "--auth", "key"], &agent).check(0, &["session     opened"], &[]);
    home.scripted(&["login"], &[]).check(2, &[], &["offers no way to log in"]);
    home.scripted(&["logout"], &[]).check(1, &[], &["offers no way to log out"]);
}

#[test]
fn a_login_in_a_terminal_needs_one() {
    let home = Home::new();
    let state = home.path("state-of-login");
    let agent = ["--auth", "both", "--state", state.to_str().unwrap()];
    let without = |args: &[&str]| {
        let mut command = home.command(&[&["agents"], args, &["--", &scripted()], &agent].concat());
        // SAFETY: `setsid` may be called between fork and exec. It takes the terminal away that the test may have.
        unsafe { command.pre_exec(|| if libc::setsid() < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }) };
        run(command)
    };
    without(&["login", "--auth", "term"]).check(4, &[], &["takes a terminal", "attache login --auth term -- "]);
    without(&["login"]).check(2, &[], &["which login?", "key: API key", "term: In a terminal (in a terminal)"]);
    assert!(!state.exists());

    // With a terminal, the person is asked, and the agent's own login runs there.
    let mut command = home.command(&[&["agents", "login", "--", &*scripted()], &agent[..]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let answers = [("Number: ", "9\n"), ("Number: ", "2\n"), ("Run it? [y] yes   [N] no: ", "y\n")];
    let (seen, code) = in_terminal(command, &answers);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains(&format!("--login {}", state.display())), "{seen}");
    assert!(seen.contains("A number from 1 to 2") && seen.contains("logging in\r\n"), "{seen}");
    assert!(state.exists());
}

#[test]
fn an_interrupt_while_an_agent_starts_ends_it() {
    let home = Home::new();
    let pid_file = home.path("pid");
    let args = ["agents", "probe", "--", &scripted(), "--pid", pid_file.to_str().unwrap(), "--hang"];
    let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let pid = loop {
        match fs::read_to_string(&pid_file).ok().and_then(|text| text.parse::<i32>().ok()) {
            Some(pid) => break pid,
            None => assert!(Instant::now() < until, "the agent did not start"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // SAFETY: takes numbers; the process is our child, which has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // SAFETY: takes numbers; signal 0 only asks whether the process is there.
    while unsafe { libc::kill(pid, 0) } == 0 {
        assert!(Instant::now() < until, "the agent is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let home = Home::new();
    home.install("sh");
    home.install("codex-acp");
    let well = home.run(&["doctor"]);
    well.check(0, &["ok    version", "ok    agents      attache, codex", "missing: node, npx, uvx", "hint: "], &[]);
    for row in home.run(&["doctor", "--json"]).json() {
        assert!(row["check"].is_string() && row["found"].is_string());
        assert!(["ok", "warn", "fail"].contains(&row["status"].as_str().unwrap()));
    }
    home.write_config("default = 'nobody'\n[agents.a]\ncommand = ['x']\nenv = { K = 'v' }\n");
    fs::set_permissions(home.config(), fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&["doctor"]).check(0, &["warn  agents.toml", "chmod 600"], &[]);
    fs::set_permissions(home.config(), fs::Permissions::from_mode(0o600)).unwrap();
    home.run(&["doctor"]).check(1, &["FAIL  agents.toml", "`nobody`"], &["1 of "]);
}

#[test]
fn the_doctor_names_every_rule_that_does_less_than_it_seems_to() {
    let home = Home::new();
    let rule = |line: &str| format!("[[rule]]\nverdict = 'allow'\n{line}\n");
    let mut rules = rule("command = ['make', 'test']") + &rule("command = ['frobnicate']");
    rules += &rule("command = ['cargo test']");
    rules += &rule("command = ['npm', 'run']");
    rules += &rule("agent = 'python3'\nkind = 'read'");
    rules += &(rule("agent = 'claude'\nkind = 'read'") + &rule("agent = '/usr/bin/python3 /a.py'\nkind = 'read'"));
    fs::create_dir_all(home.path("config/attache")).unwrap();
    fs::write(home.path("config/attache/permissions.toml"), &rules).unwrap();
    let ran = home.run(&["doctor"]);
    let parts =
        ["`make test`", "`frobnicate`", "[\"cargo\", \"test\"]", "`npm run`", "the agent `python3` allows nothing"];
    for part in parts {
        assert!(ran.out.contains(part), "{part} in {}", ran.out);
    }
    assert_eq!(ran.out.matches("warn  permissions").count(), 5, "{}", ran.out);
    let rules = rules + &rule("command = ['other']") + &rule("command = ['another']");
    fs::write(home.path("config/attache/permissions.toml"), &rules).unwrap();
    let ran = home.run(&["doctor"]);
    assert!(ran.out.contains("2 more rules do less"), "{}", ran.out);
    // A message and its hint are one hint.
    fs::write(home.path("config/attache/permissions.toml"), "[[rule]]\nverdict = 'perhaps'\n").unwrap();
    let ran = home.run(&["doctor"]);
    let row: Vec<&str> = ran.out.lines().skip_while(|line| !line.starts_with("FAIL  permissions")).take(2).collect();
    assert_eq!(row.join("\n").matches("hint:").count(), 1, "{row:?}");
}
