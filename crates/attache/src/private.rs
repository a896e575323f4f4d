//! Files and directories that only the current user may read: stores, keys, records, traces.
//!
//! On Unix they have the modes 0600 and 0700. On Windows they have an access list that names the current user and nobody
//! else, and takes nothing over from the directory above. What is there already keeps what it has: see [`is_private`] and
//! [`protect`].
//!
//! As root on Unix, administrators and the system on Windows can read them all the same.
//!
//! ```
//! use attache::private;
//!
//! # let path = std::env::temp_dir().join(format!("attache-doc-private-{}", std::process::id()));
//! private::create_directory(&path)?;
//! let file = private::create_new(&path.join("key"))?;
//! assert!(private::is_private(&path.join("key"))? && private::is_private(&path)?);
//! # drop(file);
//! # std::fs::remove_dir_all(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::{fs::File, io, path::Path};

#[cfg_attr(unix, path = "private/sys_unix.rs")]
#[cfg_attr(windows, path = "private/sys_windows.rs")]
#[cfg_attr(not(any(unix, windows)), path = "private/sys_other.rs")]
mod sys;

/// Creates a directory and those above it that are missing, for the current user only. One that is there is left as it is.
pub fn create_directory(path: &Path) -> io::Result<()> {
    sys::create_directory(path)
}

/// Creates a file for the current user only, to write to. It is an error if there is one.
pub fn create_new(path: &Path) -> io::Result<File> {
    sys::open(path, Opening::New)
}

/// Opens a file to read and to write, as it is, and creates it for the current user only if there is none.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    sys::open(path, Opening::Keep)
}

/// Opens an empty file to read and to write: one that is there loses its content, and a new one is for the current user
/// only.
pub fn create(path: &Path) -> io::Result<File> {
    let file = sys::open(path, Opening::Keep)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file to append to, and creates it for the current user only if there is none.
pub fn append(path: &Path) -> io::Result<File> {
    sys::open(path, Opening::Append)
}

/// Opens a file to read and to append to, and creates it for the current user only if there is none.
pub fn read_and_append(path: &Path) -> io::Result<File> {
    sys::open(path, Opening::ReadAndAppend)
}

/// Whether nobody but the current user, and whoever may do anything on this machine, has a right to a file or directory.
pub fn is_private(path: &Path) -> io::Result<bool> {
    sys::is_private(path)
}

/// Takes everybody else's rights to a file or directory.
pub fn protect(path: &Path) -> io::Result<()> {
    sys::protect(path)
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    New,
    Keep,
    Append,
    ReadAndAppend,
}

#[cfg(test)]
mod tests;
