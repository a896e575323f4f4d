//! What is left of a run: no more than there is room for, and nothing where nothing is to be left.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::support::{Place, attache, hostile_agent};

fn records(place: &Place) -> Vec<PathBuf> {
    let files = |name: &str| {
        let entries = std::fs::read_dir(place.home().join(".local/state/attache").join(name));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    [files("runs"), files("agent/sessions"), files("agent/outputs")].concat()
}

#[test]
fn an_ephemeral_run_leaves_no_record() {
    let place = Place::new();
    let ran = place.run(place.command(&["run", "--ephemeral", "say my secret"]));
    assert!(ran.code == Some(0) && ran.out.contains("my secret"), "{ran:?}");
    assert!(records(&place).is_empty(), "{:?} {ran:?}", records(&place));
    place.run(place.command(&["run", "say my secret"]));
    assert_eq!(records(&place).len(), 3, "a run, a session and its outline otherwise");
    // An agent that cannot delete sessions is named.
    let ran = place.run(place.attack(1, &["--ephemeral"], &json!([])));
    assert!(ran.err.contains("the agent keeps its session"), "{ran:?}");
}

#[test]
fn records_are_deleted_when_a_person_says_so() {
    let place = Place::new();
    let count = || std::fs::read_dir(place.home().join(".local/state/attache/runs")).unwrap().count();
    for _ in 0..3 {
        place.run(place.command(&["run", "say hello"]));
    }
    let ran = place.run(place.command(&["sessions", "delete", "--all"]));
    assert_eq!((ran.code, count()), (Some(2), 3), "nobody said yes: {ran:?}");
    let ran = place.ask(place.command(&["sessions", "delete", "--all"]), &[("[N] no", "\r")]);
    assert_eq!((ran.code, count()), (Some(5), 3), "{ran:?}");
    let ran = place.run(place.command(&["sessions", "delete", "--older-than", "1h", "--yes"]));
    assert_eq!((ran.code, count()), (Some(0), 3), "{ran:?}");
    let name = std::fs::read_dir(place.home().join(".local/state/attache/runs")).unwrap().next().unwrap().unwrap();
    let name = name.path().file_stem().unwrap().to_str().unwrap().to_owned();
    let ran = place.run(place.command(&["sessions", "delete", &name, "--yes"]));
    assert_eq!((ran.code, count()), (Some(0), 2), "{ran:?}");
    let ran = place.run(place.command(&["sessions", "delete", "../../../x", "--yes"]));
    assert_eq!((ran.code, count()), (Some(8), 2), "{ran:?}");
    let ran = place.ask(place.command(&["sessions", "delete", "--all"]), &[("[N] no", "y\r")]);
    assert_eq!((ran.code, count()), (Some(0), 0), "{ran:?}");
}

/// A file system that takes no more is played by a limit of the size of files.
#[test]
fn a_run_goes_on_when_there_is_no_room_for_its_record() {
    let place = Place::new();
    let text =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word ".repeat(4000)}});
    let end = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "the end"}});
    let script = place.write("script.json", json!([{"update": text}, {"update": end}]).to_string());
    let log = place.write("project/.log.jsonl", "");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"]).arg(attache()).args(["run", "go", "--"]);
    command.arg(hostile_agent()).args([script, log]).arg("1");
    place.prepare(&mut command);
    let ran = place.run(command);
    assert!(ran.code == Some(0) && ran.out.contains("the end"), "{:?} {}", ran.code, ran.err);
    assert!(ran.err.contains("not recorded"), "{}", ran.err);
}
