//! The coding agent on stdin and stdout, with its sessions in PostgreSQL.
//!
//!     serve URL ADDRESS OWNER CONFIG_DIR STATE_DIR

use std::sync::Arc;
use std::time::Duration;

use attache_agent::{CodingAgent, Config, SandboxMode};
use attache_postgres::{PostgresStore, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    attache::process::use_keeper();
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or("serve URL ADDRESS OWNER CONFIG_DIR STATE_DIR");
    let mut settings = Settings::new(&next()?)?;
    settings.address = Some(next()?);
    // As short as tests want it. Yours should be longer.
    settings.lease = Duration::from_millis(1500);
    settings.statement_timeout = Duration::from_secs(1);
    settings.connect_timeout = Duration::from_secs(1);
    let owner = next()?;
    let mut config = Config::new(next()?, next()?);
    config.model = Some("offline".into());
    config.sandbox = SandboxMode::Off;
    config.local_servers.clear();
    let store = tokio::task::spawn_blocking(|| PostgresStore::connect(settings)).await??;
    let agent = CodingAgent::with_store(config, Arc::new(store)).await?;
    agent.for_owner(&owner).server().stdio().await?;
    Ok(())
}
