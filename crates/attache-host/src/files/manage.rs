//! Looking at, listing, removing and moving what is beneath the roots.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use super::{
    EntryKind, FileError, Files, Info, Listing, Place,
    resolve::{Found, Spot, moved},
    retry, sys, write,
};

/// A name in a directory, where the name itself is meant and not what it leads to if it is a link.
struct Named {
    parent: Spot,
    name: OsString,
    path: PathBuf,
}

impl Files {
    /// What is known of a file or directory beneath a root. A link is followed.
    pub fn stat(&self, path: &Path) -> Result<Info, FileError> {
        retry(|| {
            let spot = self.spot(path)?;
            if spot.found == Found::Nothing {
                return Err(FileError::NotFound { path: spot.path });
            }
            self.roots.base(&spot)?.stat(&spot.relative).map_err(|error| moved(error, &spot.path))
        })
    }

    /// What is in a directory beneath a root, `most` names of it.
    pub fn list(&self, path: &Path, most: usize) -> Result<Listing, FileError> {
        let mut listing = retry(|| {
            let spot = self.spot(path)?;
            match spot.found {
                Found::Directory => {}
                Found::Nothing => return Err(FileError::NotFound { path: spot.path }),
                Found::File | Found::Other => return Err(FileError::NotADirectory { path: spot.path }),
            }
            self.roots.base(&spot)?.list(&spot.relative, most).map_err(|error| moved(error, &spot.path))
        })?;
        listing.entries.sort_by(|one, two| one.name.cmp(&two.name));
        Ok(listing)
    }

    /// Where a name is, and whether that is beneath a root. If it is a link, it is the link's own place.
    ///
    /// It is what [`remove`](Files::remove) and [`rename`](Files::rename) work on.
    pub fn place_of_name(&self, path: &Path) -> Result<Place, FileError> {
        let named = retry(|| self.named(path))?;
        Ok(match named.parent.root() {
            Some(root) => Place::Inside { root, relative: named.parent.relative.join(&named.name), path: named.path },
            None => Place::Outside { path: named.path },
        })
    }

    /// What is known of a name beneath a root, which may be a link.
    pub fn stat_name(&self, path: &Path) -> Result<Info, FileError> {
        retry(|| {
            let named = self.checked_name(path)?;
            named.check_parent()?;
            let dir = self.roots.base(&named.parent)?;
            match dir.stat(&named.parent.relative.join(&named.name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FileError::NotFound { path: named.path }),
                result => result.map_err(|error| moved(error, &named.path)),
            }
        })
    }

    /// Removes a file, a link or an empty directory beneath a root; never a root itself.
    ///
    /// `expected` is what it was when somebody decided to remove it. If it is something else by now, it stays.
    pub fn remove(&self, path: &Path, expected: &Info) -> Result<(), FileError> {
        retry(|| {
            let named = self.checked_name(path)?;
            let dir = self.open_parent(&named)?;
            named.check_is(&dir, expected)?;
            let result = match expected.kind {
                EntryKind::Directory => dir.remove_dir(&named.name),
                _ => dir.remove_file(&named.name),
            };
            result.map_err(|error| match error.kind() {
                io::ErrorKind::DirectoryNotEmpty => FileError::NotEmpty { path: named.path.clone() },
                _ => FileError::io(error, &named.path),
            })
        })
    }

    /// Moves a file, a link or a directory to a new name beneath a root, and creates the directories that needs.
    ///
    /// Nothing is ever replaced. `expected` is what it was when somebody decided to move it; if it is something else by
    /// now, it stays where it is.
    pub fn rename(&self, from: &Path, to: &Path, expected: &Info) -> Result<(), FileError> {
        retry(|| {
            let from = self.checked_name(from)?;
            let to = self.checked_name(to)?;
            let source = self.open_parent(&from)?;
            from.check_is(&source, expected)?;
            let target = self.make_parent(&to)?;
            source.rename_into(&from.name, &target, &to.name).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                    FileError::Exists { path: to.path.clone() }
                }
                io::ErrorKind::CrossesDevices => FileError::OtherDisk { path: to.path.clone() },
                _ => FileError::io(error, &from.path),
            })
        })
    }

    /// Creates the directories that a name beneath a root needs, where they are missing.
    pub fn create_parents(&self, path: &Path) -> Result<(), FileError> {
        retry(|| self.make_parent(&self.checked_name(path)?).map(drop))
    }

    /// Where a link beneath a root leads, as it is written in the link. The link is not followed.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, FileError> {
        retry(|| {
            let named = self.checked_name(path)?;
            let dir = self.open_parent(&named)?;
            dir.read_link(&named.name).map_err(|error| FileError::io(error, &named.path))
        })
    }

    /// Makes a link beneath a root, and the directories that it needs. Wherever it leads, nothing is opened there, and what
    /// has the name already is not replaced.
    pub fn create_link(&self, path: &Path, target: &Path) -> Result<(), FileError> {
        retry(|| {
            let named = self.checked_name(path)?;
            let dir = self.make_parent(&named)?;
            dir.create_link(&named.name, target).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => FileError::Exists { path: named.path.clone() },
                _ => FileError::io(error, &named.path),
            })
        })
    }

    /// Sets who may read, write and execute a file beneath a root; other bits of `mode` are left out. Windows knows only
    /// whether it may be written.
    pub fn set_mode(&self, path: &Path, mode: u32) -> Result<(), FileError> {
        let (file, path) = self.open_for(path, sys::Access::Mode)?;
        sys::set_mode(&file, mode & 0o777).map_err(|error| FileError::io(error, &path))
    }

    fn make_parent(&self, named: &Named) -> Result<sys::Dir, FileError> {
        if matches!(named.parent.found, Found::File | Found::Other) {
            return Err(FileError::NotAFile { path: named.parent.path.clone() });
        }
        write::open_or_create(self.roots.base(&named.parent)?, &named.parent.relative)
            .map_err(|error| moved(error, &named.path))
    }

    fn named(&self, path: &Path) -> Result<Named, FileError> {
        // `..` at the end is no name, and `.` is not one that can be removed.
        let not_a_name = || FileError::NotAFile { path: path.to_owned() };
        let name = path.file_name().ok_or_else(not_a_name)?;
        if !crate::paths::is_plain_name(name) {
            return Err(FileError::BadName { path: path.to_owned() });
        }
        let parent = self.resolve(path.parent().ok_or_else(not_a_name)?)?;
        let path = parent.path.join(name);
        if self.roots.is_root(&path) {
            return Err(FileError::NotAFile { path });
        }
        Ok(Named { parent, name: name.to_owned(), path })
    }

    fn checked_name(&self, path: &Path) -> Result<Named, FileError> {
        let named = self.named(path)?;
        self.check_place(named.parent.root(), &named.path)?;
        Ok(named)
    }

    fn open_parent(&self, named: &Named) -> Result<sys::Dir, FileError> {
        named.check_parent()?;
        let base = self.roots.base(&named.parent)?;
        base.open_dir(&named.parent.relative).map_err(|error| moved(error, &named.path))
    }
}

impl Named {
    fn check_parent(&self) -> Result<(), FileError> {
        match self.parent.found {
            Found::Directory => Ok(()),
            Found::Nothing => Err(FileError::NotFound { path: self.path.clone() }),
            Found::File | Found::Other => Err(FileError::NotAFile { path: self.parent.path.clone() }),
        }
    }

    /// Whether the name stands for what it did. Nothing holds it from here on, so it is done at the very last.
    fn check_is(&self, dir: &sys::Dir, expected: &Info) -> Result<(), FileError> {
        let name: &OsStr = &self.name;
        let info = dir.stat(name.as_ref()).map_err(|error| FileError::io(error, &self.path))?;
        // A directory's time changes with what is in it, which is no other directory for that.
        let is_same = info.id == expected.id && info.kind == expected.kind;
        let is_unchanged =
            info.kind == EntryKind::Directory || (info.size, info.modified) == (expected.size, expected.modified);
        if is_same && is_unchanged { Ok(()) } else { Err(FileError::Replaced { path: self.path.clone() }) }
    }
}
