//! Amounts of money.

/// An amount in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    pub cents: i64,
}

impl Money {
    pub fn new(cents: i64) -> Self {
        Money { cents }
    }
}
