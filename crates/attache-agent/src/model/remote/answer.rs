//! One request on its way: `genai` brings events, the reader makes pieces of them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use genai::chat::{ChatFrameSink, ChatStream, FrameCtx, RawFrameRef};
use tokio::time::{Instant, Sleep};

use super::failure::{Trouble, Who};
use super::out::Out;
use super::reader::Reader;
use super::unfinished::Unfinished;
use crate::model::{Failure, Piece};

/// How much an answer may have, in bytes of its events. The longest answers there are have a tenth of it.
const MOST_BYTES: usize = 32 << 20;

/// Events that have come and were not read yet. `genai` puts them in, [`Answer`] takes them out.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<String>,
    /// All that has come so far.
    bytes: usize,
}

impl Inbox {
    fn take(&self) -> (VecDeque<String>, usize) {
        let mut waiting = crate::lock(&self.0);
        (std::mem::take(&mut waiting.events), waiting.bytes)
    }
}

impl ChatFrameSink for Inbox {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut waiting = crate::lock(&self.0);
        // Each event costs something, even an empty one.
        waiting.bytes = waiting.bytes.saturating_add(frame.data.len() + 16);
        if waiting.bytes <= MOST_BYTES {
            waiting.events.push_back(frame.data.to_owned());
        }
    }
}

/// An answer as it comes. Dropping it drops the request.
pub(super) struct Answer {
    source: Option<ChatStream>,
    inbox: Arc<Inbox>,
    reader: Reader,
    out: Out,
    who: Who,
    /// The model's id, for what has to go back to it.
    id: String,
    /// Goes off when no event was complete for long. `genai` itself only notices when no byte comes.
    quiet: Pin<Box<Sleep>>,
    limit: Duration,
    unfinished: Unfinished,
    trouble: Option<Trouble>,
}

impl Answer {
    pub(super) fn new(
        source: ChatStream,
        inbox: Arc<Inbox>,
        reader: Reader,
        out: Out,
        who: Who,
        id: String,
        (header, read): (Duration, Duration),
    ) -> Self {
        let limit = read + Duration::from_secs(1);
        let quiet = Box::pin(tokio::time::sleep(header + limit));
        Answer {
            source: Some(source),
            inbox,
            reader,
            out,
            who,
            id,
            quiet,
            limit,
            unfinished: Unfinished::default(),
            trouble: None,
        }
    }

    /// Reads the events that have come.
    fn read(&mut self) {
        let (events, bytes) = self.inbox.take();
        if events.is_empty() && bytes <= MOST_BYTES {
            return;
        }
        self.quiet.as_mut().reset(Instant::now() + self.limit);
        self.unfinished = Unfinished::default();
        for event in events {
            if let Err(trouble) = self.reader.handle(&event, &mut self.out, &self.who) {
                return self.fail(trouble);
            }
            if self.reader.is_over() {
                return self.finish(None);
            }
        }
        if bytes > MOST_BYTES {
            self.too_long();
        }
    }

    fn too_long(&mut self) {
        let message = format!("response from `{}` exceeded {} MiB", self.who.name, MOST_BYTES >> 20);
        self.fail(Trouble::new(Failure::Request, message));
    }

    fn fail(&mut self, trouble: Trouble) {
        self.source = None;
        self.trouble = Some(trouble);
    }

    /// Nothing more comes. If the answer is whole, it does not matter why.
    fn finish(&mut self, why: Option<Trouble>) {
        self.source = None;
        if let Err(cut) = self.reader.finish(&mut self.out, &self.id, &self.who) {
            self.trouble = Some(why.unwrap_or(cut));
        }
    }

    /// What `genai` calls an error. What it could not make sense of is left to our reader, which has seen it too.
    fn failed(&mut self, error: &genai::Error) {
        if let genai::Error::WebStream { error, .. } = error {
            let trouble = match error.downcast_ref::<genai::Error>() {
                Some(genai::Error::HttpError { status, body, headers, .. }) => {
                    self.who.status(status.as_u16(), headers, body)
                }
                _ => self.who.transport(&**error),
            };
            self.finish(Some(trouble));
        }
    }
}

impl Stream for Answer {
    type Item = Result<Piece, Trouble>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.out.pop() {
                return Poll::Ready(Some(Ok(piece)));
            }
            if let Some(trouble) = this.trouble.take() {
                return Poll::Ready(Some(Err(trouble)));
            }
            let Some(source) = &mut this.source else { return Poll::Ready(None) };
            let polled = Pin::new(source).poll_next(context);
            // Events come before whatever ended them.
            this.read();
            if this.source.is_some() && this.unfinished.is_too_long() {
                this.too_long();
            }
            if this.source.is_none() {
                continue;
            }
            match polled {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => this.failed(&error),
                Poll::Ready(None) => this.finish(None),
                Poll::Pending => {
                    if let Some(piece) = this.out.pop() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    // A server that floods us uses up the task's share of time, and then timers never seem to go off.
                    let is_late = Instant::now() >= this.quiet.deadline();
                    if !is_late && this.quiet.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    let silence = this.who.silence();
                    this.finish(Some(silence));
                }
            }
        }
    }
}
