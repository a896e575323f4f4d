//! What news of a session does to its tab.

use std::time::{Duration, Instant};

use attache::model::Patch;
use attache::model::elicitation::{CreateElicitationResponse, ElicitationMode};
use attache::model::notice::{Notice, NoticeSeverity};
use attache::model::update::SessionUpdate;
use attache::proto::view::{Entry, MessageRole};
use attache_tui::composer::{Message, Submission};
use attache_tui::dialog::{FormDialog, LoginDialog, PermissionDialog, UrlDialog};
use attache_tui::status::Activity;

use super::{Asked, Effect, Phase, QuestionDialog, Tab, refuse, short};
use crate::chat::worker::News;
use crate::event::{self, Answer, Level};

impl Tab {
    /// Takes news in.
    pub(in crate::chat) fn take(&mut self, news: News) -> Effect {
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
            News::Update(mut update) => {
                shorten(&mut update);
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
            News::NotOpened(failure) => {
                self.is_refused = true;
                return self.take(News::Dead(failure));
            }
            News::Dead(failure) => {
                let words = failure.message;
                self.failed = Some(failure.code);
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

    pub(super) fn ask(&mut self, dialog: QuestionDialog) {
        if self.is_refusing {
            return refuse(dialog);
        }
        self.questions.push_back(Asked { dialog, shown: None });
    }

    pub(super) fn end_turn(&mut self) -> Effect {
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

    pub(super) fn apply(&mut self, update: &SessionUpdate) {
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
    pub(super) fn current_activity(&self) -> Option<Activity> {
        let mut last = self.view.timeline().iter().rev().take(50);
        let last = last.find(|entry| !matches!(entry, Entry::Notice(_)))?;
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
    pub(super) fn tell(&mut self, event: &event::Event) {
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

    pub(super) fn notice(&mut self, severity: NoticeSeverity, text: &str) {
        let (title, description) = match text.split_once('\n') {
            Some((title, rest)) => (title.to_owned(), Some(rest.to_owned())),
            None => (text.to_owned(), None),
        };
        let mut notice = Notice::new(severity, title);
        notice.description = description;
        self.apply(&SessionUpdate::Notice(notice));
    }
}

/// The longest title or path of a tool call that is kept. They are laid out whole wherever they are shown.
const LONGEST_LINE: usize = 4096;

/// Cuts what is meant to be a line and is not one.
fn shorten(update: &mut SessionUpdate) {
    let (SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call)) = update else { return };
    if let Patch::Set(title) = &mut call.title
        && title.len() > LONGEST_LINE
    {
        title.truncate(title.floor_char_boundary(LONGEST_LINE));
    }
    if let Patch::Set(locations) = &mut call.locations {
        locations.truncate(MOST_LOCATIONS);
        for location in locations {
            location.path.truncate(location.path.floor_char_boundary(LONGEST_LINE));
        }
    }
}

/// How many places of a tool call are kept.
const MOST_LOCATIONS: usize = 1000;

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
