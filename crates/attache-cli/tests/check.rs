//! `attache check` and `attache trace`, as they are typed.
// On Unix, because their home is that of Unix, with programs that are shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
mod support;

use std::fs;

use support::Home;

const OURS: &str = env!("CARGO_BIN_EXE_attache");

/// A check of something of ours finds nothing, and enough rules are tested for that to mean something.
#[track_caller]
fn finds_nothing(words: &[&str], protocol: &str, at_least: u64) {
    let output = Home::new().run(words);
    let report: serde_json::Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{}", output.err));
    let is_fine = |rule: &&serde_json::Value| rule["outcome"] == "kept" || rule["outcome"] == "not-tested";
    let broken: Vec<_> = report["rules"].as_array().unwrap().iter().filter(|rule| !is_fine(rule)).collect();
    assert!(output.code == 0 && broken.is_empty(), "{broken:#?}");
    let kept = report["summary"]["kept"].as_u64().unwrap();
    assert!(kept >= at_least, "only {kept} rules were tested");
    assert_eq!(report["dialects"], serde_json::json!([protocol]));
}

#[track_caller]
fn our_agent_keeps_the_rules(protocol: &str, at_least: u64) {
    let check = ["check", "agent", "--json", "--protocol", protocol, "--script", "offline"];
    finds_nothing(&[&check[..], &["--", OURS, "agent", "--model", "offline"]].concat(), protocol, at_least);
}

#[test]
fn our_agent_keeps_the_rules_of_version_1() {
    our_agent_keeps_the_rules("1", 90);
}

#[test]
fn our_agent_keeps_the_rules_of_the_draft() {
    our_agent_keeps_the_rules("2-draft", 80);
}

#[test]
fn our_agent_keeps_the_rules_of_version_2() {
    our_agent_keeps_the_rules("2", 100);
}

#[track_caller]
fn our_client_keeps_the_rules(protocol: &str, at_least: u64) {
    let check = ["check", "client", "--json", "--protocol", protocol, "--run", OURS, "run", "--permissions", "all"];
    finds_nothing(&[&check[..], &["{prompt}", "--", "{agent-words}"]].concat(), protocol, at_least);
}

#[test]
fn our_client_keeps_the_rules_of_version_1() {
    our_client_keeps_the_rules("1", 50);
}

#[test]
fn our_client_keeps_the_rules_of_the_draft() {
    our_client_keeps_the_rules("2-draft", 30);
}

#[test]
fn our_client_keeps_the_rules_of_version_2() {
    our_client_keeps_the_rules("2", 40);
}

const CLEAN: &str = "--> {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientInfo':{'name':'c','version':'1'},'clientCapabilities':{}}}\n<-- {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'a','version':'1'},'agentCapabilities':{}}}\n";

#[test]
fn recorded_traffic_is_judged_and_the_exit_code_says_how() {
    let home = Home::new();
    let (clean, broken) = (home.path("clean.txt"), home.path("broken.txt"));
    fs::write(&clean, CLEAN).unwrap();
    fs::write(&broken, format!("{CLEAN}<== {{\"id\":0,\"result\":{{}}}}\n")).unwrap();
    let check = |path: &std::path::Path, more: &[&str]| {
        let path = path.to_str().unwrap().to_owned();
        let words: Vec<&str> = ["check", "transcript", &path].into_iter().chain(more.iter().copied()).collect();
        home.run(&words)
    };
    check(&clean, &["--level", "must"]).check(0, &["conformant: "], &[]);
    check(&broken, &[]).check(
        1,
        &["must: Every message says", "[envelope/version]", "not conformant: 1 rule broken"],
        &[],
    );
    check(&broken, &["--only", "tools"]).check(2, &["nothing was tested"], &["nothing was tested: "]);
    check(&broken, &["--only", "nothing"]).check(2, &[], &["there is no rule or area `nothing`"]);
    check(&broken, &["--junit"]).check(1, &["<failure message=\"Every message says"], &[]);
    // Both sides are judged, and a document is one document all the same.
    assert_eq!(check(&broken, &["--junit"]).out.matches("<?xml").count(), 1);
    let sarif: serde_json::Value = serde_json::from_str(&check(&broken, &["--sarif"]).out).unwrap();
    assert_eq!(sarif["runs"].as_array().unwrap().len(), 2);
    let results: Vec<_> = (0..2).flat_map(|run| sarif["runs"][run]["results"].as_array().unwrap()).collect();
    assert!(results.iter().any(|result| result["ruleId"] == "envelope/version"), "{results:?}");
    assert!(results.iter().all(|result| result["locations"][0]["physicalLocation"].is_object()), "{results:?}");
    let json = check(&broken, &["--json"]).out;
    let sides: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&sides[0]["side"], &sides[1]["side"]), (&"agent".into(), &"client".into()));
    let waivers = home.path("waivers.txt");
    fs::write(&waivers, "envelope/version: an old proxy\n").unwrap();
    let waivers = waivers.to_str().unwrap();
    check(&broken, &["--waivers", waivers, "--side", "agent", "--level", "must"]).check(
        0,
        &["reason: an old proxy"],
        &[],
    );
    check(&clean, &["--waivers", waivers, "--side", "agent", "--level", "must"]).check(1, &["remove the waiver"], &[]);
    let badge = home.path("badge.svg");
    check(&broken, &["--badge", badge.to_str().unwrap()]).check(1, &[], &[]);
    assert!(fs::read_to_string(badge).unwrap().contains("not conformant"));
    // The report is not lost with the badge.
    check(&broken, &["--badge", "/no/such/badge.svg"]).check(2, &["not conformant"], &["cannot write"]);
    fs::write(&clean, format!("(continued)\n{CLEAN}")).unwrap();
    check(&clean, &[]).check(2, &[], &["begins in the middle of a conversation"]);
    fs::write(&broken, "neither\n").unwrap();
    check(&broken, &[]).check(2, &[], &["line 1: expected `-->`"]);
    check(&home.path("missing"), &[]).check(2, &[], &["cannot read"]);
    home.run(&["check", "rules", "cancel/says-cancelled"]).check(0, &["instead: "], &[]);
}

#[test]
fn what_cannot_be_checked_says_why() {
    let home = Home::new();
    home.run(&["check", "agent", "--", "/no/such/program"]).check(2, &[], &["/no/such/program"]);
    home.run(&["check", "agent", "--startup", "1", "--", "/bin/false"]).check(
        2,
        &[],
        &["exited with status 1 and never answered"],
    );
    home.run(&["check", "agent"]).check(2, &[], &["missing agent"]);
    home.run(&["check", "agent", "--probe", "nothing", "--", "/bin/cat"]).check(
        2,
        &[],
        &["no probe `nothing`", "attache check probes"],
    );
    home.run(&["check", "client", "--scenario", "text", "--run", "/bin/false"]).check(
        2,
        &[],
        &["exited with status 1 and never spoke"],
    );
    home.run(&["check", "client", "--scenario", "none", "--run", "/bin/true"]).check(
        2,
        &[],
        &["no scenario `none`", "attache check probes"],
    );
}

/// An agent of version 1 that opens no session without a login, and knows no way to log in but `key`.
const LOCKED: &str = r#"
PATH=/usr/bin:/bin
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
    *'"initialize"'*) answer='"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"Key"}]}' ;;
    *'"authenticate"'*) answer='"error":{"code":-32602,"message":"no such method"}' ;;
    *) answer='"error":{"code":-32000,"message":"log in first"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

#[test]
fn an_agent_that_was_not_really_checked_is_not_conformant() {
    let home = Home::new();
    let check = |more: &[&str]| {
        let words = [&["check", "agent", "--level", "must", "--probe", "prompt/text"], more].concat();
        home.run(&[&words[..], &["--", "/bin/sh", "-c", LOCKED]].concat())
    };
    check(&["--protocol", "1"]).check(2, &[], &["wants a login first", "`--auth METHOD`; it has `key`"]);
    check(&["--protocol", "1", "--auth", "kee"]).check(2, &[], &["refused to authenticate with `kee`; it has `key`"]);
    check(&["--protocol", "2"]).check(2, &[], &["the agent speaks protocol 1"]);
    home.run(&["check", "probes"]).check(0, &["cancel/in-mid-text", "--scenario"], &[]);
}

#[test]
fn a_client_that_does_not_speak_is_tried_once() {
    let home = Home::new();
    let start = std::time::Instant::now();
    home.run(&["check", "client", "--timeout", "1", "--run", "/bin/sleep", "100"]).check(
        2,
        &[],
        &["did not speak to the agent within 1 s"],
    );
    assert!(start.elapsed() < std::time::Duration::from_secs(40), "all scenarios take minutes");
}

#[test]
fn a_trace_is_written_shown_compared_and_replayed() {
    let home = Home::new();
    fs::create_dir(home.path("work")).unwrap();
    fs::write(home.path("work/a.txt"), "hello\n").unwrap();
    let (trace, again) = (home.path("t.jsonl"), home.path("again.jsonl"));
    let (trace, again) = (trace.to_str().unwrap(), again.to_str().unwrap());
    let work = home.path("work");
    for file in [trace, again] {
        let client = ["run", "--permissions", "all", "-C", work.to_str().unwrap(), "read a.txt", "--"];
        let agent = [OURS, "trace", "-o", file, "--", OURS, "agent", "--model", "offline"];
        home.run(&[&client[..], &agent].concat()).check(0, &["hello"], &[]);
    }
    home.run(&["check", "transcript", trace]).check(0, &["agent ", "client ", "conformant: "], &[]);
    home.run(&["trace", "diff", trace, again]).check(0, &["no difference"], &[]);
    home.run(&["trace", "view", "--text", trace]).check(0, &["--> initialize", "<-- answer to session/prompt"], &[]);
    let page = home.path("page.html");
    home.run(&["trace", "view", trace, "-o", page.to_str().unwrap()]).check(0, &["page.html"], &[]);
    assert!(fs::read_to_string(page).unwrap().contains("read a.txt"));
    home.run(&["trace", "export", trace]).check(0, &["--> {'", "'sessionId':'$session1'"], &[]);
    home.run(&["trace", "replay", trace, "--", OURS, "agent", "--model", "offline"]).check(0, &["no difference"], &[]);
    fs::write(home.path("work/a.txt"), "changed\n").unwrap();
    let replayed = home.run(&["trace", "replay", trace, "--", OURS, "agent", "--model", "offline"]);
    replayed.check(1, &["changed", "difference"], &[]);
}
