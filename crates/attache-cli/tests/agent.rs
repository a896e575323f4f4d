//! `attache agent` as it is typed and as an editor starts it: settings, keys, the wire, what ends it.
// On Unix, because they need signals, modes of files and descriptors. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use support::{Home, Ran, at_terminal, in_terminal, run, wait_until_gone};

const KEY: &str = "sk-very-secret-0001";

impl Home {
    fn write_settings(&self, text: &str) {
        fs::create_dir_all(self.path("config/attache")).unwrap();
        fs::write(self.path("config/attache/agent.toml"), text).unwrap();
    }

    fn with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        run(command)
    }

    fn keys(&self) -> String {
        fs::read_to_string(self.path("config/attache/keys.json")).unwrap_or_default()
    }
}

#[test]
fn it_is_an_agent_like_the_others_and_the_one_that_is_used_without_a_name() {
    let home = Home::new();
    let first = |home: &Home| home.run(&["agents", "list", "--json"]).json()[0].clone();
    let own = first(&home);
    assert_eq!((&own["name"], &own["installed"], &own["default"]), (&json!("attache"), &json!("yes"), &json!(true)));
    assert_eq!(own["command"][1], "agent");
    home.run(&["agents", "list"]).check(0, &["attache*  yes"], &[]);
    home.run(&["agents", "show", "attache"]).check(0, &["attache (default)", "built in", "attache login"], &[]);
    let probed = home.run(&["agents", "probe", "attache"]);
    probed.check(0, &["modes       mode = ask*, architect, code", "offline:rules*", "/permissions", "fork"], &[]);
    home.run(&["agents", "show", "atache"]).check(8, &[], &["did you mean `attache`?"]);
    // Another default.
    home.run(&["agents", "add", "claude", "--default"]).check(0, &[], &[]);
    assert_eq!(first(&home)["default"], false);
    home.run(&["agents", "add", "attache", "--default"]).check(0, &[], &["`attache` is the default now"]);
    home.run(&["doctor"]).check(1, &["ok    agents.toml 0 agents, default `attache`"], &[]);
    home.run(&["agents", "remove", "attache"]).check(8, &[], &["it is built in"]);
    // An entry of one's own comes first, as for the others.
    home.run(&["agents", "add", "attache", "--", &support::scripted()]).check(0, &[], &["added `attache`"]);
    home.run(&["run", "blocks"]).check(0, &["text"], &["scripted"]);
    let listed = home.run(&["agents", "list", "--json"]).json();
    let rows: Vec<_> = listed.iter().filter(|row| row["name"] == "attache").collect();
    assert_eq!((rows.len(), &rows[0]["source"], &rows[0]["default"]), (1, &json!("own"), &json!(true)));
    home.run(&["agents", "remove", "attache"]).check(0, &[], &["the built-in agent of that name is used"]);
    home.run(&["run", "say hello"]).check(0, &["hello"], &["Attaché"]);
}

#[test]
fn the_doctor_looks_at_it() {
    let home = Home::new();
    home.install("sh");
    let rows = ["ok    agent.toml", "ok    model       offline:rules (ATTACHE_MODEL)", "ok    keys        none"];
    home.run(&["doctor"]).check(0, &[&rows[..], &["ok    sessions", "commands"]].concat(), &[]);
    home.with(&[("ATTACHE_MODEL", ""), ("GROQ_API_KEY", KEY)], &["doctor"]).check(
        0,
        &["ok    model       groq:openai/gpt-oss-120b (GROQ_API_KEY is set)"],
        &[],
    );
    home.with(&[("ATTACHE_MODEL", "openai")], &["doctor"]).check(
        1,
        &["FAIL  model       openai:gpt-5.1 (ATTACHE_MODEL): no API key", "attache login openai"],
        &[],
    );
    home.write_settings("model = 'offline'\n\nsandbox = 'off'\n");
    let ran = home.with(&[("ATTACHE_MODEL", "")], &["doctor"]);
    ran.check(0, &["offline:rules (agent.toml)", "warn  commands    the agent's commands are not confined"], &[]);
    home.write_settings("model = 'offline'\n\nsandbxo = 'off'\n");
    home.run(&["doctor"]).check(1, &["FAIL  agent.toml", "line 3: unknown field `sandbxo`"], &[]);
    home.write_settings("");
    fs::write(home.path("config/attache/keys.json"), format!("{{\"openai\":\"{KEY}\"}}")).unwrap();
    let ran = home.run(&["doctor"]);
    ran.check(1, &["FAIL  keys", "can be read by others", "chmod 600"], &[]);
    assert!(!ran.out.contains(KEY));
    fs::create_dir_all(home.path("state/attache/agent")).unwrap();
    fs::write(home.path("state/attache/agent/sessions"), "").unwrap();
    home.run(&["doctor"]).check(1, &["FAIL  sessions", "is no directory"], &[]);
}

#[test]
fn what_is_wrong_with_the_settings_is_told_before_anything_starts() {
    let rows: &[(&str, &str, &[&str], i32, &str)] = &[
        ("", "", &["--model", "nobody:x"], 2, "there is no provider `nobody`"),
        ("", "", &["--model", "gpt-5"], 2, "`gpt-5` names no provider"),
        ("", "", &["--model", "ollama"], 2, "`ollama` has no model of its own"),
        ("nobody:x", "", &[], 2, "ATTACHE_MODEL: there is no provider `nobody`"),
        ("", "model = 'nobody:x'", &[], 2, "agent.toml: there is no provider `nobody`"),
        ("", "\nmodle = 'x'", &[], 2, "agent.toml`: line 2: unknown field `modle`"),
        ("", "mode = 'free'", &[], 2, "line 1: `mode` is one of `ask`, `architect`, `code`"),
        ("", "model = ", &[], 2, "line 1"),
        // What is chosen on the command line does not depend on what else is wrong.
        ("nobody:x", "", &["--model", "offline"], 0, ""),
        ("openai", "", &[], 4, "no API key for `openai`\nhint: set OPENAI_API_KEY, or type `attache login openai`"),
        ("", "", &["--model", "anthropic"], 4, "type `attache login anthropic`"),
    ];
    for (variable, settings, options, code, said) in rows {
        let home = Home::new();
        home.write_settings(settings);
        let variables = [("ATTACHE_MODEL", *variable)];
        home.with(&variables, &[&["run"], *options, &["say hello"]].concat()).check(*code, &[], &[said]);
        if *code == 2 {
            // Stdout is the wire, and nothing is said there that is no message.
            let ran = home.with(&variables, &[&["agent"], *options].concat());
            ran.check(2, &[], &[said]);
            assert_eq!(ran.out, "");
        }
        if *code == 4 {
            let ran = home.with(&variables, &[&["run", "-o", "json"], *options, &["say hello"]].concat());
            let result: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!((&result["status"], &result["session_id"]), (&json!("login_required"), &Value::Null));
            assert!(result["error"]["hint"].as_str().unwrap().contains("attache login"), "{result}");
        }
    }
}

fn piped(home: &Home, args: &[&str], text: &str) -> Ran {
    let mut command = home.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that knows already that it will fail does not read it.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_key_comes_from_a_pipe_is_kept_in_private_and_never_shown() {
    let home = Home::new();
    let login = |text: &str| piped(&home, &["agent", "login", "openai"], text);
    let ran = login(&format!("{KEY}\nsomething else\n"));
    ran.check(0, &[], &["the key for openai is kept"]);
    assert!(!ran.err.contains(KEY) && ran.out.is_empty());
    assert_eq!(serde_json::from_str::<Value>(&home.keys()).unwrap(), json!({ "openai": KEY }));
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("config/attache/keys.json"), mode("config/attache")), (0o600, 0o700));
    for text in ["", "\n", "two words\n", "a\u{7}b\n"] {
        login(text).check(2, &[], &["invalid API key"]);
    }
    piped(&home, &["agent", "login", "nobody"], KEY).check(2, &[], &["there is no provider `nobody`"]);
    piped(&home, &["agent", "login", "offline"], KEY).check(2, &[], &["has no key"]);
    // It is what a model is chosen by now, and nothing shows it.
    let variables = [("ATTACHE_MODEL", "")];
    for args in [&["agent", "models"][..], &["agent", "models", "--json"], &["doctor"], &["agents", "show", "attache"]]
    {
        let ran = home.with(&variables, args);
        assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{args:?}");
    }
    home.with(&variables, &["agent", "models"]).check(
        0,
        &["openai       key: yes", "anthropic    key: no"],
        &["would use: openai:gpt-5.1 (its key is kept)"],
    );
    // A key in the environment comes first, and cannot be forgotten here.
    let set = [("ATTACHE_MODEL", ""), ("OPENAI_API_KEY", "another")];
    home.with(&set, &["agent", "models"]).check(0, &[], &["(OPENAI_API_KEY is set)"]);
    home.with(&set, &["agent", "logout", "openai"]).check(0, &[], &["is forgotten", "OPENAI_API_KEY is still set"]);
    assert_eq!(home.keys().trim(), "{}");
    home.run(&["agent", "logout", "openai"]).check(0, &[], &["there was no key"]);
    // A file that is not ours alone is not read, and not written.
    fs::write(home.path("config/attache/keys.json"), format!("{{\"groq\":\"{KEY}\"}}")).unwrap();
    fs::set_permissions(home.path("config/attache/keys.json"), fs::Permissions::from_mode(0o640)).unwrap();
    login("new\n").check(2, &[], &["can be read by others", "hint: chmod 600"]);
    fs::set_permissions(home.path("config/attache/keys.json"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(home.path("config/attache/keys.json"), format!("[\"{KEY}\"")).unwrap();
    let ran = login("new\n");
    ran.check(2, &[], &["is not a valid key file"]);
    assert!(!ran.err.contains(KEY));
}

#[test]
fn a_key_is_typed_without_being_shown_and_the_terminal_is_as_before() {
    let home = Home::new();
    let login = |args: &[&str], answers: &[(&str, &str)]| {
        let mut command = home.command(args);
        command.stdout(Stdio::null());
        at_terminal(command, true, answers)
    };
    let typed = format!("{KEY}\n");
    let (seen, code, shows) = login(&["agent", "login", "openai"], &[("(not shown): ", &typed)]);
    assert_eq!((code, shows), (0, true), "{seen}");
    assert!(!seen.contains(KEY) && seen.contains("is kept"), "{seen}");
    assert!(home.keys().contains(KEY));
    // Ctrl-C, and the end of input.
    let (seen, code, shows) = login(&["agent", "login", "groq"], &[("(not shown): ", "half\u{3}")]);
    assert_eq!((code, shows), (130, true), "{seen}");
    let (seen, code, shows) = login(&["agent", "login", "groq"], &[("(not shown): ", "\u{4}")]);
    assert_eq!((code, shows), (2, true), "{seen}");
    assert!(!home.keys().contains("groq"));
    // Editors add what the agent says to what they start it with.
    let (seen, code, _) =
        login(&["agent", "--model", "groq", "--mode", "code", "login", "groq"], &[("(not shown): ", &typed)]);
    assert_eq!(code, 0, "{seen}");
    assert!(home.keys().contains("groq"));
}

#[test]
fn a_client_logs_in_to_it_in_a_terminal() {
    let home = Home::new();
    let chosen = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("ATTACHE_MODEL", "openai").stdout(Stdio::null());
        command
    };
    run(chosen(&["agents", "login", "attache", "--auth", "key"])).check(4, &[], &["no API key for `openai`"]);
    let typed = format!("{KEY}\n");
    let answers = [("Number: ", "2\n"), ("Key for openai (not shown): ", typed.as_str())];
    let (seen, code, shows) = at_terminal(chosen(&["agents", "login", "attache"]), true, &answers);
    assert_eq!((code, shows), (0, true), "{seen}");
    assert!(seen.contains("1  key: Key for openai") && seen.contains("logged in to `attache`"), "{seen}");
    assert!(home.keys().contains(KEY) && !seen.contains(KEY));
    run(chosen(&["agents", "login", "attache", "--auth", "key"])).check(0, &[], &["logged in"]);
    run(chosen(&["agents", "logout", "attache"])).check(0, &[], &["logged out of `attache`"]);
    assert!(!home.keys().contains(KEY));
    // With a model that needs no key there is nothing to log in to.
    home.run(&["agents", "login", "attache"]).check(2, &[], &["no way to log in", "attache login PROVIDER"]);
}

/// The agent as an editor starts it.
struct Wire {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Wire {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Wire { child, stdin, stdout }
    }

    fn send(&mut self, message: Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Reads messages until one has this in it. Whatever is no message is a failure.
    fn wait_for(&mut self, part: &str) -> Value {
        loop {
            if self.stdout.buffer().is_empty() {
                let mut ready =
                    libc::pollfd { fd: self.stdout.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one value, which lives through the call.
                assert_eq!(unsafe { libc::poll(&mut ready, 1, 30_000) }, 1, "no {part} within half a minute");
            }
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "no {part}");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0");
            if line.contains(part) {
                return message;
            }
        }
    }

    fn greet(&mut self) {
        let client = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }));
        self.wait_for("agentCapabilities");
    }

    fn open(&mut self, home: &Home) -> String {
        let params = json!({ "cwd": home.0.path(), "mcpServers": [] });
        self.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params }));
        self.wait_for("\"id\":2")["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params }));
    }

    /// Closes stdin, and returns what else came and the exit code.
    fn close(mut self) -> (String, Option<i32>) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

/// A home where the agent may run what the tests run.
fn permissive() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path("config/attache")).unwrap();
    let rules = "[[rule]]\nverdict = 'allow'\ncommand = ['sleep']\n[[rule]]\nverdict = 'allow'\ncommand = ['echo']\n";
    fs::write(home.path("config/attache/permissions.toml"), rules).unwrap();
    home
}

fn agent(home: &Home) -> Command {
    let mut command = home.command(&["agent"]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// A process that is gone before it has said a word shows nothing in an editor: the client is told what is wrong.
#[test]
fn settings_that_are_wrong_are_told_to_the_client() {
    let bad_file = Home::new();
    fs::create_dir_all(bad_file.path("config/attache")).unwrap();
    fs::write(bad_file.path("config/attache/agent.toml"), "modle = 'x'\n").unwrap();
    // Nothing can be kept where there is a file.
    let read_only = Home::new();
    fs::remove_dir_all(read_only.path("state")).ok();
    fs::write(read_only.path("state"), "").unwrap();
    for (home, says) in [(bad_file, "unknown field `modle`"), (read_only, "sessions cannot be kept")] {
        for version in [1, 2] {
            let mut wire = Wire::start(agent(&home));
            let info = json!({ "name": "test", "version": "1" });
            let client = json!({ "protocolVersion": version, "info": info });
            wire.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }));
            wire.wait_for("\"id\":1");
            let cwd = home.0.path();
            let old = json!({ "sessionId": "sess-1", "cwd": cwd, "mcpServers": [] });
            // Nobody is told that sessions which were kept are not there: a client might forget them.
            let calls = [
                ("session/new", json!({ "cwd": cwd, "mcpServers": [] })),
                (if version == 1 { "session/load" } else { "session/resume" }, old.clone()),
                ("session/resume", old.clone()),
                ("session/fork", old),
                ("session/list", json!({})),
                ("session/delete", json!({ "sessionId": "sess-1" })),
            ];
            for (id, (method, params)) in (2..).zip(calls) {
                wire.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
                let error = wire.wait_for(&format!("\"id\":{id}"))["error"].clone();
                assert_eq!(error["code"], -32603, "{version} {method}: {error}");
                assert!(error["message"].as_str().unwrap().contains(says), "{version} {method}: {error}");
            }
            let (rest, code) = wire.close();
            assert_eq!((rest.as_str(), code), ("", Some(2)), "{says}");
        }
    }
}

/// The system's certificates are files too, and there are hundreds of them.
#[test]
fn certificates_on_a_stuck_disk_delay_no_other_request() {
    let home = Home::new();
    let certificates = home.path("certificates");
    assert!(Command::new("mkfifo").arg(&certificates).status().unwrap().success());
    let mut command = agent(&home);
    command.env("ATTACHE_MODEL", "openai:m").env("ATTACHE_BASE_URL", "https://127.0.0.1:1/v1");
    command.env("ATTACHE_MODEL_LISTS", "off").env("OPENAI_API_KEY", KEY).env("SSL_CERT_FILE", &certificates);
    let mut wire = Wire::start(command);
    wire.greet();
    let session = wire.open(&home);
    wire.prompt(&session, "hello");
    // Opens when the agent reads them; it gets nothing to read.
    let (opened, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || opened.send(fs::OpenOptions::new().write(true).open(certificates)));
    let stuck = wait.recv_timeout(std::time::Duration::from_secs(30)).unwrap().unwrap();
    wire.send(json!({ "jsonrpc": "2.0", "id": 4, "method": "session/list", "params": {} }));
    wire.wait_for("\"id\":4");
    wire.send(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(wire.wait_for("\"id\":3")["result"]["stopReason"], "cancelled");
    drop(stuck);
    assert_eq!(wire.close().1, Some(0));
}

#[test]
fn stdout_is_the_wire_and_the_end_of_stdin_is_the_end() {
    let home = permissive();
    assert_eq!(Wire::start(agent(&home)).close(), (String::new(), Some(0)));
    let mut wire = Wire::start(agent(&home));
    wire.greet();
    // What is no message is answered by one.
    writeln!(wire.stdin.as_mut().unwrap(), "nonsense\u{1b}[2J").unwrap();
    wire.wait_for("-32700");
    let session = wire.open(&home);
    wire.prompt(&session, "run echo out && echo more\nsay done");
    let answer = wire.wait_for("\"id\":3");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let (rest, code) = wire.close();
    assert!(rest.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{rest}");
    assert_eq!(code, Some(0));
}

#[test]
fn what_ends_it_ends_its_commands() {
    for (number, how) in [Some(libc::SIGTERM), Some(libc::SIGINT), Some(libc::SIGKILL), None].into_iter().enumerate() {
        let home = permissive();
        let mut wire = Wire::start(agent(&home));
        wire.greet();
        let session = wire.open(&home);
        let marker = format!("{}.{number}5", 20_000 + std::process::id());
        wire.prompt(&session, &format!("run sleep {marker}"));
        wire.wait_for("in_progress");
        match how {
            // SAFETY: it is our child, which was not waited for yet.
            Some(signal) => assert_eq!(unsafe { libc::kill(wire.child.id().cast_signed(), signal) }, 0),
            None => drop(wire.stdin.take()),
        }
        let status = wire.child.wait().unwrap();
        assert_eq!(status.code() == Some(0), how.is_none(), "{status}");
        wait_until_gone(&marker);
    }
}

#[test]
fn sessions_are_listed_exported_and_deleted_also_while_one_is_open() {
    let home = permissive();
    let sessions = |args: &[&str]| home.run(&[&["agent", "sessions"], args].concat());
    sessions(&["list"]).check(0, &[], &["no sessions yet"]);
    assert_eq!(sessions(&["list", "--json"]).out, "");
    let mut wire = Wire::start(agent(&home));
    wire.greet();
    let id = wire.open(&home);
    wire.prompt(&id, "plan say evil \u{1b}[2J\u{202e}title, run echo out, say bye");
    wire.wait_for("\"id\":3");
    // Open in the other process.
    let row = sessions(&["list", "--json"]).json().remove(0);
    assert_eq!((&row["id"], &row["prompts"]), (&json!(id), &json!(1)));
    sessions(&["list"]).check(0, &[&id, "plan say evil \\x1b[2J\\u{202e}title"], &[]);
    sessions(&["list", "-C", "/"]).check(0, &[], &["no sessions yet"]);
    sessions(&["list", "-n", "0"]).check(2, &[], &["0 is not in"]);
    let document = sessions(&["export", &id[..12]]);
    assert_eq!(document.code, 0, "{}", document.err);
    for part in [
        "# plan say evil \\x1b[2J\\u{202e}title, run",
        "## Prompt",
        "## Agent",
        "- [ ] run echo out",
        "**echo out** (completed)",
    ] {
        assert!(document.out.contains(part), "{part:?} in {}", document.out);
    }
    assert_eq!(document.out.matches("## Agent").count(), 1, "{}", document.out);
    let entries = sessions(&["export", &id, "-f", "json"]);
    entries.check(0, &["\\u202e"], &[]);
    let kinds: Vec<Value> = entries.json().into_iter().map(|entry| entry["type"].clone()).collect();
    assert_eq!((&kinds[0], &kinds[1], kinds.last()), (&json!("opened"), &json!("prompt"), Some(&json!("turn_ended"))));
    sessions(&["delete", &id]).check(2, &[], &["the session is open now"]);
    // A second one that begins alike, as all ids do.
    let other = {
        let mut wire = Wire::start(agent(&home));
        wire.greet();
        wire.open(&home)
    };
    sessions(&["export", "sess_"]).check(2, &[], &["`sess_` is the beginning of 2 ids"]);
    for wrong in ["", "nope", "../../etc"] {
        assert_eq!(sessions(&["export", wrong]).code, 8, "{wrong}");
        assert_eq!(sessions(&["delete", wrong]).code, 8, "{wrong}");
    }
    assert_eq!(wire.close().1, Some(0));
    sessions(&["delete", "sess_"]).check(2, &[], &["`sess_` is the beginning of 2 ids"]);
    sessions(&["delete", &id[..id.len() - 1]]).check(0, &[], &["deleted"]);
    sessions(&["export", &id]).check(8, &[], &["no session"]);
    sessions(&["list"]).check(0, &[&other, "(no prompt yet)"], &[]);
}

#[test]
fn a_damaged_session_is_exported_as_far_as_it_goes() {
    let home = Home::new();
    home.run(&["run", "say one"]).check(0, &["one"], &[]);
    home.run(&["run", "--continue", "say two"]).check(0, &["two"], &[]);
    let id = home.run(&["agent", "sessions", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let path = home.path(&format!("state/attache/agent/sessions/{id}.log"));
    let log = fs::read_to_string(&path).unwrap();
    // Cut off in the middle of a record, as by a power failure: nobody need know.
    fs::write(&path, &log[..log.len() - 5]).unwrap();
    home.run(&["agent", "sessions", "export", &id]).check(0, &["say one", "say two"], &[]);
    // Changed in the middle: what stands before it is printed, and the rest is told.
    fs::write(&path, log.replacen("say two", "say TWO", 1)).unwrap();
    home.run(&["agent", "sessions", "export", &id]).check(
        1,
        &["say one"],
        &["this is not all of it", "is damaged at byte"],
    );
    home.run(&["agent", "sessions", "delete", &id]).check(0, &[], &[]);
}

#[test]
fn runs_and_sessions_of_the_agent_are_deleted_together() {
    let home = Home::new();
    for text in ["say one", "say two", "say three"] {
        home.run(&["run", text]).check(0, &[], &[]);
    }
    let logs = || {
        let entries = fs::read_dir(home.path("state/attache/agent/sessions")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "log")).count()
    };
    assert_eq!(logs(), 3);
    // A list says how much of it there is.
    for list in [&["agent", "sessions", "list", "-n", "1"][..], &["sessions", "list", "-n", "1"]] {
        let ran = home.run(list);
        ran.check(0, &[], &["and 2 more", "`-n 3`"]);
        assert_eq!(ran.out.lines().count(), 1);
    }
    home.run(&["agent", "sessions", "list", "-n", "3"]).check(0, &[], &[]);
    assert_eq!(home.run(&["agent", "sessions", "list", "-n", "3"]).err, "");
    // Nothing is that old.
    home.run(&["sessions", "delete", "--older-than", "30d", "--yes"]).check(0, &[], &["there is nothing to delete"]);
    home.run(&["agent", "sessions", "delete", "--older-than", "30d", "--yes"]).check(0, &[], &["nothing to delete"]);
    // Without a yes nothing goes, and the question names both.
    home.run(&["sessions", "delete", "--all"]).check(2, &[], &["nobody is there to ask"]);
    home.run(&["agent", "sessions", "delete", "--all"]).check(2, &[], &["nobody is there to ask"]);
    let (screen, code) = in_terminal(home.command(&["sessions", "delete", "--all"]), &[("[N] no: ", "n\n")]);
    assert!(screen.contains("the records of 3 runs and 3 sessions of the built-in agent"), "{screen}");
    assert!(code != 0 && logs() == 3);
    // One that is damaged goes as well.
    let first = fs::read_dir(home.path("state/attache/agent/sessions")).unwrap().flatten();
    let log = first.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    fs::write(log, "nonsense").unwrap();
    home.run(&["sessions", "delete", "--all", "--yes"]).check(
        0,
        &[],
        &["deleted 3 runs and 3 sessions of the built-in agent"],
    );
    assert_eq!(logs(), 0);
    home.run(&["run", "say four"]).check(0, &[], &[]);
    home.run(&["agent", "sessions", "delete", "--all", "--yes"]).check(0, &[], &["deleted 1 session"]);
    assert_eq!(logs(), 0);
    home.run(&["sessions", "list"]).check(0, &["say four"], &[]);
}

#[test]
fn what_a_run_cannot_do_as_it_was_told_is_said() {
    let home = Home::new();
    fs::create_dir_all(home.path("work/.git")).unwrap();
    fs::write(home.path("secret"), "x").unwrap();
    std::os::unix::fs::symlink("../secret", home.path("work/key")).unwrap();
    let run = |args: &[&str]| {
        let mut command = home.command(&[&["run"], args].concat());
        command.current_dir(home.path("work"));
        command
    };
    // A variable that is not set.
    support::run(run(&["--env", "NOTSET", "--env", "HOME", "say hi"])).check(0, &["hi"], &["`--env NOTSET`"]);
    assert!(!support::run(run(&["--env", "HOME", "say hi"])).err.contains("--env"));
    // A link that leads out is attached by the path that it leads to, and that works.
    let target = home.path("secret").canonicalize().unwrap().display().to_string();
    support::run(run(&["say hi @key"])).check(0, &[], &[&format!("`--attach {target}`")]);
    support::run(run(&["--attach", &target, "say hi"])).check(0, &["hi"], &[]);
    // A terminal that nobody could be asked on, because stderr is a file.
    let errors = home.path("errors");
    let mut command = Command::new("/bin/sh");
    let line = format!("exec \"$0\" run 'run ls' 2>'{}'", errors.display());
    let inner = run(&[]);
    command.args(["-c", &line]).arg(inner.get_program()).current_dir(home.path("work"));
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    let (_, code) = in_terminal(command, &[]);
    let errors = fs::read_to_string(errors).unwrap();
    assert!(code == 6 && errors.contains("stderr is not the terminal"), "{code} {errors}");
    home.run(&["run", "run ls"]).check(6, &[], &["there is no terminal to ask on", "nothing was done"]);
    home.run(&["sessions", "delete", "--older-than", "1x"]).check(2, &[], &["30s, 5m, 1h or 30d"]);
}

#[test]
fn a_provider_of_ones_own_has_a_key_and_is_listed() {
    let home = Home::new();
    fs::create_dir_all(home.path("config/attache")).unwrap();
    let toml = "[providers.mine]\napi = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\nkey_env = 'MINE_KEY'\n";
    fs::write(home.path("config/attache/agent.toml"), toml).unwrap();
    home.run(&["models"]).check(
        0,
        &["mine         key: no         MINE_KEY", "offline:rules                                no language model"],
        &[],
    );
    piped(&home, &["login", "mine"], KEY).check(0, &[], &["the key for mine is kept"]);
    let chosen = [("ATTACHE_MODEL", "mine:some-model")];
    home.with(&chosen, &["models"]).check(
        0,
        &["mine         key: yes        MINE_KEY", "mine:some-model"],
        &["would use: mine:some-model (ATTACHE_MODEL)"],
    );
    home.run(&["models", "--refresh"]).check(0, &[], &["warning: no list from mine: cannot be reached\n"]);
    home.run(&["logout", "mine"]).check(0, &[], &["the key for mine is forgotten"]);
    // A header that cannot be filled in is as good as no key.
    fs::write(home.path("config/attache/agent.toml"), format!("{}headers = {{ api-key = '${{A_KEY}}' }}\n", &toml))
        .unwrap();
    let needs = "warning: a header of provider `mine` needs $A_KEY, which is not set";
    home.run(&["models"]).check(0, &["mine         key: no         A_KEY"], &[needs]);
    let set = [("A_KEY", "x"), ("MINE_KEY", "y")];
    home.with(&set, &["models"]).check(0, &["mine         key: yes        MINE_KEY"], &[]);
    let wrong = [("ATTACHE_MODEL", "other:x")];
    home.with(&wrong, &["models"]).check(2, &[], &["there is no provider `other`", "providers of your own: mine"]);
}
