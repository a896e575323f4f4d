//! Peers that do nothing wrong and can do everything: what defects are put into.

mod agent;
mod client;
pub(crate) mod play;
pub(crate) mod probed;
mod raw;
mod script;
mod session;
mod store;
mod tap;
mod tools;
