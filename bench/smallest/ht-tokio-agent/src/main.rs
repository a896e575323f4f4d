//! The smallest agent by hand: repeats what it is told.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    session_id: String,
    prompt: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    // SAFETY: descriptors 0 and 1 are open and nothing else here uses them.
    let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let mut input = BufReader::new(pipe::Receiver::from_owned_fd(input)?);
    let mut output = pipe::Sender::from_owned_fd(output)?;
    let mut line = String::new();
    while input.read_line(&mut line).await? > 0 {
        output.write_all(answer(&line).as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

fn answer(line: &str) -> String {
    let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return String::new() };
    let id = line.id.map_or("null", RawValue::get);
    let (mut out, result) = match line.method.as_deref() {
        Some("initialize") => (String::new(), r#"{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}"#),
        Some("session/new") => (String::new(), r#"{"sessionId":"s1"}"#),
        Some("session/prompt") => {
            let text: String = line.params.prompt.into_iter().filter_map(|block| block.text).collect();
            let (session, text) = (quoted(&line.params.session_id), quoted(&text));
            let content = format!(r#"{{"type":"text","text":{text}}}"#);
            let update = format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{content}}}"#);
            let params = format!(r#"{{"sessionId":{session},"update":{update}}}"#);
            let update = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{params}}}\n");
            (update, r#"{"stopReason":"end_turn"}"#)
        }
        _ => return String::new(),
    };
    out.push_str(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"));
    out
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
