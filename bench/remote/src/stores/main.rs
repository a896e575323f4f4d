//! Measures what keeps sessions: files and PostgreSQL.
//!
//!     stores r6|r7 files|postgres [--quick]   one measurement, as JSON

mod postgres;
mod turn;

use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_agent::store::{FileStore, Query, Store};
use attache_postgres::{PostgresStore, Settings};
use serde_json::{Value, json};

use postgres::Database;

/// What can go wrong here is told to a person, and nothing else.
type Error = Box<dyn std::error::Error + Send + Sync>;

#[path = "../process.rs"]
mod process;

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (workload, kind, is_quick) = match words[..] {
        [workload, kind] => (workload, kind, false),
        [workload, kind, "--quick"] => (workload, kind, true),
        _ => return Err("stores r6|r7 files|postgres [--quick]".into()),
    };
    let Some(place) = Place::open(kind)? else {
        println!("null");
        return Ok(());
    };
    let metrics = match workload {
        "r6" => turns(&place, if is_quick { 20 } else { 300 })?,
        "r7" => growing(&place, if is_quick { &[10, 100] } else { &[10, 100, 1000, 10_000] })?,
        other => return Err(format!("there is no workload `{other}`").into()),
    };
    println!("{metrics}");
    Ok(())
}

/// An empty store, and what it lives in.
struct Place {
    store: Arc<dyn Store>,
    database: Option<Database>,
    _directory: tempfile::TempDir,
}

impl Place {
    /// `None` where there is no such store on this machine.
    fn open(kind: &str) -> Result<Option<Place>, Error> {
        let directory = tempfile::tempdir()?;
        let (store, database): (Arc<dyn Store>, _) = match kind {
            "files" => (Arc::new(FileStore::open(directory.path().join("sessions"))?), None),
            "postgres" => {
                let Some(database) = Database::start()? else { return Ok(None) };
                (Arc::new(PostgresStore::connect(Settings::new(&database.url)?)?), Some(database))
            }
            other => return Err(format!("there is no store `{other}`").into()),
        };
        Ok(Some(Place { store, database, _directory: directory }))
    }

    /// The CPU time of this process, and that of the database.
    fn cpu(&self) -> (Duration, Duration) {
        (process::cpu(0), self.database.as_ref().map(Database::cpu).unwrap_or_default())
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// The middle of what was measured, in microseconds.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// R6: turns of one session, entry by entry, and as the agent writes them when text comes fast.
fn turns(place: &Place, count: usize) -> Result<Value, Error> {
    let mut metrics = json!({"entries": turn::entries(0).len()});
    for (name, in_batches) in [("each", false), ("batch", true)] {
        let mut log = place.store.create(name, turn::opened())?;
        for warm in 0..5 {
            turn::write(&mut *log, &turn::entries(warm), in_batches)?;
        }
        let turns: Vec<_> = (0..count).map(turn::entries).collect();
        let mut times = Vec::with_capacity(count);
        let before = place.cpu();
        for entries in &turns {
            let begun = Instant::now();
            turn::write(&mut *log, entries, in_batches)?;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        let after = place.cpu();
        metrics[format!("turn_{name}_us")] = json!(median(times));
        metrics[format!("cpu_{name}_us")] = json!(micros(after.0 - before.0, count));
        if place.database.is_some() {
            metrics[format!("database_{name}_us")] = json!(micros(after.1.saturating_sub(before.1), count));
        }
    }
    Ok(metrics)
}

/// How often each thing is done, of which the middle counts.
const TRIES: usize = 40;

/// R7: more and more sessions.
fn growing(place: &Place, steps: &[usize]) -> Result<Value, Error> {
    let store = &place.store;
    let mut metrics = json!({});
    let mut made = 0;
    for step in steps {
        let new = step - made;
        let begun = Instant::now();
        while made < *step {
            let mut log = store.create(&format!("s{made}"), turn::opened())?;
            let entries = turn::entries(made);
            log.append_all(&entries.iter().collect::<Vec<_>>()).map_err(|(_, error)| error)?;
            // As every session does at the end of its first turn.
            log.sync()?;
            made += 1;
        }
        metrics[format!("create_us_{step}")] = json!(micros(begun.elapsed(), new));
        place.database.as_ref().map_or(Ok(()), Database::tidy)?;
        let sessions: Vec<String> = (0..TRIES).map(|at| format!("s{}", at * 7919 % step)).collect();
        let timed = |work: &dyn Fn(&str) -> Result<(), Error>| {
            let mut times = Vec::with_capacity(TRIES);
            for id in &sessions {
                let begun = Instant::now();
                work(id)?;
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, Error>(json!(median(times)))
        };
        metrics[format!("read_us_{step}")] = timed(&|id| Ok(drop(store.read(id)?)))?;
        metrics[format!("open_us_{step}")] = timed(&|id| Ok(drop(store.open_log(id)?)))?;
        let before = place.cpu();
        metrics[format!("list_us_{step}")] = timed(&|_| Ok(drop(store.list(&Query::default())?)))?;
        let after = place.cpu();
        let cpu = (after.0 - before.0) + after.1.saturating_sub(before.1);
        metrics[format!("list_cpu_us_{step}")] = json!(micros(cpu, TRIES));
        metrics[format!("turn_us_{step}")] = timed(&|id| {
            let (mut log, _) = store.open_log(id)?;
            turn::write(&mut *log, &turn::entries(1), true)
        })?;
        metrics[format!("rss_kib_{step}")] = json!(process::memory(std::process::id()).0);
    }
    Ok(metrics)
}
