//! The smallest client: starts an agent, sends one prompt, prints the answer.
//!
//!     cargo run --example smallest_client                    (starts the smallest agent, echo_agent)
//!     cargo run --example smallest_client -- gemini --acp    (starts any other)
#![allow(clippy::print_stdout, reason = "what a person reads goes there")]

use attache::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        command = ["cargo", "run", "--quiet", "--example", "echo_agent"].map(String::from).to_vec();
    }
    let agent = Client::new("smallest-client", "1.0").launch(command).await?;
    let session = agent.session(std::env::temp_dir()).open().await?;
    println!("{}", session.prompt("Hello, agent. Please repeat this.").await?.text().await?);
    agent.shutdown().await;
    Ok(())
}
