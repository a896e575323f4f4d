//! A new file in the place of an old one, in one step.

use std::{
    ffi::OsStr,
    fs::File,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Write as _},
    path::Path,
};

use super::{
    FileError,
    resolve::{Spot, moved},
    sys::{self, Dir},
};

/// A file that is being written beside the one it will replace. Dropping it removes it.
struct Draft<'a> {
    dir: &'a Dir,
    name: String,
    file: File,
}

/// Writes `content` to the spot: into a draft beside it first, which then takes the place of `old`.
pub(super) fn replace(base: &Dir, spot: &Spot, old: Option<File>, content: &[u8]) -> Result<(), FileError> {
    let not_a_file = || FileError::NotAFile { path: spot.path.clone() };
    let name = spot.relative.file_name().ok_or_else(not_a_file)?;
    let parent = spot.relative.parent().unwrap_or(Path::new(""));
    let dir = open_or_create(base, parent).map_err(|error| moved(error, &spot.path))?;
    write_draft(&dir, name, old, content).map_err(|error| moved(error, &spot.path))
}

fn write_draft(dir: &Dir, name: &OsStr, old: Option<File>, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::create(dir, old.is_some())?;
    draft.file.write_all(content)?;
    if let Some(old) = old {
        sys::copy_owner_and_mode(&old, &draft.file)?;
        // It is closed here, because older versions of Windows do not replace what is open.
    }
    // Without this a crash could leave the new name with none of the content.
    draft.file.sync_all()?;
    dir.rename(draft.name.as_ref(), name)?;
    // The draft's name is gone, so there is nothing to remove.
    draft.name.clear();
    Ok(())
}

impl<'a> Draft<'a> {
    /// A private draft is for its owner alone until it gets the old file's mode.
    fn create(dir: &'a Dir, is_private: bool) -> io::Result<Self> {
        loop {
            // Keys that the standard library takes from the system's chance; it need not be more than unlikely to meet.
            let name = format!(".attache-{:016x}.tmp", RandomState::new().build_hasher().finish());
            match dir.create_file(name.as_ref(), is_private) {
                Ok(file) => return Ok(Self { dir, name, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.dir.remove_file(self.name.as_ref());
        }
    }
}

/// Opens a directory beneath `base`, and creates it with its parents where they are missing.
pub(super) fn open_or_create(base: &Dir, path: &Path) -> io::Result<Dir> {
    let mut missing = Vec::new();
    let mut existing = path;
    let mut dir = loop {
        match (base.open_dir(existing), existing.file_name(), existing.parent()) {
            (Err(error), Some(name), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                missing.push(name);
                existing = parent;
            }
            (result, ..) => break result?,
        }
    };
    for name in missing.into_iter().rev() {
        match dir.create_dir(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => dir = dir.open_dir(name.as_ref())?,
        }
    }
    Ok(dir)
}
