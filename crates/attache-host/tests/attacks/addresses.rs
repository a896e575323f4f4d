//! Keys in the addresses and arguments of MCP servers: what is written down or shown has none of them.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::support::Place;

/// All that is kept in a directory, as one text.
fn all(directory: &Path) -> String {
    let entries = fs::read_dir(directory).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => all(&path),
        false => String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned(),
    };
    entries.into_iter().map(|entry| text(entry.path())).collect()
}

#[test]
fn keys_of_mcp_servers_are_neither_traced_nor_recorded_nor_told() {
    let place = Place::new();
    let servers = json!({"mcpServers": {
        "web": {"url": "http://me:hidden-1@127.0.0.1:1/hidden-2/mcp?token=hidden-3#hidden-4",
                "headers": {"Authorization": "Bearer hidden-5"}},
        "program": {"command": "sh", "args": ["-c", "echo broken >&2; exit 3 # hidden-6"], "env": {"KEY": "hidden-7"}},
    }});
    let config = place.write("mcp.json", servers.to_string());
    let trace = place.home().join("trace");
    let args = ["run", "--trace", trace.to_str().unwrap(), "--mcp-config", config.to_str().unwrap(), "say hello"];
    let ran = place.run(place.command(&args));
    let trace = place.read("trace");
    assert!(trace.contains("mcpServers") && trace.contains("http://127.0.0.1:1"), "{trace}\n{ran:?}");
    // What was wrong is told, though.
    assert!(ran.err.contains("`web`") && ran.err.contains("`program`"), "{ran:?}");
    let kept = all(&place.home().join(".local/state/attache"));
    assert!(!kept.is_empty());
    for text in [&trace, &ran.out, &ran.err, &kept] {
        assert!(!text.contains("hidden-"), "{text}");
    }
}
