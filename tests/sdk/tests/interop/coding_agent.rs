//! Whole turns of the coding agent with clients made with the official SDK.

use std::path::Path;

use attache_agent::{CodingAgent, Config, SandboxMode};
use tokio::io::DuplexStream;

use crate::play::{Editor, within_limit};
use crate::their_client::{self, TheirClient};
use crate::version::Version;

/// Serves the agent with its built-in model, and all that it keeps beneath `home`.
async fn serve(home: &Path, sandbox: SandboxMode) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let config =
        Config { model: Some("offline".into()), sandbox, ..Config::new(home.join("config"), home.join("state")) };
    let agent = CodingAgent::new(config).await.unwrap();
    tokio::spawn(agent.server().connect(reader, writer));
    near
}

/// A project with one file, and a place for what the agent keeps.
fn places() -> (tempfile::TempDir, tempfile::TempDir) {
    let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(project.path().join("a.txt"), "some text\n").unwrap();
    (project, home)
}

/// Does a step and tells what was seen of it. Paths begin at the project, and what the model says is `text`: its words
/// are not what this is about.
async fn step<V: Version>(client: &mut TheirClient<V>, project: &Path, verb: &str, rest: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let project = project.to_str().unwrap();
    for line in client.step(verb, rest).await {
        if ["~", "usage ", "commands ", "title "].iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let mut line = line.replace(&format!("{project}/"), "").replace(project, "PROJECT").replace('\n', "|");
        if let Some(start) = line.find(" terminal ") {
            // The ids of terminals are made up.
            line.truncate(start + " terminal".len());
        }
        if line.starts_with("text ") {
            line = "text".into();
        }
        if line != "text" || lines.last().is_none_or(|last| last != "text") {
            lines.push(line);
        }
    }
    lines
}

/// Plays a transcript: `>` is what the client does, `<` is what it then sees.
async fn check<V: Version>(client: &mut TheirClient<V>, project: &Path, transcript: &str) {
    let expected: Vec<&str> = transcript.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut played = Vec::new();
    for line in expected.iter().filter_map(|line| line.strip_prefix("> ")) {
        played.push(format!("> {line}"));
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let session = client.session().to_owned();
        let rest = match rest {
            "PROJECT" => project.to_str().unwrap().to_owned(),
            rest => rest.replace("SESSION", &session).replace('|', "\n"),
        };
        let mut seen = step(client, project, verb, &rest).await;
        // Only version 2 repeats what the user said in a turn.
        if verb != "load" {
            seen.retain(|line| !line.starts_with("user "));
        }
        played.extend(seen.into_iter().map(|line| format!("< {line}")));
    }
    let session = client.session().to_owned();
    let played: Vec<String> = played.into_iter().map(|line| line.replace(&session, "SESSION")).collect();
    assert_eq!(played.join("\n"), expected.join("\n"), "seen:\n{}", played.join("\n"));
}

#[tokio::test]
async fn a_version_1_client_has_whole_turns_with_its_own_files_and_terminals() {
    within_limit(async {
        let (project, home) = places();
        // Commands run in the client's terminals where they need not be confined.
        let mut client = their_client::connect_v1(serve(home.path(), SandboxMode::Off).await).await.unwrap();
        check(&mut client, project.path(), include_str!("coding_agent.v1.txt")).await;
    })
    .await;
}

#[tokio::test]
async fn a_version_2_client_has_whole_turns() {
    within_limit(async {
        let (project, home) = places();
        let mut client = their_client::connect_v2(serve(home.path(), SandboxMode::On).await).await.unwrap();
        check(&mut client, project.path(), include_str!("coding_agent.v2.txt")).await;
    })
    .await;
}

#[tokio::test]
async fn a_turn_is_cancelled_while_the_model_talks() {
    within_limit(async {
        let (project, home) = places();
        let mut client = their_client::connect_v1(serve(home.path(), SandboxMode::On).await).await.unwrap();
        talk(&mut client, project.path()).await;
        let mut client = their_client::connect_v2(serve(home.path(), SandboxMode::On).await).await.unwrap();
        talk(&mut client, project.path()).await;
    })
    .await;
}

async fn talk<V: Version>(client: &mut TheirClient<V>, project: &Path) {
    step(client, project, "open", project.to_str().unwrap()).await;
    let words = "word ".repeat(400);
    let seen = step(client, project, "prompt", &format!("slowly cancel {words}")).await;
    assert_eq!(seen.last().unwrap(), "end cancelled");
    assert_eq!(step(client, project, "prompt", "say on").await.last().unwrap(), "end end_turn");
}
