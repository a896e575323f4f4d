//! Compaction: a summary takes the place of the older part of a conversation that has become too long. The first prompt
//! and what was said last stay as they are, and the log keeps all of it.

mod plan;
mod transcript;

use attache::Error;
use attache::model::content::ContentBlock;
use attache::model::notice::{CompactionStatus, CompactionUpdate, NoticeSeverity};
use attache::model::update::SessionUpdate;

use super::{Desk, Trouble, usage, whole_answer};
use crate::conversation::Conversation;
use crate::model::{Failure, Message, Model, ModelError, Part, Request};
use crate::tokens;
use plan::Plan;

const SYSTEM: &str = "You write the summary that will take the place of a conversation between a person and a coding \
                      agent. Whoever reads it has to be able to go on with the work without the conversation.";
const TASK: &str = "Summarise the conversation above: what the person wants, what was found out and decided, which files \
                    were read or changed and how, what is left to do. Take over what an earlier summary says and is \
                    still true. Name paths, names and figures exactly. No tools, no preamble.";
/// What the model is told of the summary.
const HEADING: &str = "Summary of the conversation so far; what came before is no longer shown:";
/// What stands for a summary that cannot be had.
const NO_SUMMARY: &str = "(What came before was left out, because the conversation was too long. Look at the files \
                          again where it matters, and ask the person if something is not clear.)";
/// How often a request for a summary is made shorter when it is refused as too long.
const ATTEMPTS: u32 = 3;

/// Puts a summary in the place of what is older, because the person wants it. False if there is nothing to sum up.
pub(crate) async fn compact(desk: &Desk, conversation: &mut Conversation, model: &dyn Model) -> Result<bool, Trouble> {
    // Whatever is known of the size of requests is of this model.
    let request = conversation.request(desk, model.info()).await;
    conversation.context.prepare(model.info(), &request);
    compact_by(desk, conversation, model, true).await
}

/// The same because it has to be; the person is told.
pub(super) async fn compact_unasked(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
) -> Result<bool, Trouble> {
    let is_done = compact_by(desk, conversation, model, false).await?;
    let client = desk.log.handle().client();
    if is_done && client.capabilities.session.compaction.is_none() {
        let text = "The conversation had become long; the model works with a summary of its older part from here on.";
        desk.log.notice(NoticeSeverity::Info, text).await?;
    }
    Ok(is_done)
}

async fn compact_by(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
    is_asked: bool,
) -> Result<bool, Trouble> {
    let room = conversation.context.room(model.info(), desk.limits.compact_at);
    let prompts = conversation.prompts_of_turn();
    let Some(plan) = Plan::of(&conversation.messages, conversation.summary, &prompts, room, is_asked) else {
        return Ok(false);
    };
    let id = desk.log.fresh_id("compaction");
    let update = |status| CompactionUpdate::new(id.as_str(), status);
    conversation.compacting = Some(id.clone());
    desk.log.show(SessionUpdate::Compaction(update(CompactionStatus::InProgress))).await?;
    let summary = match summarise(conversation, model, &plan).await {
        Ok(summary) => summary,
        Err(error) => {
            let failed = update(CompactionStatus::Failed).error(error.message.clone());
            conversation.compacting = None;
            desk.log.show_end(SessionUpdate::Compaction(failed)).await?;
            return Err(error.into());
        }
    };
    let (messages, at) = plan.with_summary(Message::user(format!("{HEADING}\n\n{summary}")));
    conversation.replace(desk, messages, Some(at)).await?;
    let done = update(CompactionStatus::Completed).summary(vec![ContentBlock::text(summary)]);
    conversation.compacting = None;
    desk.log.show_end(SessionUpdate::Compaction(done)).await?;
    usage::tell(desk, conversation.used(), model).await?;
    Ok(true)
}

/// A summary of what the plan leaves out, no longer than the plan has room for. A model that gives none, or takes not even
/// a short request for one, does not stop the session: a note stands for it.
async fn summarise(conversation: &Conversation, model: &dyn Model, plan: &Plan) -> Result<String, ModelError> {
    let earlier = conversation.summary.and_then(|at| conversation.messages.get(at)).map(text_of);
    let earlier = earlier.as_deref().map(|text| text.strip_prefix(HEADING).unwrap_or(text).trim());
    // Half for the request, half for the answer and the thoughts before it.
    let limit = conversation.context.limit(model.info()) / 2;
    let mut room = tokens::bytes(conversation.context.estimate(limit)).saturating_sub(SYSTEM.len() + TASK.len() + 64);
    for _ in 0..ATTEMPTS {
        let text = transcript::write(plan.first.as_ref(), earlier, &plan.older, room);
        match ask(model, format!("{text}\n{TASK}")).await {
            Err(error) if error.kind == Failure::TooLong => room /= 2,
            Err(error) => return Err(error),
            Ok(summary) if summary.is_empty() => break,
            Ok(summary) => return Ok(transcript::cut(&summary, plan.summary_bytes)),
        }
    }
    let earlier = earlier.map(|earlier| transcript::cut(earlier, plan.summary_bytes / 2));
    Ok(earlier.into_iter().chain([NO_SUMMARY.to_owned()]).collect::<Vec<_>>().join("\n\n"))
}

async fn ask(model: &dyn Model, prompt: String) -> Result<String, ModelError> {
    let request = Request { system: SYSTEM.into(), messages: vec![Message::user(prompt)], ..Request::default() };
    let (summary, ..) = whole_answer(model, request).await?;
    Ok(summary.trim().to_owned())
}

/// Whether the last prompt alone is longer than the model takes.
pub(super) fn has_long_prompt(conversation: &Conversation, model: &dyn Model) -> bool {
    let context = &conversation.context;
    let prompt = conversation.last_prompt().and_then(|at| conversation.messages.get(at));
    let most = context.prompt_limit(model.info());
    prompt.is_some_and(|prompt| context.real(tokens::of_message(prompt)) > most)
}

/// Takes the last prompt out of the conversation, because the model will never take it, and says so. The session goes on
/// with the next one.
pub(super) async fn leave_prompt_out(
    desk: &Desk,
    conversation: &mut Conversation,
    model: &dyn Model,
) -> Result<ModelError, Error> {
    let context = &conversation.context;
    let most = context.prompt_limit(model.info());
    let name = &model.info().name;
    let Some(at) = conversation.last_prompt() else {
        return Ok(ModelError::new(Failure::TooLong, format!("the conversation is longer than `{name}` takes")));
    };
    let size = context.real(tokens::of_message(&conversation.messages[at]));
    if size <= most / 2 {
        // It is not the prompt. What came of its calls goes, and the person can ask again.
        let mut messages = up_to(conversation, at);
        messages.push(Message::Assistant { text: STOPPED.into(), calls: Vec::new(), opaque: None });
        let summary = conversation.summary;
        conversation.replace(desk, messages, summary).await?;
        let text =
            format!("the conversation is longer than `{name}` takes, and could not be made shorter\nhint: {HINT}");
        return Ok(ModelError::new(Failure::TooLong, text));
    }
    let mut messages = up_to(conversation, at);
    messages[at] =
        Message::user(format!("(The person sent about {size} tokens here, which were too many and are left out.)"));
    let said = Message::Assistant { text: "That was too long for me.".into(), calls: Vec::new(), opaque: None };
    messages.push(said);
    let summary = conversation.summary;
    conversation.replace(desk, messages, summary).await?;
    let text = format!(
        "the prompt is too long for `{name}`: it has about {size} tokens, and there is room for {most}\n\
         hint: send it in parts, or put it into a file and name that"
    );
    Ok(ModelError::new(Failure::TooLong, text))
}

/// The messages up to a prompt, with the summary, which stands behind the prompt if that is the first one.
fn up_to(conversation: &Conversation, prompt: usize) -> Vec<Message> {
    let end = conversation.summary.map_or(prompt, |summary| summary.max(prompt));
    conversation.messages[..=end].to_vec()
}

/// What the model is told of a turn that had to be given up.
const STOPPED: &str = "(Stopped here: what the tools brought was too long.)";
const HINT: &str = "use `/compact`, or a model with a larger context";

fn text_of(message: &Message) -> String {
    let Message::User { parts } = message else { return String::new() };
    let texts = parts.iter().filter_map(|part| match part {
        // What was told of the place is told again with the next prompt.
        Part::Text { text } if !text.starts_with("<environment>") => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
