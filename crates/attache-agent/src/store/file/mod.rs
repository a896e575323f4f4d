//! Sessions in a directory of this machine.
//!
//! A session is a file `ID.log` of records, one a line, that can be searched with `grep`:
//!
//! ```text
//! 0 1794735000125 86 5e2f8c11 {"type":"opened","cwd":"/home/me/project","directories":[],"created":"2026-…"}
//! ```
//!
//! That is its number, the time in milliseconds, the length of the entry, a CRC-32, and the entry. `ID.json` beside it is
//! for lists and can be deleted at any time.

mod list;
mod log;
mod outline;
mod prune;
mod record;
mod scan;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::private;
use attache::proto::json::RawJson;
use attache_host::own_files;

use super::{Entry, Kept, Log, Page, Query, Store, StoreError, check_id, is_id};
use log::FileLog;
use outline::Outline;
use record::Record;
use scan::{Position, scan};

/// The sessions of one directory, of one owner.
///
/// A tail that a crash left in a log is passed over by [`Store::read`] and cut off by [`Store::open_log`].
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: PathBuf,
    owner: String,
    /// Sessions of all owners are here.
    is_everyones: bool,
}

impl FileStore {
    /// The sessions of a directory, which is made if it is not there. Nobody but its owner gets in.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        let open = || {
            private::create_directory(&directory)?;
            if private::is_private(&directory)? { Ok(()) } else { private::protect(&directory) }
        };
        open().map_err(|error| StoreError::io(&directory, error))?;
        Ok(FileStore { directory, owner: String::new(), is_everyones: false })
    }

    /// The sessions of all owners, for the person whose directory it is.
    pub fn of_everyone(self) -> Self {
        FileStore { is_everyones: true, ..self }
    }

    /// The log of a session of this owner.
    fn path(&self, id: &str) -> Result<PathBuf, StoreError> {
        check_id(id)?;
        let path = self.log_path(id);
        if self.is_everyones || owner_of(&path) == self.owner { Ok(path) } else { Err(StoreError::NotFound(id.into())) }
    }

    fn log_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.log"))
    }
}

impl Store for FileStore {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn owned_by(&self, owner: &str) -> Arc<dyn Store> {
        Arc::new(FileStore { directory: self.directory.clone(), owner: owner.to_owned(), is_everyones: false })
    }

    fn begin(&self, id: &str, entries: &[Entry]) -> Result<Box<dyn Log>, StoreError> {
        check_id(id)?;
        Ok(Box::new(FileLog::create(&self.log_path(id), id, entries)?))
    }

    /// Opens a session to go on with it. A tail that a crash left is cut off.
    fn open_log(&self, id: &str) -> Result<(Box<dyn Log>, Vec<Entry>), StoreError> {
        let (log, entries) = FileLog::open(&self.path(id)?, id)?;
        Ok((Box::new(log), entries))
    }

    fn salvage(&self, id: &str) -> Result<(Vec<Entry>, Option<StoreError>), StoreError> {
        let path = self.path(id)?;
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::NotFound(id.into())),
            Err(error) => return Err(StoreError::io(&path, error)),
        };
        let mut entries = Vec::new();
        let extent = scan(&path, &file, Position::default(), |record| {
            entries.push(read_entry(record, entries.is_empty())?);
            Ok(())
        })?;
        match extent.damage {
            // Without a beginning it is not known what the rest is about.
            damage if !entries.is_empty() => Ok((entries, damage)),
            Some(damage) => Err(damage),
            None => Err(no_beginning(&path, &file, id)),
        }
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        list::list(self, query)
    }

    fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let path = match self.path(id) {
            Err(StoreError::NotFound(_)) => return Ok(false),
            path => path?,
        };
        let held = match FileLog::hold(&path, id) {
            Err(StoreError::NotFound(_)) => return Ok(false),
            held => held?,
        };
        let delete = || {
            Outline::remove(&path)?;
            fs::remove_file(&path)?;
            sync_directory(&path)
        };
        delete().map_err(|error| StoreError::io(&path, error))?;
        drop(held);
        Ok(true)
    }

    fn prune(&self, kept: Kept) -> Result<Vec<String>, StoreError> {
        let store = self.clone().of_everyone();
        let mut ids = store.excess(kept);
        // One that is open stays; it is the next time's.
        ids.retain(|id| store.delete(id).is_ok_and(|is_deleted| is_deleted));
        Ok(ids)
    }
}

/// Whose session a log is. One without a beginning is nobody's.
fn owner_of(path: &Path) -> String {
    let entry = File::open(path).ok().and_then(|file| scan::first(&file).ok());
    match entry {
        Some(Entry::Opened(opened)) => opened.owner,
        _ => String::new(),
    }
}

/// Reads the entry of a record. The first one has to say where the session is.
fn read_entry(record: Record<'_>, is_first: bool) -> Result<Entry, String> {
    let json = RawJson::new(record.entry).map_err(|_| format!("record {} is not JSON", record.number))?;
    let entry = Entry::from_json(json);
    if is_first && !matches!(entry, Entry::Opened(_)) {
        return Err("the session does not begin with where it is".into());
    }
    Ok(entry)
}

/// Why a log without a single good record is none: it is being made, or was never finished, or is damaged.
fn no_beginning(path: &Path, file: &File, id: &str) -> StoreError {
    match file.metadata() {
        Ok(metadata) if metadata.len() == 0 => StoreError::NotFound(id.into()),
        Ok(_) => StoreError::damaged(path, 0, "its first record is not as it was written".into()),
        Err(error) => StoreError::io(path, error),
    }
}

/// Waits until the names of a directory are on the disk, for a file in it that is new or gone.
fn sync_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) => own_files::sync_directory(directory),
        None => Ok(()),
    }
}
