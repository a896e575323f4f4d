//! Where a path leads: as it is written, and as the file system has it.

use std::path::{Component, Path, PathBuf};

use attache::model::tool::ToolKind;

use super::secrets;

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
        let both = |path: &PathBuf| [Some(normal(path)), path.canonicalize().ok()].into_iter().flatten();
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
        let path = match address(path) {
            Address::None => cwd.join(self.expand(path)),
            Address::File(path) => cwd.join(path),
            // Seen as it is written by rules that deny, and beneath no root.
            Address::Unknown => return Place { ground: self, forms: vec![Some(normal(&cwd.join(path))), None] },
        };
        Place { ground: self, forms: vec![Some(normal(&path)), real(&path)] }
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
            let own = self.ground.own.iter().any(|own| path.starts_with(own));
            let mut inside = self.in_roots(path).peekable();
            // What leads to a root was chosen by the user.
            own || if inside.peek().is_some() { inside.any(guarded) } else { guarded(path) }
        })
    }

    /// Whether a path without wildcards is this one.
    pub(super) fn is_literally(&self, path: &str) -> bool {
        self.names_for(path)
            .iter()
            .all(|form| form.iter().any(|name| *name == *self.ground.expand(path).to_string_lossy()))
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
        self.ground.roots.iter().filter_map(|root| path.strip_prefix(root).ok())
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
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Address::Unknown;
            }
            &rest[host.len()..]
        }
        None => rest,
    };
    // A query is cut off by some and part of the name for others.
    let decoded = (path.starts_with('/') && !path.contains(['?', '#'])).then(|| decoded(path)).flatten();
    decoded.map_or(Address::Unknown, |path| Address::File(path.into()))
}

/// A text with its `%XX` decoded, once. Nothing for what would be something else if it were decoded again, or is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, tail) = rest.split_at_checked(2)?;
        // `from_str_radix` takes a sign as well.
        let hex = std::str::from_utf8(hex).ok().filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(['%', '\0']))
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
        match existing.canonicalize() {
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
