//! Directories as handles, and what is opened beneath them without following a link.
//!
//! On Linux the kernel resolves a path as a whole (`openat2`). Other systems have no such call; there each name is
//! opened on its own, and a link is refused at every step.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Permissions},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStringExt as _,
            fs::{MetadataExt as _, PermissionsExt as _},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid},
    io::Errno,
};

use super::entry::{Entry, EntryKind, Info, Listing};

/// An open directory.
#[derive(Debug)]
pub(super) struct Dir(OwnedFd);

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    Link(PathBuf),
    /// A FIFO, a socket, a device.
    Other,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    Read,
    Write,
    /// To change who may read, write and execute it.
    Mode,
}

#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

impl Dir {
    /// Opens a directory wherever the path leads.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?))
    }

    pub(super) fn is_same(&self, other: &Self) -> io::Result<bool> {
        let (one, two) = (rustix::fs::fstat(&self.0)?, rustix::fs::fstat(&other.0)?);
        Ok((one.st_dev, one.st_ino) == (two.st_dev, two.st_ino))
    }

    /// Opens a directory beneath this one; an empty path is this one.
    pub(super) fn open_dir(&self, path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(open_beneath(&self.0, path, DIRECTORY, Mode::empty())?))
    }

    /// Opens a file without ever waiting for it: a FIFO without a writer, a device.
    pub(super) fn open_file(&self, path: &Path, access: Access) -> io::Result<File> {
        let access = match access {
            Access::Read | Access::Mode => OFlags::RDONLY,
            Access::Write => OFlags::WRONLY,
        };
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(open_beneath(&self.0, path, flags, Mode::empty())?.into())
    }

    /// Creates a file that is not there yet, for everybody as the umask has it, or for its owner alone.
    pub(super) fn create_file(&self, name: &OsStr, is_private: bool) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = if is_private { 0o600 } else { 0o666 };
        Ok(open_beneath(&self.0, name.as_ref(), flags, Mode::from_raw_mode(mode))?.into())
    }

    pub(super) fn create_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    /// Renames within this directory. What has the new name is replaced, a link too.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Where a link in this directory leads, as it is written in it.
    pub(super) fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Makes a link in this directory. Nothing is ever replaced.
    pub(super) fn create_link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Renames into another directory. Nothing is ever replaced: what has the new name makes it fail.
    pub(super) fn rename_into(&self, from: &OsStr, other: &Self, to: &OsStr) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            use rustix::fs::RenameFlags;
            match rustix::fs::renameat_with(&self.0, from, &other.0, to, RenameFlags::NOREPLACE) {
                // Not every file system can.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                result => return Ok(result?),
            }
        }
        if self.stat(from.as_ref())?.kind == EntryKind::Directory {
            // It takes the place of an empty directory at most, and such a one cannot be told from it.
            return Ok(rustix::fs::renameat(&self.0, from, &other.0, to)?);
        }
        rustix::fs::linkat(&self.0, from, &other.0, to, AtFlags::empty())?;
        self.remove_file(from)
    }

    /// What is known of the end of a path, links not followed; an empty path is this directory.
    pub(super) fn stat(&self, path: &Path) -> io::Result<Info> {
        let Some(name) = path.file_name() else { return Ok(info(&rustix::fs::fstat(&self.open_dir(path)?.0)?)) };
        let parent = self.open_dir(path.parent().unwrap_or(Path::new("")))?;
        Ok(info(&rustix::fs::statat(&parent.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// What is in a directory beneath this one, in no order and no more than `most`.
    pub(super) fn list(&self, path: &Path, most: usize) -> io::Result<Listing> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = open_beneath(&self.0, path, flags, Mode::empty())?;
        let mut listing = Listing { entries: Vec::new(), is_cut: false };
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            if listing.entries.len() == most {
                listing.is_cut = true;
                break;
            }
            match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let name = OsString::from_vec(name.to_bytes().to_vec());
                    listing.entries.push(Entry { name, info: info(&stat) });
                }
                // Gone since.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(listing)
    }

    /// What is at the end of a path, links not followed, and its name as the file system has it if that may be another.
    #[cfg(target_os = "linux")]
    pub(super) fn look(&self, path: &Path) -> io::Result<(Kind, Option<OsString>)> {
        let found = open_beneath(&self.0, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let kind = kind(rustix::fs::fstat(&found)?.st_mode, || rustix::fs::readlinkat(&found, "", Vec::new()))?;
        Ok((kind, None))
    }

    /// What is at the end of a path, links not followed, and its name as the file system has it if that may be another.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn look(&self, path: &Path) -> io::Result<(Kind, Option<OsString>)> {
        let parent = self.open_dir(path.parent().unwrap_or(Path::new("")))?.0;
        let name = path.file_name().unwrap_or(OsStr::new("."));
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // No longer a link: changed since.
        let target = || rustix::fs::readlinkat(&parent, name, Vec::new());
        let kind =
            kind(stat.st_mode, || target().map_err(|errno| if errno == Errno::INVAL { Errno::AGAIN } else { errno }))?;
        Ok((kind, None))
    }
}

#[allow(clippy::unnecessary_cast, reason = "these types are not the same on all systems")]
fn info(stat: &rustix::fs::Stat) -> Info {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    Info {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        mode: stat.st_mode as u32 & 0o7777,
        links: stat.st_nlink as u64,
        id: (stat.st_dev as u64, stat.st_ino as u64),
    }
}

fn kind(mode: rustix::fs::RawMode, target: impl Fn() -> rustix::io::Result<std::ffi::CString>) -> io::Result<Kind> {
    Ok(match FileType::from_raw_mode(mode) {
        FileType::Directory => Kind::Directory,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link(OsString::from_vec(target()?.into_bytes()).into()),
        _ => Kind::Other,
    })
}

/// Opens a path of names beneath a directory; a link on it, also as the last name, is an error.
#[cfg(target_os = "linux")]
fn open_beneath(dir: &OwnedFd, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(dir, path, flags, mode, resolve)
}

/// Opens a path of names beneath a directory; a link on it, also as the last name, is an error.
#[cfg(not(target_os = "linux"))]
fn open_beneath(dir: &OwnedFd, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let step = |dir: &OwnedFd, name: &Path, flags, mode| rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW, mode);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return step(dir, path, flags, mode) };
    let mut at = step(dir, ".".as_ref(), DIRECTORY, Mode::empty())?;
    for name in parent {
        at = step(&at, name.as_ref(), DIRECTORY, Mode::empty())?;
    }
    step(&at, name.as_ref(), flags, mode)
}

/// Whether the kernel can keep a path beneath a directory. Where it cannot, or a sandbox hides that it can, nothing
/// else is tried.
pub(super) fn can_open_beneath(dir: &Dir) -> io::Result<bool> {
    match dir.open_dir(Path::new("")) {
        Ok(_) => Ok(true),
        Err(error)
            if [Errno::NOSYS, Errno::PERM, Errno::INVAL]
                .iter()
                .any(|no| error.raw_os_error() == Some(no.raw_os_error())) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether opening a path failed because it is no longer what it was.
pub(super) fn is_changed(error: &io::Error) -> bool {
    let changed = [Errno::LOOP, Errno::XDEV, Errno::NOTDIR, Errno::NOENT, Errno::EXIST, Errno::NXIO, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| changed.contains(&errno))
}

/// How many names a file has.
pub(crate) fn links(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

/// Sets who may read, write and execute a file.
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a new file the owner of the old one, where the system lets us, and its mode.
pub(super) fn copy_owner_and_mode(old: &File, new: &File) -> io::Result<()> {
    let (old, made) = (old.metadata()?, new.metadata()?);
    if (old.uid(), old.gid()) != (made.uid(), made.gid()) {
        // Only the superuser may give a file away. If we may not, it is ours, as with most editors.
        let _ = rustix::fs::fchown(new, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
    }
    new.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}
