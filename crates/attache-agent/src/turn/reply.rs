//! One answer of the model, shown as it comes.

use std::sync::atomic::AtomicBool;

use attache::Error;
use attache::model::Patch;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use futures_util::StreamExt;

use super::{Desk, Trouble};
use crate::conversation::{Conversation, OpenCall};
use crate::model::{Call, End, Failure, Model, ModelError, Piece, Request};
use crate::session_log::Voice;

/// What the model answered.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) end: End,
}

/// More calls than this in one answer are no plan but a fault.
const MOST_CALLS: usize = 64;

/// Asks the model, and shows what it says while it says it.
pub(super) async fn ask(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    request: Request,
) -> Result<Answer, Trouble> {
    let mut reply = model.ask(request);
    let mut calls: Vec<Call> = Vec::new();
    let mut message = Speech::default();
    while let Some(piece) = reply.next().await {
        match piece? {
            Piece::Text(text) => {
                conversation.said.push_str(&text);
                message.say(desk, Voice::Answer, text).await?;
            }
            Piece::Thought(text) => message.say(desk, Voice::Thought, text).await?,
            Piece::CallStarted { id, name } => {
                message.pause();
                start(desk, conversation, id, name).await?;
            }
            Piece::CallGrew { .. } => {}
            Piece::Call(call) => {
                message.pause();
                if calls.len() == MOST_CALLS {
                    let what = format!("the model made more than {MOST_CALLS} calls at once");
                    return Err(ModelError::new(Failure::Request, what).into());
                }
                start(desk, conversation, call.id.clone(), call.name.clone()).await?;
                calls.push(call);
            }
            Piece::Retrying { after, reason, attempt, of } => {
                let text = format!("{reason}; trying again in {} s ({attempt} of {of})", after.as_secs().max(1));
                desk.log.notice(NoticeSeverity::Warning, text).await?;
            }
            Piece::End(end) => {
                let answer = Answer { text: conversation.said.clone(), calls, end };
                return finish(desk, conversation, answer).await.map_err(Into::into);
            }
        }
    }
    Err(ModelError::new(Failure::Server, "the model's answer broke off").into())
}

/// Shows a call the moment it has a name.
async fn start(desk: &Desk, conversation: &mut Conversation, call_id: String, name: String) -> Result<(), Error> {
    if conversation.open.iter().any(|open| open.call_id == call_id) {
        return Ok(());
    }
    let tool_id = desk.log.fresh_id("call");
    let (title, kind) = desk.tools.introduce(&name);
    let update = ToolCallUpdate::new(tool_id.as_str())
        .title(title)
        .name(name.clone())
        .kind(kind)
        .status(ToolCallStatus::Pending);
    conversation.open.push(OpenCall { call_id, tool_id, name, is_ended: AtomicBool::new(false), is_said: false });
    desk.log.tool(update).await
}

/// Ends the calls that were begun and never made: their arguments never came.
async fn finish(desk: &Desk, conversation: &mut Conversation, answer: Answer) -> Result<Answer, Error> {
    for open in &conversation.open {
        let was_made = answer.calls.iter().any(|call| call.id == open.call_id);
        if !was_made {
            let status = Patch::Set(ToolCallStatus::Failed);
            let content = Patch::Set(vec![ToolCallContent::text("not done: its arguments never came")]);
            desk.log
                .tool(ToolCallUpdate::new(open.tool_id.as_str()).with(|update| {
                    update.status = status;
                    update.content = content;
                }))
                .await?;
        }
    }
    conversation.open.retain(|open| answer.calls.iter().any(|call| call.id == open.call_id));
    Ok(answer)
}

/// The message that is being said: pieces of one kind join, another kind begins a new one.
#[derive(Default)]
struct Speech {
    current: Option<(Voice, String)>,
}

impl Speech {
    async fn say(&mut self, desk: &Desk, voice: Voice, text: String) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let id = match &self.current {
            Some((current, id)) if *current == voice => id.clone(),
            _ => {
                let id = desk.log.fresh_id(if voice == Voice::Answer { "message" } else { "thought" });
                self.current = Some((voice, id.clone()));
                id
            }
        };
        desk.log.say(voice, &id, text).await
    }

    /// What comes next is a new message.
    fn pause(&mut self) {
        self.current = None;
    }
}
