//! The official types as the oracle: whatever they can say, we can, and the other way round.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod methods;
mod ours;
mod sample;
mod theirs;
