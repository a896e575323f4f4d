//! The agent of the benchmark on stdin and stdout.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), attache::Error> {
    agent_attache::server().stdio().await
}
