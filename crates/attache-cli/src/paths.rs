//! Where settings and records are kept, and how files that are private are written.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The directory of settings: `$XDG_CONFIG_HOME/attache`.
pub(crate) fn config() -> Result<PathBuf, Failure> {
    home("XDG_CONFIG_HOME", ".config")
}

/// The directory of records: `$XDG_STATE_HOME/attache`.
pub(crate) fn state() -> Result<PathBuf, Failure> {
    home("XDG_STATE_HOME", ".local/state")
}

/// A relative value of an XDG variable is to be ignored, says its specification.
fn home(variable: &str, otherwise: &str) -> Result<PathBuf, Failure> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set.or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Some(home?.join(otherwise))
    });
    base.map(|base| base.join("attache")).ok_or_else(|| {
        Failure::usage(format!(
            "cannot determine the settings directory\nhint: set HOME or {variable} to an absolute path"
        ))
    })
}

/// Makes a directory that only its owner can enter.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Replaces a file by one that only its owner can read, all at once.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    private_directory(directory)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}
