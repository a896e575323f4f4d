//! A turn as a client sees it: a stream of events with an end.

#[cfg(feature = "stream")]
use std::pin::Pin;
#[cfg(feature = "stream")]
use std::task::{Context, Poll};

use attache_proto::conversation::{TurnEnd, TurnId};
use attache_proto::model::Meta;
use attache_proto::model::content::{ContentBlock, MessageId};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::prompt::{CancelNotification, StopReason};
use attache_proto::model::unstable::Usage;
use attache_proto::model::update::SessionUpdate;

use super::event::Event;
#[cfg(feature = "stream")]
use super::session::poll_next;
use super::session::{Next, Session, next};
use crate::Error;
use crate::spans::Span;

/// A turn of the agent: what happens between a prompt and its end.
///
/// Read it to the end. Dropped before that, it cancels, and what the agent still sends of it is discarded. Several turns of
/// one session may be read at the same time: each event goes to one of them, and each gets its own end.
///
/// Not to be confused with `agent::Turn`, which is `attache::Turn`: the same turn as the agent sees it.
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    session: Session,
    id: TurnId,
    end: Option<End>,
    span: Span,
    #[cfg(feature = "stream")]
    waiter: Option<u64>,
}

/// How a turn ended, as far as it is kept.
#[derive(Debug)]
struct End {
    stop: StopReason,
    usage: Option<Usage>,
    meta: Option<Meta>,
}

impl Turn {
    pub(super) fn new(session: Session, id: TurnId) -> Self {
        Turn {
            session,
            id,
            end: None,
            span: Span::turn(),
            #[cfg(feature = "stream")]
            waiter: None,
        }
    }

    /// The next event; `None` once the turn has ended. An error when the prompt failed or the connection ended.
    ///
    /// Cancel safe: dropping the future, as `tokio::select!` does, loses no event.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        Ok(self.next_with_meta().await?.map(|(event, _)| event))
    }

    /// The next event, with the `_meta` of the message that it came in, if it is an update that has one.
    /// Cancel safe.
    pub async fn next_with_meta(&mut self) -> Result<Option<(Event, Option<Meta>)>, Error> {
        if self.end.is_some() {
            return Ok(None);
        }
        let next = next(self.session.shared(), Some(self.session.id()), Some(self.id));
        match self.span.around(next).await? {
            Next::Event(event, meta) => Ok(Some((event, meta))),
            Next::End(end) => self.end_with(end).map(|()| None),
        }
    }

    fn end_with(&mut self, end: Result<TurnEnd, Error>) -> Result<(), Error> {
        let (stop, usage, meta, result) = match end {
            Ok(TurnEnd { result: Ok(stop), usage, meta, .. }) => (stop, usage, meta, Ok(())),
            Ok(TurnEnd { result: Err(error), usage, meta, .. }) => {
                (StopReason::Error, usage, meta, Err(Error::Refused(error)))
            }
            Err(error) => (StopReason::Error, None, None, Err(error)),
        };
        self.span.stopped(stop.as_str());
        self.end = Some(End { stop, usage, meta });
        result
    }

    /// Why the turn ended, once it has.
    pub fn stop(&self) -> Option<&StopReason> {
        self.end.as_ref().map(|end| &end.stop)
    }

    /// The tokens of the turn, if the agent reported them.
    pub fn usage(&self) -> Option<&Usage> {
        self.end.as_ref().and_then(|end| end.usage.as_ref())
    }

    /// The `_meta` that the agent ended the turn with.
    pub fn meta(&self) -> Option<&Meta> {
        self.end.as_ref().and_then(|end| end.meta.as_ref())
    }

    /// Asks the agent to stop. The turn goes on until the agent has, usually with the stop reason `cancelled`.
    pub async fn cancel(&self) -> Result<(), Error> {
        let cancel = CancelNotification::new(self.session.id().clone());
        let link = &self.session.link();
        link.send(|router, port| self.session.send_cancel(router, port, Some(self.id), &cancel)).await
    }

    /// Reads the turn to its end and returns the text of the agent's messages. Everything the agent asks is declined.
    pub async fn text(mut self) -> Result<String, Error> {
        let mut messages: Vec<(Option<MessageId>, String)> = Vec::new();
        while let Some(event) = self.next().await? {
            match event {
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                    let text = chunk.content.as_text().unwrap_or_default();
                    match messages.iter_mut().rev().find(|(id, _)| *id == chunk.message_id) {
                        Some((_, message)) => message.push_str(text),
                        None => messages.push((chunk.message_id, text.to_owned())),
                    }
                }
                // A whole message takes the place of the pieces that came before.
                Event::Update(SessionUpdate::AgentMessage(message)) if !message.content.is_keep() => {
                    let blocks = message.content.set().map_or(&[][..], Vec::as_slice);
                    let text: String = blocks.iter().filter_map(ContentBlock::as_text).collect();
                    let id = Some(message.message_id);
                    match messages.iter_mut().find(|(known, _)| *known == id) {
                        Some((_, message)) => *message = text,
                        None => messages.push((id, text)),
                    }
                }
                other => other.decline().await?,
            }
        }
        Ok(messages.into_iter().map(|(_, text)| text).collect())
    }
}

/// The events of a turn as a stream: with the feature `stream`.
#[cfg(feature = "stream")]
impl futures_core::Stream for Turn {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        let (shared, session) = (this.session.shared(), this.session.id());
        match std::task::ready!(poll_next(shared, Some(session), Some(this.id), &mut this.waiter, cx)) {
            Ok(Next::Event(event, _)) => Poll::Ready(Some(Ok(event))),
            Ok(Next::End(end)) => Poll::Ready(this.end_with(end).err().map(Err)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let link = &self.session.link();
        link.with(|router, port| {
            #[cfg(feature = "stream")]
            router.leave(Some(self.session.id()), &mut self.waiter);
            let calls = router.drop_turn(self.session.id(), self.id);
            if self.end.is_none() && router.is_open(self.session.id(), self.id) {
                let cancel = CancelNotification::new(self.session.id().clone());
                self.session.send_cancel(router, port, Some(self.id), &cancel);
            }
            for call in calls {
                port.refuse(call, &ErrorObject::internal("nobody reads this turn"));
            }
        });
    }
}
