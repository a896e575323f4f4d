//! The transcript through what the crate offers: whole screens, movement, size, and texts that mean harm.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod motion;
mod random;
mod scale;
mod screens;
mod support;
