//! What a connection may take: every bound in one place, with the reason for its number.

use std::time::Duration;

/// The bounds of one connection. Nothing grows past them; what would is made to wait, or refused by name.
///
/// ```
/// use attache::Limits;
///
/// let limits = Limits { message: 1024 * 1024, ..Limits::default() };
/// assert!(limits.outbox < limits.inbox);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest message that is read, in bytes. Default 64 MiB: a prompt with a 40 MiB file in base64 still passes,
    /// and the largest that other implementations accept is 32 MiB.
    pub message: usize,
    /// Bytes that wait to be written before senders have to wait. Default 256 KiB: four pipes full, enough to write in
    /// large pieces, little enough to notice a slow reader soon.
    pub outbox: usize,
    /// Bytes that wait to be taken by our own code before reading pauses. Default 8 MiB: a burst of some ten thousand
    /// updates while an editor paints.
    pub inbox: usize,
    /// How far `inbox` may be overdrawn while somebody waits for an answer that stands behind what is unread.
    /// Default 32 MiB. Past it that wait fails with [`Error::InboxFull`](crate::Error::InboxFull) instead of hanging.
    pub overdraft: usize,
    /// Requests of the peer that may be open at once. Default 1,024: five times the most that a real peer was seen to
    /// have, and each costs a few hundred bytes. More are refused.
    pub requests: usize,
    /// Sessions that a client may have open at an agent. Default 4,096: four times what a busy host was seen to need, and
    /// each costs a task and a few KiB. More are refused.
    pub sessions: usize,
    /// Messages in a row that may be no messages at all. Default 1,000: a long banner passes, a wrong program does not.
    pub junk: usize,
    /// How long a turn may take to end after it was cancelled. Default 5 seconds: a tool gets time to clean up, a
    /// person does not wait for one that hangs.
    pub cancel_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message: 64 * 1024 * 1024,
            outbox: 256 * 1024,
            inbox: 8 * 1024 * 1024,
            overdraft: 32 * 1024 * 1024,
            requests: 1024,
            sessions: 4096,
            junk: 1000,
            cancel_grace: Duration::from_secs(5),
        }
    }
}
