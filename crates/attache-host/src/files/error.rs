//! Why a file could not be read or written: for a person, and for the agent.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use attache::model::error::ErrorObject;

/// Why a file could not be read or written.
///
/// [`Outside`](FileError::Outside) and [`HardLink`](FileError::HardLink) are questions to the user. Paths are as the
/// file system has them, links followed, wherever they could be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The path is not absolute.
    Relative {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path is longer than any that the system takes; too long to be told here.
    TooLong,
    /// The path has a name in it that Windows reads as something else: a device, a stream, another name.
    BadName {
        /// The path.
        path: PathBuf,
    },
    /// The path leads outside of the roots: ask the user.
    Outside {
        /// Where it leads.
        path: PathBuf,
    },
    /// The file has more than one name, so it may be one from outside of the roots: ask the user.
    HardLink {
        /// The file.
        path: PathBuf,
    },
    /// The file may hold secrets, such as `.env` or a key, and was to be read without a question.
    Secret {
        /// The file.
        path: PathBuf,
    },
    /// A link that lies in a repository leads out of it, and a person named the link.
    LeadsOut {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        path: PathBuf,
    },
    /// There is no such file.
    NotFound {
        /// Where it would be.
        path: PathBuf,
    },
    /// It is a directory, a FIFO, a socket or a device, or the path goes through a file.
    NotAFile {
        /// What is no file.
        path: PathBuf,
    },
    /// It had to be a directory: a root, or one to be listed.
    NotADirectory {
        /// What is none.
        path: PathBuf,
    },
    /// The text is not UTF-8.
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// What was asked for is more than a read returns.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes a read returns at most.
        limit: usize,
    },
    /// The lines are more than 4 GiB away from the beginning of the file.
    TooFar {
        /// The file.
        path: PathBuf,
    },
    /// There is something already where something was to be put.
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// The directory has something in it.
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// It is no longer the file that was meant, or has been changed since.
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be moved there, because that is another disk.
    OtherDisk {
        /// Where it was to go.
        path: PathBuf,
    },
    /// The path goes through too many links; most likely they lead in a circle.
    TooManyLinks {
        /// The path.
        path: PathBuf,
    },
    /// The system does not let us.
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// The disk or a quota is full, or the file would be larger than allowed. The old file is untouched.
    NoSpace {
        /// The file.
        path: PathBuf,
    },
    /// The directories on the way kept changing while the file was being opened.
    Changed {
        /// The path.
        path: PathBuf,
    },
    /// The kernel cannot keep paths beneath a directory: it is older than Linux 5.6, or a sandbox forbids `openat2`.
    NoKernelSupport,
    /// The system failed for another reason.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// The answer for the agent. It repeats neither the path nor any content.
    pub fn to_peer(&self) -> ErrorObject {
        match self {
            Self::Relative { .. } => ErrorObject::wrong_params("the path must be absolute"),
            Self::TooLong => ErrorObject::wrong_params("the path is too long"),
            Self::BadName { .. } => ErrorObject::wrong_params("the path names a device, a stream or another file"),
            Self::Outside { .. } => ErrorObject::permission_denied("files outside of the session's directories"),
            Self::HardLink { .. } => ErrorObject::permission_denied("files with more than one hard link"),
            Self::Secret { .. } => ErrorObject::permission_denied("files that may hold secrets"),
            Self::LeadsOut { .. } => ErrorObject::permission_denied("links that lead out of a repository"),
            // Gemini looks for these words to tell a missing file from a failure.
            Self::NotFound { .. } => ErrorObject::not_found("Resource not found: No such file"),
            Self::NotAFile { .. } | Self::NotADirectory { .. } => ErrorObject::wrong_params("not a regular file"),
            Self::NotText { .. } => ErrorObject::wrong_params("the file is not UTF-8 text"),
            Self::TooLarge { limit, .. } => ErrorObject::new(
                ErrorObject::INVALID_PARAMS,
                format!("more than {limit} bytes: read fewer lines at a time with `line` and `limit`"),
            ),
            Self::TooFar { .. } => ErrorObject::wrong_params("the lines are too far from the beginning of the file"),
            Self::Exists { .. } => ErrorObject::wrong_params("there is something already"),
            Self::NotEmpty { .. } => ErrorObject::wrong_params("the directory is not empty"),
            Self::Replaced { .. } => ErrorObject::wrong_params("the file has changed"),
            Self::OtherDisk { .. } => ErrorObject::wrong_params("that is on another disk"),
            Self::TooManyLinks { .. } => ErrorObject::wrong_params("too many symbolic links"),
            Self::Denied { .. } => ErrorObject::permission_denied("the file system"),
            Self::NoSpace { .. } => ErrorObject::internal("no space left for the file; nothing was changed"),
            Self::Changed { .. } => ErrorObject::internal("the path changed while it was being opened"),
            Self::NoKernelSupport => ErrorObject::internal("files cannot be served on this system"),
            Self::Io { source, .. } => ErrorObject::internal(format!("the file system failed: {}", source.kind())),
        }
    }

    /// What the system's error means where the path is already known not to go through links.
    pub(super) fn io(source: io::Error, path: &Path) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { path }
            }
            io::ErrorKind::IsADirectory => Self::NotAFile { path },
            _ => Self::Io { path, source },
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative { path } => write!(f, "`{}` is not an absolute path", shown(path)),
            Self::TooLong => f.write_str("the path is too long"),
            Self::BadName { path } => write!(
                f,
                "`{}` has a name that Windows takes for something else: a device, a stream or a name without its last \
                 dot or space\nhint: use another name",
                shown(path)
            ),
            Self::Outside { path } => write!(
                f,
                "`{}` is outside of the session's directories\nhint: allow it, or add its directory to the session",
                shown(path)
            ),
            Self::HardLink { path } => write!(
                f,
                "`{}` has more than one hard link, so it may be a file from outside of the session's directories\n\
                 hint: allow it, or copy it",
                shown(path)
            ),
            Self::Secret { path } => write!(f, "`{}` may hold secrets", shown(path)),
            Self::LeadsOut { link, path } => write!(
                f,
                "`{}` is a link that leads out of its repository, to `{}`\nhint: name that path itself if you mean it",
                shown(link),
                shown(path)
            ),
            Self::NotFound { path } => write!(f, "there is no file `{}`", shown(path)),
            Self::NotAFile { path } => write!(f, "`{}` is not a regular file", shown(path)),
            Self::NotADirectory { path } => write!(f, "`{}` is not a directory", shown(path)),
            Self::NotText { path } => write!(f, "`{}` is not UTF-8 text", shown(path)),
            Self::TooLarge { path, limit } => write!(
                f,
                "`{}` has more than the {limit} bytes that are read at once\nhint: use `line` and `limit`",
                shown(path)
            ),
            Self::TooFar { path } => {
                write!(f, "the lines are too far from the beginning of `{}`\nhint: split it", shown(path))
            }
            Self::Exists { path } => write!(f, "there is already a `{}`", shown(path)),
            Self::NotEmpty { path } => write!(f, "the directory `{}` is not empty", shown(path)),
            Self::Replaced { path } => write!(f, "`{}` has changed since it was looked at", shown(path)),
            Self::OtherDisk { path } => {
                write!(f, "`{}` is on another disk\nhint: copy it there and delete it here", shown(path))
            }
            Self::TooManyLinks { path } => write!(f, "`{}` goes through too many symbolic links", shown(path)),
            Self::Denied { path } => write!(f, "no permission for `{}`\nhint: check its mode and owner", shown(path)),
            Self::NoSpace { path } => {
                write!(f, "no space left for `{}`; it is as it was\nhint: free some space or quota", shown(path))
            }
            Self::Changed { path } => write!(f, "`{}` kept changing while it was being opened", shown(path)),
            Self::NoKernelSupport => f.write_str(
                "the kernel has no `openat2`, without which files cannot be served safely\n\
                 hint: use Linux 5.6 or newer, and a sandbox that allows it",
            ),
            Self::Io { path, source } => write!(f, "`{}`: {source}", shown(path)),
        }
    }
}

impl std::error::Error for FileError {}

/// A path for a terminal or a dialog: an agent chose it, so it may contain escape sequences or turn text around.
pub(crate) fn shown(path: &Path) -> String {
    crate::visible::visible(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_harm_a_terminal() {
        let error = FileError::NotFound { path: "/a\u{1b}[2J\u{202e}é".into() };
        assert_eq!(error.to_string(), r"there is no file `/a\x1b[2J\u{202e}é`");
    }
}
