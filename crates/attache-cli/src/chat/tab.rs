//! One session as the screen has it.

mod news;
mod sending;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use attache::SessionView;
use attache::model::capability::AgentCapabilities;
use attache::model::command::AvailableCommand;
use attache::model::elicitation::CreateElicitationResponse;
use attache::model::notice::NoticeSeverity;
use attache::model::session::{SessionId, SessionInfo};
use attache::model::tool::{ToolCallStatus, ToolCallUpdate};
use attache::model::update::SessionUpdate;
use attache::proto::view::{Entry, MessageRole};
use attache_tui::composer::{Composer, Message, Submission};
use attache_tui::dialog::{FormDialog, LoginDialog, PermissionDialog, UrlDialog};
use attache_tui::status::{Activity, Status, TabState, WorkPlace};
use attache_tui::theme::Theme;
use attache_tui::transcript::Transcript;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::oneshot;

use super::worker::{Order, Plan, Worker, WorkerId};
use crate::client::ask::Reply;
use crate::event::{self, Level};
use crate::exit::Code;

/// How much a view holds: far more than a day of talk, and little enough for several of them.
const VIEW_BYTES: usize = 16 << 20;

/// What an empty composer says.
pub(super) const PLACEHOLDER: &str = "Write to the agent; @ names a file, / a command, ? shows the keys";

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Opening,
    LoginNeeded,
    Idle,
    Working,
    Cancelling,
    Dead,
}

/// A question that waits for the person.
pub(super) struct Asked {
    pub(super) dialog: QuestionDialog,
    /// When it was first seen. Keys right after that are no answer.
    pub(super) shown: Option<Instant>,
}

pub(super) enum QuestionDialog {
    Permission(Box<PermissionDialog>, oneshot::Sender<Reply>),
    Form(Box<FormDialog>, oneshot::Sender<CreateElicitationResponse>),
    Url(Box<UrlDialog>, oneshot::Sender<CreateElicitationResponse>),
}

impl QuestionDialog {
    /// Names the session, or not if it is the one on the screen.
    pub(super) fn set_session(&mut self, title: Option<String>) {
        match self {
            QuestionDialog::Permission(dialog, _) => dialog.set_session(title),
            QuestionDialog::Form(dialog, _) => dialog.set_session(title),
            QuestionDialog::Url(dialog, _) => dialog.set_session(title),
        }
    }

    /// How many rows it would like to have.
    pub(super) fn height(&mut self, width: u16, theme: &Theme) -> u16 {
        match self {
            QuestionDialog::Permission(dialog, _) => dialog.height(width, theme),
            QuestionDialog::Form(dialog, _) => dialog.height(width, theme),
            QuestionDialog::Url(dialog, _) => dialog.height(width, theme),
        }
    }

    pub(super) fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        match self {
            QuestionDialog::Permission(dialog, _) => dialog.render(area, buffer, theme),
            QuestionDialog::Form(dialog, _) => dialog.render(area, buffer, theme),
            QuestionDialog::Url(dialog, _) => dialog.render(area, buffer, theme),
        }
    }
}

impl Asked {
    /// Whether nobody wants the answer any more.
    fn is_withdrawn(&self) -> bool {
        match &self.dialog {
            QuestionDialog::Permission(_, reply) => reply.is_closed(),
            QuestionDialog::Form(_, reply) | QuestionDialog::Url(_, reply) => reply.is_closed(),
        }
    }
}

/// One session as the screen has it.
pub(super) struct Tab {
    pub(super) id: WorkerId,
    pub(super) plan: Plan,
    worker: Worker,
    pub(super) view: SessionView,
    pub(super) transcript: Transcript,
    pub(super) composer: Composer,
    pub(super) phase: Phase,
    /// Since when it is in this phase.
    since: Instant,
    /// What the agent does within a turn, and since when.
    activity: Option<(Activity, Instant)>,
    turn_began: Option<Instant>,
    agent: event::Agent,
    pub(super) session: Option<SessionId>,
    pub(super) capabilities: Option<Box<AgentCapabilities>>,
    pub(super) can_steer: bool,
    pub(super) questions: VecDeque<Asked>,
    /// How many more the agent has asked, which come one after the other.
    pub(super) waiting_questions: usize,
    /// How many questions in a row were refused, and whether all else that the turn asks is.
    pub(super) refusals: u32,
    is_refusing: bool,
    pub(super) login: Option<(LoginDialog, Instant)>,
    /// The sessions of the agent, when they were asked for.
    pub(super) sessions: Vec<SessionInfo>,
    pub(super) is_unread: bool,
    /// What the agent said when it died.
    pub(super) last_words: Option<String>,
    /// How the agent failed, as an exit code.
    pub(super) failed: Option<Code>,
    /// The agent does not open the session that was asked for: a new one can be begun.
    pub(super) is_refused: bool,
    /// When the agent tries again, as it has told.
    retry: Option<Instant>,
    /// Whether it was said that a cancelled turn does not end.
    is_cancel_overdue: bool,
    /// What was sent and not begun yet, in case that it fails.
    sending: VecDeque<Submission>,
    /// What the turn was begun with, in case that it fails.
    begun: Option<Submission>,
    /// Why the person said no, for the agent to read as soon as it is ready: before what waits in the queue.
    reasons: VecDeque<Message>,
    /// Whether what waits in the queue is sent only by a key: it was left by another chat, by a turn that was cancelled, or
    /// by one that failed.
    is_paused: bool,
    /// What the command line asks, until the session is open. It stands in the queue.
    first_prompt: Option<String>,
    /// The first entry that is not in the terminal's own text yet, for inline screens.
    pub(super) printed: usize,
    /// The last entry that is, on how many rows, and how long its text was.
    pub(super) printed_rows: Option<(usize, usize)>,
    pub(super) printed_text: usize,
}

/// What the screen has to do after news.
pub(super) enum Effect {
    None,
    /// There is something to read.
    Updated,
    /// A turn has ended.
    TurnEnded,
    /// A question was asked.
    Asked,
    /// The list of sessions has come.
    Sessions,
    /// The agent is gone.
    Died,
    /// Something to tell in passing.
    Toast(Level, String),
}

impl Tab {
    pub(super) fn new(id: WorkerId, plan: Plan, worker: Worker) -> Self {
        let now = Instant::now();
        let mut transcript = Transcript::new();
        transcript.set_root(&plan.cwd.display().to_string());
        let mut composer = Composer::new();
        composer.set_placeholder(PLACEHOLDER);
        Tab {
            id,
            agent: event::Agent { agent: plan.spec.name.clone(), ..event::Agent::default() },
            plan,
            worker,
            view: SessionView::with_limit(VIEW_BYTES),
            transcript,
            composer,
            phase: Phase::Starting,
            since: now,
            activity: None,
            turn_began: None,
            session: None,
            capabilities: None,
            can_steer: false,
            questions: VecDeque::new(),
            waiting_questions: 0,
            refusals: 0,
            is_refusing: false,
            login: None,
            sessions: Vec::new(),
            is_unread: false,
            last_words: None,
            failed: None,
            is_refused: false,
            retry: None,
            is_cancel_overdue: false,
            sending: VecDeque::new(),
            begun: None,
            reasons: VecDeque::new(),
            is_paused: false,
            first_prompt: None,
            printed: 0,
            printed_rows: None,
            printed_text: 0,
        }
    }

    /// Begins anew with another worker. What was said and what was written stays.
    pub(super) fn restart(&mut self, id: WorkerId, plan: Plan, worker: Worker) {
        self.cut_off();
        let mut fresh = Tab::new(id, plan, worker);
        fresh.printed = self.printed;
        // What waits was meant for the turn before.
        fresh.is_paused = self.is_paused || !self.composer.queue.is_empty();
        std::mem::swap(&mut fresh.view, &mut self.view);
        std::mem::swap(&mut fresh.transcript, &mut self.transcript);
        std::mem::swap(&mut fresh.composer, &mut self.composer);
        for submission in self.sending.drain(..) {
            fresh.composer.restore(submission);
        }
        *self = fresh;
    }

    /// Shows the conversation that this one was forked from.
    pub(super) fn show_copy(&mut self, view: SessionView, title: &str) {
        self.view = view;
        self.cut_off();
        self.transcript.all_changed();
        self.notice(NoticeSeverity::Info, &format!("a copy of {title}: what follows is said in this session only"));
    }

    /// Who its agent is, for records and sessions.
    pub(super) fn identity(&self) -> String {
        self.plan.spec.identity(&self.plan.cwd)
    }

    /// Ends what the agent can no longer end by itself.
    fn cut_off(&mut self) {
        self.end_calls();
        if self.view.state.is_busy() || self.is_working() {
            self.view.end_turn(&attache::Stop::Cancelled);
        }
        self.transcript.all_changed();
    }

    /// Ends the tool calls of an agent that will not tell what became of them.
    fn end_calls(&mut self) {
        self.view.cancel_requested();
        let presumed = self.view.timeline().iter().filter_map(|entry| match entry {
            Entry::ToolCall(call) if call.presumed_cancelled => Some(call.id.clone()),
            _ => None,
        });
        for id in presumed.collect::<Vec<_>>() {
            let mut update = ToolCallUpdate::new(id);
            update.status = attache::model::Patch::Set(ToolCallStatus::Cancelled);
            self.view.apply(&SessionUpdate::ToolCallUpdate(update.into()));
        }
    }

    pub(super) fn order(&self, order: Order) {
        // A worker that has ended has said so, or is about to.
        let _ = self.worker.orders.send(order);
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        if self.phase != phase {
            self.is_cancel_overdue = false;
            self.phase = phase;
            self.since = Instant::now();
        }
    }

    /// What it is called.
    pub(super) fn title(&self) -> String {
        match &self.view.title {
            Some(title) => title.clone(),
            None => self.agent_name().to_owned(),
        }
    }

    pub(super) fn agent_name(&self) -> &str {
        self.agent.name.as_deref().unwrap_or(short(&self.agent.agent))
    }

    pub(super) fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Working | Phase::Cancelling) || self.view.state.is_busy()
    }

    /// Whether the agent has a command of this name.
    pub(super) fn has_command(&self, name: &str) -> bool {
        let is_it = |command: &AvailableCommand| matches!(command, AvailableCommand::Command(own) if own.name == name);
        self.view.commands.iter().any(is_it)
    }

    /// Whether anything was said in the session.
    pub(super) fn has_talked(&self) -> bool {
        self.view.timeline().iter().any(|entry| matches!(entry, Entry::Message(_)))
    }

    /// Whether what waits is sent by a key only.
    pub(super) fn is_held(&self) -> bool {
        self.is_paused && !self.is_working()
    }

    pub(super) fn state(&self) -> TabState {
        match self.phase {
            Phase::Dead => TabState::Dead,
            _ if !self.questions.is_empty() || self.login.is_some() => TabState::Asking,
            Phase::Starting | Phase::Opening => TabState::Working,
            _ if self.is_working() => TabState::Working,
            _ if self.is_unread => TabState::Unread,
            _ => TabState::Idle,
        }
    }

    /// Takes questions away that nobody wants an answer to any more. Whether there were any.
    pub(super) fn withdraw(&mut self) -> bool {
        let before = self.questions.len();
        self.questions.retain(|asked| !asked.is_withdrawn());
        self.questions.len() != before
    }

    /// An answer was given.
    pub(super) fn count_answer(&mut self, is_refusal: bool) {
        self.refusals = if is_refusal { self.refusals + 1 } else { 0 };
    }

    /// Refuses what is asked, and all else that is asked until the turn ends.
    pub(super) fn refuse_all(&mut self) {
        self.is_refusing = true;
        self.questions.drain(..).for_each(|asked| refuse(asked.dialog));
    }

    /// The lines below the transcript.
    pub(super) fn status(&self) -> Status {
        let mut status = Status::from_view(self.agent_name(), &self.view);
        let phase = match self.phase {
            Phase::Starting => Some(Activity::Starting),
            Phase::Opening => Some(Activity::OpeningSession),
            Phase::LoginNeeded => Some(Activity::Other("a login is needed".into())),
            Phase::Cancelling => Some(Activity::Cancelling),
            Phase::Dead => Some(Activity::Dead),
            Phase::Idle | Phase::Working => None,
        };
        status.activity = match phase {
            Some(activity) => Some((activity, self.since.elapsed())),
            None if !self.questions.is_empty() => Some((Activity::Asking, Duration::ZERO)),
            None if self.retry.is_some_and(|retry| retry > Instant::now()) => {
                let time = self.retry.map_or(Duration::ZERO, |retry| retry.saturating_duration_since(Instant::now()));
                // Counted as a person does: to one, not to zero.
                Some((Activity::Retrying(Duration::from_secs(time.as_secs() + 1)), Duration::ZERO))
            }
            None if self.is_working() => match &self.activity {
                Some((activity, since)) => Some((activity.clone(), since.elapsed())),
                None => Some((Activity::Thinking, self.since.elapsed())),
            },
            None => None,
        };
        status.elapsed = self.turn_began.map(|began| began.elapsed());
        status.queued = self.composer.queue.len() + self.reasons.len();
        status.below = if self.transcript.is_following() { 0 } else { self.transcript.entries_below(&self.view) };
        status.location = self.location().filter(|_| self.is_working());
        status
    }

    /// The file and line that the agent works on.
    fn location(&self) -> Option<WorkPlace> {
        // In this turn: what came before is over.
        let is_prompt = |entry: &&Entry| matches!(entry, Entry::Message(message) if message.role == MessageRole::User);
        let entries = self.view.timeline().iter().rev().take(50).take_while(|entry| !is_prompt(entry));
        let calls = entries.filter_map(|entry| match entry {
            Entry::ToolCall(call) => Some(call),
            _ => None,
        });
        let location = calls.into_iter().find_map(|call| call.locations.last())?;
        let root = self.plan.cwd.display().to_string();
        let path =
            location.path.strip_prefix(&root).map_or(location.path.as_str(), |path| path.trim_start_matches('/'));
        Some(WorkPlace { path: path.to_owned(), line: location.line })
    }
}

fn refuse(dialog: QuestionDialog) {
    match dialog {
        QuestionDialog::Permission(_, reply) => drop(reply.send(Reply::Deny { reason: None })),
        QuestionDialog::Form(_, reply) | QuestionDialog::Url(_, reply) => {
            drop(reply.send(CreateElicitationResponse::decline()));
        }
    }
}

/// An agent that goes by the path of its program is called by its last part.
fn short(name: &str) -> &str {
    name.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(name)
}

/// What is left out, without the options of the command line that it could be given by.
fn without_hint(text: &str) -> String {
    text.split("\nhint: ").next().unwrap_or_default().to_owned()
}
