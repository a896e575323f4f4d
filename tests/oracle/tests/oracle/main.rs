//! The official types as the oracle: whatever they can say, we can, and the other way round.

mod methods;
mod ours;
mod sample;
mod theirs;
