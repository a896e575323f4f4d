//! A turn as a client sees it: a stream of events with an end.

use attache_proto::model::{CancelNotification, ContentBlock, SessionUpdate, StopReason, Usage};

use super::event::Event;
use super::router::{End, Item};
use super::session::Session;
use crate::Error;

/// A turn of the agent: what happens between a prompt and its end.
///
/// Read it to the end. Dropped before that, it cancels.
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    session: Session,
    number: u64,
    end: Option<End>,
    /// Ends of other turns that were met on the way.
    held: Vec<(u64, Result<End, Error>)>,
}

impl Turn {
    pub(super) fn new(session: Session, number: u64) -> Self {
        Turn { session, number, end: None, held: Vec::new() }
    }

    /// The next event; `None` once the turn has ended. An error when the prompt failed or the connection ended.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        if self.end.is_some() {
            return Ok(None);
        }
        loop {
            match self.session.take().await? {
                Item::End(turn, end) if turn == self.number => {
                    let failed = End { stop: StopReason::Error, usage: None };
                    match end {
                        Ok(end) => {
                            self.end = Some(end);
                            return Ok(None);
                        }
                        Err(error) => {
                            self.end = Some(failed);
                            return Err(error);
                        }
                    }
                }
                Item::End(turn, end) => self.held.push((turn, end)),
                item => return Ok(Some(self.session.event(item))),
            }
        }
    }

    /// Why the turn ended, once it has.
    pub fn stop(&self) -> Option<&StopReason> {
        self.end.as_ref().map(|end| &end.stop)
    }

    /// The tokens of the turn, where the agent tells.
    pub fn usage(&self) -> Option<&Usage> {
        self.end.as_ref().and_then(|end| end.usage.as_ref())
    }

    /// Asks the agent to stop. The turn goes on until the agent has, usually with the stop reason `cancelled`.
    pub async fn cancel(&self) -> Result<(), Error> {
        let cancel = CancelNotification::new(self.session.id().clone());
        let link = &self.session.link();
        link.send(|router, port| self.session.send_cancel(router, port, Some(self.number), &cancel)).await
    }

    /// Reads the turn to its end and returns the text of the agent's messages. Everything the agent asks is declined.
    pub async fn text(mut self) -> Result<String, Error> {
        let mut text = String::new();
        while let Some(event) = self.next().await? {
            match event {
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                    text.push_str(chunk.content.as_text().unwrap_or_default());
                }
                Event::Update(SessionUpdate::AgentMessage(message)) => {
                    if let Some(blocks) = message.content.set() {
                        text.extend(blocks.iter().filter_map(ContentBlock::as_text));
                    }
                }
                other => other.decline().await?,
            }
        }
        Ok(text)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let link = &self.session.link();
        link.with(|router, port| {
            for (turn, end) in self.held.drain(..).rev() {
                router.put_back(self.session.id(), Item::End(turn, end));
            }
            if self.end.is_none() && router.is_open(self.session.id(), self.number) {
                let cancel = CancelNotification::new(self.session.id().clone());
                self.session.send_cancel(router, port, Some(self.number), &cancel);
            }
        });
    }
}
