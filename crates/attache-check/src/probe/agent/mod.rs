//! Probes for agents: we are the client, and make the agent do all that it can.
//!
//! A probe is a row of a table. It starts an agent of its own, does one thing, and leaves a record for the rules. What the agent does
//! not offer, and what the prompt's style cannot say, is not done, so it is not tested.

mod driver;
mod hear;
mod probes;
mod serve;
mod settings;
mod start;
mod task;
mod terminal;
mod turn;
mod words;

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use attache_proto::Dialect;

use crate::exchange::Exchange;
use crate::record::{Entry, Event, Record};
use crate::rule::Dialects;

use driver::{Driver, Flow};
pub use settings::Options;
pub use start::Start;
pub use task::Style;

/// A probe.
pub struct Probe {
    /// Its name: a group, and what it does: `cancel/in-mid-text`.
    pub name: &'static str,
    /// The dialects that it makes sense in.
    pub dialects: Dialects,
    /// What it does, in one sentence.
    pub about: &'static str,
    run: Run,
}

type Run = for<'a> fn(&'a mut Driver) -> Running<'a>;
type Running<'a> = Pin<Box<dyn Future<Output = Flow> + Send + 'a>>;

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What came of a probe.
#[derive(Debug, Clone)]
pub struct ProbeRun {
    /// The probe's name.
    pub name: &'static str,
    /// The dialect that it asked for.
    pub dialect: Dialect,
    /// What was recorded.
    pub record: Record,
}

/// All probes, in the order in which they are run.
pub fn probes() -> impl Iterator<Item = &'static Probe> {
    probes::TABLES.iter().copied().flatten()
}

/// Probes an agent in some dialects: four probes at a time, each with an agent of its own.
///
/// The first probe of a dialect is to greet the agent. If it does not answer, or answers in another dialect, that is all there is to
/// learn in this one. An error is that the agent could not even be started.
pub async fn run(start: &Start, dialects: Dialects, options: &Options) -> io::Result<Vec<ProbeRun>> {
    run_telling(start, dialects, options, |_| ()).await
}

/// The same, and tells of each probe when it is over.
pub async fn run_telling(
    start: &Start,
    dialects: Dialects,
    options: &Options,
    done: impl Fn(&ProbeRun),
) -> io::Result<Vec<ProbeRun>> {
    let mut runs = Vec::new();
    let kept = Cell::new(0);
    for dialect in dialects.iter() {
        let is_chosen = |probe: &&Probe| {
            let is_named = options.only.is_empty() || options.only.iter().any(|name| names(name, probe.name));
            probe.dialects.includes(dialect) && is_named
        };
        let greeting = one(&probes::GREETING, start, dialect, options).await?;
        let goes_on = has_agreed(&greeting.record, dialect);
        runs.push(greeting);
        if !goes_on {
            continue;
        }
        let chosen: Vec<&Probe> = probes().filter(is_chosen).collect();
        let queue = Mutex::new(chosen.iter().enumerate());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let worker = async || {
            let mut runs = Vec::new();
            while let Some((place, probe)) = next() {
                let run = one(probe, start, dialect, options).await?;
                done(&run);
                let total = kept.get() + size(&run.record);
                kept.set(total);
                if total > MOST_KEPT {
                    let why = format!("the agent said more than {} MiB in all, and is left", MOST_KEPT >> 20);
                    return Err(io::Error::other(why));
                }
                runs.push((place, run));
            }
            io::Result::Ok(runs)
        };
        // Four at a time: most of a probe is waiting for what should not come.
        // Boxed, because what probes hold together is more than the stack of a thread has room for.
        let done = tokio::join!(Box::pin(worker()), Box::pin(worker()), Box::pin(worker()), Box::pin(worker()));
        let mut of_dialect: Vec<(usize, ProbeRun)> =
            [done.0?, done.1?, done.2?, done.3?].into_iter().flatten().collect();
        of_dialect.sort_by_key(|(place, _)| *place);
        runs.extend(of_dialect.into_iter().map(|(_, run)| run));
    }
    Ok(runs)
}

/// How many bytes of records are kept until they are judged. An agent that means no harm says a hundredth of that.
const MOST_KEPT: usize = 512 << 20;

/// About how much memory a record takes.
fn size(record: &Record) -> usize {
    let length = |entry: &Entry| match &entry.event {
        Event::Frame { text, .. } | Event::Stderr { text } | Event::Note { text } => text.len(),
        _ => 0,
    };
    record.entries.iter().map(|entry| size_of::<Entry>() + length(entry)).sum()
}

/// Whether a name is that of a probe, or of its group.
fn names(name: &str, probe: &str) -> bool {
    probe.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Runs one probe.
async fn one(probe: &Probe, start: &Start, dialect: Dialect, options: &Options) -> io::Result<ProbeRun> {
    let mut driver = Driver::new(start, dialect, options).await?;
    driver.note(probe.about);
    let is_in_time = tokio::time::timeout(options.probe, (probe.run)(&mut driver)).await.is_ok();
    if !is_in_time {
        driver.wire.note(Event::Note { text: "This takes too long and is given up.".to_owned() });
    }
    Ok(ProbeRun { name: probe.name, dialect, record: driver.finish(is_in_time).await })
}

/// Whether an agent agreed to a dialect.
fn has_agreed(record: &Record, dialect: Dialect) -> bool {
    let exchange = Exchange::new(&record.entries);
    exchange.agent_hello()["protocolVersion"] == dialect.version() && exchange.dialect == dialect
}
