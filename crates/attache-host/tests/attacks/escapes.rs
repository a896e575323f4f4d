//! What an agent says, on a terminal and in data.

use serde_json::{Value, json};

use super::support::{Place, Ran};

/// Clears the screen, sets the clipboard, in one byte and in two, and turns text around.
const EVIL: &str = "a\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}2J\u{7f}\u{202e}b\u{e0041}\rc";

fn script() -> Value {
    let text = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    json!([{"update": text(EVIL)}])
}

/// What must not reach a terminal. Our own colours are the only sequences there.
fn is_harmful(text: &str) -> bool {
    text.contains(['\u{9b}', '\u{7}', '\u{7f}', '\u{202e}', '\u{e0041}']) || text.contains("\u{1b}[2J")
}

fn at_a_terminal(place: &Place, args: &[&str]) -> Ran {
    place.ask(place.command(args), &[])
}

#[test]
fn nothing_that_an_agent_says_acts_on_a_terminal() {
    let place = Place::new();
    for format in ["text", "quiet", "json", "stream-json", "acp"] {
        let ran = place.ask(place.attack(1, &["-o", format], &script()), &[]);
        assert!(ran.err.contains("52;c;ZXZpbA=="), "{format}: {:?}", ran.err);
        assert!(!is_harmful(&ran.err), "{format}: {:?}", ran.err);
    }
    let run = place.run(place.command(&["sessions", "list", "--json"]));
    let row: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    let id = row["run"].as_str().unwrap();
    for args in [&["sessions", "show", id][..], &["sessions", "export", id], &["sessions", "export", "-f", "json", id]]
    {
        let ran = at_a_terminal(&place, args);
        assert!(ran.err.contains("52;c;ZXZpbA=="), "{args:?}: {:?}", ran.err);
        assert!(!is_harmful(&ran.err), "{args:?}: {:?}", ran.err);
    }
}

#[test]
fn data_is_what_the_agent_said_and_json_escapes_it() {
    let place = Place::new();
    let ran = place.run(place.attack(1, &["-o", "quiet"], &script()));
    assert_eq!(ran.out, format!("{EVIL}\n"), "a pipe gets the very text");
    let ran = place.run(place.attack(1, &["-o", "json"], &script()));
    assert!(ran.out.trim_end().chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{:?}", ran.out);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["text"], EVIL);
}
