//! Sessions of the coding agent in PostgreSQL, shared by several servers.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use attache_agent::{CodingAgent, Config};
//! use attache_postgres::{PostgresStore, Settings};
//!
//! # async fn example(config: Config) -> Result<(), Box<dyn std::error::Error>> {
//! let mut settings = Settings::new("postgres://attache:secret@db.example/attache")?;
//! settings.address = Some("https://one.example".into());
//! // It blocks: not on a runtime's thread.
//! let store = tokio::task::spawn_blocking(|| PostgresStore::connect(settings)).await??;
//! let agent = CodingAgent::with_store(config, Arc::new(store)).await?;
//! // One for each connection: what one has opened, another does not see.
//! agent.for_owner("alice").server().stdio().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # One writer a session
//!
//! Who opens a session takes a lease, which is renewed as long as the session is open, and gets a fencing number, which is
//! one more than that of the writer before. Each record is added by one statement, which the database does only for the
//! newest number and only in its place. So a server that was cut off, stopped or slow may believe what it likes: when
//! another one has taken its session over, it can write nothing more and is told so
//! ([`StoreError::Lost`](attache_agent::store::StoreError::Lost)). Leases end by the clock of the database, the clocks of
//! servers do not matter.
//!
//! A session that another server has is busy, and the error names that server's [`Settings::address`]. That server can be
//! asked for the session ([`Store::ask_to_release`](attache_agent::store::Store::ask_to_release)), and lets go of it unless
//! a turn runs in it. A server that was killed holds its sessions until their lease ends, [`Settings::lease`] at most.
//!
//! # When the database is away
//!
//! Every call is tried again for [`Settings::patience`], then fails by name. What was acknowledged is there. An entry that
//! was being appended when the connection was cut may have been written or not: that is found out by its number, so it is
//! never there twice.
//!
//! # What it does not share
//!
//! The project's files, what `/undo` keeps, and long outputs of tools are on the machine that made them. Servers that share
//! sessions need the same project directories in the same places.
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod database;
mod leases;
mod listener;
mod log;
mod migrate;
mod runtime;
mod settings;
mod store;
mod tls;

pub use listener::Change;
pub use settings::{Settings, SettingsError};
pub use store::PostgresStore;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that a panic elsewhere does not spoil.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
