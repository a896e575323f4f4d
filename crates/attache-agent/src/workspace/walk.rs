//! All files beneath a directory, in order, without those that git ignores.
//!
//! Directories are opened from the roots' handles and links are never followed, so the walk cannot be led outside, not
//! even by somebody who swaps a directory for a link meanwhile.

use std::path::{Path, PathBuf};

use attache_host::files::{Entry, EntryKind, FileError, Files, Info};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Stop;

/// How many names are looked at in all. They are kept while their directories are being walked.
const MOST_NAMES: usize = 500_000;

/// How large a `.gitignore` may be.
const IGNORE_LIMIT: usize = 1 << 20;

/// A walk through a directory: an iterator over files, in the order of their paths. Links and devices are left out, and
/// directories are walked through without being told, unless [`Walk::with_links_and_directories`] asks for them.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    files: Files,
    stop: &'a Stop,
    levels: Vec<Level>,
    names_left: usize,
    tells_all: bool,
    /// What applies to everything: the user's own, and the directories above.
    above: Vec<Gitignore>,
    /// Directories that could not be read.
    pub(crate) unreadable: usize,
    /// The walk has ended before its end: the time or the number of names is used up.
    pub(crate) is_cut: bool,
}

/// A directory on the way, with what is still to come in it.
#[derive(Debug)]
struct Level {
    /// From the start.
    relative: PathBuf,
    path: PathBuf,
    entries: std::vec::IntoIter<Entry>,
    ignored: Gitignore,
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// From the directory where the walk began.
    pub(crate) relative: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) info: Info,
}

impl<'a> Walk<'a> {
    /// Begins at a directory, given without links.
    pub(crate) fn new(files: &Files, start: &Path, stop: &'a Stop) -> Result<Self, FileError> {
        let mut walk = Walk {
            files: files.clone().without_links(),
            stop,
            levels: Vec::new(),
            names_left: MOST_NAMES,
            tells_all: false,
            above: ignored_above(files, start),
            unreadable: 0,
            is_cut: false,
        };
        walk.enter(PathBuf::new(), start.to_owned())?;
        Ok(walk)
    }

    /// The same with links, which are not followed, and with directories, each before what is in it.
    pub(crate) fn with_links_and_directories(mut self) -> Self {
        self.tells_all = true;
        self
    }

    /// Whether git ignores a name in the directory where the walk began.
    pub(crate) fn ignores(&self, path: &Path, is_directory: bool) -> bool {
        let levels = self.levels.iter().rev().map(|level| &level.ignored);
        for ignored in levels.chain(&self.above) {
            match ignored.matched(path, is_directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }

    fn enter(&mut self, relative: PathBuf, path: PathBuf) -> Result<(), FileError> {
        let listing = self.files.list(&path, self.names_left)?;
        self.is_cut |= listing.is_cut;
        self.names_left -= listing.entries.len();
        let has_own = listing.entries.iter().any(|entry| entry.name == ".gitignore");
        let ignored =
            if has_own { read_ignored(&self.files, &path, &path.join(".gitignore")) } else { Gitignore::empty() };
        self.levels.push(Level { relative, path, entries: listing.entries.into_iter(), ignored });
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let level = self.levels.last_mut()?;
            if self.stop.is_over() {
                self.is_cut = true;
                return None;
            }
            let Some(entry) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            // A file of that name is the link of a worktree to its repository.
            if entry.name == ".git" {
                continue;
            }
            let (relative, path) = (level.relative.join(&entry.name), level.path.join(&entry.name));
            let is_directory = entry.info.kind == EntryKind::Directory;
            let is_left_out = match entry.info.kind {
                EntryKind::Link => !self.tells_all,
                EntryKind::Other => true,
                EntryKind::Directory | EntryKind::File => false,
            };
            if is_left_out || self.ignores(&path, is_directory) {
                continue;
            }
            let found = Found { relative, path, info: entry.info };
            if !is_directory {
                return Some(found);
            }
            if self.enter(found.relative.clone(), found.path.clone()).is_err() {
                self.unreadable += 1;
            }
            if self.tells_all {
                return Some(found);
            }
        }
    }
}

/// What is ignored by the directories above, up to the top of the repository, the nearest first; then by the repository
/// itself, and by the user everywhere.
fn ignored_above(files: &Files, start: &Path) -> Vec<Gitignore> {
    // These files decide what is left out and are shown to nobody, so they are read outside of the roots as well.
    let has_git = |directory: &Path| {
        let git = directory.join(".git");
        files.clone().allow(&git).stat(&git).is_ok()
    };
    let top = start.ancestors().find(|directory| has_git(directory));
    let mut ignored = Vec::new();
    if let Some(top) = top {
        for directory in start.ancestors().skip(1).take_while(|directory| directory.starts_with(top)) {
            ignored.push(read_ignored(files, directory, &directory.join(".gitignore")));
        }
        ignored.push(read_ignored(files, top, &top.join(".git/info/exclude")));
    }
    ignored.push(Gitignore::global().0);
    ignored.retain(|ignored| !ignored.is_empty());
    ignored
}

/// The rules of a file, as far as they can be read.
fn read_ignored(files: &Files, directory: &Path, file: &Path) -> Gitignore {
    let Ok(bytes) = files.clone().allow(file).read_bytes(file, IGNORE_LIMIT) else { return Gitignore::empty() };
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern ignores nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;
    use std::time::Duration;

    use super::*;

    fn walked(files: &Files, start: &Path) -> Vec<String> {
        let stop = Stop::after(Duration::from_secs(10));
        let walk = Walk::new(files, start, &stop).unwrap();
        walk.map(|found| found.relative.to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/")).collect()
    }

    #[test]
    fn what_git_ignores_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let top = attache_host::paths::canonicalize(dir.path()).unwrap();
        for (path, content) in [
            (".git/HEAD", ""),
            (".git/info/exclude", "excluded\n"),
            (".gitignore", "\u{feff}target/\n*.log\n!keep.log\n/only-top\n[\n"),
            ("target/a", ""),
            ("sub/target/a", ""),
            ("sub/x.log", ""),
            ("sub/keep.log", ""),
            ("sub/only-top", ""),
            ("only-top", ""),
            ("excluded", ""),
            (".hidden", ""),
            ("sub/deep/.gitignore", "!x.log\nlocal\n"),
            ("sub/deep/x.log", ""),
            ("sub/deep/local", ""),
            ("sub/deep/module/.git", "gitdir: elsewhere"),
            ("sub/deep/module/file", ""),
        ] {
            fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
            fs::write(top.join(path), content).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", top.join("link")).unwrap();
        let below = ["deep/.gitignore", "deep/module/file", "deep/x.log", "keep.log", "only-top"];
        let all: Vec<String> = [".gitignore".to_owned(), ".hidden".to_owned()]
            .into_iter()
            .chain(below.map(|name| format!("sub/{name}")))
            .collect();
        assert_eq!(walked(&Files::open(&top, &[]).unwrap(), &top), all);
        // From within, what is above is known as well, even where it is no longer part of the session.
        let sub = top.join("sub");
        assert_eq!(walked(&Files::open(&sub, &[]).unwrap(), &sub), below);
        // What is named is wanted.
        assert_eq!(walked(&Files::open(&top, &[]).unwrap(), &top.join("target")), ["a"]);
    }

    #[test]
    fn a_walk_ends_when_it_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let top = attache_host::paths::canonicalize(dir.path()).unwrap();
        fs::write(top.join("a"), "").unwrap();
        let stop = Stop::after(Duration::ZERO);
        let mut walk = Walk::new(&Files::open(&top, &[]).unwrap(), &top, &stop).unwrap();
        assert!(walk.next().is_none());
        assert!(walk.is_cut);
    }
}
