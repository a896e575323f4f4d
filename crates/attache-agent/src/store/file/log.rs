//! A session's log that is open for writing.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use attache::private;
use attache_host::own_files;

use super::super::{Entry, Log, StoreError};
use super::outline::Outline;
use super::record::{self, Record};
use super::scan::{Position, scan};

/// A session's log that is open for writing, by this value and by nothing else: others are told that it is busy until it
/// is dropped.
#[derive(Debug)]
pub(super) struct FileLog {
    file: File,
    path: PathBuf,
    outline: Outline,
    /// A record that could not be written could not be taken back either.
    has_rest: bool,
    /// The name of the file may not be on the disk yet.
    is_new: bool,
}

impl FileLog {
    /// Begins a log with these entries. Nobody sees it before all of them are there.
    pub(super) fn create(path: &Path, id: &str, entries: &[Entry]) -> Result<Self, StoreError> {
        let failed = |error| StoreError::io(path, error);
        // An empty file takes the name, for one of those who want it. It is no session to anyone, and locked so that
        // nobody deletes it meanwhile.
        let mut name = match private::create_new(path) {
            Ok(file) => Some(FileLog::held(file, path, id)?),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(StoreError::Exists(id.into())),
            Err(error) => return Err(failed(error)),
        };
        let draft = path.with_file_name(format!(".{id}.new"));
        let mut begin = || {
            // Whoever wanted this name before was killed before it had it.
            let _ = fs::remove_file(&draft);
            let file = private::create_new(&draft).map_err(failed)?;
            let mut log = FileLog::held(file, path, id)?;
            for entry in entries {
                log.append(entry)?;
            }
            if cfg!(windows) {
                // Not every version of it replaces a file that is open.
                name = None;
            }
            fs::rename(&draft, path).map_err(failed)?;
            log.is_new = true;
            Ok(log)
        };
        let log = begin().inspect_err(|_| {
            let _ = fs::remove_file(&draft);
            let _ = fs::remove_file(path);
        });
        drop(name);
        log
    }

    /// Opens a log, cuts off its torn tail, and reads it.
    pub(super) fn open(path: &Path, id: &str) -> Result<(Self, Vec<Entry>), StoreError> {
        let mut log = FileLog::hold(path, id)?;
        let mut entries = Vec::new();
        let extent = scan(path, &log.file, Position::default(), |record| {
            let entry = super::read_entry(record, entries.is_empty())?;
            log.outline.add(record);
            entries.push(entry);
            Ok(())
        })?;
        if let Some(damage) = extent.damage {
            return Err(damage);
        }
        if entries.is_empty() {
            return Err(super::no_beginning(path, &log.file, id));
        }
        log.outline.end = extent.end;
        if extent.is_torn {
            // What was known of the part that goes would be taken for what comes in its place.
            Outline::remove(path).map_err(|error| StoreError::io(path, error))?;
            log.cut()?;
        }
        Ok((log, entries))
    }

    /// Opens and locks a log, if it is there and nobody else has it.
    pub(super) fn hold(path: &Path, id: &str) -> Result<Self, StoreError> {
        match File::options().read(true).write(true).open(path) {
            Ok(file) => FileLog::held(file, path, id),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::NotFound(id.into())),
            Err(error) => Err(StoreError::io(path, error)),
        }
    }

    fn held(file: File, path: &Path, id: &str) -> Result<Self, StoreError> {
        match own_files::try_lock(&file) {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(StoreError::Busy { id: id.into(), holder: None }),
            Err(fs::TryLockError::Error(error)) => return Err(StoreError::io(path, error)),
        }
        // It may have been deleted, or given its first entries, before it was locked.
        if own_files::is_deleted(&file).map_err(|error| StoreError::io(path, error))? {
            return Err(StoreError::NotFound(id.into()));
        }
        Ok(FileLog { file, path: path.to_path_buf(), outline: Outline::default(), has_rest: false, is_new: false })
    }

    /// Cuts off what stands behind the last record.
    fn cut(&mut self) -> Result<(), StoreError> {
        self.file.set_len(self.outline.end.offset).map_err(|error| StoreError::io(&self.path, error))?;
        self.has_rest = false;
        Ok(())
    }
}

impl Log for FileLog {
    fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let json = entry.to_text(&self.path.to_string_lossy())?;
        let record = Record { number: self.outline.end.count, time: record::now(), entry: &json };
        let line = record.to_line();
        if self.has_rest {
            self.cut()?;
        }
        // Not by opening it to append: what is open like that cannot be cut on Windows.
        let end = io::SeekFrom::Start(self.outline.end.offset);
        if let Err(error) = self.file.seek(end).and_then(|_| self.file.write_all(&line)) {
            self.has_rest = true;
            let _ = self.cut();
            return Err(StoreError::io(&self.path, error));
        }
        self.outline.add(record);
        self.outline.end.offset += line.len() as u64;
        self.outline.end.count += 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        let failed = |error| StoreError::io(&self.path, error);
        self.file.sync_data().map_err(failed)?;
        if self.is_new {
            super::sync_directory(&self.path).map_err(failed)?;
            self.is_new = false;
        }
        // Only lists become slower without it.
        let _ = self.outline.save(&self.path);
        Ok(())
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        // To close the file is not enough while a process is being started, which has it too for a moment.
        let _ = own_files::unlock(&self.file);
    }
}
