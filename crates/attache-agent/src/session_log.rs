//! Where a session is seen: what is shown to the client is in the session's log first.

use std::sync::{Arc, Mutex, MutexGuard};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::content::{ContentBlock, MessageId};
use attache::model::error::ErrorObject;
use attache::model::notice::{Notice, NoticeSeverity};
use attache::model::tool::ToolCallUpdate;
use attache::model::update::{MessageChunk, SessionInfoUpdate, SessionUpdate};

use crate::model::Message;
use crate::store::{Entry, Log, StoreError};

/// What a session is shown on, and kept in.
#[derive(Clone)]
pub(crate) struct SessionLog {
    handle: SessionHandle,
    /// Gone when the session was deleted.
    log: Arc<Mutex<Option<Log>>>,
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
    pub(crate) fn new(handle: SessionHandle, log: Log) -> Self {
        let prefix = crate::random_word().into();
        SessionLog { handle, log: Arc::new(Mutex::new(Some(log))), prefix, next: Arc::default() }
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

    /// Keeps an entry. Once this returns, it survives the end of this process.
    pub(crate) fn keep(&self, entry: &Entry) -> Result<(), Error> {
        match self.log().as_mut() {
            Some(log) => log.append(entry).map_err(|error| unsaved(&error)),
            None => Err(Error::Refused(ErrorObject::internal("the session was deleted"))),
        }
    }

    /// Keeps what the model is told from now on.
    pub(crate) fn keep_message(&self, message: &Message) -> Result<(), Error> {
        self.keep(&Entry::Said { message: message.clone() })
    }

    /// Waits until what was kept is on the disk.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        let log = self.log.clone();
        let work = move || match crate::lock(&log).as_mut() {
            Some(log) => log.sync(),
            None => Ok(()),
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(synced) => synced.map_err(|error| unsaved(&error)),
            Err(_) => Err(Error::Refused(ErrorObject::internal("the session could not be saved"))),
        }
    }

    /// Gives the log up, so that it can be deleted.
    pub(crate) fn leave(&self) {
        self.log().take();
    }

    /// Keeps an update and shows it.
    pub(crate) async fn show(&self, update: SessionUpdate) -> Result<(), Error> {
        self.keep(&Entry::Update { update: Box::new(update.clone()) })?;
        self.handle.update(update).await
    }

    /// The same for the end of something that the client sees as running: shown even if it cannot be kept.
    pub(crate) async fn show_end(&self, update: SessionUpdate) -> Result<(), Error> {
        let kept = self.keep(&Entry::Update { update: Box::new(update.clone()) });
        self.handle.update(update).await.and(kept)
    }

    /// Shows what is new about a tool call.
    pub(crate) async fn tool(&self, update: ToolCallUpdate) -> Result<(), Error> {
        self.show(SessionUpdate::ToolCallUpdate(update.into())).await
    }

    /// Says a piece of a message.
    pub(crate) async fn say(&self, voice: Voice, id: &str, text: impl Into<String>) -> Result<(), Error> {
        let chunk = MessageChunk::new(ContentBlock::text(text)).message_id(MessageId::from(id));
        self.show(match voice {
            Voice::Answer => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        })
        .await
    }

    /// Says a whole message of the agent's own.
    pub(crate) async fn say_all(&self, text: impl Into<String>) -> Result<(), Error> {
        self.say(Voice::Answer, &self.fresh_id("message"), text).await
    }

    /// Tells the person something beside the conversation: as a notice, or as a thought to a client that has none.
    pub(crate) async fn notice(&self, severity: NoticeSeverity, title: impl Into<String>) -> Result<(), Error> {
        let title = title.into();
        if self.handle.client().capabilities.session.notices.is_some() {
            self.show(SessionUpdate::Notice(Notice::new(severity, title))).await
        } else {
            self.say(Voice::Thought, &self.fresh_id("notice"), format!("{title}\n")).await
        }
    }

    /// Gives the session a title.
    pub(crate) async fn title(&self, title: &str) -> Result<(), Error> {
        self.keep(&Entry::Title { title: title.into() })?;
        let update = SessionInfoUpdate::new().with(|update| update.title = attache::model::Patch::Set(title.into()));
        self.handle.update(SessionUpdate::SessionInfo(update)).await
    }

    fn log(&self) -> MutexGuard<'_, Option<Log>> {
        crate::lock(&self.log)
    }
}

fn unsaved(error: &StoreError) -> Error {
    Error::Refused(ErrorObject::internal(format!("the session could not be saved: {error}")))
}
