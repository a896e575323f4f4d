//! What must hold for any input. A target is a function of bytes that panics when it does not hold.
//!
//! `fuzz/` runs the targets with inputs that a fuzzer makes up. `tests/fixed_inputs.rs` runs them with random bytes from
//! fixed seeds, and with the inputs that once failed (`found/<target>/`). To add a target: a module with a function, a row
//! in [`TARGETS`], and a file in `fuzz/fuzz_targets/` with its name in `fuzz/Cargo.toml`.

#![allow(clippy::unwrap_used, reason = "a target fails by panicking")]

mod decoding;
mod frames;
mod input;
mod json;
mod lines;
mod message;
mod patches;
#[cfg(unix)]
mod paths;
mod peer;
mod rules;
mod translator;
mod view;
mod visible;

pub use attache_testkit::conversation;
pub use decoding::decoding;
pub use frames::frames;
pub use json::json;
pub use lines::lines;
pub use patches::patches;
#[cfg(unix)]
pub use paths::paths;
pub use peer::peer;
pub use rules::rules;
pub use translator::translator;
pub use view::view;
pub use visible::visible_text;

/// A function that panics when something does not hold for these bytes.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("frames", frames),
    ("json", json),
    ("decoding", decoding),
    ("peer", peer),
    ("view", view),
    ("translator", translator),
    ("patches", patches),
    ("conversation", conversation),
    ("lines", lines),
    ("rules", rules),
    #[cfg(unix)]
    ("paths", paths),
    ("visible_text", visible_text),
];
