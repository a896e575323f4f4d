//! Where a path leads: links and `..` followed by hand, step by step, from a root or from `/`.
//!
//! Nothing is decided by what is found here. It gives a path without links, and the kernel is asked to open exactly
//! that beneath a root; if a link has got in by then, it refuses.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::{Component, Path, PathBuf},
};

use super::{
    FileError,
    sys::{self, Dir, Kind},
};

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// As long as Linux takes. An agent may send a path of many megabytes, and a walk costs memory for each name.
const LONGEST_PATH: usize = 4096;

/// The directories that paths may lead into without a question.
#[derive(Debug)]
pub(super) struct Roots {
    roots: Vec<Root>,
    /// `/`, for what is outside.
    top: Dir,
}

#[derive(Debug)]
struct Root {
    dir: Dir,
    given: PathBuf,
    real: PathBuf,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Spot {
    /// The root it is beneath, if any.
    pub(super) root: Option<usize>,
    /// The path from that root, or from `/`: names only, none of them a link.
    pub(super) relative: PathBuf,
    /// The whole path.
    pub(super) path: PathBuf,
    pub(super) found: Found,
}

/// What is at a spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Directory,
    File,
    Other,
}

/// A walk along a path. Where it stands: the names in `done`, from `root` or from `/`.
struct Walk {
    root: Option<usize>,
    done: Vec<OsString>,
    todo: VecDeque<OsString>,
    found: Found,
}

impl Roots {
    pub(super) fn open<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Self, FileError> {
        let explain = |error| FileError::io(error, Path::new("/"));
        let top = Dir::open(Path::new("/")).map_err(explain)?;
        if !sys::can_open_beneath(&top).map_err(explain)? {
            return Err(FileError::NoKernelSupport);
        }
        let roots = paths.map(Root::open).collect::<Result<_, _>>()?;
        Ok(Self { roots, top })
    }

    pub(super) fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.roots.iter().map(|root| root.real.as_path())
    }

    /// Whether each root is still found by the path that it had without links.
    pub(super) fn are_in_place(&self) -> bool {
        self.roots.iter().all(|root| {
            let is_same = || Dir::open(&root.real).and_then(|now| root.dir.is_same(&now));
            root.real.canonicalize().is_ok_and(|now| now == root.real) && is_same().unwrap_or(false)
        })
    }

    /// The directory that a spot's relative path starts from.
    pub(super) fn base(&self, spot: &Spot) -> &Dir {
        spot.root.map_or(&self.top, |root| &self.roots[root].dir)
    }

    /// Opens the regular file at a spot, and nothing else.
    pub(super) fn open_file(&self, spot: &Spot, access: sys::Access) -> Result<File, FileError> {
        match spot.found {
            Found::File => {}
            Found::Nothing => return Err(FileError::NotFound { path: spot.path.clone() }),
            Found::Directory | Found::Other => return Err(FileError::NotAFile { path: spot.path.clone() }),
        }
        let file = self.base(spot).open_file(&spot.relative, access).map_err(|error| moved(error, &spot.path))?;
        // It was a file a moment ago. What was opened counts; opening it did not block, whatever it is.
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(FileError::NotAFile { path: spot.path.clone() }),
            Err(error) => Err(FileError::io(error, &spot.path)),
        }
    }

    /// Follows a path to its end, which need not exist. A link on it has come in since if it is one without links.
    pub(super) fn resolve(&self, path: &Path, follows_links: bool) -> Result<Spot, FileError> {
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(FileError::TooLong);
        }
        if !path.is_absolute() {
            return Err(FileError::Relative { path: path.to_owned() });
        }
        let mut links = 0;
        let mut walk = self.walk_from(path, VecDeque::new());
        while let Some(name) = walk.todo.pop_front() {
            if name == ".." {
                self.step_up(&mut walk)?;
                continue;
            }
            match self.look(&mut walk, name)? {
                None => self.enter_root(&mut walk),
                Some(_) if !follows_links => return Err(FileError::Changed { path: path.to_owned() }),
                Some(_) if links == MOST_LINKS => return Err(FileError::TooManyLinks { path: path.to_owned() }),
                Some(target) => {
                    links += 1;
                    if target.has_root() {
                        walk = self.walk_from(&target, walk.todo);
                    } else {
                        for name in names(&target).rev() {
                            walk.todo.push_front(name.to_owned());
                        }
                    }
                }
            }
        }
        Ok(Spot {
            path: self.whole_path(&walk),
            root: walk.root,
            relative: walk.done.iter().collect(),
            found: walk.found,
        })
    }

    /// Whether a path is one of the roots, as the file system has it.
    pub(super) fn is_root(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| root.real == path)
    }

    /// Begins at the root whose path `path` begins with, or else at `/`.
    fn walk_from(&self, path: &Path, rest: VecDeque<OsString>) -> Walk {
        let beginnings = self.roots.iter().enumerate().flat_map(|(index, root)| {
            [&root.given, &root.real]
                .into_iter()
                .filter_map(move |begin| Some((index, begin, begins_with(path, begin)?)))
        });
        // The longest beginning wins, for roots within roots.
        let best = beginnings.max_by_key(|(_, begin, _)| begin.components().count());
        let (root, names): (_, Vec<_>) = match best {
            Some((index, _, names)) => (Some(index), names),
            None => (None, names(path).collect()),
        };
        let todo = names.into_iter().map(OsStr::to_owned).chain(rest).collect();
        let mut walk = Walk { root, done: Vec::new(), todo, found: Found::Directory };
        self.enter_root(&mut walk);
        walk
    }

    /// Looks at the next name. Gives a link's target; stands on anything else.
    fn look(&self, walk: &mut Walk, name: OsString) -> Result<Option<PathBuf>, FileError> {
        match walk.found {
            Found::Directory => {}
            Found::Nothing => {
                walk.done.push(name);
                return Ok(None);
            }
            Found::File | Found::Other => return Err(FileError::NotAFile { path: self.whole_path(walk) }),
        }
        let base = walk.root.map_or(&self.top, |root| &self.roots[root].dir);
        walk.done.push(name);
        let kind = base.look(&walk.done.iter().collect::<PathBuf>());
        walk.found = match kind {
            Ok(Kind::Directory) => Found::Directory,
            Ok(Kind::File) => Found::File,
            Ok(Kind::Other) => Found::Other,
            Ok(Kind::Link(target)) => {
                walk.done.pop();
                return Ok(Some(target));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
            Err(error) => return Err(moved(error, &self.whole_path(walk))),
        };
        Ok(None)
    }

    fn step_up(&self, walk: &mut Walk) -> Result<(), FileError> {
        match walk.found {
            Found::Directory => {}
            // As the kernel has it: nothing is beside what does not exist.
            Found::Nothing => return Err(FileError::NotFound { path: self.whole_path(walk) }),
            Found::File | Found::Other => return Err(FileError::NotAFile { path: self.whole_path(walk) }),
        }
        if let (Some(root), true) = (walk.root, walk.done.is_empty()) {
            walk.done = names(&self.roots[root].real).map(OsStr::to_owned).collect();
            walk.root = None;
        }
        walk.done.pop();
        self.enter_root(walk);
        Ok(())
    }

    /// Goes over to a root's handle when the walk from `/` has come to that root.
    fn enter_root(&self, walk: &mut Walk) {
        if walk.root.is_some() {
            return;
        }
        let is_here = |root: &Root| names(&root.real).eq(walk.done.iter().map(OsString::as_os_str));
        if let Some(root) = self.roots.iter().position(is_here) {
            walk.root = Some(root);
            walk.done.clear();
            walk.found = Found::Directory;
        }
    }

    fn whole_path(&self, walk: &Walk) -> PathBuf {
        let mut path = walk.root.map_or(PathBuf::from("/"), |root| self.roots[root].real.clone());
        path.extend(&walk.done);
        path
    }
}

impl Root {
    fn open(given: &Path) -> Result<Self, FileError> {
        if !given.is_absolute() {
            return Err(FileError::Relative { path: given.to_owned() });
        }
        let explain = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory => FileError::NotADirectory { path: given.to_owned() },
            _ => FileError::io(error, given),
        };
        let dir = Dir::open(given).map_err(explain)?;
        let real = given.canonicalize().map_err(explain)?;
        if !dir.is_same(&Dir::open(&real).map_err(explain)?).map_err(explain)? {
            return Err(FileError::Changed { path: given.to_owned() });
        }
        Ok(Self { dir, given: given.to_owned(), real })
    }
}

/// The error of opening a path without links that was there a moment ago: what looks like a link, or like nothing, has
/// changed since.
pub(super) fn moved(error: io::Error, path: &Path) -> FileError {
    if sys::is_changed(&error) { FileError::Changed { path: path.to_owned() } } else { FileError::io(error, path) }
}

/// The names after `begin`, if the path begins with it, name by name.
fn begins_with<'a>(path: &'a Path, begin: &Path) -> Option<Vec<&'a OsStr>> {
    path.strip_prefix(begin).ok().map(|rest| names(rest).collect())
}

/// The names on a path, `..` among them, without `/` and `.`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = &OsStr> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(Component::as_os_str)
}
