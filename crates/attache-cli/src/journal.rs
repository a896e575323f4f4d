//! Our own record of every run: one file a run, one event a line, only ever added to.
//!
//! A line is handed to the kernel before the next event is looked at, so it survives the end of this program, however
//! it ends; the whole file is on the disk when a run has begun and when it has ended. A line that was cut by a crash is
//! left out when the file is read.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::trace;

use crate::event::{Event, Line, Result as RunResult, Start};
use crate::exit::{Code, Failure};
use crate::paths;

/// The longest line that is read back. Longer than any message that an agent can send.
const LONGEST_LINE: u64 = 128 << 20;

/// The record of a run that goes on.
pub(crate) struct Journal {
    file: Option<File>,
}

impl Journal {
    /// Begins the record of a run. A machine that cannot keep it (a full disk, a home that is read-only) is no reason
    /// not to run: the error says so, once, and nothing is recorded.
    pub(crate) fn begin(run: &str) -> (Self, Option<io::Error>) {
        let open = || {
            let directory = directory().map_err(io::Error::other)?;
            paths::private_directory(&directory)?;
            fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(file_of(&directory, run))
        };
        match open() {
            Ok(file) => (Journal { file: Some(file) }, None),
            Err(error) => (Journal { file: None }, Some(error)),
        }
    }

    /// Adds a line. An error is told once; after it nothing more is recorded, because a record with a hole would lie.
    pub(crate) fn add(&mut self, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
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

/// A new name for a run: its time, so that names sort by it, and chance.
pub(crate) fn new_run(now: SystemTime) -> String {
    use std::hash::{BuildHasher, Hasher};
    // `RandomState` is seeded by the system; that is chance enough for a name that `create_new` guards.
    let chance = std::collections::hash_map::RandomState::new().build_hasher().finish() as u32;
    let time: String = trace::rfc3339(now).chars().filter(char::is_ascii_alphanumeric).take(18).collect();
    format!("{}-{chance:08x}", time.to_lowercase())
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
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&directory, &error)),
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
    Ok(lines.filter_map(|bytes| Some(serde_json::from_slice::<Line>(&bytes).ok()?.event)))
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
            (Event::User(text), Some(summary)) => summary.prompt = Some(text.text),
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

/// The run that an id, or the beginning of one, means: the run's own, or that of its session.
pub(crate) fn find(id: &str) -> Result<String, Failure> {
    let missing = || {
        let hint = "hint: `attache sessions list` has them";
        Failure::new(Code::NotFound, format!("there is no run or session `{}`\n{hint}", crate::visible::visible(id)))
    };
    if id.is_empty() {
        return Err(missing());
    }
    let runs = runs()?;
    let mut by_run = runs.iter().filter(|run| run.starts_with(id));
    match (by_run.next(), by_run.next()) {
        (Some(run), None) => return Ok(run.clone()),
        (Some(run), Some(_)) if run != id => {
            return Err(Failure::usage(format!("more than one run begins with `{id}`\nhint: give more of it")));
        }
        (Some(run), Some(_)) => return Ok(run.clone()),
        (None, _) => {}
    }
    for run in &runs {
        if beginning(run)?.is_some_and(|(_, session)| session.starts_with(id)) {
            return Ok(run.clone());
        }
    }
    Err(missing())
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
}
