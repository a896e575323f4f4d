//! One session with its agent, as a task of its own: orders come in, news goes out.
//!
//! News waits in a queue of bounded length, so an agent that talks faster than the screen can follow is slowed.

mod open_session;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use attache::client::Session;
use attache::model::auth::AuthMethod;
use attache::model::capability::AgentCapabilities;
use attache::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache::model::content::ContentBlock;
use attache::model::elicitation::{CreateElicitationRequest, CreateElicitationResponse};
use attache::model::error::ErrorObject;
use attache::model::mcp::McpServer;
use attache::model::prompt::StopReason;
use attache::model::session::{SessionId, SessionInfo};
use attache::model::terminal::TerminalId;
use attache::model::tool::ToolCallId;
use attache::model::unstable::Usage;
use attache::model::update::SessionUpdate;
use attache::trace::Tap;
use attache::{Connection, Error};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::agents::AgentSpec;
use crate::auth;
use crate::cli::{Permissions, SandboxKind, Version};
use crate::client::ask::{Answering, Asker, PermissionQuestion, Reply};
use crate::client::confine::Confinement;
use crate::client::services::{Services, Setup};
use crate::connect::{self, Opening};
use crate::event;
use crate::exit::{Code, Failure, server_of};
use crate::journal::{self, Journal};
use crate::project::Project;

use open_session::OpenSession;

/// How much news of all workers waits for the screen.
pub(crate) const WAITING_NEWS: usize = 256;

/// How long an agent may take to answer what a person wants besides a turn. A login is waited for as long as it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which session it is to be.
#[derive(Debug, Clone)]
pub(crate) enum Begin {
    New,
    Load(SessionId),
    /// One whose transcript is on the screen still, after its agent was restarted. A new one if there is no way back.
    Again(SessionId),
    Fork(SessionId),
}

/// What a worker is made of.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) spec: AgentSpec,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) sandbox: Option<SandboxKind>,
    pub(crate) protocol: Version,
    /// Model, mode and other options that the command line asks for.
    pub(crate) settings: Vec<(Setting, String)>,
    /// Where every message is written down.
    pub(crate) trace: Option<Tap>,
    pub(crate) begin: Begin,
}

/// Which option a setting is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    Model,
    Mode,
    Option(String),
}

impl Setting {
    fn name(&self) -> String {
        match self {
            Setting::Model => "the model".into(),
            Setting::Mode => "the mode".into(),
            Setting::Option(id) => format!("`{}`", crate::visible::one_line(id)),
        }
    }
}

/// What the person wants of a session.
pub(crate) enum Order {
    Prompt(Vec<ContentBlock>),
    Cancel,
    SetOption(ConfigId, ConfigSetting),
    /// Ends a command: one of ours, or one of the agent's that can be cancelled.
    Kill(TerminalId),
    CancelTool(ToolCallId),
    Login(AuthMethod),
    ListSessions,
    DeleteSession(SessionId),
    /// Says goodbye to the agent.
    Close,
}

/// What happens in a session.
pub(crate) enum News {
    /// The agent has answered to its greeting.
    Connected {
        agent: event::Agent,
        capabilities: Box<AgentCapabilities>,
        can_steer: bool,
    },
    /// The session is open.
    Opened {
        id: SessionId,
        options: Vec<ConfigOption>,
        commands: Vec<attache::model::command::AvailableCommand>,
        /// Why something that the command line asks for is not set. What was to be sent first is not meant for that.
        unset: Vec<String>,
    },
    /// The agent wants a login first. [`Order::Login`] answers.
    LoginNeeded {
        words: String,
        methods: Vec<AuthMethod>,
    },
    /// A login in the middle of a session has worked.
    LoggedIn,
    /// It has not, and why.
    LoginFailed(String),
    Update(Box<SessionUpdate>),
    /// Something to tell the person that is not the agent's.
    Told(Box<event::Event>),
    TurnBegan,
    TurnEnded {
        stop: Option<StopReason>,
        usage: Option<Usage>,
    },
    /// The turn failed, and the agent goes on.
    TurnFailed(String),
    Options(Vec<ConfigOption>),
    Sessions(Vec<SessionInfo>),
    /// Something that was ordered could not be done.
    Refused(String),
    Permission {
        question: Box<PermissionQuestion>,
        reply: oneshot::Sender<Reply>,
    },
    /// How many questions come after the one that is being asked.
    WaitingQuestions(usize),
    Elicitation {
        request: Box<CreateElicitationRequest>,
        reply: oneshot::Sender<CreateElicitationResponse>,
    },
    /// A reason that a person gave for a no, and that the agent is to read with the next prompt.
    Reason(String),
    /// The agent is gone, or never came.
    Dead(Failure),
    /// The agent is there, and does not open the session that was asked for.
    NotOpened(Failure),
    /// The worker has ended as it was told to.
    Closed,
}

/// Which worker news is from.
pub(crate) type WorkerId = u64;

/// Where a worker sends its news.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) id: WorkerId,
    pub(crate) news: mpsc::Sender<(WorkerId, News)>,
}

impl Outlet {
    /// Waits for room. Whether anybody is there to hear it.
    async fn send(&self, news: News) -> bool {
        self.news.send((self.id, news)).await.is_ok()
    }
}

/// The end of a worker that the screen holds. Dropping it ends the worker and its agent.
pub(crate) struct Worker {
    pub(crate) orders: mpsc::UnboundedSender<Order>,
}

impl Worker {
    /// Starts the agent, and opens the session.
    pub(crate) fn start(plan: Plan, outgoing: Outlet) -> Self {
        // Orders are a person's key presses; no peer can make them many.
        let (orders, incoming) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let asker = Arc::new(ScreenAsker(outgoing.clone()));
            let mut work = Work {
                plan,
                incoming,
                news: outgoing.clone(),
                journal: Journal::none(),
                run: String::new(),
                began: Instant::now(),
                turn: TurnEnd::Done,
                is_refused: false,
            };
            let last = match work.hold(asker).await {
                Ok(()) => News::Closed,
                Err(failure) if work.is_refused => News::NotOpened(failure),
                Err(failure) => News::Dead(failure),
            };
            let _ = outgoing.send(last).await;
        });
        Worker { orders }
    }
}

/// Asks on the screen.
struct ScreenAsker(Outlet);

impl Asker for ScreenAsker {
    fn permission<'a>(&'a self, question: &'a PermissionQuestion) -> Answering<'a, Reply> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let news = News::Permission { question: Box::new(question.clone()), reply };
            if !self.0.send(news).await {
                return Reply::NO;
            }
            answer.await.unwrap_or(Reply::NO)
        })
    }

    fn elicitation<'a>(&'a self, request: &'a CreateElicitationRequest) -> Answering<'a, CreateElicitationResponse> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let news = News::Elicitation { request: Box::new(request.clone()), reply };
            if !self.0.send(news).await {
                return CreateElicitationResponse::cancel();
            }
            answer.await.unwrap_or_else(|_| CreateElicitationResponse::cancel())
        })
    }
}

struct Work {
    plan: Plan,
    incoming: mpsc::UnboundedReceiver<Order>,
    news: Outlet,
    journal: Journal,
    /// The name of the record.
    run: String,
    began: Instant,
    turn: TurnEnd,
    /// The agent has refused to open the session.
    is_refused: bool,
}

impl Work {
    async fn hold(&mut self, asker: Arc<dyn Asker>) -> Result<(), Failure> {
        let plan = self.plan.clone();
        let project = Project::find(&plan.cwd)?;
        let set = plan.settings.iter().rev().find(|(key, _)| *key == Setting::Option("sandbox".into()));
        let set = set.map(|(_, value)| value.as_str());
        let confinement = Confinement::new(plan.sandbox, set, &plan.spec, &plan.cwd, &plan.directories)?;
        let mut services = Services::new(Setup {
            agent: &plan.spec,
            permissions: plan.permissions,
            cwd: &plan.cwd,
            directories: &plan.directories,
            project: &project,
            sandbox: confinement.commands.as_ref(),
            asker: Some(asker),
        })?;
        for text in plan.spec.notices.iter().cloned().chain(plan.spec.download()) {
            self.tell(News::Told(event::Event::notice(event::Level::Info, text).into())).await;
        }
        // Our own agent reads the same files, and tells the same.
        let notices = project.notices().into_iter().chain(services.problems()).filter(|_| !plan.spec.is_built_in);
        for event in confinement.notice().into_iter().chain(notices) {
            self.tell(News::Told(event.into())).await;
        }
        let servers = project.mcp_servers()?;
        let mut opening = Opening::new(&plan.spec, &plan.cwd, plan.protocol);
        opening.sandbox = confinement.agent.clone();
        opening.trace = plan.trace.clone();
        let client = Services::offer(connect::client().switches(), &plan.spec, true);
        let (connection, session) = loop {
            let connection = tokio::select! {
                connection = connect::start(client.clone(), &opening) => connection?,
                () = closing(&mut self.incoming) => return Ok(()),
            };
            self.tell(connected(&plan, &connection)).await;
            match self.open(&connection, &servers).await? {
                Opened::Session(session) => break (connection, session),
                Opened::Again => connection.shutdown().await,
                Opened::Closed => return Ok(()),
            };
        };
        services.set_session(session.id());
        let mut open = OpenSession {
            work: self,
            services,
            connection: &connection,
            session: &session,
            turn: None,
            can_steer: !connection.dialect().answers_at_end(),
            commands: BTreeSet::new(),
            ours: BTreeSet::new(),
            requests: JoinSet::new(),
        };
        // What the session tells of itself comes first, and then what a person has written meanwhile.
        open.catch_up().await?;
        let unset = tokio::select! {
            unset = apply_settings(&open.work.plan.settings, &session) => Some(unset),
            () = closing(&mut open.work.incoming) => None,
        };
        let done = match unset {
            Some(unset) => {
                let (id, options, commands) = (session.id().clone(), session.options(), session.commands());
                open.work.tell(News::Opened { id, options, commands, unset }).await;
                open.hold().await
            }
            None => Ok(()),
        };
        self.end_record(&connection, &session, &done);
        drop(session);
        connection.shutdown().await;
        done
    }

    /// Opens the session, with as many logins as it takes.
    async fn open(&mut self, connection: &Connection, servers: &[McpServer]) -> Result<Opened, Failure> {
        loop {
            let builder = || {
                let builder = connection.session(&self.plan.cwd);
                let builder = self.plan.directories.iter().fold(builder, |builder, path| builder.directory(path));
                servers.iter().fold(builder, |builder, server| builder.mcp_server(server.clone()))
            };
            let opening = async {
                match self.plan.begin.clone() {
                    Begin::New => builder().open().await,
                    Begin::Fork(id) => builder().fork(id).await,
                    Begin::Load(id) => match builder().load(id.clone()).await {
                        Err(Error::NotOffered(_)) => builder().resume(id).await,
                        opened => opened,
                    },
                    Begin::Again(id) => builder().resume(id).await,
                }
            };
            let opened = tokio::select! {
                opened = opening => opened,
                () = closing(&mut self.incoming) => return Ok(Opened::Closed),
            };
            let refusal = match opened {
                Ok(session) => return Ok(Opened::Session(session)),
                Err(Error::Refused(refusal)) if refusal.code == ErrorObject::AUTH_REQUIRED => refusal,
                Err(ref error @ (Error::NotOffered(_) | Error::Refused(_)))
                    if matches!(self.plan.begin, Begin::Again(_)) && !is_elsewhere(error) =>
                {
                    let words =
                        "the agent could not resume the session: this is a new one, which knows nothing of the above";
                    self.tell(News::Told(event::Event::notice(event::Level::Warning, words).into())).await;
                    self.plan.begin = Begin::New;
                    continue;
                }
                Err(error) => {
                    self.is_refused = matches!(error, Error::Refused(_) | Error::NotOffered(_));
                    let is_unknown = matches!((&error, &self.plan.begin), (Error::Refused(_), Begin::Load(_)));
                    let mut failure = match &self.plan.begin {
                        Begin::New => Failure::from(error),
                        Begin::Fork(id) | Begin::Load(id) | Begin::Again(id) => Failure::of_session(error, id.as_str()),
                    };
                    if is_unknown && !failure.message.contains("hint:") {
                        failure.message.push_str("\nhint: `attache sessions list` has the sessions");
                    }
                    return Err(failure);
                }
            };
            self.tell(login_needed(connection, &refusal)).await;
            let method = loop {
                match self.incoming.recv().await {
                    Some(Order::Login(method)) => break method,
                    Some(Order::Close) | None => return Ok(Opened::Closed),
                    Some(_) => {}
                }
            };
            match method {
                AuthMethod::Agent(method) => {
                    let done = tokio::select! {
                        done = auth::by_agent(connection, method.id) => done,
                        () = closing(&mut self.incoming) => return Ok(Opened::Closed),
                    };
                    if let Err(error) = done {
                        self.tell(News::Refused(format!("the login did not work: {error}"))).await;
                    }
                }
                // The screen has run it; the agent reads what it left when it is started.
                _ => return Ok(Opened::Again),
            }
        }
    }

    async fn tell(&mut self, news: News) {
        if let News::Told(event) = &news {
            self.record((**event).clone());
        }
        let _ = self.news.send(news).await;
    }

    fn record(&mut self, event: event::Event) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // A record that cannot be kept is no reason to stop talking.
        let _ = self.journal.add(&event::Line::new(ms, event));
    }

    /// Begins a record, so that `--continue` and the lists of sessions know this one.
    /// A session in which nothing is asked has none.
    fn begin_record(&mut self, connection: &Connection, session: &Session) {
        if !self.run.is_empty() {
            return;
        }
        let now = SystemTime::now();
        let run = journal::new_run(now);
        self.journal = Journal::begin(&run).0;
        self.run.clone_from(&run);
        self.record(event::Event::Start(event::Start {
            schema: event::VERSION,
            attache: env!("CARGO_PKG_VERSION").into(),
            run,
            time: attache::trace::rfc3339(now),
            agent: self.plan.spec.name.clone(),
            identity: Some(self.plan.spec.identity(&self.plan.cwd)),
            cwd: self.plan.cwd.display().to_string(),
        }));
        self.record(event::Event::Agent(agent_of(&self.plan, connection)));
        let resumed = !matches!(self.plan.begin, Begin::New);
        self.record(event::Event::Session(event::Session { id: session.id().to_string(), resumed }));
    }

    /// Ends the record, so that it does not look cut off.
    fn end_record(&mut self, connection: &Connection, session: &Session, done: &Result<(), Failure>) {
        if self.run.is_empty() {
            return;
        }
        let status = match (done, self.turn) {
            (Err(failure), _) if failure.code == Code::Died => event::Status::AgentDied,
            (Err(_), _) | (Ok(()), TurnEnd::Failed) => event::Status::Error,
            (Ok(()), TurnEnd::Cancelled | TurnEnd::Open) => event::Status::Cancelled,
            (Ok(()), TurnEnd::Done) => event::Status::Done,
        };
        let code = done.as_ref().map_or_else(|failure| failure.code, |()| Code::Done);
        self.record(event::Event::Result(Box::new(event::Result {
            status,
            exit_code: code as u8,
            stop_reason: None,
            text: String::new(),
            text_truncated: false,
            session_id: Some(session.id().to_string()),
            run: self.run.clone(),
            agent: agent_of(&self.plan, connection),
            model: None,
            usage: None,
            context: None,
            cost: None,
            permissions: event::Permissions::default(),
            tool_calls: Vec::new(),
            plan: None,
            unknown_updates: 0,
            files_changed: Vec::new(),
            sandbox: None,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            error: done.as_ref().err().map(|failure| event::Error::new(&failure.message)),
        })));
    }
}

/// How the last turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    /// It has not.
    Open,
    Done,
    Cancelled,
    Failed,
}

/// Sets what the command line asks for. Returns why something is not set.
async fn apply_settings(settings: &[(Setting, String)], session: &Session) -> Vec<String> {
    let mut unset = Vec::new();
    for (setting, value) in settings {
        match tokio::time::timeout(PATIENCE, crate::run::settings::set_by_name(session, setting, value)).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => unset.push(failure.message),
            Err(_) => unset.push(format!("the agent did not answer when {} was to be set", setting.name())),
        }
    }
    unset
}

/// What became of opening a session.
enum Opened {
    Session(Session),
    /// The agent has to be started anew.
    Again,
    Closed,
}

/// Waits for the order to close. Others that come before there is a session are for nothing.
async fn closing(incoming: &mut mpsc::UnboundedReceiver<Order>) {
    while !matches!(incoming.recv().await, Some(Order::Close) | None) {}
}

fn agent_of(plan: &Plan, connection: &Connection) -> event::Agent {
    let info = connection.info();
    event::Agent {
        agent: plan.spec.name.clone(),
        name: info.map(|info| info.title.clone().unwrap_or_else(|| info.name.clone())),
        version: info.map(|info| info.version.clone()),
        protocol: Some(connection.dialect().to_string()),
    }
}

/// Whether another server has the session.
fn is_elsewhere(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if server_of(refusal).is_some())
}

fn login_needed(connection: &Connection, refusal: &ErrorObject) -> News {
    News::LoginNeeded { words: refusal.message.clone(), methods: auth::methods(connection, refusal) }
}

fn connected(plan: &Plan, connection: &Connection) -> News {
    News::Connected {
        agent: agent_of(plan, connection),
        capabilities: Box::new(connection.capabilities().clone()),
        can_steer: !connection.dialect().answers_at_end(),
    }
}
