//! Sessions of the coding agent: kept, taken up again, shared, cancelled, and ended.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/oauth.rs"]
mod oauth;

mod auth;
mod busy;
mod cancel;
mod cancel_work;
mod capabilities;
mod carried;
mod full;
mod help;
mod inside;
mod kill;
mod list;
mod load;
mod login;
mod mcp;
mod models;
mod owners;
mod served;
mod site;
mod slash;
mod stuck;
mod undo;
mod usage;
