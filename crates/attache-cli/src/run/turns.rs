//! The turns of a run: one; a second where the answer is not what it has to be; or as many as prompts come on stdin.

use attache::Connection;
use attache::client::Session;
use attache::model::auth::AuthMethod;
use attache::model::content::ContentBlock;
use attache::model::error::ErrorObject;

use super::answer::{self, AnswerSchema};
use super::lines::Prompts;
use super::prompt::Question;
use super::record::{End, Record};
use super::{Conversation, Trouble, timed_out, until};
use crate::auth;
use crate::cli::{InputFormat, Run};
use crate::client::services::Services;
use crate::event::{Event, Level, Status, Usage};
use crate::exit::{Code, Failure};
use crate::output::{Printer, Screen};
use crate::pen::Pen;

/// What the options say about the turns of a run, and how they went.
#[derive(Default)]
pub(super) struct Turns {
    schema: Option<AnswerSchema>,
    prompts: Option<Prompts>,
    /// A login was offered: what it does not help with is told.
    is_login_offered: bool,
    /// A turn has ended and was told, and the next has not begun.
    is_between: bool,
    /// How the last turn ended that was told and did not do what it was to.
    failed: Option<Code>,
}

impl Turns {
    pub(super) fn new(args: &Run, record: &mut Record) -> Result<Self, Failure> {
        args.last_message.as_deref().map(answer::check_place).transpose()?;
        let schema = args.output_schema.as_deref().map(AnswerSchema::read).transpose()?;
        // What is printed or read as the answer is what was checked.
        record.tells_last_message_only = schema.is_some();
        let prompts = args.input.map(|InputFormat::JsonLines| Prompts::from_stdin());
        Ok(Turns { schema, prompts, ..Turns::default() })
    }

    pub(super) fn takes_lines(&self) -> bool {
        self.prompts.is_some()
    }

    /// Whether all turns that began were told.
    pub(super) fn is_between(&self) -> bool {
        self.is_between
    }

    /// The exit code of the program, when its last turn or what came after it ended with this one.
    pub(super) fn code(&self, last: Code) -> Code {
        if last == Code::Done { self.failed.unwrap_or(last) } else { last }
    }
}

/// Writes the answer where `--last-message` says. That it cannot be written is a failure of its own.
pub(super) fn keep_answer(args: &Run, record: &Record, end: &mut End) {
    let Some(path) = args.last_message.as_deref().filter(|_| record.last_message_text.is_asked()) else { return };
    if let Err(failure) = answer::write(path, record.last_message_text.text())
        && end.failure.is_none()
    {
        (end.failure, end.status) = (Some(failure), Some(Status::Usage));
    }
}

/// What two turns took together, as far as the agent told.
fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    Some(Usage {
        total_tokens: one.total_tokens.saturating_add(other.total_tokens),
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        thought_tokens: add(one.thought_tokens, other.thought_tokens),
        cached_read_tokens: add(one.cached_read_tokens, other.cached_read_tokens),
        cached_write_tokens: add(one.cached_write_tokens, other.cached_write_tokens),
    })
}

impl Conversation<'_> {
    /// The first prompt of those that come in lines.
    pub(super) async fn first_line(&mut self) -> Result<Question, Trouble> {
        match self.next_line().await? {
            Some(prompt) => Ok(Question::plain(prompt?)),
            None => {
                Err(Failure::usage("there is no prompt on stdin\nhint: a line looks like {\"prompt\": \"…\"}").into())
            }
        }
    }

    async fn next_line(&mut self) -> Result<Option<Result<String, Failure>>, Trouble> {
        let Some(prompts) = &mut self.turns.prompts else { return Ok(None) };
        tokio::select! {
            prompt = prompts.next() => Ok(prompt),
            signal = self.signals.next() => Err(Trouble::Signal(signal)),
            () = until(self.deadline) => Err(timed_out(self.args).into()),
        }
    }

    /// Holds all turns. The end of the last one is returned to be told.
    pub(super) async fn hold_turns(
        &mut self,
        connection: &Connection,
        session: &Session,
        services: &mut Services,
        blocks: Vec<ContentBlock>,
    ) -> Result<End, Trouble> {
        if !self.turns.takes_lines() {
            return self.checked_turn(connection, session, services, blocks).await;
        }
        let mut end = self.line_turn(connection, session, services, blocks).await?;
        loop {
            // A turn that somebody ended is the last one. What reads the results waits for this one before it goes on.
            if end.hurry.is_some() {
                return Ok(end);
            }
            self.tell(end).await?;
            let Some(prompt) = self.next_line().await? else { return Ok(End::default()) };
            self.turns.is_between = false;
            self.record.begin(self.spec.identity(self.cwd), self.cwd, !self.args.ephemeral);
            services.begin_turn();
            let blocks = vec![ContentBlock::text(prompt?)];
            end = self.line_turn(connection, session, services, blocks).await?;
        }
    }

    /// Holds the turn of a line. That it fails is its result, and the next one has its chance, unless the agent is gone.
    async fn line_turn(
        &mut self,
        connection: &Connection,
        session: &Session,
        services: &mut Services,
        blocks: Vec<ContentBlock>,
    ) -> Result<End, Trouble> {
        match self.checked_turn(connection, session, services, blocks).await {
            Err(Trouble::Failed(failure)) if failure.code == Code::Agent || failure.code == Code::Login => {
                for event in services.finish().await {
                    self.record.add(event);
                }
                self.record.release();
                Ok(End { failure: Some(failure), ..End::default() })
            }
            other => other,
        }
    }

    /// Tells how a turn ended.
    async fn tell(&mut self, mut end: End) -> Result<(), Trouble> {
        keep_answer(self.args, self.record, &mut end);
        let pen = Pen::new().map_err(|error| Failure::usage(format!("cannot write: {error}")))?;
        let printer = Printer::new(self.args.output, Screen::here());
        let told = self.record.start_next(printer, pen);
        let code = told.finish(end, self.signals).await;
        self.turns.is_between = true;
        if code != Code::Done {
            self.turns.failed = Some(code);
        }
        Ok(())
    }

    /// Holds a turn, and a second one where the answer of the first is not what `--output-schema` asks for.
    async fn checked_turn(
        &mut self,
        connection: &Connection,
        session: &Session,
        services: &mut Services,
        mut blocks: Vec<ContentBlock>,
    ) -> Result<End, Trouble> {
        blocks.extend(self.turns.schema.iter().map(|schema| ContentBlock::text(schema.instruction())));
        let end = self.explained_turn(connection, session, services, blocks).await?;
        let Some((mistakes, again)) = self.mistakes(&end) else { return Ok(end) };
        let text = format!("the answer is not what --output-schema asks for, and is asked for once more:\n{mistakes}");
        self.record.add(Event::notice(Level::Warning, text));
        services.begin_turn();
        let first = end.usage;
        let again = vec![ContentBlock::text(again)];
        let mut end = self.explained_turn(connection, session, services, again).await?;
        end.usage = sum(first, end.usage);
        if let Some((mistakes, _)) = self.mistakes(&end) {
            (end.failure, end.status) = (Some(answer::not_valid(&mistakes)), Some(Status::Error));
        }
        Ok(end)
    }

    /// Holds a turn, and goes on with what a person said when they refused something: the protocol has no other word
    /// for it.
    async fn explained_turn(
        &mut self,
        connection: &Connection,
        session: &Session,
        services: &mut Services,
        blocks: Vec<ContentBlock>,
    ) -> Result<End, Trouble> {
        let mut end = self.turn_with_login(connection, session, services, blocks).await?;
        loop {
            let reasons = services.take_untold_reasons();
            if reasons.is_empty() || end.hurry.is_some() {
                return Ok(end);
            }
            services.begin_turn();
            let first = end.usage;
            let reasons = vec![ContentBlock::text(reasons.join("\n"))];
            end = self.turn_with_login(connection, session, services, reasons).await?;
            end.usage = sum(first, end.usage);
        }
    }

    /// Holds a turn. Where the agent wants a login first and a person is there, they log in, once, and it is held again.
    async fn turn_with_login(
        &mut self,
        connection: &Connection,
        session: &Session,
        services: &mut Services,
        blocks: Vec<ContentBlock>,
    ) -> Result<End, Trouble> {
        let explained = |refusal: ErrorObject| Trouble::Failed(auth::explain(refusal.into(), connection, self.spec));
        let refusal = match self.turn(session, services, blocks.clone()).await? {
            Ok(end) => return Ok(end),
            Err(refusal) => refusal,
        };
        let is_offered = !self.turns.is_login_offered && !self.spec.is_built_in && auth::is_somebody_there();
        self.turns.is_login_offered = true;
        let by_agent: Vec<AuthMethod> = auth::methods(connection, &refusal)
            .into_iter()
            // One in the terminal is for the next start of the agent, and the session is open here.
            .filter(|method| matches!(method, AuthMethod::Agent(_)))
            .collect();
        if !is_offered || by_agent.is_empty() {
            return Err(explained(refusal));
        }
        self.wait_for_person(auth::log_in_by_agent(connection, self.spec, &refusal, &by_agent)).await??;
        services.begin_turn();
        self.turn(session, services, blocks).await?.map_err(explained)
    }

    /// What is wrong with the answer of a turn that is done, and how to ask for it once more.
    fn mistakes(&self, end: &End) -> Option<(String, String)> {
        let schema = self.turns.schema.as_ref()?;
        if end.code != Code::Done || end.failure.is_some() {
            return None;
        }
        let mistakes = schema.check(self.record.last_message_text.text()).err()?;
        let again = schema.ask_again(&mistakes);
        Some((mistakes, again))
    }
}
