//! Files of our own that several processes use: who writes, whether they are there still, and whether they are on the disk.
//!
//! What nobody else may read is made by [`attache::private`].

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

#[cfg_attr(unix, path = "own_files/unix.rs")]
#[cfg_attr(windows, path = "own_files/windows.rs")]
mod sys;

/// Locks a file against other writers who do the same. Unlike [`File::try_lock`], it keeps nobody from reading it, on Windows
/// neither.
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

/// Waits until the names of a directory are on the disk. Windows writes them down by itself, and offers nothing to wait for.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    sys::sync_directory(path)
}

/// What a person types to keep others from reading a file, or from entering a directory.
pub fn hint_to_protect(path: &Path) -> String {
    sys::hint_to_protect(path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_locked_file_can_be_read_and_not_locked_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut one = File::options().read(true).append(true).create(true).open(&path).unwrap();
        try_lock(&one).unwrap();
        one.write_all(b"text").unwrap();
        let mut other = File::options().read(true).write(true).open(&path).unwrap();
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
