//! Files of our own: readable by their owner alone, and written by one process at a time.
//!
//! On Unix that is their mode. On Windows it is an access list of their own, which takes nothing from the directories above:
//! the person and the system, nobody else.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

#[cfg(unix)]
#[path = "private/unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "private/windows.rs"]
mod sys;

/// Opens a file. If that makes it, nobody but its owner can read it.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("keys");
/// use attache_host::private;
///
/// let file = private::open(std::fs::OpenOptions::new().write(true).create_new(true), &path)?;
/// assert!(private::is_private(&path)?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    sys::open(options, path)
}

/// Makes a directory that only its owner can enter, and those above it that are missing.
pub fn create_directory(path: &Path) -> io::Result<()> {
    sys::create_directory(path)
}

/// Makes one directory that only its owner can enter. It must not be there yet.
pub fn create_new_directory(path: &Path) -> io::Result<()> {
    sys::create_new_directory(path)
}

/// Closes a file or a directory that is there to all but its owner.
pub fn close_off(path: &Path) -> io::Result<()> {
    sys::close_off(path)
}

/// Whether nobody but its owner can read a file, or enter a directory. The system, and whoever administers the machine, can
/// in any case.
pub fn is_private(path: &Path) -> io::Result<bool> {
    sys::is_private(path)
}

/// What to run to make a file or a directory private: for hints.
pub fn way_to_close_off(path: &Path) -> String {
    sys::way_to_close_off(path)
}

/// Locks a file against other writers. Unlike [`File::try_lock`], it keeps nobody from reading it, on Windows neither.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    sys::try_lock(file)
}

/// Takes back the lock of [`try_lock`].
pub fn unlock(file: &File) -> io::Result<()> {
    sys::unlock(file)
}

/// Whether a file that is open has no name any more.
pub fn is_deleted(file: &File) -> io::Result<bool> {
    sys::is_deleted(file)
}

/// Waits until the names of a directory are on the disk. Windows does so by itself, and offers nothing to wait for.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    sys::sync_directory(path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn what_is_made_is_private_and_what_is_not_is_seen() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("a/b");
        create_directory(&directory).unwrap();
        create_directory(&directory).unwrap();
        assert!(is_private(&directory).unwrap());
        let file = directory.join("file");
        open(OpenOptions::new().append(true).create(true), &file).unwrap().write_all(b"text").unwrap();
        assert!(is_private(&file).unwrap());
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        #[cfg(windows)]
        assert!(std::process::Command::new("icacls").arg(&file).args(["/grant", "*S-1-1-0:R"]).output().is_ok());
        #[cfg(unix)]
        assert!(!is_private(&file).unwrap());
        close_off(&file).unwrap();
        assert!(is_private(&file).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
        assert!(create_new_directory(&directory).is_err());
    }

    #[test]
    fn a_locked_file_can_be_read_and_not_locked_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut one = open(OpenOptions::new().read(true).append(true).create(true), &path).unwrap();
        try_lock(&one).unwrap();
        one.write_all(b"text").unwrap();
        let mut other = File::open(&path).unwrap();
        assert!(matches!(try_lock(&other), Err(TryLockError::WouldBlock)));
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        unlock(&one).unwrap();
        try_lock(&other).unwrap();
        assert!(!is_deleted(&other).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(is_deleted(&other).unwrap());
    }
}
