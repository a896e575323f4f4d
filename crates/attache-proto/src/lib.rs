//! The Agent Client Protocol as a value: JSON, framing, JSON-RPC, one model and three dialects.

mod codec;
mod dialect;
pub mod json;
pub mod method;
pub mod model;

pub use codec::{Decode, Encode};
pub use dialect::Dialect;
