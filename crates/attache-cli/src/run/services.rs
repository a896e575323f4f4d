//! What this machine does for the agent during a run: files, commands, and answers to its questions.

use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::client::{Pending, PermissionAsk};
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse};
use attache::model::permission::{PermissionOption, PermissionOutcome};
use attache::model::session::SessionId;
use attache::model::terminal::CreateTerminalRequest;
use attache::model::tool::{ToolCallContent, ToolCallId, ToolCallUpdate, ToolKind};
use attache::model::update::SessionUpdate;
use attache::{Client, Event, SessionView};
use attache_host::commands::Invocation;
use attache_host::files::Files;
use attache_host::permission::{
    self, Action, Decision, Engine, Grants, NoSuchChoice, Places, Policy, Question, Rule, Scope, Session, ShownChange,
    Subject, Verdict, carried,
};
use attache_host::sandbox::Sandbox;
use attache_host::terminals::{self, Limits, TerminalView, Terminals};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::ask::{self, Reply};
use super::files::{self, Again, Spot};
use crate::agents::AgentSpec;
use crate::cli::{Permissions, Run};
use crate::event::{self, Answer, FileOperation, Level};
use crate::exit::Failure;
use crate::project::Project;
use crate::tty::Tty;

/// How long what is under way at the end of a turn may take.
const LAST_WORK: Duration = Duration::from_secs(5);

/// How many tool calls are known at once, for what their permission requests leave out, how much of each, and of all.
const KNOWN_TOOLS: usize = 64;
const KNOWN_BYTES: usize = 1 << 20;
const ALL_KNOWN_BYTES: usize = 8 << 20;

/// About what a part of a list takes beside its text.
const PART: usize = 256;

/// How many answers with content are made at once.
const ANSWERS: usize = 2;

/// What this machine does for the agent.
pub(crate) struct Services {
    /// Our own agent judges what it does, and tells us what it would do: it is asked about, and not judged again.
    is_built_in: bool,
    session: Session,
    policy: Policy,
    engine: Engine,
    files: Files,
    /// What confines the agent, and binds what is done for it, too.
    sandbox: Option<Sandbox>,
    terminals: Arc<Terminals>,
    /// The terminal to ask on; none when nobody is there.
    tty: Option<Arc<Tty>>,
    /// What is known of the tool calls that go on.
    tools: HashMap<ToolCallId, (SessionView, usize)>,
    known_bytes: usize,
    /// What was allowed by permission requests of this turn, and not done yet: doing it needs no second question.
    grants: Grants,
    /// Held while a file is compared with what was shown of it: one at a time, because they are held whole.
    comparing: Arc<tokio::sync::Semaphore>,
    tasks: JoinSet<Finished>,
    /// Held while an answer with content is made and until it is sent: an agent that does not read is not to have many
    /// of them in our memory.
    answering: Arc<Semaphore>,
    waiting: VecDeque<Asked>,
    /// The question that stands on the screen.
    asking: Option<AbortHandle>,
    /// The turn was cancelled: nothing more is asked, and nothing more is done.
    is_cancelled: bool,
    /// How many questions nobody was there to answer.
    unasked: u64,
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
}

impl Services {
    pub(crate) fn new(
        args: &Run,
        agent: &AgentSpec,
        cwd: &Path,
        directories: &[PathBuf],
        project: &Project,
        sandbox: Option<&Sandbox>,
    ) -> Result<Self, Failure> {
        let policy = args.permissions.map_or(Policy::Ask, Permissions::policy);
        let places = Places {
            config_dir: crate::paths::config()?,
            state_dir: crate::paths::state()?,
            project: Some(project.root.clone()),
        };
        let mut engine = Engine::open(places, policy);
        if let Some((name, rules)) = project.permission_rules() {
            engine.set_repository_rules(&name, rules);
        }
        let pass_env = crate::agents::config::Config::read()?.command_env;
        let sandbox = sandbox.cloned();
        let confining = sandbox.clone();
        let terminals = Terminals::new(Limits::default()).confine(move |command| {
            let command = attache_host::environment::start_from(command, &pass_env);
            confining.iter().fold(command, |command, sandbox| sandbox.confine(command))
        });
        let files = Files::open(cwd, directories).map_err(|error| Failure::usage(error.to_string()))?;
        let mut session = Session::new(agent.identity(cwd), "", cwd);
        session.roots.extend_from_slice(directories);
        // Asking takes somebody who sees the question.
        let tty = if std::io::stderr().is_terminal() { Tty::open().ok().map(Arc::new) } else { None };
        Ok(Services {
            is_built_in: agent.is_built_in,
            session,
            policy,
            engine,
            files,
            sandbox,
            terminals: Arc::new(terminals),
            tty,
            tools: HashMap::new(),
            known_bytes: 0,
            is_cancelled: false,
            grants: Grants::default(),
            comparing: Arc::new(tokio::sync::Semaphore::new(1)),
            tasks: JoinSet::new(),
            answering: Arc::new(Semaphore::new(ANSWERS)),
            waiting: VecDeque::new(),
            asking: None,
            unasked: 0,
        })
    }

    /// Offers what is served here. Our own agent does everything itself, in its sandbox, and by the same rules.
    pub(crate) fn offer(client: Client, agent: &AgentSpec) -> Client {
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

    /// Whether a person is being asked.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Learns what a tool call is about: no more of it than a permission request may leave out.
    pub(crate) fn note(&mut self, update: &SessionUpdate) {
        let (id, is_final, size) = match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                (&call.tool_call_id, call.status.set().is_some_and(|status| status.is_final()), size_of_call(call))
            }
            SessionUpdate::ToolCallContentChunk(chunk) => (&chunk.tool_call_id, false, size_of_content(&chunk.content)),
            _ => return,
        };
        let (mut view, before) = self.tools.remove(id).unwrap_or_default();
        self.known_bytes -= before;
        let total = before + size;
        let is_too_much =
            total > KNOWN_BYTES || self.known_bytes + total > ALL_KNOWN_BYTES || self.tools.len() >= KNOWN_TOOLS;
        // What is too much to keep is not known, and then its request has to speak for itself.
        if is_final || is_too_much {
            return;
        }
        match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                let mut kept = ToolCallUpdate::new(call.tool_call_id.clone());
                kept.kind = call.kind.clone();
                kept.title = call.title.clone();
                kept.raw_input = call.raw_input.clone();
                kept.content = call.content.clone();
                kept.locations = call.locations.clone();
                view.apply(&SessionUpdate::ToolCallUpdate(kept.into()))
            }
            other => view.apply(other),
        };
        self.known_bytes += total;
        self.tools.insert(id.clone(), (view, total));
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
            Event::Permission(_) | Event::ReadTextFile(_) | Event::WriteTextFile(_) | Event::CreateTerminal(_)
        );
        if self.is_cancelled && is_work {
            // Dropped, a question is cancelled and a request refused.
            return Vec::new();
        }
        match event {
            Event::Permission(ask) => {
                let id = ask.tool_call().map(|call| &call.tool_call_id);
                let known = id.and_then(|id| self.tools.get(id)?.0.tool_call(id));
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
            other => {
                self.serve_terminal(other);
                Vec::new()
            }
        }
    }

    fn serve_terminal(&mut self, event: Event) {
        let terminals = self.terminals.clone();
        let answering = self.answering.clone();
        self.tasks.spawn(async move {
            let _ = match event {
                Event::TerminalOutput(call) => {
                    let _held = answering.acquire().await;
                    let output = terminals.output(&call).map_err(|error| error.to_peer());
                    call.reply(output).await
                }
                Event::WaitForTerminalExit(call) => {
                    let status = terminals.wait_for_exit(&call).await.map_err(|error| error.to_peer());
                    call.reply(status).await
                }
                Event::KillTerminal(call) => {
                    let killed = terminals.kill(&call).await.map_err(|error| error.to_peer());
                    call.reply(killed).await
                }
                Event::ReleaseTerminal(call) => {
                    let released = terminals.release(&call).map_err(|error| error.to_peer());
                    call.reply(released).await
                }
                other => other.decline().await,
            };
            Finished::Events(Vec::new())
        });
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
        let mut decision = self.engine.decide(&subject);
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
        let decision = self.engine.decide(&subject);
        let mut asked = Asked { subject, decision, what };
        if asked.decision.verdict == Verdict::Ask
            && let (What::Run(..), [action]) = (&asked.what, asked.subject.actions.as_slice())
            && self.grants.take(&self.session, action, Instant::now())
        {
            asked.grant();
        }
        self.settle(asked)
    }

    fn settle(&mut self, mut asked: Asked) -> Vec<event::Event> {
        if self.is_cancelled {
            return Vec::new();
        }
        match asked.decision.verdict {
            Verdict::Allow => self.perform(asked, Scope::Once, false),
            Verdict::Deny => self.refuse(asked),
            Verdict::Ask if self.tty.is_none() => {
                self.unasked += 1;
                asked.decision.reason = format!("nobody is there to ask: {}", asked.decision.reason);
                self.refuse(asked)
            }
            Verdict::Ask => {
                self.waiting.push_back(asked);
                Vec::new()
            }
        }
    }

    /// Whether there is a question to ask, and none is being asked.
    pub(crate) fn wants_to_ask(&self) -> bool {
        self.asking.is_none() && !self.waiting.is_empty()
    }

    /// Asks the next question, one at a time. From now on until it is answered, nobody else writes to the terminal.
    pub(crate) fn ask_next(&mut self) {
        let Some(tty) = self.tty.clone().filter(|_| self.asking.is_none()) else { return };
        let Some(mut asked) = self.waiting.pop_front() else { return };
        let files = self.files.clone();
        let asking = self.tasks.spawn(async move {
            if let What::Write(call, spot) = &asked.what {
                asked.subject.diffs = vec![files::before_and_after(spot.files(&files), spot, call).await];
            }
            let question = Question::new(&asked.subject, &asked.decision);
            let reply = ask::ask(&tty, &question).await.unwrap_or(Reply::Deny);
            Finished::Answered(Box::new(asked), reply)
        });
        self.asking = Some(asking);
    }

    /// Does what was asked for. What the agent did not ask about, and no person was, is not told as a permission.
    fn perform(&mut self, asked: Asked, scope: Scope, by_person: bool) -> Vec<event::Event> {
        let is_told = by_person || matches!(asked.what, What::Permission(_));
        let mut events: Vec<_> = is_told.then(|| permission_event(&asked, Answer::Allowed)).into_iter().collect();
        match asked.what {
            What::Permission(ask) => match self.choice(&ask, scope) {
                Ok(outcome) => {
                    self.grants.add(&asked.subject, Instant::now());
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

    fn run(&mut self, call: Pending<CreateTerminalRequest>, invocation: &Invocation) -> Option<event::Event> {
        let created = self.terminals.start(&call.session_id, invocation, call.output_byte_limit);
        let view =
            created.as_ref().ok().and_then(|created| self.terminals.view(&call.session_id, &created.terminal_id).ok());
        let begun = match (&created, &view) {
            (Err(error), _) => {
                Some(event::Event::notice(Level::Warning, format!("a command could not be run: {error}")))
            }
            (Ok(_), None) => None,
            (Ok(_), Some(view)) => Some(event::Event::Command(event::Command {
                id: view.id().to_string(),
                command: Some(view.command().to_owned()),
                cwd: Some(view.cwd().display().to_string()),
                ..event::Command::default()
            })),
        };
        self.tasks.spawn(async move {
            let _ = call.reply(created.map_err(|error| error.to_peer())).await;
            let ended = match view {
                Some(view) => Some(command_end(view).await),
                None => None,
            };
            Finished::Events(ended.into_iter().collect())
        });
        begun
    }

    fn refuse(&mut self, asked: Asked) -> Vec<event::Event> {
        let told = permission_event(&asked, Answer::Denied);
        match asked.what {
            What::Permission(ask) => {
                // Our own agent tells a no from a question that nobody was there to answer.
                let is_unanswered = self.is_built_in && self.tty.is_none();
                let outcome = match is_unanswered {
                    true => PermissionOutcome::cancelled(),
                    false => permission::reject(&ask.options),
                };
                self.answer(ask, outcome);
            }
            What::Read(call, _) => self.decline(call),
            What::Write(call, _) => self.decline(call),
            What::Run(call, _) => self.decline(call),
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

    fn decline<Q>(&mut self, call: Pending<Q>)
    where
        Q: attache::proto::method::Request + Send + 'static,
        Q::Response: Send + Sync,
    {
        self.tasks.spawn(async move {
            let _ = call.reply(Err(ErrorObject::internal("permission denied"))).await;
            Finished::Events(Vec::new())
        });
    }

    /// Waits for something that takes its time. It can be cancelled.
    pub(crate) async fn next(&mut self) -> Vec<event::Event> {
        loop {
            let finished = match self.tasks.join_next().await {
                Some(Ok(finished)) => finished,
                // Ended with its turn.
                Some(Err(_)) => continue,
                None => std::future::pending().await,
            };
            let events = self.take(finished);
            if !events.is_empty() {
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
            // An answer that came just before a cancel is none any more.
            Finished::Answered(..) if self.is_cancelled => Vec::new(),
            Finished::Answered(asked, reply) => {
                self.asking = None;
                self.replied(*asked, reply)
            }
        }
    }

    fn replied(&mut self, mut asked: Asked, reply: Reply) -> Vec<event::Event> {
        match reply {
            Reply::Deny => {
                asked.decision.reason = "the person said no".into();
                self.refuse(asked)
            }
            Reply::Allow(scope) => {
                let rules = std::mem::take(&mut asked.decision.suggestion);
                let mut events = Vec::new();
                let is_ours = !self.is_built_in || scope == Scope::Always;
                match is_ours.then(|| self.engine.remember(scope, &self.session, &rules)) {
                    Some(Err(error)) => {
                        let text = format!("this is allowed once only: {error}");
                        events.push(event::Event::notice(Level::Warning, text));
                    }
                    Some(Ok(())) | None => events.extend(self.saved(scope, &rules)),
                }
                asked.decision.reason = "the person said yes".into();
                events.extend(self.perform(asked, scope, true));
                events
            }
        }
    }

    /// Which rules an answer has left, and how to take them back.
    fn saved(&self, scope: Scope, rules: &[Rule]) -> Option<event::Event> {
        let rules = rules.iter().map(|rule| format!("  {rule}")).collect::<Vec<_>>().join("\n");
        let place = match scope {
            Scope::Once => return None,
            Scope::Session => return Some(event::Event::notice(Level::Info, format!("for this session:\n{rules}"))),
            Scope::Project => self.engine.places().project_file()?,
            Scope::Always => self.engine.places().user_file(),
        };
        let text = format!("saved:\n{rules}\nhint: to take it back, remove it from `{}`", place.display());
        Some(event::Event::notice(Level::Info, text))
    }

    /// The turn is cancelled: nothing more is asked, and nothing that is asked for from now on is done.
    pub(crate) fn cancel(&mut self) {
        self.is_cancelled = true;
        self.waiting.clear();
        // What the question belongs to is answered by its end.
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
    }

    /// The turn has ended: lets what is under way come to its end, and ends what the agent left running.
    pub(crate) async fn finish(&mut self) -> Vec<event::Event> {
        self.cancel();
        self.grants.clear();
        self.terminals.end_session(&self.session.id);
        let mut events = Vec::new();
        let rest = async {
            while let Some(finished) = self.tasks.join_next().await {
                if let Ok(Finished::Events(more)) = finished {
                    events.extend(more);
                }
            }
        };
        // A disk that does not answer is not waited for.
        let _ = tokio::time::timeout(LAST_WORK, rest).await;
        if self.unasked > 0 {
            let (why, how) = match Tty::open() {
                Ok(_) => ("stderr is not the terminal, where questions are seen", "leave stderr there, "),
                Err(_) => ("there is no terminal to ask on", ""),
            };
            let text = format!(
                "{} refused, because {why}\nhint: {how}choose with --permissions, or write rules",
                if self.unasked == 1 { "1 request was".to_owned() } else { format!("{} requests were", self.unasked) }
            );
            events.push(event::Event::notice(Level::Warning, text));
        }
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

/// About how much is kept of a tool call.
fn size_of_call(call: &ToolCallUpdate) -> usize {
    let content: usize = call.content.set().into_iter().flatten().map(size_of_content).sum();
    let input = call.raw_input.set().map_or(0, |input| input.as_str().len());
    let title = call.title.set().map_or(0, String::len);
    let locations: usize = call.locations.set().into_iter().flatten().map(|place| place.path.len() + PART).sum();
    PART + content + input + title + locations
}

/// About how much there is in a part of a tool call.
fn size_of_content(content: &ToolCallContent) -> usize {
    PART + match content {
        ToolCallContent::Content(block) => match &block.content {
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::Audio(audio) => audio.data.len(),
            other => event::text_of(other).len(),
        },
        ToolCallContent::Diff(diff) => match &**diff {
            Diff::Text(diff) => diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len),
            Diff::Patch(diff) => diff.patch.as_ref().map_or(0, |patch| patch.text.len()) + diff.changes.len() * 256,
        },
        _ => 0,
    }
}

/// Waits for the end of a command, and tells it.
async fn command_end(mut view: TerminalView) -> event::Event {
    while view.exit_status().is_none() && view.changed().await {}
    let status = view.exit_status().unwrap_or_default();
    event::Event::Command(event::Command {
        id: view.id().to_string(),
        exit_code: status.exit_code,
        signal: status.signal,
        tail: Some(event::tail_of(&view.output_since(0).text)),
        ..event::Command::default()
    })
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
