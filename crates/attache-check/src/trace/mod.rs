//! Recording what goes between a client and an agent, without changing a byte of it.

mod canonical;
mod diff;
mod export;
mod pass;
mod recorder;
mod replay;

pub(crate) use canonical::label_of;
pub use canonical::{CanonicalMessage, canonical};
pub use diff::{Difference, diff};
pub use export::export;
pub use pass::{Passed, pass};
pub use recorder::{Recorder, Recording};
pub use replay::{GivenUp, Replay, Replayed, replay};
