//! The answer to a question, in a request of its own: what was found, the question, and nothing else.

use super::super::{Desk, Trouble, reply};
use super::text;
use crate::conversation::Conversation;
use crate::model::{Message, Model, Request};
use crate::system_prompt::answer_prompt;
use crate::workspace::blocking;

/// How many tokens an answer may have.
const MOST_TOKENS: u32 = 1024;

/// Asks for the answer, and shows it as it comes.
pub(super) async fn say(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    question: &str,
) -> Result<(), Trouble> {
    let place = desk.place.clone();
    let system = blocking(move || answer_prompt(&place)).await.unwrap_or_default();
    let found = text::found(conversation);
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
