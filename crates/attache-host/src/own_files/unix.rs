//! Locks, names and modes as Unix has them.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

pub(super) fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

pub(super) fn is_deleted(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(super) fn hint_to_protect(path: &Path) -> String {
    format!("chmod {} {}", if path.is_dir() { "700" } else { "600" }, path.display())
}
