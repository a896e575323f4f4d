//! Why a session cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use attache_host::permission::visible;

/// Why a session cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("no session `{0}`")]
    NotFound(String),
    /// There is such a session already.
    #[error("there is a session `{0}` already")]
    Exists(String),
    /// The session is open for writing, here or in another process.
    #[error("the session `{id}` is open {}\nhint: close it there, or fork it", place(holder.as_deref()))]
    Busy {
        /// The session.
        id: String,
        /// Where clients reach the server that has it, if that is known.
        holder: Option<String>,
    },
    /// Another writer has taken the session over, because this one was not heard of for too long, or was asked to let go
    /// of it. Nothing more can be written here.
    #[error("the session `{id}` was taken over {}\nhint: load it again", place(holder.as_deref()))]
    Lost {
        /// The session.
        id: String,
        /// Where clients reach the server that has it, if that is known.
        holder: Option<String>,
    },
    /// The place where sessions are kept did not answer for a time. What was acknowledged is there.
    #[error("sessions cannot be reached: {problem}")]
    Unavailable {
        /// What is wrong, and how long was waited.
        problem: String,
    },
    /// The database says no.
    #[error("the database refused: {problem}")]
    Database {
        /// What it says.
        problem: String,
    },
    /// No session can have this id.
    #[error("`{0}` is not an id of a session\nhint: letters, digits, `-` and `_`, at most 128 of them")]
    WrongId(String),
    /// The place in a list is none that we gave out.
    #[error("unknown or expired cursor\nhint: begin the list anew")]
    WrongCursor,
    /// Something in the log is not as it was written. Nothing was changed.
    #[error(
        "`{log}` is damaged at {unit} {offset}: {problem}\n\
         hint: fork the session to go on with what stands before the damage, or delete it"
    )]
    Damaged {
        /// The log.
        log: String,
        /// What is counted in it: bytes or records.
        unit: &'static str,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// An entry is larger than an entry may be.
    #[error("an entry of {length} bytes is too large for `{log}`, which takes up to 64 MiB")]
    TooLarge {
        /// The log.
        log: String,
        /// The length of the entry.
        length: u64,
    },
    /// An entry would not come back from the log as what it is. Nothing was written.
    #[error("an entry cannot be kept in `{log}`: {problem}")]
    Unkeepable {
        /// The log.
        log: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The disk or a quota is full. The log is as it was before.
    #[error("no space left for `{log}`; it is as it was\nhint: free some space or quota")]
    NoSpace {
        /// The log.
        log: String,
    },
    /// The system says no.
    #[error("cannot use `{}`: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreError::NoSpace { log: path.display().to_string() }
            }
            _ => StoreError::Io { path: path.to_path_buf(), error },
        }
    }

    pub(super) fn damaged(path: &Path, offset: u64, problem: String) -> Self {
        StoreError::Damaged { log: path.display().to_string(), unit: "byte", offset, problem }
    }

    /// Ids come from peers: what is repeated of them is short and visible.
    pub(super) fn wrong_id(id: &str) -> Self {
        const SHOWN: usize = 40;
        let mut shown: String = id.chars().take(SHOWN).collect();
        if shown.len() < id.len() {
            shown.push('…');
        }
        StoreError::WrongId(visible(&shown))
    }
}

/// Where a session is.
fn place(holder: Option<&str>) -> String {
    holder.map_or_else(|| "in another place".into(), |holder| format!("at `{holder}`"))
}
