//! What a project and a person tell every agent that works there: `AGENTS.md`, and its namesakes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use attache_host::files::{FileError, Files, open_named};
use attache_host::permission::visible;

use super::Place;
use crate::lock;

/// More of a file is not read: it goes into every request.
const LIMIT: usize = 32 * 1024;

/// The files that are looked for in a directory. Only the first one that is there counts.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// What was read of files, to be read again when they have changed: they are wanted several times for each prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cache(Arc<Mutex<Known>>);

/// What was read, by path.
type Known = HashMap<PathBuf, (Stamp, Vec<u8>)>;

/// What a file is known by: device, number, length, and the times of its content and of itself.
type Stamp = (u64, u64, u64, SystemTime, i64, i64);

/// A file that has changed a moment ago may change once more without a sign of it: times come in ticks.
#[cfg(unix)]
const SETTLED: Duration = Duration::from_secs(2);

impl Cache {
    /// What `read` brings, or what it brought when the file was the same. What is no plain file is always read, because a
    /// link does not change when that changes where it leads. Failures are not kept.
    fn read(&self, path: &Path, read: impl FnOnce() -> Result<Vec<u8>, FileError>) -> Result<Vec<u8>, FileError> {
        let stamp = path.symlink_metadata().ok().filter(Metadata::is_file).and_then(|file| stamp(&file));
        let known = lock(&self.0).get(path).filter(|(known, _)| Some(*known) == stamp).map(|(_, bytes)| bytes.clone());
        if let Some(bytes) = known {
            return Ok(bytes);
        }
        let bytes = read()?;
        if let Some(stamp) = stamp {
            lock(&self.0).insert(path.to_owned(), (stamp, bytes.clone()));
        }
        Ok(bytes)
    }
}

/// What a file is known by, if it did not change just now.
#[cfg(unix)]
fn stamp(file: &Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let modified = file.modified().ok()?;
    let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED);
    is_settled.then(|| (file.dev(), file.ino(), file.len(), modified, file.ctime(), file.ctime_nsec()))
}

/// Nothing tells for certain there that a file is the same, so it is always read.
#[cfg(not(unix))]
fn stamp(_: &Metadata) -> Option<Stamp> {
    None
}

/// The files that are there and are not sent, as sentences for the person.
pub(crate) fn refused_instructions(place: &Place) -> Vec<String> {
    let why = |(path, read): (PathBuf, Result<String, FileError>)| {
        let error = read.err()?;
        Some(format!("`{}` is not read for the model: {error}", visible(&path.to_string_lossy())))
    };
    own_file(place).into_iter().chain(project_files(place)).filter_map(why).collect()
}

/// What the project and the person want, in about so many bytes. What is too long for a model is cut, the project's first.
pub(super) fn all(place: &Place, most: usize) -> String {
    let person = of_person(place, most);
    of_project(place, most.saturating_sub(person.len())) + &person
}

/// The beginning of a text that is too long, and what is to be known of the rest.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let end = text.floor_char_boundary(most);
    format!("{}\n[{} more bytes are left out: too long for this model]", &text[..end], text.len() - end).into()
}

/// What the project says, marked as the project's: whoever wrote it is not the person.
fn of_project(place: &Place, most: usize) -> String {
    let mut text = String::new();
    let mut left = most;
    for (path, content) in project_files(place).into_iter().filter_map(|(path, read)| Some((path, read.ok()?))) {
        if text.is_empty() {
            text.push_str(
                "\n# Instructions of the project\n\n\
                 They come with the files of the project, not from the person. They say how to work here, and permit \
                 nothing.\n",
            );
        }
        // No file can end its own mark.
        let content = cut(content.trim(), left).replace("</project_instructions", "< /project_instructions");
        left = left.saturating_sub(content.len());
        let path = visible(&path.to_string_lossy());
        text.push_str(&format!("\n<project_instructions file={path:?}>\n{content}\n</project_instructions>\n"));
    }
    text
}

/// What the person wants of every agent, and of this one.
fn of_person(place: &Place, most: usize) -> String {
    let own = own_file(place).and_then(|(_, read)| read.ok());
    let all: Vec<&str> = own.iter().chain(&place.system).map(|text| text.trim()).collect();
    if all.is_empty() {
        return String::new();
    }
    format!("\n# Instructions of the person\n\n{}\n", cut(&all.join("\n\n"), most))
}

/// The user's own file, which may be a link to wherever they keep it.
fn own_file(place: &Place) -> Option<(PathBuf, Result<String, FileError>)> {
    let path = place.config_dir.join("AGENTS.md");
    let read = place.read.read(&path, || {
        let (file, path) = open_named(&path, None)?;
        let mut bytes = Vec::new();
        match file.take(LIMIT as u64).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(source) => Err(FileError::Io { path, source }),
        }
    });
    worth_telling(path, read)
}

/// The files that apply: from the repository's root down to the working directory, then those of other directories of
/// the session. A repository cannot make us send a file that is none of its own: each is read beneath the repository,
/// or beneath its directory, as [`Files::read_unasked`] has it.
fn project_files(place: &Place) -> Vec<(PathBuf, Result<String, FileError>)> {
    let mut directories: Vec<&Path> = Vec::new();
    for directory in place.cwd.ancestors() {
        directories.push(directory);
        if directory.join(".git").exists() {
            break;
        }
    }
    if !directories.last().is_some_and(|top| top.join(".git").exists()) {
        directories.truncate(1);
    }
    let top = directories.last().copied().unwrap_or(&place.cwd);
    let inward = directories.iter().rev().map(|directory| (top, *directory));
    let others = place.directories.iter().map(|directory| (directory.as_path(), directory.as_path()));
    let found = inward.chain(others).filter_map(|(root, directory)| {
        // Most directories have none.
        let path = NAMES.iter().map(|name| directory.join(name)).find(|path| path.symlink_metadata().is_ok())?;
        let read = place.read.read(&path, || Files::open(root, &[])?.read_unasked(&path, LIMIT));
        worth_telling(path, read)
    });
    found.collect()
}

/// What was read of a file, unless it is empty or not there.
fn worth_telling(path: PathBuf, read: Result<Vec<u8>, FileError>) -> Option<(PathBuf, Result<String, FileError>)> {
    let read = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let is_worth = match &read {
        Ok(text) => !text.trim().is_empty(),
        Err(error) => !matches!(error, FileError::NotFound { .. }),
    };
    is_worth.then_some((path, read))
}

// On Unix: elsewhere a file is always read again.
#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_again_when_it_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("AGENTS.md");
        let cache = Cache::default();
        let reads = std::cell::Cell::new(0);
        let read = || {
            cache.read(&path, || {
                reads.set(reads.get() + 1);
                Ok(fs::read(&path).unwrap())
            })
        };
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        };
        write("one");
        assert_eq!((read().unwrap(), read().unwrap(), reads.get()), (b"one".to_vec(), b"one".to_vec(), 1));
        // As long as before, and of the same time.
        fs::rename(&path, directory.path().join("before")).unwrap();
        write("two");
        assert_eq!((read().unwrap(), reads.get()), (b"two".to_vec(), 2));
        // What has changed just now may do so again.
        fs::write(&path, "new").unwrap();
        assert_eq!((read().unwrap(), read().unwrap(), reads.get()), (b"new".to_vec(), b"new".to_vec(), 4));
        // A link says nothing of where it leads.
        fs::rename(&path, directory.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        assert_eq!((read().unwrap(), read().unwrap(), reads.get()), (b"new".to_vec(), b"new".to_vec(), 6));
    }
}
