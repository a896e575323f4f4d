//! Contents of files, each kept once under the digest of its bytes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use attache::private;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::state::LARGEST_FILE;

/// How much a session keeps.
const MOST: u64 = 256 << 20;

/// The digest of a content, in hexadecimal digits: the name that it is kept under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Address(String);

impl Address {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Address(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for Address {
    type Error = &'static str;

    /// It becomes a file's name, so it has to be nothing else.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(is_digit) { Ok(Address(text)) } else { Err("not a digest") }
    }
}

/// The directory with the contents that a session keeps, for its user alone.
#[derive(Debug)]
pub(super) struct Contents {
    directory: PathBuf,
    /// How many bytes there are.
    size: u64,
}

impl Contents {
    /// A directory, which is made when something is kept.
    pub(super) fn new(directory: PathBuf) -> Self {
        let size = files_in(&directory).map(|(_, size)| size).sum();
        Contents { directory, size }
    }

    /// Keeps a content. When this returns, it survives the end of this process.
    pub(super) fn keep(&mut self, address: &Address, bytes: &[u8]) -> io::Result<()> {
        let path = self.directory.join(&address.0);
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        if self.size.saturating_add(bytes.len() as u64) > MOST {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too much is kept for this session"));
        }
        private::create_directory(&self.directory)?;
        let draft = self.directory.join("new");
        let write = || {
            let mut file = private_file(&draft)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&draft, &path)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Reads a content. One that is not what it was when it was kept is an error.
    pub(super) fn read(&self, address: &Address) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.directory.join(&address.0))?;
        file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes)?;
        if Address::of(&bytes) == *address {
            return Ok(bytes);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "what was kept of it is damaged"))
    }

    /// Removes everything but these.
    pub(super) fn retain(&mut self, wanted: &HashSet<Address>) {
        let unwanted = files_in(&self.directory).filter(|(path, _)| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !Address::try_from(name.to_owned()).is_ok_and(|address| wanted.contains(&address))
        });
        for (path, _) in unwanted.collect::<Vec<_>>() {
            let _ = fs::remove_file(path);
        }
        self.size = files_in(&self.directory).map(|(_, size)| size).sum();
    }

    /// Whether there is room for so much more.
    pub(super) fn has_room(&self, more: u64) -> bool {
        self.size.saturating_add(more) <= MOST
    }
}

fn files_in(directory: &Path) -> impl Iterator<Item = (PathBuf, u64)> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok().filter(|file| file.is_file())?.len())))
}

/// Creates a file for its owner alone, empty.
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    private::create(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn contents_are_kept_once_for_their_owner_and_checked_when_they_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/contents");
        let mut contents = Contents::new(path.clone());
        let (one, two) = (Address::of(b"one"), Address::of(b"two"));
        for _ in 0..2 {
            contents.keep(&one, b"one").unwrap();
        }
        contents.keep(&two, b"two").unwrap();
        assert_eq!(contents.read(&one).unwrap(), b"one");
        assert_eq!((contents.size, files_in(&path).count()), (6, 2));
        let is_private = |path: &Path| private::is_private(path).unwrap();
        assert!(is_private(&path) && is_private(&path.join(&one.0)));
        fs::write(path.join(&two.0), "other").unwrap();
        assert_eq!(contents.read(&two).unwrap_err().kind(), io::ErrorKind::InvalidData);
        contents.retain(&HashSet::from([one.clone()]));
        assert!(contents.read(&one).is_ok() && contents.read(&two).is_err());
        assert_eq!(Contents::new(path).size, 3);
    }

    #[test]
    fn an_address_is_a_digest_and_no_path() {
        for text in ["", "../../etc/passwd", &"A".repeat(64), &"a".repeat(63), &"/".repeat(64)] {
            assert!(Address::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert!(Address::try_from("0a".repeat(32)).is_ok());
    }
}
