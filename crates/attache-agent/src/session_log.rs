//! Where a session is seen: what is shown to the client is in the session's log first.

mod unused;
mod writer;

use std::sync::{Arc, Mutex};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::content::{ContentBlock, MessageId};
use attache::model::error::ErrorObject;
use attache::model::notice::{Notice, NoticeSeverity};
use attache::model::tool::ToolCallUpdate;
use attache::model::update::{MessageChunk, SessionUpdate};
use tokio::sync::watch;

use crate::model::Message;
use crate::store::{Entry, Log};

pub(crate) use unused::Unused;
use writer::{Job, Writer};
pub(crate) use writer::{MOST_AT_ONCE, Written};

/// What a session is shown on, and kept in.
///
/// What is told to it is done in order, and is done also if nobody waits for it: a turn may be dropped at any time.
#[derive(Clone)]
pub(crate) struct SessionLog {
    handle: SessionHandle,
    writer: Writer,
    lost: watch::Receiver<bool>,
    /// What the ids of this process begin with, so that they do not repeat those of an earlier one.
    prefix: Arc<str>,
    next: Arc<Mutex<u64>>,
}

/// Which voice a piece of text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Answer,
    Thought,
}

impl SessionLog {
    pub(crate) fn new(handle: SessionHandle, log: Box<dyn Log>) -> Self {
        let prefix = crate::random_word().into();
        let lost = log.lost();
        SessionLog { writer: Writer::start(handle.clone(), log), lost, handle, prefix, next: Arc::default() }
    }

    pub(crate) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// An id for a message or a tool call that this session has not had.
    pub(crate) fn fresh_id(&self, what: &str) -> String {
        let mut next = crate::lock(&self.next);
        *next += 1;
        format!("{what}-{}-{next}", self.prefix)
    }

    /// Keeps an entry. Once this is done, it survives the end of this process.
    pub(crate) fn keep(&self, entry: Entry) -> Written {
        self.writer.tell(Job::Keep(entry))
    }

    /// Keeps what the model is told from now on.
    pub(crate) fn keep_message(&self, message: &Message) -> Written {
        self.keep(Entry::Said { message: message.clone() })
    }

    /// Waits until what was kept is on the disk.
    pub(crate) fn sync(&self) -> Written {
        self.writer.tell(Job::Sync)
    }

    /// Waits until another server may have the session, and says so. For ever where there is no other.
    pub(crate) async fn lost(&self) -> Error {
        let is_lost = self.lost.clone().wait_for(|is_lost| *is_lost).await.is_ok();
        if !is_lost {
            return std::future::pending().await;
        }
        let why = "the session's store did not answer for too long, or another server has taken the session over";
        Error::Refused(ErrorObject::internal(why))
    }

    /// Gives the log up, so that it can be deleted.
    pub(crate) async fn leave(&self) {
        let _ = self.writer.tell(Job::Leave).await;
    }

    /// Keeps an update and shows it.
    pub(crate) fn show(&self, update: SessionUpdate) -> Written {
        self.writer.tell(Job::Show(Entry::Update { update: Box::new(update) }))
    }

    /// The same for the end of something that the client sees as running: shown even if it cannot be kept.
    pub(crate) fn show_end(&self, update: SessionUpdate) -> Written {
        self.writer.tell(Job::ShowEnd(Entry::Update { update: Box::new(update) }))
    }

    /// Shows what is new about a tool call.
    pub(crate) fn tool(&self, update: ToolCallUpdate) -> Written {
        self.show(SessionUpdate::ToolCallUpdate(update.into()))
    }

    /// Says a piece of a message.
    pub(crate) fn say(&self, voice: Voice, id: &str, text: impl Into<String>) -> Written {
        let chunk = MessageChunk::new(ContentBlock::text(text)).message_id(MessageId::from(id));
        self.show(match voice {
            Voice::Answer => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        })
    }

    /// Says a whole message of the agent's own.
    pub(crate) fn say_all(&self, text: impl Into<String>) -> Written {
        self.say(Voice::Answer, &self.fresh_id("message"), text)
    }

    /// Tells the person something beside the conversation: as a notice, or as a thought to a client that has none.
    pub(crate) fn notice(&self, severity: NoticeSeverity, title: impl Into<String>) -> Written {
        let title = title.into();
        if self.handle.client().capabilities.session.notices.is_some() {
            self.show(SessionUpdate::Notice(Notice::new(severity, title)))
        } else {
            self.say(Voice::Thought, &self.fresh_id("notice"), format!("{title}\n"))
        }
    }

    /// Gives the session a title.
    pub(crate) fn title(&self, title: &str) -> Written {
        self.writer.tell(Job::Show(Entry::Title { title: title.into() }))
    }
}
