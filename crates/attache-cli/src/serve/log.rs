//! The log of a server, on stderr. Whoever reads it may be slow, or gone: nothing waits for that but a thread of its own.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

/// Lines that wait to be written. What comes when there are more is counted and not written.
const MOST_WAITING: usize = 4096;

/// How long the last lines may take when the server stops.
const LAST: Duration = Duration::from_secs(1);

/// What the thread is to do.
enum Job {
    Line(String),
    /// Tell when all before it is written.
    Tell(SyncSender<()>),
}

/// Lines on their way to a stream.
struct Log {
    jobs: SyncSender<Job>,
    /// Lines that had no room.
    lost: &'static AtomicU64,
}

static LOG: OnceLock<Log> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes a line for whoever looks after the server: a time, what happened, and nothing that was said. Does not wait, and does
/// not fail.
pub(super) fn log(event: &str, fields: &Value) {
    LOG.get_or_init(|| Log::start(std::io::stderr(), &LOST)).line(event, fields);
}

/// Waits until what was logged is written, if somebody reads it.
pub(super) fn finish() {
    if let Some(log) = LOG.get() {
        log.finish();
    }
}

impl Log {
    fn start(to: impl Write + Send + 'static, lost: &'static AtomicU64) -> Self {
        let (jobs, waiting) = mpsc::sync_channel(MOST_WAITING);
        // Without a thread nothing is written, and lines are counted as lost: the receiver is gone with it.
        let _ = std::thread::Builder::new().name("log".into()).spawn(move || write(to, &waiting, lost));
        Log { jobs, lost }
    }

    fn line(&self, event: &str, fields: &Value) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.jobs.try_send(Job::Line(text(event, fields)))
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn finish(&self) {
        let until = Instant::now() + LAST;
        let (done, written) = mpsc::sync_channel(1);
        let mut job = Job::Tell(done);
        loop {
            match self.jobs.try_send(job) {
                Ok(()) => {
                    // Whoever reads it may be too slow, or gone.
                    let _ = written.recv_timeout(until.saturating_duration_since(Instant::now()));
                    break;
                }
                Err(TrySendError::Full(back)) if Instant::now() < until => job = back,
                Err(_) => break,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(event: &str, fields: &Value) -> String {
    let mut line = json!({ "time": attache::trace::rfc3339(SystemTime::now()), "event": event });
    if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object()) {
        line.extend(fields.clone());
    }
    format!("{line}\n")
}

fn write(mut to: impl Write, jobs: &Receiver<Job>, lost: &AtomicU64) {
    for job in jobs {
        match job {
            // A stream that is closed is no reason to stop: who is served does not read the log.
            Job::Line(line) => drop(to.write_all(line.as_bytes())),
            Job::Tell(done) => drop(done.try_send(())),
        }
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            drop(to.write_all(text("log lines lost", &json!({ "lines": count })).as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use super::*;

    /// A stream whose reader does not read until it is told to.
    #[derive(Clone, Default)]
    struct Stalled(Arc<(Mutex<(bool, String)>, Condvar)>);

    impl Stalled {
        fn read(&self) {
            self.0.0.lock().unwrap().0 = true;
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            self.0.0.lock().unwrap().1.clone()
        }
    }

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let (state, changed) = &*self.0;
            let mut state = changed.wait_while(state.lock().unwrap(), |(is_read, _)| !*is_read).unwrap();
            state.1.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A stream that somebody closed.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stalls_or_leaves_keeps_nobody_waiting_and_what_is_lost_is_counted() {
        static STALLED: AtomicU64 = AtomicU64::new(0);
        let stream = Stalled::default();
        let log = Log::start(stream.clone(), &STALLED);
        let all = MOST_WAITING + 100;
        for number in 0..all {
            log.line("x", &json!({ "number": number }));
        }
        let lost = STALLED.load(Ordering::Relaxed);
        assert!((99..=100).contains(&lost), "{lost}");
        stream.read();
        log.finish();
        let written = stream.text();
        assert!(written.contains(&format!("\"lines\":{lost}")), "{}", written.lines().count());
        assert_eq!(written.lines().filter(|line| line.contains("\"event\":\"x\"")).count() as u64 + lost, all as u64);

        static CLOSED: AtomicU64 = AtomicU64::new(0);
        let log = Log::start(Closed, &CLOSED);
        log.line("x", &json!({}));
        log.finish();
        log.line("y", &json!({}));
        assert_eq!(CLOSED.load(Ordering::Relaxed), 0);
    }
}
