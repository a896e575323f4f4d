//! Where a path leads: as it is written, and as the file system has it.

use std::path::{Component, Path, PathBuf};

use attache::model::tool::ToolKind;

use super::secrets;
use crate::paths::{self, Start};

/// What paths are seen against.
#[derive(Debug)]
pub(super) struct Ground {
    /// The roots of the session, as written and as the file system has them.
    roots: Vec<PathBuf>,
    /// Directories of our own, which hold rules and trust.
    own: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Ground {
    pub(super) fn new(roots: &[PathBuf], own: &[PathBuf]) -> Self {
        // A relative root would be beneath wherever this process happens to be.
        let roots: Vec<&PathBuf> = roots.iter().filter(|root| root.is_absolute()).collect();
        let both = |path: &PathBuf| {
            [Some(normal(&paths::without_verbatim(path.clone()))), paths::canonicalize(path).ok()].into_iter().flatten()
        };
        Ground {
            roots: roots.into_iter().flat_map(both).collect(),
            own: own.iter().flat_map(both).collect(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
        }
    }

    /// A pattern or path that begins with `~/`, from the home directory.
    fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if path == "~" => self.home.clone().unwrap_or_else(|| path.into()),
            _ => path.into(),
        }
    }

    /// Where a path leads that is meant from `cwd`.
    pub(super) fn place<'a>(&'a self, path: &str, cwd: &Path) -> Place<'a> {
        let named = match address(path) {
            Address::None => Some(self.expand(path)),
            Address::File(path) => Some(path),
            Address::Unknown => None,
        };
        let path = cwd.join(named.as_deref().unwrap_or(path.as_ref()));
        // What is not clear is seen as it is written by rules that deny, and is beneath no root.
        let is_clear = named.is_some_and(|named| self.is_clear(&named, &path));
        Place { ground: self, forms: vec![Some(normal(&path)), is_clear.then(|| real(&path)).flatten()] }
    }

    /// Whether a path means one file, wherever it is read, and can be looked at. On Windows that is not so for one without its
    /// disk (`\x`), for devices and streams, and for another machine's, which learns who looks.
    fn is_clear(&self, named: &Path, path: &Path) -> bool {
        if !cfg!(windows) {
            return true;
        }
        let is_whole = named.is_absolute() || !named.has_root();
        let mut names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let is_near = match paths::start(path) {
            Some(Start::Here(_)) => true,
            Some(Start::Remote(_)) => self.in_roots(path).next().is_some(),
            None => false,
        };
        is_whole && is_near && names.all(paths::is_plain_name)
    }

    fn in_roots<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        self.roots.iter().filter_map(|root| paths::strip_prefix(path, root))
    }
}

/// Where a path leads. Both forms have to fit for a yes; one is enough for a no.
#[derive(Debug)]
pub(super) struct Place<'a> {
    ground: &'a Ground,
    /// As written, and as the file system has it; `None` where that could not be found out.
    forms: Vec<Option<PathBuf>>,
}

impl<'a> Place<'a> {
    /// Whether it is beneath the roots in every form.
    pub(super) fn is_beneath_roots(&self) -> bool {
        self.forms.iter().all(|form| form.as_ref().is_some_and(|path| self.in_roots(path).next().is_some()))
    }

    /// Whether it is asked about even where patterns and modes allow.
    pub(super) fn is_guarded(&self, kind: &ToolKind) -> bool {
        self.forms.iter().flatten().any(|path| {
            let guarded = |path: &Path| path.to_str().is_none_or(|path| secrets::is_guarded(path, kind));
            let own = self.ground.own.iter().any(|own| paths::starts_with(path, own));
            let mut inside = self.in_roots(path).peekable();
            // What leads to a root was chosen by the user.
            own || if inside.peek().is_some() { inside.any(guarded) } else { guarded(path) }
        })
    }

    /// Whether a path without wildcards is this one.
    pub(super) fn is_literally(&self, path: &str) -> bool {
        self.names_for(path)
            .iter()
            .all(|form| form.iter().any(|name| paths::is_same(name.as_ref(), &self.ground.expand(path))))
    }

    /// The names that a pattern is compared with, for each form: from the top, or from each root that it is beneath.
    pub(super) fn names_for(&self, pattern: &str) -> Vec<Vec<String>> {
        let absolute = self.ground.expand(pattern).is_absolute();
        let names = |form: &Option<PathBuf>| -> Vec<String> {
            let Some(path) = form else { return Vec::new() };
            let name = |path: &Path| path.to_str().map(str::to_owned);
            if absolute { name(path).into_iter().collect() } else { self.in_roots(path).filter_map(name).collect() }
        };
        self.forms.iter().map(names).collect()
    }

    /// A pattern with its `~/` resolved, to be compared with the names.
    pub(super) fn pattern(&self, pattern: &str) -> String {
        self.ground.expand(pattern).to_string_lossy().into_owned()
    }

    /// A path seen from here, as it is written only.
    pub(super) fn join_lexically(&self, path: &str) -> Place<'a> {
        let join = |form: &PathBuf| Some(normal(&form.join(self.ground.expand(path))));
        Place { ground: self.ground, forms: self.forms.iter().flatten().map(join).collect() }
    }

    /// The path as it is written, from the top.
    pub(super) fn written(&self) -> Option<&Path> {
        self.forms.first().and_then(Option::as_deref)
    }

    fn in_roots<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        self.ground.in_roots(path)
    }
}

/// What a path is that may be an address.
enum Address {
    /// It is a path.
    None,
    /// A file of this machine, decoded.
    File(PathBuf),
    /// It cannot be told for certain what whoever opens it makes of it.
    Unknown,
}

/// Reads `file:/x`, `file:///x` and `file://localhost/x`, with `%2e` and the like as what they stand for.
fn address(text: &str) -> Address {
    let Some((scheme, rest)) = text.split_once(':') else { return Address::None };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !scheme.eq_ignore_ascii_case("file") {
        // `a:b` is a fine name of a file.
        return if is_scheme && rest.starts_with("//") { Address::Unknown } else { Address::None };
    }
    paths::from_uri(text).map_or(Address::Unknown, Address::File)
}

/// A command with its paths resolved.
#[derive(Debug)]
pub(super) struct Execution<'a> {
    pub(super) cwd: Place<'a>,
    /// Files that the agent says it works on.
    pub(super) places: Vec<Place<'a>>,
    /// The directories that its parts may run in, as they are written, for rules that deny: `cwd` and where each `cd` may lead.
    /// `None` if there are too many.
    pub(super) directories: Option<Vec<Place<'a>>>,
}

/// In more directories no command is judged. Each `cd` to a relative one doubles how many there may be.
pub(super) const MAX_DIRECTORIES: usize = 16;

impl<'a> Execution<'a> {
    /// A command that goes to these directories, one after the other.
    pub(super) fn new<'p>(cwd: Place<'a>, places: Vec<Place<'a>>, visited: impl Iterator<Item = &'p String>) -> Self {
        let mut directories = vec![cwd.join_lexically("")];
        for path in visited {
            // Whether a `cd` succeeds is not known.
            for index in 0..directories.len() {
                let next = directories[index].join_lexically(path);
                if !directories.iter().any(|known| known.forms == next.forms) {
                    directories.push(next);
                }
            }
            if directories.len() > MAX_DIRECTORIES {
                return Execution { cwd, places, directories: None };
            }
        }
        Execution { cwd, places, directories: Some(directories) }
    }
}

/// A path without `.` and `..`, as it is written.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    normal
}

/// A path as the file system has it: what exists is resolved, what does not yet exist is added as it is.
fn real(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match paths::canonicalize(existing) {
            Ok(real) => return Some(missing.iter().rev().fold(real, |path, name| path.join(name))),
            // A link that leads nowhere exists, and whoever writes there decides where it leads.
            Err(_) if existing.symlink_metadata().is_ok() => return None,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Without a name it ends in `..`, which cannot be told without what it goes up from.
                missing.push(existing.file_name()?);
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    }
}
