//! How a process ended.

use std::fmt;

/// How a process ended: with a code, or by a signal.
///
/// Not to be confused with [`model::terminal::ExitStatus`](crate::model::terminal::ExitStatus), which the protocol has for
/// terminals.
///
/// ```
/// use attache::ExitStatus;
///
/// assert_eq!(ExitStatus { code: Some(3), signal: None }.to_string(), "exit code 3");
/// assert_eq!(ExitStatus { code: None, signal: Some(9) }.to_string(), "killed by signal 9 (SIGKILL)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExitStatus {
    /// The code it ended with by itself.
    pub code: Option<i32>,
    /// The signal that ended it. Always `None` on Windows.
    pub signal: Option<i32>,
}

impl ExitStatus {
    /// The process is gone or out of reach, and nobody can tell how it ended.
    #[cfg(feature = "process")]
    pub(crate) const UNKNOWN: Self = Self { code: None, signal: None };

    /// Whether it ended with code 0.
    pub fn success(self) -> bool {
        self.code == Some(0)
    }

    /// The name of the signal that ended it, if it is one of the common ones.
    ///
    /// ```
    /// use attache::ExitStatus;
    ///
    /// assert_eq!(ExitStatus { code: None, signal: Some(9) }.signal_name(), Some("SIGKILL"));
    /// ```
    pub fn signal_name(self) -> Option<&'static str> {
        self.signal.and_then(signal_name)
    }
}

impl From<std::process::ExitStatus> for ExitStatus {
    fn from(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            (None, None) => f.write_str("unknown exit status"),
        }
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(not(unix))]
fn signal_name(signal: i32) -> Option<&'static str> {
    // The same text everywhere for the one that the documentation shows.
    (signal == 9).then_some("SIGKILL")
}
