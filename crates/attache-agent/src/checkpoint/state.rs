//! What a path holds: kept before it is changed, and compared before it is taken back.

use std::io;
use std::path::{Path, PathBuf};

use attache_host::files::{EntryKind, FileError, Files};
use serde::{Deserialize, Serialize};

use super::contents::{Address, Contents};

/// Larger files are not kept.
pub(super) const LARGEST_FILE: usize = 8 << 20;

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(super) enum State {
    /// Nothing is there.
    Nothing,
    /// A file.
    File {
        /// Where its content is kept.
        content: Address,
        /// How many bytes it has.
        size: u64,
        /// Who may read, write and execute it.
        mode: u32,
    },
    /// A symbolic link, wherever it leads.
    Link {
        /// What is written in it.
        to: PathBuf,
    },
    /// A directory.
    Directory,
    /// Something that could not be kept, or not be looked at.
    Unkept {
        /// Why, for a person.
        why: String,
    },
}

impl State {
    /// A file that has this content.
    pub(super) fn file(bytes: &[u8], mode: u32) -> Self {
        State::File { content: Address::of(bytes), size: bytes.len() as u64, mode: mode & 0o777 }
    }

    pub(super) fn unkept(why: impl std::fmt::Display) -> Self {
        State::Unkept { why: why.to_string() }
    }

    /// What it is now, in place of what the agent left there.
    pub(super) fn as_found(&self, left: &State) -> &'static str {
        match (self, left) {
            (State::Nothing, _) => "it has been removed since",
            (State::Link { .. }, State::File { .. } | State::Directory | State::Nothing) => "it is a link now",
            (State::Directory, State::File { .. } | State::Link { .. } | State::Nothing) => "it is a directory now",
            (State::File { .. }, State::Nothing) => "it has been created since",
            (State::File { .. }, State::Link { .. } | State::Directory) => "it is a file now",
            (State::File { content, mode, .. }, State::File { content: left_content, mode: left_mode, .. })
                if content == left_content && mode != left_mode =>
            {
                "its permissions have changed since"
            }
            (State::Unkept { .. }, _) => "it cannot be compared with what the agent left there",
            _ => "it has changed since",
        }
    }
}

/// What is at a path, with the content of a file. A link is not followed, neither here nor on the way.
pub(super) fn look(files: &Files, path: &Path) -> (State, Option<Vec<u8>>) {
    let info = match files.stat_name(path) {
        Ok(info) => info,
        Err(FileError::NotFound { .. }) => return (State::Nothing, None),
        Err(error) => return (State::unkept(error), None),
    };
    match info.kind {
        EntryKind::Directory => (State::Directory, None),
        EntryKind::Link => match files.read_link(path) {
            Ok(to) if to.to_str().is_some() => (State::Link { to }, None),
            Ok(_) => (State::unkept("it leads to a name that is not UTF-8"), None),
            Err(error) => (State::unkept(error), None),
        },
        EntryKind::Other => (State::unkept("it is a FIFO, a socket or a device"), None),
        EntryKind::File => match files.read_bytes(path, LARGEST_FILE) {
            Ok(bytes) => (State::file(&bytes, info.mode), Some(bytes)),
            Err(FileError::TooLarge { .. }) => (State::unkept(too_large(LARGEST_FILE)), None),
            Err(error) => (State::unkept(error), None),
        },
    }
}

pub(super) fn too_large(limit: usize) -> String {
    format!("it has more than {} MiB", limit >> 20)
}

/// Makes a path hold what it held before. What it holds now was compared a moment ago.
pub(super) fn restore(files: &Files, contents: &Contents, path: &Path, before: &State) -> Result<(), FileError> {
    let is_file = |path: &Path| match files.stat_name(path) {
        Ok(info) => Ok(Some(info)),
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    let now = is_file(path)?;
    match before {
        State::File { content, mode, .. } => {
            let bytes = contents.read(content).map_err(|error| failed(path, error))?;
            // A link or an empty directory has to make room; a file is replaced in one step.
            if let Some(info) = now.filter(|info| info.kind != EntryKind::File) {
                files.remove(path, &info)?;
            }
            files.write_bytes(path, &bytes)?;
            if files.stat_name(path)?.mode & 0o777 != *mode {
                files.set_mode(path, *mode)?;
            }
            Ok(())
        }
        State::Link { to } => {
            if let Some(info) = now {
                files.remove(path, &info)?;
            }
            files.create_link(path, to)
        }
        State::Nothing => now.map_or(Ok(()), |info| files.remove(path, &info)),
        State::Directory => {
            if let Some(info) = now.filter(|info| info.kind != EntryKind::Directory) {
                files.remove(path, &info)?;
            }
            files.create_parents(&path.join("in it"))
        }
        State::Unkept { why } => Err(failed(path, io::Error::other(why.clone()))),
    }
}

fn failed(path: &Path, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}
