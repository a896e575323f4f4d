//! The answer to a question, in a request of its own: what was found, the question, and nothing else.

use super::super::{Desk, Trouble, reply};
use super::of_turn;
use super::text::{argument, calls_of};
use crate::conversation::Conversation;
use crate::model::{Message, Model, Part, Request};
use crate::system_prompt::answer_prompt;
use crate::workspace::blocking;

/// How many tokens an answer may have.
const MOST_TOKENS: u32 = 1024;

/// How many bytes of what was found are shown with a question.
const MOST_FOUND: usize = 12_000;

/// Asks for the answer, and shows it as it comes.
pub(super) async fn say(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    question: &str,
) -> Result<(), Trouble> {
    let place = desk.place.clone();
    let system = blocking(move || answer_prompt(&place)).await.unwrap_or_default();
    let found = found(conversation);
    let request = Request {
        system,
        messages: vec![Message::user(format!("{found}{question}"))],
        max_tokens: desk.limits.max_tokens.or(Some(MOST_TOKENS)),
        ..Request::default()
    };
    let answer = reply::ask(desk, conversation, model, request).await?;
    let message = Message::Assistant { text: answer.text, calls: Vec::new(), opaque: answer.end.opaque };
    conversation.say(desk, message).await?;
    Ok(())
}

/// What was told of the project and what the calls of this turn brought, the last things last.
fn found(conversation: &Conversation) -> String {
    let messages = of_turn(conversation);
    let mut texts = Vec::new();
    let mut left = MOST_FOUND;
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
