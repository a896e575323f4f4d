//! How the agent that probes a client behaves whatever the scenario: which dialect, and how long it waits for what.

use std::path::PathBuf;
use std::time::Duration;

use attache_proto::Dialect;

/// How the agent that probes a client behaves in all scenarios.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one dialect to speak; without it, the one that the client asks for.
    pub dialect: Option<Dialect>,
    /// How long a client may take to answer what no person has to decide.
    pub patience: Duration,
    /// How long a client may take to answer what a person may have to decide.
    pub person: Duration,
    /// How long a scenario that is there to be cancelled waits for that.
    pub cancel: Duration,
    /// How long the client may say nothing between two turns; without it, for ever.
    pub silence: Option<Duration>,
    /// How long the whole connection may last; without it, for ever.
    pub limit: Option<Duration>,
    /// The directory for the record: a file a connection, written as things happen, because clients may kill their agents.
    pub records: Option<PathBuf>,
}

impl Options {
    /// For an editor with a person in front of it.
    pub fn attended() -> Self {
        let minute = Duration::from_secs(60);
        Options { person: 10 * minute, cancel: minute, silence: None, limit: None, ..Options::unattended() }
    }

    /// For a client without a person.
    pub fn unattended() -> Self {
        let second = Duration::from_secs(1);
        Options {
            dialect: None,
            patience: 5 * second,
            person: 5 * second,
            cancel: 2 * second,
            silence: Some(20 * second),
            limit: Some(50 * second),
            records: None,
        }
    }
}
