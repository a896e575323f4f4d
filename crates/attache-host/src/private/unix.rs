//! Private files by their mode.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn create_new_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

pub(super) fn close_off(path: &Path) -> io::Result<()> {
    let mode = if path.metadata()?.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(super) fn is_private(path: &Path) -> io::Result<bool> {
    Ok(path.metadata()?.permissions().mode() & 0o077 == 0)
}

pub(super) fn way_to_close_off(path: &Path) -> String {
    format!("chmod {} {}", if path.is_dir() { "700" } else { "600" }, path.display())
}

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
