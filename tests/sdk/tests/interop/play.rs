//! Plays a transcript between an agent and a client, in every pairing of the two libraries.

use std::time::Duration;

use attache::Protocol;
use serde_json::Value;

use crate::wire::Wire;

/// How long one transcript may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Who made an end of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// A client that can be told what to do.
pub(crate) trait Editor {
    /// Does a step; returns what there was to see.
    async fn step(&mut self, verb: &str, rest: &str) -> Vec<String>;
}

/// What a client says when it is asked for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Answer {
    #[default]
    Allow,
    Reject,
    Dismiss,
    /// Nothing; it cancels the turn instead.
    Leave,
    /// It is not asked; when it could cancel, it closes the session.
    Quit,
}

impl Answer {
    /// Every way to prompt is a verb.
    pub(crate) fn parse(verb: &str) -> Self {
        match verb {
            "prompt" | "watch" | "allow" => Answer::Allow,
            "reject" => Answer::Reject,
            "dismiss" => Answer::Dismiss,
            "leave" => Answer::Leave,
            "quit" => Answer::Quit,
            other => panic!("there is no verb `{other}`"),
        }
    }
}

/// The line for an error. What it says in words differs, except where a test chose the words.
pub(crate) fn failed(code: &Value, message: &str) -> String {
    if *code == -32050 { format!("failed {code} {message}") } else { format!("failed {code}") }
}

/// Plays a transcript: `>` is what the client does, `<` is what it then sees, `<?` what it may see. It is played in memory, over
/// HTTP and over a WebSocket. The last pairing shows that the transcript is fair: it is how the official SDK speaks with itself.
pub(crate) async fn check(versions: &[u16], transcript: &str) {
    let expected: Vec<&str> = transcript.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for wire in Wire::ALL {
        for &version in versions {
            for (agent, client) in [
                (Side::Ours, Side::Theirs),
                (Side::Theirs, Side::Ours),
                (Side::Ours, Side::Ours),
                (Side::Theirs, Side::Theirs),
            ] {
                if (wire, agent, client) == (Wire::Http, Side::Theirs, Side::Theirs) && transcript.contains("> resume")
                {
                    // Their server forgets the stream of a session that is closed, and their client goes on reading it: what comes
                    // when the session is resumed never arrives.
                    continue;
                }
                let mut played = Vec::new();
                let playing = play(wire, version, agent, client, &expected, &mut played);
                if tokio::time::timeout(LIMIT, playing).await.is_err() {
                    played.push("(nothing more, for too long)".into());
                }
                let pairing = format!("{wire:?}, version {version}, agent {agent:?}, client {client:?}");
                assert_eq!(played.join("\n"), fitted(&expected, &played).join("\n"), "{pairing}");
            }
        }
    }
}

/// What is expected, with the lines that may be there (`<?`) where they are.
fn fitted(expected: &[&str], played: &[String]) -> Vec<String> {
    let mut fitted: Vec<String> = Vec::new();
    for line in expected {
        match line.strip_prefix("<?") {
            None => fitted.push((*line).to_owned()),
            Some(may_be) => {
                fitted.extend(Some(format!("<{may_be}")).filter(|line| played.get(fitted.len()) == Some(line)))
            }
        }
    }
    fitted
}

/// Does `work`, and fails when it takes too long.
pub(crate) async fn within_limit(work: impl Future<Output = ()>) {
    tokio::time::timeout(LIMIT, work).await.expect("took too long");
}

async fn play(wire: Wire, version: u16, agent: Side, client: Side, transcript: &[&str], played: &mut Vec<String>) {
    let (way, _serving) = wire.serve(version, agent).await;
    let protocol = if version == 1 { Protocol::V1 } else { Protocol::V2 };
    match (client, version) {
        (Side::Ours, _) => steps(way.our_client(protocol).await, transcript, played).await,
        (Side::Theirs, 1) => steps(way.their_client_v1().await, transcript, played).await,
        (Side::Theirs, _) => steps(way.their_client_v2().await, transcript, played).await,
    }
}

async fn steps(mut editor: impl Editor, transcript: &[&str], played: &mut Vec<String>) {
    for step in transcript.iter().filter_map(|line| line.strip_prefix("> ")) {
        played.push(format!("> {step}"));
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let mut seen = editor.step(verb, rest).await;
        if verb != "watch" {
            seen.retain(|line| !line.starts_with('~'));
        }
        // Only version 2 repeats what the user said in a turn.
        if !["watch", "load"].contains(&verb) {
            seen.retain(|line| !line.starts_with("user "));
        }
        played.extend(seen.into_iter().map(|line| format!("< {line}")));
    }
}
