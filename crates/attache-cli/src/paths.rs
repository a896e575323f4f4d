//! Where settings and records are kept, and how files that are private are written.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use attache::private;

use crate::exit::Failure;

/// The directory of settings: `$XDG_CONFIG_HOME/attache`; on Windows, where that is not set, `%APPDATA%\attache`.
pub(crate) fn config() -> Result<PathBuf, Failure> {
    own("XDG_CONFIG_HOME", &[("HOME", ".config")], &[("APPDATA", ""), ("USERPROFILE", "AppData\\Roaming")])
}

/// The directory of records: `$XDG_STATE_HOME/attache`; on Windows, where that is not set, `%LOCALAPPDATA%\attache`, which
/// does not follow the person to other machines.
pub(crate) fn state() -> Result<PathBuf, Failure> {
    own("XDG_STATE_HOME", &[("HOME", ".local/state")], &[("LOCALAPPDATA", ""), ("USERPROFILE", "AppData\\Local")])
}

/// A relative value of an XDG variable is to be ignored, says its specification.
fn own(variable: &str, unix: &[(&str, &str)], windows: &[(&str, &str)]) -> Result<PathBuf, Failure> {
    let places = if cfg!(windows) { windows } else { unix };
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let otherwise = || places.iter().find_map(|(name, below)| Some(set(name)?.join(below)));
    set(variable).or_else(otherwise).map(|base| base.join("attache")).ok_or_else(|| {
        let other = places[0].0;
        Failure::usage(format!(
            "cannot determine the settings directory\nhint: set {other} or {variable} to an absolute path"
        ))
    })
}

/// The person's home directory, if it is known.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// Whether a program is named with the directory that it is in, and not for PATH to find.
pub(crate) fn has_directory(program: &str) -> bool {
    program.contains(std::path::is_separator) || (cfg!(windows) && program.as_bytes().get(1) == Some(&b':'))
}

/// A path without links, as people write it. What Windows answers begins with `\\?\`, which few programs take.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    attache_host::paths::canonicalize(path)
}

/// Whether files can be made in a directory.
#[cfg(unix)]
pub(crate) fn is_writable(directory: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: the path is a string that ends in a zero byte, and lives through the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Whether files can be made in a directory. Access lists are long to read, so it is tried.
#[cfg(windows)]
pub(crate) fn is_writable(directory: &Path) -> bool {
    let path = directory.join(format!(".attache-{}.tmp", std::process::id()));
    let made = fs::OpenOptions::new().write(true).create_new(true).open(&path);
    made.is_ok() && fs::remove_file(&path).is_ok()
}

/// Makes a directory that only its owner can enter.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    private::create_directory(path)
}

/// Replaces a file by one that only its owner can read, all at once.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    private_directory(directory)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || {
        let mut file = private::create_new(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}
