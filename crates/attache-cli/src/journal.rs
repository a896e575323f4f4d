//! Our own record of every run: one file a run, one event a line, only ever added to.
//!
//! A line is handed to the kernel before the next event is looked at, so it survives the end of this program, however
//! it ends; the whole file is on the disk when a run has begun and when it has ended. A line that was cut by a crash is
//! left out when the file is read.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::private;
use attache::trace;
use attache_host::own_files;

use crate::event::{Event, Line, Result as RunResult, Start};
use crate::exit::{Code, Failure};
use crate::paths;

/// The longest line that is read back. Longer than any message that an agent can send.
const LONGEST_LINE: u64 = 128 << 20;

/// How much is kept of runs altogether: years of work for most people. When there is more, the oldest go.
const MOST_RUNS: usize = 2000;
const MOST_BYTES: u64 = 1 << 30;

/// How long the record of one run can become. An agent that prints without end is not to fill the disk.
const LONGEST_RECORD: u64 = 128 << 20;

/// The record of a run that goes on. Its file is locked as long as it is written to.
pub(crate) struct Journal {
    file: Option<File>,
    written: u64,
    longest: u64,
}

impl Journal {
    /// Records nothing.
    pub(crate) fn none() -> Self {
        Journal { file: None, written: 0, longest: LONGEST_RECORD }
    }

    /// Begins the record of a run. A machine that cannot keep it (a full disk, a home that is read-only) is no reason
    /// not to run: the error says so, once, and nothing is recorded.
    pub(crate) fn begin(run: &str) -> (Self, Option<io::Error>) {
        let open = || {
            let directory = directory().map_err(io::Error::other)?;
            paths::private_directory(&directory)?;
            prune(&directory, MOST_RUNS, MOST_BYTES);
            let file = private::create_new(&file_of(&directory, run))?;
            // Whoever removes old records leaves this one. A file system without locks is no reason not to record.
            let _ = own_files::try_lock(&file);
            Ok(file)
        };
        match open() {
            Ok(file) => (Journal { file: Some(file), ..Journal::none() }, None),
            Err(error) => (Journal::none(), Some(error)),
        }
    }

    /// Adds a line. An error is told once; after it nothing more is recorded, because a record with a hole would lie.
    pub(crate) fn add(&mut self, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.written = self.written.saturating_add(bytes.len() as u64);
        let is_result = matches!(line.event, Event::Result(_));
        if self.written > self.longest && !is_result {
            // How it ended is still recorded, so that it does not look cut off; what is missing was told.
            if self.written - bytes.len() as u64 <= self.longest {
                return Err(io::Error::other("it is longer than 128 MiB"));
            }
            return Ok(());
        }
        let written = file.write_all(&bytes).and_then(|()| match line.event {
            Event::User(_) | Event::Session(_) | Event::Result(_) => file.sync_data(),
            _ => Ok(()),
        });
        if written.is_err() {
            self.file = None;
        }
        written
    }
}

/// Removes the oldest records until there is room for one more. One that is being written stays.
fn prune(directory: &Path, most_runs: usize, most_bytes: u64) {
    let Ok(runs) = runs_in(directory) else { return };
    let sized = runs.into_iter().map(|run| {
        let length = file_of(directory, &run).metadata().map_or(0, |file| file.len());
        (run, length)
    });
    let (mut count, mut bytes) = (0, 0_u64);
    for (run, length) in sized {
        count += 1;
        bytes = bytes.saturating_add(length);
        if count >= most_runs || bytes > most_bytes {
            let _ = remove(directory, &run);
        }
    }
}

/// Removes a record, unless it is being written.
fn remove(directory: &Path, run: &str) -> io::Result<()> {
    let path = file_of(directory, run);
    let file = File::open(&path)?;
    match own_files::try_lock(&file) {
        Err(fs::TryLockError::WouldBlock) => Err(io::Error::other("it is still running")),
        _ => fs::remove_file(path),
    }
}

/// Removes the record of a run that is not running.
pub(crate) fn delete(run: &str) -> Result<(), Failure> {
    let removed = remove(&directory()?, run);
    removed.map_err(|error| Failure::new(Code::Usage, format!("cannot delete run `{run}`: {error}")))
}

/// The runs that began before this moment. Their names say when.
pub(crate) fn runs_before(moment: SystemTime) -> Result<Vec<String>, Failure> {
    let moment = time_of(moment);
    Ok(runs()?.into_iter().filter(|run| run.get(..moment.len()).is_some_and(|time| *time < *moment)).collect())
}

fn time_of(time: SystemTime) -> String {
    let time: String = trace::rfc3339(time).chars().filter(char::is_ascii_alphanumeric).take(18).collect();
    time.to_lowercase()
}

/// A new name for a run: its time, so that names sort by it, and chance.
pub(crate) fn new_run(now: SystemTime) -> String {
    use std::hash::{BuildHasher, Hasher};
    // `RandomState` is seeded by the system; that is chance enough for a name that `create_new` guards.
    let chance = std::collections::hash_map::RandomState::new().build_hasher().finish() as u32;
    format!("{}-{chance:08x}", time_of(now))
}

fn directory() -> Result<PathBuf, Failure> {
    Ok(paths::state()?.join("runs"))
}

fn file_of(directory: &Path, run: &str) -> PathBuf {
    directory.join(format!("{run}.jsonl"))
}

/// What there is to know of a run at a glance.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) start: Start,
    pub(crate) session: Option<String>,
    pub(crate) prompt: Option<String>,
    /// `None` when the run was cut off.
    pub(crate) result: Option<Box<RunResult>>,
}

/// All runs, the newest first.
pub(crate) fn runs() -> Result<Vec<String>, Failure> {
    let directory = directory()?;
    runs_in(&directory).map_err(|error| unreadable(&directory, &error))
}

fn runs_in(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name =
        |entry: io::Result<fs::DirEntry>| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".jsonl")?.to_owned());
    let mut runs: Vec<String> = entries.filter_map(name).collect();
    runs.sort_unstable_by(|a, b| b.cmp(a));
    Ok(runs)
}

/// The events of a run, in order. What cannot be read is left out.
pub(crate) fn lines(run: &str) -> Result<impl Iterator<Item = Line>, Failure> {
    Ok(raw_lines(run)?.filter_map(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn raw_lines(run: &str) -> Result<impl Iterator<Item = Vec<u8>>, Failure> {
    let path = file_of(&directory()?, run);
    let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
    let mut reader = BufReader::new(file);
    Ok(std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        match io::Read::take(&mut reader, LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(bytes),
        }
    }))
}

/// The few events that a summary is made of. A long run has many more, which are not even parsed.
fn landmarks(run: &str) -> Result<impl Iterator<Item = Event>, Failure> {
    let is_landmark = |line: &Vec<u8>| {
        let head = String::from_utf8_lossy(&line[..line.len().min(64)]);
        ["start", "session", "user", "result"].iter().any(|kind| head.contains(&format!("\"type\":\"{kind}\"")))
    };
    let lines = raw_lines(run)?.filter(is_landmark);
    let lines = lines.filter_map(|bytes| serde_json::from_slice::<Line>(&bytes).ok());
    // What was asked in a session before the run is not what was asked in it.
    let lines = lines.filter(|line| !(line.history && matches!(line.event, Event::User(_))));
    Ok(lines.map(|line| line.event))
}

/// Reads what there is to know of a run. `None` when its record has no beginning.
pub(crate) fn summary(run: &str) -> Result<Option<Summary>, Failure> {
    let mut summary: Option<Summary> = None;
    for event in landmarks(run)? {
        match (event, &mut summary) {
            (Event::Start(start), none @ None) => {
                *none = Some(Summary { start, session: None, prompt: None, result: None });
            }
            (Event::Session(session), Some(summary)) => summary.session = Some(session.id),
            // What comes later is said in answer to something: why the person refused it, or what is wrong with an answer.
            (Event::User(text), Some(summary)) if summary.prompt.is_none() => summary.prompt = Some(text.text),
            (Event::Result(result), Some(summary)) => summary.result = Some(result),
            _ => {}
        }
    }
    Ok(summary)
}

/// Where a run began, and its session if it came to one. Does not read the run to its end.
fn beginning(run: &str) -> Result<Option<(Start, String)>, Failure> {
    let mut start = None;
    for event in landmarks(run)? {
        match event {
            Event::Start(found) => start = Some(found),
            Event::Session(session) => return Ok(start.map(|start| (start, session.id))),
            Event::User(_) | Event::Result(_) => break,
            _ => {}
        }
    }
    Ok(None)
}

/// The session of a run. `None` when it came to none, or cannot be read.
pub(crate) fn session_of(run: &str) -> Option<String> {
    beginning(run).ok().flatten().map(|(_, session)| session)
}

/// What was asked in a run. Does not read the run to its end.
pub(crate) fn prompt(run: &str) -> Option<String> {
    let mut events = landmarks(run).ok()?;
    events.find_map(|event| match event {
        Event::User(text) => Some(text.text),
        _ => None,
    })
}

/// The last session of an agent in a directory, by who it is.
///
/// Records of the first version only have the agent's name. That is who it is where the name is the identity; for a
/// command it is the program, which may have run anything.
pub(crate) fn last_session(identity: &str, cwd: &Path) -> Result<Option<String>, Failure> {
    for run in runs()? {
        if let Some((start, session)) = beginning(&run)?
            && start.identity.as_deref().unwrap_or(&start.agent) == identity
            && Path::new(&start.cwd) == cwd
        {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

/// How the last run began that had this session; without one, the last that had any in this directory. And its session.
pub(crate) fn last_start(session: Option<&str>, cwd: &Path) -> Result<Option<(Start, String)>, Failure> {
    for run in runs()? {
        if let Some((start, id)) = beginning(&run)?
            && session.map_or_else(|| Path::new(&start.cwd) == cwd, |session| session == id)
        {
            return Ok(Some((start, id)));
        }
    }
    Ok(None)
}

/// The directories in which a session was held, by its runs, the newest first. Runs that cannot be read tell nothing.
pub(crate) fn directories_of(session: &str) -> Result<Vec<PathBuf>, Failure> {
    let begun = runs()?.into_iter().filter_map(|run| beginning(&run).ok().flatten());
    let mut directories: Vec<PathBuf> =
        begun.filter(|(_, id)| id == session).map(|(start, _)| PathBuf::from(start.cwd)).collect();
    directories.dedup();
    Ok(directories)
}

/// The last session in a directory of any agent that the first version called like this: it knew agents by their program
/// alone.
pub(crate) fn last_session_by_name(name: &str, cwd: &Path) -> Result<Option<String>, Failure> {
    for run in runs()? {
        if let Some((start, session)) = beginning(&run)?
            && start.identity.is_none()
            && start.agent == name
            && Path::new(&start.cwd) == cwd
        {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::Usage, format!("cannot read `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn names_of_runs_sort_by_time() {
        let at = |seconds| new_run(UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(at(1_794_787_200).starts_with("20261116t000000000-"), "{}", at(1_794_787_200));
        assert!(at(1_000_000_000) < at(1_000_000_001));
        assert_ne!(at(5), at(5));
    }
    #[test]
    fn a_record_that_is_too_long_is_told_once_and_has_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        let mut journal = Journal { file: Some(File::create(&path).unwrap()), longest: 100, ..Journal::none() };
        let text = |text: &str| Line::new(0, Event::notice(crate::event::Level::Info, text));
        assert!(journal.add(&text("short")).is_ok());
        assert!(journal.add(&text(&"long".repeat(50))).is_err());
        assert!(journal.add(&text("told already")).is_ok());
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.contains("short") && kept.lines().count() == 1, "{kept}");
    }

    #[test]
    fn the_oldest_records_go_but_none_that_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let put = |run: &str| fs::write(file_of(directory.path(), run), "0123456789").unwrap();
        let left = || runs_in(directory.path()).unwrap().join(" ");
        ["1", "2", "3", "4"].into_iter().for_each(put);
        prune(directory.path(), 5, 40);
        assert_eq!(left(), "4 3 2 1");
        prune(directory.path(), 4, 40);
        assert_eq!(left(), "4 3 2", "there is to be room for one more");
        let held = File::open(file_of(directory.path(), "2")).unwrap();
        own_files::try_lock(&held).unwrap();
        prune(directory.path(), 5, 10);
        assert_eq!(left(), "4 2");
        drop(held);
        prune(directory.path(), 5, 10);
        assert_eq!(left(), "4");
    }
}
