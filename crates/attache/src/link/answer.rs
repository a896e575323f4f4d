//! The answer to a call: read where it arrives, and kept until whoever asked takes it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use attache_proto::json::{DecodeError, RawJson, Reader};
use attache_proto::rpc::Outcome;
use attache_proto::{Decode, Dialect};

use crate::{Closed, Error};

/// The end that is answered. Dropped, the answer is that the connection was closed.
pub(crate) struct Asked(Option<Arc<dyn Answerable>>);

/// The end that waits: a future.
pub(crate) struct Answer<T>(Arc<Place<T>>);

struct Place<T> {
    /// The method that was called, for errors.
    method: &'static str,
    read: Read<T>,
    stage: Mutex<Stage<T>>,
}

/// Reads an answer; what was let pass is added to the list.
type Read<T> = fn(&str, Dialect, &mut Vec<DecodeError>) -> Result<T, DecodeError>;

enum Stage<T> {
    Open(Option<Waker>),
    Answered(Result<T, Error>),
    Taken,
}

/// An answer and the call that waits for it.
pub(crate) fn channel<T: Decode + Send + 'static>(method: &'static str) -> (Asked, Answer<T>) {
    with(method, |text, dialect, tolerated| {
        let mut reader = Reader::new(text, dialect);
        let value = reader.decode()?;
        *tolerated = reader.tolerated();
        Ok(value)
    })
}

/// The same for an answer that is wanted as text.
pub(crate) fn raw() -> (Asked, Answer<RawJson>) {
    with("", |text, _, _| Ok(RawJson::of_outcome(text)))
}

fn with<T: Send + 'static>(method: &'static str, read: Read<T>) -> (Asked, Answer<T>) {
    let place = Arc::new(Place { method, read, stage: Mutex::new(Stage::Open(None)) });
    (Asked(Some(place.clone())), Answer(place))
}

impl Asked {
    /// For a request whose answer nobody waits for.
    pub(crate) fn nobody() -> Self {
        Asked(None)
    }

    /// Hands over what the peer answered. Returns what was let pass in it, and of which method it is.
    pub(crate) fn answer(mut self, outcome: Outcome<'_>, dialect: Dialect) -> (&'static str, Vec<DecodeError>) {
        self.0.take().map(|place| place.answer(outcome, dialect)).unwrap_or_default()
    }

    /// Says that no answer will come.
    pub(crate) fn fail(mut self, error: Error) {
        if let Some(place) = self.0.take() {
            place.fail(error);
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.fail(Error::Closed(Closed::ByUs));
        }
    }
}

/// A place of any type.
trait Answerable: Send + Sync {
    fn answer(&self, outcome: Outcome<'_>, dialect: Dialect) -> (&'static str, Vec<DecodeError>);
    fn fail(&self, error: Error);
}

impl<T: Send> Answerable for Place<T> {
    fn answer(&self, outcome: Outcome<'_>, dialect: Dialect) -> (&'static str, Vec<DecodeError>) {
        let mut tolerated = Vec::new();
        self.put(match outcome {
            Ok(text) => (self.read)(text, dialect, &mut tolerated)
                .map_err(|error| Error::BadAnswer { method: self.method, error }),
            Err(error) => Err(Error::Refused(error)),
        });
        (self.method, tolerated)
    }

    fn fail(&self, error: Error) {
        self.put(Err(error));
    }
}

impl<T> Place<T> {
    fn put(&self, answer: Result<T, Error>) {
        let before = std::mem::replace(&mut *self.lock(), Stage::Answered(answer));
        if let Stage::Open(Some(waker)) = before {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage<T>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let mut stage = self.0.lock();
        match &mut *stage {
            Stage::Open(Some(waker)) => waker.clone_from(cx.waker()),
            Stage::Open(waker) => *waker = Some(cx.waker().clone()),
            Stage::Answered(_) => {
                if let Stage::Answered(answer) = std::mem::replace(&mut *stage, Stage::Taken) {
                    return Poll::Ready(answer);
                }
            }
            // Awaited again after it was done.
            Stage::Taken => return Poll::Ready(Err(Error::Closed(Closed::ByUs))),
        }
        Poll::Pending
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answer").field(&self.0.method).finish()
    }
}
