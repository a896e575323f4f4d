//! The conversation with the model: what was said, what is open, and what the model is asked next.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use attache::Error;
use attache::model::Patch;
use attache::model::notice::{CompactionStatus, CompactionUpdate};
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use attache::model::update::SessionUpdate;

use crate::model::{Finish, Message, ModelInfo, Part, Request};
use crate::session_log::Written;
use crate::store::Entry;
use crate::system_prompt::{Detail, Surroundings, look_around, system_prompt};
use crate::tokens::ContextUse;
use crate::tools::commands::GIT_TIME;
use crate::turn::{self, Desk};
use crate::workspace::blocking;

/// How many tokens a small model may answer with: one that says more has lost the thread.
const SMALL_ANSWER: u32 = 1024;

/// The conversation with the model, and what of it is still open.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// Which of the messages is the summary of those that are gone.
    pub(crate) summary: Option<usize>,
    /// How many of the last prompts are of this turn: the one that began it, and what was said to the model meanwhile.
    pub(crate) turn_prompts: usize,
    /// How full the context is.
    pub(crate) context: ContextUse,
    /// The system prompt of this turn, and whether it is the short one.
    system: Option<(Detail, Arc<str>)>,
    /// What the model was last told of where it is.
    surroundings: Option<Surroundings>,
    /// What the person wants in this turn, in their own words: nothing of it is what they attached.
    pub(crate) task: String,
    /// What the model has said of the message that it is saying.
    pub(crate) said: String,
    /// Calls that the model has made, in order, until their results are among the messages.
    pub(crate) open: Vec<OpenCall>,
    /// The compaction that the client sees as running.
    pub(crate) compacting: Option<String>,
}

/// A call that the client has been shown and the model has no result of yet.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// The model's id for it.
    pub(crate) call_id: String,
    /// The client's id for it.
    pub(crate) tool_id: String,
    pub(crate) name: String,
    /// Whether the client was told how it ended.
    pub(crate) is_ended: AtomicBool,
    /// Whether the message with it is among the messages.
    pub(crate) is_said: bool,
}

impl Conversation {
    /// A conversation that has been like this so far.
    pub(crate) fn new(messages: Vec<Message>, summary: Option<usize>, counted: Option<(u64, usize)>) -> Self {
        Conversation { messages, summary, context: ContextUse::counted(counted), ..Conversation::default() }
    }

    /// Adds a message to the conversation, and to the log. What was said or done stays so when it cannot be kept.
    ///
    /// It is said when this returns: nothing is lost if nobody waits until it is kept.
    pub(crate) fn say(&mut self, desk: &Desk, message: Message) -> Written {
        let kept = desk.log.keep_message(&message);
        match &message {
            Message::Assistant { calls, .. } => {
                self.said.clear();
                for open in &mut self.open {
                    open.is_said |= calls.iter().any(|call| call.id == open.call_id);
                }
            }
            Message::Tool { id, .. } => self.open.retain(|open| open.call_id != *id),
            Message::User { .. } => self.turn_prompts += 1,
        }
        self.messages.push(message);
        kept
    }

    /// Ends everything that is open: a turn that was cancelled or failed leaves nothing behind, neither for the client
    /// nor for the model. All of it is ended, also when the disk is full; the first error is the one that is told.
    pub(crate) async fn close(&mut self, desk: &Desk, status: ToolCallStatus, why: &str) -> Result<(), Error> {
        let mut closed = turn::last_words(desk).await;
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            let message = Message::Assistant { text: said, calls: Vec::new(), opaque: None };
            closed = closed.and(self.say(desk, message).await);
        }
        for open in std::mem::take(&mut self.open) {
            if open.is_said {
                let result =
                    Message::Tool { id: open.call_id, name: open.name, parts: vec![Part::text(why)], is_error: true };
                closed = closed.and(self.say(desk, result).await);
            }
            if !open.is_ended.into_inner() {
                let is_failure = status == ToolCallStatus::Failed;
                let content = is_failure.then(|| vec![ToolCallContent::text(why)]).map_or(Patch::Keep, Patch::Set);
                let status = Patch::Set(status.clone());
                let update = ToolCallUpdate::new(open.tool_id).with(|update| {
                    update.status = status;
                    update.content = content;
                });
                closed = closed.and(desk.log.show_end(SessionUpdate::ToolCallUpdate(update.into())).await);
            }
        }
        if let Some(id) = self.compacting.take() {
            let status = match status {
                ToolCallStatus::Cancelled => CompactionStatus::Cancelled,
                _ => CompactionStatus::Failed,
            };
            let update = SessionUpdate::Compaction(CompactionUpdate::new(id, status));
            closed = closed.and(desk.log.show_end(update).await);
        }
        closed
    }

    /// Adds a prompt, with what the model has to know of where it is now.
    pub(crate) async fn say_prompt(&mut self, desk: &Desk, model: &ModelInfo, parts: Vec<Part>) -> Result<(), Error> {
        let (place, mode) = (desk.place.clone(), desk.settings.mode());
        // Rules need to know no more than what they are told.
        let around = if model.is_offline() {
            None
        } else {
            // Those who are told little are not told of it.
            let git = async { if model.is_small { None } else { desk.tools.commands.git_state(GIT_TIME).await } };
            let (around, git) = tokio::join!(blocking(move || look_around(&place, mode)), git);
            around.ok().map(|around| around.with_git(git))
        };
        let told = around.as_ref().and_then(|around| around.told(self.surroundings.as_ref(), Detail::of(model)));
        self.surroundings = around.or(self.surroundings.take());
        self.system = None;
        let parts = told.map(Part::text).into_iter().chain(parts).collect();
        self.turn_prompts = 0;
        self.say(desk, Message::User { parts }).await
    }

    /// Whether the last call failed.
    pub(crate) fn has_just_failed(&self) -> bool {
        matches!(self.messages.last(), Some(Message::Tool { is_error: true, .. }))
    }

    /// What came of the last call, in words.
    pub(crate) fn last_result(&self) -> String {
        let Some(Message::Tool { parts, .. }) = self.messages.last() else { return String::new() };
        parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }

    /// What the model is asked next.
    pub(crate) async fn request(&mut self, desk: &Desk, model: &ModelInfo) -> Request {
        let values = desk.settings.now();
        let detail = Detail::of(model);
        let system = match &self.system {
            Some((told, system)) if *told == detail => system.clone(),
            _ => {
                let place = desk.place.clone();
                let system: Arc<str> = blocking(move || system_prompt(&place, detail)).await.unwrap_or_default().into();
                self.system = Some((detail, system.clone()));
                system
            }
        };
        Request {
            system: system.to_string(),
            messages: self.messages.clone(),
            tools: desk.tools.specs(values.mode, model, turn::is_question(&self.task)),
            max_tokens: desk.limits.max_tokens.or(model.is_small.then_some(SMALL_ANSWER)),
            thought: if model.thinks { values.thought } else { Default::default() },
            finish: Finish::May,
        }
    }

    /// About how many tokens the context holds.
    pub(crate) fn used(&self) -> u64 {
        self.context.used(&self.messages)
    }

    /// Puts other messages in the place of all that there are. The log keeps both.
    pub(crate) async fn replace(
        &mut self,
        desk: &Desk,
        messages: Vec<Message>,
        summary: Option<usize>,
    ) -> Result<(), Error> {
        let kept = desk.log.keep(Entry::Compacted { messages: messages.clone(), summary });
        let before = (std::mem::replace(&mut self.messages, messages), std::mem::replace(&mut self.summary, summary));
        if let Err(error) = kept.await {
            (self.messages, self.summary) = before;
            return Err(error);
        }
        self.context.forget_count();
        // What was told of the place may be gone with the messages.
        self.surroundings = None;
        Ok(())
    }

    /// Where the last prompt is.
    pub(crate) fn last_prompt(&self) -> Option<usize> {
        self.prompts().next_back()
    }

    /// Where the prompt is that began the last turn, and what was said to the model in it: by the person, by a hook.
    pub(crate) fn prompts_of_turn(&self) -> Vec<usize> {
        let mut prompts: Vec<usize> = self.prompts().rev().take(self.turn_prompts.max(1)).collect();
        prompts.reverse();
        prompts
    }

    fn prompts(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_prompt = |at: &usize| matches!(self.messages[*at], Message::User { .. }) && Some(*at) != self.summary;
        (0..self.messages.len()).filter(is_prompt)
    }
}
