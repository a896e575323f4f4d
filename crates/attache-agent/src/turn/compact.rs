//! Compaction: a summary takes the place of a conversation that has become too long. The log keeps all of it.

use attache::model::content::ContentBlock;
use attache::model::notice::{CompactionStatus, CompactionUpdate, NoticeSeverity};
use attache::model::update::SessionUpdate;
use futures_util::StreamExt;

use super::{Desk, Trouble};
use crate::conversation::Conversation;
use crate::model::{Failure, Message, Model, ModelError, Part, Piece, Request};
use crate::store::Entry;

const SYSTEM: &str = "You write the summary that will take the place of a conversation between a person and a coding \
                      agent. Whoever reads it has to be able to go on with the work without the conversation.";
const TASK: &str = "Summarise the conversation above: what the person wants, what was found out and decided, which files \
                    were read or changed and how, what is left to do. Name paths, names and figures exactly. No tools, \
                    no preamble.";
/// A result of a tool is worth this much to whoever writes the summary.
const RESULT_LIMIT: usize = 2000;

/// Puts a summary in the place of the conversation.
pub(crate) async fn compact(desk: &Desk, conversation: &mut Conversation, model: &dyn Model) -> Result<(), Trouble> {
    let id = desk.log.fresh_id("compaction");
    let update = |status| CompactionUpdate::new(id.as_str(), status);
    conversation.compacting = Some(id.clone());
    desk.log.show(SessionUpdate::Compaction(update(CompactionStatus::InProgress))).await?;
    let summary = match summarise(conversation, model).await {
        Ok(summary) => summary,
        Err(error) => {
            let failed = update(CompactionStatus::Failed).error(error.message.clone());
            conversation.compacting = None;
            desk.log.show_end(SessionUpdate::Compaction(failed)).await?;
            return Err(error.into());
        }
    };
    let last_prompt = conversation.messages.iter().rev().find_map(prompt_text).unwrap_or_default();
    let text = format!(
        "The conversation so far was replaced by this summary:\n\n{summary}\n\nThe last thing the person asked for:\n\n\
         {last_prompt}"
    );
    let messages = vec![Message::user(text)];
    desk.log.keep(&Entry::Compacted { messages: messages.clone() })?;
    conversation.messages = messages;
    conversation.used = conversation.estimate();
    let done = update(CompactionStatus::Completed).summary(vec![ContentBlock::text(summary)]);
    conversation.compacting = None;
    desk.log.show_end(SessionUpdate::Compaction(done)).await?;
    Ok(())
}

/// The same because it has to be; the person is told.
pub(super) async fn compact_unasked(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
) -> Result<(), Trouble> {
    compact(desk, conversation, model).await?;
    let client = desk.log.handle().client();
    if client.capabilities.session.compaction.is_none() {
        let text = "The conversation had become long; the model works with a summary of it from here on.";
        desk.log.notice(NoticeSeverity::Info, text).await?;
    }
    Ok(())
}

async fn summarise(conversation: &Conversation, model: &dyn Model) -> Result<String, ModelError> {
    let mut messages: Vec<Message> = conversation.messages.iter().map(shortened).collect();
    messages.push(Message::user(TASK));
    let mut reply = model.ask(Request { system: SYSTEM.into(), messages, ..Request::default() });
    let mut summary = String::new();
    while let Some(piece) = reply.next().await {
        match piece? {
            Piece::Text(text) => summary.push_str(&text),
            Piece::End(_) if !summary.trim().is_empty() => return Ok(summary.trim().to_owned()),
            Piece::End(_) => break,
            _ => {}
        }
    }
    Err(ModelError::new(Failure::Server, "the model gave no summary of the conversation"))
}

/// A message without calls and pictures, and with short results: what a request without tools can hold.
fn shortened(message: &Message) -> Message {
    match message {
        Message::User { parts } => Message::User { parts: texts(parts, usize::MAX) },
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| format!("\n[called {}: {}]", call.name, head(&call.arguments)));
            Message::Assistant { text: text.clone() + &calls.collect::<String>(), calls: Vec::new(), opaque: None }
        }
        Message::Tool { name, parts, .. } => {
            let mut parts = texts(parts, RESULT_LIMIT);
            parts.insert(0, Part::text(format!("[result of {name}]")));
            Message::User { parts }
        }
    }
}

fn texts(parts: &[Part], limit: usize) -> Vec<Part> {
    let text = |part: &Part| match part {
        Part::Text { text } if text.len() <= limit => part.clone(),
        Part::Text { text } => Part::text(head(text)),
        Part::Media { mime, .. } => Part::text(format!("[{mime}]")),
    };
    parts.iter().map(text).collect()
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(RESULT_LIMIT)]
}

fn prompt_text(message: &Message) -> Option<String> {
    let Message::User { parts } = message else { return None };
    let texts = parts.iter().filter_map(|part| match part {
        // What was told of the place is told again with the next prompt.
        Part::Text { text } if !text.starts_with("<environment>") => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}
