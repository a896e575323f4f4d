//! Files that are read without a question: those that a project brings along for a model, and those that a person named.
//!
//! Nobody looks at them before they are sent, so they are held to more than what an agent asks for. A file that a project
//! brings along is a plain file beneath the roots, with one name, and none that may hold secrets. A file that a person
//! named by hand may be anywhere and anything but a device or a pipe; yet a link that came with a repository must not
//! make it another file than the one that was named.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use super::{FileError, Files, read};
use crate::paths::{self, Start};
use crate::permission::is_secret;

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

impl Files {
    /// Reads the beginning of a file that goes to a model without a question, at most `limit` bytes.
    ///
    /// Links are followed beneath the roots only. [`FileError::Secret`], [`FileError::Outside`], [`FileError::HardLink`]
    /// and [`FileError::NotAFile`] are reasons not to send it; nothing allows it all the same.
    pub fn read_unasked(&self, path: &Path, limit: usize) -> Result<Vec<u8>, FileError> {
        let (file, path) = self.open_unasked(path)?;
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes).map_err(|error| FileError::io(error, &path))?;
        Ok(bytes)
    }

    /// Opens a file for the same purpose, and gives it with the path that it really has.
    pub fn open_unasked(&self, path: &Path) -> Result<(File, PathBuf), FileError> {
        let (file, path) = self.open_for_read(path)?;
        let inside = self.roots().find_map(|root| path.strip_prefix(root).ok());
        if inside.is_none_or(is_secret) {
            return Err(FileError::Secret { path });
        }
        check_disk(&file, &path)?;
        Ok((file, path))
    }
}

/// Where a path leads that a person named by hand, without links. `cwd` is the directory that is worked in, if any is: it
/// counts as a repository whether or not it is one.
///
/// A link that lies in a repository and leads out of it is [`FileError::LeadsOut`]: the person named what is there, and
/// whoever wrote the repository chose what is behind it. Links elsewhere are the person's own.
pub fn resolve_named(path: &Path, cwd: Option<&Path>) -> Result<PathBuf, FileError> {
    if !path.is_absolute() {
        return Err(FileError::Relative { path: path.to_owned() });
    }
    let mut done = top_of(path)?;
    let mut todo: VecDeque<OsString> = names(path).map(OsStr::to_owned).collect();
    // The links that lie in repositories, each with what it must not leave.
    let mut held: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            done.pop();
            continue;
        }
        if !paths::is_plain_name(&name) {
            return Err(FileError::BadName { path: path.to_owned() });
        }
        let next = done.join(&name);
        let metadata = next.symlink_metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => FileError::NotAFile { path: done.clone() },
            _ => FileError::io(error, &next),
        })?;
        if !metadata.is_symlink() {
            done = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(FileError::TooManyLinks { path: path.to_owned() });
        }
        let target = next.read_link().map_err(|error| FileError::io(error, &next))?;
        if let Some(top) = repository_of(&done, cwd) {
            held.push((next, top));
        }
        if target.is_absolute() {
            done = top_of(&target)?;
        } else if target.has_root() {
            // It would be on whatever disk we happen to be.
            return Err(FileError::BadName { path: target });
        }
        for name in names(&target).rev() {
            todo.push_front(name.to_owned());
        }
    }
    match held.into_iter().find(|(_, top)| !paths::starts_with(&done, top)) {
        Some((link, _)) => Err(FileError::LeadsOut { link, path: done }),
        None => Ok(done),
    }
}

/// Opens a plain file that a person named by hand, and gives it with the path that it really has; see [`resolve_named`].
///
/// In a repository it must not have several names, as one of them may lie elsewhere.
pub fn open_named(path: &Path, cwd: Option<&Path>) -> Result<(File, PathBuf), FileError> {
    let real = resolve_named(path, cwd)?;
    let is_own = repository_of(&real, cwd).is_none();
    // Exactly what was found is opened: a link that has come in since makes it fail.
    let files = Files::open(&top_of(&real)?, &[])?.without_links();
    let files = if is_own { files.allow(&real) } else { files };
    let (file, path) = files.open_for_read(&real)?;
    check_disk(&file, &path)?;
    Ok((file, path))
}

/// Reads a file that a person named by hand, if it has no more than `limit` bytes; see [`open_named`].
pub fn read_named(path: &Path, cwd: Option<&Path>, limit: usize) -> Result<Vec<u8>, FileError> {
    let (file, path) = open_named(path, cwd)?;
    read::bytes(file, limit).map_err(|error| error.at(path))
}

/// Where an absolute path begins: `/`, on Windows a disk or what another machine shares.
fn top_of(path: &Path) -> Result<PathBuf, FileError> {
    match paths::start(path) {
        Some(Start::Here(top) | Start::Remote(top)) => Ok(top),
        None => Err(FileError::BadName { path: path.to_owned() }),
    }
}

/// The repository that a path is in; else the directory that is worked in, if the path is beneath that.
fn repository_of(path: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let repository = path.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    repository.or_else(|| cwd.filter(|cwd| paths::starts_with(path, cwd))).map(Path::to_owned)
}

/// Refuses what only looks like a file: the kernel writes it when it is read, and it tells of processes and of the machine.
fn check_disk(file: &File, path: &Path) -> Result<(), FileError> {
    #[cfg(target_os = "linux")]
    {
        // How the kernel numbers `proc` and `sysfs`; how wide the number is differs from machine to machine.
        const PSEUDO: [u64; 2] = [0x9fa0, 0x6265_6572];
        let disk = rustix::fs::fstatfs(file).map_err(|error| FileError::io(error.into(), path))?;
        if PSEUDO.contains(&(disk.f_type as u64 & 0xffff_ffff)) {
            return Err(FileError::NotAFile { path: path.to_owned() });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, path);
    Ok(())
}

/// The names on a path, `..` among them, without `/` and `.`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = &OsStr> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(Component::as_os_str)
}
