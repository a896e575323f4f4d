//! An open session: what the agent says, what a person wants of it, and what is done here for the agent.

use std::collections::BTreeSet;

use attache::client::{Session, Turn};
use attache::model::auth::AuthMethod;
use attache::model::content::ContentBlock;
use attache::model::error::ErrorObject;
use attache::model::prompt::StopReason;
use attache::model::session::{ListSessionsRequest, SessionInfo};
use attache::model::terminal::{ExitStatus, TerminalId, TerminalOutputChunk, TerminalUpdate};
use attache::model::update::SessionUpdate;
use attache::{Connection, Error, Event};
use tokio::task::JoinSet;

use super::{News, Order, PATIENCE, TurnEnd, Work, login_needed};
use crate::auth;
use crate::client::services::Services;
use crate::event;
use crate::exit::Failure;

/// How many sessions of an agent are listed.
const MOST_SESSIONS: usize = 500;

/// An open session.
pub(super) struct OpenSession<'a> {
    pub(super) work: &'a mut Work,
    pub(super) services: Services,
    pub(super) connection: &'a Connection,
    pub(super) session: &'a Session,
    pub(super) turn: Option<Turn>,
    pub(super) can_steer: bool,
    /// The commands of ours that run.
    pub(super) commands: BTreeSet<String>,
    /// All commands of ours, also those that have ended.
    pub(super) ours: BTreeSet<String>,
    /// Requests that wait for the agent. It goes on talking meanwhile, and a person may want something else.
    pub(super) requests: JoinSet<()>,
}

impl OpenSession<'_> {
    pub(super) async fn hold(mut self) -> Result<(), Failure> {
        // Further prompts into a turn that goes on; each has its own end.
        let mut steered: Vec<Turn> = Vec::new();
        let mut waiting = 0;
        loop {
            if self.services.wants_to_ask() {
                self.services.ask_next();
            }
            if self.services.waiting() != waiting {
                waiting = self.services.waiting();
                self.work.tell(News::WaitingQuestions(waiting)).await;
            }
            let event = tokio::select! {
                biased;
                order = self.work.incoming.recv() => {
                    match order {
                        None | Some(Order::Close) => return Ok(()),
                        Some(Order::Prompt(blocks)) => {
                            if let Some(turn) = self.prompt(blocks).await? {
                                match &self.turn {
                                    None => self.turn = Some(turn),
                                    Some(_) => steered.push(turn),
                                }
                            }
                        }
                        Some(order) => self.follow(order).await,
                    }
                    continue;
                }
                events = self.services.next() => {
                    for event in events {
                        self.tell_event(event).await;
                    }
                    for reason in self.services.take_untold_reasons() {
                        self.work.tell(News::Reason(reason)).await;
                    }
                    continue;
                }
                event = next(&mut self.turn, self.session) => event,
            };
            match event {
                Ok(Some(event)) => self.take(event).await,
                Ok(None) => {
                    let ended = self.turn.take();
                    self.turn = if steered.is_empty() { None } else { Some(steered.remove(0)) };
                    if self.turn.is_none() {
                        self.end_turn(ended).await;
                    }
                }
                Err(Error::Refused(refusal)) => {
                    self.turn = None;
                    steered.clear();
                    self.services.cancel();
                    self.services.begin_turn();
                    self.work.turn = TurnEnd::Failed;
                    self.fail_turn(Error::Refused(refusal)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a prompt. What cannot be sent is told, and the person has it back.
    async fn prompt(&mut self, blocks: Vec<ContentBlock>) -> Result<Option<Turn>, Failure> {
        debug_assert!(self.turn.is_none() || self.can_steer, "prompts wait for the end of a turn");
        if self.turn.is_none() {
            self.catch_up().await?;
            self.services.begin_turn();
        }
        let text = blocks.iter().map(event::text_of).collect::<Vec<_>>().join("\n");
        self.work.begin_record(self.connection, self.session);
        self.work.record(event::Event::User(event::Text { text, message_id: None }));
        match self.session.prompt(blocks).await {
            Ok(turn) => {
                self.work.turn = TurnEnd::Open;
                self.work.tell(News::TurnBegan).await;
                Ok(Some(turn))
            }
            Err(error @ Error::Closed(_)) => Err(error.into()),
            Err(error) => {
                self.fail_turn(error).await;
                Ok(None)
            }
        }
    }

    /// Tells why a turn failed. Where a login is missing, it is asked for.
    async fn fail_turn(&mut self, error: Error) {
        let needed = match &error {
            Error::Refused(refusal) if refusal.code == ErrorObject::AUTH_REQUIRED => {
                Some(login_needed(self.connection, refusal))
            }
            _ => None,
        };
        // A dialog tells the ways to log in, if there are any.
        let needed = needed.filter(|needed| !matches!(needed, News::LoginNeeded { methods, .. } if methods.is_empty()));
        let failure = match &needed {
            Some(_) => Failure::from(error),
            None => auth::explain(error, self.connection, &self.work.plan.spec),
        };
        self.work.tell(News::TurnFailed(failure.message)).await;
        if let Some(needed) = needed {
            self.work.tell(needed).await;
        }
    }

    /// Tells what has come before, such as the history of the session: it is no part of the turn that begins now.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        loop {
            let event = tokio::select! {
                biased;
                event = self.session.next() => event?,
                () = std::future::ready(()) => return Ok(()),
            };
            self.take(event).await;
        }
    }

    async fn take(&mut self, event: Event) {
        match event {
            // An agent does not speak for what runs here.
            Event::Update(SessionUpdate::TerminalUpdate(update)) if self.ours.contains(update.terminal_id.as_str()) => {
            }
            Event::Update(SessionUpdate::TerminalOutputChunk(chunk))
                if self.ours.contains(chunk.terminal_id.as_str()) => {}
            Event::Update(update) => {
                self.services.note(&update);
                if let Some(refusal) = self.services.refusal(&update) {
                    self.tell_event(refusal).await;
                }
                if let Some(event) = event::from_update(&update) {
                    self.work.record(event);
                }
                self.work.tell(News::Update(Box::new(update))).await;
            }
            other => {
                for event in self.services.serve(other) {
                    self.tell_event(event).await;
                }
            }
        }
    }

    /// Tells what was done here for the agent. Commands are shown where those of the agent are.
    async fn tell_event(&mut self, event: event::Event) {
        if let event::Event::Command(command) = &event {
            self.ours.insert(command.id.clone());
            match command.exit_code.is_some() || command.signal.is_some() {
                true => self.commands.remove(&command.id),
                false => self.commands.insert(command.id.clone()),
            };
        }
        match as_update(&event) {
            Some(update) => {
                self.work.record(event);
                self.work.tell(News::Update(Box::new(update))).await;
            }
            None => self.work.tell(News::Told(event.into())).await,
        }
    }

    async fn end_turn(&mut self, turn: Option<Turn>) {
        self.services.cancel();
        self.services.begin_turn();
        let (stop, usage) = turn.map(|turn| (turn.stop().cloned(), turn.usage().cloned())).unwrap_or_default();
        self.work.turn = match &stop {
            Some(StopReason::Cancelled) => TurnEnd::Cancelled,
            _ => TurnEnd::Done,
        };
        self.work.tell(News::TurnEnded { stop, usage }).await;
    }

    async fn follow(&mut self, order: Order) {
        while self.requests.try_join_next().is_some() {}
        let (session, connection) = (self.session.clone(), self.connection.clone());
        match order {
            Order::Cancel => {
                self.services.cancel();
                self.services.end_commands();
                if !self.commands.is_empty() {
                    let words = match self.commands.len() {
                        1 => "the command that ran for the agent is ended".to_owned(),
                        count => format!("{count} commands that ran for the agent are ended"),
                    };
                    self.work.tell(News::Told(event::Event::notice(event::Level::Info, words).into())).await;
                }
                let done = match &self.turn {
                    Some(turn) => turn.cancel().await,
                    None => session.cancel().await,
                };
                self.refused(done).await;
            }
            Order::SetOption(id, value) => self.request(async move {
                let options = session.set_option(id, value).await?;
                Ok(Some(News::Options(options)))
            }),
            Order::Kill(id) => {
                if self.commands.contains(id.as_str()) {
                    return self.services.kill(id);
                }
                self.request(async move {
                    match session.cancel_terminal(id).await {
                        Ok(()) => Ok(None),
                        Err(Error::NotOffered(_) | Error::Invalid(_)) => {
                            let words =
                                "the agent runs this command itself, and cannot end it alone; esc ends the turn";
                            Ok(Some(News::Refused(words.into())))
                        }
                        Err(error) => Err(error),
                    }
                });
            }
            Order::CancelTool(id) => self.request(async move { session.cancel_tool_call(id).await.map(|()| None) }),
            Order::ListSessions => {
                let cwd = self.work.plan.cwd.display().to_string();
                self.request(async move {
                    match list_sessions(&connection, cwd).await {
                        Ok(sessions) => Ok(Some(News::Sessions(sessions))),
                        // Our own list is shown then.
                        Err(Error::NotOffered(_)) => Ok(None),
                        Err(error) => Err(error),
                    }
                });
            }
            Order::DeleteSession(id) => {
                self.request(async move {
                    match connection.delete_session(id).await {
                        Ok(()) => Ok(None),
                        Err(Error::NotOffered(_)) => {
                            let words = "the agent cannot delete sessions: only our own record of it is gone";
                            Ok(Some(News::Refused(words.into())))
                        }
                        Err(error) => Err(error),
                    }
                });
            }
            // It takes as long as the person does.
            Order::Login(AuthMethod::Agent(method)) => {
                let news = self.work.news.clone();
                self.requests.spawn(async move {
                    let told = match auth::by_agent(&connection, method.id).await {
                        Ok(()) => News::LoggedIn,
                        Err(error) => {
                            News::LoginFailed(format!("the login did not work: {}", Failure::from(error).message))
                        }
                    };
                    news.send(told).await;
                });
            }
            // The screen has run the others, and starts the agent anew.
            Order::Login(_) | Order::Prompt(_) | Order::Close => {}
        }
    }

    /// Asks the agent something, and tells what comes of it.
    fn request(&mut self, request: impl Future<Output = Result<Option<News>, Error>> + Send + 'static) {
        let news = self.work.news.clone();
        self.requests.spawn(async move {
            let told = match tokio::time::timeout(PATIENCE, request).await {
                Ok(Ok(told)) => told,
                // The screen is told that by the session itself.
                Ok(Err(Error::Closed(_))) => None,
                Ok(Err(error)) => Some(News::Refused(Failure::from(error).message)),
                Err(_) => Some(News::Refused("the agent did not answer within 10 seconds".into())),
            };
            if let Some(told) = told {
                news.send(told).await;
            }
        });
    }

    async fn refused(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            self.work.tell(News::Refused(Failure::from(error).message)).await;
        }
    }
}

async fn list_sessions(connection: &Connection, cwd: String) -> Result<Vec<SessionInfo>, Error> {
    let mut request = ListSessionsRequest::new();
    request.cwd = Some(cwd);
    let mut sessions = Vec::new();
    loop {
        let page = connection.list_sessions(&request).await?;
        let is_more = !page.sessions.is_empty() && sessions.len() < MOST_SESSIONS;
        sessions.extend(page.sessions);
        match page.next_cursor {
            Some(cursor) if is_more => request.cursor = Some(cursor),
            _ => break,
        }
    }
    sessions.truncate(MOST_SESSIONS);
    Ok(sessions)
}

/// The next event: of the turn, or between turns.
async fn next(turn: &mut Option<Turn>, session: &Session) -> Result<Option<Event>, Error> {
    match turn {
        Some(turn) => turn.next().await,
        None => session.next().await.map(Some),
    }
}

/// A command of ours as the agent's own would be told: one way to show both.
fn as_update(event: &event::Event) -> Option<SessionUpdate> {
    match event {
        event::Event::Command(command) => {
            let mut update = TerminalUpdate::new(TerminalId::from(command.id.as_str()));
            if let Some(text) = &command.command {
                update.command = attache::model::Patch::Set(text.clone());
            }
            if let Some(cwd) = &command.cwd {
                update.cwd = attache::model::Patch::Set(cwd.clone());
            }
            if command.exit_code.is_some() || command.signal.is_some() {
                let mut status = ExitStatus::new();
                status.exit_code = command.exit_code;
                status.signal = command.signal.clone();
                update.exit_status = attache::model::Patch::Set(status);
            }
            Some(SessionUpdate::TerminalUpdate(update.into()))
        }
        event::Event::CommandOutput(output) => {
            let data = attache::proto::base64::encode(output.text.as_bytes());
            Some(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(
                TerminalId::from(output.id.as_str()),
                data,
            )))
        }
        _ => None,
    }
}
