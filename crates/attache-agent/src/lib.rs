//! A coding agent of the Agent Client Protocol: turn loop, models, tools, MCP and session store.
//!
//! It works in a person's project through tools, asks before what no rule allows, and keeps its sessions. Any client can
//! start it; the command `attache agent` is no more than this, where [`use_keeper`](attache::process::use_keeper) has
//! what the agent started end with it in any case:
//!
//! ```no_run
//! use attache_agent::{CodingAgent, Config};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! attache::process::use_keeper();
//! let config = Config::load("/home/me/.config/attache", "/home/me/.local/state/attache")?;
//! CodingAgent::new(config).await?.server().stdio().await?;
//! # Ok(())
//! # }
//! ```
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod agent;
mod attachments;
mod checkpoint;
mod config;
mod conversation;
pub mod cut;
mod gate;
mod hooks;
mod keys;
pub mod mcp;
pub mod model;
mod model_list;
mod project;
mod providers;
mod replay;
mod session;
mod session_files;
mod session_log;
mod settings;
mod skills;
mod slash;
pub mod store;
mod system_prompt;
mod tokens;
mod toolbox;
pub mod tools;
mod turn;
mod watch;
pub mod workspace;

pub use agent::{CodingAgent, StartError, delete_session};
pub use config::{Config, ConfigError, ModelFacts, PriceFacts};
pub use hooks::{Hook, HookEvent};
pub use keys::{KeyError, Keys};
pub use model::metered::Budget;
pub use model_list::{Choice, Lists, ModelList};
pub use providers::OwnProvider;
pub use session::{CodingSession, LIMIT};
pub use settings::Mode;
pub use tools::commands::SandboxMode;
pub use turn::{Limits, NOT_DONE};

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use attache::private;

/// A lock that a panic elsewhere does not spoil.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is there to be locked, so that only one process at a time changes another one.
fn open_lock(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    private::create_directory(path.parent().unwrap_or(std::path::Path::new("/")))?;
    private::open_or_create(path)
}

/// Runs work on one of the threads for work that blocks. In a box, so that the compiler makes one kind of task of them all:
/// a hundred kinds were a fifth of the code of this crate.
async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let work: Box<dyn FnOnce() -> Box<dyn std::any::Any + Send> + Send> = Box::new(|| Box::new(work()));
    let done = tokio::task::spawn_blocking(work).await?;
    Ok(*done.downcast().expect("the work returns what it was asked for"))
}

/// Does work that blocks, and not on the runtime's thread: a disk that is stuck must not keep another session from being
/// cancelled. The work goes on if nobody waits for it.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// A word that no other process has had, for ids. No secret.
fn random_word() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
