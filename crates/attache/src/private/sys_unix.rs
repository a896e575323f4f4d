//! Modes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use super::Opening;

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn open(path: &Path, how: Opening) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match how {
        Opening::New => options.write(true).create_new(true),
        Opening::Keep => options.read(true).write(true).create(true).truncate(false),
        Opening::Append => options.append(true).create(true),
        Opening::ReadAndAppend => options.read(true).append(true).create(true),
    };
    options.mode(0o600).open(path)
}

pub(super) fn is_private(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 == 0)
}

pub(super) fn protect(path: &Path) -> io::Result<()> {
    let mode = if fs::metadata(path)?.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, Permissions::from_mode(mode))
}
