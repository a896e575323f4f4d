//! Names that nobody else has.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Sixteen hexadecimal digits that differ from process to process and from call to call.
pub(crate) fn hex() -> String {
    // Each `RandomState` is keyed from the system's randomness; names need no more than that.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
