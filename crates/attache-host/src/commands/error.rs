//! Why a command could not be started.

use std::{fmt, path::PathBuf};

use attache::process::SpawnError;

use crate::files::shown;

/// Why a command could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommandError {
    /// The working directory is not absolute, or has a name that is not UTF-8.
    Directory {
        /// The directory as it was given.
        path: PathBuf,
    },
    /// An environment variable has no name, or a character in it that none can have.
    BadVariable,
    /// The system did not start it.
    Launch(SpawnError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path } if path.is_absolute() => {
                write!(f, "`{}` has a name that is not UTF-8", shown(path))
            }
            Self::Directory { path } => write!(f, "`{}` is not an absolute path", shown(path)),
            Self::BadVariable => f.write_str("an environment variable has a name or value that none can have"),
            Self::Launch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}
