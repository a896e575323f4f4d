//! What a small model is helped with: it finds little by itself, loses the thread in long conversations, and gives up early.
//!
//! What its prompt names is looked at before it is asked. The text of a file is asked for in a request of its own, with the
//! file and the task and nothing else. What it wrote is checked, and before it finishes somebody looks whether anything that
//! the prompt names is missing. All of that are ordinary calls, which anybody can see and which are judged like its own.

mod answer;
mod check;
mod merge;
mod named;
mod prime;
mod question;
mod relevant;
mod text;
mod window;

use attache::agent::Turn;
use attache::{Error, Stop};

use super::guard::Guard;
use super::reply::{self, Answer};
use super::{Begins, Desk, Trouble, calls};
use crate::conversation::Conversation;
use crate::model::{Call, Finish, Message, Model, ModelInfo, Part};
use crate::settings::Mode;
use crate::toolbox::ANSWER;

pub(crate) use question::is_question;

/// How often a small model is told that something is missing.
const MOST_LOOKS: u32 = 2;

/// How often it is, if it gets on meanwhile.
const MOST_PROGRESS: u32 = 4;

/// The help for one turn.
pub(super) struct Help {
    /// What the person asked for.
    task: String,
    is_question: bool,
    /// Whether something was found to look at.
    has_looked: bool,
    /// Whether the model has done something that may have changed something.
    has_acted: bool,
    /// Commands that the person named and that failed, with what they said last.
    commands: Vec<(String, String)>,
    /// How often it may still be told that something is missing.
    looks: u32,
    progress: u32,
}

impl Help {
    /// Looks at what the last prompt names, unless the turn goes on after a hook: then it has been looked at.
    pub(super) async fn begin(
        desk: &Desk,
        conversation: &mut Conversation,
        turn: &Turn,
        model: &ModelInfo,
        begins: Begins,
    ) -> Result<Help, Error> {
        let task = conversation.task.clone();
        let is_question = is_question(&task);
        let before = conversation.messages.len();
        let commands = match begins {
            Begins::WithPrompt => prime::look(desk, conversation, turn, model, &task, is_question).await?,
            Begins::AfterHook => Vec::new(),
        };
        let has_looked = conversation.messages.len() > before || begins == Begins::AfterHook;
        Ok(Help {
            task,
            is_question,
            has_looked,
            has_acted: false,
            commands,
            looks: MOST_LOOKS,
            progress: MOST_PROGRESS,
        })
    }

    /// The person has said more. Whatever was to be looked at before may not be wanted any more.
    pub(super) fn hear(&mut self, conversation: &Conversation) {
        if self.task != conversation.task {
            self.task.clone_from(&conversation.task);
            self.is_question = is_question(&self.task);
            self.commands.clear();
        }
    }

    /// Whether the model may finish at once. It gives up where it could go on, so it has to begin with something, unless it
    /// is asked about what it was shown, or for nothing that needs a tool.
    pub(super) fn finish(&self) -> Finish {
        let can_answer = self.is_question && self.has_looked;
        if can_answer || !(self.is_question || question::is_task(&self.task)) { Finish::May } else { Finish::MayNot }
    }

    /// Makes a call complete that writes a file: its text is asked for apart. False if the model then had none to give.
    pub(super) async fn complete(
        &self,
        desk: &Desk,
        conversation: &mut Conversation,
        turn: &Turn,
        model: &dyn Model,
        answer: &mut Answer,
    ) -> Result<bool, Trouble> {
        text::complete(desk, conversation, turn, model, &self.task, answer).await
    }

    /// Checks what the calls of an answer have written.
    pub(super) async fn check(
        &mut self,
        desk: &Desk,
        conversation: &mut Conversation,
        turn: &Turn,
        model: &ModelInfo,
        calls: &[Call],
    ) -> Result<(), Error> {
        self.has_acted |= calls.iter().any(check::may_change);
        check::written(desk, conversation, turn, model, calls).await
    }

    /// Looks whether something is missing when the model says that it is done. Then it is told, and goes on.
    pub(super) async fn is_unfinished(
        &mut self,
        desk: &Desk,
        conversation: &mut Conversation,
        turn: &Turn,
        model: &ModelInfo,
    ) -> Result<bool, Error> {
        // Who only plans changes nothing, and should not.
        if self.is_question || self.looks == 0 || desk.settings.mode() == Mode::Architect {
            return Ok(false);
        }
        let missing = check::missing(desk, conversation, turn, model, self).await?;
        let Some(missing) = missing else { return Ok(false) };
        // Where it gets on, it may go on.
        if missing.is_progress && self.progress > 0 {
            self.progress -= 1;
        } else {
            self.looks -= 1;
        }
        conversation.say(desk, Message::user(format!("{NOT_DONE}{}", missing.words))).await?;
        Ok(true)
    }

    /// Answers a question, when the model says that it can. That is the end of the turn.
    pub(super) async fn answer(
        &self,
        desk: &Desk,
        conversation: &mut Conversation,
        model: &dyn Model,
        calls: &[Call],
    ) -> Result<Option<Stop>, Trouble> {
        if !calls.iter().any(|call| call.name == ANSWER) {
            return Ok(None);
        }
        answer::say(desk, conversation, model, &self.task).await.map(Some)
    }
}

/// How many bytes there are room for in a request of its own: about half of the context, by four bytes a token. The rest is for
/// instructions and the answer.
fn room(model: &ModelInfo) -> usize {
    usize::try_from(model.context).map_or(usize::MAX, |tokens| tokens.saturating_mul(2))
}

/// Makes a call for the model, as if it had made it.
async fn make(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
    name: &str,
    arguments: serde_json::Value,
) -> Result<(), Error> {
    let call = Call { id: desk.log.fresh_id("help"), name: name.to_owned(), arguments: arguments.to_string() };
    reply::start_whole(desk, conversation, &call).await?;
    let message = Message::Assistant { text: String::new(), calls: vec![call.clone()], opaque: None };
    conversation.say(desk, message).await?;
    calls::run(desk, conversation, turn, &[call], model, &mut Guard::new(false)).await?;
    Ok(())
}

/// What the model is told if something is missing begins with this.
const NOT_DONE: &str = "You are not done: ";

/// The messages of this turn, the prompt first. What the model was told meanwhile is no prompt.
fn of_turn(conversation: &Conversation) -> &[Message] {
    let is_prompt = |message: &Message| match message {
        Message::User { parts } => !parts.iter().filter_map(Part::as_text).any(|text| text.starts_with(NOT_DONE)),
        _ => false,
    };
    let messages = conversation.messages.iter().enumerate();
    let is_start = |(at, message): (usize, &Message)| is_prompt(message) && Some(at) != conversation.summary;
    let start = messages.rev().find(|(at, message)| is_start((*at, message))).map_or(0, |(at, _)| at);
    &conversation.messages[start..]
}
