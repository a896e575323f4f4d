//! Reading the records of a log, and telling an end that was cut off from damage.
//!
//! Records are only ever added, each by one call, so what a crash leaves is a whole log and a piece of one record. That
//! piece is the torn tail: it is passed over by readers and cut off by the next writer. So is a last record whose
//! checksum is wrong, because a disk that loses power may have written its length and not its content. Everything else is
//! damage: a wrong record with a right one after it, a number that is missing. No writer goes on after that.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::{Entry, StoreError};
use super::record::{self, Flaw, MAX_LINE, Record};

/// A place between two records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// How many bytes stand before it.
    pub(super) offset: u64,
    /// How many records do.
    pub(super) count: u64,
}

/// How far a log can be read.
#[derive(Debug)]
pub(super) struct Extent {
    /// Where the last good record ends.
    pub(super) end: Position,
    /// Whether a torn tail follows.
    pub(super) is_torn: bool,
    /// The damage that follows.
    pub(super) damage: Option<StoreError>,
}

/// Reads the records from a position on, in order, and gives each to `take`.
pub(super) fn scan(
    path: &Path,
    file: &File,
    from: Position,
    mut take: impl FnMut(Record<'_>) -> Result<(), String>,
) -> Result<Extent, StoreError> {
    let failed = |error| StoreError::io(path, error);
    let mut lines = Lines::new(file, from.offset).map_err(failed)?;
    let mut extent = Extent { end: from, is_torn: false, damage: None };
    while lines.next().map_err(failed)? {
        let problem = match record::read(&lines.line) {
            Ok(record) if record.number != extent.end.count => {
                format!("there is record {} where {} should be", record.number, extent.end.count)
            }
            Ok(record) => match take(record) {
                Ok(()) => {
                    extent.end.offset += lines.line.len() as u64;
                    extent.end.count += 1;
                    continue;
                }
                Err(problem) => problem,
            },
            Err(Flaw::TooLong(length)) => return Err(StoreError::TooLarge { log: path.display().to_string(), length }),
            Err(Flaw::Unended) => format!("record {} does not end", extent.end.count),
            Err(Flaw::Wrong) => {
                let problem = format!("record {} is not as it was written", extent.end.count);
                if !lines.has_record().map_err(failed)? {
                    extent.is_torn = true;
                    break;
                }
                problem
            }
        };
        extent.damage = Some(StoreError::damaged(path, extent.end.offset, problem));
        break;
    }
    Ok(extent)
}

/// The first entry of a log.
pub(super) fn first(file: &File) -> io::Result<Entry> {
    let mut lines = Lines::new(file, 0)?;
    lines.next()?;
    let record = record::read(&lines.line).map_err(|_| io::ErrorKind::InvalidData)?;
    super::read_entry(record, true).map_err(io::Error::other)
}

/// The lines of a file, one at a time.
struct Lines<'a> {
    reader: BufReader<&'a File>,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn new(mut file: &'a File, offset: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        Ok(Lines { reader: BufReader::with_capacity(64 << 10, file), line: Vec::new() })
    }

    /// Reads a line with its end, or as much of it as there is and as a record can have. False at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        self.line.clear();
        let read = self.reader.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut self.line)?;
        if read == MAX_LINE && !self.line.ends_with(b"\n") {
            self.skip_line()?;
        }
        Ok(read > 0)
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let (is_over, length) = (end.is_some() || buffer.is_empty(), end.map_or(buffer.len(), |end| end + 1));
            self.reader.consume(length);
            if is_over {
                return Ok(());
            }
        }
    }

    /// Whether any of the lines that follow is a record.
    fn has_record(&mut self) -> io::Result<bool> {
        while self.next()? {
            if record::read(&self.line).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
