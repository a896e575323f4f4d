//! `attache chat` on a terminal: what a person types, and what stands on the screen then.
// On Unix, because they need terminals of Unix.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "tests")]

mod driver;
mod haste;
mod hostile;
mod permission;
mod scenes;
mod sessions;
mod shapes;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod turns;
mod writing;
