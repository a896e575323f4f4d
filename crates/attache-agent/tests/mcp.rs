//! MCP servers that are programs: our own tiny one, run as a real process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::model::Secret;
use attache::model::mcp::{EnvVariable, McpServer, McpServerStdio};
use attache::model::tool::ToolKind;
use attache_agent::cut::Spill;
use attache_agent::mcp::{Notice, Servers, Setup};
use attache_agent::model::Part;
use attache_agent::tools::{Live, Outcome, Shown};
use attache_host::permission::Action;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Our server: cargo builds examples together with tests, and puts them beside each other.
fn tiny(name: &str, args: &[&str]) -> McpServerStdio {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples/mcp_server");
    assert!(program.exists(), "{} is not built", program.display());
    McpServerStdio::new(name, program.to_str().unwrap())
        .args(args.iter().copied())
        .env([EnvVariable::new("TOKEN", Secret::from("sk-confidential"))])
}

fn setup() -> Setup {
    Setup::new(std::env::temp_dir().canonicalize().unwrap())
}

async fn started(servers: Vec<McpServerStdio>, setup: Setup) -> Servers {
    let servers = Servers::start(servers.into_iter().map(McpServer::Stdio).collect(), setup);
    tokio::time::timeout(PATIENCE, servers.ready()).await.unwrap();
    servers
}

async fn one() -> Servers {
    let servers = started(vec![tiny("tiny", &[])], setup()).await;
    assert_eq!(servers.notices(), []);
    servers
}

async fn call(servers: &Servers, name: &str, arguments: Value) -> Outcome {
    let prepared = servers.prepare(name, &arguments).unwrap().unwrap();
    let (live, _shown) = Live::channel();
    tokio::time::timeout(PATIENCE, servers.perform(prepared.work, &live)).await.unwrap()
}

fn text(outcome: &Outcome) -> &str {
    match &outcome.parts[..] {
        [Part::Text { text }] => text,
        other => panic!("not one text: {other:?}"),
    }
}

/// The next notice of the servers.
async fn notice(servers: &Servers, told: &mut Vec<Notice>) -> Notice {
    let mut changes = servers.changes();
    let next = async {
        loop {
            told.extend(servers.notices());
            if !told.is_empty() {
                return told.remove(0);
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, next).await.unwrap()
}

fn quick(count: usize) -> Setup {
    Setup { restarts: vec![Duration::from_millis(50); count], ..setup() }
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let servers = one().await;
    let specs = servers.specs();
    assert_eq!(specs.len(), 18);
    assert!(specs.is_sorted_by_key(|spec| spec.name.clone()));
    let spec = specs.iter().find(|spec| spec.name == "tiny__echo").unwrap();
    assert_eq!(spec.description, "For tests.");
    assert_eq!(spec.schema["properties"]["text"]["type"], "string");

    let prepared = servers.prepare("tiny__echo", &json!({ "text": "hi" })).unwrap().unwrap();
    assert_eq!((prepared.title.as_str(), prepared.kind.clone()), ("tiny: The echo tool", ToolKind::Generic));
    assert_eq!(
        prepared.actions,
        [Action::Other { kind: ToolKind::Generic, paths: Vec::new(), name: Some("tiny__echo".into()) }]
    );
    assert_eq!(prepared.work.name, "tiny__echo");

    let outcome = call(&servers, "tiny__echo", json!({ "text": "hi" })).await;
    assert_eq!((text(&outcome), outcome.is_error), ("hi", false));
    assert_eq!(serde_json::to_value(outcome.content).unwrap()[0]["content"], json!({ "type": "text", "text": "hi" }));
    let outcome = call(&servers, "tiny__fail", Value::Null).await;
    assert_eq!((text(&outcome), outcome.is_error), ("no", true));
    assert_eq!(servers.notices(), []);
    servers.close().await;
}

#[tokio::test]
async fn calls_that_make_no_sense_are_refused() {
    let servers = one().await;
    for name in ["read_file", "other__echo", "tiny", "", "__"] {
        assert!(servers.prepare(name, &json!({})).is_none(), "{name}");
    }
    let check = |name: &str, arguments: Value, wanted: &str| {
        assert_eq!(servers.prepare(name, &arguments).unwrap().unwrap_err().0, wanted);
    };
    check("tiny__none", json!({}), "the MCP server `tiny` has no tool `tiny__none`");
    check("tiny__echo", json!([1]), "the arguments of `tiny__echo` have to be a JSON object");
}

#[tokio::test]
async fn a_program_gets_its_directory_its_variables_and_our_roots() {
    let mut setup = setup();
    setup.directories.push("/another dir".into());
    let cwd = setup.cwd.clone();
    let servers = started(vec![tiny("tiny", &[])], setup).await;
    assert_eq!(PathBuf::from(text(&call(&servers, "tiny__cwd", json!({})).await)), cwd);
    assert_eq!(text(&call(&servers, "tiny__env", json!({ "text": "TOKEN" })).await), "sk-confidential");
    assert_ne!(text(&call(&servers, "tiny__env", json!({ "text": "PATH" })).await), "unset");
    let roots: Value = serde_json::from_str(text(&call(&servers, "tiny__roots", json!({})).await)).unwrap();
    assert_eq!(roots["roots"][1]["uri"], "file:///another%20dir");
}

#[tokio::test]
async fn a_server_that_fails_is_told_about_once_and_the_others_work() {
    let missing = McpServerStdio::new("missing", "/no/such/program");
    let mut setup = setup();
    setup.connect_limit = Duration::from_secs(5);
    let servers = vec![missing, tiny("dead", &["--die"]), tiny("silent", &["--silent"]), tiny("fine", &[])];
    let servers = started(servers, setup).await;
    let mut notices = servers.notices();
    notices.sort_by(|one, other| one.server.cmp(&other.server));
    let texts: Vec<&str> = notices.iter().map(|notice| notice.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "the MCP server `dead` cannot be used: it ended with exit code 2\nlast lines on stderr: no luck with …",
            "the MCP server `missing` cannot be used: program `/no/such/program` not found\nhint: check the path",
            "the MCP server `silent` cannot be used: it was not ready within 5 seconds",
        ]
    );
    assert_eq!(servers.notices(), []);
    assert_eq!(text(&call(&servers, "fine__echo", json!({ "text": "hi" })).await), "hi");
    let refusal = servers.prepare("dead__echo", &json!({})).unwrap().unwrap_err();
    assert!(refusal.0.starts_with("the MCP server `dead` cannot be used"), "{refusal}");
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_fails_it_and_is_restarted() {
    let mut setup = quick(1);
    setup.restarts = vec![Duration::from_millis(700)];
    let servers = started(vec![tiny("tiny", &[]), tiny("other", &[])], setup).await;
    let count = servers.specs().len();
    let outcome = call(&servers, "tiny__die", json!({})).await;
    let why = "the MCP server `tiny` is gone: it ended with exit code 3\nlast lines on stderr: I give up on …\nit is being \
               restarted";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
    let mut told = Vec::new();
    assert_eq!(notice(&servers, &mut told).await, Notice { server: "tiny".into(), text: why.into(), is_problem: true });
    // Its tools stay listed, and a call waits for it.
    assert_eq!(servers.specs().len(), count);
    assert_eq!(text(&call(&servers, "other__echo", json!({ "text": "hi" })).await), "hi");
    assert_eq!(text(&call(&servers, "tiny__echo", json!({ "text": "back" })).await), "back");
    assert_eq!(notice(&servers, &mut told).await.text, "the MCP server `tiny` is running again");
}

#[tokio::test]
async fn a_server_that_stays_dead_is_left_alone_after_a_few_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let once = directory.path().join("once");
    let servers = started(vec![tiny("tiny", &["--once", once.to_str().unwrap()])], quick(3)).await;
    assert_eq!(servers.specs().len(), 18);
    call(&servers, "tiny__die", json!({})).await;
    // A call waits until it is known that the server does not come back.
    let outcome = call(&servers, "tiny__echo", json!({})).await;
    let why = "the MCP server `tiny` cannot be used: it ended with exit code 4\nit was restarted 3 times and is left \
               alone now";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
    let mut told = Vec::new();
    assert!(notice(&servers, &mut told).await.text.ends_with("it is being restarted"));
    assert_eq!(notice(&servers, &mut told).await.text, why);
    assert_eq!((told.len(), servers.specs().len()), (0, 0));
    assert_eq!(servers.prepare("tiny__echo", &json!({})).unwrap().unwrap_err().0, why);
    // Until somebody wants it again.
    std::fs::remove_file(once).unwrap();
    servers.restart("tiny").unwrap();
    let mut changes = servers.changes();
    let back = async {
        while servers.specs().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, back).await.unwrap();
    assert_eq!(text(&call(&servers, "tiny__echo", json!({ "text": "hi" })).await), "hi");
    assert_eq!(servers.restart("none").unwrap_err(), "there is no MCP server `none`");
}

#[tokio::test]
async fn a_call_waits_only_so_long_for_a_restart() {
    let mut setup = quick(1);
    setup.restarts = vec![Duration::from_secs(600)];
    setup.connect_limit = Duration::from_secs(5);
    let servers = started(vec![tiny("tiny", &[])], setup).await;
    call(&servers, "tiny__die", json!({})).await;
    let outcome = call(&servers, "tiny__echo", json!({})).await;
    assert_eq!(text(&outcome), "the MCP server `tiny` is being restarted and was not ready within 5 seconds");
    tokio::time::timeout(PATIENCE, servers.close()).await.unwrap();
}

#[tokio::test]
async fn the_last_answer_of_a_server_counts() {
    let servers = started(vec![tiny("tiny", &[])], quick(0)).await;
    let outcome = call(&servers, "tiny__bye", json!({})).await;
    assert_eq!((text(&outcome), outcome.is_error), ("bye", false));
    let gone = notice(&servers, &mut Vec::new()).await;
    assert_eq!(gone.text, "the MCP server `tiny` is gone: it ended with exit code 0");
    assert!(servers.specs().is_empty());
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let spill = Arc::new(Spill::new(directory.path().join("outputs")));
    let servers = started(vec![tiny("tiny", &[])], Setup { spill: Some(spill.clone()), ..setup() }).await;
    let lines = 1 << 19;
    let outcome = call(&servers, "tiny__big", json!({ "text": lines.to_string() })).await;
    assert!(text(&outcome).len() < 40 << 10 && text(&outcome).contains("the whole text is in `"));
    assert!(serde_json::to_string(&outcome.content).unwrap().len() < 64 << 10);
    let kept = std::fs::read_dir(spill.directory()).unwrap().next().unwrap().unwrap();
    assert_eq!(kept.metadata().unwrap().len(), lines * 5);
}

#[tokio::test]
async fn lists_of_several_pages_are_read_to_the_end() {
    let servers = started(vec![tiny("tiny", &["--pages"])], setup()).await;
    let names: Vec<String> = servers.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["tiny__page_0", "tiny__page_1", "tiny__page_2"]);
}

#[tokio::test]
async fn a_changed_list_of_tools_is_followed() {
    let servers = one().await;
    let mut changes = servers.changes();
    assert_eq!(text(&call(&servers, "tiny__change", json!({})).await), "changed");
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
    assert!(servers.specs().iter().any(|spec| spec.name == "tiny__brand_new"));
    // The server hears its own name for the tool, and refuses this one in its own words.
    let outcome = call(&servers, "tiny__brand_new", json!({})).await;
    assert_eq!(text(&outcome), "the call of the MCP server `tiny` failed: it refuses: no such tool (-32602)");
}

#[tokio::test]
async fn calls_run_side_by_side_and_show_how_far_they_are() {
    let servers = one().await;
    let (live, mut shown) = Live::channel();
    let steps = servers.prepare("tiny__steps", &json!({})).unwrap().unwrap().work;
    let (outcome, parked, ()) =
        tokio::join!(servers.perform(steps, &live), call(&servers, "tiny__park", json!({})), async {
            loop {
                let Some(Shown::Content(content)) = shown.recv().await else { panic!("nothing is shown") };
                let text = serde_json::to_value(content).unwrap()[0]["content"]["text"].clone();
                if text == "3 of 3: going on" {
                    break;
                }
            }
            while text(&call(&servers, "tiny__release", json!({})).await) == "0" {}
            // The one or the other may have come later than the first release.
            call(&servers, "tiny__release", json!({})).await;
        });
    assert_eq!((text(&outcome), text(&parked)), ("released", "released"));
}

#[tokio::test]
async fn a_viewer_who_does_not_look_holds_up_nothing() {
    let mut setup = setup();
    setup.call_limit = Duration::from_secs(1);
    let servers = started(vec![tiny("tiny", &[])], setup).await;
    let (live, _shown) = Live::channel();
    while tokio::time::timeout(Duration::from_millis(1), live.show(Shown::Content(Vec::new()))).await.is_ok() {}
    let work = servers.prepare("tiny__steps", &json!({})).unwrap().unwrap().work;
    let outcome = tokio::time::timeout(PATIENCE, servers.perform(work, &live)).await.unwrap();
    assert_eq!(text(&outcome), "the MCP server `tiny` did not answer within 1 seconds");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let mut setup = setup();
    setup.call_limit = Duration::from_secs(2);
    let servers = started(vec![tiny("tiny", &[])], setup).await;
    let outcome = call(&servers, "tiny__park", json!({})).await;
    assert_eq!((text(&outcome), outcome.is_error), ("the MCP server `tiny` did not answer within 2 seconds", true));
    {
        let work = servers.prepare("tiny__park", &json!({})).unwrap().unwrap().work;
        let (live, _shown) = Live::channel();
        let _ = tokio::time::timeout(Duration::from_millis(100), servers.perform(work, &live)).await;
    }
    let heard = async { while text(&call(&servers, "tiny__cancelled", json!({})).await) != "2" {} };
    tokio::time::timeout(PATIENCE, heard).await.unwrap();
    assert_eq!(text(&call(&servers, "tiny__release", json!({})).await), "0");
}

#[tokio::test]
async fn junk_on_stdout_is_passed_over() {
    let servers = started(vec![tiny("tiny", &["--junk"])], setup()).await;
    assert_eq!(servers.notices(), []);
    assert_eq!(text(&call(&servers, "tiny__junk", json!({})).await), "after junk");
}

#[tokio::test]
async fn a_line_without_an_end_is_the_end_of_the_server() {
    let servers = started(vec![tiny("tiny", &[])], quick(0)).await;
    let outcome = call(&servers, "tiny__endless", json!({})).await;
    let why = "the MCP server `tiny` is gone: it sent a message of more than 16 MiB";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
    assert_eq!(notice(&servers, &mut Vec::new()).await.text, why);
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_ended() {
    let servers = started(vec![tiny("tiny", &[])], quick(0)).await;
    let outcome = call(&servers, "tiny__flood", json!({})).await;
    let why = "the MCP server `tiny` is gone: it sends requests without reading the answers";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
}

#[tokio::test]
async fn servers_of_one_name_are_kept_apart() {
    let servers = started(vec![tiny("tiny", &[]), tiny("tiny", &["--pages"])], setup()).await;
    assert_eq!(servers.specs().len(), 21);
    assert!(servers.prepare("tiny_2__page_1", &json!({})).unwrap().is_ok());
    assert!(servers.prepare("tiny__page_1", &json!({})).unwrap().is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_is_left_behind() {
    for is_polite in [true, false] {
        let servers = one().await;
        let child = text(&call(&servers, "tiny__child", json!({})).await).to_owned();
        let place = Path::new("/proc").join(&child);
        assert!(place.exists(), "{child}");
        if is_polite {
            servers.close().await;
        } else {
            drop(servers);
        }
        let ended = async {
            while place.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap();
    }
}

#[tokio::test]
async fn closing_does_not_wait_for_servers_that_are_not_ready() {
    let servers = Servers::start(vec![McpServer::Stdio(tiny("silent", &["--silent"]))], setup());
    tokio::time::timeout(PATIENCE, servers.close()).await.unwrap();
}

#[test]
fn what_is_shown_of_servers_has_no_secrets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _context = runtime.enter();
    let servers = Servers::start(vec![McpServer::Stdio(tiny("tiny", &[]))], setup());
    assert_eq!(format!("{servers:?}"), r#"Servers { names: ["tiny"], .. }"#);
}
