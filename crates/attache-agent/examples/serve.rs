//! The coding agent on stdin and stdout, for tests that need it in a process of its own.
//!
//!     serve CONFIG_DIR STATE_DIR MODEL [BASE_URL]

use attache_agent::{CodingAgent, Config, SandboxMode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    attache::process::use_keeper();
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or("serve CONFIG_DIR STATE_DIR MODEL [BASE_URL]");
    let mut config = Config::new(next()?, next()?);
    config.model = Some(next()?);
    config.base_url = next().ok();
    config.sandbox = SandboxMode::Off;
    config.local_servers.clear();
    CodingAgent::new(config).await?.server().stdio().await?;
    Ok(())
}
