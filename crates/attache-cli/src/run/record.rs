//! What a run came to: every event is recorded, printed and added up.

use std::collections::{BTreeSet, VecDeque};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use attache::model::tool::ToolCallUpdate;
use attache::model::update::SessionUpdate;

use super::answer::LastMessage;
use super::fold::{Fold, KEPT_ROWS};
use crate::event::{
    self, Agent, Answer, Cost, Event, FileOperation, Level, Line, Model, Permissions, Start, Status, Text, Usage,
};
use crate::exit::{Code, Failure};
use crate::journal::{self, Journal};
use crate::output::{Printer, Waiting};
use crate::pen::{Ink, Messages, OutputError, Pen};
use crate::signals::Signals;

/// How much is held back while a person is asked. Then nothing more is taken from the agent.
const HELD: usize = 1 << 20;

/// Takes the events of a run.
pub(crate) struct Record {
    pub(crate) run: String,
    began: Instant,
    journal: Journal,
    printer: Printer,
    pen: Pen,
    /// What is to be printed when there is room.
    pending: VecDeque<Ink>,
    pending_bytes: usize,
    /// The messages that are printed beside it, with `-o acp`.
    pub(crate) messages: Option<Messages>,
    last_message: Option<String>,
    is_text_broken: bool,
    is_text_open: bool,
    has_text: bool,
    fold: Fold,
    pub(super) last_message_text: LastMessage,
    /// The text of the result is the last message alone, and not all that was said before it.
    pub(super) tells_last_message_only: bool,
    /// The same for what came before the prompt.
    history: Fold,
    agent: Agent,
    session: Option<String>,
    pub(crate) permissions: Permissions,
    /// How often something was denied before this turn.
    denied_before: u64,
    /// The files that we wrote for the agent.
    files: BTreeSet<String>,
    /// Whether anything was done for the agent: a file read or written, a command run.
    is_served: bool,
    model: Option<Model>,
    /// What the session had cost before; `None` if nobody told.
    cost_before: Option<f64>,
    /// How the agent is confined, once that is known.
    pub(crate) sandbox: Option<event::Sandbox>,
}

impl Record {
    pub(crate) fn new(
        agent: &str,
        identity: Option<String>,
        cwd: &std::path::Path,
        printer: Printer,
        pen: Pen,
        is_kept: bool,
    ) -> (Self, Vec<Event>) {
        let now = SystemTime::now();
        let run = journal::new_run(now);
        let (journal, error) = if is_kept { Journal::begin(&run) } else { (Journal::none(), None) };
        let first = first_events(&run, now, agent, identity, cwd, error);
        let record = Record {
            run,
            began: Instant::now(),
            journal,
            printer,
            pen,
            pending: VecDeque::new(),
            pending_bytes: 0,
            messages: None,
            last_message: None,
            is_text_broken: false,
            is_text_open: false,
            has_text: false,
            fold: Fold::new(),
            last_message_text: LastMessage::default(),
            tells_last_message_only: false,
            history: Fold::new(),
            agent: Agent { agent: agent.into(), ..Agent::default() },
            session: None,
            permissions: Permissions::default(),
            denied_before: 0,
            files: BTreeSet::new(),
            is_served: false,
            model: None,
            cost_before: Some(0.0),
            sandbox: None,
        };
        (record, first)
    }

    /// Takes an event. It is recorded at once, and printed by [`flush`](Record::flush).
    pub(crate) fn add(&mut self, event: Event) {
        let gap = self.fold(&event);
        let line = Line::new(self.elapsed(), event);
        self.write(&line, gap);
    }

    /// Begins the record of the next turn of the same session in the place of this one, which is returned to be finished.
    /// Nothing is kept or printed of it before [`begin`](Record::begin).
    pub(crate) fn start_next(&mut self, printer: Printer, pen: Pen) -> Record {
        let (mut next, _) = Record::new(&self.agent.agent, None, std::path::Path::new(""), printer, pen, false);
        next.messages.clone_from(&self.messages);
        next.agent = self.agent.clone();
        next.session.clone_from(&self.session);
        next.model.clone_from(&self.model);
        next.cost_before = self.session_cost().or(self.cost_before);
        next.sandbox.clone_from(&self.sandbox);
        next.tells_last_message_only = self.tells_last_message_only;
        std::mem::replace(self, next)
    }

    /// Begins a turn that follows another one: it is a run of its own.
    pub(crate) fn begin(&mut self, identity: String, cwd: &std::path::Path, is_kept: bool) {
        let now = SystemTime::now();
        self.run = journal::new_run(now);
        self.began = Instant::now();
        let (journal, error) = if is_kept { Journal::begin(&self.run) } else { (Journal::none(), None) };
        self.journal = journal;
        for event in first_events(&self.run, now, &self.agent.agent, Some(identity), cwd, error) {
            self.add(event);
        }
        self.printer.tell_agent_no_more();
        self.add(Event::Agent(self.agent.clone()));
        if let Some(id) = self.session.clone() {
            self.add(Event::Session(event::Session { id, resumed: true }));
        }
        if let Some(model) = self.model.clone() {
            self.add(Event::Model(model));
        }
    }

    /// Takes an update of the agent's turn.
    pub(crate) fn update(&mut self, update: &SessionUpdate) {
        if let Some(event) = self.fold.apply(update) {
            self.add(event);
        }
    }

    /// Takes an update that came before the prompt went out. What is said and done in it is no part of the answer; what
    /// it tells of the session as it is now holds.
    pub(crate) fn earlier_update(&mut self, update: &SessionUpdate) {
        let event = match update {
            SessionUpdate::AgentMessage(_) | SessionUpdate::AgentThought(_) => self.history.apply(update),
            SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_) => self.history.apply(update),
            _ => event::from_update(update),
        };
        let Some(event) = event else { return };
        match event {
            Event::User(_)
            | Event::Text(_)
            | Event::TextReplaced(_)
            | Event::Thought(_)
            | Event::ThoughtReplaced(_)
            | Event::Tool(_)
            | Event::ToolOutput(_)
            | Event::Command(_)
            | Event::CommandOutput(_)
            | Event::Plan(_) => {
                let line = Line { history: true, ..Line::new(self.elapsed(), event) };
                self.write(&line, "");
            }
            _ => {
                self.update(update);
                self.cost_before = self.session_cost().or(self.cost_before);
            }
        }
    }

    /// What the session has cost so far, as the agent told last.
    fn session_cost(&self) -> Option<f64> {
        Some(self.fold.context()?.cost?.amount)
    }

    /// Takes what a permission request says of its tool call.
    pub(crate) fn permission_asked(&mut self, call: &ToolCallUpdate) {
        if let Some(event) = self.fold.apply_permission(call) {
            self.add(event);
        }
    }

    /// The turn is cancelled, and with it what runs.
    pub(crate) fn cancel(&mut self) {
        self.fold.cancel();
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.denied_before = self.permissions.denied;
    }

    /// Whether the turn did nothing because nothing was allowed.
    pub(crate) fn is_all_denied(&self) -> bool {
        let Permissions { denied, allowed, .. } = self.permissions;
        denied > self.denied_before && allowed == 0 && !self.is_served && !self.fold.has_done_something()
    }

    /// The tool call that runs, to be waited for.
    pub(crate) fn running_call(&self) -> Option<Waiting> {
        self.fold.running_call()
    }

    fn write(&mut self, line: &Line, gap: &str) {
        let ink = self.printer.event(line, gap);
        self.print(ink);
        if let Err(error) = self.journal.add(line) {
            let event = Event::notice(Level::Warning, format!("the rest of this run is not recorded: {error}"));
            let ink = self.printer.event(&Line::new(self.elapsed(), event), "");
            self.print(ink);
        }
    }

    /// Tells a person what is waited for when nothing came for a while.
    pub(crate) fn idle(&mut self, waiting: &Waiting, idle: Duration) {
        let ink = self.printer.idle(waiting, idle);
        self.print(ink);
    }

    /// Clears the screen for somebody else's words.
    pub(crate) fn clear(&mut self) {
        let ink = self.printer.clear();
        self.print(ink);
    }

    /// Goes on below a question that was withdrawn.
    pub(crate) fn leave_question(&mut self) {
        self.print(vec![Ink::err("\n")]);
    }

    fn print(&mut self, ink: Vec<Ink>) {
        self.pending_bytes += ink.iter().map(Ink::size).sum::<usize>();
        self.pending.extend(ink);
    }

    /// Whether there is something to print. Nothing more should be taken then.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.messages.as_ref().is_some_and(Messages::is_full)
    }

    /// Whether as much waits to be printed as is held for a person who is being asked.
    pub(crate) fn is_full(&self) -> bool {
        self.pending_bytes > HELD || self.messages.as_ref().is_some_and(Messages::is_full)
    }

    /// Prints what there is to print, and then, if it `holds`, leaves the screen to a question: returns when all that came
    /// before it is written, and nothing else is until [`release`](Record::release). It can be cancelled and called again.
    pub(crate) async fn flush_and_hold(&mut self, holds: bool) -> Result<(), OutputError> {
        if !holds {
            return self.flush().await;
        }
        self.clear();
        self.flush().await?;
        self.pen.written().await?;
        if let Some(messages) = &self.messages {
            messages.hold().await;
        }
        Ok(())
    }

    /// The question is answered: what was held is printed.
    pub(crate) fn release(&self) {
        if let Some(messages) = &self.messages {
            messages.release();
        }
    }

    /// Prints what there is to print; waits for a slow reader. It can be cancelled and called again.
    pub(crate) async fn flush(&mut self) -> Result<(), OutputError> {
        while !self.pending.is_empty() {
            let room = self.pen.room().await?;
            let ink = self.pending.pop_front();
            self.pending_bytes -= ink.as_ref().map_or(0, Ink::size);
            room.send(ink);
        }
        match &self.messages {
            Some(messages) => messages.room().await,
            None => Ok(()),
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds an event up. Returns what stands between its text and the text before it.
    fn fold(&mut self, event: &Event) -> &'static str {
        self.last_message_text.note(event);
        match event {
            Event::Agent(agent) => self.agent = agent.clone(),
            Event::Session(session) => {
                if self.session.is_none() && session.resumed {
                    self.cost_before = None;
                }
                self.session = Some(session.id.clone());
            }
            Event::Model(model) => self.model = Some(model.clone()),
            Event::Text(text) => return self.gap(text, false),
            Event::TextReplaced(text) => return self.gap(text, true),
            Event::Thought(_) | Event::ThoughtReplaced(_) | Event::Plan(_) | Event::Tool(_) | Event::ToolOutput(_) => {
                self.is_text_broken = true;
            }
            Event::Command(_) => self.is_served = true,
            Event::User(_) => self.history = Fold::new(),
            Event::File(file) if file.error.is_none() => {
                self.is_served = true;
                if file.operation == FileOperation::Write && self.files.len() < KEPT_ROWS {
                    self.files.insert(file.path.clone());
                }
            }
            Event::Permission(permission) => {
                // Some agents tell of a tool call only by asking for it.
                self.is_text_broken = true;
                self.fold.end_message();
                self.permissions.asked += 1;
                match permission.answer {
                    Answer::Allowed => self.permissions.allowed += 1,
                    Answer::Denied => self.permissions.denied += 1,
                    Answer::Cancelled => {}
                }
            }
            _ => {}
        }
        ""
    }

    /// What stands between a piece of text and the text before it.
    fn gap(&mut self, text: &Text, is_anew: bool) -> &'static str {
        if text.text.is_empty() {
            return "";
        }
        let is_other = text.message_id.is_some() && self.last_message.is_some() && text.message_id != self.last_message;
        let is_fresh = std::mem::take(&mut self.is_text_broken) || is_other || is_anew;
        if text.message_id.is_some() {
            self.last_message.clone_from(&text.message_id);
        }
        let gap = match (is_fresh && self.has_text, self.is_text_open) {
            (false, _) => "",
            (true, true) => "\n\n",
            (true, false) => "\n",
        };
        self.has_text = true;
        self.is_text_open = !text.text.ends_with('\n');
        gap
    }

    /// Ends the run: prints and records the result, and returns the exit code. A reader of stdout that does not read is
    /// waited for until a signal comes, or for a moment if one came already.
    pub(crate) async fn finish(mut self, mut end: End, signals: &mut Signals) -> Code {
        self.release();
        let mut code = end.failure.as_ref().map_or(end.code, |failure| failure.code);
        let mut status = end.status.unwrap_or_else(|| status_of(code));
        if matches!(status, Status::Cancelled | Status::Timeout) {
            self.fold.cancel();
        }
        for event in self.fold.last_events() {
            self.add(event);
        }
        if code == Code::Done && self.fold.is_text_truncated() && self.printer.prints_text_at_the_end() {
            let what = "the answer is longer than 8 MiB, and only its beginning is printed";
            end.failure = Some(Failure::new(Code::Refused, format!("{what}\nhint: `-o text` prints all of it")));
            (code, status) = (Code::Refused, Status::Limit);
        }
        let mut files = std::mem::take(&mut self.files);
        files.extend(self.fold.files_changed().take(KEPT_ROWS));
        let context = self.fold.context();
        let result = event::Result {
            status,
            exit_code: code as u8,
            stop_reason: end.stop_reason,
            text: match self.tells_last_message_only {
                true => self.last_message_text.text().to_owned(),
                false => self.fold.text(),
            },
            text_truncated: self.fold.is_text_truncated(),
            session_id: self.session.take(),
            run: self.run.clone(),
            agent: std::mem::take(&mut self.agent),
            model: self.model.take(),
            usage: end.usage,
            cost: context.as_ref().and_then(|context| Some(run_cost(context.cost.as_ref()?, self.cost_before?))),
            context,
            permissions: self.permissions,
            tool_calls: self.fold.tool_calls(),
            plan: self.fold.plan(),
            unknown_updates: self.fold.unknown(),
            files_changed: files.into_iter().take(KEPT_ROWS).collect(),
            sandbox: self.sandbox.take(),
            duration_ms: self.elapsed(),
            error: end.failure.map(|failure| event::Error::new(&failure.message)),
        };
        let mut line = Line::new(result.duration_ms, Event::Result(Box::new(result)));
        if let Event::Result(result) = &line.event {
            let ink = self.printer.result(&line, result);
            self.print(ink);
        }
        let mut signal = None;
        let printed = tokio::select! {
            printed = self.last_words() => printed,
            received = signals.next() => {
                signal = Some(received);
                Ok(())
            }
            () = super::until(end.hurry) => Ok(()),
        };
        if let (Some(signal), Code::Done, Event::Result(result)) = (signal, code, &mut line.event) {
            // A result that nobody got is not done.
            code = super::code_of(signal);
            (result.status, result.exit_code) = (Status::Cancelled, code as u8);
        }
        if let (Err(OutputError::Failed(error)), Event::Result(result)) = (printed, &mut line.event) {
            // Not by the pen, which stopped at that.
            let message = unwritable(&error);
            let _ = writeln!(std::io::stderr(), "error: {message}");
            code = Code::Usage;
            (result.status, result.exit_code) = (Status::Usage, code as u8);
            result.error = Some(event::Error::new(&message));
        }
        // Last, because whether it could be printed is a part of how it ended.
        let _ = self.journal.add(&line);
        // A mistake on the command line is nothing to come back to.
        if code == Code::Usage && matches!(&line.event, Event::Result(result) if result.session_id.is_none()) {
            self.journal = Journal::none();
            let _ = journal::delete(&self.run);
        }
        code
    }

    /// Writes what is left to write.
    async fn last_words(&mut self) -> Result<(), OutputError> {
        self.flush().await?;
        if let Some(messages) = &self.messages {
            messages.until(0).await?;
        }
        self.pen.written().await
    }
}

/// What every run begins with, and what is said where it cannot be recorded.
fn first_events(
    run: &str,
    now: SystemTime,
    agent: &str,
    identity: Option<String>,
    cwd: &std::path::Path,
    error: Option<std::io::Error>,
) -> Vec<Event> {
    let start = Event::Start(Start {
        schema: event::VERSION,
        attache: env!("CARGO_PKG_VERSION").into(),
        run: run.into(),
        time: attache::trace::rfc3339(now),
        agent: agent.into(),
        identity,
        cwd: cwd.display().to_string(),
    });
    let notice = error.map(|error| Event::notice(Level::Warning, format!("this run is not recorded: {error}")));
    std::iter::once(start).chain(notice).collect()
}

/// What a run has cost, of what its session has and had before.
fn run_cost(session: &Cost, before: f64) -> Cost {
    // What is less than a billionth comes of the subtraction.
    let amount = ((session.amount - before).max(0.0) * 1e9).round() / 1e9;
    Cost { amount, currency: session.currency.clone() }
}

/// What is said when stdout cannot be written to.
pub(crate) fn unwritable(error: &str) -> String {
    format!("cannot write to stdout: {error}")
}

fn status_of(code: Code) -> Status {
    match code {
        Code::Done => Status::Done,
        Code::Agent => Status::Error,
        Code::Usage => Status::Usage,
        Code::Timeout => Status::Timeout,
        Code::Login => Status::LoginRequired,
        Code::Denied => Status::Denied,
        Code::Refused => Status::Refused,
        Code::NotFound => Status::NotFound,
        Code::Died => Status::AgentDied,
        Code::Interrupted | Code::Terminated => Status::Cancelled,
    }
}

/// How a run ended.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) code: Code,
    pub(crate) failure: Option<Failure>,
    /// Where the code alone does not say it.
    pub(crate) status: Option<Status>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// Until when everything is to have ended, where somebody waits for that.
    pub(crate) hurry: Option<Instant>,
}
