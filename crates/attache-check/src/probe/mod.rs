//! Probes: they make a peer do things, so that the rules have something to judge.

pub mod agent;
pub mod client;
mod plain_file;
mod wire;

pub(crate) use wire::{LONGEST_FRAME, MOST_RECORDED};
pub use wire::{Peer, Received, Wire};
