//! What this machine does for an agent: files, commands, and answers to its questions.

mod commands;
mod files;
mod known;
mod questions;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::client::{Pending, PermissionAsk};
use attache::model::elicitation::CreateElicitationRequest;
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse};
use attache::model::permission::{PermissionOption, PermissionOutcome};
use attache::model::session::SessionId;
use attache::model::terminal::CreateTerminalRequest;
use attache::model::tool::ToolKind;
use attache::model::update::SessionUpdate;
use attache::{Client, Event};
use attache_host::commands::Invocation;
use attache_host::files::Files;
use attache_host::permission::{
    self, Action, Decision, Engine, Grants, NoSuchChoice, Places, Policy, Question, Rule, Scope, Session, ShownChange,
    Subject, Verdict, carried,
};
use attache_host::sandbox::Sandbox;
use attache_host::terminals::{self, Limits, Terminals};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::ask::{Asker, Reply};
use crate::agents::AgentSpec;
use crate::cli::Permissions;
use crate::event::{self, Answer, FileOperation, Level};
use crate::exit::Failure;
use crate::project::Project;
use crate::remote::Place;
use files::{Again, Spot};
use known::KnownCalls;

/// How long what is under way at the end of a turn may take.
const LAST_WORK: Duration = Duration::from_secs(5);

/// How many answers with content are made at once.
const ANSWERS: usize = 2;

/// How many pieces of the output of commands wait to be taken.
const WAITING_OUTPUT: usize = 16;

/// Whom services are for, and where.
pub(crate) struct Setup<'a> {
    pub(crate) agent: &'a AgentSpec,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) cwd: &'a Path,
    pub(crate) directories: &'a [PathBuf],
    pub(crate) project: &'a Project,
    /// What confines the commands that we run for the agent.
    pub(crate) sandbox: Option<&'a Sandbox>,
    /// The person; none when nobody is there.
    pub(crate) asker: Option<Arc<dyn Asker>>,
}

/// What this machine does for the agent.
pub(crate) struct Services {
    /// Our own agent judges what it does, and tells us what it would do: it is asked about, and not judged again.
    is_built_in: bool,
    session: Session,
    /// Where the agent works, if that is on another machine.
    elsewhere: Option<Place>,
    policy: Policy,
    engine: Engine,
    files: Files,
    /// What confines the agent, and binds what is done for it, too.
    sandbox: Option<Sandbox>,
    terminals: Arc<Terminals>,
    /// The person; none when nobody is there.
    asker: Option<Arc<dyn Asker>>,
    known: KnownCalls,
    /// What was allowed by permission requests of this turn, and not done yet: doing it needs no second question.
    grants: Grants,
    /// Held while a file is compared with what was shown of it: one at a time, because they are held whole.
    comparing: Arc<tokio::sync::Semaphore>,
    tasks: JoinSet<Finished>,
    /// Held while an answer with content is made and until it is sent: an agent that does not read is not to have many
    /// of them in our memory.
    answering: Arc<Semaphore>,
    /// News of commands, as they come.
    news: (mpsc::Sender<event::Event>, mpsc::Receiver<event::Event>),
    waiting: VecDeque<Waiting>,
    /// The question that stands on the screen.
    asking: Option<AbortHandle>,
    /// The turn was cancelled: nothing more is asked, and nothing more is done.
    is_cancelled: bool,
    /// How many questions nobody was there to answer.
    unasked: u64,
    /// Reasons of refusals that the agent could not be told with its answer.
    untold: Vec<String>,
}

/// What waits for a person.
enum Waiting {
    Decision(Box<Asked>),
    Elicitation(Box<Pending<CreateElicitationRequest>>),
}

/// Something of the agent's that needs a decision.
struct Asked {
    subject: Subject,
    decision: Decision,
    what: What,
}

enum What {
    Permission(PermissionAsk),
    Read(Pending<ReadTextFileRequest>, Spot),
    Write(Pending<WriteTextFileRequest>, Spot),
    /// A command: what is judged is what is executed.
    Run(Pending<CreateTerminalRequest>, Invocation),
}

/// What came of something that took its time.
enum Finished {
    Events(Vec<event::Event>),
    /// A file was found, or is not where it was found any more.
    Found(Box<What>),
    /// Whether a change is the one that was shown.
    Compared(Box<Asked>, Option<ShownChange>),
    Answered(Box<Asked>, Reply),
    /// A question of the agent's own was answered, or nobody wants an answer any more.
    Closed,
}

impl Services {
    pub(crate) fn new(setup: Setup<'_>) -> Result<Self, Failure> {
        let Setup { agent, cwd, directories, project, .. } = setup;
        let policy = setup.permissions.map_or(Policy::Ask, Permissions::policy);
        let places = Places {
            config_dir: crate::paths::config()?,
            state_dir: crate::paths::state()?,
            project: Some(project.root.clone()),
        };
        let mut engine = Engine::open(places, policy);
        engine.follow_repository(crate::project::trusted()?, project.root.clone());
        let pass_env = crate::agents::config::Config::read()?.command_env;
        let sandbox = setup.sandbox.cloned();
        let confining = sandbox.clone();
        let terminals = Terminals::new(Limits::default()).confine(move |command| {
            let command = attache_host::environment::start_from(command, &pass_env);
            confining.iter().fold(command, |command, sandbox| sandbox.confine(command))
        });
        let files = Files::open(cwd, directories).map_err(|error| Failure::usage(error.to_string()))?;
        let mut session = Session::new(agent.identity(cwd), "", cwd);
        session.roots.extend_from_slice(directories);
        Ok(Services {
            is_built_in: agent.is_built_in,
            session,
            elsewhere: crate::remote::place_of(&agent.words),
            policy,
            engine,
            files,
            sandbox,
            terminals: Arc::new(terminals),
            asker: setup.asker,
            known: KnownCalls::default(),
            grants: Grants::default(),
            comparing: Arc::new(Semaphore::new(1)),
            tasks: JoinSet::new(),
            answering: Arc::new(Semaphore::new(ANSWERS)),
            news: mpsc::channel(WAITING_OUTPUT),
            waiting: VecDeque::new(),
            asking: None,
            is_cancelled: false,
            unasked: 0,
            untold: Vec::new(),
        })
    }

    /// Offers what is served here. Our own agent does everything itself, in its sandbox, and by the same rules.
    pub(crate) fn offer(client: Client, agent: &AgentSpec, has_person: bool) -> Client {
        let client = if has_person { client.forms().urls() } else { client };
        if agent.is_built_in {
            return client;
        }
        let client = client.write_files().terminals();
        if agent.reads_itself { client } else { client.read_files() }
    }

    /// What is wrong with the files of rules, for the person to know before anything is asked.
    pub(crate) fn problems(&self) -> Vec<event::Event> {
        let mut problems: Vec<String> = self.engine.problems().map(ToString::to_string).collect();
        problems.extend(self.engine.rules().filter_map(|rule| Some(format!("{}: {}", rule.origin, rule.mistake()?))));
        let agent = &self.session.agent;
        let old = |rule: &&Rule| rule.verdict == Verdict::Allow && rule.is_for_launcher(agent);
        if let Some(rule) = self.engine.rules().find(old) {
            let name = rule.agent.as_deref().unwrap_or_default();
            problems.push(format!(
                "rules for the agent `{name}` no longer allow anything, because `{name}` runs many agents\n\
                 hint: if they are for this one, write `agent = {agent:?}` into {}",
                rule.origin
            ));
        }
        problems.into_iter().map(|problem| event::Event::notice(Level::Warning, problem)).collect()
    }

    /// Names the session that is served.
    pub(crate) fn set_session(&mut self, id: &SessionId) {
        self.session.id = id.clone();
    }

    /// Takes rules that hold for this session. Our own agent has them itself.
    pub(crate) fn allow_in_run(&mut self, rules: &[Rule]) -> Result<(), Failure> {
        let taken = self.engine.remember(Scope::Session, &self.session, rules);
        taken.map_err(|error| Failure::usage(error.to_string()))
    }

    /// Begins another turn of the same session: what was allowed for the one before and not done is not done any more.
    pub(crate) fn begin_turn(&mut self) {
        self.is_cancelled = false;
        self.unasked = 0;
        self.grants = Grants::default();
    }

    /// Learns what a tool call is about.
    pub(crate) fn note(&mut self, update: &SessionUpdate) {
        self.known.note(update);
    }

    /// What our own agent refused by itself, by the rules and the mode that it was given: it counts as denied.
    pub(crate) fn refusal(&self, update: &SessionUpdate) -> Option<event::Event> {
        let SessionUpdate::ToolCallUpdate(call) = update else { return None };
        let meta = call.meta.set().filter(|_| self.is_built_in)?;
        let (what, reason) = carried::refusal_from_meta(meta)?;
        let tool = Some(call.tool_call_id.to_string());
        Some(event::Event::Permission(event::Permission { what, answer: Answer::Denied, reason, tool }))
    }

    /// Takes something that the agent asks. Returns what there is to tell at once.
    pub(crate) fn serve(&mut self, event: Event) -> Vec<event::Event> {
        let is_work = matches!(
            event,
            Event::Permission(_)
                | Event::ReadTextFile(_)
                | Event::WriteTextFile(_)
                | Event::CreateTerminal(_)
                | Event::Elicitation(_)
        );
        if self.is_cancelled && is_work {
            // Dropped, a question is cancelled and a request refused.
            return Vec::new();
        }
        match event {
            Event::Permission(ask) => {
                let id = ask.tool_call().map(|call| &call.tool_call_id);
                let known = id.and_then(|id| self.known.get(id));
                let mut subject = Subject::from_request(self.session.clone(), &ask, known);
                let carried = ask.meta.as_ref().filter(|_| self.is_built_in).and_then(carried::from_meta);
                match carried {
                    Some((actions, decision)) => {
                        subject.actions = actions;
                        self.settle(Asked { subject, decision, what: What::Permission(ask) })
                    }
                    None => self.decide(subject, What::Permission(ask)),
                }
            }
            Event::ReadTextFile(call) => {
                self.find(FileOperation::Read, call, Spot::default(), What::Read);
                Vec::new()
            }
            Event::WriteTextFile(call) => {
                self.find(FileOperation::Write, call, Spot::default(), What::Write);
                Vec::new()
            }
            Event::CreateTerminal(call) => {
                let invocation = terminals::invocation(&call, &self.session.cwd);
                let subject = Subject::served(self.session.clone(), invocation.action());
                self.decide(subject, What::Run(call, invocation))
            }
            Event::Elicitation(call) => {
                self.elicit(call);
                Vec::new()
            }
            other => {
                self.serve_terminal(other);
                Vec::new()
            }
        }
    }

    /// Finds out where a file really is: that is what is decided about, and what is opened.
    fn find<Q>(&mut self, operation: FileOperation, call: Pending<Q>, before: Spot, what: fn(Pending<Q>, Spot) -> What)
    where
        Q: files::NamesFile + Send + 'static,
        Q::Response: Send + Sync,
    {
        let files = self.files.clone();
        self.tasks.spawn(async move {
            match files::find(operation, call, files, before).await {
                Ok((call, spot)) => Finished::Found(Box::new(what(call, spot))),
                Err(event) => Finished::Events(vec![event]),
            }
        });
    }

    /// Decides about a file where it was found.
    fn decide_file(&mut self, what: What) -> Vec<event::Event> {
        let (kind, path, spot) = match &what {
            What::Read(call, spot) => (ToolKind::Read, &call.path, spot),
            What::Write(call, spot) => (ToolKind::Edit, &call.path, spot),
            What::Permission(_) | What::Run(..) => return Vec::new(),
        };
        let Some(found) = spot.path.to_str() else {
            let decision = Decision::deny("the name of the file is not UTF-8");
            let subject = Subject::new(self.session.clone(), Vec::new());
            return self.refuse(Asked { subject, decision, what });
        };
        // What the kernel keeps the agent from is not done for it either, whatever is allowed.
        let is_confined = self.sandbox.as_ref().is_some_and(|sandbox| match kind {
            ToolKind::Read => !sandbox.policy().may_read(&spot.path),
            _ => !sandbox.policy().may_write(&spot.path),
        });
        let action = Action::Files { kind, paths: vec![found.to_owned()] };
        if is_confined {
            let decision = Decision::deny("the sandbox does not let the agent there");
            let subject = Subject::served(self.session.clone(), action);
            return self.refuse(Asked { subject, decision, what });
        }
        let is_as_shown = found == path && !spot.is_hard_link;
        let subject = Subject::served(self.session.clone(), action.clone());
        let mut decision = self.judge(&subject);
        if spot.is_hard_link && decision.verdict == Verdict::Allow && self.policy != Policy::All {
            decision.verdict = Verdict::Ask;
            decision.reason = "the file has more than one name, and may be one from outside".into();
        }
        let mut asked = Asked { subject, decision, what };
        let now = Instant::now();
        if asked.decision.verdict != Verdict::Ask || !is_as_shown {
            return self.settle(asked);
        }
        match &asked.what {
            What::Read(..) if self.grants.take(&self.session, &action, now) => asked.grant(),
            What::Write(call, spot) => {
                if let Some(shown) = self.grants.change_of(&self.session.id, &call.path, now) {
                    let (files, spot, after) = (spot.files(&self.files), spot.clone(), call.content.clone());
                    let comparing = self.comparing.clone();
                    self.tasks.spawn(async move {
                        let _one = comparing.acquire_owned().await;
                        let compare = move || {
                            let before = files.read(&spot.path).ok();
                            shown.leads_to(before.as_deref(), &after).then_some(shown)
                        };
                        let shown = tokio::task::spawn_blocking(compare).await.ok().flatten();
                        Finished::Compared(Box::new(asked), shown)
                    });
                    return Vec::new();
                }
            }
            _ => {}
        }
        self.settle(asked)
    }

    /// A change that is the one that was shown is allowed, once.
    fn compared(&mut self, mut asked: Asked, shown: Option<ShownChange>) -> Vec<event::Event> {
        match shown {
            Some(shown) if self.grants.take_change(&self.session.id, &shown, Instant::now()) => asked.grant(),
            _ => asked.decision.reason = "it is not what was allowed with its tool call".into(),
        }
        self.settle(asked)
    }

    fn decide(&mut self, subject: Subject, what: What) -> Vec<event::Event> {
        let decision = self.judge(&subject);
        let mut asked = Asked { subject, decision, what };
        if asked.decision.verdict == Verdict::Ask
            && let (What::Run(..), [action]) = (&asked.what, asked.subject.actions.as_slice())
            && self.grants.take(&self.session, action, Instant::now())
        {
            asked.grant();
        }
        self.settle(asked)
    }

    /// Remembers what was allowed with a tool call, so that it is not asked about again when the agent has it done here. What is
    /// allowed on another machine is not allowed on this one.
    pub(super) fn note_grant(&mut self, subject: &Subject) {
        if self.elsewhere.is_none() {
            self.grants.add(subject, Instant::now());
        }
    }

    /// What the rules say now: a person may have taken one back meanwhile.
    fn judge(&mut self, subject: &Subject) -> Decision {
        self.engine.reload();
        self.engine.decide(subject)
    }

    fn settle(&mut self, mut asked: Asked) -> Vec<event::Event> {
        if self.is_cancelled {
            return Vec::new();
        }
        match asked.decision.verdict {
            Verdict::Allow => self.perform(asked, Scope::Once, false),
            Verdict::Deny => self.refuse(asked),
            Verdict::Ask if self.asker.is_none() => {
                self.unasked += 1;
                asked.decision.reason = format!("nobody is there to ask: {}", asked.decision.reason);
                self.refuse(asked)
            }
            Verdict::Ask => {
                self.waiting.push_back(Waiting::Decision(Box::new(asked)));
                Vec::new()
            }
        }
    }

    /// Does what was asked for. What the agent did not ask about, and no person was, is not told as a permission.
    fn perform(&mut self, asked: Asked, scope: Scope, by_person: bool) -> Vec<event::Event> {
        let is_told = by_person || matches!(asked.what, What::Permission(_));
        let mut events: Vec<_> = is_told.then(|| permission_event(&asked, Answer::Allowed)).into_iter().collect();
        match asked.what {
            What::Permission(ask) => match self.choice(&ask, scope) {
                Ok(outcome) => {
                    self.note_grant(&asked.subject);
                    self.answer(ask, outcome);
                }
                Err(error) => {
                    let decision = Decision { reason: error.to_string(), ..asked.decision };
                    return self.refuse(Asked { subject: asked.subject, decision, what: What::Permission(ask) });
                }
            },
            What::Read(call, spot) => {
                let files = spot.files(&self.files);
                let answering = self.answering.clone();
                self.tasks.spawn(async move {
                    let _held = answering.acquire().await;
                    let work = move |call: &ReadTextFileRequest, path: &Path| {
                        files.read_lines(path, call.line, call.limit).map(ReadTextFileResponse::new)
                    };
                    finished(files::touch(FileOperation::Read, call, spot, work).await, What::Read)
                });
            }
            What::Write(call, spot) => {
                let files = spot.files(&self.files);
                self.tasks.spawn(async move {
                    let work = move |call: &WriteTextFileRequest, path: &Path| {
                        files.write(path, &call.content).map(|()| WriteTextFileResponse::new())
                    };
                    finished(files::touch(FileOperation::Write, call, spot, work).await, What::Write)
                });
            }
            What::Run(call, invocation) => events.extend(self.run(call, &invocation)),
        }
        events
    }

    /// Which of the agent's choices a yes is. Our own agent remembers for itself what is for its session and project.
    fn choice(&self, ask: &PermissionAsk, scope: Scope) -> Result<PermissionOutcome, NoSuchChoice> {
        let name = match scope {
            Scope::Session => "allow_session",
            Scope::Project => "allow_always",
            Scope::Once | Scope::Always => "allow_once",
        };
        let is_it = |option: &&PermissionOption| self.is_built_in && option.option_id.as_str() == name;
        match ask.options.iter().find(is_it) {
            Some(option) => Ok(PermissionOutcome::selected(option.option_id.clone())),
            None => permission::allow(&ask.options, scope),
        }
    }

    fn refuse(&mut self, asked: Asked) -> Vec<event::Event> {
        self.refuse_because(asked, None)
    }

    /// Says no to the agent, with the person's own reason if there is one.
    fn refuse_because(&mut self, asked: Asked, reason: Option<String>) -> Vec<event::Event> {
        let told = permission_event(&asked, Answer::Denied);
        match asked.what {
            What::Permission(ask) => {
                // Our own agent tells a no from a question that nobody was there to answer.
                let is_unanswered = self.is_built_in && self.asker.is_none();
                let outcome = match is_unanswered {
                    true => PermissionOutcome::cancelled(),
                    false => permission::reject(&ask.options),
                };
                // The protocol has no word for a reason: other agents are told by the next prompt.
                self.untold.extend(reason);
                self.answer(ask, outcome);
            }
            What::Read(call, _) => self.decline(call, "fs/read_text_file", reason),
            What::Write(call, _) => self.decline(call, "fs/write_text_file", reason),
            What::Run(call, _) => self.decline(call, "terminal/create", reason),
        }
        vec![told]
    }

    fn answer(&mut self, ask: PermissionAsk, outcome: PermissionOutcome) {
        self.tasks.spawn(async move {
            // The turn may have been cancelled meanwhile, and the question with it.
            let _ = match outcome {
                PermissionOutcome::Selected(selected) => ask.select(selected.option_id).await,
                _ => ask.cancel().await,
            };
            Finished::Events(Vec::new())
        });
    }

    fn decline<Q>(&mut self, call: Pending<Q>, scope: &'static str, reason: Option<String>)
    where
        Q: attache::proto::method::Request + Send + 'static,
        Q::Response: Send + Sync,
    {
        self.tasks.spawn(async move {
            let mut error = ErrorObject::permission_denied(scope);
            if let Some(reason) = reason {
                error.message = format!("Permission denied: {reason}");
            }
            let _ = call.reply(Err(error)).await;
            Finished::Events(Vec::new())
        });
    }

    /// Waits for something that takes its time, or until there is something to ask. It can be cancelled.
    pub(crate) async fn next(&mut self) -> Vec<event::Event> {
        loop {
            let finished = tokio::select! {
                biased;
                Some(event) = self.news.1.recv() => return vec![event],
                Some(finished) = self.tasks.join_next() => match finished {
                    Ok(finished) => finished,
                    // Ended with its turn.
                    Err(_) => continue,
                },
                else => std::future::pending().await,
            };
            let events = self.take(finished);
            if !events.is_empty() || self.wants_to_ask() {
                return events;
            }
        }
    }

    fn take(&mut self, finished: Finished) -> Vec<event::Event> {
        match finished {
            Finished::Events(events) => events,
            Finished::Found(what) => match *what {
                What::Read(call, spot) if spot.is_to_be_found() => {
                    self.find(FileOperation::Read, call, spot, What::Read);
                    Vec::new()
                }
                What::Write(call, spot) if spot.is_to_be_found() => {
                    self.find(FileOperation::Write, call, spot, What::Write);
                    Vec::new()
                }
                what => self.decide_file(what),
            },
            Finished::Compared(asked, shown) => self.compared(*asked, shown),
            Finished::Closed => {
                self.asking = None;
                Vec::new()
            }
            // An answer that came just before a cancel is none any more.
            Finished::Answered(..) if self.is_cancelled => Vec::new(),
            Finished::Answered(asked, reply) => {
                self.asking = None;
                self.replied(*asked, reply)
            }
        }
    }

    /// Ends the commands that run for the agent, because the person wants all of it to stop.
    pub(crate) fn end_commands(&mut self) {
        self.terminals.end_session(&self.session.id);
    }

    /// The turn has ended: lets what is under way come to its end, and ends what the agent left running.
    pub(crate) async fn finish(&mut self) -> Vec<event::Event> {
        self.cancel();
        self.end_commands();
        let mut events = Vec::new();
        let rest = async {
            loop {
                tokio::select! {
                    biased;
                    Some(event) = self.news.1.recv() => events.push(event),
                    finished = self.tasks.join_next() => match finished {
                        None => break,
                        Some(Ok(Finished::Events(more))) => events.extend(more),
                        Some(_) => {}
                    },
                }
            }
        };
        // A disk that does not answer is not waited for.
        let _ = tokio::time::timeout(LAST_WORK, rest).await;
        events
    }
}

impl Asked {
    /// It was allowed with its tool call, exactly as it is.
    fn grant(&mut self) {
        self.decision.verdict = Verdict::Allow;
        self.decision.reason = "it was allowed with its tool call".into();
    }
}

/// What came of touching a file: it was done or failed, or has to be looked for or asked about again.
fn finished<Q>(touched: Result<event::Event, Again<Q>>, what: fn(Pending<Q>, Spot) -> What) -> Finished
where
    Q: attache::proto::method::Request,
{
    match touched {
        Ok(event) => Finished::Events(vec![event]),
        Err(Again { call, spot }) => Finished::Found(Box::new(what(call, spot))),
    }
}

fn permission_event(asked: &Asked, answer: Answer) -> event::Event {
    let question = Question::new(&asked.subject, &asked.decision);
    let mut what = question.kinds.join(", ");
    let detail = if question.commands.is_empty() { &question.paths } else { &question.commands };
    if !detail.is_empty() {
        what = format!("{what} {}", detail.join(" "));
    } else if let Some(title) = &question.title {
        what = format!("{what}, which it calls: {title}");
    }
    let tool = match &asked.what {
        What::Permission(ask) => ask.tool_call().map(|call| call.tool_call_id.to_string()),
        _ => None,
    };
    event::Event::Permission(event::Permission { what, answer, reason: asked.decision.reason.clone(), tool })
}
