//! JSON text in, JSON text out: one pass, borrowed where it can be, no tree in between.

mod error;
mod raw;
mod read;
mod text;
#[cfg(feature = "serde")]
mod transcode;
mod write;

pub(crate) use error::PathSegment;
pub use error::{DecodeError, Reason};
pub use raw::RawJson;
pub(crate) use read::Mark;
pub use read::{Kind, Reader};
pub use write::Writer;

/// How deep arrays and objects may nest. The protocol needs about ten levels; tool inputs are free JSON, and 128 is
/// what the field's parsers allow, so nothing that works elsewhere fails here.
pub const MAX_DEPTH: u16 = 128;

#[cfg(test)]
mod tests;
