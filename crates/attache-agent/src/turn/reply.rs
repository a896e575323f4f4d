//! One answer of the model, shown as it comes.

use std::sync::atomic::AtomicBool;

use attache::Error;
use attache::model::Patch;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use futures_util::StreamExt;

use super::{Desk, OpenCall, Talk, Trouble};
use crate::model::{Call, End, Failure, Model, ModelError, Piece};
use crate::stage::Voice;

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
    talk: &mut Talk,
    model: &dyn Model,
    note: Option<&str>,
) -> Result<Answer, Trouble> {
    let mut reply = model.ask(talk.request(desk, model, note));
    let mut calls: Vec<Call> = Vec::new();
    let mut message = Speech::default();
    while let Some(piece) = reply.next().await {
        match piece? {
            Piece::Text(text) => {
                talk.said.push_str(&text);
                message.say(desk, Voice::Answer, text).await?;
            }
            Piece::Thought(text) => message.say(desk, Voice::Thought, text).await?,
            Piece::CallStarted { id, name } => {
                message.pause();
                start(desk, talk, id, name).await?;
            }
            Piece::CallGrew { .. } => {}
            Piece::Call(call) => {
                message.pause();
                if calls.len() == MOST_CALLS {
                    let what = format!("the model made more than {MOST_CALLS} calls at once");
                    return Err(ModelError::new(Failure::Request, what).into());
                }
                start(desk, talk, call.id.clone(), call.name.clone()).await?;
                calls.push(call);
            }
            Piece::Retrying { after, reason, attempt, of } => {
                let text = format!("{reason}; trying again in {} s ({attempt} of {of})", after.as_secs().max(1));
                desk.stage.notice(NoticeSeverity::Warning, text).await?;
            }
            Piece::End(end) => {
                let answer = Answer { text: talk.said.clone(), calls, end };
                return finish(desk, talk, answer).await.map_err(Into::into);
            }
        }
    }
    Err(ModelError::new(Failure::Server, "the model's answer broke off").into())
}

/// Shows a call the moment it has a name.
async fn start(desk: &Desk, talk: &mut Talk, call_id: String, name: String) -> Result<(), Error> {
    if talk.open.iter().any(|open| open.call_id == call_id) {
        return Ok(());
    }
    let tool_id = desk.stage.fresh_id("call");
    let (title, kind) = desk.tools.introduce(&name);
    let update = ToolCallUpdate::new(tool_id.as_str())
        .title(title)
        .name(name.clone())
        .kind(kind)
        .status(ToolCallStatus::Pending);
    talk.open.push(OpenCall { call_id, tool_id, name, is_ended: AtomicBool::new(false), is_said: false });
    desk.stage.tool(update).await
}

/// Ends the calls that were begun and never made: their arguments never came.
async fn finish(desk: &Desk, talk: &mut Talk, answer: Answer) -> Result<Answer, Error> {
    for open in &talk.open {
        let was_made = answer.calls.iter().any(|call| call.id == open.call_id);
        if !was_made {
            let status = Patch::Set(ToolCallStatus::Failed);
            let content = Patch::Set(vec![ToolCallContent::text("not done: its arguments never came")]);
            desk.stage
                .tool(ToolCallUpdate::new(open.tool_id.as_str()).with(|update| {
                    update.status = status;
                    update.content = content;
                }))
                .await?;
        }
    }
    talk.open.retain(|open| answer.calls.iter().any(|call| call.id == open.call_id));
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
                let id = desk.stage.fresh_id(if voice == Voice::Answer { "message" } else { "thought" });
                self.current = Some((voice, id.clone()));
                id
            }
        };
        desk.stage.say(voice, &id, text).await
    }

    /// What comes next is a new message.
    fn pause(&mut self) {
        self.current = None;
    }
}
