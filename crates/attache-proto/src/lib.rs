//! The Agent Client Protocol as a value: JSON, framing, JSON-RPC, one model and three dialects.

pub mod bridge;
mod codec;
pub mod dialect;
pub mod frame;
pub mod json;
pub mod method;
pub mod model;
pub mod rpc;

pub use codec::{Decode, Encode};
pub use dialect::Dialect;
