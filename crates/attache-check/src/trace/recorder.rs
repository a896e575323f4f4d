//! Writes a trace while the conversation goes on, in a file whose size is bounded if that is wanted.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::record::{Event, Secrets, append_line};

/// How a conversation is recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Whether secrets are kept: values of variables and headers, and whatever a key calls a token, key or password.
    pub keeps_secrets: bool,
    /// The size in bytes at which a file is put aside as `FILE.1`, in the place of the one before. Together they are at most twice as
    /// large: of a message that is longer by itself only its length is written down.
    pub rotate: Option<u64>,
}

/// The longest line of stderr that is kept whole, in characters.
const LONGEST_STDERR: usize = 8 << 10;

/// The same where a whole file may be smaller.
const SHORT_STDERR: usize = 256;

/// Writes a trace to a file. What cannot be written is counted, and disturbs nobody.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    written: u64,
    /// The file may end in half a line.
    is_torn: bool,
    /// What the agent writes to stderr is the inside of a private key.
    in_key: bool,
    recording: Recording,
    line: String,
    failures: u64,
    has_outgrown: bool,
}

impl Recorder {
    /// Makes a file that only its owner can read, or goes on with one that is there. If another recorder has the file, it is `FILE.PID`;
    /// [`path`](Recorder::path) has its name. A file that is neither regular nor `/dev/null` is refused.
    pub fn open(path: impl AsRef<Path>, recording: Recording) -> io::Result<Self> {
        let path = path.as_ref();
        let mut file = open(path)?;
        // A link is followed once: what is put aside later is the file, not the link.
        let mut path = fs::canonicalize(path)?;
        let is_regular = file.metadata()?.is_file();
        if !is_regular && recording.rotate.is_some() {
            return Err(refused("only a regular file can be rotated"));
        }
        if is_regular && !lock(&file) {
            path.as_mut_os_string().push(format!(".{}", std::process::id()));
            file = open(&path)?;
            if !lock(&file) {
                return Err(refused("another trace is written to it"));
            }
        }
        let written = file.metadata()?.len();
        let is_torn = is_regular && written > 0 && !ends_with_line(&mut file);
        let mut recorder = Recorder {
            path,
            file,
            written,
            is_torn,
            recording,
            in_key: false,
            line: String::new(),
            failures: 0,
            has_outgrown: false,
        };
        if is_regular && written > 0 {
            recorder.write(&Event::Restarted);
        }
        Ok(recorder)
    }

    /// The file that is written to, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many lines could not be written.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Whether the file is larger than it should be, because it could not be put aside.
    pub fn has_outgrown(&self) -> bool {
        self.has_outgrown
    }

    /// Writes down what happened now.
    pub fn write(&mut self, event: &Event) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let (now, secrets) = (SystemTime::now(), self.secrets());
        match event {
            Event::Stderr { text } => {
                let text = self.stderr(text, LONGEST_STDERR);
                append_line(&Event::Stderr { text }, now, secrets, &mut line);
            }
            event => append_line(event, now, secrets, &mut line),
        }
        if self.recording.rotate.is_some_and(|limit| line.len() as u64 > limit.saturating_sub(FIRST_LINE)) {
            line.clear();
            let shorter = match event {
                Event::Frame { from, text } => Event::Junk { from: *from, bytes: text.len() },
                Event::Stderr { text } => Event::Stderr { text: self.stderr(text, SHORT_STDERR) },
                event => Event::Note { text: format!("{event:?}").chars().take(SHORT_STDERR).collect() },
            };
            append_line(&shorter, now, secrets, &mut line);
        }
        if self.append(&line).is_err() {
            self.failures += 1;
        }
        // A long message does not keep its room.
        if line.capacity() < 1 << 20 {
            self.line = line;
        }
    }

    fn secrets(&self) -> Secrets {
        if self.recording.keeps_secrets { Secrets::Kept } else { Secrets::LeftOutOfMessages }
    }

    /// The beginning of a line of stderr. A private key has many lines: those are left out one by one.
    fn stderr(&mut self, text: &str, longest: usize) -> String {
        let (begins, ends) = (text.rfind("-----BEGIN "), text.rfind("-----END "));
        let was_in_key = self.in_key;
        self.in_key = match (begins, ends) {
            (Some(begin), end) => text[begin..].contains("PRIVATE KEY") && end.is_none_or(|end| end < begin),
            (None, Some(_)) => false,
            (None, None) => self.in_key,
        };
        if was_in_key && !self.recording.keeps_secrets {
            return "…".to_owned();
        }
        text.chars().take(longest).collect()
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let limit = self.recording.rotate.unwrap_or(u64::MAX);
        // A file that cannot be put aside grows for now.
        if self.written > 0 && self.written + line.len() as u64 > limit && self.rotate().is_err() {
            self.has_outgrown = true;
        }
        if self.is_torn {
            self.put(b"\n")?;
        }
        self.put(line.as_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A write that failed may have been done in part: what follows begins on a line of its own.
        self.is_torn = true;
        self.file.write_all(bytes)?;
        self.is_torn = false;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Puts the file aside and begins a new one. Where that fails, the old one is gone on with.
    fn rotate(&mut self) -> io::Result<()> {
        let named = |ending: String| {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let (aside, new) = (named(".1".to_owned()), named(format!(".{}.new", std::process::id())));
        let begin = || {
            // One that is left of a process of the same number is nobody's.
            let _ = fs::remove_file(&new);
            let mut file = options().create_new(true).open(&new)?;
            lock(&file);
            let mut first = String::new();
            append_line(&Event::Continued, SystemTime::now(), Secrets::Kept, &mut first);
            file.write_all(first.as_bytes())?;
            fs::rename(&self.path, &aside)?;
            // Should this fail, what was put aside is gone on with.
            fs::rename(&new, &self.path).map(|()| (file, first.len() as u64))
        };
        let (file, written) = begin().inspect_err(|_| drop(fs::remove_file(&new)))?;
        (self.file, self.written, self.is_torn) = (file, written, false);
        Ok(())
    }
}

/// More than the first line of a file that was begun anew takes.
const FIRST_LINE: u64 = 100;

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Opens a file to append to, without waiting for anybody: a pipe has another end, and a device may do anything with it.
fn open(path: &Path) -> io::Result<File> {
    // Opening it would be a deed already.
    if let Ok(metadata) = fs::metadata(path) {
        check_kind(&metadata, path)?;
    }
    let mut options = options();
    let file = match options.create(true).open(path) {
        // One may be written to and not read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.read(false).open(path)?,
        opened => opened?,
    };
    check_kind(&file.metadata()?, path)?;
    Ok(file)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

fn check_kind(metadata: &fs::Metadata, path: &Path) -> io::Result<()> {
    let is_null = || fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
    if metadata.is_file() || is_null() { Ok(()) } else { Err(refused("it is neither a regular file nor /dev/null")) }
}

/// Whether the file is ours now. Where files cannot be locked, each is.
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether the last line of a file has its end.
fn ends_with_line(file: &mut File) -> bool {
    let mut last = [0];
    let read = file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last));
    read.is_ok() && last == *b"\n"
}

#[cfg(test)]
mod tests;
