//! The smallest agent: says what it is told. Start it from any ACP client.

use attache::{Error, Prompt, Stop, Turn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let echo = attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    });
    attache::serve(echo).stdio().await
}
