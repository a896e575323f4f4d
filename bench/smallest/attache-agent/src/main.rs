//! The smallest agent: repeats what it is told.

use attache::{Prompt, Stop, Turn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), attache::Error> {
    attache::serve(attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    }))
    .stdio()
    .await
}
