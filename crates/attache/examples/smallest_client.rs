//! The smallest client: starts an agent, sends one prompt, prints the answer.
//!
//!     cargo run --example smallest_client -- gemini --acp
#![allow(clippy::print_stdout, reason = "what a person reads goes there")]

use attache::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let agent = Client::new("smallest-client", "1.0").launch(command).await?;
    let session = agent.session(std::env::temp_dir()).open().await?;
    println!("{}", session.prompt("Who are you?").await?.text().await?);
    agent.shutdown().await;
    Ok(())
}
