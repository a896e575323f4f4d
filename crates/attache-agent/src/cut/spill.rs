//! The files of a session that hold what was too long for the model.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use attache::private;

/// How much a session keeps. When there is more, the oldest files go.
const MOST: u64 = 64 << 20;

/// How many files a session keeps at most.
const MOST_FILES: usize = 1000;

const PREFIX: &str = "output-";
const SUFFIX: &str = ".txt";

/// A directory of a session for long output, readable by the user alone. It is made when it is first needed.
#[derive(Debug)]
pub struct Spill {
    directory: PathBuf,
    most: u64,
    /// One at a time: each looks at what is there before it writes.
    lock: Mutex<()>,
}

impl Spill {
    /// A directory, which need not exist. Only files that were put there by a `Spill` are ever removed from it.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Spill { directory: directory.into(), most: MOST, lock: Mutex::new(()) }
    }

    /// Where the files are. What tools read may be read here too.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    #[cfg(test)]
    pub(super) fn bounded(self, most: u64) -> Self {
        Spill { most, ..self }
    }

    /// Keeps a text in a file of its own.
    pub(super) fn keep(&self, text: &str) -> io::Result<PathBuf> {
        let _one = crate::lock(&self.lock);
        if text.len() as u64 > self.most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too long"));
        }
        private::create_directory(&self.directory)?;
        let last = self.make_room(text.len() as u64)?;
        self.write(last + 1, text)
    }

    /// Removes the oldest files until there is room, and gives the number of the newest.
    fn make_room(&self, wanted: u64) -> io::Result<u64> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if let Some(number) = number(&entry.file_name().to_string_lossy()) {
                files.push((number, entry.metadata()?.len(), entry.path()));
            }
        }
        files.sort_unstable();
        let last = files.last().map_or(0, |(number, ..)| *number);
        let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
        let mut count = files.len();
        for (_, length, path) in files {
            if total + wanted <= self.most && count < MOST_FILES {
                break;
            }
            fs::remove_file(path)?;
            total -= length;
            count -= 1;
        }
        Ok(last)
    }

    fn write(&self, mut number: u64, text: &str) -> io::Result<PathBuf> {
        loop {
            let path = self.directory.join(format!("{PREFIX}{number}{SUFFIX}"));
            match private::create_new(&path) {
                Ok(mut file) => {
                    return match file.write_all(text.as_bytes()) {
                        Ok(()) => Ok(path),
                        // Half a file would be taken for the whole.
                        Err(error) => {
                            let _ = fs::remove_file(&path);
                            Err(error)
                        }
                    };
                }
                // Another process has the session's directory too. It is fair to try the next.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u64::MAX => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}
