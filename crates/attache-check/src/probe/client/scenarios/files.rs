//! Files that the client reads and writes.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::DONE;
use crate::probe::client::scenario::Stop;
use crate::probe::client::{AgentDriver, Answer};

const TEXT: &str = "first\nsecond \u{e4}\u{1f980}\nthird\n\nlast without an end";

/// A directory of our own in the directory of the session, if we can make one there. It goes with us.
fn folder(agent: &mut AgentDriver) -> Option<TempDir> {
    let made = tempfile::Builder::new().prefix(".attache-check-").tempdir_in(agent.cwd());
    made.inspect_err(|error| agent.note(format!("no directory for files: {error}"))).ok()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

async fn read_file(agent: &mut AgentDriver, path: &str, part: Value) -> Answer {
    let mut params = json!({"sessionId": agent.session(), "path": path});
    for (name, value) in part.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    agent.ask("fs/read_text_file", params).await
}

async fn write_file(agent: &mut AgentDriver, path: &str, content: &str) -> Answer {
    let params = json!({"sessionId": agent.session(), "path": path, "content": content});
    agent.ask("fs/write_text_file", params).await
}

pub(in crate::probe::client) async fn read(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("fs.readTextFile") {
        return DONE;
    }
    let Some(folder) = folder(agent) else { return DONE };
    let file = path(folder.path(), "five lines.txt");
    let empty = path(folder.path(), "empty.txt");
    if std::fs::write(&file, TEXT).and_then(|()| std::fs::write(&empty, "")).is_err() {
        return DONE;
    }
    let parts = [
        json!({}),
        json!({"line": 1}),
        json!({"line": 2, "limit": 1}),
        json!({"line": 3}),
        json!({"line": 4, "limit": 100}),
        json!({"limit": 2}),
        json!({"line": null, "limit": null}),
        json!({"line": 99}),
        json!({"limit": 0}),
    ];
    agent.note("a file with five lines");
    for part in parts {
        read_file(agent, &file, part).await;
    }
    read_file(agent, &empty, json!({})).await;
    agent.note("a file that is not there");
    read_file(agent, &path(folder.path(), "missing.txt"), json!({})).await;
    agent.note("a directory");
    read_file(agent, &folder.path().to_string_lossy(), json!({})).await;
    agent.note("a path that is not absolute");
    read_file(agent, "five lines.txt", json!({})).await;
    if let Ok(elsewhere) = tempfile::tempdir() {
        let file = path(elsewhere.path(), "elsewhere.txt");
        if std::fs::write(&file, "outside of the session's directory\n").is_ok() {
            agent.note("a file outside of the session's directory");
            read_file(agent, &file, json!({})).await;
        }
    }
    agent.note("params without a path");
    let session = agent.session().to_owned();
    agent.ask("fs/read_text_file", json!({"sessionId": session})).await;
    DONE
}

pub(in crate::probe::client) async fn write(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("fs.writeTextFile") {
        return DONE;
    }
    let Some(folder) = folder(agent) else { return DONE };
    let new = path(folder.path(), "new.txt");
    let deep = path(folder.path(), "one/two/deep.txt");
    if agent.is_offered("fs.readTextFile") {
        agent.note("the file is not there before it is written");
        read_file(agent, &new, json!({})).await;
    }
    for (what, path, text) in [
        ("a file that is not there yet", &new, TEXT),
        ("the same file again, shorter", &new, "short\n"),
        ("nothing into it", &new, ""),
        ("a file in a directory that is not there yet", &deep, "deep\n"),
    ] {
        agent.note(what);
        let answer = write_file(agent, path, text).await;
        if answer.is_result() && agent.is_offered("fs.readTextFile") {
            read_file(agent, path, json!({})).await;
            if text == TEXT {
                read_file(agent, path, json!({"line": 2, "limit": 2})).await;
            }
        }
    }
    if let Ok(elsewhere) = tempfile::tempdir() {
        agent.note("a file outside of the session's directory");
        write_file(agent, &path(elsewhere.path(), "elsewhere.txt"), "elsewhere\n").await;
    }
    agent.note("a path that is not absolute");
    write_file(agent, "../attache-check-relative.txt", "relative\n").await;
    DONE
}
