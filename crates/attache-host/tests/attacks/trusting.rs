//! What a person is shown before a repository takes effect, and what that covers.

use super::support::{Place, Ran};

fn trust(place: &Place, answer: &str) -> Ran {
    place.ask(place.command(&["trust"]), &[("[N] no", answer)])
}

fn place() -> Place {
    let place = Place::new();
    place.write("project/tools/server.sh", "exit 0\n");
    place.write(
        "project/.attache/mcp.json",
        "{\"mcpServers\": {\"tools\": {\"command\": \"sh\", \"args\": [\"tools/server.sh\"]}}}\n",
    );
    place.write("project/.attache/commands/go.md", "Go\u{1b}[2J\u{202e} on.\n");
    place
}

#[test]
fn what_is_trusted_is_shown_first_and_a_yes_is_needed() {
    let place = place();
    let ran = place.run(place.command(&["trust"]));
    assert_eq!(ran.code, Some(2), "nobody was there to say yes: {ran:?}");
    let ran = trust(&place, "\r");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let screen = ran.err.replace("\r\n", "\n");
    for part in [
        "commands/go.md",
        "Go\\x1b[2J\\u{202e} on.",
        "\"mcpServers\"",
        "sh tools/server.sh",
        "tools/server.sh` is covered",
    ] {
        assert!(screen.contains(part), "{part} in {screen}");
    }
    assert!(!screen.contains("\u{1b}[2J") && !screen.contains('\u{202e}'), "{screen:?}");
    assert!(place.run(place.command(&["run", "hello"])).err.contains("has no effect"));
    assert_eq!(trust(&place, "y\r").code, Some(0));
    assert!(!place.run(place.command(&["run", "hello"])).err.contains("has no effect"));
}

#[test]
fn a_program_that_changes_after_it_was_trusted_is_not_started() {
    let place = place();
    assert_eq!(trust(&place, "y\r").code, Some(0));
    place.write("project/tools/server.sh", "touch ../pwned\n");
    let ran = place.run(place.command(&["run", "hello"]));
    assert!(ran.err.contains("a program that it starts"), "{ran:?}");
    assert!(!place.home().join("pwned").exists(), "{ran:?}");
}
