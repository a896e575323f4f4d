//! The file that a record is written to while it grows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::record::Record;

/// The ending of the names of finished and unfinished records.
pub(super) const RECORD: &str = "jsonl";
/// The ending of the name of an empty file that is there as long as the record beside it may grow.
pub(super) const OPEN: &str = "open";

/// A file with the entries of a record as lines of a trace.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    marker: PathBuf,
    written: usize,
}

impl RecordFile {
    /// Makes a new file in a directory, which is made as well if it is not there.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        std::fs::create_dir_all(directory)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let name = format!("{time}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = directory.join(name).with_extension(RECORD);
        let mut options = OpenOptions::new();
        options.create_new(true).append(true);
        // What an editor sends is private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        let marker = path.with_extension(OPEN);
        File::create(&marker)?;
        Ok(RecordFile { file, marker, written: 0 })
    }

    /// Writes what has happened since the last time.
    pub(super) fn save(&mut self, record: &Record) -> io::Result<()> {
        let new = &record.entries[self.written..];
        if new.is_empty() {
            return Ok(());
        }
        let lines = Record { started: record.started, entries: new.to_vec() }.to_trace();
        self.written = record.entries.len();
        self.file.write_all(lines.as_bytes())
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        // The record is whole without it; whoever waits for its end waits a little longer.
        let _ = std::fs::remove_file(&self.marker);
    }
}
