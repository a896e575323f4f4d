//! Where a path leads: links and `..` followed by hand, step by step, from a root or from `/`, on Windows from a disk.
//!
//! Nothing is decided by what is found here. It gives a path without links, and the kernel is asked to open exactly
//! that beneath a root; if a link has got in by then, it refuses.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    FileError,
    sys::{self, Dir, Kind},
};
use crate::paths::{self, Start};

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// As long as Linux takes. An agent may send a path of many megabytes, and a walk costs memory for each name.
const LONGEST_PATH: usize = 4096;

/// The directories that paths may lead into without a question.
#[derive(Debug)]
pub(super) struct Roots {
    roots: Vec<Root>,
    /// `/`, for what is outside. Windows has no such directory, and disks are not held open.
    top: Option<Arc<Top>>,
}

/// Where a path begins that is beneath no root: `/`, a disk.
#[derive(Debug)]
pub(super) struct Top {
    dir: Dir,
    path: PathBuf,
}

/// What the names of a path are looked up in.
#[derive(Debug, Clone)]
enum Base {
    /// A root, by its number.
    Root(usize),
    Top(Arc<Top>),
    /// Another machine, which is not asked unless a person has allowed it.
    Remote(PathBuf),
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
    base: Base,
    /// The path from there: names only, none of them a link.
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

impl Spot {
    /// The root it is beneath, if any.
    pub(super) fn root(&self) -> Option<usize> {
        match self.base {
            Base::Root(root) => Some(root),
            Base::Top(_) | Base::Remote(_) => None,
        }
    }
}

/// A walk along a path. Where it stands: the names in `done`, from `base`.
struct Walk {
    base: Base,
    done: Vec<OsString>,
    todo: VecDeque<OsString>,
    found: Found,
}

impl Roots {
    pub(super) fn open<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Self, FileError> {
        let top = match cfg!(windows) {
            true => None,
            false => {
                let top = Top::open("/".into())?;
                let can_open = sys::can_open_beneath(&top.dir).map_err(|error| FileError::io(error, &top.path))?;
                if !can_open {
                    return Err(FileError::NoKernelSupport);
                }
                Some(Arc::new(top))
            }
        };
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
            paths::canonicalize(&root.real).is_ok_and(|now| now == root.real) && is_same().unwrap_or(false)
        })
    }

    /// The directory that a spot's relative path starts from.
    pub(super) fn base<'a>(&'a self, spot: &'a Spot) -> Result<&'a Dir, FileError> {
        self.dir(&spot.base).ok_or_else(|| FileError::Outside { path: spot.path.clone() })
    }

    fn dir<'a>(&'a self, base: &'a Base) -> Option<&'a Dir> {
        match base {
            Base::Root(root) => Some(&self.roots[*root].dir),
            Base::Top(top) => Some(&top.dir),
            Base::Remote(_) => None,
        }
    }

    /// Opens the regular file at a spot, and nothing else.
    pub(super) fn open_file(&self, spot: &Spot, access: sys::Access) -> Result<File, FileError> {
        match spot.found {
            Found::File => {}
            Found::Nothing => return Err(FileError::NotFound { path: spot.path.clone() }),
            Found::Directory | Found::Other => return Err(FileError::NotAFile { path: spot.path.clone() }),
        }
        let file = self.base(spot)?.open_file(&spot.relative, access).map_err(|error| moved(error, &spot.path))?;
        // It was a file a moment ago. What was opened counts; opening it did not block, whatever it is.
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(FileError::NotAFile { path: spot.path.clone() }),
            Err(error) => Err(FileError::io(error, &spot.path)),
        }
    }

    /// Follows a path to its end, which need not exist. A link on it has come in since if it is one without links.
    ///
    /// Another machine is only asked about what is beneath a root, or if `is_allowed`: it learns who asks.
    pub(super) fn resolve(&self, path: &Path, follows_links: bool, is_allowed: bool) -> Result<Spot, FileError> {
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(FileError::TooLong);
        }
        if !path.is_absolute() {
            return Err(FileError::Relative { path: path.to_owned() });
        }
        let mut links = 0;
        let mut walk = self.walk_from(path, VecDeque::new(), is_allowed)?;
        while let Some(name) = walk.todo.pop_front() {
            if let Base::Remote(_) = walk.base {
                // Taken as it is written; nothing is opened there.
                match name == ".." {
                    true => _ = walk.done.pop(),
                    false => walk.done.push(name),
                }
                walk.found = Found::Nothing;
                continue;
            }
            if name == ".." {
                self.step_up(&mut walk)?;
                continue;
            }
            if !paths::is_plain_name(&name) {
                return Err(FileError::BadName { path: path.to_owned() });
            }
            match self.look(&mut walk, name)? {
                None => self.enter_root(&mut walk),
                Some(_) if !follows_links => return Err(FileError::Changed { path: path.to_owned() }),
                Some(_) if links == MOST_LINKS => return Err(FileError::TooManyLinks { path: path.to_owned() }),
                Some(target) => {
                    links += 1;
                    if target.is_absolute() {
                        walk = self.walk_from(&target, walk.todo, is_allowed)?;
                    } else if target.has_root() || matches!(target.components().next(), Some(Component::Prefix(_))) {
                        // `\x` and `C:x`, which mean something only where we happen to be.
                        return Err(FileError::BadName { path: target });
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
            base: walk.base,
            relative: walk.done.iter().collect(),
            found: walk.found,
        })
    }

    /// Whether a path is one of the roots, as the file system has it.
    pub(super) fn is_root(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| paths::is_same(&root.real, path))
    }

    /// Begins at the root whose path `path` begins with, or else at `/` or its disk.
    fn walk_from(&self, path: &Path, rest: VecDeque<OsString>, is_allowed: bool) -> Result<Walk, FileError> {
        let beginnings = self.roots.iter().enumerate().flat_map(|(index, root)| {
            [&root.given, &root.real]
                .into_iter()
                .filter_map(move |begin| Some((index, begin, begins_with(path, begin)?)))
        });
        // The longest beginning wins, for roots within roots.
        let best = beginnings.max_by_key(|(_, begin, _)| begin.components().count());
        let (base, names): (_, Vec<_>) = match best {
            Some((index, _, names)) => (Base::Root(index), names),
            None => (self.top(path, is_allowed)?, names(path).collect()),
        };
        let todo = names.into_iter().map(OsStr::to_owned).chain(rest).collect();
        let mut walk = Walk { base, done: Vec::new(), todo, found: Found::Directory };
        self.enter_root(&mut walk);
        Ok(walk)
    }

    /// Where a path begins that is beneath no root.
    fn top(&self, path: &Path, is_allowed: bool) -> Result<Base, FileError> {
        if let Some(top) = &self.top {
            return Ok(Base::Top(top.clone()));
        }
        match paths::start(path) {
            Some(Start::Remote(start)) if !is_allowed => Ok(Base::Remote(start)),
            Some(Start::Here(start) | Start::Remote(start)) => Ok(Base::Top(Arc::new(Top::open(start)?))),
            None => Err(FileError::BadName { path: path.to_owned() }),
        }
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
        walk.done.push(name);
        let path: PathBuf = walk.done.iter().collect();
        let Some(base) = self.dir(&walk.base) else { return Err(FileError::Outside { path: self.whole_path(walk) }) };
        walk.found = match base.look(&path) {
            Ok((Kind::Link(target), _)) => {
                walk.done.pop();
                return Ok(Some(target));
            }
            Ok((kind, real_name)) => {
                if let Some(real_name) = real_name {
                    walk.done.pop();
                    walk.done.push(real_name);
                }
                match kind {
                    Kind::Directory => Found::Directory,
                    Kind::File => Found::File,
                    Kind::Other | Kind::Link(_) => Found::Other,
                }
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
        if let (Base::Root(root), true) = (&walk.base, walk.done.is_empty()) {
            let real = &self.roots[*root].real;
            walk.done = names(real).map(OsStr::to_owned).collect();
            // The root was there, so whatever is above it is no news to anybody.
            walk.base = self.top(real, true)?;
        }
        walk.done.pop();
        self.enter_root(walk);
        Ok(())
    }

    /// Goes over to a root's handle when the walk from `/` has come to that root.
    fn enter_root(&self, walk: &mut Walk) {
        if let Base::Root(_) = walk.base {
            return;
        }
        let here = self.whole_path(walk);
        if let Some(root) = self.roots.iter().position(|root| paths::is_same(&root.real, &here)) {
            walk.base = Base::Root(root);
            walk.done.clear();
            walk.found = Found::Directory;
        }
    }

    fn whole_path(&self, walk: &Walk) -> PathBuf {
        let mut path = match &walk.base {
            Base::Root(root) => self.roots[*root].real.clone(),
            Base::Top(top) => top.path.clone(),
            Base::Remote(start) => start.clone(),
        };
        path.extend(&walk.done);
        path
    }
}

impl Top {
    fn open(path: PathBuf) -> Result<Self, FileError> {
        let dir = Dir::open(&path).map_err(|error| FileError::io(error, &path))?;
        Ok(Self { dir, path })
    }
}

impl Root {
    fn open(given: &Path) -> Result<Self, FileError> {
        if !given.is_absolute() {
            return Err(FileError::Relative { path: given.to_owned() });
        }
        if paths::start(given).is_none() || names(given).any(|name| name != ".." && !paths::is_plain_name(name)) {
            return Err(FileError::BadName { path: given.to_owned() });
        }
        let explain = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory => FileError::NotADirectory { path: given.to_owned() },
            _ => FileError::io(error, given),
        };
        let dir = Dir::open(given).map_err(explain)?;
        let real = paths::canonicalize(given).map_err(explain)?;
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
    paths::strip_prefix(path, begin).map(|rest| names(rest).collect())
}

/// The names on a path, `..` among them, without `/` and `.`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = &OsStr> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(Component::as_os_str)
}
