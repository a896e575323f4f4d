//! The task that writes a session's log, and shows what is in it.
//!
//! A disk may be slow, or stuck. So the log is written on a thread for work that blocks, and whoever waits for it is the
//! session that it belongs to. One task does it, in the order in which it was told to: the client sees things in the order
//! in which they are in the log.

use std::pin::Pin;
use std::task::{Context, Poll};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::Patch;
use attache::model::error::ErrorObject;
use attache::model::update::{SessionInfoUpdate, SessionUpdate};
use tokio::sync::{mpsc, oneshot};

use crate::agent::{TAKEN_OVER, open_elsewhere};
use crate::store::{Entry, Log, StoreError};

/// How much is written before it is shown: text that comes faster than it can be written goes from thread to thread in
/// batches.
pub(crate) const MOST_AT_ONCE: usize = 64;

/// Tells the task what to do. It ends when nobody can tell it anything any more.
#[derive(Debug, Clone)]
pub(super) struct Writer(mpsc::UnboundedSender<(Job, Reply)>);

type Reply = oneshot::Sender<Result<(), Error>>;

pub(super) enum Job {
    /// Keeps an entry.
    Keep(Entry),
    /// Keeps an entry, and shows the client what it says.
    Show(Entry),
    /// The same for the end of something that the client sees as running: shown even if it cannot be kept.
    ShowEnd(Entry),
    /// Waits until what was kept is on the disk.
    Sync,
    /// Gives the log up.
    Leave,
}

impl Job {
    /// What is to be kept.
    fn entry(&self) -> Option<&Entry> {
        match self {
            Job::Keep(entry) | Job::Show(entry) | Job::ShowEnd(entry) => Some(entry),
            Job::Sync | Job::Leave => None,
        }
    }
}

impl Writer {
    pub(super) fn start(handle: SessionHandle, log: Box<dyn Log>) -> Self {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut log = Some(log);
            let mut batch = Vec::new();
            while receiver.recv_many(&mut batch, MOST_AT_ONCE).await > 0 {
                let jobs = std::mem::take(&mut batch);
                let work = move || {
                    let results = write_all(&mut log, &jobs);
                    (log, jobs.into_iter().zip(results).collect::<Vec<_>>())
                };
                // If that panics, the log is not used any more, and everybody is told.
                let Ok((kept, done)) = crate::spawn_blocking(work).await else { return };
                log = kept;
                for ((job, reply), result) in done {
                    let result = match to_show(job, result.is_ok()) {
                        Some(update) => handle.update(update).await.and(result),
                        None => result,
                    };
                    // Nobody waits for what a turn said that was cancelled.
                    let _ = reply.send(result);
                }
            }
        });
        Writer(sender)
    }

    /// Has something done, after all that was asked for before, and also if nobody waits for it.
    pub(super) fn tell(&self, job: Job) -> Written {
        let (sender, receiver) = oneshot::channel();
        let _ = self.0.send((job, sender));
        Written(receiver)
    }
}

/// What becomes of something that is to be written: it is done when this is.
#[derive(Debug)]
#[must_use = "it may fail"]
pub(crate) struct Written(oneshot::Receiver<Result<(), Error>>);

impl Written {
    /// What has become of it, if that is known.
    pub(crate) fn now(&mut self) -> Option<Result<(), Error>> {
        match self.0.try_recv() {
            Ok(result) => Some(result),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(unsaved("its log is closed"))),
        }
    }
}

impl Future for Written {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|result| result.unwrap_or_else(|_| Err(unsaved("its log is closed"))))
    }
}

/// Does jobs in order, with what follows each other in the log at once.
fn write_all(log: &mut Option<Box<dyn Log>>, jobs: &[(Job, Reply)]) -> Vec<Result<(), Error>> {
    let mut results = Vec::with_capacity(jobs.len());
    while let Some((job, _)) = jobs.get(results.len()) {
        let entries: Vec<&Entry> = jobs[results.len()..].iter().map_while(|(job, _)| job.entry()).collect();
        match (job, log.as_mut()) {
            (Job::Leave, _) => {
                log.take();
                results.push(Ok(()));
            }
            (Job::Sync, Some(log)) => results.push(log.sync().map_err(store_error)),
            (Job::Sync, None) => results.push(Ok(())),
            (_, Some(log)) => {
                let (kept, error) = match log.append_all(&entries) {
                    Ok(()) => (entries.len(), None),
                    Err((kept, error)) => (kept, Some(store_error(error))),
                };
                results.extend((0..kept).map(|_| Ok(())));
                results.extend(error.map(Err));
            }
            (_, None) => results.push(Err(Error::Refused(ErrorObject::internal("the session was deleted")))),
        }
    }
    results
}

fn store_error(error: StoreError) -> Error {
    match error {
        StoreError::Lost { holder, .. } => Error::Refused(open_elsewhere(TAKEN_OVER, holder)),
        error => unsaved(&error.to_string()),
    }
}

/// What the client is shown of it.
fn to_show(job: Job, is_kept: bool) -> Option<SessionUpdate> {
    let entry = match job {
        Job::Show(entry) if is_kept => entry,
        Job::ShowEnd(entry) => entry,
        _ => return None,
    };
    match entry {
        Entry::Update { update } => Some(*update),
        Entry::Title { title } => {
            let update = SessionInfoUpdate::new().with(|update| update.title = Patch::Set(title));
            Some(SessionUpdate::SessionInfo(update))
        }
        _ => None,
    }
}

fn unsaved(why: &str) -> Error {
    Error::Refused(ErrorObject::internal(format!("the session could not be saved: {why}")))
}
