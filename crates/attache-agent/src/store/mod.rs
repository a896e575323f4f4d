//! Sessions on disk: an append-only log each.
//!
//! A session is a file `ID.log` of records, one a line, that can be searched with `grep`:
//!
//! ```text
//! 0 1794735000125 86 5e2f8c11 {"type":"opened","cwd":"/home/me/project","directories":[],"created":"2026-…"}
//! ```
//!
//! That is its number, the time in milliseconds, the length of the entry, a CRC-32, and the entry. `ID.json` beside it is
//! for lists and can be deleted at any time.
//!
//! # What can go wrong
//!
//! - **The process is killed**: every entry whose [`Log::append`] returned is there.
//! - **The power fails**: every entry before the last [`Log::sync`] is there. What was cut off at the end is passed over by
//!   [`Store::read`] and cut off by [`Store::open_log`].
//! - **The disk is full**: [`Log::append`] fails, the log is as it was, and goes on when there is room.
//! - **Something changed the file**: [`StoreError::Damaged`] names the place. Nothing is written to such a log, and
//!   [`Store::open_log`] and [`Store::read`] refuse it. [`Store::salvage`] reads what stands before the damage, and
//!   [`Store::fork`] goes on from there.
//! - **A second writer**: [`StoreError::Busy`]. Readers never wait and never write.
//! - **A newer version wrote it**: entries that are not understood are [`Entry::Unknown`].
//!
//! All calls block for as long as the disk takes.

mod entry;
mod error;
mod list;
mod log;
mod merge;
mod outline;
mod prune;
mod record;
mod scan;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use attache::proto::json::RawJson;

pub use entry::{Entry, Opened};
pub use error::StoreError;
pub use list::{Page, Query};
pub use log::Log;
pub use merge::merged;
use outline::Outline;
pub use outline::Summary;
pub use prune::Kept;
use record::Record;
use scan::{Position, scan};

/// The sessions of one directory.
///
/// ```
/// use attache_agent::store::{Entry, Opened, Query, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path().join("sessions"))?;
/// let mut log = store.create("s1", Opened { cwd: "/project".into(), ..Opened::default() })?;
/// log.append(&Entry::Title { title: "Hello".into() })?;
/// log.sync()?;
/// assert_eq!(store.read("s1")?.len(), 2);
/// assert_eq!(store.list(&Query::default())?.sessions[0].title.as_deref(), Some("Hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// The sessions of a directory, which is made if it is not there. Nobody but its owner gets in.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        let open = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            let mut permissions = fs::metadata(&directory)?.permissions();
            if permissions.mode() & 0o077 != 0 {
                permissions.set_mode(0o700);
                fs::set_permissions(&directory, permissions)?;
            }
            Ok(())
        };
        open().map_err(|error| StoreError::io(&directory, error))?;
        Ok(Store { directory })
    }

    /// Begins a session.
    pub fn create(&self, id: &str, opened: Opened) -> Result<Log, StoreError> {
        Log::create(&self.path(id)?, id, &[Entry::Opened(opened)])
    }

    /// Opens a session to go on with it. A tail that a crash left is cut off.
    pub fn open_log(&self, id: &str) -> Result<(Log, Vec<Entry>), StoreError> {
        Log::open(&self.path(id)?, id)
    }

    /// Reads a session, which may be open for writing. A damaged one is an error.
    pub fn read(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        match self.salvage(id)? {
            (entries, None) => Ok(entries),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Reads as much of a session as can be, and the damage that follows.
    pub fn salvage(&self, id: &str) -> Result<(Vec<Entry>, Option<StoreError>), StoreError> {
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

    /// Lists sessions, those first to which something was added last.
    pub fn list(&self, query: &Query) -> Result<Page, StoreError> {
        list::list(&self.directory, query)
    }

    /// Deletes a session. One that is not there is deleted already.
    pub fn delete(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id)?;
        let held = match Log::hold(&path, id) {
            Err(StoreError::NotFound(_)) => return Ok(()),
            held => held?,
        };
        let delete = || {
            Outline::remove(&path)?;
            fs::remove_file(&path)?;
            sync_directory(&path)
        };
        delete().map_err(|error| StoreError::io(&path, error))?;
        drop(held);
        Ok(())
    }

    /// Begins a session with what another one has so far, which may be open for writing, or damaged at its end.
    pub fn fork(&self, from: &str, id: &str, opened: Opened) -> Result<(Log, Vec<Entry>), StoreError> {
        let path = self.path(id)?;
        let (mut entries, _) = self.salvage(from)?;
        entries[0] = Entry::Opened(opened);
        Ok((Log::create(&path, id, &entries)?, entries))
    }

    fn path(&self, id: &str) -> Result<PathBuf, StoreError> {
        if is_id(id) { Ok(self.directory.join(format!("{id}.log"))) } else { Err(StoreError::wrong_id(id)) }
    }
}

/// Whether an id can be the name of a file, of this directory, on every system.
fn is_id(id: &str) -> bool {
    const LONGEST: usize = 128;
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
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
        Ok(_) => {
            let problem = "its first record is not as it was written".into();
            StoreError::Damaged { path: path.to_path_buf(), offset: 0, problem }
        }
        Err(error) => StoreError::io(path, error),
    }
}

/// Waits until the names of a directory are on the disk, for a file in it that is new or gone.
fn sync_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
