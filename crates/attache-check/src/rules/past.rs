//! What the connections before one showed, summed up, so that a record of many connections is read once.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{initialize, walk};
use crate::exchange::Exchange;

/// The connections of a record before the one that is judged.
#[derive(Debug, Default)]
pub struct Past<'e> {
    /// The connections that a session was opened on, oldest first.
    by_session: HashMap<&'e str, Vec<&'e Exchange<'e>>>,
    /// The sessions that were opened or listed.
    pub(super) known: HashSet<&'e str>,
    /// The sessions that were made, each with its directory if it was given.
    pub(super) made: HashMap<&'e str, Option<&'e str>>,
    /// The versions that the agent has answered with, without what no agent can support.
    pub(super) versions: BTreeSet<u64>,
}

impl<'e> Past<'e> {
    /// Takes in a connection that is over.
    pub fn add(&mut self, exchange: &'e Exchange<'e>) {
        for id in exchange.sessions.keys() {
            self.by_session.entry(id).or_default().push(exchange);
        }
        self.known.extend(walk::known_sessions(exchange));
        self.made.extend(walk::made_sessions(exchange).map(|(_, id, cwd)| (id, cwd)));
        self.versions.extend(initialize::supported_in(exchange));
    }

    /// The connections that a session was opened on, oldest first.
    pub(super) fn of_session(&self, id: &str) -> &[&'e Exchange<'e>] {
        self.by_session.get(id).map_or(&[], Vec::as_slice)
    }
}
