//! What a person decides about is shown for what it is: see [`crate::visible`].

pub(super) use crate::visible::is_plain;
pub use crate::visible::{visible, visible_lines};
