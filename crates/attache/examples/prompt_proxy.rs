//! A proxy that changes prompts: sits between an editor and any agent, and adds a sentence to what the person says.
//!
//! Configure it in the editor as the agent, with the real agent behind it:
//!
//!     prompt_proxy gemini --acp
//!
//! Everything else passes as it came, byte for byte.

use attache::process::Command;
use attache::proto::json::{RawJson, Reader, Writer};
use attache::relay::{Direction, Relay, RelayMessage, Verdict};
use attache::{Dialect, model::content::ContentBlock, model::prompt::PromptRequest};

const ADDED: &str = "Answer in one sentence.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        return Err(std::io::Error::other("usage: prompt_proxy AGENT [ARGUMENT …]"));
    }
    let (_agent, stdin, stdout) = Command::from(command).spawn().map_err(std::io::Error::other)?;
    let relay = Relay::new(tokio::io::stdin(), tokio::io::stdout(), stdout, stdin);
    relay.on_message(add_to_prompts).run().await?;
    Ok(())
}

fn add_to_prompts(direction: Direction, message: &RelayMessage<'_>) -> Verdict {
    if direction != Direction::ClientToAgent || message.method() != Some("session/prompt") {
        return Verdict::Pass;
    }
    let changed = message.params().and_then(|params| changed_message(message, params));
    changed.map_or(Verdict::Pass, Verdict::Change)
}

/// The same prompt with one more block of text. The words of a prompt are the same in all versions.
fn changed_message(message: &RelayMessage<'_>, params: &str) -> Option<RawJson> {
    let mut request: PromptRequest = Reader::new(params, Dialect::V2).decode().ok()?;
    request.prompt.push(ContentBlock::text(ADDED));
    let id = message.id()?;
    let mut line = Vec::new();
    let mut writer = Writer::new(&mut line, Dialect::V2);
    writer.raw(r#"{"jsonrpc":"2.0","id":"#);
    writer.value(id);
    writer.raw(r#","method":"session/prompt","params":"#);
    writer.value(&request);
    writer.raw("}");
    RawJson::new(std::str::from_utf8(&line).ok()?).ok()
}
