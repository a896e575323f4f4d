//! Systems whose rights we do not know: nothing is made that would have to be private.

use std::{fs::File, io, path::Path};

use super::Opening;

pub(super) fn create_directory(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn open(_: &Path, _: Opening) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn is_private(_: &Path) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn protect(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
