//! A proxy that changes prompts: sits between an editor and any agent, and adds a sentence to what the person says.
//!
//! Configure it in the editor as the agent, with the real agent behind it:
//!
//!     prompt_proxy gemini --acp
//!
//! Everything else passes as it came, byte for byte.

use attache::model::{RawJson, content::ContentBlock, prompt::PromptRequest};
use attache::process::{Command, Stderr};
use attache::relay::{Direction, Relay, RelayMessage, Verdict};

const ADDED: &str = "Answer in one sentence.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        return Err("usage: prompt_proxy AGENT [ARGUMENT …]".into());
    }
    // What the agent prints to stderr is for whoever started the proxy.
    let command = Command::from(command).stderr(Stderr::Inherit);
    let (_agent, stdin, stdout) = command.spawn()?;
    Relay::stdio(stdout, stdin)?.on_message(add_to_prompts).run().await?;
    Ok(())
}

fn add_to_prompts(direction: Direction, message: &RelayMessage<'_>) -> Verdict {
    if direction != Direction::ClientToAgent || message.method() != Some("session/prompt") {
        return Verdict::Pass;
    }
    let Some(mut request) = message.params().and_then(read) else { return Verdict::Pass };
    request.prompt.push(ContentBlock::text(ADDED));
    message.with_params(&RawJson::from_model(&request))
}

/// The words of a prompt are the same in all versions.
fn read(params: &str) -> Option<PromptRequest> {
    RawJson::new(params).ok()?.to_model().ok()
}
