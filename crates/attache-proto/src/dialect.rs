//! The three ways to say the model on the wire.

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

    /// Whether several messages may be sent as one.
    pub fn has_batches(self) -> bool {
        matches!(self, Dialect::V2Draft)
    }

    /// Whether a request must not have the id null.
    pub fn forbids_null_ids(self) -> bool {
        matches!(self, Dialect::V2)
    }

    /// Whether clients show terminals of the agent's own.
    pub fn shows_terminals(self) -> bool {
        matches!(self, Dialect::V2)
    }

    /// Whether the slash commands of a session are named when it is opened. Elsewhere an update names them.
    pub fn opens_with_commands(self) -> bool {
        matches!(self, Dialect::V2)
    }

    /// Whether a prompt is answered at the end of its turn. Since version 2 it is answered when it was taken in.
    pub fn answers_at_end(self) -> bool {
        !matches!(self, Dialect::V2)
    }
}

/// The short name: `1`, `2-draft` or `2`.
impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dialect::V1 => "1",
            Dialect::V2Draft => "2-draft",
            Dialect::V2 => "2",
        })
    }
}
