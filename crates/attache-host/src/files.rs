//! Text files beneath the roots of a session.
//!
//! The roots are the session's directory and its additional directories, opened once. Reading and writing beneath them
//! needs no question; anything else is [`FileError::Outside`], which a front end turns into one. Whether a path is
//! beneath a root is not decided by its text: links are followed first, and what they lead to is then opened by the
//! kernel from the root's handle, with links forbidden (`openat2`). A directory that is swapped for a link in between
//! makes that fail, and the path is looked at again.
//!
//! A file with several names (hard links) may be one from outside, and nothing in it tells. So it is asked for too:
//! [`FileError::HardLink`]. FIFOs, sockets, devices and directories are never opened.
//!
//! A kernel without `openat2` (Linux before 5.6) is an error when the roots are opened, never a weaker check. Other
//! systems have no such call: each name on a path is opened on its own there, and links are refused at every step.
//!
//! On Windows names that Windows reads as something else (devices, streams, `a.` for `a`) are [`FileError::BadName`], and
//! nothing is asked of another machine unless a root is there or a person has allowed the path.
//!
//! ```
//! use std::path::Path;
//! use attache_host::files::{FileError, Files};
//!
//! # let project = tempfile::tempdir().unwrap();
//! # let project = project.path();
//! let files = Files::open(project, &[])?;
//! let path = project.join("src/main.rs");
//! files.write(&path, "fn main() {\n}\n")?;
//! assert_eq!(files.read_lines(&path, Some(2), Some(1))?, "}\n");
//!
//! match files.read(Path::new("/etc/passwd")) {
//!     // Ask the user about `path`; after a yes: `files.allow(&path).read(&path)`.
//!     Err(FileError::Outside { path }) => assert_eq!(path, Path::new("/etc/passwd")),
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), FileError>(())
//! ```
//!
//! Beside texts there are [`stat`](Files::stat), [`list`](Files::list), [`remove`](Files::remove) and
//! [`rename`](Files::rename), and files as bytes, all kept beneath the roots in the same way.
//!
//! Everything here blocks for as long as the disk takes. A front end on tokio clones the [`Files`] into
//! `spawn_blocking`.

mod entry;
mod error;
mod manage;
mod read;
mod resolve;
#[cfg_attr(windows, path = "files/sys_windows.rs")]
mod sys;
mod unasked;
mod write;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use entry::{Entry, EntryKind, Info, Listing};
pub use error::FileError;
pub(crate) use error::shown;
use resolve::{Roots, Spot};
pub(crate) use sys::links;
pub use unasked::{open_named, read_named, resolve_named};

/// How many bytes a read returns unless told otherwise. JSON may need six bytes for one, and the answer still has to fit
/// into a message that peers read, which is 64 MiB for ours.
const READ_LIMIT: usize = 8 << 20;

/// How often a path is looked at again when it changed between the look and the opening. Nothing that is meant well
/// changes this often.
const ATTEMPTS: usize = 16;

/// The files of a session. Cloning is cheap and gives the same roots.
///
/// The example is in the [module documentation](self).
#[derive(Debug, Clone)]
pub struct Files {
    roots: Arc<Roots>,
    read_limit: usize,
    /// What the user allowed outside of the roots, or with several names.
    allowed: Vec<PathBuf>,
    follows_links: bool,
}

/// Where a path leads: links followed, `..` gone. The file may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Beneath a root.
    Inside {
        /// The root, as an index into [`Files::roots`].
        root: usize,
        /// The path from that root; empty for the root itself.
        relative: PathBuf,
        /// The whole path.
        path: PathBuf,
    },
    /// Beneath none of the roots.
    Outside {
        /// The whole path.
        path: PathBuf,
    },
}

impl Place {
    /// The whole path, absolute and without links.
    pub fn path(&self) -> &Path {
        match self {
            Self::Inside { path, .. } | Self::Outside { path } => path,
        }
    }

    /// Whether it is beneath a root.
    pub fn is_inside(&self) -> bool {
        matches!(self, Self::Inside { .. })
    }
}

impl Files {
    /// Opens the session's directory and its additional directories as roots.
    ///
    /// They have to be absolute and exist. Paths may begin with a root as it is given here or with what it leads to.
    pub fn open(cwd: &Path, additional: &[PathBuf]) -> Result<Self, FileError> {
        let paths = std::iter::once(cwd).chain(additional.iter().map(PathBuf::as_path));
        let roots = Arc::new(Roots::open(paths)?);
        Ok(Self { roots, read_limit: READ_LIMIT, allowed: Vec::new(), follows_links: true })
    }

    /// Sets how many bytes a read returns at most; 8 MiB unless told otherwise.
    #[must_use]
    pub fn read_limit(mut self, bytes: usize) -> Self {
        self.read_limit = bytes;
        self
    }

    /// Serves this path too, which the user allowed after [`FileError::Outside`] or [`FileError::HardLink`].
    ///
    /// It is the path from that error, which the user has seen. A path that was to lead there and leads somewhere else
    /// by now is the same error again, with the new path.
    #[must_use]
    pub fn allow(mut self, path: impl Into<PathBuf>) -> Self {
        self.allowed.push(path.into());
        self
    }

    /// Takes paths for what they are: one that goes through a link is [`FileError::Changed`].
    ///
    /// For paths that [`place`](Files::place) gave some time ago, which have to lead to the same file still.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.follows_links = false;
        self
    }

    /// The roots, links followed: the session's directory first.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.roots.paths()
    }

    /// Whether each root is where it was when it was opened: the same directory, and no name on its path is a link by now.
    pub fn are_roots_in_place(&self) -> bool {
        self.roots.are_in_place()
    }

    /// Where a path leads, and whether that is beneath a root. The last name on it is followed too if it is a link.
    ///
    /// It is what was there at this moment: [`read`](Files::read) and [`write`](Files::write) look for themselves.
    pub fn place(&self, path: &Path) -> Result<Place, FileError> {
        retry(|| self.resolve(path)).map(Place::from)
    }

    /// Reads a file beneath a root. Line ends are kept as they are.
    pub fn read(&self, path: &Path) -> Result<String, FileError> {
        self.read_lines(path, None, None)
    }

    /// Reads some of its lines.
    ///
    /// `first` counts from 1, and 0 is taken for 1; lines past the end are no lines, so the text is empty then. The file
    /// is streamed: what comes before the first line costs time, not memory.
    pub fn read_lines(&self, path: &Path, first: Option<u32>, count: Option<u32>) -> Result<String, FileError> {
        let (file, path) = self.open_for_read(path)?;
        read::lines(file, first, count, self.read_limit, read::FARTHEST).map_err(|error| error.at(path))
    }

    /// Writes a file beneath a root, and the directories it needs.
    ///
    /// The new file takes the place of the old one in one step, so that nobody sees half of it and a full disk harms
    /// nothing. It has the old one's permissions (set-id bits aside, as with any write) and, where the system lets us,
    /// its owner; access lists and extended attributes are not carried over. A link is written through, not replaced.
    /// What may not be written is not replaced either. Other names of a file with several keep the old content.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), FileError> {
        self.write_bytes(path, text.as_bytes())
    }

    /// Opens a file beneath a root for reading. Only a regular file, and reading it never waits for anybody but the disk.
    pub fn open_for_read(&self, path: &Path) -> Result<(std::fs::File, PathBuf), FileError> {
        self.open_for(path, sys::Access::Read)
    }

    fn open_for(&self, path: &Path, access: sys::Access) -> Result<(std::fs::File, PathBuf), FileError> {
        retry(|| {
            let spot = self.spot(path)?;
            let file = self.roots.open_file(&spot, access)?;
            self.check_links(&file, &spot)?;
            Ok((file, spot.path))
        })
    }

    /// Reads a whole file beneath a root as bytes, if it has no more than `limit`.
    pub fn read_bytes(&self, path: &Path, limit: usize) -> Result<Vec<u8>, FileError> {
        let (file, path) = self.open_for_read(path)?;
        read::bytes(file, limit).map_err(|error| error.at(path))
    }

    /// Writes a file beneath a root, as [`write`](Files::write) does, of any bytes.
    pub fn write_bytes(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        retry(|| {
            let spot = self.spot(path)?;
            let old = match spot.found {
                resolve::Found::Nothing => None,
                // Opened for writing, though never written to: what we may not write we do not replace.
                _ => Some(self.roots.open_file(&spot, sys::Access::Write)?),
            };
            if let Some(old) = &old {
                self.check_links(old, &spot)?;
            }
            write::replace(self.roots.base(&spot)?, &spot, old, content)
        })
    }

    fn resolve(&self, path: &Path) -> Result<Spot, FileError> {
        self.roots.resolve(path, self.follows_links, self.is_allowed(path))
    }

    /// Where the path leads, if that is beneath a root or was allowed.
    fn spot(&self, path: &Path) -> Result<Spot, FileError> {
        let spot = self.resolve(path)?;
        self.check_place(spot.root(), &spot.path)?;
        Ok(spot)
    }

    fn check_place(&self, root: Option<usize>, path: &Path) -> Result<(), FileError> {
        if root.is_none() && !self.is_allowed(path) {
            return Err(FileError::Outside { path: path.to_owned() });
        }
        Ok(())
    }

    fn check_links(&self, file: &std::fs::File, spot: &Spot) -> Result<(), FileError> {
        let links = sys::links(file).map_err(|error| FileError::io(error, &spot.path))?;
        if links > 1 && !self.is_allowed(&spot.path) {
            return Err(FileError::HardLink { path: spot.path.clone() });
        }
        Ok(())
    }

    fn is_allowed(&self, path: &Path) -> bool {
        self.allowed.iter().any(|allowed| allowed == path)
    }
}

impl From<Spot> for Place {
    fn from(spot: Spot) -> Self {
        match spot.root() {
            Some(root) => Place::Inside { root, relative: spot.relative, path: spot.path },
            None => Place::Outside { path: spot.path },
        }
    }
}

fn retry<T>(attempt: impl Fn() -> Result<T, FileError>) -> Result<T, FileError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(FileError::Changed { .. }) => {}
            result => return result,
        }
    }
    attempt()
}
