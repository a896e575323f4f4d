//! One turn: the model is asked, its tools are run, and so on until it has nothing more to do.

mod calls;
mod compact;
mod elicit;
mod guard;
mod reply;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use attache::agent::Turn;
use attache::model::error::ErrorObject;
use attache::model::notice::{CompactionStatus, CompactionUpdate, NoticeSeverity};
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use attache::model::update::{SessionUpdate, UsageUpdate};
use attache::model::{Meta, Patch};
use attache::{Error, Stop};

use crate::context;
use crate::cut::Spill;
use crate::gate::Gate;
use crate::model::{Call, EndReason, Failure, Message, Model, ModelError, Part, Request};
use crate::models::Models;
use crate::settings::Settings;
use crate::stage::Stage;
use crate::toolbox::Toolbox;

pub(crate) use compact::compact;
use compact::compact_unasked;

/// What a session's turns work with.
pub(crate) struct Desk {
    pub(crate) stage: Stage,
    pub(crate) settings: Settings,
    pub(crate) tools: Toolbox,
    pub(crate) gate: Gate,
    pub(crate) models: Arc<Models>,
    pub(crate) spill: Arc<Spill>,
    pub(crate) place: context::Place,
    pub(crate) limits: Limits,
    /// What tools that were dropped at work may still show.
    pub(crate) left: Mutex<Vec<calls::Showing>>,
}

/// What a turn may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked in one turn.
    pub requests: u32,
    /// How many tokens it may answer with each time.
    pub max_tokens: Option<u32>,
    /// How full the context may be, in percent, before the conversation is compacted.
    pub compact_at: u8,
}

impl Default for Limits {
    /// A hundred requests are more than most tasks take, and an end to those that never end.
    fn default() -> Self {
        Limits { requests: 100, max_tokens: None, compact_at: 80 }
    }
}

/// The conversation with the model, and what of it is still open.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    pub(crate) messages: Vec<Message>,
    /// How many tokens the context held when the model was last asked.
    pub(crate) used: u64,
    /// What the model has said of the message that it is saying.
    said: String,
    /// Calls that the model has made, in order, until their results are among the messages.
    open: Vec<OpenCall>,
    /// The compaction that the client sees as running.
    compacting: Option<String>,
}

/// A call that the client has been shown and the model has no result of yet.
#[derive(Debug)]
struct OpenCall {
    /// The model's id for it.
    call_id: String,
    /// The client's id for it.
    tool_id: String,
    name: String,
    /// Whether the client was told how it ended.
    is_ended: AtomicBool,
    /// Whether the message with it is among the messages.
    is_said: bool,
}

/// Why a turn could not go on.
pub(crate) enum Trouble {
    /// The client is gone, or the session cannot be saved.
    Peer(Error),
    /// The model gave no answer.
    Model(ModelError),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Peer(error)
    }
}

impl From<ModelError> for Trouble {
    fn from(error: ModelError) -> Self {
        Trouble::Model(error)
    }
}

impl Trouble {
    /// The error that the turn ends with.
    pub(crate) fn into_error(self, desk: &Desk) -> Error {
        match self {
            Trouble::Peer(error) => error,
            Trouble::Model(error) if error.kind == Failure::Key && desk.models.can_log_in() => {
                let client = desk.stage.handle().client();
                desk.models.auth_required(error, client.capabilities.auth.terminal.is_some())
            }
            Trouble::Model(error) => Error::Refused(ErrorObject::internal(error.message)),
        }
    }
}

/// What the person is told when there is nothing else to tell.
const EMPTY: &str = "the model gave an empty answer\nhint: ask again, or choose another model";

/// Runs a turn whose prompt is the last of the messages.
pub(crate) async fn run(desk: &Desk, talk: &mut Talk, turn: &Turn) -> Result<Stop, Trouble> {
    let mut guard = guard::Guard::default();
    let mut was_compacted = false;
    let mut note = None;
    let mut has_begun = false;
    for _ in 0..desk.limits.requests {
        let model = desk.models.open(&desk.settings.now().model)?;
        if talk.is_full(&*model, desk.limits.compact_at) {
            compact_unasked(desk, talk, &*model).await?;
        }
        let answer = match reply::ask(desk, talk, &*model, note).await {
            // Once: what is still too long then, stays too long.
            Err(Trouble::Model(error)) if error.kind == Failure::TooLong && !was_compacted => {
                was_compacted = true;
                compact_unasked(desk, talk, &*model).await?;
                continue;
            }
            answer => answer?,
        };
        talk.used = if answer.end.usage.input == 0 {
            talk.estimate()
        } else {
            answer.end.usage.input + answer.end.usage.output
        };
        let usage = UsageUpdate::new(talk.used, model.info().context);
        desk.stage.show(SessionUpdate::Usage(usage)).await?;
        let is_empty = answer.text.trim().is_empty() && answer.calls.is_empty();
        if is_empty && answer.end.reason == EndReason::Done {
            if has_begun {
                return Ok(Stop::EndTurn);
            }
            return Err(ModelError::new(Failure::Server, EMPTY).into());
        }
        has_begun = true;
        let message = Message::Assistant { text: answer.text, calls: answer.calls.clone(), opaque: answer.end.opaque };
        talk.say(desk, message)?;
        match answer.end.reason {
            EndReason::NotUnderstood => {
                let meta = Meta::new(&serde_json::json!({ NOT_DONE: true }).to_string());
                turn.end_meta(meta.expect("it is an object"));
                return Ok(Stop::EndTurn);
            }
            EndReason::Done if answer.calls.is_empty() => return Ok(Stop::EndTurn),
            EndReason::Done => {}
            // Calls that were cut off, or that stand beside a refusal, are not made.
            EndReason::MaxTokens => {
                talk.close(desk, ToolCallStatus::Failed, "not done: the answer was cut off").await?;
                return Ok(Stop::MaxTokens);
            }
            EndReason::Refusal => {
                talk.close(desk, ToolCallStatus::Failed, "not done: the model refused").await?;
                return Ok(Stop::Refusal);
            }
        }
        calls::run(desk, talk, turn, &answer.calls).await?;
        match guard.see(&answer.calls, &talk.messages) {
            guard::Seen::Fine => note = None,
            guard::Seen::Repeats => note = Some(guard::WARNING),
            guard::Seen::Loops => {
                desk.stage.say_all(guard::ENDED).await?;
                return Ok(Stop::MaxTurnRequests);
            }
        }
    }
    let said = format!("Stopped: the model was asked {} times in this turn.", desk.limits.requests);
    desk.stage.notice(NoticeSeverity::Warning, said).await?;
    Ok(Stop::MaxTurnRequests)
}

/// The key of the `_meta` that a turn ends with which did nothing, because the prompt was not understood.
pub const NOT_DONE: &str = "attache/not_done";

impl Talk {
    /// A conversation that has been like this so far.
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        let mut talk = Talk { messages, ..Talk::default() };
        talk.used = talk.estimate();
        talk
    }

    /// Adds a message to the conversation, and to the log. What was said or done stays so when it cannot be kept.
    pub(crate) fn say(&mut self, desk: &Desk, message: Message) -> Result<(), Error> {
        let kept = desk.stage.keep_message(&message);
        match &message {
            Message::Assistant { calls, .. } => {
                self.said.clear();
                for open in &mut self.open {
                    open.is_said |= calls.iter().any(|call| call.id == open.call_id);
                }
            }
            Message::Tool { id, .. } => self.open.retain(|open| open.call_id != *id),
            Message::User { .. } => {}
        }
        self.messages.push(message);
        kept
    }

    /// Ends everything that is open: a turn that was cancelled or failed leaves nothing behind, neither for the client
    /// nor for the model. All of it is ended, also when the disk is full; the first error is the one that is told.
    pub(crate) async fn close(&mut self, desk: &Desk, status: ToolCallStatus, why: &str) -> Result<(), Error> {
        let mut closed = calls::last_words(desk).await;
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            let message = Message::Assistant { text: said, calls: Vec::new(), opaque: None };
            closed = closed.and(self.say(desk, message));
        }
        for open in std::mem::take(&mut self.open) {
            if open.is_said {
                let result =
                    Message::Tool { id: open.call_id, name: open.name, parts: vec![Part::text(why)], is_error: true };
                closed = closed.and(self.say(desk, result));
            }
            if !open.is_ended.into_inner() {
                let is_failure = status == ToolCallStatus::Failed;
                let content = is_failure.then(|| vec![ToolCallContent::text(why)]).map_or(Patch::Keep, Patch::Set);
                let status = Patch::Set(status.clone());
                let update = ToolCallUpdate::new(open.tool_id).with(|update| {
                    update.status = status;
                    update.content = content;
                });
                closed = closed.and(desk.stage.show_end(SessionUpdate::ToolCallUpdate(update.into())).await);
            }
        }
        if let Some(id) = self.compacting.take() {
            let status = match status {
                ToolCallStatus::Cancelled => CompactionStatus::Cancelled,
                _ => CompactionStatus::Failed,
            };
            let update = SessionUpdate::Compaction(CompactionUpdate::new(id, status));
            closed = closed.and(desk.stage.show_end(update).await);
        }
        closed
    }

    /// What the model is asked next.
    fn request(&self, desk: &Desk, model: &dyn Model, note: Option<&str>) -> Request {
        let values = desk.settings.now();
        let mut system = context::system(&desk.place, values.mode);
        system.extend(note);
        Request {
            system,
            messages: self.messages.clone(),
            tools: desk.tools.specs(values.mode),
            max_tokens: desk.limits.max_tokens,
            thought: if model.info().thinks { values.thought } else { Default::default() },
        }
    }

    fn is_full(&self, model: &dyn Model, percent: u8) -> bool {
        self.messages.len() > 2 && self.used.saturating_mul(100) > model.info().context.saturating_mul(percent.into())
    }

    /// About how many tokens the messages are, for models that do not tell.
    pub(crate) fn estimate(&self) -> u64 {
        let part = |part: &Part| match part {
            Part::Text { text } => text.len() / 4,
            // What providers count for a picture of middling size.
            Part::Media { .. } => 1500,
        };
        let call = |call: &Call| (call.name.len() + call.arguments.len()) / 4;
        let tokens: usize = self
            .messages
            .iter()
            .map(|message| match message {
                Message::User { parts } | Message::Tool { parts, .. } => parts.iter().map(part).sum::<usize>(),
                Message::Assistant { text, calls, .. } => text.len() / 4 + calls.iter().map(call).sum::<usize>(),
            })
            .sum();
        tokens as u64
    }
}
