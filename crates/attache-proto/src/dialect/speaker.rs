//! What an agent has to say, put into the words of a dialect.

use crate::Dialect;
use crate::model::{ClientCapabilities, SessionUpdate};

/// Turns updates into what a dialect can say.
#[derive(Debug)]
pub struct Speaker {
    dialect: Dialect,
}

impl Speaker {
    /// A speaker for one session.
    pub fn new(dialect: Dialect, _client: &ClientCapabilities) -> Self {
        Speaker { dialect }
    }

    /// Says an update; returns what could not be said.
    pub fn say(&mut self, update: &SessionUpdate, emit: &mut dyn FnMut(&SessionUpdate)) -> Vec<&'static str> {
        let _ = self.dialect;
        emit(update);
        Vec::new()
    }
}
