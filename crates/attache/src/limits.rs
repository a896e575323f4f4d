//! What a connection may take: every bound in one place, with the reason for its number.

use std::time::Duration;

macro_rules! limits {
    ($( $(#[$doc:meta])* $name:ident: $type:ty = $default:expr, )*) => {
        /// The bounds of one connection. Nothing grows past them; what would is made to wait, or refused by name.
        ///
        /// With the defaults, a peer can make us hold 64 MiB at most, beside the one message that is being read and what it
        /// opened each session with: [`unread`](Self#structfield.unread) and
        /// [`open_requests`](Self#structfield.open_requests) together. A message counts by its length and, if it is an
        /// update, by the lists that are made of it; one that consists of very small parts may take a few times that.
        ///
        /// ```
        /// use attache::Limits;
        ///
        /// let limits = Limits::default().message(1024 * 1024);
        /// assert!(limits.outbox < limits.session);
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $( $(#[$doc])* pub $name: $type, )*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $( $name: $default, )* }
            }
        }

        impl Limits {
            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )*
        }
    };
}

const MIB: usize = 1024 * 1024;

limits! {
    /// The longest message that is read, in bytes. Default 64 MiB: a prompt with a 40 MiB file in base64 still passes,
    /// and the largest that other implementations accept is 32 MiB.
    message: usize = 64 * MIB,
    /// Bytes that wait to be written before senders have to wait. Default 256 KiB: four pipes full, enough to write in
    /// large pieces, little enough to notice a slow reader soon.
    outbox: usize = MIB / 4,
    /// The most bytes that one session may hold unread before reading pauses, as long as nobody else waits for anything.
    /// Default 8 MiB: a burst of some ten thousand updates while an editor paints.
    session: usize = 8 * MIB,
    /// How far a session may go past that while another session or a call waits. Default 16 MiB. Past it the unread
    /// session fails with [`Error::SessionOverflow`](crate::Error::SessionOverflow), not those who wait.
    overdraft: usize = 16 * MIB,
    /// The most bytes that all sessions together may hold unread. Default 48 MiB. Past it reading pauses, or, while
    /// somebody waits, the session that holds the most fails.
    unread: usize = 48 * MIB,
    /// The most bytes of requests of the peer that may be open at once; a single one may be larger. Default 16 MiB. More
    /// are refused.
    open_requests: usize = 16 * MIB,
    /// Requests of the peer that may be open at once. Default 1,024: five times the most that a real peer was seen to
    /// have, and each costs a few hundred bytes. More are refused.
    requests: usize = 1024,
    /// Requests of the peer that our own code may have in hand at once, of those that are answered with content: files,
    /// output, extensions, lists. Default 32. More wait, so that what they are answered with is not all in memory at once.
    in_hand: usize = 32,
    /// Sessions that a client may have open at an agent. Default 4,096: four times what a busy host was seen to need, and
    /// each costs a task and a few KiB. More are refused.
    sessions: usize = 4096,
    /// Messages in a row that may be no messages at all before the first real one. Default 1,000: a long banner passes, a
    /// wrong program does not.
    junk: usize = 1000,
    /// How long a turn may take to end after it was cancelled. Default 5 seconds: a tool gets time to clean up, a
    /// person does not wait for one that hangs.
    cancel_grace: Duration = Duration::from_secs(5),
    /// How long a request of ours may wait for its answer. Default: as long as it takes.
    request_timeout: Option<Duration> = None,
}
