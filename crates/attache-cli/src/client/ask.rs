//! A person who is asked: what there is to ask, and how it is asked on a plain terminal.

use std::io;
use std::pin::Pin;

use attache::model::elicitation::{CreateElicitationRequest, CreateElicitationResponse};
use attache::model::permission::{PermissionOption, PermissionOptionId};

use attache_host::permission::{self, Question, Scope};
use attache_tui::dialog::question::{self, Meaning, PermissionReply, QuestionText};
use attache_tui::theme::{ColorDepth, Theme};
use ratatui::text::Line;

use super::{form, pager};
use crate::tty::Tty;

/// A question about a permission.
#[derive(Debug, Clone)]
pub(crate) struct PermissionQuestion {
    pub(crate) question: Question,
    /// The choices that the agent offers, in its order; none where it did not ask, but does something that needs asking.
    pub(crate) options: Vec<PermissionOption>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Yes, and for how long.
    Allow(Scope),
    /// One of the agent's own choices.
    Option(PermissionOptionId),
    /// No, and what the agent should know about it.
    Deny { reason: Option<String> },
}

impl Reply {
    pub(crate) const NO: Reply = Reply::Deny { reason: None };
}

/// An answer that takes its time.
pub(crate) type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A person who can be asked. An answer that is no longer wanted is dropped, and the question leaves the screen.
pub(crate) trait Asker: Send + Sync {
    /// Asks whether something may be done.
    fn permission<'a>(&'a self, question: &'a PermissionQuestion) -> Answering<'a, Reply>;

    /// Asks what an agent wants to know.
    fn elicitation<'a>(&'a self, request: &'a CreateElicitationRequest) -> Answering<'a, CreateElicitationResponse>;
}

impl Asker for Tty {
    fn permission<'a>(&'a self, question: &'a PermissionQuestion) -> Answering<'a, Reply> {
        Box::pin(async { ask(self, question).await.unwrap_or(Reply::NO) })
    }

    fn elicitation<'a>(&'a self, request: &'a CreateElicitationRequest) -> Answering<'a, CreateElicitationResponse> {
        Box::pin(async { form::ask(self, request).await.unwrap_or_else(|_| CreateElicitationResponse::cancel()) })
    }
}

/// Asks until there is an answer. The end of input is no.
///
/// The line where the answer is typed names what would be done. Only what is typed after it has appeared is an answer.
async fn ask(tty: &Tty, asked: &PermissionQuestion) -> io::Result<Reply> {
    // Here a yes and a no of our own are enough; the agent's choices would take a line each.
    let (question, options) = (&asked.question, &[]);
    let theme = crate::chat::theme(None);
    let width = u16::try_from(tty.columns()).unwrap_or(u16::MAX).max(20);
    let (QuestionText { content, ask, choices_at }, is_too_long) =
        question::question_text(question, options, width, &theme);
    // What is not shown here is read in the pager first.
    let mut is_read = !is_too_long;
    let (line, choices) = ask.split_at(choices_at);
    let line: Vec<String> = line.iter().map(ToString::to_string).collect();
    let line = format!("{} ", line.join("\n"));
    let rows = content.len() + ask.len();
    let note = match rows > tty.rows() {
        true => format!("(this is {rows} lines long: scroll up to see all of it, or type e for the pager)\n"),
        false => String::new(),
    };
    tty.show(&format!("\n{}{note}{}", painted(&content, &theme), painted(choices, &theme))).await?;
    loop {
        let Some(typed) = tty.ask(&line).await? else { return Ok(Reply::NO) };
        match question::meaning(&typed, question, options) {
            Some(Meaning::Reply(PermissionReply::Allow(_))) if !is_read => {
                tty.show("read it in the pager first: type e, and Enter\n").await?;
            }
            Some(Meaning::Reply(PermissionReply::Allow(scope))) => {
                if asked.options.is_empty() || permission::allow(&asked.options, scope).is_ok() {
                    return Ok(Reply::Allow(scope));
                }
                tty.show("the agent offers no such answer; n is no\n").await?;
            }
            Some(Meaning::Reply(PermissionReply::Option(option))) => return Ok(Reply::Option(option)),
            Some(Meaning::Reply(PermissionReply::Deny { reason })) => return Ok(Reply::Deny { reason }),
            Some(Meaning::Reply(PermissionReply::OpenPager)) => {
                match pager::show(question::pager_text(question)).await {
                    Ok(()) => is_read = true,
                    Err(error) => tty.show(&format!("cannot start the pager: {error}\n")).await?,
                }
            }
            Some(Meaning::AskReason) => match tty.ask("why not, for the agent to read: ").await? {
                Some(reason) if !reason.is_empty() => return Ok(Reply::Deny { reason: Some(reason) }),
                _ => return Ok(Reply::NO),
            },
            Some(Meaning::Explain) => {
                let choices = question::choices(question, options, true);
                tty.show(&painted(&question::explanation_lines(&choices, width, &theme), &theme)).await?;
            }
            None => tty.show(&format!("type one of these letters, and Enter:\n{}", painted(choices, &theme))).await?,
        }
    }
}

/// Lines for a terminal; plain where no colours are wanted.
fn painted(lines: &[Line<'_>], theme: &Theme) -> String {
    let painted = |line: &Line<'_>| match theme.depth {
        ColorDepth::None => line.to_string(),
        depth => attache_tui::to_ansi(line, depth),
    };
    lines.iter().map(|line| painted(line) + "\n").collect()
}
