//! `attache run` with agents that are wrong on the wire, or right in ways that few are.
// On Unix, because they need signals. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Home, Ran, Running, check_events, check_result, hang_up, in_terminal, run, scripted, wire_agent};

/// An agent of version 1 that opens sessions.
const V1: &str = "
    # initialize
    = {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}
    # initialize
    = {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}
    # session/new
    = {\"sessionId\":\"s\"}
";

/// An agent of version 2 that opens sessions and takes prompts up.
const V2: &str = "
    # initialize
    = {\"protocolVersion\":2,\"info\":{\"name\":\"w\",\"version\":\"1\"},\"capabilities\":{\"session\":{}}}
    # session/new
    = {\"sessionId\":\"s\"}
    # session/prompt
    = {}
    ~ {\"sessionUpdate\":\"state_update\",\"state\":\"running\"}
";

const V2_END: &str = "~ {\"sessionUpdate\":\"state_update\",\"state\":\"idle\",\"stopReason\":\"end_turn\"}";

/// The command that has an agent play this.
fn command(home: &Home, options: &[&str], script: &str) -> Command {
    fs::write(home.path("script"), script).unwrap();
    let file = home.path("script").display().to_string();
    let mut command = home.command(&[&["run"], options, &["--", &wire_agent(), &file]].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// What comes of it as JSON, checked against the schema.
fn result(home: &Home, options: &[&str], script: &str) -> (Ran, Value) {
    let ran = run(command(home, &[&["-o", "json"], options].concat(), script));
    let value = check_result(home, &ran);
    (ran, value)
}

fn events(home: &Home, options: &[&str], script: &str) -> Vec<Value> {
    let ran = run(command(home, &[&["-o", "stream-json"], options].concat(), script));
    check_events(home, &ran)
}

fn v1(turn: &str) -> String {
    format!("{V1}\n# session/prompt\n{turn}\n= {{\"stopReason\":\"end_turn\"}}")
}

fn v2(turn: &str) -> String {
    format!("{V2}\n{turn}\n{V2_END}")
}

fn update(kind: &str, fields: &Value) -> String {
    let mut update = json!({ "sessionUpdate": kind });
    update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("~ {update}\n")
}

fn say(id: &str, text: &str) -> String {
    update("agent_message_chunk", &json!({ "messageId": id, "content": { "type": "text", "text": text } }))
}

fn whole(id: &str, content: &Value) -> String {
    update("agent_message", &json!({ "messageId": id, "content": content }))
}

#[test]
fn a_whole_message_after_its_pieces_is_not_said_twice() {
    let home = Home::new();
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let same = v2(&(say("a", "one ") + &say("a", "two") + &whole("a", &text("one two"))));
    assert_eq!(result(&home, &["hi"], &same).1["text"], "one two");
    run(command(&home, &["hi"], &same)).check(0, &["one two"], &[]);
    assert_eq!(run(command(&home, &["hi"], &same)).out, "one two\n");
    // More of it is added.
    let more = v2(&(say("a", "one") + &whole("a", &text("one two"))));
    assert_eq!(run(command(&home, &["hi"], &more)).out, "one two\n");
    // Another text takes its place, and that is said.
    let other = v2(&(say("a", "wrong") + &whole("a", &text("right")) + &say("b", "gone") + &whole("b", &Value::Null)));
    let (_, done) = result(&home, &["hi"], &other);
    assert_eq!(done["text"], "right");
    let ran = run(command(&home, &["hi"], &other));
    // Also to whoever reads stdout alone.
    let marked =
        "wrong\n[the agent has replaced this message by:]\nright\n\ngone\n[the agent has taken back this message]\n";
    ran.check(0, &[marked], &["has replaced this message by:", "has taken back this message"]);
    let kinds: Vec<Value> = events(&home, &["hi"], &other).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "text_replaced").count(), 2, "{kinds:?}");
}

#[test]
fn a_result_holds_the_end_state_of_tool_calls() {
    let home = Home::new();
    let diff = json!([{ "type": "diff", "changes": [{ "operation": "modify", "path": "/a" }] }]);
    let begin =
        json!({ "toolCallId": "t", "title": "Edit a", "kind": "edit", "status": "in_progress", "content": diff });
    let end = json!({ "toolCallId": "t", "title": "Look at b", "kind": "read", "status": "completed", "content": [] });
    let (_, done) =
        result(&home, &["hi"], &v2(&(update("tool_call_update", &begin) + &update("tool_call_update", &end))));
    let call = json!([{ "id": "t", "title": "Look at b", "kind": "read", "status": "completed" }]);
    assert_eq!((&done["tool_calls"], &done["files_changed"]), (&call, &json!([])));
    // The same where nothing is taken back.
    let end = json!({ "toolCallId": "t", "status": "completed" });
    let (_, done) =
        result(&home, &["hi"], &v2(&(update("tool_call_update", &begin) + &update("tool_call_update", &end))));
    assert_eq!(done["files_changed"], json!(["/a"]));
}

#[test]
fn version_1_that_calls_itself_2_is_greeted_in_version_1() {
    let home = Home::new();
    let echo = "= {\"protocolVersion\":$version,\"agentCapabilities\":{\"loadSession\":false}}";
    let prompt = "# session/new\n= {\"sessionId\":\"s\"}\n# session/prompt\n";
    let said = "~ {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"hello\"}}\n";
    let end = "= {\"stopReason\":\"end_turn\"}";
    // One that is greeted twice, one that refuses that and has to be started anew, one that dies of it.
    let refuses = "# initialize\n! {\"code\":-32600,\"message\":\"initialized already\"}";
    let again = format!("# initialize\n{echo}");
    for second in [again.as_str(), refuses, "# initialize\nexit 1"] {
        let script = format!("# initialize\n{echo}\n{second}\n{prompt}{said}{end}");
        let (ran, done) = result(&home, &["hi"], &script);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert_eq!(done["text"], "hello", "{second}");
        assert_eq!(done["agent"]["protocol"], "1", "{second}");
    }
    // And its permissions are asked for in words that it understands: what is not allowed is not done.
    let ask = "> {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s\",\
               \"toolCall\":{\"toolCallId\":\"t\",\"title\":\"Edit\",\"kind\":\"edit\"},\"options\":[\
               {\"optionId\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"},{\"optionId\":\"n\",\"name\":\"No\",\
               \"kind\":\"reject_once\"}]}}\n? \"optionId\":\"n\"\n";
    let script = format!("# initialize\n{echo}\n{again}\n{prompt}{ask}{said}{end}");
    let (_, done) = result(&home, &["--permissions", "none", "hi"], &script);
    assert_eq!(done["permissions"], json!({ "asked": 1, "allowed": 0, "denied": 1 }));
    assert_eq!((&done["text"], &done["status"]), (&json!("hello"), &json!("not_done")));
}

#[test]
fn what_is_not_understood_is_never_lost_in_silence() {
    let home = Home::new();
    for script in [v1, v2] {
        let unknown = update("sparkle", &json!({ "colour": "red" })) + &update("glow\u{1b}[2J", &json!({}));
        let wrong = update("tool_call_update", &json!({ "title": 7 }));
        let ran = run(command(&home, &["hi"], &script(&(unknown.clone() + &wrong + &say("a", "hello")))));
        ran.check(
            0,
            &["hello"],
            &["2 updates of unknown kinds were not shown: ", "`sparkle`", "1 update was not understood"],
        );
        let events = events(&home, &["hi"], &script(&unknown));
        let found = events.iter().find(|event| event["type"] == "unknown").unwrap();
        assert_eq!((&found["kind"], &found["update"]["colour"]), (&json!("sparkle"), &json!("red")));
        assert_eq!(events.last().unwrap()["unknown_updates"], 2);
    }
}

#[test]
fn what_agents_say_among_themselves_has_an_event_too() {
    let home = Home::new();
    let text = |text: &str| json!({ "type": "text", "text": text });
    let updates = update("state_update", &json!({ "state": "running" }))
        + &update("subagent_update", &json!({ "sessionId": "helper", "title": "Look around", "cwd": "/p" }))
        + &update("subagent_update", &json!({ "sessionId": "helper", "title": null, "state": { "state": "idle" } }))
        + &update(
            "session_message",
            &json!({
                "messageId": "m", "senderSessionId": "s", "recipientSessionId": "helper", "content": [text("go")]
            }),
        )
        + &update("session_message_chunk", &json!({ "messageId": "m", "content": text(" on") }))
        + &update("compaction_summary_chunk", &json!({ "compactionId": "c", "content": text("in short") }))
        + &update("plan_update", &json!({ "plan": { "type": "_dance", "planId": "p" } }))
        + &update(
            "available_commands_update",
            &json!({ "availableCommands": [
            { "type": "command", "name": "help", "description": "Shows it" }
        ] }),
        );
    let events = events(&home, &["hi"], &v2(&updates));
    let of = |kind: &str| -> Vec<Value> {
        let mut found: Vec<Value> = events.iter().filter(|event| event["type"] == kind).cloned().collect();
        for event in &mut found {
            let fields = event.as_object_mut().unwrap();
            fields.retain(|name, _| name != "ms" && name != "type");
        }
        found
    };
    assert_eq!(
        of("subagent"),
        [
            json!({ "session": "helper", "title": "Look around", "cwd": "/p" }),
            json!({ "session": "helper", "title": "", "state": "idle" })
        ]
    );
    assert_eq!(
        of("session_message"),
        [
            json!({ "id": "m", "from": "s", "to": "helper", "text": "go", "replaces": true }),
            json!({ "id": "m", "text": " on" })
        ]
    );
    assert_eq!(of("compaction_summary"), [json!({ "text": "in short", "message_id": "c" })]);
    assert_eq!(of("unknown")[0]["kind"], "plan_update _dance");
    assert!(of("state").contains(&json!({ "state": "running" })));
    assert_eq!(of("commands")[0]["commands"][0]["name"], "help");
}

#[test]
fn what_was_said_before_the_prompt_is_history() {
    let home = Home::new();
    let old = say("old", "said long ago")
        + &update("tool_call_update", &json!({ "toolCallId": "o", "title": "Old", "status": "completed" }));
    let old_v1 = old.replace("tool_call_update", "tool_call");
    let scripts = [
        format!(
            "# initialize\n= {{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"resume\":{{}}}}}}}}\n\
             # initialize\n= {{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"resume\":{{}}}}}}}}\n\
             # session/resume\n{old_v1}= {{}}\n# session/prompt\n{}= {{\"stopReason\":\"end_turn\"}}",
            say("new", "now")
        ),
        format!("{}\n{}{V2_END}", V2.replace("# session/new", &format!("# session/resume\n{old}")), say("new", "now")),
    ];
    for script in scripts {
        let (ran, done) = result(&home, &["--resume", "s", "hi"], &script);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert_eq!((&done["text"], &done["tool_calls"]), (&json!("now"), &json!([])));
        assert_eq!(run(command(&home, &["--resume", "s", "hi"], &script)).out, "now\n");
        let events = events(&home, &["--resume", "s", "hi"], &script);
        let history: Vec<&Value> = events.iter().filter(|event| event["history"] == true).collect();
        assert_eq!((history.len(), &history[0]["text"]), (2, &json!("said long ago")));
        let run_id = done["run"].as_str().unwrap();
        assert!(!home.run(&["sessions", "show", run_id]).out.contains("long ago"));
    }
}

#[test]
fn what_runs_when_a_turn_is_cancelled_is_cancelled() {
    let home = Home::new();
    let call = json!({ "toolCallId": "t", "title": "Wait", "kind": "execute", "status": "in_progress" });
    let turn_v1 = update("tool_call", &call) + "? session/cancel\n= {\"stopReason\":\"cancelled\"}";
    let turn_v2 = update("tool_call_update", &call)
        + "? session/cancel\n"
        + &update("state_update", &json!({ "state": "idle", "stopReason": "cancelled" }));
    for script in [format!("{V1}\n# session/prompt\n{turn_v1}"), format!("{V2}\n{turn_v2}")] {
        let mut running = Running::start(command(&home, &["-o", "stream-json", "hi"], &script));
        running.wait_for("\"Wait\"");
        running.signal(libc::SIGINT);
        let ran = running.end();
        let events = ran.json();
        let last = events.last().unwrap();
        assert_eq!((ran.code, &last["status"]), (130, &json!("cancelled")));
        assert_eq!(last["tool_calls"][0]["status"], "cancelled");
        assert!(events.iter().any(|event| event["type"] == "tool" && event["status"] == "cancelled"));
    }
}

#[test]
fn a_login_that_is_missing_in_the_middle_of_a_session_is_offered() {
    let home = Home::new();
    let refused = "# session/prompt\n! {\"code\":-32000,\"message\":\"Your token is old\",\"data\":{\"authMethods\":[\
                   {\"id\":\"key\",\"name\":\"New key\"}]}}\n";
    let logged_in = "# authenticate\n= {}\n";
    let end = "= {\"stopReason\":\"end_turn\"}";
    let answered = format!("{refused}{logged_in}# session/prompt\n{}{end}", say("a", "at last"));
    let in_vain = format!("{refused}{logged_in}{refused}");
    for (script, answer, code, words) in [
        (&answered, "y\n", 0, ""),
        (&answered, "n\n", 4, "it says: \"Your token is old\""),
        // Once: what a login does not help with is told.
        (&in_vain, "y\n", 4, "it says: \"Your token is old\""),
    ] {
        let out = home.path("out");
        let mut command = command(&home, &["hi"], &format!("{V1}\n{script}"));
        command.stdout(fs::File::create(&out).unwrap()).env("TERM", "xterm").env("NO_COLOR", "1");
        let (seen, found) = in_terminal(command, &[("Log in by key: New key? [y] yes   [N] no: ", answer)]);
        assert!(found == code && seen.contains(words), "{found} {seen}");
        assert_eq!(fs::read_to_string(&out).unwrap(), if code == 0 { "at last\n" } else { "" }, "{seen}");
    }
    // Where nobody is there, it is told.
    run(command(&home, &["hi"], &format!("{V1}\n{answered}"))).check(4, &[], &["wants a login first", "--auth key"]);
}

#[test]
fn an_agent_that_cannot_resume_after_all_loads() {
    let home = Home::new();
    let offers = "= {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"resume\":{}}}}";
    let script = format!(
        "# initialize\n{offers}\n# initialize\n{offers}\n# session/load\n{}= {{}}\n# session/prompt\n{}= {{\"stopReason\":\"end_turn\"}}",
        say("old", "said long ago"),
        say("new", "now")
    );
    let (ran, done) = result(&home, &["--resume", "s", "hi"], &script);
    assert_eq!((ran.code, &done["text"]), (0, &json!("now")), "{}", ran.err);
}

#[test]
fn options_stay_when_the_agent_names_none_after_one_was_set() {
    let home = Home::new();
    let option = |id: &str| {
        json!({
            "id": id, "configId": id, "name": id, "type": "select", "currentValue": "a",
            "options": [{ "value": "a", "name": "A" }, { "value": "b", "name": "B" }],
        })
    };
    let opened = json!({ "sessionId": "s", "configOptions": [option("x"), option("y")] });
    for base in [V1, V2] {
        let base = base.replace("{\"sessionId\":\"s\"}", &opened.to_string());
        let set = "# session/set_config_option\n= {}\n# session/set_config_option\n= {}\n";
        let script = match base.contains("# session/prompt") {
            true => format!("{base}\n{}{V2_END}\n{set}", say("a", "done")),
            false => format!("{set}{base}\n# session/prompt\n{}= {{\"stopReason\":\"end_turn\"}}", say("a", "done")),
        };
        let (ran, done) = result(&home, &["--set", "x=b", "--set", "y=b", "hi"], &script);
        assert_eq!((ran.code, &done["text"]), (0, &json!("done")), "{}", ran.err);
    }
}

#[test]
fn a_login_that_an_error_names_is_offered_and_the_run_goes_on() {
    let home = Home::new();
    let error = |id: &str| {
        let methods = json!([{ id: "key", "name": "Key", "type": "agent" }]);
        format!("! {}", json!({ "code": -32000, "message": "no\u{1b}[2J account", "data": { "authMethods": methods } }))
    };
    let opened = "= {\"sessionId\":\"s\"}";
    let scripts = [
        format!(
            "{}\n# session/new\n{opened}\n# authenticate\n= {{}}",
            v1(&say("a", "welcome")).replace(opened, &error("id"))
        ),
        format!(
            "{}\n# session/new\n{opened}\n# auth/login\n= {{}}",
            v2(&say("a", "welcome")).replace(opened, &error("methodId"))
        ),
    ];
    for script in scripts {
        // Nobody is there.
        let ran = run(command(&home, &["hi"], &script));
        ran.check(4, &[], &["wants a login first", "it says: \"no", "account\"", "key: Key", "`--auth key`"]);
        // Somebody is.
        let out = home.path("out");
        let mut yes = command(&home, &["hi"], &script);
        yes.stdout(fs::File::create(&out).unwrap()).env("TERM", "xterm");
        let (seen, code) = in_terminal(yes, &[("[N] no: ", "y\n")]);
        assert_eq!(code, 0, "{seen}");
        assert!(seen.contains("Log in by key: Key?"), "{seen}");
        assert_eq!(fs::read_to_string(&out).unwrap(), "welcome\n");
        let mut no = command(&home, &["hi"], &script);
        no.stdout(Stdio::null()).env("TERM", "xterm");
        assert_eq!(in_terminal(no, &[("[N] no: ", "\n")]).1, 4);
    }
    // An agent of the catalogue has a login outside of the protocol, which is told.
    home.write_config(&format!("[agents.claude]\ncommand = [{:?}, {:?}]\n", wire_agent(), home.path("script")));
    home.run(&["run", "--agent", "claude", "hi"]).check(4, &[], &["it says: ", "hint: try `claude"]);
}

#[test]
fn a_login_in_a_terminal_shows_what_it_runs_and_asks() {
    let home = Home::new();
    let state = home.path("logged-in");
    let agent = [&scripted(), "--auth", "terminal", "--state", state.to_str().unwrap()];
    let start = || {
        let mut command = home.command(&[&["run", "say hello", "--"], &agent[..]].concat());
        command.stdout(Stdio::null()).env("TERM", "xterm");
        command
    };
    let (seen, code) = in_terminal(start(), &[("Run it? [y] yes   [N] no: ", "n\n")]);
    assert_eq!(code, 4, "{seen}");
    assert!(seen.contains(&format!("--login {}", state.display())), "{seen}");
    assert!(!state.exists());
    let (seen, code) = in_terminal(start(), &[("Run it? [y] yes   [N] no: ", "y\n")]);
    assert_eq!(code, 0, "{seen}");
    assert!(state.exists() && seen.contains("logging in"), "{seen}");
}

#[test]
fn stdout_that_cannot_be_written_to_is_an_error() {
    let home = Home::new();
    for format in ["text", "json", "stream-json", "quiet", "acp"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = command(&home, &["-o", format, "hi"], &v1(&say("a", "hello")));
        let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{format}: {err}");
        assert!(err.contains("error: cannot write to stdout: No space left on device"), "{format}: {err}");
        let listed = home.run(&["sessions", "list", "-n", "1", "--json"]).json();
        assert_eq!(listed[0]["status"], "usage", "{format}");
    }
}

#[test]
fn a_reader_that_leaves_cancels_and_is_recorded_so() {
    let home = Home::new();
    let lines: String = (0..2000).map(|_| say("a", &("x".repeat(1000) + "\n"))).collect();
    let mut running = Running::start(command(&home, &["hi"], &v1(&(lines + "? session/cancel\n"))));
    running.wait_for("xxx");
    drop(running.out);
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    let mut err = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(!err.contains("error"), "{err}");
    let listed = home.run(&["sessions", "list", "--json"]).json();
    assert_eq!(listed[0]["status"], "cancelled");
}

#[test]
fn a_quiet_answer_that_is_too_long_is_an_error() {
    let home = Home::new();
    let mut command = home.command(&["run", "-o", "quiet", "stream 9", "--", &scripted()]);
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(6), "{err}");
    assert!(err.contains("longer than 8 MiB") && output.stdout.len() >= 8 << 20, "{err}");
}

#[test]
fn silence_counts_from_the_start() {
    let home = Home::new();
    let options = ["-o", "json", "--idle-timeout", "400ms", "hi"];
    let silent = home.command(&[&["run"], &options[..], &["--", &wire_agent(), "--silent"]].concat());
    let no_session = command(&home, &options, &V1.replace("= {\"sessionId\":\"s\"}", "? never"));
    for command in [silent, no_session] {
        let ran = run(command);
        assert_eq!(check_result(&home, &ran)["status"], "timeout");
        ran.check(3, &[], &["said nothing for 400ms"]);
    }
    // `--timeout` counts while stdin is read, and what is waited for is told at once.
    let mut waiting = command(&home, &["--timeout", "2500ms", "hi"], V1);
    let mut child = waiting.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let began = Instant::now();
    let mut err = [0; 64];
    let length = child.stderr.as_mut().unwrap().read(&mut err).unwrap();
    assert!(String::from_utf8_lossy(&err[..length]).contains("waiting for the end of stdin"));
    assert!(began.elapsed() < Duration::from_millis(2400));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(stdin);
}

#[test]
fn a_stop_of_ours_is_no_silence_of_the_agent() {
    let home = Home::new();
    // It goes on when it is told to by a message that nobody sends but us: a cancel.
    let script =
        format!("{V1}\n# session/prompt\n{}? session/cancel\n= {{\"stopReason\":\"cancelled\"}}", say("a", "here"));
    let mut running = Running::start(command(&home, &["-o", "stream-json", "--idle-timeout", "1500ms", "hi"], &script));
    running.wait_for("here");
    running.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(2000));
    running.signal(libc::SIGCONT);
    std::thread::sleep(Duration::from_millis(200));
    running.signal(libc::SIGINT);
    assert_eq!(running.end().code, 130);
}

#[test]
fn a_command_of_ours_is_no_silence_of_the_agent() {
    let home = Home::new();
    let options = ["-o", "json", "--protocol", "1", "--permissions", "all", "--idle-timeout", "600ms"];
    let mut command = home.command(&[&["run"], &options[..], &["run sleep 1.5; say done", "--", &scripted()]].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let done = check_result(&home, &run(command));
    assert_eq!(done["status"], "done", "{done}");
}

#[test]
fn nobody_waits_long_for_an_agent_or_a_reader_that_does_not_hear() {
    let home = Home::new();
    let deaf = format!("{V1}\n# session/prompt\n{}? never", say("a", "here\n"));
    let stuck = || {
        let mut running = Running::start(home.command(&["run", "stream 50", "--", &scripted()]));
        running.wait_for("xxx");
        running
    };
    let mut deaf = Running::start(command(&home, &["hi"], &deaf));
    deaf.wait_for("here");
    let (mut stuck, mut twice) = (stuck(), stuck());
    let began = Instant::now();
    for running in [&deaf, &stuck, &twice] {
        running.signal(libc::SIGINT);
    }
    std::thread::sleep(Duration::from_millis(200));
    twice.signal(libc::SIGINT);
    for (running, limit) in [(&mut twice, 1200), (&mut deaf, 5000), (&mut stuck, 5000)] {
        while running.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_millis(limit), "it is still there after {limit} ms");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(running.child.wait().unwrap().code(), Some(130));
    }
}

#[test]
fn a_terminal_that_is_closed_is_recorded_as_cancelled() {
    let home = Home::new();
    let script =
        format!("{V1}\n# session/prompt\n{}? session/cancel\n= {{\"stopReason\":\"cancelled\"}}", say("a", "here"));
    let mut command = command(&home, &["hi"], &script);
    command.env("TERM", "xterm");
    assert_eq!(hang_up(command, "here"), 143);
    assert_eq!(home.run(&["sessions", "list", "--json"]).json()[0]["status"], "cancelled");
}

#[test]
fn a_person_is_told_what_is_waited_for() {
    let home = Home::new();
    let mut command = home.command(&["run", "--timeout", "1800ms", "hi", "--", &wire_agent(), "--silent"]);
    command.stdout(Stdio::null()).env("TERM", "xterm");
    let (seen, code) = in_terminal(command, &[]);
    assert!(code == 3 && seen.contains("starting agent 1 s"), "{code} {seen:?}");
    let call = json!({ "toolCallId": "t", "title": "make\u{1b}[2J", "kind": "execute", "status": "in_progress" });
    let script = format!("{V1}\n# session/prompt\n{}? session/cancel\n", update("tool_call", &call));
    let mut command = self::command(&home, &["hi"], &(script + "= {\"stopReason\":\"cancelled\"}"));
    command.stdout(Stdio::null()).env("TERM", "xterm").env("NO_COLOR", "1");
    let (seen, code) = in_terminal(command, &[("running `make\\x1b[2J` 1 s", "\u{3}")]);
    assert!(code == 130 && seen.contains("cancelled"), "{code} {seen:?}");
}

#[test]
fn a_result_that_nobody_takes_is_not_done() {
    let home = Home::new();
    // More than a pipe holds, so that the last of it is not written before it is read.
    let mut command = home.command(&["run", "-o", "quiet", "stream 1", "--", &scripted()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    // SAFETY: it is our child, which was not waited for yet.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(home.run(&["sessions", "list", "--json"]).json()[0]["status"], "cancelled");
}

#[test]
fn a_hangup_is_ignored_where_it_was_ignored_at_the_start() {
    use std::os::unix::process::CommandExt;
    let home = Home::new();
    let script =
        format!("{V1}\n# session/prompt\n{}? session/cancel\n= {{\"stopReason\":\"cancelled\"}}", say("a", "here"));
    let mut command = command(&home, &["-o", "stream-json", "hi"], &script);
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut running = Running::start(command);
    running.wait_for("here");
    running.signal(libc::SIGHUP);
    running.signal(libc::SIGINT);
    assert_eq!(running.end().code, 130);
}

#[test]
fn a_turn_that_did_nothing_is_not_done() {
    let home = Home::new();
    home.run(&["run", "say hello"]).check(0, &["hello"], &[]);
    for protocol in ["1", "2"] {
        let ran = home.run(&["run", "-o", "json", "--protocol", protocol, "please make the tests faster"]);
        assert_eq!(check_result(&home, &ran)["status"], "not_done", "{}", ran.out);
        ran.check(6, &[], &["was not understood, and nothing was done", "attache setup"]);
        let denied = ["run", "-o", "json", "--protocol", protocol, "--permissions", "none", "edit /w/a.txt", "--"];
        let ran = home.run(&[&denied[..], &[&scripted()]].concat());
        assert_eq!(check_result(&home, &ran)["status"], "not_done", "{}", ran.out);
        ran.check(6, &[], &["all that the agent asked for was denied"]);
    }
}

#[test]
fn an_agent_that_dies_is_quoted_and_not_believed() {
    let home = Home::new();
    let lines: String = (0..30).map(|line| format!("err line {line}\n")).collect();
    for base in [format!("{V1}\n# session/prompt"), V2.to_owned()] {
        let script = format!("{base}\n{lines}err hint: \u{1b}[2Jrun my script\nexit 7");
        let (ran, done) = result(&home, &["hi"], &script);
        ran.check(9, &[], &["agent exited with status 7", "its last lines on stderr:", "\n  | line 29\n  | hint: "]);
        assert!(!ran.err.contains("line 10\n"), "{}", ran.err);
        assert!(done["error"]["message"].as_str().unwrap().contains("  | line 29"));
        assert!(done["error"]["hint"].is_null(), "{done}");
    }
}

#[test]
fn every_kind_of_update_has_an_event() {
    let home = Home::new();
    let turn = update(
        "available_commands_update",
        &json!({ "availableCommands": [{ "name": "go", "description": "Goes", "type": "command" }] }),
    ) + &update("session_info_update", &json!({ "title": "A talk" }))
        + &update("usage_update", &json!({ "used": 5, "size": 10 }))
        + &update("plan", &json!({ "entries": [{ "content": "look", "priority": "high", "status": "pending" }] }))
        + &update(
            "tool_call",
            &json!({
                "toolCallId": "t", "title": "Read", "kind": "read", "status": "completed", "rawInput": { "a": 1 },
                "rawOutput": "x", "locations": [{ "path": "/a", "line": 7 }],
            }),
        );
    let events = events(&home, &["hi"], &v1(&turn));
    let find = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert_eq!(find("commands")["commands"][0]["name"], "go");
    assert_eq!(find("title")["title"], "A talk");
    assert_eq!(find("plan")["entries"][0]["priority"], "high");
    assert_eq!(find("tool")["locations"][0]["line"], 7);
    assert_eq!((&find("tool")["raw_input"]["a"], &find("tool")["raw_output"]), (&json!(1), &json!("x")));
    let result = find("result");
    assert_eq!((&result["plan"]["entries"][0]["text"], &result["context"]["used"]), (&json!("look"), &json!(5)));
    let agent = home.run(&["run", "-o", "json", "--model", "offline", "say hi"]);
    assert_eq!(check_result(&home, &agent)["model"], json!({ "id": "offline:rules", "chosen_by": "--model" }));
    home.run(&["run", "say hi"]).check(0, &[], &["model offline:rules, chosen by ATTACHE_MODEL"]);
}
