//! The project's entry for the ACP registry, from which editors install agents, held against the registry's rules.
// On Unix, because they need signals, modes of files and shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use support::Home;

const ID: &str = "attache-acp";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/registry")
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn entry() -> Value {
    read_json(&folder().join(ID).join("agent.json"))
}

/// What the schema says of an entry.
fn judged(entry: &Value) -> Result<(), String> {
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("agent.json", read_json(&folder().join("agent.schema.json"))).unwrap();
    let mut schemas = boon::Schemas::new();
    let schema = compiler.compile("agent.json", &mut schemas).unwrap();
    schemas.validate(entry, schema).map_err(|error| format!("{error:#}"))
}

#[test]
fn the_entry_is_valid() {
    assert_eq!(judged(&entry()), Ok(()));
    assert_eq!(entry()["id"], ID, "the registry wants the name of the folder");
    // The schema is no schema if it takes everything.
    let changes: [fn(&mut Value); 6] = [
        |entry| entry["id"] = "Attaché".into(),
        |entry| entry["version"] = "1.0".into(),
        |entry| entry["repository"] = "no address".into(),
        |entry| entry["distribution"] = json!({}),
        |entry| {
            entry["distribution"]["binary"] =
                json!({ "plan9-x86_64": { "archive": "https://x.example/a.zip", "cmd": "a" } })
        },
        |entry| {
            entry["distribution"]["binary"] =
                json!({ "linux-x86_64": { "archive": "https://x.example/a.deb", "cmd": "a" } })
        },
    ];
    for change in changes {
        let mut entry = entry();
        change(&mut entry);
        assert!(judged(&entry).is_err(), "{entry}");
    }
}

#[test]
fn the_version_is_that_of_the_workspace_everywhere() {
    let (entry, version) = (entry(), env!("CARGO_PKG_VERSION"));
    assert_eq!(entry["version"], version, "packaging/registry/{ID}/agent.json is of another version");
    for (platform, target) in entry["distribution"]["binary"].as_object().unwrap() {
        let archive = target["archive"].as_str().unwrap();
        let start = format!("{}/releases/download/v{version}/", entry["repository"].as_str().unwrap());
        let name = archive.strip_prefix(&start).unwrap_or_else(|| panic!("{platform}: {archive}"));
        let ending = if platform.starts_with("windows") { (".zip", ".exe") } else { (".tar.gz", "") };
        let triple = name.strip_prefix(&format!("attache-{version}-")).and_then(|name| name.strip_suffix(ending.0));
        let triple = triple.unwrap_or_else(|| panic!("{platform}: {archive}"));
        // The registry sets a new version in addresses by itself, and nowhere else: none may be in the path of the program.
        assert_eq!(target["cmd"], format!("./attache-{triple}/attache{}", ending.1), "{platform}");
        // For the same reason a checksum would be that of another version soon.
        assert!(target["sha256"].is_null(), "{platform}");
    }
    assert_eq!(entry["distribution"]["npx"]["package"], format!("{ID}@{version}"));
    assert_eq!(entry["repository"], env!("CARGO_PKG_REPOSITORY"));
    assert_eq!(entry["license"], env!("CARGO_PKG_LICENSE"));
}

/// The attributes of each element, in the order of the file.
fn elements(svg: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let tags = svg.split('<').skip(1).filter(|tag| !tag.starts_with('/'));
    tags.map(|tag| {
        let inside = tag.split('>').next().unwrap().trim_end_matches('/');
        let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let mut attributes = Vec::new();
        while let Some((attribute, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            attributes.push((attribute.trim(), value));
            rest = after;
        }
        (name, attributes)
    })
    .collect()
}

#[test]
fn the_icon_takes_the_colour_of_the_text_around_it() {
    let svg = fs::read_to_string(folder().join(ID).join("icon.svg")).unwrap();
    let elements = elements(&svg);
    let (name, root) = &elements[0];
    assert_eq!(*name, "svg");
    for expected in [("width", "16"), ("height", "16"), ("viewBox", "0 0 16 16")] {
        assert!(root.contains(&expected), "{expected:?} in {root:?}");
    }
    assert!(elements.len() > 2, "there is something to see: {elements:?}");
    // Comments and styles are not taken by the registry, or hide colours from this test.
    assert!(!svg.contains("<!--") && !svg.contains("<style"));
    let attributes = || elements.iter().flat_map(|(_, attributes)| attributes);
    assert!(attributes().all(|(name, _)| *name != "style"));
    let colours: Vec<&str> =
        attributes().filter(|(name, _)| matches!(*name, "fill" | "stroke")).map(|(_, value)| *value).collect();
    assert!(colours.iter().all(|colour| matches!(*colour, "currentColor" | "none")), "{colours:?}");
    assert!(colours.contains(&"currentColor"), "{colours:?}");
}

#[test]
fn our_own_reader_takes_it() {
    let home = Home::new();
    let registry = json!({ "version": "1.0.0", "agents": [entry()] });
    fs::write(home.path("registry.json"), registry.to_string()).unwrap();
    let listed = home.run(&["agents", "list", "--registry", "registry.json", "--json"]);
    listed.check(0, &[ID, "npx", env!("CARGO_PKG_VERSION")], &[]);
    home.run(&["agents", "add", "ours", "--registry", "registry.json"]).check(8, &[], &["no agent `ours`"]);
    home.run(&["agents", "add", ID, "--registry", "registry.json", "--yes"]).check(0, &[], &[]);
    let package = format!("{ID}@{}", env!("CARGO_PKG_VERSION"));
    home.run(&["agents", "show", ID]).check(0, &["npx", &format!("{package} agent")], &[]);
}

/// The registry starts an agent with an empty home and no key, greets it in version 1, and takes it only if it names a way
/// to log in that is `agent`, which is also what no type means, or `terminal`.
#[test]
fn the_agent_passes_the_check_for_logins() {
    let home = Home::new();
    let mut command = home.command(&["agent"]);
    // No choice was made: that is how it is started from the registry.
    command.env_remove("ATTACHE_MODEL").env("TERM", "dumb");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let capabilities = json!({
        "terminal": true,
        "fs": { "readTextFile": true, "writeTextFile": true },
        "_meta": { "terminal_output": true, "terminal-auth": true }
    });
    let params = json!({
        "protocolVersion": 1,
        "clientInfo": { "name": "ACP Registry Validator", "version": "1.0.0" },
        "clientCapabilities": capabilities
    });
    let mut stdin = child.stdin.take().unwrap();
    let session = json!({ "cwd": home.0.path(), "mcpServers": [] });
    let requests = [("initialize", params), ("authenticate", json!({ "methodId": "key" })), ("session/new", session)];
    for (id, (method, params)) in requests.into_iter().enumerate() {
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
    }
    drop(stdin);
    let _limit = attache_testkit::TimeLimit::new(&child, std::time::Duration::from_secs(60));
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = answers.iter().find(|answer| answer["id"] == 0).unwrap();
    let methods = answer["result"]["authMethods"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let is_taken = |method: &Value| matches!(method["type"].as_str(), None | Some("agent" | "terminal"));
    assert!(methods.iter().any(is_taken), "{answer}");
    // Who takes that way without a key gets a session all the same, with the model that needs none.
    for id in [1, 2] {
        assert!(answers.iter().any(|answer| answer["id"] == id && !answer["result"].is_null()), "{out}");
    }
}
