//! The parts of the protocol that may still change, and then do so in a minor version of this crate.

mod auth;
mod mcp;
mod plan;
mod provider;
mod proxy;
mod session;
mod subagent;

pub use auth::*;
pub use mcp::*;
pub use plan::*;
pub use provider::*;
pub use proxy::*;
pub use session::*;
pub use subagent::*;
