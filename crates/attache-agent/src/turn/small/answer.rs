//! The answer to a question, in a request of its own: what was found, the question, and nothing else.

use attache::Stop;

use super::super::{Desk, EMPTY, Trouble, reply};
use super::text::{argument, calls_of};
use super::{of_turn, room};
use crate::conversation::Conversation;
use crate::model::{EndReason, Failure, Message, Model, ModelError, Part, Request};
use crate::system_prompt::{Detail, answer_prompt};
use crate::workspace::blocking;

/// How many tokens an answer may have.
const MOST_TOKENS: u32 = 1024;

/// How many bytes of what was found are shown with a question.
const MOST_FOUND: usize = 12_000;

/// With less, a question cannot be answered.
const LEAST_FOUND: usize = 1_000;

/// Asks for the answer, and shows it as it comes. Tells how the turn ends with it.
pub(super) async fn say(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    question: &str,
) -> Result<Stop, Trouble> {
    let (place, detail) = (desk.place.clone(), Detail::of(model.info()));
    let system = blocking(move || answer_prompt(&place, detail)).await.unwrap_or_default();
    let mut most = MOST_FOUND.min(room(model.info()));
    let answer = loop {
        let request = Request {
            system: system.clone(),
            messages: vec![Message::user(format!("{}{question}", found(conversation, most)))],
            max_tokens: desk.limits.max_tokens.or(Some(MOST_TOKENS)),
            ..Request::default()
        };
        match reply::ask(desk, conversation, model, request).await {
            // What its server refuses is asked again with less.
            Err(Trouble::Model(error)) if error.kind == Failure::TooLong && most > LEAST_FOUND => most /= 2,
            answer => break answer?,
        }
    };
    let stop = match answer.end.reason {
        EndReason::MaxTokens => Stop::MaxTokens,
        EndReason::Refusal => Stop::Refusal,
        _ if answer.text.trim().is_empty() => return Err(ModelError::new(Failure::Server, EMPTY).into()),
        _ => Stop::EndTurn,
    };
    let message = Message::Assistant { text: answer.text, calls: Vec::new(), opaque: answer.end.opaque };
    conversation.say(desk, message).await?;
    Ok(stop)
}

/// What was told of the project and what the calls of this turn brought, the last things last.
fn found(conversation: &Conversation, most: usize) -> String {
    let messages = of_turn(conversation);
    let mut texts = Vec::new();
    let mut left = most;
    for (at, message) in messages.iter().enumerate().rev() {
        let parts = match message {
            Message::User { parts } => parts.iter().filter_map(Part::as_text).filter(|text| is_ours(text)).collect(),
            Message::Tool { parts, .. } => parts.iter().filter_map(Part::as_text).collect::<Vec<_>>(),
            Message::Assistant { .. } => continue,
        };
        let calls = at.checked_sub(1).map(|before| calls_of(&messages[before])).unwrap_or_default();
        let command = calls.iter().find_map(|call| argument(call, "command"));
        let heading = command.map(|command| format!("`{command}` says:\n")).unwrap_or_default();
        let text = format!("{heading}{}", parts.join("\n"));
        if !parts.is_empty() && text.len() <= left {
            left -= text.len();
            texts.push(text);
        }
    }
    texts.iter().rev().map(|text| format!("{}\n\n", text.trim_end())).collect()
}

/// Whether a part of a prompt is what we told of the surroundings.
fn is_ours(text: &str) -> bool {
    text.starts_with("<environment>")
}
