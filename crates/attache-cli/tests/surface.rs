//! The surface of the command line: help, options, ids, rules, logins and completions, as they are typed.
// On Unix, because they need terminals and modes of files. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::{Value, json};
use support::{Home, Ran, in_terminal, run, scripted};

fn home() -> Home {
    let home = Home::new();
    for directory in ["work", "tmp"] {
        fs::create_dir(home.path(directory)).unwrap();
    }
    home
}

/// `attache run` in a directory to work in, with the programs of this machine.
fn command(home: &Home, options: &[&str]) -> Command {
    let work = home.path("work");
    let mut command = home.command(&[&["run", "-C", work.to_str().unwrap()], options].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", home.path("tmp"));
    command
}

fn result(home: &Home, options: &[&str]) -> (Ran, Value) {
    let ran = run(command(home, &[&["-o", "json"], options].concat()));
    let value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    (ran, value)
}

fn with_stdin(mut command: Command, input: &str) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Checks lines of `-o stream-json`, and a result of `-o json`, by the schema that the program prints.
#[track_caller]
fn check_schema(home: &Home, value: &Value) {
    let schema: Value = serde_json::from_str(&home.run(&["schema", "events"]).out).unwrap();
    let whole = match value.get("type") {
        Some(_) => value.clone(),
        None => {
            let mut line = value.clone();
            line["ms"] = 0.into();
            line["type"] = "result".into();
            line
        }
    };
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema:/", schema).unwrap();
    let root = compiler.compile("schema:/", &mut schemas).unwrap();
    if let Err(error) = schemas.validate(&whole, root) {
        panic!("{error:#}: {whole}");
    }
}

#[test]
fn help_is_a_command_too() {
    let home = Home::new();
    home.run(&["help", "run"]).check(0, &["Usage: attache run", "--max-turns", "Exit codes:"], &[]);
    home.run(&["help", "sessions", "prune"]).check(0, &["Usage: attache sessions prune", "--dry-run"], &[]);
    home.run(&["help", "nonsense"]).check(2, &[], &["nonsense"]);
}

#[test]
fn a_mistake_in_the_options_is_told_in_json_to_who_asked_for_json() {
    let home = Home::new();
    for format in ["json", "stream-json"] {
        for wrong in [&["--nonsense"][..], &["--timeout", "soon"], &["-p", "a", "b"], &["--max-cost", "-1"]] {
            let ran = home.run(&[&["run", "-o", format], wrong].concat());
            assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
            let lines = ran.json();
            assert_eq!(lines.len(), 1, "{}", ran.out);
            assert_eq!((&lines[0]["status"], &lines[0]["exit_code"]), (&"usage".into(), &2.into()));
            assert!(!lines[0]["error"]["message"].as_str().unwrap().contains("Usage:"), "{}", lines[0]);
            assert_eq!(lines[0].get("ms").is_some(), format == "stream-json");
            check_schema(&home, &lines[0]);
            assert!(ran.err.starts_with("error: "), "a person is told, too: {}", ran.err);
        }
    }
    assert_eq!(home.run(&["run", "--nonsense"]).out, "");
    assert_eq!(home.run(&["run", "-o", "json", "--help"]).code, 0);
}

#[test]
fn a_prompt_can_be_given_in_many_ways() {
    let home = home();
    let file = home.path("task.md");
    fs::write(&file, "say from the file").unwrap();
    let file = file.to_str().unwrap();
    let text = |options: &[&str]| {
        let (ran, result) = result(&home, options);
        assert_eq!(ran.code, 0, "{options:?}: {}{}", ran.out, ran.err);
        result["text"].as_str().unwrap().to_owned()
    };
    let agent = ["--", &scripted()];
    assert_eq!(text(&[&["-p", "say one"][..], &agent].concat()), "one");
    assert_eq!(text(&[&["-f", file][..], &agent].concat()), "from the file");
    // The prompt comes first. What begins with no step is said back.
    assert_eq!(text(&[&["first", "-f", file][..], &agent].concat()), "first\n\nsay from the file");
    assert!(text(&["-m", "offline:rules", "say two"]).ends_with("two"));
    assert!(text(&["-c", "say three"]).ends_with("three"));
    let ran = with_stdin(command(&home, &[&["-o", "quiet"][..], &agent].concat()), "say from stdin\n");
    ran.check(0, &["from stdin"], &[]);
}

#[test]
fn the_sandbox_can_be_turned_off() {
    let home = home();
    for (options, state) in
        [(&["--sandbox=off", "say hi"][..], "off"), (&["--sandbox=off", "say hi", "--", &scripted()], "off")]
    {
        let (ran, result) = result(&home, options);
        assert_eq!((ran.code, &result["sandbox"]["state"]), (0, &state.into()), "{}{}", ran.out, ran.err);
        assert!(!ran.err.contains("sandbox"), "{}", ran.err);
    }
}

#[test]
fn an_agent_that_needs_its_provider_is_not_started_without_a_network() {
    let home = home();
    let offline = |options: &[&str], variable: (&str, &str)| {
        let mut command = command(&home, &[&["--sandbox=offline"], options, &["say hi"]].concat());
        command.env(variable.0, variable.1).env("PATH", home.path("bin"));
        run(command)
    };
    let none = ("X", "");
    offline(&["--model", "openai:x"], none).check(
        2,
        &[],
        &["keep the agent from its model: openai:x", "`--set sandbox=offline`"],
    );
    offline(&[], ("ATTACHE_MODEL", "anthropic")).check(2, &[], &["anthropic:claude"]);
    home.install("claude-agent-acp");
    offline(&["--agent", "claude"], none).check(2, &[], &["keep the agent from its model: Claude Code"]);
    // A model of this machine is another matter, and so is one that needs no network.
    let local = offline(
        &["--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--timeout", "500ms"],
        ("OPENAI_API_KEY", "k"),
    );
    assert!(!local.err.contains("keep the agent from its model"), "{}", local.err);
    assert!(local.err.contains("takes the sockets of this machine too"), "{}", local.err);
    let other = offline(&["--agent", "claude"], ("ANTHROPIC_BASE_URL", "http://localhost:9"));
    assert!(!other.err.contains("keep the agent from its model"), "{}", other.err);
}

#[test]
fn what_only_the_built_in_agent_takes_is_refused_for_others() {
    let home = home();
    for (option, value, hint) in [
        ("--base-url", "http://localhost:1", "`--env NAME`"),
        ("--max-turns", "3", "`--max-tokens`"),
        ("--system", "Be brief.", "AGENTS.md"),
    ] {
        let ran = run(command(&home, &[option, value, "say hi", "--", &scripted()]));
        ran.check(2, &[], &[&format!("`{option}` is for the built-in agent"), hint]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_is_told_what_the_person_adds_to_the_system_prompt() {
    let home = home();
    let instructions = home.path("tone.md");
    fs::write(&instructions, "Answer in verse.\n").unwrap();
    let server = ModelServer::start(vec![Answer::text("one"), Answer::text("two")]).await;
    let base = server.url();
    let ask = |system: &str| {
        let options = ["--model", "openai:test", "--base-url", &base, "--system", system, "-o", "quiet", "hello"];
        let mut command = command(&home, &options);
        command.env("OPENAI_API_KEY", "key");
        run(command).check(0, &[], &[]);
    };
    ask("Answer in one word.");
    ask(&format!("@{}", instructions.display()));
    let sent: Vec<String> = server.requests().iter().map(|request| request.system()).collect();
    assert!(sent[0].contains("Answer in one word."), "{}", sent[0]);
    assert!(sent[1].contains("Answer in verse."), "{}", sent[1]);
    run(command(&home, &["--system", "@missing.md", "hello"])).check(2, &[], &["--system `@missing.md`"]);
    run(command(&home, &["--system", " ", "hello"])).check(2, &[], &["there is nothing in it"]);
}

#[test]
fn rules_of_a_run_hold_in_that_run() {
    let home = home();
    let touch = |options: &[&str]| {
        let _ = fs::remove_file(home.path("work/a.txt"));
        let ran = run(command(&home, options));
        (ran, home.path("work/a.txt").exists())
    };
    let allow = ["--allow", "command = ['touch', 'a.txt'], args = 'none'"];
    let deny = ["--deny", "command = ['touch']"];
    for agent in [&["run touch a.txt"][..], &["ask touch a.txt", "--", &scripted()]] {
        let is_ours = agent.len() == 1;
        let (allowed, is_there) = touch(&[&allow, agent].concat());
        assert_eq!(is_there, is_ours, "{}{}", allowed.out, allowed.err);
        assert!(!allowed.err.contains("denied"), "{}", allowed.err);
        let (denied, is_there) =
            touch(&[&["--permissions", "all", "--fail-on-denied"], &allow[..], &deny, agent].concat());
        assert!(!is_there);
        assert_eq!(denied.code, if is_ours { denied.code } else { 5 }, "{}{}", denied.out, denied.err);
        let (_, is_there) = touch(agent);
        assert!(!is_there, "the rule was kept");
    }
    assert!(!home.path("config/attache/permissions.toml").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_requests_of_a_turn_is_limited() {
    let home = home();
    let again = || Answer::new().call("list", serde_json::json!({"path": "."}));
    let server = ModelServer::start(vec![again(), again(), again()]).await;
    let options = ["--model", "openai:test", "--base-url", &server.url(), "--max-turns", "2", "hello"];
    let mut command = command(&home, &[&["-o", "json"][..], &options].concat());
    command.env("OPENAI_API_KEY", "key");
    let ran = run(command);
    assert_eq!((ran.code, &ran.json()[0]["status"]), (6, &"limit".into()), "{}{}", ran.out, ran.err);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn ids_of_runs_and_sessions_and_their_beginnings_work_everywhere() {
    let home = home();
    let (_, first) = result(&home, &["say alpha"]);
    let (_, second) = result(&home, &["say beta"]);
    let id = |result: &Value, name: &str| result[name].as_str().unwrap().to_owned();
    let (run_id, session) = (id(&first, "run"), id(&first, "session_id"));
    for id in [&run_id, &run_id[..run_id.len() - 2], &session, &session[..session.len() - 2]] {
        home.run(&["sessions", "show", id]).check(0, &["say alpha"], &[]);
        home.run(&["sessions", "export", id]).check(0, &["say alpha"], &[]);
        home.run(&["agent", "sessions", "export", id]).check(0, &["say alpha"], &[]);
        let (ran, resumed) = result(&home, &["--resume", id, "say more"]);
        assert_eq!((ran.code, &resumed["session_id"]), (0, &first["session_id"]), "{id}: {}", ran.err);
    }
    // A session is all of its turns, also when it was a run that named it.
    home.run(&["sessions", "show", &session]).check(0, &["say alpha", "say more"], &[]);
    let common = &run_id[..8];
    for args in
        [&["sessions", "show", common][..], &["sessions", "delete", common, "--yes"], &["run", "--resume", common, "x"]]
    {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(&id(&second, "run")) && ran.err.contains(&format!("run {run_id}")), "{}", ran.err);
    }
    // Other agents have sessions of which only their runs are here.
    let (_, other) = result(&home, &["say gamma", "--", &scripted()]);
    home.run(&["sessions", "show", &id(&other, "session_id")]).check(0, &["say gamma"], &[]);
    // The agent may know what is not known here.
    let ran = run(command(&home, &["--resume", "elsewhere", "say hi"]));
    assert_eq!(ran.code, 8, "{}", ran.err);

    let (beta_run, beta) = (id(&second, "run"), id(&second, "session_id"));
    home.run(&["sessions", "delete", "--yes", &beta_run, &id(&other, "session_id")]).check(
        0,
        &[],
        &["deleted 2 runs", "its session stays"],
    );
    home.run(&["sessions", "show", &beta_run]).check(8, &[], &["no run or session"]);
    // What was a run is a session of the agent now, and listed as one.
    home.run(&["sessions", "list"]).check(0, &[&beta, "session"], &[]);
    home.run(&["sessions", "delete", "--yes", &session, &beta]).check(0, &[], &["deleted 5 runs and 2 sessions of"]);
    // What is left are the runs that came to nothing.
    let left = home.run(&["sessions", "list", "--json"]).json();
    assert!(left.iter().all(|row| row["session_id"].is_null() && !row["run"].is_null()), "{left:?}");
}

#[test]
fn old_runs_and_sessions_are_pruned() {
    let home = home();
    for prompt in ["say one", "say two", "say three"] {
        assert_eq!(result(&home, &[prompt]).0.code, 0);
    }
    let prune = |options: &[&str]| home.run(&[&["sessions", "prune"], options].concat());
    prune(&["--yes"]).check(0, &[], &["nothing to delete"]);
    prune(&["--keep", "3", "--yes"]).check(0, &[], &["nothing to delete"]);
    let dry = prune(&["--keep", "1", "--dry-run"]);
    dry.check(0, &["run 2", "session sess_"], &["would delete the records of 2 runs and 2 sessions of"]);
    assert_eq!(dry.out.lines().count(), 4);
    prune(&["--keep", "1"]).check(2, &[], &["nobody is there to ask"]);
    assert_eq!(home.run(&["sessions", "list"]).out.lines().count(), 3);
    prune(&["--keep", "1", "--yes"]).check(0, &[], &["deleted 2 runs and 2 sessions"]);
    home.run(&["sessions", "list"]).check(0, &["say three"], &[]);
    // What is old enough goes, unless it is among the newest.
    prune(&["--older-than", "1ms", "--keep", "1", "--yes"]).check(0, &[], &["nothing to delete"]);
    prune(&["--older-than", "1ms", "--yes"]).check(0, &[], &["deleted 1 run and 1 session"]);
}

#[test]
fn a_rule_is_removed_by_its_number_and_what_still_applies_is_said() {
    let home = home();
    let work = home.path("work");
    let permissions = |args: &[&str]| {
        let mut command = home.command(&[&["permissions"], args].concat());
        command.current_dir(&work);
        run(command)
    };
    permissions(&[]).check(0, &[], &["no rules here"]);
    // "Anywhere" writes one rule, and "in this project" another.
    for answer in ["a\n", "p\n"] {
        let program = if answer == "a\n" { "run touch a.txt" } else { "run mkdir b" };
        let (screen, code) = in_terminal(command(&home, &[program]), &[(")? ", answer)]);
        assert_eq!(code, 0, "{screen}");
        let number = if answer == "a\n" { 1 } else { 2 };
        let hint = format!("type `attache permissions remove {number} -C {}`", work.display());
        assert!(screen.replace("\r\n", "\n").contains(&hint), "{hint}: {screen}");
    }
    let listed = permissions(&["list", "--json"]).json();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0]["origin"].as_str().unwrap().contains("config/attache/permissions.toml:"), "{listed:?}");
    assert!(listed[1]["origin"].as_str().unwrap().contains("state/attache/permissions/"), "{listed:?}");

    // The same rule in both files: one is removed, and the other is told.
    let user = home.path("config/attache/permissions.toml");
    let rule = "[[rule]]\nverdict = 'allow'\ncommand = ['make']\nargs = 'any'\n";
    fs::write(&user, rule).unwrap();
    let project = listed[1]["origin"].as_str().unwrap().rsplit_once(':').unwrap().0;
    fs::write(project, format!("# Mine.\n{rule}\n{}", rule.replace("'make'", "'make', 'all'"))).unwrap();
    permissions(&[]).check(0, &["  1  allow the command `make", "  3  allow the command `make all"], &[]);
    permissions(&["remove", "4"]).check(8, &[], &["there is no rule 4 here"]);
    let slash = run(command(&home, &["/permissions remove 1"]));
    slash.check(6, &["is not kept for this project", "`attache permissions remove 1`"], &[]);
    let slash = run(command(&home, &["/permissions remove 2"]));
    slash.check(0, &["Removed: allow the command `make …`", "It still applies: allow the command `make …`"], &[]);
    assert_eq!(fs::read_to_string(&user).unwrap(), rule);
    permissions(&["remove", "2"]).check(
        0,
        &[],
        &["removed: allow the command `make all", "it still applies: allow the command `make …`", "permissions.toml:1"],
    );
    let last = permissions(&["remove", "1"]);
    last.check(0, &[], &["removed: allow the command `make"]);
    assert!(!last.err.contains("still applies"), "{}", last.err);
    permissions(&[]).check(0, &[], &["no rules here"]);
}

#[test]
fn one_command_logs_in_to_agents_and_to_providers() {
    let home = Home::new();
    with_stdin(home.command(&["login", "openai"]), "sk-secret\n").check(0, &[], &["the key for openai is kept"]);
    home.run(&["models"]).check(0, &["openai       key: yes"], &[]);
    home.run(&["agent", "models"]).check(0, &["openai       key: yes"], &[]);
    home.run(&["logout", "openai"]).check(0, &[], &["the key for openai is forgotten"]);
    home.run(&["login", "gemini"]).check(2, &[], &["an agent and a provider", "--provider gemini"]);
    with_stdin(home.command(&["login", "gemini", "--provider"]), "k\n").check(0, &[], &["the key for gemini is kept"]);
    home.run(&["login", "gemini", "--agent"]).check(9, &[], &["not found"]);
    home.run(&["login", "nobody"]).check(
        8,
        &[],
        &["there is no agent and no provider of models `nobody`", "the providers of models are anthropic"],
    );
    home.run(&["login"]).check(2, &[], &["logs in to providers of models"]);
    let built_in = home.run(&["login", "attache"]);
    assert_eq!(built_in.err.matches("lmstudio").count(), 1, "{}", built_in.err);
    let state = home.path("state.txt");
    let agent = ["--", &scripted(), "--auth", "agent", "--state", state.to_str().unwrap()];
    let refused = home.run(&[&["run", "say hi"][..], &agent].concat());
    refused.check(4, &[], &["hint: type `attache login --auth ", "or give `--auth "]);
    assert!(!refused.err.contains("--auth ID"), "there is one only: {}", refused.err);
    home.run(&[&["login"][..], &agent].concat()).check(0, &[], &["logged in to `scripted_agent`"]);
    home.run(&[&["agents", "login"][..], &agent].concat()).check(0, &[], &["logged in to `scripted_agent`"]);
}

/// Whoever asked for something and does not get it has to know.
#[test]
fn what_cannot_be_written_to_stdout_is_an_error() {
    let home = Home::new();
    let rows: &[&[&str]] =
        &[&["--help"], &["run", "--help"], &["--version"], &["models"], &["completions", "bash"], &["run", "say hi"]];
    for words in rows {
        let mut full = home.command(words);
        full.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        // The shell closes it before we begin.
        let mut closed = home.command(words);
        let program = closed.get_program().to_owned();
        let arguments: Vec<_> = closed.get_args().map(ToOwned::to_owned).collect();
        closed = {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(program).args(arguments).stdin(Stdio::null());
            shell.env_clear().envs(closed.get_envs().filter_map(|(name, value)| Some((name, value?))));
            shell.current_dir(home.path("."));
            shell
        };
        for (mut command, why) in [(full, "No space left on device"), (closed, "Bad file descriptor")] {
            let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {err}");
            assert!(err.contains(&format!("error: cannot write to stdout: {why}")), "{words:?}: {err}");
        }
    }
}

/// The words that a shell is offered.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let mut command = home.command(&[&["--", "attache"], words].concat());
    command.env("ATTACHE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true").env("_CLAP_IFS", "\n");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn completions_know_what_can_be_named() {
    let home = Home::new();
    home.run(&["completions", "bash"]).check(0, &["ATTACHE_COMPLETE=\"bash\"", "attache"], &[]);
    for shell in ["zsh", "fish", "elvish"] {
        home.run(&["completions", shell]).check(0, &["ATTACHE_COMPLETE"], &[]);
    }
    home.write_config("[agents.mine]\ncommand = ['never-started']\n");
    let agents = completed(&home, &["run", "--agent", ""]);
    assert!(["mine", "claude", "attache"].iter().all(|name| agents.contains(&(*name).to_owned())), "{agents:?}");
    assert_eq!(completed(&home, &["agents", "show", "cla"]), ["claude"]);
    let logins = completed(&home, &["login", ""]);
    assert!(logins.contains(&"openai".to_owned()) && logins.contains(&"mine".to_owned()), "{logins:?}");
    assert_eq!(completed(&home, &["run", "--model", "openai"]), ["openai:gpt-5.1"]);
    // What a provider listed is known from then on, without asking it or looking for a key; what is no list is none.
    let lists = home.path("state/attache/agent/models");
    fs::create_dir_all(&lists).unwrap();
    let list = json!({
        "fetched": 0, "base_url": "https://api.openai.com/v1/",
        "models": [{ "name": "gpt-new" }, { "name": "bad\u{1b}name" }],
    });
    fs::write(lists.join("openai.json"), list.to_string()).unwrap();
    fs::write(lists.join("mistral.json"), "{").unwrap();
    assert_eq!(completed(&home, &["run", "--model", "openai"]), ["openai:gpt-5.1", "openai:gpt-new"]);
    assert_eq!(completed(&home, &["run", "--model", "mistral"]), ["mistral:devstral-medium-latest"]);
    let (_, done) = result_here(&home);
    let (run_id, session) = (done["run"].as_str().unwrap(), done["session_id"].as_str().unwrap());
    assert_eq!(completed(&home, &["sessions", "show", "sess_"]), [session]);
    assert_eq!(completed(&home, &["run", "--resume", &run_id[..6]]), [run_id]);
    assert_eq!(completed(&home, &["run", "--mode", "arch"]), ["architect"]);
    assert_eq!(completed(&home, &["chat", "--mode", "co"]), ["code"]);
    // Hidden names are not offered.
    assert!(!completed(&home, &["agents", ""]).contains(&"login".to_owned()));
}

/// What bash makes of a line with the cursor at its end, given its words as bash breaks them.
fn completed_by_bash(home: &Home, words: &[&str], line: &str, current: &str) -> String {
    let script = home.path("completions.bash");
    fs::write(&script, home.run(&["completions", "bash"]).out).unwrap();
    let attache = home.command(&[]);
    let bin = std::path::Path::new(attache.get_program()).parent().unwrap();
    let own = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([bin.to_owned()].into_iter().chain(std::env::split_paths(&own))).unwrap();
    let mut command = Command::new("bash");
    command.env_clear().envs(attache.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", path).env("LINE", line).env("CURRENT", current).env("SCRIPT", &script);
    let program = "source \"$SCRIPT\"; COMP_LINE=$LINE; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; \
                   _attache attache \"$CURRENT\" ''; printf '%s|' \"${COMPREPLY[@]}\"";
    command.args(["--norc", "-c", program, "bash"]).args(words);
    run(command).out
}

#[test]
fn bash_completes_the_names_of_models_though_it_breaks_them_at_the_colon() {
    let home = Home::new();
    let rows: &[(&[&str], &str, &str, &str)] = &[
        (&["attache", "run", "-m", "openai", ":", "gp"], "attache run -m openai:gp", "gp", "gpt-5.1|"),
        (&["attache", "run", "-m", "openai", ":"], "attache run -m openai:", "", "gpt-5.1|"),
        (&["attache", "run", "-m", "opena"], "attache run -m opena", "opena", "openai:gpt-5.1|"),
        (&["attache", "run", "--model", "=", "openai", ":", "gp"], "attache run --model=openai:gp", "gp", "gpt-5.1|"),
        // What stands apart stays apart.
        (&["attache", "run", "-m", "openai", ":", "--mod"], "attache run -m openai: --mod", "--mod", "--mode|--model|"),
        (&["attache", "sessions", "pru"], "attache sessions pru", "pru", "prune|"),
    ];
    for (words, line, current, expected) in rows {
        let seen = completed_by_bash(&home, words, line, current);
        let mut seen: Vec<&str> = seen.split_terminator('|').map(str::trim).collect();
        seen.sort_unstable();
        assert_eq!(seen, expected.split_terminator('|').collect::<Vec<_>>(), "{line}");
    }
}

fn result_here(home: &Home) -> (Ran, Value) {
    let ran = home.run(&["run", "-o", "json", "say hi"]);
    let value = serde_json::from_str(&ran.out).unwrap();
    (ran, value)
}

#[test]
fn the_doctor_looks_at_mcp_servers_and_at_what_commands_may_change() {
    let home = Home::new();
    home.install("sh");
    let config = home.path("config/attache");
    fs::create_dir_all(&config).unwrap();
    home.run(&["doctor"]).check(0, &["ok    mcp.json    not there"], &[]);
    let servers = |text: &str| fs::write(config.join("mcp.json"), format!("{{\"mcpServers\": {text}}}")).unwrap();
    servers(r#"{"a": {"command": "sh", "env": {"KEY": "sk-secret"}}, "b": {"url": "https://b.example/mcp"}}"#);
    home.run(&["doctor"]).check(0, &["ok    mcp.json    2 servers"], &[]);
    servers(r#"{"a": {"command": "no-such-program", "env": {"KEY": "sk-secret"}}}"#);
    let ran = home.run(&["doctor"]);
    ran.check(1, &["FAIL  mcp.json    server `a`: program `no-such-program` not found"], &[]);
    assert!(!ran.out.contains("sk-secret"));
    servers(r#"{"b": {"url": "b.example/mcp?key=sk-secret"}}"#);
    let ran = home.run(&["doctor"]);
    ran.check(1, &["FAIL  mcp.json    server `b`: its address is no URL"], &[]);
    assert!(!ran.out.contains("sk-secret"));
    servers("7");
    home.run(&["doctor"]).check(1, &["FAIL  mcp.json", "no list of MCP servers"], &[]);
    servers("{}");

    fs::create_dir(home.path("cache")).unwrap();
    let settings =
        |path: &str| fs::write(config.join("agent.toml"), format!("[commands]\nwritable = ['{path}']\n")).unwrap();
    settings("~/cache");
    home.run(&["doctor"]).check(0, &["ok    writable    commands may change", "cache as well"], &[]);
    settings("/");
    home.run(&["doctor"]).check(0, &["warn  writable    commands may change /, and so your whole home"], &[]);
    settings("/no/such/place");
    home.run(&["doctor"]).check(1, &["FAIL  agent.toml", "`writable`: `/no/such/place`"], &[]);
}

#[test]
fn a_registry_is_fetched_on_purpose_and_kept() {
    let home = Home::new();
    home.run(&["agents", "list", "--registry"]).check(8, &[], &["no copy of a registry is kept", "agents refresh"]);
    home.run(&["agents", "refresh"]).check(8, &[], &["no copy of a registry is kept"]);
    let registry = |version: &str| {
        let package = format!("{{\"package\": \"@a/b@{version}\"}}");
        let text = format!(
            "{{\"agents\": [{{\"id\": \"b\", \"name\": \"B\", \"version\": \"{version}\", \"distribution\": {{\"npx\": {package}}}}}]}}"
        );
        fs::write(home.path("registry.json"), text).unwrap();
    };
    registry("1.0");
    home.run(&["agents", "refresh", "registry.json"]).check(0, &[], &["kept a copy of", "1 agents"]);
    home.run(&["agents", "list", "--registry"]).check(0, &["b ", "1.0"], &["as fetched from"]);
    home.run(&["agents", "add", "b", "--registry", "--yes"]).check(0, &[], &["added `b`"]);
    // What is listed is the copy, until it is fetched again.
    registry("2.0");
    home.run(&["agents", "list", "--registry"]).check(0, &["1.0"], &[]);
    home.run(&["agents", "refresh"]).check(0, &[], &["`b` is in agents.toml in another version than 2.0"]);
    home.run(&["agents", "list", "--registry"]).check(0, &["2.0"], &[]);
}

#[test]
fn what_starting_an_agent_downloads_is_said_before() {
    let home = Home::new();
    home.install("npx");
    let ran = home.run(&["agents", "probe", "gemini"]);
    ran.check(9, &[], &["note: `npx` downloads `@google/gemini-cli@0.61.0` now, unless it has it already"]);
    let ran = home.run(&["run", "--agent", "gemini", "hi"]);
    ran.check(9, &[], &["`npx` downloads `@google/gemini-cli@0.61.0` now"]);
}

#[test]
fn a_run_ends_by_name_when_it_uses_up_more_than_it_may() {
    let home = home();
    for version in ["1", "2"] {
        // The agent reports 100 tokens and 0.25 USD, and would then go on for ever.
        for (limit, why) in [
            (["--max-cost", "0.1"], "the session has cost 0.25 USD, more than --max-cost 0.1"),
            (["--max-tokens", "99"], "the agent used 100 tokens in its context, more than --max-tokens 99"),
        ] {
            let (ran, result) =
                result(&home, &[&limit[..], &["--protocol", version, "usage; slow", "--", &scripted()]].concat());
            assert_eq!((ran.code, &result["status"]), (6, &"limit".into()), "{}{}", ran.out, ran.err);
            assert_eq!(result["error"]["message"], why);
            check_schema(&home, &result);
        }
        let enough =
            ["--max-cost", "0.25", "--max-tokens", "100", "--protocol", version, "usage; say hi", "--", &scripted()];
        let (ran, _) = result(&home, &enough);
        assert_eq!((ran.code, ran.err.contains("limited nothing")), (0, false), "{}", ran.err);
        let silent = ["--max-cost", "1", "--protocol", version, "say hi", "--", &scripted()];
        result(&home, &silent).0.check(0, &[], &["the agent does not tell what it costs: --max-cost limited nothing"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_agent_stops_at_the_step_that_reaches_a_limit_of_the_run() {
    let home = home();
    fs::create_dir_all(home.path("config/attache")).unwrap();
    let price = "[models.'openai:test']\nprice = { input = 1.0, output = 10.0 }\n";
    fs::write(home.path("config/attache/agent.toml"), price).unwrap();
    let look = || Answer::new().call("list", serde_json::json!({"path": "."})).usage(1_000, 0, 100);
    for version in ["1", "2"] {
        for (limit, amount, why) in [
            ("--max-tokens", "2000", "the run has used 2200 tokens, and `--max-tokens` is 2000"),
            ("--max-cost", "0.003", "the run has cost 0.0040 USD, and `--max-cost` is 0.003 USD"),
        ] {
            let server = ModelServer::start(vec![look(), look(), look(), look(), look()]).await;
            let ended = |options: &[&str], asked: usize| {
                let options = [&[limit, amount, "--protocol", version, "-o", "json"][..], options].concat();
                let ran = with_model(&home, &server, &options);
                let result = &ran.json()[0];
                assert_eq!((ran.code, &result["status"]), (6, &"limit".into()), "{}{}", ran.out, ran.err);
                assert_eq!(result["error"]["message"], why);
                assert_eq!(server.requests().len(), asked, "{}", ran.err);
            };
            ended(&["look"], 2);
            // What a session used before is not of this run.
            ended(&["--continue", "go on"], 4);
        }
        // A limit of the settings is called by its name there.
        for (limit, why) in [
            ("max_tokens_total = 2000", "the session has used 2200 tokens, and `max_tokens_total` is 2000"),
            ("max_cost = 0.003", "the session has cost 0.0040 USD, and `max_cost` is 0.003 USD"),
        ] {
            fs::write(home.path("config/attache/agent.toml"), format!("{limit}\n{price}")).unwrap();
            let server = ModelServer::start(vec![look(), look(), look()]).await;
            let ran = with_model(&home, &server, &["--protocol", version, "-o", "json", "look"]);
            let result = &ran.json()[0];
            assert_eq!((ran.code, &result["status"]), (6, &"limit".into()), "{}{}", ran.out, ran.err);
            assert_eq!(result["error"]["message"], why);
            // Nothing is left for the next one.
            let ran = with_model(&home, &server, &["--protocol", version, "-o", "json", "--continue", "go on"]);
            let result = &ran.json()[0];
            assert_eq!((ran.code, &result["status"]), (6, &"limit".into()), "{}{}", ran.out, ran.err);
            assert_eq!((&result["error"]["message"], server.requests().len()), (&why.into(), 2));
        }
        fs::write(home.path("config/attache/agent.toml"), price).unwrap();
        // An answer that is the last, and is too much, is there and is named.
        let server = ModelServer::start(vec![Answer::text("hi").usage(1_000, 0, 100)]).await;
        let ran = with_model(&home, &server, &["--max-cost", "0.001", "--protocol", version, "-o", "json", "hello"]);
        let result = &ran.json()[0];
        assert_eq!((ran.code, &result["status"], &result["text"]), (6, &"limit".into(), &"hi".into()), "{}", ran.err);
        let server = ModelServer::start(vec![Answer::text("hi").usage(1_000, 0, 100)]).await;
        let enough = ["--max-cost", "0.01", "--max-tokens", "2000", "--protocol", version, "hello"];
        with_model(&home, &server, &enough).check(0, &["hi"], &[]);
    }
}

/// Runs the built-in agent with the model of a server.
fn with_model(home: &Home, server: &ModelServer, options: &[&str]) -> Ran {
    let mut command = command(home, &[&["--model", "openai:test", "--base-url", &server.url()], options].concat());
    command.env("OPENAI_API_KEY", "key");
    run(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_the_schema_does_not_allow_is_asked_for_once_more() {
    let home = home();
    let schema = home.path("schema.json");
    fs::write(&schema, r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#).unwrap();
    let schema = schema.to_str().unwrap();
    let answers = ["{\"n\": 1}", "It is one.", "{\"n\": 2}", "It is one.", "{\"n\": \"one\"}"];
    let server = ModelServer::start(answers.map(Answer::text).into()).await;
    let ask = |format: &str| with_model(&home, &server, &["--output-schema", schema, "-o", format, "how many?"]);
    ask("quiet").check(0, &["{\"n\": 1}\n"], &[]);
    assert!(server.requests()[0].texts().join(" ").contains("JSON Schema"), "{:?}", server.requests()[0].texts());
    let again = ask("quiet");
    again.check(0, &[], &["asked for once more", "the message is no JSON"]);
    assert_eq!(again.out, "{\"n\": 2}\n");
    assert!(server.requests()[2].texts().join(" ").contains("Your last message is not what was asked for"));
    let failed = ask("json");
    let result = &failed.json()[0];
    assert_eq!((failed.code, &result["status"], &result["text"]), (1, &"error".into(), &"{\"n\": \"one\"}".into()));
    assert!(result["error"]["message"].as_str().unwrap().contains("`/n`: "), "{result}");
    assert_eq!(server.requests().len(), 5);
    fs::write(schema, "{").unwrap();
    ask("text").check(2, &[], &["--output-schema", "no JSON"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_message_is_written_to_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let file = home.path("answer.txt");
    let answers =
        vec![Answer::text("I look.").call("list", serde_json::json!({"path": "."})), Answer::text("All done.")];
    let server = ModelServer::start(answers).await;
    with_model(&home, &server, &["--last-message", file.to_str().unwrap(), "look"]).check(0, &["I look."], &[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "All done.");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for (wrong, why) in [("/dev/null", "no plain file"), ("/no/such/place/a", "its directory is not there")] {
        let ran = run(command(&home, &["--last-message", wrong, "say hi"]));
        ran.check(2, &[], &[why]);
        assert!(!ran.out.contains("hi"), "nothing is paid for what cannot be kept: {}", ran.out);
    }
}

#[test]
fn many_prompts_are_turns_of_one_session() {
    let home = home();
    let lines = |format: &'static str| ["--input", "json-lines", "-o", format, "--", &scripted()].map(str::to_owned);
    let command = |options: &[String]| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        command(&home, &options)
    };
    let input = "{\"prompt\": \"say one\"}\n\n{\"prompt\": \"stop refusal\"}\n{\"prompt\": \"say two\"}\n";
    let ran = with_stdin(command(&lines("json")), input);
    let results = ran.json();
    let of = |name: &str| results.iter().map(|result| result[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("text"), ["one", "", "two"], "{}{}", ran.out, ran.err);
    assert_eq!(of("status"), ["done", "refused", "done"]);
    assert_eq!(ran.code, 6, "one of them was not done");
    assert!(of("session_id").iter().all(|id| *id == results[0]["session_id"]));
    results.iter().for_each(|result| check_schema(&home, result));
    // Each is a run of its own.
    let listed = home.run(&["sessions", "list", "--json"]).json();
    assert_eq!(listed.len(), 3, "{listed:?}");
    home.run(&["sessions", "show", results[2]["run"].as_str().unwrap()]).check(0, &["say two"], &[]);

    let ran = with_stdin(command(&lines("stream-json")), "{\"prompt\": \"say one\"}\n{\"promt\": \"say two\"}\n");
    let events = ran.json();
    events.iter().for_each(|event| check_schema(&home, event));
    let results: Vec<&Value> = events.iter().filter(|event| event["type"] == "result").collect();
    assert_eq!((ran.code, results.len()), (2, 2), "{}{}", ran.out, ran.err);
    assert!(results[1]["error"]["message"].as_str().unwrap().starts_with("line 2 of stdin: "), "{}", results[1]);
    with_stdin(command(&lines("text")), "").check(2, &[], &["there is no prompt on stdin"]);
    with_stdin(command(&lines("text")), "say hi\n").check(2, &[], &["line 1 of stdin: it is not JSON"]);
}

#[test]
fn a_turn_that_fails_is_not_the_last_one_of_many_unless_the_agent_is_gone() {
    let home = home();
    let input = ["say one", "error", "say two"].map(|prompt| format!("{{\"prompt\": \"{prompt}\"}}\n")).concat();
    let ask = |format: &str, agent: &[&str]| {
        let program = scripted();
        let options = [&["--input", "json-lines", "-o", format, "--", &program], agent].concat();
        with_stdin(command(&home, &options), &input)
    };
    let ran = ask("json", &[]);
    let status: Vec<Value> = ran.json().iter().map(|result| result["status"].clone()).collect();
    assert_eq!((ran.code, &status[..]), (1, &["done", "error", "done"].map(Value::from)[..]), "{}", ran.err);
    // Who answers is told once.
    let ran = ask("text", &[]);
    ran.check(1, &["one", "two"], &["it broke"]);
    assert_eq!(ran.err.matches("protocol").count(), 1, "{}", ran.err);
    let ran = ask("json", &["--die", "turn"]);
    let results = ran.json();
    assert_eq!((ran.code, results.len()), (9, 1), "{}{}", ran.out, ran.err);
    assert_eq!(results[0]["status"], "agent_died");
}

#[test]
fn what_the_sandbox_does_not_enforce_is_told_in_one_line_and_once() {
    let home = home();
    for options in [&["say hi"][..], &["--sandbox", "say hi"], &["--sandbox", "say hi", "--", &scripted()]] {
        let (ran, result) = result(&home, options);
        if ran.code != 0 {
            // This machine has no sandbox.
            assert!(ran.err.contains("cannot confine"), "{}{}", ran.out, ran.err);
            continue;
        }
        let has_gaps = result["sandbox"]["state"] == "on" && result["sandbox"]["gaps"] != serde_json::json!([]);
        let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("attache sandbox explain")).collect();
        assert_eq!(told.len(), usize::from(has_gaps), "{options:?}: {}", ran.err);
        assert!(!ran.err.contains("does not exist yet"), "{}", ran.err);
    }
}

#[test]
fn a_denial_says_who_denied_and_the_way_out_is_told_once() {
    let home = home();
    let touch = "run touch a.txt";
    let ran = run(command(&home, &["--permissions", "all", "--deny", "command = ['touch']", touch]));
    ran.check(6, &[], &["`--deny` says: deny the command", "nothing was done"]);
    assert!(!ran.err.contains("hint:"), "a rule of the person's own is no riddle: {}", ran.err);
    let ran = run(command(&home, &[touch]));
    ran.check(6, &[], &["there is no terminal to ask on", "nothing was done"]);
    assert_eq!(ran.err.matches("--permissions").count(), 1, "{}", ran.err);
    let ran = run(command(&home, &["--permissions", "none", touch]));
    ran.check(6, &[], &["hint: --permissions none denies what no rule allows"]);
    // Where not all was denied, the way out is told as well.
    let ran = run(command(&home, &["tool read it; ask make", "--", &scripted()]));
    ran.check(0, &[], &["no terminal to ask on\nhint: allow it with --permissions"]);
}

#[test]
fn mistakes_are_explained_in_the_words_of_the_command() {
    let home = home();
    let refused = |options: &[&str], words: &[&str], not: &str| {
        let ran = run(command(&home, options));
        ran.check(2, &[], words);
        assert!(!ran.err.contains(not), "{}", ran.err);
    };
    refused(&["--sandbox", "offline", "hi"], &["`--sandbox=offline`"], "unexpected argument");
    refused(&["--sandbox", "offline"], &["`--sandbox=offline`"], "unexpected argument");
    refused(&["--nonsense", "--", "a", "--sandbox", "on"], &["unexpected argument '--nonsense'"], "--sandbox=");
    refused(&["--allow", "wc -l", "hi"], &["it is no rule", "'command = [\"wc\", \"-l\"]'"], "literal");
    refused(&["--max-cost", "-1", "hi"], &["write it as 0.50 or 2"], "-- -1");
    refused(&["-p", "a", "b"], &["cannot be used with"], "Usage:");
    let (_, told) = result(&home, &["--sandbox", "offline", "hi"]);
    assert_eq!(told["error"]["hint"], "write it with an equals sign: `--sandbox=offline`");
    run(command(&home, &["--resume", "zzz", "hi"])).check(8, &[], &["hint: `attache sessions list`"]);
    let ran = run(command(&home, &["--ephemeral", "say hi", "--", &scripted()]));
    ran.check(0, &[], &["the agent keeps its session, because it cannot delete any"]);
    assert!(!ran.err.contains("peer"), "{}", ran.err);
}

#[test]
fn a_command_alone_does_what_is_meant_or_says_what_is_missing() {
    use std::os::unix::process::CommandExt;
    let home = home();
    assert_eq!(result(&home, &["say hi"]).0.code, 0);
    let listed = home.run(&["sessions"]);
    listed.check(0, &["say hi"], &[]);
    assert_eq!(listed.out, home.run(&["sessions", "list"]).out);
    let bare = home.run(&[]);
    bare.check(2, &[], &["Usage: attache"]);
    assert!(bare.err.starts_with("error: without a command this is a chat, which needs a terminal"), "{}", bare.err);
    // In a session of its own it has no terminal to open either.
    let mut command = home.command(&["chat", "--plain"]);
    // SAFETY: `setsid` may be called between a fork and the new program.
    unsafe { command.pre_exec(|| if libc::setsid() < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }) };
    let ran = run(command);
    ran.check(2, &[], &["a chat needs a terminal, and there is none here\nhint: `attache run"]);
}

#[test]
fn a_login_says_what_it_waits_for() {
    use std::io::{BufRead, BufReader};
    let home = home();
    let mut command = home.command(&["login", "--", &scripted(), "--hang"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("waiting for `") && line.contains("to start, 1 minute at most"), "{line}");
}

#[test]
fn the_result_of_a_turn_comes_before_the_next_prompt_is_read() {
    use std::io::{BufRead, BufReader};
    let home = home();
    let mut command = command(&home, &["--input", "json-lines", "-o", "json", "--", &scripted()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut prompts = child.stdin.take().unwrap();
    let mut results = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(prompts, "{{\"prompt\": \"say {word}\"}}").unwrap();
        let result: Value = serde_json::from_str(&results.next().unwrap().unwrap()).unwrap();
        assert_eq!(result["text"], word);
    }
    drop(prompts);
    assert!(results.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_chat_goes_on_with_a_session_by_the_beginning_of_the_id_of_a_run() {
    let home = Home::new();
    let (_, done) = result_here(&home);
    let run_id = done["run"].as_str().unwrap();
    let mut command = home.command(&["chat", "--plain", "--resume", &run_id[..run_id.len() - 2]]);
    command.env("TERM", "dumb").stdout(Stdio::null());
    let (screen, code, _) = support::at_terminal(command, true, &[("> ", "say again\n"), ("> ", "\u{4}")]);
    assert_eq!(code, 0, "{screen}");
    home.run(&["sessions", "show", done["session_id"].as_str().unwrap()]).check(0, &["say hi", "say again"], &[]);
    let mut command = home.command(&["chat", "--plain", "--resume", "2"]);
    command.env("TERM", "dumb");
    let (screen, code, _) = support::at_terminal(command, true, &[]);
    assert_eq!(code, 2, "{screen}");
    assert!(screen.contains("is the beginning of 2 ids"), "{screen}");
    let mut command = home.command(&["chat", "--plain", "--resume", "zzz"]);
    command.env("TERM", "dumb");
    let (screen, _, _) = support::at_terminal(command, true, &[]);
    assert!(screen.contains("Session not found") && screen.contains("hint: `attache sessions list`"), "{screen}");
}

#[test]
fn words_that_go_astray_are_told_where_they_belong() {
    let home = Home::new();
    let rows: [(&[&str], &str); 4] = [
        (&["fix this"], "hint: `attache run 'fix this'` answers, `attache chat 'fix this'` stays"),
        (&["run", "say", "hi"], "hint: a prompt of several words needs quotes: `attache run '… hi'`"),
        (&["--plain"], "hint: `attache chat --plain`"),
        (&["run", "-q", "hi"], "unexpected argument '-q'"),
    ];
    for (words, told) in rows {
        let ran = home.run(words);
        ran.check(2, &[], &[told]);
        // Behind `--` stands the command of an agent, and no value of ours.
        assert!(!ran.err.contains("as a value"), "{}", ran.err);
    }
    // They are nothing to come back to.
    home.run(&["run", "--mode", "nonsense", "say hi", "--", "/no/such/agent"]);
    home.run(&["run", "-f", "/no-such-file"]).check(2, &[], &["`/no-such-file`"]);
    let listed = home.run(&["sessions", "list", "--json"]);
    assert!(!listed.out.contains("\"usage\""), "{}", listed.out);
}

#[test]
fn a_home_among_the_temporary_files_is_not_said_to_be_writable_where_it_is_not() {
    let home = home();
    let work = home.path("work").display().to_string();
    let explained = |options: &[&str]| {
        let mut command = home.command(&[&["sandbox", "explain", "-C", &work], options].concat());
        // So that the home is beneath it.
        command.env("TMPDIR", home.path("").parent().unwrap());
        run(command)
    };
    let said = "your home can be changed";
    let ran = explained(&[]);
    assert!(ran.out.contains(said) || ran.out.contains("cannot be enforced"), "{}{}", ran.out, ran.err);
    let ran = explained(&["--unasked"]);
    assert!(ran.code == 0 && !ran.out.contains(said), "{}{}", ran.out, ran.err);
}

#[test]
fn an_address_without_its_model_and_one_that_is_none_are_wrong_usage() {
    let home = home();
    for (args, why) in [
        (&["--base-url", "http://127.0.0.1:1/v1"][..], "the base URL belongs to a model, and none was chosen\nhint: "),
        (&["-m", "openai:x", "--base-url", "nowhere"], "the base URL is not a URL\nhint: write it like"),
        (&["-m", "offline", "--base-url", "http://127.0.0.1:1/v1"], "`offline` is no language model"),
    ] {
        let mut command = command(&home, &[args, &["hi"]].concat());
        command.env_remove("ATTACHE_MODEL");
        run(command).check(2, &[], &[why]);
        let mut command = home.command(&[&["models"][..], args].concat());
        command.env_remove("ATTACHE_MODEL");
        run(command).check(2, &[], &[why]);
    }
}

#[test]
fn a_command_that_is_none_is_not_done() {
    let home = home();
    for (prompt, why) in [
        ("/nosuch", "There is no command `/nosuch`."),
        ("/undo everything", "Say `/undo` for what"),
        ("/plan", "Say what to plan"),
        ("/model nosuch", "There is no model `nosuch`"),
        ("/permissions remove 99", "Say which, by its number"),
        ("/mcp restart nosuch", "nosuch"),
    ] {
        for version in ["1", "2"] {
            let (ran, result) = result(&home, &["--protocol", version, prompt]);
            assert_eq!((ran.code, &result["status"]), (6, &"not_done".into()), "{prompt}: {}{}", ran.out, ran.err);
            assert!(result["text"].as_str().unwrap().contains(why), "{result}");
            assert!(
                result["error"]["message"].as_str().unwrap().contains("the command was not carried out"),
                "{result}"
            );
        }
    }
    run(command(&home, &["/help"])).check(0, &["`/undo"], &[]);
}
