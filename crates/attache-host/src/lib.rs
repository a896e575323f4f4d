//! One machine's files, commands, permission rules, sandbox and trust, as plain functions: for clients and for agents.
//!
//! One implementation for every front end. Nothing here talks to a person or to the wire: a front end asks, shows the
//! answer to its user, and replies to its peer. What a protocol has to do with it is in two places: [`terminals`] gives
//! commands the names that an agent has for them, and [`permission::Subject::from_request`] reads what an agent that is
//! not ours asks for.
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod commands;
pub mod environment;
pub mod files;
pub mod mcp;
pub mod own_files;
pub mod paths;
pub mod permission;
pub mod sandbox;
mod secrets;
mod store;
pub mod terminals;
pub mod trust;
pub mod visible;

pub use attache::private;
