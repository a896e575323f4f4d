//! One session as the screen has it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use attache::SessionView;
use attache::model::capability::AgentCapabilities;
use attache::model::content::{ContentBlock, ImageContent};
use attache::model::elicitation::{CreateElicitationResponse, ElicitationMode};
use attache::model::notice::{Notice, NoticeSeverity};
use attache::model::session::{SessionId, SessionInfo};
use attache::model::tool::{ToolCallId, ToolCallStatus, ToolCallUpdate};
use attache::model::update::SessionUpdate;
use attache::proto::view::{Entry, MessageRole};
use attache_tui::composer::{AttachmentSource, Composer, Draft, Message, Submission};
use attache_tui::dialog::{FormDialog, LoginDialog, PermissionDialog, UrlDialog};
use attache_tui::status::{Activity, Status, TabState, WorkPlace};
use attache_tui::transcript::Transcript;
use tokio::sync::oneshot;

use super::worker::{News, Order, Plan, Worker, WorkerId};
use crate::client::ask::Reply;
use crate::event::{self, Answer, Level};
use crate::run::prompt::Question;

/// How much a view holds: far more than a day of talk, and little enough for several of them.
const VIEW_BYTES: usize = 16 << 20;

/// What an empty composer says.
pub(super) const PLACEHOLDER: &str = "Write to the agent; @ names a file, / a command, ? shows the keys";

/// How long a cancelled turn may take to end before a person is told what else can be done.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

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
            retry: None,
            is_cancel_overdue: false,
            sending: VecDeque::new(),
            begun: None,
            reasons: VecDeque::new(),
            is_paused: false,
            first_prompt: None,
            printed: 0,
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

    /// Takes what another chat has left. Nothing of it is sent without a key.
    pub(super) fn take_over(&mut self, drafts: Vec<Draft>) {
        let mut drafts = drafts.into_iter();
        let Some(mut first) = drafts.next() else { return };
        // What was written in other sessions is not lost, but whose it was is.
        for other in drafts {
            first.queue.extend(Some(other.message).filter(|message| !message.text.is_empty()));
            first.queue.extend(other.queue);
        }
        self.is_paused = !first.queue.is_empty();
        self.composer.set_draft(first);
    }

    /// What to ask as soon as there is a session: before what was left, which waits for a key.
    pub(super) fn ask_first(&mut self, prompt: String) {
        self.composer.queue.push_front(Message { text: prompt.clone(), ..Default::default() });
        self.first_prompt = Some(prompt);
    }

    fn take_first_prompt(&mut self) -> Option<Submission> {
        let prompt = self.first_prompt.take()?;
        // The person may have changed what waits.
        let is_next = self.composer.queue.messages().next().is_some_and(|message| message.text == prompt);
        if is_next { self.composer.queue.pop_next() } else { None }
    }

    /// Shows the conversation that this one was forked from.
    pub(super) fn show_copy(&mut self, view: SessionView, title: &str) {
        self.view = view;
        self.cut_off();
        self.notice(NoticeSeverity::Info, &format!("a copy of {title}: what follows is said in this session only"));
    }

    /// Who its agent is, for records and sessions.
    pub(super) fn identity(&self) -> String {
        self.plan.spec.identity(&self.plan.cwd)
    }

    /// Ends what the agent can no longer end by itself.
    fn cut_off(&mut self) {
        self.end_calls();
        self.view.end_turn(&attache::Stop::Cancelled);
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

    /// Sends what is in the composer: at once, or when the agent is ready for it.
    pub(super) fn send(&mut self, at_once: bool) -> Option<String> {
        if self.composer.is_empty() && !self.is_working() && self.phase == Phase::Idle {
            // Enter on nothing sends what is in the queue.
            self.is_paused = false;
            return self.send_next();
        }
        let can_send_now = self.phase == Phase::Idle && !self.is_working();
        if can_send_now || (at_once && self.can_steer && self.session.is_some() && self.phase != Phase::Dead) {
            let submission = self.composer.take()?;
            return self.submit(submission);
        }
        self.composer.enqueue();
        None
    }

    /// Sends the next of what waits, if the agent is ready.
    fn send_next(&mut self) -> Option<String> {
        if self.phase != Phase::Idle || self.is_working() {
            return None;
        }
        if let Some(reason) = self.reasons.pop_front() {
            return self.submit(reason.submission());
        }
        if self.is_paused {
            return None;
        }
        let submission = self.composer.queue.pop_next()?;
        self.submit(submission)
    }

    /// Holds what waits until a key sends it. What is said about it, if something waits.
    fn pause(&mut self) -> Option<&'static str> {
        for reason in self.reasons.drain(..).rev() {
            self.composer.queue.push_front(reason);
        }
        self.is_paused = !self.composer.queue.is_empty();
        self.is_paused.then_some("enter on an empty line sends what waits")
    }

    /// Sends a message. What cannot be read goes back to the composer, and why is returned.
    fn submit(&mut self, submission: Submission) -> Option<String> {
        match self.blocks(&submission) {
            Ok((blocks, left_out)) => {
                for text in left_out {
                    self.notice(NoticeSeverity::Warning, &text);
                }
                let place = self.view.user_prompt(&blocks);
                self.transcript.changed(place);
                self.transcript.scroll(attache_tui::transcript::Scroll::Bottom);
                self.view.begin_turn();
                self.order(Order::Prompt(blocks));
                self.sending.push_back(submission);
                self.turn_began.get_or_insert_with(Instant::now);
                self.enter(Phase::Working);
                None
            }
            Err(mistake) => {
                self.composer.restore(submission);
                Some(mistake)
            }
        }
    }

    /// What is sent, and what of it is left as text although it looks like a file.
    fn blocks(&self, submission: &Submission) -> Result<(Vec<ContentBlock>, Vec<String>), String> {
        let offered = self.capabilities.as_ref().and_then(|offered| offered.session.clone()).unwrap_or_default().prompt;
        let (mut images, mut data) = (Vec::new(), Vec::new());
        for attachment in &submission.attachments {
            match &attachment.source {
                AttachmentSource::File(path) if attachment.mime_type.starts_with("image/") => images.push(path.clone()),
                AttachmentSource::File(_) => {}
                AttachmentSource::Base64(bytes) => {
                    data.push(ContentBlock::Image(
                        ImageContent::new(bytes.clone(), attachment.mime_type.clone()).into(),
                    ));
                }
            }
        }
        let files = submission.attachments.iter().filter_map(|attachment| match &attachment.source {
            AttachmentSource::File(path) if !attachment.mime_type.starts_with("image/") => Some(path.clone()),
            _ => None,
        });
        let files: Vec<_> = files.collect();
        let (text, plan) = (submission.text.clone(), &self.plan);
        // What was pasted is somebody else's word, and names no files.
        let question = Question::new(text, &submission.typed, &files, &images, &plan.directories, &plan.cwd);
        let question = question.map_err(|failure| failure.message)?;
        let mut blocks = question.blocks(&offered).map_err(|failure| failure.message)?;
        // A word that names no file is mostly a name or an address, and no news.
        let mut left_out: Vec<String> = question
            .unmatched
            .iter()
            .filter(|text| text.contains("is not attached"))
            .map(|text| without_hint(text))
            .collect();
        left_out.extend(submission.pasted_mentions.iter().filter(|word| plan.cwd.join(&word[1..]).is_file()).map(
            |word| {
                format!(
                    "`{word}` was pasted and is left as text: type it, or choose it from the list, to attach the file"
                )
            },
        ));
        if !data.is_empty() && offered.image.is_none() {
            return Err("the agent takes no images".into());
        }
        blocks.extend(data);
        Ok((blocks, left_out))
    }

    /// Cancels what the agent does.
    pub(super) fn cancel(&mut self) {
        if self.is_working() {
            self.view.cancel_requested();
            self.transcript.all_changed();
            self.order(Order::Cancel);
            self.questions.clear();
            self.enter(Phase::Cancelling);
        }
    }

    /// Whether a cancelled turn should have ended by now; true once.
    pub(super) fn notice_overdue_cancel(&mut self) -> bool {
        let is_overdue = self.phase == Phase::Cancelling && self.since.elapsed() > CANCEL_PATIENCE;
        let is_news = is_overdue && !self.is_cancel_overdue;
        self.is_cancel_overdue |= is_overdue;
        is_news
    }

    /// The focused tool call, if it runs and the agent offers to cancel it alone.
    pub(super) fn cancellable_tool(&self) -> Option<ToolCallId> {
        let Entry::ToolCall(call) = self.view.entry(self.transcript.focused()?)? else { return None };
        let can_cancel = call.capabilities.as_ref().is_some_and(|offered| offered.cancel.is_some());
        (can_cancel && !call.status.is_final()).then(|| call.id.clone())
    }

    /// Sends a command of the agent, and leaves alone what is being written.
    pub(super) fn send_command(&mut self, command: &str) -> Option<String> {
        let message = Message { text: command.to_owned(), ..Default::default() };
        self.submit(message.submission())
    }

    /// Takes questions away that nobody wants an answer to any more. Whether there were any.
    pub(super) fn withdraw(&mut self) -> bool {
        let before = self.questions.len();
        self.questions.retain(|asked| !asked.is_withdrawn());
        self.questions.len() != before
    }

    /// Takes news in.
    pub(super) fn take(&mut self, news: News) -> Effect {
        match news {
            News::Connected { agent, capabilities, can_steer } => {
                self.agent = agent;
                self.capabilities = Some(capabilities);
                self.can_steer = can_steer;
                self.enter(Phase::Opening);
            }
            News::Opened { id, options, commands, unset } => {
                self.session = Some(id);
                self.view.apply_options(options);
                if !commands.is_empty() {
                    self.view.apply_commands(commands);
                }
                self.login = None;
                self.enter(Phase::Idle);
                let first = self.take_first_prompt();
                let mistake = match (unset.is_empty(), first) {
                    (true, Some(first)) => self.submit(first),
                    (true, None) => self.send_next(),
                    (false, first) => {
                        for text in &unset {
                            self.notice(NoticeSeverity::Error, text);
                        }
                        // What was written is meant for what is not set.
                        self.pause();
                        if let Some(first) = first {
                            self.composer.restore(first);
                        }
                        Some("not everything is set as you wanted it: nothing was sent".into())
                    }
                };
                if let Some(mistake) = mistake {
                    return Effect::Toast(Level::Error, mistake);
                }
            }
            News::LoginNeeded { words, methods } => {
                let command = self.plan.spec.command_words();
                let dialog = LoginDialog::new(self.agent_name(), command, methods, Some(words));
                self.login = Some((dialog, Instant::now()));
                self.enter(Phase::LoginNeeded);
            }
            News::LoggedIn => {
                self.enter(Phase::Idle);
                return Effect::Toast(Level::Info, "logged in; send your message again".into());
            }
            News::LoginFailed(why) => {
                self.enter(Phase::Idle);
                return Effect::Toast(Level::Error, why);
            }
            News::Update(update) => {
                self.retry = match &*update {
                    SessionUpdate::Notice(notice) => retry_after(notice).map(|time| Instant::now() + time),
                    _ => None,
                };
                self.apply(&update);
                return Effect::Updated;
            }
            News::Told(event) => self.tell(&event),
            News::TurnBegan => {
                self.begun = self.sending.pop_front();
                self.turn_began.get_or_insert_with(Instant::now);
                if self.phase != Phase::Cancelling {
                    self.enter(Phase::Working);
                }
            }
            News::TurnEnded { stop, usage } => {
                if let Some(stop) = stop {
                    self.view.end_turn(&stop);
                }
                if usage.is_some() {
                    self.view.turn_usage = usage;
                }
                return self.end_turn();
            }
            News::TurnFailed(message) => {
                let failed: Vec<Submission> = self.begun.take().into_iter().chain(self.sending.drain(..)).collect();
                for submission in failed.into_iter().rev() {
                    self.composer.restore(submission);
                }
                self.end_calls();
                // The error itself says how it ended.
                self.view.end_turn(&attache::Stop::EndTurn);
                self.notice(NoticeSeverity::Error, &message);
                // What waits may build on what has failed.
                let words = self.pause();
                self.end_turn();
                if let Some(words) = words {
                    return Effect::Toast(Level::Info, words.into());
                }
                return Effect::TurnEnded;
            }
            News::Options(options) => self.view.apply_options(options),
            News::Sessions(sessions) => {
                self.sessions = sessions;
                return Effect::Sessions;
            }
            News::WaitingQuestions(count) => self.waiting_questions = count,
            News::Refused(message) => return Effect::Toast(Level::Error, message),
            News::Permission { question, reply } => {
                let dialog = PermissionDialog::new(question.question, question.options);
                self.ask(QuestionDialog::Permission(Box::new(dialog), reply));
                return Effect::Asked;
            }
            News::Elicitation { request, reply } => {
                // As the person calls it: an agent may give itself the name of another, or ours.
                let agent = short(&self.plan.spec.name).to_owned();
                match &request.mode {
                    ElicitationMode::Form(form) if FormDialog::is_too_large(&form.requested_schema) => {
                        let _ = reply.send(CreateElicitationResponse::decline());
                        return Effect::Toast(
                            Level::Warning,
                            "the agent sent a form that is too long; declined".into(),
                        );
                    }
                    ElicitationMode::Form(form) => {
                        let dialog = FormDialog::new(agent, request.message.clone(), &form.requested_schema);
                        self.ask(QuestionDialog::Form(Box::new(dialog), reply));
                    }
                    ElicitationMode::Url(url) => match UrlDialog::new(agent, request.message.clone(), &url.url) {
                        Ok(dialog) => self.ask(QuestionDialog::Url(Box::new(dialog), reply)),
                        Err(error) => {
                            let _ = reply.send(CreateElicitationResponse::decline());
                            return Effect::Toast(Level::Warning, format!("the agent asked for a page: {error}"));
                        }
                    },
                    _ => drop(reply),
                }
                return Effect::Asked;
            }
            News::Reason(reason) => {
                let message = Message { text: reason, ..Default::default() };
                match self.can_steer && self.is_working() {
                    true => drop(self.submit(message.submission())),
                    // It belongs to what was refused just now, not to what waits.
                    false => self.reasons.push_back(message),
                }
                // The turn may have ended with the answer.
                if let Some(mistake) = self.send_next() {
                    return Effect::Toast(Level::Error, mistake);
                }
            }
            News::Dead(words) => {
                if self.is_working() {
                    self.end_calls();
                    self.view.end_turn(&attache::Stop::Error);
                }
                self.pause();
                let first = words.lines().next().unwrap_or_default().trim_end_matches(" (last stderr lines below)");
                self.notice(NoticeSeverity::Error, first);
                self.transcript.all_changed();
                self.questions.clear();
                self.waiting_questions = 0;
                self.login = None;
                for submission in self.sending.drain(..) {
                    self.composer.restore(submission);
                }
                self.turn_began = None;
                self.last_words = Some(words);
                self.enter(Phase::Dead);
                return Effect::Died;
            }
            News::Closed => self.enter(Phase::Dead),
        }
        Effect::None
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

    fn ask(&mut self, dialog: QuestionDialog) {
        if self.is_refusing {
            return refuse(dialog);
        }
        self.questions.push_back(Asked { dialog, shown: None });
    }

    fn end_turn(&mut self) -> Effect {
        if self.phase == Phase::Cancelling {
            // After a cancel the person says what comes next.
            self.pause();
        }
        self.transcript.all_changed();
        self.turn_began = None;
        self.begun = None;
        self.activity = None;
        (self.refusals, self.is_refusing) = (0, false);
        self.withdraw();
        self.enter(Phase::Idle);
        if let Some(mistake) = self.send_next() {
            return Effect::Toast(Level::Error, mistake);
        }
        Effect::TurnEnded
    }

    fn apply(&mut self, update: &SessionUpdate) {
        match self.view.apply(update) {
            Some(place) => self.transcript.changed(place),
            // Plans, terminals and the like are shown in several places.
            None => self.transcript.all_changed(),
        }
        let activity = self.current_activity();
        if self.activity.as_ref().map(|(activity, _)| activity) != activity.as_ref() {
            self.activity = activity.map(|activity| (activity, Instant::now()));
        }
    }

    /// What the last entry says that the agent does.
    fn current_activity(&self) -> Option<Activity> {
        let last = self.view.timeline().iter().rev().find(|entry| !matches!(entry, Entry::Notice(_)))?;
        Some(match last {
            Entry::Message(message) if message.role == MessageRole::Agent => Activity::Answering,
            Entry::ToolCall(call) if call.status.is_final() => Activity::Thinking,
            Entry::ToolCall(call) => {
                let is_command = call.kind == attache::model::tool::ToolKind::Execute;
                match is_command {
                    true => Activity::Running(call.title.clone()),
                    false => Activity::Tool(call.title.clone()),
                }
            }
            Entry::Compaction(_) => Activity::Compacting,
            _ => Activity::Thinking,
        })
    }

    /// Adds something of our own to the conversation.
    fn tell(&mut self, event: &event::Event) {
        match event {
            event::Event::Notice(notice) => {
                let severity = match notice.level {
                    Level::Info => NoticeSeverity::Info,
                    Level::Warning => NoticeSeverity::Warning,
                    Level::Error => NoticeSeverity::Error,
                };
                self.notice(severity, &notice.text);
            }
            event::Event::Permission(permission) => {
                let (severity, word) = match permission.answer {
                    Answer::Allowed => (NoticeSeverity::Info, "allowed"),
                    Answer::Denied => (NoticeSeverity::Warning, "denied"),
                    Answer::Cancelled => (NoticeSeverity::Info, "cancelled"),
                };
                if let (Answer::Denied, Some(tool)) = (permission.answer, &permission.tool) {
                    self.view.permission_denied(&tool.as_str().into());
                    self.transcript.all_changed();
                }
                self.notice(severity, &format!("{word}: {} ({})", permission.what, permission.reason));
            }
            event::Event::File(file) => {
                // Agents look whether files are there by reading them.
                if let Some(error) = file.error.as_ref().filter(|_| file.operation == event::FileOperation::Write) {
                    self.notice(NoticeSeverity::Warning, &format!("{}: {error}", file.path));
                }
            }
            _ => {}
        }
    }

    fn notice(&mut self, severity: NoticeSeverity, text: &str) {
        let (title, description) = match text.split_once('\n') {
            Some((title, rest)) => (title.to_owned(), Some(rest.to_owned())),
            None => (text.to_owned(), None),
        };
        let mut notice = Notice::new(severity, title);
        notice.description = description;
        self.apply(&SessionUpdate::Notice(notice));
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
        let calls = self.view.timeline().iter().rev().take(50).filter_map(|entry| match entry {
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

/// When an agent says that it tries again: a notice such as "Overloaded, retrying in 4 s".
fn retry_after(notice: &Notice) -> Option<Duration> {
    let text = [Some(notice.title.as_str()), notice.description.as_deref()].into_iter().flatten().collect::<Vec<_>>();
    let text = text.join(" ").to_lowercase();
    ["retry", "try again", "trying again"].iter().find_map(|word| told_time(text.rsplit_once(word)?.1))
}

/// The time in a text such as " in 4 s".
fn told_time(text: &str) -> Option<Duration> {
    let rest = text.split_once(" in ")?.1.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok()?;
    let unit = rest[end..].trim_start();
    let seconds = if unit.starts_with("ms") {
        number / 1000.0
    } else if unit.starts_with('m') {
        number * 60.0
    } else {
        number
    };
    // Nobody waits longer before the eyes of a person, and no clock counts further than it can.
    (seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_tells_when_it_tries_again() {
        let told = |text: &str| retry_after(&Notice::new(NoticeSeverity::Warning, text));
        assert_eq!(told("Overloaded, retrying in 4 s"), Some(Duration::from_secs(4)));
        assert_eq!(told("Rate limit; retry 2 of 5 in 1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(told("will try again in 2 minutes"), Some(Duration::from_secs(120)));
        assert_eq!(told("retry in 300 ms"), Some(Duration::from_millis(300)));
        for text in
            ["", "retry", "retry in", "retry in a while", "4 s", "retry in 99999999999999999999 s", "retry in ..s"]
        {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
