//! What a client's machine does for an agent: serve files and terminals, decide what is allowed, confine processes.
//!
//! One implementation for every front end. Nothing here talks to a person or to the wire: a front end asks, shows the
//! answer to its user, and replies to the agent.

pub mod environment;
#[cfg(unix)]
pub mod files;
pub mod mcp;
pub mod permission;
pub mod sandbox;
mod store;
#[cfg(unix)]
pub mod terminals;
pub mod trust;
