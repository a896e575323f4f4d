//! The protocol's types: one set for all versions, with the meaning of version 2.

mod base;
mod content;

pub use base::*;
pub use content::*;
