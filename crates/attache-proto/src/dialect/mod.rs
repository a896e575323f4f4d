//! The three ways to say the model on the wire.

mod speaker;

pub use speaker::Speaker;

/// How a connection speaks: fixed by `initialize`, and the same for both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Protocol version 1.
    V1,
    /// Protocol version 2 as its draft of June 2026 had it: the prompt is answered at the end of the turn.
    V2Draft,
    /// Protocol version 2 as published today: the end of a turn is a `state_update`.
    V2,
}

impl Dialect {
    /// The protocol version of the dialect, as `initialize` names it.
    pub fn version(self) -> u16 {
        match self {
            Dialect::V1 => 1,
            Dialect::V2Draft | Dialect::V2 => 2,
        }
    }

    /// Whether a prompt is answered at the end of its turn. Since version 2 it is answered when it was taken in.
    pub fn answers_at_end(self) -> bool {
        !matches!(self, Dialect::V2)
    }
}

#[cfg(test)]
mod tests;
