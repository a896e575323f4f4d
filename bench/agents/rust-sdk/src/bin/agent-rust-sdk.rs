//! As the example of the SDK shows: a runtime of many threads and its own standard streams.

use agent_client_protocol::{Result, Stdio};

#[tokio::main]
async fn main() -> Result<()> {
    agent_rust_sdk::serve(Stdio::new()).await
}
