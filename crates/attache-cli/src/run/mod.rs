//! `attache run`: one prompt, from the greeting to the exit code.

mod ask;
mod files;
mod prompt;
mod record;
mod services;
mod settings;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache::client::{Session, Turn};
use attache::model::capability::PromptCapabilities;
use attache::model::error::ErrorObject;
use attache::model::mcp::McpServer;
use attache::trace::Tap;
use attache::{Connection, Event};
use attache_agent::SandboxMode;
use attache_host::sandbox::{self, Sandbox};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::agents::AgentSpec;
use crate::cli::{Format, Permissions, Run, SandboxKind};
use crate::connect::{self, Opening};
use crate::event::{self, Level};
use crate::exit::{Code, Failure};
use crate::output::{Printer, Screen};
use crate::pen::{Messages, Pen, PipeClosed};
use crate::project::{Project, parse_mcp};
use crate::signals::{Signal, Signals};
use prompt::Question;
use record::{End, Record};
use services::Services;

/// How long the agent has to end a turn that a person cancelled, when no second Ctrl-C comes.
const CANCEL_GRACE: Duration = Duration::from_secs(30);

/// The same after a SIGTERM or a timeout, when nobody is there to press anything.
const TERMINATE_GRACE: Duration = Duration::from_secs(5);

/// How long it may take to send a cancel to an agent that does not read.
const CANCEL_SENT: Duration = Duration::from_millis(500);

/// How long the agent may take to delete the session of a run that is not kept.
const DELETE_PATIENCE: Duration = Duration::from_secs(5);

/// How long stdin may take before a person is told what is waited for.
const STDIN_PATIENCE: Duration = Duration::from_secs(2);

/// How often the sign of work is renewed.
const TICK: Duration = Duration::from_secs(1);

/// Runs a prompt and returns the exit code. Everything it has to say is said when it returns.
pub(crate) async fn run(mut args: Run) -> Code {
    let (mut signals, pen) = match (Signals::new(), Pen::new()) {
        (Ok(signals), Ok(pen)) => (signals, pen),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("error: {error}");
            return Code::Usage;
        }
    };
    let printer = Printer::new(args.output, Screen::here());
    let cwd = connect::directory(args.start.cwd.as_deref());
    let found = check_sandbox(&args).and(cwd).and_then(|cwd| {
        let project = Project::find(&cwd)?;
        let mut spec = crate::agents::resolve(args.start.agent.as_deref(), &args.command, &project)?;
        spec.pass_env.extend_from_slice(&args.start.env);
        if let Some(model) = args.model.as_mut().filter(|_| spec.is_built_in) {
            // It can be any model there, and what the agent offers follows from it.
            *model = crate::agent::model_id(model)?;
            spec.env.insert(crate::agent::MODEL.into(), model.clone());
        }
        // Our own agent judges what it does, and asks us only what a person has to say.
        let is_told = |permissions: &Permissions| spec.is_built_in && *permissions != Permissions::Ask;
        if let Some(permissions) = args.permissions.filter(is_told) {
            spec.add_option("--permissions", permissions);
        }
        Ok((cwd, project, spec))
    });
    let (name, identity, shown_cwd) = match &found {
        Ok((cwd, _, spec)) => (spec.name.clone(), Some(spec.identity(cwd)), cwd.clone()),
        Err(_) => (args.start.agent.clone().unwrap_or_else(|| "none".into()), None, PathBuf::from(".")),
    };
    let (mut record, first) = Record::new(&name, identity, &shown_cwd, printer, pen, !args.ephemeral);
    if args.output == Format::Acp {
        record.messages = Messages::new().ok();
    }
    let end = async {
        for event in first {
            record.add(event);
        }
        let (cwd, project, spec) = &found?;
        Conversation { args: &args, spec, cwd, project, record: &mut record, signals: &mut signals }.hold().await
    };
    let end = end.await;
    let end = match end {
        Ok(end) => end,
        // A closed pipe is a quiet goodbye.
        Err(Trouble::Pipe) => End::default(),
        Err(Trouble::Failed(failure)) => End { failure: Some(failure), ..End::default() },
        Err(Trouble::Signal(signal)) => End { code: code_of(signal), ..End::default() },
    };
    record.finish(end, &mut signals).await
}

/// Why a conversation did not come to its own end.
enum Trouble {
    Failed(Failure),
    Signal(Signal),
    Pipe,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failed(failure)
    }
}

impl From<attache::Error> for Trouble {
    fn from(error: attache::Error) -> Self {
        Trouble::Failed(error.into())
    }
}

impl From<PipeClosed> for Trouble {
    fn from(_: PipeClosed) -> Self {
        Trouble::Pipe
    }
}

fn code_of(signal: Signal) -> Code {
    match signal {
        Signal::Interrupt => Code::Interrupted,
        Signal::Terminate => Code::Terminated,
    }
}

struct Conversation<'a> {
    args: &'a Run,
    spec: &'a AgentSpec,
    cwd: &'a Path,
    project: &'a Project,
    record: &'a mut Record,
    signals: &'a mut Signals,
}

impl Conversation<'_> {
    async fn hold(mut self) -> Result<End, Trouble> {
        let deadline = self.args.timeout.map(|timeout| Instant::now() + timeout);
        let directories = self.args.add_dir.iter().map(|path| connect::directory(Some(&self.cwd.join(path))));
        let directories = directories.collect::<Result<Vec<_>, _>>()?;
        let question = self.read_question(&directories).await?;
        for text in &question.unmatched {
            self.record.add(event::Event::notice(Level::Warning, text.as_str()));
        }
        for name in unset(&self.args.start.env) {
            let text = format!("`--env {name}` passes nothing on: no variable of that name is set");
            self.record.add(event::Event::notice(Level::Warning, text));
        }
        let Confinement { agent: sandbox, commands, .. } = {
            let confinement = sandbox(self.args, self.spec, self.cwd, &directories)?;
            self.record.sandbox = Some(confinement.state.clone());
            confinement.notice().into_iter().for_each(|event| self.record.add(event));
            confinement
        };
        let mut services =
            Services::new(self.args, self.spec, self.cwd, &directories, self.project, commands.as_ref())?;
        // Our own agent reads the same files, and tells the same.
        let notices = self.project.notices().into_iter().chain(services.problems());
        for event in notices.filter(|_| !self.spec.is_built_in) {
            self.record.add(event);
        }
        let (project, question) = (self.project, &question);
        let place = Place { cwd: self.cwd, directories: &directories, project, question, sandbox };
        let opening = open(self.args, self.spec, &place, self.record);
        let (connection, session) = tokio::select! {
            opened = opening => opened?,
            signal = self.signals.next() => return Err(Trouble::Signal(signal)),
            () = until(deadline) => return Err(timed_out(self.args).into()),
        };
        services.set_session(session.id());
        let blocks = question.blocks(&prompt_capabilities(&connection))?;
        let text = blocks.iter().map(event::text_of).collect::<Vec<_>>().join("\n");
        self.record.add(event::Event::User(event::Text { text, message_id: None }));
        // An agent that does not read can keep a long prompt waiting.
        let turn = tokio::select! {
            turn = session.prompt(blocks) => turn?,
            signal = self.signals.next() => return Err(Trouble::Signal(signal)),
            () = until(deadline) => return Err(timed_out(self.args).into()),
        };
        let loop_ = TurnLoop {
            args: self.args,
            record: self.record,
            signals: self.signals,
            services,
            deadline,
            cancelled: None,
            heard: Instant::now(),
        };
        let end = loop_.read(turn).await;
        if let Err(Trouble::Signal(_)) = end {
            // The second signal: nobody is waited for, and everything ends with us.
            return end;
        }
        if self.args.ephemeral {
            self.delete_session(&connection, session.id().clone()).await;
        }
        // A polite end: the agent sees its input close and leaves by itself, or is made to.
        drop(session);
        tokio::select! {
            _ = connection.shutdown() => {}
            _ = self.signals.next() => {}
        }
        end
    }

    /// Has the agent forget a session of which nothing is to be kept, and says so when it does not.
    async fn delete_session(&mut self, connection: &Connection, id: attache::model::session::SessionId) {
        let deleted = tokio::time::timeout(DELETE_PATIENCE, connection.delete_session(id)).await;
        let why = match deleted {
            Ok(Ok(())) => return,
            Ok(Err(error)) => crate::visible::one_line(&error.to_string()),
            Err(_) => "it does not answer".into(),
        };
        let text = format!("the agent may keep a record of this session of its own: {why}");
        self.record.add(event::Event::notice(Level::Warning, text));
    }

    /// Reads the prompt, which may come from a pipe that takes its time.
    async fn read_question(&mut self, directories: &[PathBuf]) -> Result<Question, Trouble> {
        // The thread that waits for stdin cannot be stopped, but it does not keep the program either.
        let (sender, mut receiver) = tokio::sync::oneshot::channel();
        let args = self.args;
        let inputs = (args.prompt.clone(), args.file.clone(), args.attach.clone(), args.image.clone());
        let (cwd, directories) = (self.cwd.to_owned(), directories.to_owned());
        std::thread::spawn(move || {
            let (prompt, file, attach, image) = inputs;
            let question = Question::read(prompt.as_deref(), file.as_deref(), &attach, &image, &directories, &cwd);
            let _ = sender.send(question);
        });
        let mut patience = Some(Instant::now() + STDIN_PATIENCE);
        loop {
            tokio::select! {
                question = &mut receiver => {
                    return Ok(question.map_err(|_| Failure::usage("the prompt could not be read"))??);
                }
                signal = self.signals.next() => return Err(Trouble::Signal(signal)),
                () = until(patience) => {
                    patience = None;
                    let text = "waiting for the end of stdin, which is part of the prompt\nhint: `< /dev/null` for none";
                    self.record.add(event::Event::notice(Level::Info, text));
                }
            }
        }
    }
}

/// The names of variables, or their beginnings with a `*`, that our environment has nothing for.
fn unset(names: &[String]) -> impl Iterator<Item = &String> {
    let is_set = |name: &str| match name.strip_suffix('*') {
        Some(start) => std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(|name| name.starts_with(start))),
        None => std::env::var_os(name).is_some(),
    };
    names.iter().filter(move |name| !is_set(name))
}

/// Where a session is held.
struct Place<'a> {
    cwd: &'a Path,
    directories: &'a [PathBuf],
    project: &'a Project,
    question: &'a Question,
    sandbox: Option<Sandbox>,
}

/// What confines the agent, and what confines the commands that we run for it.
struct Confinement {
    agent: Option<Sandbox>,
    commands: Option<Sandbox>,
    /// For the result of the run.
    state: event::Sandbox,
}

/// `--sandbox offline` is a sandbox with a network, and a prompt of one word. Nobody means that.
fn check_sandbox(args: &Run) -> Result<(), Failure> {
    match args.prompt.as_deref() {
        Some(word @ ("offline" | "on" | "off")) if args.start.sandbox.is_some() => Err(Failure::usage(format!(
            "`{word}` would be the prompt here\nhint: `--sandbox=offline` and `--sandbox=on` are with an equals sign; \
             without `--sandbox` it is off"
        ))),
        _ => Ok(()),
    }
}

/// Makes what is to confine the agent and its commands. Never a weaker run than was asked for by `--sandbox`.
fn sandbox(args: &Run, spec: &AgentSpec, cwd: &Path, directories: &[PathBuf]) -> Result<Confinement, Failure> {
    let Some(kind) = args.start.sandbox else {
        return if spec.is_built_in { own_commands(args, spec, cwd, directories) } else { Ok(Confinement::none()) };
    };
    let network = match kind {
        SandboxKind::On => sandbox::Network::Open,
        SandboxKind::Offline => sandbox::Network::Offline,
    };
    let make = |policy: &sandbox::Policy| {
        Sandbox::new(policy).map_err(|error| Failure::usage(format!("cannot confine the agent: {error}")))
    };
    let mut commands = crate::sandbox::policy(cwd, directories, network)?;
    let mut policy = sandbox::Policy { ..commands.clone() };
    for path in &spec.state {
        // A sandbox holds what is there, and where an agent never ran nothing is. A file is its own to make.
        let is_file = path.extension().is_some_and(|extension| extension == "json");
        if path.exists() || !is_file {
            let made = if path.exists() { Ok(()) } else { crate::paths::private_directory(path) };
            made.map_err(|error| Failure::usage(format!("cannot make `{}`: {error}", path.display())))?;
            policy.writable.push(path.clone());
        }
    }
    if spec.is_built_in {
        let (config, _) = crate::agent::settings(spec.env.get(crate::agent::MODEL))?;
        for path in &config.writable {
            commands.allow_writing(path);
            policy.allow_writing(path);
        }
        // It reads its settings, rules and trust, and writes its sessions. Records of runs and other agents' keys are
        // none of its business.
        let own = [crate::paths::config()?, crate::paths::state()?];
        policy.hidden.retain(|hidden| !own.contains(hidden));
        policy.hidden.extend([own[0].join("agents.toml"), own[1].join("runs")]);
        policy.protected.extend(own);
    }
    let agent = make(&policy)?;
    // What the agent keeps is its own: a command must not write the rules that the next one is judged by.
    let commands = if spec.is_built_in { make(&commands)? } else { agent.clone() };
    let state = match kind {
        SandboxKind::On => event::SandboxState::On,
        SandboxKind::Offline => event::SandboxState::Offline,
    };
    let state = event::Sandbox { state, gaps: agent.gaps().to_vec() };
    Ok(Confinement { agent: Some(agent), commands: Some(commands), state })
}

/// What our own agent confines its commands by, for those that it runs in our terminals.
fn own_commands(args: &Run, spec: &AgentSpec, cwd: &Path, directories: &[PathBuf]) -> Result<Confinement, Failure> {
    let (config, _) = crate::agent::settings(spec.env.get(crate::agent::MODEL))?;
    let set = args.set.iter().rev().find(|(key, _)| key == "sandbox").map(|(_, value)| value.as_str());
    let (network, state) = match (set, config.sandbox) {
        (Some("off"), _) | (None, SandboxMode::Off) => return Ok(Confinement::none()),
        (Some("offline"), _) | (None, SandboxMode::Offline) => {
            (sandbox::Network::Offline, event::SandboxState::Offline)
        }
        (Some(_), _) | (None, SandboxMode::On) => (sandbox::Network::Open, event::SandboxState::On),
    };
    if let Err(error) = Sandbox::check() {
        // The agent says so at the beginning of its turn.
        let state = event::Sandbox { state: event::SandboxState::Unavailable, gaps: vec![error.to_string()] };
        return Ok(Confinement { state, ..Confinement::none() });
    }
    let mut policy = crate::sandbox::policy(cwd, directories, network)?;
    for path in &config.writable {
        policy.allow_writing(path);
    }
    let commands = Sandbox::best_effort(&policy);
    let commands = commands.map_err(|error| Failure::usage(format!("cannot confine the agent's commands: {error}")))?;
    let state = event::Sandbox { state, gaps: commands.gaps().to_vec() };
    Ok(Confinement { agent: None, commands: Some(commands), state })
}

impl Confinement {
    fn none() -> Self {
        let state = event::Sandbox { state: event::SandboxState::Off, gaps: Vec::new() };
        Confinement { agent: None, commands: None, state }
    }

    /// What a person should know before anything runs.
    fn notice(&self) -> Option<event::Event> {
        // Our own agent tells it of its commands by itself.
        let gaps = self.state.gaps.join("; ");
        let is_to_be_told = self.agent.is_some() && !gaps.is_empty();
        is_to_be_told.then(|| event::Event::notice(Level::Warning, format!("the sandbox does not enforce all: {gaps}")))
    }
}

/// Starts the agent and opens the session.
async fn open(
    args: &Run,
    spec: &AgentSpec,
    place: &Place<'_>,
    record: &mut Record,
) -> Result<(Connection, Session), Trouble> {
    let cwd = place.cwd;
    let mut servers = place.project.mcp_servers()?;
    for path in &args.mcp_config {
        let content = std::fs::read(path).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
        servers.extend(parse_mcp(&content, path)?);
    }
    let mut opening = Opening::new(spec, cwd, args.start.protocol);
    opening.sandbox = place.sandbox.clone();
    let mut client = Services::offer(connect::client(), spec);
    let mut tap = None;
    if let Some(path) = &args.start.trace {
        let file = Tap::file(path).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
        tap = Some(file);
    }
    if let Some(messages) = record.messages.clone() {
        tap = Some(tap.map_or_else(|| Tap::messages(messages.clone()), |tap| tap.and_messages(messages.clone())));
    }
    if let Some(tap) = tap {
        client = client.trace(tap);
    }
    let connection = crate::auth::start(client, &opening, args.start.auth.as_deref()).await?;
    let info = connection.info();
    let agent = event::Agent {
        agent: spec.name.clone(),
        name: info.map(|info| info.title.clone().unwrap_or_else(|| info.name.clone())),
        version: info.map(|info| info.version.clone()),
        protocol: Some(connection.dialect().to_string()),
    };
    record.add(event::Event::Agent(agent));
    record.flush().await?;
    match open_session(args, spec, place, servers, &connection, record).await {
        Ok(session) => Ok((connection, session)),
        Err(trouble) => {
            // It is let go politely, so that nothing of it is left when we have ended.
            connection.shutdown().await;
            Err(trouble)
        }
    }
}

async fn open_session(
    args: &Run,
    spec: &AgentSpec,
    place: &Place<'_>,
    servers: Vec<McpServer>,
    connection: &Connection,
    record: &mut Record,
) -> Result<Session, Trouble> {
    let cwd = place.cwd;
    // Before there is a session that nobody comes back to.
    place.question.check(&prompt_capabilities(connection))?;
    let mut builder = connection.session(cwd);
    for directory in place.directories {
        builder = builder.directory(directory);
    }
    for server in servers {
        builder = builder.mcp_server(server);
    }
    let known = match (&args.resume, args.continue_last) {
        (Some(id), _) => Some(id.clone()),
        (None, true) => Some(last_session(spec, cwd)?),
        (None, false) => None,
    };
    let resumed = known.is_some();
    let opened = match known {
        None => builder.open().await,
        Some(id) => builder.resume(id).await,
    };
    let session = opened.map_err(|error| crate::auth::explain(error, connection, spec))?;
    record.add(event::Event::Session(event::Session { id: session.id().to_string(), resumed }));
    record.flush().await?;
    settings::apply(args, &session).await?;
    Ok(session)
}

/// The session that `--continue` means.
fn last_session(spec: &AgentSpec, cwd: &Path) -> Result<String, Failure> {
    let identity = spec.identity(cwd);
    if let Some(id) = crate::journal::last_session(&identity, cwd)? {
        return Ok(id);
    }
    let hint = match crate::journal::last_session_by_name(&spec.name, cwd)? {
        // An earlier version did not write down which of the agents of that program it was.
        Some(id) => format!("hint: if session `{id}` of `{}` is meant, name it with --resume", spec.name),
        None => "hint: leave out --continue to begin one".into(),
    };
    Err(Failure::new(Code::NotFound, format!("`{identity}` has no earlier session in this directory\n{hint}")))
}

fn prompt_capabilities(connection: &Connection) -> PromptCapabilities {
    connection.capabilities().session.clone().unwrap_or_default().prompt
}

struct TurnLoop<'a> {
    args: &'a Run,
    record: &'a mut Record,
    signals: &'a mut Signals,
    services: Services,
    deadline: Option<Instant>,
    /// The turn was cancelled: why, and until when the agent may take to end it.
    cancelled: Option<(Cancelled, Instant)>,
    /// When the agent last said something.
    heard: Instant,
}

/// Why a turn was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    By(Signal),
    Timeout,
    Idle,
}

impl TurnLoop<'_> {
    async fn read(mut self, mut turn: Turn) -> Result<End, Trouble> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let idle = self.args.idle_timeout.filter(|_| !self.services.is_asking()).map(|time| self.heard + time);
            let limit = self.cancelled.map(|(_, until)| until);
            // A question has the screen to itself: first all that came before it is written, then it is asked, and what
            // comes meanwhile is held.
            let (asks, is_asking) = (self.services.wants_to_ask(), self.services.is_asking());
            let is_free = !asks && !self.record.is_pending();
            let is_held = is_asking && !self.record.is_full();
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if self.cancelled.is_some() {
                        return Err(Trouble::Signal(signal));
                    }
                    let grace = if signal == Signal::Interrupt { CANCEL_GRACE } else { TERMINATE_GRACE };
                    self.cancel(&turn, Cancelled::By(signal), grace).await;
                }
                () = until(limit), if limit.is_some() => break,
                () = until(self.deadline), if self.cancelled.is_none() => {
                    self.cancel(&turn, Cancelled::Timeout, TERMINATE_GRACE).await;
                }
                () = until(idle), if self.cancelled.is_none() => {
                    self.cancel(&turn, Cancelled::Idle, TERMINATE_GRACE).await;
                }
                // What is here is printed before more is taken: a slow reader slows the agent, and keeps nobody from a signal.
                printed = self.record.flush_and_hold(asks), if asks || !(is_free || is_asking) => {
                    printed?;
                    if asks {
                        self.services.ask_next();
                    }
                }
                events = self.services.next(), if is_free || is_asking => {
                    self.heard = Instant::now();
                    for event in events {
                        self.record.add(event);
                    }
                    if !self.services.is_asking() {
                        self.record.release();
                    }
                }
                event = turn.next(), if is_free || is_held => {
                    self.heard = Instant::now();
                    match event {
                        Ok(Some(event)) => self.take(event),
                        Ok(None) => break,
                        Err(error) => match self.ended_early(error) {
                            Some(failure) => return Err(failure.into()),
                            None => break,
                        },
                    }
                }
                _ = tick.tick(), if is_free && !is_asking => self.record.idle(self.heard.elapsed()),
            }
        }
        self.withdraw_question();
        for event in self.services.finish().await {
            self.record.add(event);
        }
        self.end(&turn)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Update(update) => {
                self.services.note(&update);
                if let Some(event) = self.services.refusal(&update) {
                    self.record.add(event);
                }
                match event::from_update(&update) {
                    // The prompt itself, which some agents say back.
                    None | Some(event::Event::User(_)) => {}
                    Some(event) => self.record.add(event),
                }
            }
            other => {
                for event in self.services.serve(other) {
                    self.record.add(event);
                }
            }
        }
    }

    async fn cancel(&mut self, turn: &Turn, why: Cancelled, grace: Duration) {
        self.cancelled = Some((why, Instant::now() + grace));
        self.withdraw_question();
        let text = match why {
            Cancelled::By(Signal::Interrupt) => "cancelling; once more ends everything",
            Cancelled::By(Signal::Terminate) => "cancelling",
            Cancelled::Timeout => "out of time, cancelling",
            Cancelled::Idle => "the agent has been silent for too long, cancelling",
        };
        self.record.clear();
        self.record.add(event::Event::notice(Level::Info, text));
        // An agent that reads nothing any more must not keep us from ending it.
        let _ = tokio::time::timeout(CANCEL_SENT, turn.cancel()).await;
    }

    /// Nothing more is asked, and others may write to the screen again.
    fn withdraw_question(&mut self) {
        if self.services.is_asking() {
            self.record.leave_question();
        }
        self.services.cancel();
        self.record.release();
    }

    /// A turn that fails after it was cancelled is one that was cancelled.
    fn ended_early(&self, error: attache::Error) -> Option<Failure> {
        match (&self.cancelled, &error) {
            (Some(_), _) => None,
            (None, attache::Error::Refused(refusal)) if refusal.code == ErrorObject::AUTH_REQUIRED => {
                Some(Failure::new(Code::Login, "the agent wants a login first\nhint: `attache agents login NAME`"))
            }
            (None, _) => Some(error.into()),
        }
    }

    /// The exit code for a turn that the agent ended, and what to say about it.
    fn verdict(&self, stop: Option<&str>) -> (Code, Option<String>) {
        let denied = self.record.permissions.denied;
        let told = |text: &str| Some(text.to_owned());
        match stop {
            // Some agents take a denial for the end of the turn.
            Some("end_turn" | "cancelled") if self.args.fail_on_denied && denied > 0 => {
                (Code::Denied, Some(format!("denied to the agent: {denied}")))
            }
            Some("end_turn") => (Code::Done, None),
            Some("refusal") => (Code::Refused, told("the model refused to go on")),
            Some("max_tokens") => (Code::Refused, told("the model met its limit of tokens")),
            Some("max_turn_requests") => (Code::Refused, told("the agent met its limit of requests for a turn")),
            Some("cancelled") if denied > 0 => {
                (Code::Agent, told("the agent cancelled the turn after a request of it was denied"))
            }
            Some("cancelled") => (Code::Agent, told("the agent cancelled the turn by itself")),
            // What is unknown is not taken for success.
            _ => (Code::Agent, told("the agent ended the turn with an unknown reason")),
        }
    }

    fn end(&self, turn: &Turn) -> Result<End, Trouble> {
        let stop = turn.stop().map(ToString::to_string).filter(|stop| stop != "error");
        let usage = turn.usage().map(|usage| event::Usage {
            total_tokens: usage.total_tokens,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            thought_tokens: usage.thought_tokens,
            cached_read_tokens: usage.cached_read_tokens,
            cached_write_tokens: usage.cached_write_tokens,
        });
        let (code, failure) = match self.cancelled {
            Some((Cancelled::By(signal), _)) => (code_of(signal), None),
            Some((Cancelled::Timeout, _)) => (Code::Timeout, Some(timed_out(self.args))),
            Some((Cancelled::Idle, _)) => (Code::Timeout, Some(idle_out(self.args))),
            None => {
                let (code, why) = self.verdict(stop.as_deref());
                (code, why.map(|why| Failure::new(code, why)))
            }
        };
        Ok(End { code, failure, stop_reason: stop, usage })
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

fn timed_out(args: &Run) -> Failure {
    let time = args.timeout.unwrap_or_default();
    Failure::new(Code::Timeout, format!("not done within {time:?}\nhint: give it longer with --timeout"))
}

fn idle_out(args: &Run) -> Failure {
    let time = args.idle_timeout.unwrap_or_default();
    Failure::new(
        Code::Timeout,
        format!("the agent said nothing for {time:?}\nhint: give it longer with --idle-timeout"),
    )
}
