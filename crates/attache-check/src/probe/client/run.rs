//! Runs a client without a person, once for each scenario, and collects what its agent recorded.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use attache::process::{Command, Process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::record_file::{OPEN, RECORD};
use super::scenario::Scenario;
use crate::probe::{MOST_RECORDED, plain_file};
use crate::record::{Entry, Event, Record, Side};

/// The environment variable in which a client finds the command line of the agent.
const AGENT_VARIABLE: &str = "ATTACHE_CHECK_AGENT";

/// The longest record of a connection that is read: what an agent of ours records, and then some.
const LONGEST_RECORD: usize = 2 * MOST_RECORDED;

/// How many bytes of what a client prints are kept.
const KEPT_OUTPUT: usize = 8 << 10;

/// A record that has not grown for so long after its client has ended is taken to be whole.
const QUIET: Duration = Duration::from_millis(500);

/// How long runs may take.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// How long a client may run.
    pub run: Duration,
    /// How long it, or an agent it left behind, may take to end when it should.
    pub leave: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits { run: Duration::from_secs(60), leave: Duration::from_secs(3) }
    }
}

/// A run of a client.
#[derive(Debug)]
pub struct ProbeRun {
    /// What it was made to do.
    pub scenario: &'static Scenario,
    /// What it did, in all connections that it made, and how its process ended.
    pub record: Record,
    /// How its process ended.
    pub ending: Ending,
    /// The end of what it printed, made harmless.
    pub output: String,
}

/// How the process of a client ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It could not be started.
    NotStarted(String),
    /// By itself, with this exit code; a signal has none.
    Exited(Option<i32>),
    /// It ran for too long and was ended.
    TimedOut,
}

/// Starts a client once for each scenario.
///
/// The words of its command may hold `{agent}`, for which the command line of the agent stands, quoted for a shell, and `{prompt}`.
/// A word that is `{agent-words}` stands for the words of that command line, one by one. The environment variable
/// `ATTACHE_CHECK_AGENT` has the command line as well. A client whose command has no `{prompt}` gets the prompt on stdin.
///
/// `agent` is a command that [serves](super::serve) on stdin and stdout. It gets `--scenario NAME --records DIRECTORY` in addition.
/// `done` hears of each run when it has ended. A client that says nothing in the first one is not tried again.
pub async fn run_client(
    client: &[String],
    agent: &[String],
    scenarios: &[&'static Scenario],
    limits: &RunLimits,
    mut done: impl FnMut(&ProbeRun),
) -> io::Result<Vec<ProbeRun>> {
    let mut runs = Vec::new();
    for scenario in scenarios {
        let run = run(client, agent, scenario, limits).await?;
        done(&run);
        let is_of_client = |entry: &Entry| matches!(&entry.event, Event::Frame { from: Side::Client, .. });
        let is_heard = run.record.entries.iter().any(is_of_client);
        runs.push(run);
        // One that says nothing at the first try has no way to the agent, and would say nothing at the others.
        if runs.len() == 1 && !is_heard {
            break;
        }
    }
    Ok(runs)
}

/// A command as a line for a shell.
pub fn agent_line(words: &[String]) -> String {
    Command::from(words.to_vec()).to_string()
}

async fn run(
    client: &[String],
    agent: &[String],
    scenario: &'static Scenario,
    limits: &RunLimits,
) -> io::Result<ProbeRun> {
    let place = tempfile::Builder::new().prefix("attache-check-").tempdir()?;
    let (work, records) = (place.path().join("work"), place.path().join("records"));
    std::fs::create_dir(&work)?;
    std::fs::create_dir(&records)?;
    let more = [
        "--scenario".to_owned(),
        scenario.name.to_owned(),
        "--records".to_owned(),
        records.to_string_lossy().into_owned(),
    ];
    let agent: Vec<String> = agent.iter().cloned().chain(more).collect();
    let prompt = format!("Play scenario {}.", scenario.name);
    let words = fill(client, &agent, &prompt);
    let stdin = if client.iter().any(|word| word.contains("{prompt}")) { None } else { Some(prompt) };
    let command = Command::from(words).env(AGENT_VARIABLE, agent_line(&agent)).cwd(&work);
    let began = (SystemTime::now(), Instant::now());
    let (ending, ended, output) = match command.spawn() {
        Err(error) => (Ending::NotStarted(error.to_string()), Instant::now(), String::new()),
        Ok((process, mut input, printed)) => {
            if let Some(prompt) = stdin {
                // A client that does not read gets along without it.
                let _ = timeout(limits.leave, input.write_all(format!("{prompt}\n").as_bytes())).await;
            }
            drop(input);
            wait(process, printed, &records, limits).await
        }
    };
    let mut record = collect(&records, began.0);
    end_record(&mut record, &ending, ended - began.1, limits);
    Ok(ProbeRun { scenario, record, ending, output })
}

/// The words of a client's command.
fn fill(client: &[String], agent: &[String], prompt: &str) -> Vec<String> {
    let line = agent_line(agent);
    let fill = |word: &String| match word.as_str() {
        "{agent-words}" => agent.to_vec(),
        // Piece by piece, because a command line may hold braces of its own.
        word => {
            let pieces: Vec<String> = word.split("{agent}").map(|piece| piece.replace("{prompt}", prompt)).collect();
            vec![pieces.join(&line)]
        }
    };
    client.iter().flat_map(fill).collect()
}

/// Waits until a client has ended, and ends it when its time is over, with all that it started. Gives when that was.
async fn wait(
    mut process: Process,
    printed: impl AsyncRead + Send + Unpin + 'static,
    records: &Path,
    limits: &RunLimits,
) -> (Ending, Instant, String) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut reading = tokio::spawn(keep_tail(printed, kept.clone()));
    let ending = match timeout(limits.run, process.wait()).await {
        Ok(status) => Ending::Exited(status.code),
        Err(_) => Ending::TimedOut,
    };
    let ended = Instant::now();
    let mut output = process.stderr_tail();
    if ending == Ending::TimedOut {
        let _ = process.shutdown(limits.leave).await;
        await_records(records, Instant::now() + limits.leave).await;
    } else {
        // Its agent has still to write what it has recorded.
        await_records(records, Instant::now() + limits.leave).await;
        let _ = process.shutdown(Duration::ZERO).await;
    }
    // All that could still print has ended; what it printed may not have been read yet.
    if timeout(limits.leave, &mut reading).await.is_err() {
        reading.abort();
    }
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let printed = String::from_utf8_lossy(&kept);
    output.extend(printed.chars().filter(|c| !c.is_control() || *c == '\n'));
    (ending, ended, output)
}

/// Reads all that a client prints, and keeps the end.
async fn keep_tail(mut printed: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = printed.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(KEPT_OUTPUT);
        kept.drain(..surplus);
    }
}

/// Waits until no record is open any more. An agent that was killed leaves its own open, which then stays as it is.
async fn await_records(records: &Path, deadline: Instant) {
    let size = || files(records, RECORD).filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum::<u64>();
    let (mut known, mut changed) = (size(), Instant::now());
    while files(records, OPEN).next().is_some() && changed.elapsed() < QUIET && Instant::now() < deadline {
        sleep(Duration::from_millis(20)).await;
        let now = size();
        if now != known {
            (known, changed) = (now, Instant::now());
        }
    }
}

fn files(directory: &Path, ending: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| path.extension().is_some_and(|found| found == ending))
}

/// The records of all connections as one, the oldest first.
fn collect(directory: &Path, began: SystemTime) -> Record {
    let mut records: Vec<Record> = Vec::new();
    for path in files(directory, RECORD) {
        // A client that starts an agent and says nothing leaves a record with nothing to judge in it.
        if let Ok(Ok(record)) = plain_file::read(&path, LONGEST_RECORD).map(|text| Record::from_trace(&text)) {
            records.push(record);
        }
    }
    records.sort_by_key(|record| record.started);
    let mut all = Record { started: Some(began), entries: Vec::new() };
    for record in records {
        let offset = record.started.and_then(|started| started.duration_since(began).ok()).unwrap_or_default();
        if !all.entries.is_empty() {
            all.push(offset, Event::Restarted);
        }
        all.entries.extend(record.entries.into_iter().map(|mut entry| {
            entry.at += offset;
            entry
        }));
    }
    all
}

/// Adds how the client's process ended.
fn end_record(record: &mut Record, ending: &Ending, at: Duration, limits: &RunLimits) {
    let note = |text: String| Event::Note { text };
    match ending {
        Ending::NotStarted(why) => record.push(at, note(format!("the client could not be started: {why}"))),
        Ending::Exited(code) => record.push(at, Event::Exited { code: *code }),
        Ending::TimedOut => {
            record.push(at, Event::Waited { time: limits.run });
            record.push(at, note("the client was still running and was ended".to_owned()));
        }
    }
}
