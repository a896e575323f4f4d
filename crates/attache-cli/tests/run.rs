//! `attache run` as it is typed: output, exit codes, permissions, signals, what is left behind.
// On Unix, because they need signals, modes of files and shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Home, Ran, Running, check_events, check_result, in_terminal, run, scripted, wait_until_gone};

/// Runs a prompt with the scripted agent, in the directory `work` of a home of its own.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path("work")).unwrap();
    home
}

fn prompt(home: &Home, options: &[&str], agent: &[&str]) -> Command {
    let work = home.path("work");
    let cwd: &[&str] = if options.contains(&"-C") { &[] } else { &["-C", work.to_str().unwrap()] };
    let mut command = home.command(&[&["run"], cwd, options, &["--", &scripted()], agent].concat());
    // The agent's commands need more than an empty PATH.
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

fn result(home: &Home, options: &[&str], agent: &[&str]) -> (Ran, Value) {
    let ran = run(prompt(home, &[&["-o", "json"], options].concat(), agent));
    let value = check_result(home, &ran);
    (ran, value)
}

#[test]
fn the_exit_code_tells_how_it_ended() {
    let home = home();
    let rows: &[(&[&str], &[&str], i32, &str)] = &[
        (&["say hello"], &[], 0, "done"),
        (&["error"], &[], 1, "error"),
        (&["stop something_new"], &[], 1, "error"),
        (&["stop cancelled"], &[], 1, "cancelled"),
        (&["--mode", "nonsense", "say hello"], &[], 2, "usage"),
        (&["--set", "nonsense=1", "say hello"], &[], 2, "usage"),
        (&["--model", "gpt", "say hello"], &[], 2, "usage"),
        (&["--image", "missing.png", "say hello"], &[], 2, "usage"),
        (&["-C", "/nowhere", "say hello"], &[], 2, "usage"),
        (&["--timeout", "300ms", "slow"], &[], 3, "timeout"),
        (&["--idle-timeout", "300ms", "slow"], &[], 3, "timeout"),
        (&["--timeout", "300ms", "say hello"], &["--hang"], 3, "timeout"),
        (&["say hello"], &["--auth", "agent", "--state", "/nowhere"], 4, "login_required"),
        (&["--fail-on-denied", "ask make"], &[], 5, "denied"),
        (&["ask make"], &[], 0, "done"),
        (&["stop refusal"], &[], 6, "refused"),
        (&["stop max_tokens"], &[], 6, "limit"),
        (&["stop max_turn_requests"], &[], 6, "limit"),
        (&["--resume", "unknown", "say hello"], &[], 8, "not_found"),
        (&["--continue", "say hello"], &["--die", "nothing"], 8, "not_found"),
        (&["say hello"], &["--die", "start"], 9, "agent_died"),
        (&["say hello"], &["--die", "session"], 9, "agent_died"),
        (&["say hello"], &["--die", "turn"], 9, "agent_died"),
    ];
    for (options, agent, code, status) in rows {
        // `--continue` finds the runs of the other rows, so it gets a home of its own.
        let fresh;
        let home = if options.contains(&"--continue") {
            fresh = self::home();
            &fresh
        } else {
            &home
        };
        let (ran, result) = result(home, options, agent);
        assert_eq!(ran.code, *code, "{options:?} {agent:?}: {}{}", ran.out, ran.err);
        assert_eq!(result["exit_code"], *code, "{options:?}");
        assert_eq!(result["status"], *status, "{options:?}");
        assert_eq!(result["error"].is_null(), *code == 0, "{options:?}: {result}");
        assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    }
    home.run(&["run", "--agent", "cluade", "hi"]).check(8, &[], &["no agent `cluade`", "claude"]);
    // Without a name it is the built-in agent.
    home.run(&["run", "say hello"]).check(0, &["hello"], &["Attaché"]);
    home.run(&["run", "--nonsense"]).check(2, &[], &["--nonsense"]);
    home.run(&["run", "hi", "--", "/nowhere/agent"]).check(9, &[], &["program `/nowhere/agent` not found"]);
}

#[test]
fn the_result_says_everything() {
    let home = home();
    let steps = "say one; tool read the book; say two; fail execute the order; edit /w/a.txt; usage";
    let (_, result) = result(&home, &["--permissions", "all", steps], &[]);
    assert_eq!(result["text"], "one\n\ntwo\n\nedit allowed. ");
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["agent"]["version"], "1.0");
    assert_eq!(result["permissions"], serde_json::json!({ "asked": 1, "allowed": 1, "denied": 0 }));
    let calls: Vec<_> =
        result["tool_calls"].as_array().unwrap().iter().map(|call| call["status"].as_str().unwrap()).collect();
    assert_eq!(calls, ["completed", "failed", "completed"]);
    assert_eq!(result["files_changed"], serde_json::json!(["/w/a.txt"]));
    assert_eq!(result["context"]["used"], 100);
    assert_eq!(result["cost"]["amount"], 0.25);
    assert!(result["session_id"].is_string() && result["run"].is_string());
}

#[test]
fn every_line_of_a_stream_fits_the_published_schema() {
    let home = home();
    let steps = "think hm; say one; plan; tool read it; notice look; usage; read /nowhere; ask make";
    let ran = run(prompt(&home, &["--protocol", "1", "-o", "stream-json", steps], &[]));
    let lines = check_events(&home, &ran);
    assert_eq!(lines[0]["type"], "start");
    assert_eq!(lines[0]["schema"], 1);
    assert_eq!(lines.last().unwrap()["type"], "result");
    for kind in ["agent", "session", "user", "thought", "text", "plan", "tool", "notice", "usage", "permission"] {
        assert!(lines.iter().any(|line| line["type"] == kind), "no {kind} in {}", ran.out);
    }
}

#[test]
fn a_prompt_comes_from_everywhere() {
    let home = home();
    let text = |options: &[&str], stdin: &str| {
        let mut command = prompt(&home, &[&["-o", "quiet"], options].concat(), &[]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(text(&["hello"], ""), "hello\n");
    assert_eq!(text(&["hello"], "context\n"), "hello\n\ncontext\n");
    assert_eq!(text(&["-"], "from stdin\n"), "from stdin\n");
    assert_eq!(text(&[], "from stdin\n"), "from stdin\n");
    fs::write(home.path("prompt.md"), "from a file\n").unwrap();
    assert_eq!(text(&["-f", home.path("prompt.md").to_str().unwrap()], ""), "from a file\n");
    fs::write(home.path("work/a.txt"), "content").unwrap();
    assert_eq!(text(&["blocks @a.txt"], ""), "text resource_link\n");
    assert_eq!(text(&["--attach", "a.txt", "blocks"], ""), "text resource_link\n");
    assert_eq!(text(&["blocks @nowhere"], ""), "text\n");
    // Only what was typed names files.
    assert_eq!(text(&["blocks"], "@a.txt"), "blocks\n\n@a.txt\n");
    fs::write(home.path("work/a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let (ran, _) = result(&home, &["--image", "a.png", "hi"], &[]);
    ran.check(2, &[], &["the agent takes no images"]);
    let (ran, _) = result(&home, &["--image", "a.txt", "hi"], &[]);
    ran.check(2, &[], &["is no image"]);
}

#[test]
fn an_agent_gets_all_that_it_takes() {
    let home = home();
    fs::write(home.path("work/a.txt"), "content").unwrap();
    fs::write(home.path("work/blob"), b"\xff\x00").unwrap();
    fs::write(home.path("work/a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(home.path("work/long.txt"), "x".repeat((1 << 20) + 1)).unwrap();
    fs::create_dir(home.path("more")).unwrap();
    let work = home.path("work").canonicalize().unwrap().display().to_string();
    let more = home.path("more").canonicalize().unwrap().display().to_string();
    for version in ["1", "2"] {
        let text = |options: &[&str]| {
            let (ran, result) = result(&home, &[&["--protocol", version], options].concat(), &["--generous"]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            result["text"].as_str().unwrap().to_owned()
        };
        assert_eq!(text(&["blocks; say @a.txt"]), "text resource@a.txt");
        assert_eq!(text(&["contents; say @a.txt"]), format!("file://{work}/a.txt content@a.txt"));
        assert_eq!(text(&["--attach", "blob", "contents"]), format!("file://{work}/blob /wA="));
        // What would fill the model's context is named, and so is what is no file.
        assert_eq!(text(&["--attach", "long.txt", "--attach", ".", "blocks"]), "text resource_link resource_link");
        assert_eq!(text(&["--image", "a.png", "blocks; contents"]), "text imageimage/png iVBORw0KGgo=");
        assert_eq!(text(&["--model", "large-2", "--mode", "auto", "session"]), "auto large-2 ");
        assert_eq!(text(&["--model", "large", "--set", "mode=auto", "session"]), "auto large-2 ");
        assert_eq!(text(&["--add-dir", "../more", "session"]), format!("ask small-1 {more}"));
    }
    let (ran, _) = result(&home, &["--model", "huge", "say hello"], &["--generous"]);
    ran.check(2, &[], &["invalid value `huge` for option `llm`", "small-1, large-2"]);
    let (ran, _) = result(&home, &["--add-dir", "../more", "session"], &[]);
    ran.check(2, &[], &["additional directories"]);
    let (ran, _) = result(&home, &["--add-dir", "nowhere", "session"], &["--generous"]);
    ran.check(2, &[], &["nowhere"]);
}

#[test]
fn files_and_commands_are_served_as_far_as_they_are_allowed() {
    let home = home();
    let work = home.path("work");
    fs::write(work.join("a.txt"), "inside").unwrap();
    fs::write(work.join(".env"), "SECRET=1").unwrap();
    fs::write(home.path("outside.txt"), "outside").unwrap();
    let path = |name: &str| work.join(name).display().to_string();
    let text = |mode: &[&str], steps: &str| {
        let (_, result) = result(&home, &[&["--protocol", "1"], mode, &[steps]].concat(), &[]);
        result["text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let read = |name: &str| format!("read {}", path(name));
    // Nobody is there to ask.
    assert_eq!(text(&[], &read("a.txt")), "read \"inside\".");
    assert_eq!(text(&[], &read("nowhere")), "not read, -32002.");
    assert_ne!(text(&[], &read(".env")), "read \"SECRET=1\".");
    assert_ne!(text(&[], &read("../outside.txt")), "read \"outside\".");
    assert!(text(&[], &format!("write {} new", path("b.txt"))).starts_with("not written"));
    assert!(text(&[], "run echo hi").starts_with("not run"));
    assert!(!work.join("b.txt").exists());
    // A mode says yes beneath the directories, and no further.
    let edits = ["--permissions", "edits"];
    assert_eq!(text(&edits, &format!("write {} new", path("deep/b.txt"))), "written.");
    assert_eq!(fs::read_to_string(work.join("deep/b.txt")).unwrap(), "new");
    assert!(text(&edits, &format!("write {} new", home.path("c.txt").display())).starts_with("not written"));
    assert!(text(&edits, "run echo hi").starts_with("not run"));
    let all = ["--permissions", "all"];
    assert_eq!(text(&all, "run echo hi; run exit 3"), "exit Some(0), \"hi\\n\". exit Some(3), \"\".");
    assert_eq!(text(&all, &read("../outside.txt")), "read \"outside\".");
    assert!(text(&["--permissions", "none"], &read("a.txt")).starts_with("not read"));
    // A rule says yes to a command, and the agent need not ask twice.
    let config = home.path("config/attache");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("permissions.toml"), "[[rule]]\nverdict = \"allow\"\ncommand = [\"echo\"]\n").unwrap();
    assert_eq!(text(&[], "ask echo hi; run echo hi"), "command allowed. exit Some(0), \"hi\\n\".");
    assert_eq!(text(&[], "ask echo hi; ask echo $(id)"), "command allowed. command denied.");
    // A file of rules that is wrong allows nothing, and is told.
    fs::write(config.join("permissions.toml"), "[[rule]]\nverdict = \"allow\"\ncomand = [\"echo\"]\n").unwrap();
    let (ran, result) = result(&home, &["ask echo hi"], &[]);
    assert_eq!(result["text"], "command denied. ");
    assert!(ran.err.contains("permissions.toml"), "{}", ran.err);
}

#[test]
fn variables_that_a_repository_wants_are_named_and_their_values_are_not() {
    let home = home();
    let folder = home.path("work/.attache");
    fs::create_dir(&folder).unwrap();
    let servers =
        r#"{"mcpServers": {"web": {"url": "https://host/", "headers": {"A": "Bearer ${PATH}", "B": "${NO_SUCH}"}}}}"#;
    fs::write(folder.join("mcp.json"), servers).unwrap();
    let work = home.path("work").display().to_string();
    let ran = home.run(&["trust", "--yes", &work]);
    let told = "it would give MCP server `web` variables of your environment: `PATH`, `NO_SUCH`";
    ran.check(0, &[], &[told]);
    assert!(!ran.err.contains("/bin"), "{}", ran.err);
    home.run(&["run", "-C", &work, "-o", "quiet", "say hi"]).check(
        0,
        &["hi"],
        &["server `web`: environment variable `NO_SUCH` is not set"],
    );
    home.run(&["mcp", "logout", "nobody"]).check(8, &[], &["there is no MCP server `nobody`"]);
}

#[test]
fn what_a_repository_brings_along_waits_for_trust() {
    let home = home();
    let folder = home.path("work/.attache");
    fs::create_dir(&folder).unwrap();
    let rule = "[[rule]]\nverdict = \"allow\"\ncommand = [\"echo\"]\n";
    fs::write(folder.join("permissions.toml"), rule).unwrap();
    fs::write(
        folder.join("agents.toml"),
        format!("default = \"theirs\"\n[agents.theirs]\ncommand = [{:?}]\n", scripted()),
    )
    .unwrap();
    let work = home.path("work").display().to_string();
    let text = || {
        let (ran, result) = result(&home, &["ask echo hi"], &[]);
        (result["text"].as_str().unwrap().to_owned(), ran.err)
    };
    let (said, err) = text();
    assert_eq!(said, "command denied. ");
    assert!(err.contains("not trusted") && err.contains("attache trust"), "{err}");
    home.run(&["run", "-C", &work, "-o", "quiet", "say hi"]).check(0, &["hi"], &["is not trusted"]);
    home.run(&["trust", "--status", &work]).check(1, &[], &["is not trusted"]);
    home.run(&["trust", &work]).check(2, &[], &["nobody is there to ask", "--yes"]);
    home.run(&["trust", "--yes", &work]).check(0, &[], &[".attache/agents.toml", ".attache/permissions.toml"]);
    assert_eq!(text().0, "command allowed. ");
    home.run(&["run", "-C", &work, "-o", "quiet", "hi"]).check(0, &["hi"], &[]);
    // One byte more, and it is not what was trusted.
    fs::write(folder.join("permissions.toml"), format!("{rule}\n")).unwrap();
    let (said, err) = text();
    assert_eq!(said, "command denied. ");
    assert!(err.contains("has changed"), "{err}");
    home.run(&["trust", "--yes", &work]).check(0, &[], &[]);
    home.run(&["trust", "--revoke", &work]).check(0, &[], &[]);
    assert_eq!(text().0, "command denied. ");
}

#[test]
fn a_session_is_gone_on_with_and_its_history_is_not_printed_again() {
    let home = home();
    let (_, first) = result(&home, &["say one"], &[]);
    for version in ["1", "2"] {
        let (_, next) = result(&home, &["--protocol", version, "--continue", "say two"], &[]);
        assert_eq!(next["session_id"], first["session_id"]);
        assert_eq!(next["text"], "two");
        let id = first["session_id"].as_str().unwrap();
        let (_, next) = result(&home, &["--protocol", version, "--resume", id, "say three"], &[]);
        assert_eq!(next["text"], "three");
    }
}

#[test]
fn runs_are_recorded_listed_shown_and_exported() {
    let home = home();
    let (_, done) = result(&home, &["say *done*; tool read the book; edit /w/a.txt"], &[]);
    let run_id = done["run"].as_str().unwrap();
    let record = home.path(&format!("state/attache/runs/{run_id}.jsonl"));
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path("state/attache/runs")).unwrap().permissions().mode() & 0o777, 0o700);
    home.run(&["sessions", "list"]).check(0, &[run_id, "scripted_agent", "done", "say *done*"], &[]);
    let listed = home.run(&["sessions", "list", "--json"]).json();
    assert_eq!(listed[0]["session_id"], done["session_id"]);
    home.run(&["sessions", "show", &run_id[..run_id.len() - 2]]).check(
        0,
        &["## Prompt", "*done*", "**the book** (completed)"],
        &[],
    );
    let session = done["session_id"].as_str().unwrap();
    home.run(&["sessions", "export", session]).check(0, &["```diff", "-old", "+new", "Denied: "], &[]);
    let exported = home.run(&["sessions", "export", "-f", "json", run_id]);
    assert_eq!(exported.out, fs::read_to_string(&record).unwrap());
    home.run(&["sessions", "show", "nonsense"]).check(8, &[], &["no run or session `nonsense`"]);
    // A line that was cut off by a crash is left out.
    let whole = fs::read_to_string(&record).unwrap();
    fs::write(&record, &whole[..whole.len() - 20]).unwrap();
    home.run(&["sessions", "list"]).check(0, &[run_id, "cut off"], &[]);
    home.run(&["sessions", "list", "--", &scripted()]).check(0, &["s0", "s1", "s2", "talk 2"], &[]);
}

#[test]
fn a_machine_that_keeps_no_records_still_runs() {
    let home = home();
    fs::write(home.path("state"), "in the way").unwrap();
    let (ran, done) = result(&home, &["say hello"], &[]);
    assert_eq!(done["text"], "hello");
    assert!(ran.err.contains("this run is not recorded"), "{}", ran.err);
}

#[test]
fn signals_cancel_first_and_then_end_everything() {
    let home = home();
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 143)] {
        let mut running = Running::start(prompt(&home, &["-o", "stream-json", "slow"], &[]));
        running.wait_for("working");
        running.signal(signal);
        let ran = running.end();
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        let last = check_events(&home, &ran).pop().unwrap();
        assert_eq!(last["type"], "result");
        assert_eq!(last["status"], "cancelled");
        assert_eq!(last["stop_reason"], "cancelled");
    }
    // An agent that does not hear is ended by the second.
    let mut running = Running::start(prompt(&home, &["-o", "stream-json", "deaf"], &[]));
    running.wait_for("working");
    running.signal(libc::SIGINT);
    running.wait_for("once more");
    let began = Instant::now();
    running.signal(libc::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, 130, "{}{}", ran.out, ran.err);
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!(ran.json().pop().unwrap()["type"], "result");
}

#[test]
fn a_reader_that_leaves_or_stalls_is_no_trouble() {
    let home = home();
    // One that leaves.
    let mut running = Running::start(prompt(&home, &["stream 50"], &[]));
    running.wait_for("xxx");
    drop(running.out);
    let status = running.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let mut err = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(!err.contains("panicked") && !err.contains("error"), "{err}");
    // One that does not read keeps nobody from Ctrl-C.
    for format in ["text", "stream-json", "acp"] {
        let mut running = Running::start(prompt(&home, &["-o", format, "stream 50"], &[]));
        running.wait_for("xxx");
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        running.signal(libc::SIGINT);
        std::thread::sleep(Duration::from_millis(100));
        running.signal(libc::SIGINT);
        let code = loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{format}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(code, Some(130), "{format}");
    }
}

#[test]
fn a_hundred_mebibytes_pass_in_little_memory() {
    let home = home();
    for format in ["text", "stream-json"] {
        let mut command = prompt(&home, &["-o", format, "stream 100"], &[]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut buffer = vec![0; 1 << 16];
        let (mut total, mut peak) = (0, 0);
        while let Ok(length @ 1..) = out.read(&mut buffer) {
            if total % (8 << 20) < length {
                peak = peak.max(resident(child.id()));
            }
            total += length;
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(total >= 100 << 20, "{total}");
        assert!(peak > 0 && peak < 48 << 10, "{format}: {peak} KiB");
    }
}

/// The memory of a process beside its program, in KiB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[test]
fn commands_that_the_agent_leaves_end_with_the_run() {
    let home = home();
    let options = ["--protocol", "1", "--permissions", "all"];
    let marker = format!("{}.25", 10_000 + std::process::id());
    let (_, done) = result(&home, &[&options[..], &[&format!("leave setsid sleep {marker}; say done")]].concat(), &[]);
    assert_eq!(done["text"], "done");
    wait_until_gone(&marker);
    // And with one that is killed; what it printed until then is recorded.
    let marker = format!("{}.75", 10_000 + std::process::id());
    let steps = format!("leave setsid sleep {marker}; say before the end; slow");
    let mut running = Running::start(prompt(&home, &[&options[..], &["-o", "stream-json", &steps]].concat(), &[]));
    running.wait_for("before the end");
    running.signal(libc::SIGKILL);
    assert_eq!(running.child.wait().unwrap().code(), None);
    wait_until_gone(&marker);
    let newest = home.run(&["sessions", "list", "-n", "1"]);
    newest.check(0, &["cut off"], &[]);
    let run_id = newest.out.split(' ').next().unwrap();
    home.run(&["sessions", "show", run_id]).check(0, &["before the end"], &[]);
}

#[test]
fn messages_are_printed_and_traced_without_secrets() {
    let home = home();
    let mcp = r#"{"mcpServers": {"files": {"command": "/bin/true", "env": {"TOKEN": "sk-secret"}}}}"#;
    fs::write(home.path("mcp.json"), mcp).unwrap();
    let trace = home.path("trace.jsonl");
    let options = ["-o", "acp", "--trace", trace.to_str().unwrap(), "--mcp-config"];
    let ran =
        run(prompt(&home, &[&options[..], &[home.path("mcp.json").to_str().unwrap(), "say hello"]].concat(), &[]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.json();
    assert_eq!(lines[0]["method"], "initialize");
    assert!(lines.iter().any(|line| line["method"] == "session/prompt"));
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"));
    assert!(ran.out.contains("files") && !ran.out.contains("sk-secret"));
    let traced = fs::read_to_string(&trace).unwrap();
    assert_eq!(traced.lines().count(), lines.len());
    assert!(!traced.contains("sk-secret"));
    for (text, problem) in [("{", "no list of MCP servers"), (r#"{"mcpServers": {"a": {}}}"#, "server `a`: it needs")] {
        fs::write(home.path("mcp.json"), text).unwrap();
        let (ran, _) = result(&home, &["--mcp-config", home.path("mcp.json").to_str().unwrap(), "hi"], &[]);
        ran.check(2, &[], &[problem]);
    }
}

#[test]
fn a_person_is_asked_with_everything_in_sight() {
    let home = home();
    let ask = |steps: &str, answers: &[(&str, &str)]| {
        let mut command = prompt(&home, &["--protocol", "1", steps], &[]);
        command.env("TERM", "xterm").env("NO_COLOR", "1").stdout(Stdio::null());
        in_terminal(command, answers).0.replace('\r', "")
    };
    // The command, not the title; what would hide something is shown.
    let seen = ask("ask rm -rf \u{202e}x\u{1b}[8m", &[(")? ", "n\n")]);
    assert!(seen.contains("says: ") && seen.contains(r"rm -rf \u{202e}x\x1b[8m"), "{seen}");
    assert!(seen.contains(&format!("in {}", home.path("work").canonicalize().unwrap().display())), "{seen}");
    assert!(seen.contains("denied") && seen.contains("the person said no"), "{seen}");
    // The change in full.
    let seen = ask(&format!("edit {}", home.path("work/a.txt").display()), &[(")? ", "y\n")]);
    assert!(seen.contains("- old") && seen.contains("+ new") && seen.contains("said yes"), "{seen}");
    // A wrong key asks again, an end of input is no.
    let seen = ask("ask make it", &[(")? ", "what\n"), (")? ", "\u{4}")]);
    assert!(seen.contains("denied"), "{seen}");
    // Once for the session: the second is not asked about, and the first is done without a second question.
    let seen = ask("ask echo hi; ask echo hi there; run echo hi", &[(")? ", "s\n")]);
    assert_eq!(seen.matches("asked because").count(), 1, "{seen}");
    assert!(!seen.contains("denied"), "{seen}");
    // For the project, which the next run knows; another directory does not.
    ask("ask make all", &[(")? ", "p\n")]);
    let (_, done) = result(&home, &["ask make all"], &[]);
    assert_eq!(done["text"], "command allowed. ");
    fs::create_dir(home.path("other")).unwrap();
    let other = home.path("other").display().to_string();
    let (_, done) = result(&home, &["-C", &other, "ask make all"], &[]);
    assert_eq!(done["text"], "command denied. ");
    // Ctrl-C while a question stands cancels the turn.
    let mut command = prompt(&home, &["ask something"], &[]);
    command.env("TERM", "xterm").stdout(Stdio::null());
    let (seen, code) = in_terminal(command, &[(")? ", "\u{3}")]);
    assert_eq!(code, 130, "{seen}");
}

#[test]
fn little_time_passes_before_the_agent_is_spoken_to() {
    // Its own start is counted too, and then taken off; the best of several is what the machine can do.
    let home = home();
    let agent = home.path("agent.sh");
    fs::write(&agent, "#!/bin/sh\nhead -c1 >/dev/null\ndate +%s%N > \"$0.time\"\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let best = |command: &dyn Fn() -> Command| {
        let time = || {
            let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
            let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            drop(child.stdin.take().map(|mut stdin| stdin.write_all(b"x")));
            child.wait().unwrap();
            let heard: u128 = fs::read_to_string(home.path("agent.sh.time")).unwrap().trim().parse().unwrap();
            Duration::from_nanos(u64::try_from(heard - began).unwrap())
        };
        (0..10).map(|_| time()).min().unwrap()
    };
    let path = std::env::var_os("PATH").unwrap();
    let own = best(&|| {
        let mut command = Command::new(&agent);
        command.env("PATH", &path).stdin(Stdio::piped());
        command
    });
    let ours = best(&|| {
        let mut command = home.command(&["run", "hi", "--", agent.to_str().unwrap()]);
        command.env("PATH", &path);
        command
    });
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 60 } else { 15 });
    assert!(ours < own + limit, "{ours:?}, its own {own:?}");
}

#[test]
fn a_sandbox_holds_the_agent_and_its_commands_or_nothing_runs() {
    let home = home();
    for directory in ["tmp", "outside", ".ssh"] {
        fs::create_dir(home.path(directory)).unwrap();
    }
    fs::write(home.path(".ssh/id"), "private").unwrap();
    let run = |kind: &str, steps: &str| {
        let options = [kind, "--protocol", "1", "--permissions", "all", "-o", "json", steps];
        let mut command = prompt(&home, &options, &[]);
        command.env("TMPDIR", home.path("tmp"));
        support::run(command)
    };
    let ran = run("--sandbox", "run echo hi");
    if ran.code == 2 {
        // This kernel cannot, and says why; nothing was started.
        ran.check(2, &["cannot confine the agent"], &[]);
        return;
    }
    let text = |kind: &str, steps: &str| {
        let result: Value = serde_json::from_str(&run(kind, steps).out).unwrap();
        result["text"].as_str().unwrap().to_owned()
    };
    let place = |name: &str| home.path(name).display().to_string();
    assert!(text("--sandbox", "run echo in > new.txt && cat new.txt").contains("in\\n"));
    assert!(text("--sandbox", &format!("run echo in > {}", place("tmp/new.txt"))).contains("exit Some(0)"));
    assert!(!text("--sandbox", &format!("run echo out > {}", place("outside/new.txt"))).contains("exit Some(0)"));
    assert!(!home.path("outside/new.txt").exists());
    assert!(!text("--sandbox", &format!("run cat {}", place(".ssh/id"))).contains("private"));
    // Our own records and settings are none of its business.
    assert!(!text("--sandbox", &format!("run ls {}", place("state/attache/runs"))).contains("jsonl"));
    let connect = "run (exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 || bash -c '(exec 3<>/dev/tcp/127.0.0.1/9)' 2>&1";
    assert!(text("--sandbox", connect).contains("refused"));
    assert!(!text("--sandbox=offline", connect).contains("refused"));
}
