//! One answer of the model, shown as it comes.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use attache::model::content::MessageId;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use attache::model::update::{MessageUpdate, SessionUpdate};
use attache::{Dialect, Error};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::calls::set_unless_empty;
use super::{Desk, Trouble};
use crate::conversation::{Conversation, OpenCall};
use crate::model::retry::in_words;
use crate::model::{Call, End, Failure, Model, ModelError, Piece, Request};
use crate::session_log::{MOST_AT_ONCE, Voice, Written};
use crate::toolbox::{ANSWER, arguments, early_arguments};
use crate::tools::{Introduction, beginning, parse_arguments, usual_name};

/// What the model answered.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) end: End,
}

/// More calls than this in one answer are no plan but a fault.
pub(super) const MOST_CALLS: usize = 64;

/// How much of the arguments that are coming is looked at to show a call early.
const EARLY: usize = 8 << 10;

/// Asks the model, and shows what it says while it says it.
pub(super) async fn ask(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    request: Request,
) -> Result<Answer, Trouble> {
    let is_asked = request.tools.iter().any(|tool| tool.name == ANSWER);
    let mut reply = pieces(model, request);
    let mut calls: Vec<Call> = Vec::new();
    let mut message = Speech::default();
    // Calls that are not shown yet, because their arguments are still coming: id and name, in order.
    let mut begun: Vec<(String, String)> = Vec::new();
    while let Some(piece) = reply.next().await {
        match piece? {
            Piece::Text(text) => {
                conversation.said.push_str(&text);
                message.say(desk, Voice::Answer, text).await?;
            }
            Piece::Thought(text) => message.say(desk, Voice::Thought, text).await?,
            // It is no call but the sign that the answer can be asked for.
            Piece::CallStarted { name, .. } if is_asked && name == ANSWER => {}
            Piece::Call(call) if is_asked && call.name == ANSWER => calls.push(call),
            Piece::CallStarted { id, name } => {
                message.pause().await?;
                begun.push((id, name));
            }
            Piece::Usage(_) | Piece::Held => {}
            Piece::CallGrew { id, arguments } => {
                // They are shown in their order.
                let Some((_, name)) = begun.first().filter(|(first, _)| *first == id && arguments.len() <= EARLY)
                else {
                    continue;
                };
                if let Some(known) = early_arguments(name, &arguments) {
                    start(desk, conversation, &id, name, &known).await?;
                    begun.remove(0);
                }
            }
            Piece::Call(call) => {
                message.pause().await?;
                begun.retain(|(id, _)| *id != call.id);
                start_whole(desk, conversation, &call).await?;
                calls.push(call);
            }
            Piece::Retrying { after, reason, attempt, of, left } => {
                calls.clear();
                begun.clear();
                withdraw(desk, conversation, &mut message).await?;
                let seconds = after.as_secs().max(1);
                let left = in_words(left);
                let text = format!("{reason}; trying again in {seconds} s ({attempt} of {of}, for {left} at most)");
                desk.log.notice(NoticeSeverity::Warning, text).await?;
            }
            Piece::End(end) => {
                message.pause().await?;
                let answer = Answer { text: conversation.said.clone(), calls, end };
                return end_unmade(desk, conversation, answer).await.map_err(Into::into);
            }
        }
    }
    Err(ModelError::new(Failure::Server, "the response of the model ended early").into())
}

/// The pieces of a model's answer, with our names for the tools that it calls, and not more calls than make sense.
pub(super) fn pieces(model: &dyn Model, request: Request) -> impl Stream<Item = Result<Piece, ModelError>> + Unpin {
    let mut calls = 0;
    model.ask(request).map(move |piece| {
        Ok(match piece? {
            Piece::CallStarted { id, name } => Piece::CallStarted { id, name: usual_name(&name).to_owned() },
            Piece::Call(_) if calls == MOST_CALLS => {
                let what = format!("the model made more than {MOST_CALLS} calls at once");
                return Err(ModelError::new(Failure::Request, what));
            }
            Piece::Call(call) => {
                calls += 1;
                Piece::Call(Call { name: usual_name(&call.name).to_owned(), ..call })
            }
            piece @ Piece::Retrying { .. } => {
                calls = 0;
                piece
            }
            piece => piece,
        })
    })
}

/// Takes back what was shown of an answer that broke off and begins anew.
async fn withdraw(desk: &Desk, conversation: &mut Conversation, message: &mut Speech) -> Result<(), Error> {
    conversation.said.clear();
    for open in std::mem::take(&mut conversation.open) {
        end_call(desk, &open, "not done: the answer broke off and begins anew").await?;
    }
    message.withdraw(desk).await
}

/// Ends a call that was shown and will not be made.
async fn end_call(desk: &Desk, open: &OpenCall, why: &str) -> Result<(), Error> {
    let update = ToolCallUpdate::new(open.tool_id.as_str())
        .status(ToolCallStatus::Failed)
        .content(vec![ToolCallContent::text(why)]);
    desk.log.tool(update).await
}

/// Shows a call whose arguments are known.
pub(super) async fn start_whole(desk: &Desk, conversation: &mut Conversation, call: &Call) -> Result<(), Error> {
    let known = known_arguments(call);
    start(desk, conversation, &call.id, &call.name, &known).await
}

/// The arguments of a call as far as they can be understood, to show it.
pub(super) fn known_arguments(call: &Call) -> Value {
    let known = arguments(call).or_else(|_| parse_arguments(&call.arguments));
    known.unwrap_or_else(|_| match call.arguments.len() {
        ..=EARLY => beginning(&call.arguments),
        _ => Value::Null,
    })
}

/// Shows a call, unless it is shown already.
async fn start(
    desk: &Desk,
    conversation: &mut Conversation,
    call_id: &str,
    name: &str,
    known: &Value,
) -> Result<(), Error> {
    if conversation.open.iter().any(|open| open.call_id == call_id) {
        return Ok(());
    }
    let tool_id = desk.log.fresh_id("call");
    let update = introduced(&tool_id, name, desk.tools.introduce(name, known).await);
    conversation.open.push(OpenCall {
        call_id: call_id.to_owned(),
        tool_id,
        name: name.to_owned(),
        is_ended: AtomicBool::new(false),
        is_said: false,
    });
    desk.log.tool(update).await
}

/// What a client is told first of a call.
pub(super) fn introduced(tool_id: &str, name: &str, shown: Introduction) -> ToolCallUpdate {
    let update = ToolCallUpdate::new(tool_id).title(shown.title).name(name.to_owned()).kind(shown.kind);
    update.status(ToolCallStatus::Pending).with(|update| update.locations = set_unless_empty(&shown.locations))
}

/// Ends the calls that were begun and never made: their arguments never came.
async fn end_unmade(desk: &Desk, conversation: &mut Conversation, answer: Answer) -> Result<Answer, Error> {
    for open in &conversation.open {
        let was_made = answer.calls.iter().any(|call| call.id == open.call_id);
        if !was_made {
            end_call(desk, open, "not done: its arguments never came").await?;
        }
    }
    conversation.open.retain(|open| answer.calls.iter().any(|call| call.id == open.call_id));
    Ok(answer)
}

/// What is put behind an answer that broke off, where it cannot be taken back.
const BROKE_OFF: &str = "\n\n*[The answer broke off here and begins anew.]*\n\n";

/// The message that is being said: pieces of one kind join, another kind begins a new one.
#[derive(Default)]
struct Speech {
    current: Option<(Voice, String)>,
    /// All messages so far.
    said: Vec<(Voice, String)>,
    /// What is being shown. Text goes on to come meanwhile, so that much of it is written at once.
    under_way: VecDeque<Written>,
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
                self.said.push((voice, id.clone()));
                id
            }
        };
        self.under_way.push_back(desk.log.say(voice, &id, text));
        let is_full = self.under_way.len() == MOST_AT_ONCE;
        while let Some(first) = self.under_way.front_mut() {
            match first.now() {
                Some(shown) => shown?,
                None if is_full => first.await?,
                None => break,
            }
            self.under_way.pop_front();
        }
        Ok(())
    }

    /// Takes all of it back. A version that cannot do that is told that the answer broke off.
    async fn withdraw(&mut self, desk: &Desk) -> Result<(), Error> {
        self.pause().await?;
        let said = std::mem::take(&mut self.said);
        if desk.log.handle().client().dialect == Dialect::V1 {
            return match said.iter().any(|(voice, _)| *voice == Voice::Answer) {
                true => desk.log.say_all(BROKE_OFF).await,
                false => Ok(()),
            };
        }
        for (voice, id) in said {
            let nothing = MessageUpdate::new(MessageId::from(id)).content([]);
            let update = match voice {
                Voice::Answer => SessionUpdate::AgentMessage(nothing),
                Voice::Thought => SessionUpdate::AgentThought(nothing),
            };
            desk.log.show(update).await?;
        }
        Ok(())
    }

    /// What comes next is a new message, when this one is shown.
    async fn pause(&mut self) -> Result<(), Error> {
        self.current = None;
        while let Some(first) = self.under_way.pop_front() {
            first.await?;
        }
        Ok(())
    }
}
