//! One turn: the model is asked, its tools are run, and so on until it has nothing more to do.

mod calls;
mod compact;
mod elicit;
mod guard;
mod reply;
mod small;
mod subagent;
mod usage;

use std::sync::{Arc, Mutex};

use attache::agent::Turn;
use attache::model::Meta;
use attache::model::content::ContentBlock;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::ToolCallStatus;
use attache::{Dialect, Error, Stop};
use futures_util::StreamExt;

use crate::attachments;
use crate::conversation::Conversation;
use crate::cut::Spill;
use crate::gate::Gate;
use crate::model::{Call, End, EndReason, Failure, Finish, Message, Model, ModelError, Piece, Request};
use crate::model_list::ModelList;
use crate::session_log::SessionLog;
use crate::settings::Settings;
use crate::store::Entry;
use crate::toolbox::Toolbox;

pub(crate) use calls::last_words;
pub(crate) use compact::compact;
use compact::compact_unasked;
pub(crate) use small::is_question;
pub(crate) use usage::{of_turn, stopped_by_limit, tell_rest};

/// What a session's turns work with.
pub(crate) struct Desk {
    pub(crate) log: SessionLog,
    pub(crate) settings: Settings,
    pub(crate) tools: Toolbox,
    pub(crate) gate: Gate,
    pub(crate) models: Arc<ModelList>,
    pub(crate) spill: Arc<Spill>,
    pub(crate) place: crate::system_prompt::Place,
    pub(crate) limits: Limits,
    pub(crate) checkpoints: crate::checkpoint::Checkpoints,
    pub(crate) hooks: crate::hooks::Hooks,
    /// How full the context was when that was last told, and how much there is of it.
    pub(crate) context_told: Mutex<Option<(u64, u64)>>,
    /// What sub-agents left open when their turn was dropped.
    pub(crate) unended: Mutex<Vec<subagent::Unended>>,
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
    /// How many tokens the session may take in all.
    pub max_tokens_total: Option<u64>,
    /// What the session may cost in all, as far as prices are known.
    pub max_cost: Option<crate::model::price::Cost>,
}

impl Default for Limits {
    /// A hundred requests are more than most tasks take, and an end to those that never end.
    fn default() -> Self {
        Limits { requests: 100, max_tokens: None, compact_at: 80, max_tokens_total: None, max_cost: None }
    }
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
            Trouble::Model(error) if error.kind == Failure::Key => {
                let client = desk.log.handle().client();
                desk.models.auth_required(error, client.capabilities.auth.terminal.is_some())
            }
            Trouble::Model(error) => Error::Refused(error.to_peer()),
        }
    }
}

/// What the person is told when there is nothing else to tell.
const EMPTY: &str = "the model gave an empty answer\nhint: ask again, or choose another model";

/// How often a small model has to go on after a call that failed.
const MOST_PUSHES: u32 = 2;

/// What a run of the model begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// What the person said.
    WithPrompt,
    /// What a hook at the end of the turn said.
    AfterHook,
}

/// Runs a turn whose prompt, or what a hook said to it, is the last of the messages.
pub(crate) async fn run(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    begins: Begins,
) -> Result<Stop, Trouble> {
    let model = desk.models.open_aside(&desk.settings.now().model).await?;
    let mut guard = guard::Guard::new(model.info().is_small);
    let mut pushes = MOST_PUSHES;
    let mut has_begun = false;
    let mut help = match model.info().is_small {
        true => Some(small::Help::begin(desk, conversation, turn, model.info(), begins).await?),
        false => None,
    };
    let mut finish = help.as_ref().map_or(Finish::May, small::Help::finish);
    for _ in 0..desk.limits.requests {
        let model = desk.models.open_aside(&desk.settings.now().model).await?;
        if let Some(stop) = usage::limit_reached(desk, &*model).await? {
            return Ok(stop);
        }
        if has_begun {
            hear(desk, conversation, turn, &*model).await?;
            if let Some(help) = &mut help {
                help.hear(conversation);
            }
        }
        let mut answer = ask(desk, conversation, &*model, finish).await?;
        conversation.context.count(&answer.end.usage, &conversation.messages);
        let mut has_text = true;
        if let Some(help) = &help {
            if let Some(stop) = help.answer(desk, conversation, &*model, &answer.calls).await? {
                usage::tell(desk, conversation.used(), &*model).await?;
                return Ok(stop);
            }
            has_text = help.complete(desk, conversation, turn, &*model, &mut answer).await?;
        }
        usage::tell(desk, conversation.used(), &*model).await?;
        let is_empty = answer.text.trim().is_empty() && answer.calls.is_empty();
        if is_empty && answer.end.reason == EndReason::Done {
            if has_begun {
                return Ok(Stop::EndTurn);
            }
            return Err(ModelError::new(Failure::Server, EMPTY).into());
        }
        has_begun = true;
        let message = Message::Assistant { text: answer.text, calls: answer.calls.clone(), opaque: answer.end.opaque };
        conversation.say(desk, message).await?;
        match answer.end.reason {
            EndReason::NotUnderstood => {
                let meta = Meta::new(&serde_json::json!({ NOT_DONE: true }).to_string());
                turn.end_meta(meta.expect("it is an object"));
                return Ok(Stop::EndTurn);
            }
            EndReason::Done if answer.calls.is_empty() => {
                if finish != Finish::Must
                    && let Some(help) = &mut help
                    && help.is_unfinished(desk, conversation, turn, model.info()).await?
                {
                    continue;
                }
                return Ok(Stop::EndTurn);
            }
            EndReason::Done => {}
            // Calls that were cut off, or that stand beside a refusal, are not made.
            EndReason::MaxTokens => {
                conversation.close(desk, ToolCallStatus::Failed, "not done: the answer was cut off").await?;
                return Ok(Stop::MaxTokens);
            }
            EndReason::Refusal => {
                conversation.close(desk, ToolCallStatus::Failed, "not done: the model refused").await?;
                return Ok(Stop::Refusal);
            }
        }
        let seen = calls::run(desk, conversation, turn, &answer.calls, model.info(), &mut guard).await?;
        if let Some(help) = &mut help {
            help.check(desk, conversation, turn, model.info(), &answer.calls).await?;
        }
        let was_last = std::mem::replace(&mut finish, Finish::May) == Finish::Must;
        if seen == calls::Seen::Loops {
            // A model that is held to a form can be made to finish; others are told, and go on as they please.
            if !model.info().is_small || was_last {
                desk.log.say_all(guard::ENDED).await?;
                return Ok(Stop::MaxTurnRequests);
            }
            finish = Finish::Must;
        } else if model.info().is_small && pushes > 0 && has_text && conversation.has_just_failed() {
            pushes -= 1;
            finish = Finish::MayNot;
        }
    }
    let said = format!("Stopped: the model was asked {} times in this turn.", desk.limits.requests);
    desk.log.notice(NoticeSeverity::Warning, said).await?;
    Ok(Stop::MaxTurnRequests)
}

/// Takes up what the person said while the model worked: it hears of that with its next step. Older versions have no word
/// for it, and a command is for us and not for the model: these begin turns of their own.
async fn hear(desk: &Desk, conversation: &mut Conversation, turn: &Turn, model: &dyn Model) -> Result<(), Trouble> {
    if desk.log.handle().client().dialect != Dialect::V2 {
        return Ok(());
    }
    let is_for_model = |blocks: &[ContentBlock]| {
        let first = blocks.iter().find_map(ContentBlock::as_text);
        first.is_none_or(|text| !text.trim_start().starts_with('/'))
    };
    while let Some((prompt, id)) = turn.take_prompt(is_for_model)? {
        let id = id.map_or_else(|| desk.log.fresh_id("prompt"), |id| id.as_str().into());
        let kept = desk.log.keep(Entry::Prompt { id, content: prompt.blocks.clone() });
        let parts = attachments::parts(&prompt.blocks, model.info());
        conversation.task = format!("{}\n{}", conversation.task, crate::session::typed(&prompt.blocks));
        let said = conversation.say(desk, Message::User { parts });
        kept.await?;
        said.await?;
    }
    Ok(())
}

/// The whole of an answer that nobody sees as it comes.
async fn whole_answer(model: &dyn Model, request: Request) -> Result<(String, Vec<Call>, End), ModelError> {
    let mut reply = reply::pieces(model, request);
    let (mut text, mut calls) = (String::new(), Vec::new());
    while let Some(piece) = reply.next().await {
        match piece? {
            Piece::Text(more) => text.push_str(&more),
            Piece::Call(call) => calls.push(call),
            // What came before it is void.
            Piece::Retrying { .. } => {
                text.clear();
                calls.clear();
            }
            Piece::End(end) => return Ok((text, calls, end)),
            _ => {}
        }
    }
    Err(ModelError::new(Failure::Server, "the response ended early"))
}

/// How often a request is made shorter because the model's server refuses it as too long.
const ATTEMPTS: u32 = 4;

/// Asks the model, with a conversation that is made shorter where it has to be.
async fn ask(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    finish: Finish,
) -> Result<reply::Answer, Trouble> {
    for _ in 0..ATTEMPTS {
        let mut request = Request { finish, ..conversation.request(desk, model.info()).await };
        conversation.context.prepare(model.info(), &request);
        if compact::has_long_prompt(conversation, model) {
            break;
        }
        let threshold = conversation.context.threshold(model.info(), desk.limits.compact_at);
        if conversation.used() > threshold && compact_unasked(desk, conversation, model).await? {
            request.messages.clone_from(&conversation.messages);
        }
        match reply::ask(desk, conversation, model, request).await {
            Err(Trouble::Model(error)) if error.kind == Failure::TooLong => {
                conversation.context.refuse(&conversation.messages);
                if !compact_unasked(desk, conversation, model).await? {
                    break;
                }
            }
            answer => return answer,
        }
    }
    Err(compact::leave_prompt_out(desk, conversation, model).await?.into())
}

/// The key of the `_meta` that a turn ends with which did nothing: `true` if the prompt was not understood, or why a command
/// could not be done as it was said.
pub const NOT_DONE: &str = "attache/not_done";
