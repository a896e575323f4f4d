//! `attache run`: one prompt, from the greeting to the exit code.

mod answer;
mod fold;
mod limits;
mod lines;
mod opening;
pub(crate) mod options;
mod patience;
pub(crate) mod prompt;
mod record;
pub(crate) mod settings;
mod turn_loop;
mod turns;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use attache::Connection;
use attache::client::Session;
use attache::model::capability::PromptCapabilities;
use attache::model::content::ContentBlock;
use attache::model::error::ErrorObject;
use attache_host::sandbox::Sandbox;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::agents::AgentSpec;
use crate::cli::{Format, Run};
use crate::client::ask::Asker;
use crate::client::confine::Confinement;
use crate::client::services::{Services, Setup};
use crate::connect::{self};
use crate::event::{self, Level, Status};
use crate::exit::{Code, Failure};
use crate::output::{Printer, Screen, Waiting};
use crate::pen::{Messages, OutputError, Pen};
use crate::project::Project;
use crate::signals::{Signal, Signals};
use crate::tty::Tty;
use limits::Limits;
use patience::Patience;
use prompt::Question;
use record::{End, Record};
use turn_loop::TurnLoop;
use turns::Turns;

/// How long everything may take after a first Ctrl-C, a SIGTERM or a timeout: nobody waits for longer.
const CANCEL_TIME: Duration = Duration::from_millis(4500);

/// How much of that the agent has to end its turn. The rest is for what has to be ended and printed after it.
const CANCEL_GRACE: Duration = Duration::from_millis(2500);

/// How much of that is left for the result at least.
const RESULT_TIME: Duration = Duration::from_millis(500);

/// How long everything may take after a second Ctrl-C.
const HURRY: Duration = Duration::from_millis(700);

/// How long it may take to send a cancel to an agent that does not read.
const CANCEL_SENT: Duration = Duration::from_millis(300);

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
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let printer = Printer::new(args.output, Screen::here());
    let cwd = match &mut args.resume {
        Some(id) => crate::ids::session(id).and_then(|session| {
            *id = session;
            crate::ids::directory(id, args.start.cwd.as_deref())
        }),
        None => connect::directory(args.start.cwd.as_deref()),
    };
    let found = check_sandbox(&args).and(cwd).and_then(|cwd| {
        let project = Project::find(&cwd)?;
        let mut spec = crate::agents::resolve(args.start.agent.as_deref(), &args.command, &project)?;
        spec.pass_env.extend_from_slice(&args.start.env);
        spec.notices.extend(connect::moved_to(&cwd, args.start.cwd.as_deref()));
        if let Some(model) = args.model.as_mut().filter(|_| spec.is_built_in) {
            // It can be any model there, and what the agent offers follows from it.
            *model = crate::agent::model_id(model)?;
            spec.env.insert(crate::agent::MODEL.into(), model.clone());
        }
        // Our own agent judges what it does, and asks us only what a person has to say. What is said here goes before what
        // its mode says, `ask` included.
        if let Some(permissions) = args.permissions.filter(|_| spec.is_built_in) {
            spec.add_option("--permissions", permissions);
        }
        options::apply(&mut args, &mut spec)?;
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
    let mut turns = Turns::default();
    let end = async {
        for event in first {
            record.add(event);
        }
        let (cwd, project, spec) = &found?;
        turns = Turns::new(&args, &mut record)?;
        let (record, signals, turns) = (&mut record, &mut signals, &mut turns);
        Conversation { args: &args, spec, cwd, project, record, signals, deadline, turns }.hold().await
    };
    let end = end.await;
    let mut end = match end {
        Ok(end) => end,
        // A reader that has seen enough is a quiet goodbye, but what it left is not done.
        Err(Trouble::Output(OutputError::Closed)) => End { status: Some(Status::Cancelled), ..End::default() },
        Err(Trouble::Output(OutputError::Failed(error))) => {
            let failure = Some(Failure::usage(record::unwritable(&error)));
            End { failure, ..End::default() }
        }
        Err(Trouble::Failed(failure)) => End { failure: Some(failure), ..End::default() },
        Err(Trouble::Signal(signal)) => {
            End { code: code_of(signal), hurry: Some(Instant::now() + HURRY), ..End::default() }
        }
    };
    if turns.is_between() {
        return turns.code(end.failure.as_ref().map_or(end.code, |failure| failure.code));
    }
    turns::keep_answer(&args, &record, &mut end);
    turns.code(record.finish(end, &mut signals).await)
}

/// Why a conversation did not come to its own end.
enum Trouble {
    Failed(Failure),
    Signal(Signal),
    Output(OutputError),
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

impl From<OutputError> for Trouble {
    fn from(error: OutputError) -> Self {
        Trouble::Output(error)
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
    /// When `--timeout` is over.
    deadline: Option<Instant>,
    turns: &'a mut Turns,
}

impl Conversation<'_> {
    async fn hold(mut self) -> Result<End, Trouble> {
        let directories = self.args.add_dir.iter().map(|path| connect::directory(Some(&self.cwd.join(path))));
        let directories = directories.collect::<Result<Vec<_>, _>>()?;
        let question = match self.turns.takes_lines() {
            true => self.first_line().await?,
            false => self.read_question(&directories).await?,
        };
        for text in &question.unmatched {
            self.record.add(event::Event::notice(Level::Warning, text.as_str()));
        }
        for name in unset(&self.args.start.env) {
            let text = format!("`--env {name}` passes nothing on: no variable of that name is set");
            self.record.add(event::Event::notice(Level::Warning, text));
        }
        for text in self.spec.download().into_iter().chain(self.spec.notices.iter().cloned()) {
            self.record.add(event::Event::notice(Level::Info, text));
        }
        let set = self.args.set.iter().rev().find(|(key, _)| key == "sandbox").map(|(_, value)| value.as_str());
        let Confinement { agent: sandbox, commands, .. } = {
            let kind = self.args.start.sandbox;
            let confinement = Confinement::new(kind, set, self.spec, self.cwd, &directories)?;
            self.record.sandbox = Some(confinement.state.clone());
            confinement.notice().into_iter().for_each(|event| self.record.add(event));
            confinement
        };
        // Asking takes somebody who sees the question.
        let tty = if std::io::stderr().is_terminal() { Tty::open().ok() } else { None };
        let asker = tty.map(|tty| Arc::new(tty) as Arc<dyn Asker>);
        let has_person = asker.is_some();
        let mut services = Services::new(Setup {
            agent: self.spec,
            permissions: self.args.permissions,
            cwd: self.cwd,
            directories: &directories,
            project: self.project,
            sandbox: commands.as_ref(),
            asker,
        })?;
        // Our own agent reads the same files, and tells the same.
        let notices = self.project.notices().into_iter().chain(services.problems());
        for event in notices.filter(|_| !self.spec.is_built_in) {
            self.record.add(event);
        }
        let (project, question) = (self.project, &question);
        let place = Place { cwd: self.cwd, directories: &directories, project, question, sandbox, has_person };
        let lost = Arc::new(AtomicU64::new(0));
        let (connection, session) = self.open(&place, &lost).await?;
        services.set_session(session.id());
        services.allow_in_run(&crate::rule_option::read(&self.args.allow, &self.args.deny)?)?;
        let blocks = question.blocks(&prompt_capabilities(&connection))?;
        self.take_history(&session, &mut services).await?;
        let end = self.hold_turns(&connection, &session, &mut services, blocks).await;
        if let Err(Trouble::Signal(_)) = end {
            // The second signal: nobody is waited for, and everything ends with us.
            return end;
        }
        match lost.load(Ordering::Relaxed) {
            0 => {}
            count => {
                let what = if count == 1 { "1 update was".to_owned() } else { format!("{count} updates were") };
                let text = format!("{what} not understood\nhint: `--trace FILE` writes all messages down");
                self.record.add(event::Event::notice(Level::Warning, text));
            }
        }
        let hurry = end.as_ref().ok().and_then(|end| end.hurry);
        if self.args.ephemeral && hurry.is_none() {
            self.delete_session(&connection, session.id().clone()).await;
        }
        // A polite end: the agent sees its input close and leaves by itself, or is made to.
        drop(session);
        tokio::select! {
            _ = connection.shutdown() => {}
            _ = self.signals.next() => {}
            () = until(hurry.map(|hurry| hurry - RESULT_TIME)) => {}
        }
        end
    }

    /// Gives the agent a prompt, and reads what comes of it.
    async fn turn(
        &mut self,
        session: &Session,
        services: &mut Services,
        blocks: Vec<ContentBlock>,
    ) -> Result<Result<End, ErrorObject>, Trouble> {
        self.record.begin_turn();
        let text = blocks.iter().map(event::text_of).collect::<Vec<_>>().join("\n");
        self.record.add(event::Event::User(event::Text { text, message_id: None }));
        // An agent that does not read can keep a long prompt waiting.
        let turn = match self.wait(Waiting::Prompt, session.prompt(blocks)).await? {
            Err(attache::Error::Refused(refusal)) if refusal.code == ErrorObject::AUTH_REQUIRED => {
                return Ok(Err(refusal));
            }
            turn => turn?,
        };
        let turn_loop = TurnLoop {
            args: self.args,
            record: self.record,
            signals: self.signals,
            services,
            deadline: self.deadline,
            patience: Patience::new(self.args.idle_timeout),
            running: HashMap::new(),
            cancelled: None,
            limits: Limits::new(self.args, self.spec.is_built_in),
            passed_limit: None,
        };
        turn_loop.read(turn).await
    }

    /// Waits for something that the agent has to do before there is a turn: no longer than it may take, than it may be
    /// silent, or than a person wants to wait.
    async fn wait<T>(&mut self, waiting: Waiting, work: impl Future<Output = T>) -> Result<T, Trouble> {
        let mut work = std::pin::pin!(work);
        let mut patience = Patience::new(self.args.idle_timeout);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => return Err(Trouble::Signal(signal)),
                done = &mut work => {
                    self.record.clear();
                    return Ok(done);
                }
                () = until(self.deadline) => return Err(timed_out(self.args).into()),
                () = patience.tick() => {
                    if patience.is_over() {
                        return Err(idle_out(self.args).into());
                    }
                }
                printed = self.record.flush(), if self.record.is_pending() => printed?,
                _ = tick.tick() => self.record.idle(&waiting, patience.silent()),
            }
        }
    }

    /// Prints what there is to print, unless somebody has had enough of that.
    async fn flush(&mut self) -> Result<(), Trouble> {
        tokio::select! {
            biased;
            signal = self.signals.next() => Err(Trouble::Signal(signal)),
            printed = self.record.flush() => Ok(printed?),
            () = until(self.deadline) => Err(timed_out(self.args).into()),
        }
    }

    /// Waits for a person, who may take as long as they like.
    async fn wait_for_person<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Trouble> {
        let asked = async {
            self.record.flush_and_hold(true).await?;
            Ok(work.await)
        };
        let done = tokio::select! {
            biased;
            signal = self.signals.next() => Err(Trouble::Signal(signal)),
            done = asked => done,
            () = until(self.deadline) => Err(timed_out(self.args).into()),
        };
        self.record.release();
        done
    }

    /// Has the agent forget a session of which nothing is to be kept, and says so when it does not.
    async fn delete_session(&mut self, connection: &Connection, id: attache::model::session::SessionId) {
        let deleted = tokio::time::timeout(DELETE_PATIENCE, connection.delete_session(id)).await;
        let text = match deleted {
            Ok(Ok(())) => return,
            Ok(Err(attache::Error::NotOffered(_))) => {
                "the agent keeps its session, because it cannot delete any".into()
            }
            Ok(Err(error)) => {
                format!("the agent may keep its session: {}", crate::visible::one_line(&error.to_string()))
            }
            Err(_) => "the agent may keep its session: it does not answer".to_owned(),
        };
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
                () = until(self.deadline) => return Err(timed_out(self.args).into()),
                () = until(patience) => {
                    patience = None;
                    let text = "waiting for the end of stdin, which is part of the prompt\nhint: `< /dev/null` for none";
                    self.record.add(event::Event::notice(Level::Info, text));
                    self.flush().await?;
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
    /// Whether somebody is there who can be asked.
    has_person: bool,
}

/// `--sandbox offline` is a sandbox with a network, and a prompt of one word. Nobody means that.
fn check_sandbox(args: &Run) -> Result<(), Failure> {
    match args.prompt.as_deref() {
        Some(word @ ("offline" | "on" | "off")) if args.start.sandbox.is_some() => {
            Err(Failure::usage(crate::usage::sandbox_without_equals(word)))
        }
        _ => Ok(()),
    }
}

/// The session that `--continue` means.
pub(crate) fn last_session(spec: &AgentSpec, cwd: &Path) -> Result<String, Failure> {
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

/// What a future gives, if it does at once. It can be one that is polled again later.
async fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

fn limit_passed(what: &str) -> Failure {
    Failure::new(Code::Refused, what)
}

fn timed_out(args: &Run) -> Failure {
    let time = args.timeout.unwrap_or_default();
    Failure::new(Code::Timeout, format!("timed out after {time:?}\nhint: give it longer with --timeout"))
}

fn idle_out(args: &Run) -> Failure {
    let time = args.idle_timeout.unwrap_or_default();
    Failure::new(
        Code::Timeout,
        format!("the agent said nothing for {time:?}\nhint: give it longer with --idle-timeout"),
    )
}
