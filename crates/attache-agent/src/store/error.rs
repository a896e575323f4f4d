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
    #[error("the session `{0}` is open in another place\nhint: close it there, or fork it")]
    Busy(String),
    /// No session can have this id.
    #[error("`{0}` is not an id of a session\nhint: letters, digits, `-` and `_`, at most 128 of them")]
    WrongId(String),
    /// The place in a list is none that we gave out.
    #[error("unknown or expired cursor\nhint: begin the list anew")]
    WrongCursor,
    /// Something in the log is not as it was written. Nothing was changed.
    #[error(
        "`{}` is damaged at byte {offset}: {problem}\n\
         hint: fork the session to go on with what stands before the damage, or delete it", path.display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// An entry is larger than an entry may be.
    #[error("an entry of {length} bytes is too large for `{}`, which takes up to 64 MiB", path.display())]
    TooLarge {
        /// The log.
        path: PathBuf,
        /// The length of the entry.
        length: u64,
    },
    /// An entry would not come back from the log as what it is. Nothing was written.
    #[error("an entry cannot be kept in `{}`: {problem}", path.display())]
    Unkeepable {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The disk or a quota is full. The log is as it was before.
    #[error("no space left for `{}`; it is as it was\nhint: free some space or quota", path.display())]
    NoSpace {
        /// The log.
        path: PathBuf,
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
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreError::NoSpace { path }
            }
            _ => StoreError::Io { path, error },
        }
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
