//! The Agent Client Protocol as a value: JSON, framing, JSON-RPC, one model and three dialects.

#[macro_use]
mod codec;
mod dialect;
pub mod json;
pub mod model;

pub use codec::{Decode, Encode};
pub use dialect::Dialect;
