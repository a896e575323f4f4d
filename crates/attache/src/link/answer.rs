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
pub(crate) struct AnswerSender(Option<Arc<dyn Answerable>>);

/// The end that waits: a future.
pub(crate) struct PendingAnswer<T>(Arc<AnswerCell<T, Read<T>>>);

struct AnswerCell<T, R: ?Sized> {
    /// The method that was called, for errors.
    method: &'static str,
    state: Mutex<AnswerState<T>>,
    read: R,
}

/// Reads an answer; what was ignored in it is added to the list.
type Read<T> = dyn Fn(&str, Dialect, &mut Vec<DecodeError>) -> Result<T, DecodeError> + Send + Sync;

enum AnswerState<T> {
    Open(Option<Waker>),
    Answered(Result<T, Error>),
    Taken,
}

/// An answer and the call that waits for it.
pub(crate) fn channel<T: Decode + Send + 'static>(method: &'static str) -> (AnswerSender, PendingAnswer<T>) {
    channel_for(method, |answer| answer)
}

/// The same for something that is made of the answer, also when nobody waits for it any more. It is dropped then.
pub(crate) fn channel_for<A: Decode, T: Send + 'static>(
    method: &'static str,
    make: impl Fn(A) -> T + Send + Sync + 'static,
) -> (AnswerSender, PendingAnswer<T>) {
    with(method, move |text, dialect, tolerated| {
        let mut reader = Reader::new(text, dialect);
        let value = reader.decode()?;
        *tolerated = reader.tolerated();
        Ok(make(value))
    })
}

/// The same for an answer that is wanted as text.
pub(crate) fn raw() -> (AnswerSender, PendingAnswer<RawJson>) {
    with("", |text, _, _| RawJson::new(text))
}

fn with<T: Send + 'static>(
    method: &'static str,
    read: impl Fn(&str, Dialect, &mut Vec<DecodeError>) -> Result<T, DecodeError> + Send + Sync + 'static,
) -> (AnswerSender, PendingAnswer<T>) {
    let cell = Arc::new(AnswerCell { method, state: Mutex::new(AnswerState::Open(None)), read });
    (AnswerSender(Some(cell.clone())), PendingAnswer(cell))
}

impl AnswerSender {
    /// For a request whose answer nobody waits for.
    pub(crate) fn nobody() -> Self {
        AnswerSender(None)
    }

    /// Hands over what the peer answered. Returns what was ignored in it, and of which method it is.
    pub(crate) fn answer(mut self, outcome: Outcome<'_>, dialect: Dialect) -> (&'static str, Vec<DecodeError>) {
        self.0.take().map(|cell| cell.answer(outcome, dialect)).unwrap_or_default()
    }

    /// Says that no answer will come.
    pub(crate) fn fail(mut self, error: Error) {
        if let Some(cell) = self.0.take() {
            cell.fail(error);
        }
    }
}

impl Drop for AnswerSender {
    fn drop(&mut self) {
        if let Some(cell) = self.0.take() {
            cell.fail(Error::Closed(Closed::ByUs));
        }
    }
}

/// A cell of any type.
trait Answerable: Send + Sync {
    fn answer(&self, outcome: Outcome<'_>, dialect: Dialect) -> (&'static str, Vec<DecodeError>);
    fn fail(&self, error: Error);
}

impl<T: Send, R> Answerable for AnswerCell<T, R>
where
    R: Fn(&str, Dialect, &mut Vec<DecodeError>) -> Result<T, DecodeError> + Send + Sync,
{
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

impl<T, R: ?Sized> AnswerCell<T, R> {
    fn put(&self, answer: Result<T, Error>) {
        let before = std::mem::replace(&mut *self.lock(), AnswerState::Answered(answer));
        if let AnswerState::Open(Some(waker)) = before {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, AnswerState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Future for PendingAnswer<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let mut state = self.0.lock();
        match &mut *state {
            AnswerState::Open(Some(waker)) => waker.clone_from(cx.waker()),
            AnswerState::Open(waker) => *waker = Some(cx.waker().clone()),
            AnswerState::Answered(_) => {
                if let AnswerState::Answered(answer) = std::mem::replace(&mut *state, AnswerState::Taken) {
                    return Poll::Ready(answer);
                }
            }
            // Awaited again after it was done.
            AnswerState::Taken => return Poll::Ready(Err(Error::Closed(Closed::ByUs))),
        }
        Poll::Pending
    }
}

impl fmt::Debug for AnswerSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerSender")
    }
}

impl<T> fmt::Debug for PendingAnswer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingAnswer").field(&self.0.method).finish()
    }
}
