//! What was recorded of a connection: what each side sent, and what happened beside it, in order.
//!
//! A record is read from a trace (`attache trace`, `--trace` of other commands; [`Record::from_trace`]) or from a transcript
//! ([`Record::from_transcript`]), and made by the probes. All positions in it ([`Entry`]) are indices into [`Record::entries`].

mod time;
mod trace;
mod transcript;

use std::time::{Duration, SystemTime};

pub use attache_proto::rpc::Side;
pub use trace::TraceError;
pub(crate) use trace::{Secrets, append_line};
pub use transcript::TranscriptError;

/// What was recorded, in the order in which it happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// When it began, if that is known.
    pub started: Option<SystemTime>,
    /// What happened.
    pub entries: Vec<Entry>,
}

/// One thing that happened, and when: counted from the beginning of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// How long after the beginning of the record.
    pub at: Duration,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A line that one side sent: a message, or whatever else it wrote where messages belong.
    Frame {
        /// Who sent it.
        from: Side,
        /// The line as it was sent, without its end.
        text: String,
    },
    /// Bytes that were sent and not kept: they are not UTF-8, or too many.
    Junk {
        /// Who sent them.
        from: Side,
        /// How many there were.
        bytes: usize,
    },
    /// A line that the agent wrote to stderr.
    Stderr {
        /// The line.
        text: String,
    },
    /// One side closed its end of the connection.
    Closed {
        /// Who.
        from: Side,
    },
    /// The process of the side that is checked has ended, with this exit code; a signal has none.
    Exited {
        /// The exit code.
        code: Option<i32>,
    },
    /// Whoever recorded this waited for something that did not come.
    Waited {
        /// How long.
        time: Duration,
    },
    /// What follows is a new connection, to a new process where there are processes.
    Restarted,
    /// What follows goes on in the middle of a conversation: the recording was rotated. What came before is elsewhere, if this is the
    /// first entry.
    Continued,
    /// What whoever recorded this is about to do.
    Note {
        /// In words.
        text: String,
    },
}

impl Record {
    /// Adds what happened now.
    pub fn push(&mut self, at: Duration, event: Event) {
        self.entries.push(Entry { at, event });
    }

    /// The records of its connections, each with the position at which it begins.
    pub fn connections(&self) -> impl Iterator<Item = (usize, &[Entry])> {
        let mut start = 0;
        self.entries.split(|entry| entry.event == Event::Restarted).map(move |entries| {
            let begin = start;
            start += entries.len() + 1;
            (begin, entries)
        })
    }
}
