//! Where other programs listen. Whoever reaches a socket with a path can ask the program behind it to act outside.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::FileTypeExt as _},
    path::{Path, PathBuf},
};

use super::super::{
    SandboxError,
    view::{Access, Row, Why, around},
};

/// A list that is longer is a machine gone mad.
const MOST_BYTES: u64 = 16 << 20;

/// More of them are not covered: each is a mount, and every command waits for all of them.
const MOST_SOCKETS: usize = 4096;
/// Names that are not absolute mean something only to the program that gave them. It is tried in the directory
/// of every program, for so many names at most.
const MOST_RELATIVE: usize = 256;

/// Directories beneath the one for temporary files in which programs make sockets, by the beginning of their names: tmux
/// and screen run any command, the agent of ssh signs, X sees every key.
const KNOWN: [&str; 7] = ["tmux-", "screen", "ssh-", "dbus-", ".X11-unix", ".ICE-unix", "gpg-"];

/// The sockets that a table leaves within reach: those outside of what is writable, and those beneath the directory for
/// temporary files, which is writable for everybody.
pub(super) fn within_reach(rows: &[Row], temporary: &Path, allowed: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_known = KNOWN.iter().any(|known| entry.file_name().as_bytes().starts_with(known.as_bytes()));
        if is_known && entry.file_type().is_ok_and(|kind| kind.is_socket() || kind.is_dir() && holds_socket(&entry)) {
            found.insert(entry.path());
        }
    }
    let too_many = || SandboxError::TooManySockets { directory: temporary.to_owned() };
    let (absolute, relative): (Vec<PathBuf>, Vec<PathBuf>) = bound().into_iter().partition(|path| path.is_absolute());
    let relative: BTreeSet<PathBuf> = relative.into_iter().collect();
    if relative.len() > MOST_RELATIVE {
        return Err(too_many());
    }
    let directories = if relative.is_empty() { BTreeSet::new() } else { working_directories() };
    let meant = directories.iter().flat_map(|directory| relative.iter().map(|name| directory.join(name)));
    let named = absolute.into_iter().chain(meant).filter(|path| needs_cover(rows, temporary, path));
    let named: BTreeSet<PathBuf> = named.collect();
    // The list has the paths as they were named, perhaps long ago and elsewhere.
    let real = named.iter().filter_map(|path| {
        let is_socket = fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket { fs::canonicalize(path).ok() } else { None }
    });
    found.extend(real);
    found.retain(|path| needs_cover(rows, temporary, path) && !allowed.iter().any(|allowed| path.starts_with(allowed)));
    let all = found.clone();
    found.retain(|path| !path.ancestors().skip(1).any(|above| all.contains(above)));
    if found.len() > MOST_SOCKETS { Err(too_many()) } else { Ok(found.into_iter().collect()) }
}

/// Whether a directory has a socket in it. Where that cannot be told, it has.
fn holds_socket(directory: &fs::DirEntry) -> bool {
    let Ok(mut entries) = fs::read_dir(directory.path()) else { return true };
    entries.any(|entry| entry.is_ok_and(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket())))
}

/// Where the programs are that we may look at, which are those whose sockets we may use.
fn working_directories() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    found.filter(|path| path.is_absolute()).collect()
}

fn needs_cover(rows: &[Row], temporary: &Path, path: &Path) -> bool {
    let nearest = around(rows, path).find(|row| row.why != Why::Pinned);
    nearest.is_none_or(|row| match row.access {
        Access::Hidden => false,
        Access::Read => true,
        Access::Write => row.path == temporary,
    })
}

/// The paths of all sockets that have one, as the kernel lists them, and of those that were mounted into a container.
fn bound() -> Vec<PathBuf> {
    let read = |path: &str| {
        let mut content = Vec::new();
        let _ = fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut content));
        content
    };
    let (sockets, mounts) = (read("/proc/net/unix"), read("/proc/self/mountinfo"));
    // Seven columns come before the path, four before the mount point.
    let sockets = sockets.split(|byte| *byte == b'\n').filter_map(|line| column(line, 7, true));
    let mounts = mounts.split(|byte| *byte == b'\n').filter_map(|line| column(line, 4, false));
    // One that begins with `@` has no path.
    let named = sockets.chain(mounts).filter(|path| !path.is_empty() && !path.starts_with(b"@"));
    named.map(|path| OsStr::from_bytes(path).into()).collect()
}

/// A column of a line; the last one may have blanks in it.
fn column(line: &[u8], index: usize, is_last: bool) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..index {
        let blank = rest.iter().position(|byte| *byte == b' ')?;
        rest = rest[blank..].trim_ascii_start();
    }
    let end = rest.iter().position(|byte| *byte == b' ').filter(|_| !is_last).unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_the_kernels_lists() {
        let socket = b"0000: 00000002 00000000 00010000 0001 01 12345 /run/a b.sock";
        assert_eq!(column(socket, 7, true), Some(&b"/run/a b.sock"[..]));
        assert_eq!(column(b"0000: 00000003 00000000 00000000 0001 03  1117", 7, true), None);
        assert_eq!(column(b"36 35 98:0 /x /mnt2 rw - ext3", 4, false), Some(&b"/mnt2"[..]));
    }
}
