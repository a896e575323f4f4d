//! What this machine does for the agent during a run: files, commands, and answers to its questions.

use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::client::{Pending, PermissionAsk};
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache::model::permission::PermissionOutcome;
use attache::model::session::SessionId;
use attache::model::terminal::CreateTerminalRequest;
use attache::model::tool::{ToolCallContent, ToolCallId};
use attache::model::update::SessionUpdate;
use attache::{Client, Event, SessionView};
use attache_host::files::Files;
use attache_host::permission::{
    self, Action, Decision, Engine, Places, Policy, Question, Scope, Session, Subject, Verdict,
};
use attache_host::sandbox::Sandbox;
use attache_host::terminals::{self, Limits, TerminalView, Terminals};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::ask::{self, Reply};
use super::files::{self, Elsewhere};
use crate::agents::AgentSpec;
use crate::cli::{Permissions, Run};
use crate::event::{self, Answer, FileOperation, Level};
use crate::exit::Failure;
use crate::project::Project;
use crate::tty::Tty;

/// How long what is under way at the end of a turn may take.
const LAST_WORK: Duration = Duration::from_secs(5);

/// How many tool calls are known at once, for what their permission requests leave out, and how much of each.
const KNOWN_TOOLS: usize = 64;
const KNOWN_BYTES: usize = 1 << 20;

/// How many allowed actions of a turn are remembered.
const GRANTED: usize = 1000;

/// How many answers with content are made at once.
const ANSWERS: usize = 2;

/// What this machine does for the agent.
pub(crate) struct Services {
    session: Session,
    policy: Policy,
    engine: Engine,
    files: Files,
    terminals: Arc<Terminals>,
    /// The terminal to ask on; none when nobody is there.
    tty: Option<Arc<Tty>>,
    /// What is known of the tool calls that go on.
    tools: HashMap<ToolCallId, (SessionView, usize)>,
    /// What was allowed by permission requests of this turn: doing it needs no second question.
    granted: Vec<Action>,
    tasks: JoinSet<Finished>,
    /// Held while an answer with content is made and until it is sent: an agent that does not read is not to have many
    /// of them in our memory.
    answering: Arc<Semaphore>,
    waiting: VecDeque<Asked>,
    /// The question that stands on the screen.
    asking: Option<AbortHandle>,
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
    Read(Pending<ReadTextFileRequest>, Option<Elsewhere>),
    Write(Pending<WriteTextFileRequest>, Option<Elsewhere>),
    Run(Pending<CreateTerminalRequest>),
}

/// What came of something that took its time.
enum Finished {
    Events(Vec<event::Event>),
    /// A file is not where it seemed to be.
    Elsewhere(Box<What>),
    Answered(Box<Asked>, Reply),
}

impl Services {
    pub(crate) fn new(
        args: &Run,
        agent: &str,
        cwd: &Path,
        directories: &[PathBuf],
        project: &Project,
        sandbox: Option<&Sandbox>,
    ) -> Result<Self, Failure> {
        let policy = match args.permissions {
            None | Some(Permissions::Ask) => Policy::Ask,
            Some(Permissions::Reads) => Policy::Reads,
            Some(Permissions::Edits) => Policy::Edits,
            Some(Permissions::All) => Policy::All,
            Some(Permissions::None) => Policy::None,
        };
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
        let terminals = Terminals::new(Limits::default()).confine(move |command| {
            let command = attache_host::environment::start_from(command, &pass_env);
            sandbox.iter().fold(command, |command, sandbox| sandbox.confine(command))
        });
        let files = Files::open(cwd, directories).map_err(|error| Failure::usage(error.to_string()))?;
        let mut session = Session::new(agent, "", cwd);
        session.roots.extend_from_slice(directories);
        // Asking takes somebody who sees the question.
        let tty = if std::io::stderr().is_terminal() { Tty::open().ok().map(Arc::new) } else { None };
        Ok(Services {
            session,
            policy,
            engine,
            files,
            terminals: Arc::new(terminals),
            tty,
            tools: HashMap::new(),
            granted: Vec::new(),
            tasks: JoinSet::new(),
            answering: Arc::new(Semaphore::new(ANSWERS)),
            waiting: VecDeque::new(),
            asking: None,
            unasked: 0,
        })
    }

    /// Offers what is served here.
    pub(crate) fn offer(client: Client, agent: &AgentSpec) -> Client {
        let client = client.write_files().terminals();
        if agent.reads_itself { client } else { client.read_files() }
    }

    /// What is wrong with the files of rules, for the person to know before anything is asked.
    pub(crate) fn problems(&self) -> Vec<event::Event> {
        self.engine.problems().map(|problem| event::Event::notice(Level::Warning, problem.to_string())).collect()
    }

    /// Names the session that is served.
    pub(crate) fn set_session(&mut self, id: &SessionId) {
        self.session.id = id.clone();
    }

    /// Whether a person is being asked.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Learns what a tool call is about.
    pub(crate) fn note(&mut self, update: &SessionUpdate) {
        let (id, is_final, size) = match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                let is_final = call.status.set().is_some_and(|status| status.is_final());
                let content: usize = call.content.set().into_iter().flatten().map(size_of_content).sum();
                let input = call.raw_input.set().map_or(0, |input| input.as_str().len());
                (&call.tool_call_id, is_final, content + input)
            }
            SessionUpdate::ToolCallContentChunk(chunk) => (&chunk.tool_call_id, false, size_of_content(&chunk.content)),
            _ => return,
        };
        let known = self.tools.remove(id);
        if is_final {
            return;
        }
        let (mut view, total) = known.unwrap_or_default();
        let total = total + size;
        // What is too much to keep is not known, and then its request has to speak for itself.
        if total > KNOWN_BYTES || self.tools.len() >= KNOWN_TOOLS {
            return;
        }
        view.apply(update);
        self.tools.insert(id.clone(), (view, total));
    }

    /// Takes something that the agent asks. Returns what there is to tell at once.
    pub(crate) fn serve(&mut self, event: Event) -> Vec<event::Event> {
        match event {
            Event::Permission(ask) => {
                let id = ask.tool_call().map(|call| &call.tool_call_id);
                let known = id.and_then(|id| self.tools.get(id)?.0.tool_call(id));
                let subject = Subject::from_request(self.session.clone(), &ask, known);
                self.decide(subject, What::Permission(ask))
            }
            Event::ReadTextFile(call) => {
                let subject = Subject::from_read(self.session.clone(), &call);
                self.decide(subject, What::Read(call, None))
            }
            Event::WriteTextFile(call) => {
                let subject = Subject::from_write(self.session.clone(), &call);
                self.decide(subject, What::Write(call, None))
            }
            Event::CreateTerminal(call) => {
                // What will be executed is decided about, not what was sent.
                let mut words = terminals::words(&call, &self.session.cwd);
                let mut executed = call.request().clone();
                executed.command = words.remove(0);
                executed.args = words;
                let subject = Subject::from_terminal(self.session.clone(), &executed);
                self.decide(subject, What::Run(call))
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

    fn decide(&mut self, subject: Subject, what: What) -> Vec<event::Event> {
        let mut decision = self.engine.decide(&subject);
        let is_granted =
            !matches!(what, What::Permission(_)) && subject.actions.iter().all(|action| self.grants(action));
        if decision.verdict == Verdict::Ask && is_granted {
            decision.verdict = Verdict::Allow;
            decision.reason = "it was allowed with its tool call".into();
        }
        self.settle(Asked { subject, decision, what })
    }

    /// Decides again about a file that is not where it seemed to be.
    fn decide_elsewhere(&mut self, what: What) -> Vec<event::Event> {
        let (subject, elsewhere) = match &what {
            What::Read(call, Some(elsewhere)) => {
                let resolved = ReadTextFileRequest::new(call.session_id.clone(), elsewhere.path.to_string_lossy());
                (Subject::from_read(self.session.clone(), &resolved), elsewhere)
            }
            What::Write(call, Some(elsewhere)) => {
                let path = elsewhere.path.to_string_lossy();
                let resolved = WriteTextFileRequest::new(call.session_id.clone(), path, call.content.as_str());
                (Subject::from_write(self.session.clone(), &resolved), elsewhere)
            }
            _ => return Vec::new(),
        };
        if !elsewhere.is_hard_link {
            return self.decide(subject, what);
        }
        let mut decision = self.engine.decide(&subject);
        if decision.verdict == Verdict::Allow && self.policy != Policy::All {
            decision.verdict = Verdict::Ask;
            decision.reason = "the file has more than one name, and may be one from outside".into();
        }
        self.settle(Asked { subject, decision, what })
    }

    /// Whether a permission request of this turn has allowed this.
    fn grants(&self, wanted: &Action) -> bool {
        self.granted.iter().any(|granted| permission::covers(granted, wanted, &self.session.cwd))
    }

    fn settle(&mut self, mut asked: Asked) -> Vec<event::Event> {
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
                self.ask_next();
                Vec::new()
            }
        }
    }

    /// Asks the next question, one at a time.
    fn ask_next(&mut self) {
        let Some(tty) = self.tty.clone().filter(|_| self.asking.is_none()) else { return };
        let Some(mut asked) = self.waiting.pop_front() else { return };
        let files = self.files.clone();
        let asking = self.tasks.spawn(async move {
            if let What::Write(call, _) = &asked.what {
                asked.subject.diffs = vec![files::before_and_after(files, call).await];
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
            What::Permission(ask) => match permission::allow(&ask.options, scope) {
                Ok(outcome) => {
                    self.granted.extend(asked.subject.actions);
                    let old = self.granted.len().saturating_sub(GRANTED);
                    self.granted.drain(..old);
                    self.answer(ask, outcome);
                }
                Err(error) => {
                    let decision = Decision { reason: error.to_string(), ..asked.decision };
                    return self.refuse(Asked { subject: asked.subject, decision, what: What::Permission(ask) });
                }
            },
            What::Read(call, elsewhere) => {
                let files = self.files.clone();
                let answering = self.answering.clone();
                self.tasks.spawn(async move {
                    let _held = answering.acquire().await;
                    let path = call.path.clone();
                    let work = move |request: &ReadTextFileRequest, allowed: Option<&Path>| match allowed {
                        Some(allowed) => files.read_outside(request, allowed),
                        None => files.read(request),
                    };
                    match files::touch(FileOperation::Read, path, call, elsewhere, work).await {
                        Ok(event) => Finished::Events(vec![event]),
                        Err((call, elsewhere)) => Finished::Elsewhere(Box::new(What::Read(call, Some(elsewhere)))),
                    }
                });
            }
            What::Write(call, elsewhere) => {
                let files = self.files.clone();
                self.tasks.spawn(async move {
                    let path = call.path.clone();
                    let work = move |request: &WriteTextFileRequest, allowed: Option<&Path>| match allowed {
                        Some(allowed) => files.write_outside(request, allowed),
                        None => files.write(request),
                    };
                    match files::touch(FileOperation::Write, path, call, elsewhere, work).await {
                        Ok(event) => Finished::Events(vec![event]),
                        Err((call, elsewhere)) => Finished::Elsewhere(Box::new(What::Write(call, Some(elsewhere)))),
                    }
                });
            }
            What::Run(call) => events.extend(self.run(call)),
        }
        events
    }

    fn run(&mut self, call: Pending<CreateTerminalRequest>) -> Option<event::Event> {
        let created = self.terminals.create(&call, &self.session.cwd);
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
                let outcome = permission::reject(&ask.options);
                self.answer(ask, outcome);
            }
            What::Read(call, _) => self.decline(call),
            What::Write(call, _) => self.decline(call),
            What::Run(call) => self.decline(call),
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
            Finished::Elsewhere(what) => self.decide_elsewhere(*what),
            Finished::Answered(asked, reply) => {
                self.asking = None;
                let events = self.replied(*asked, reply);
                self.ask_next();
                events
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
                if let Err(error) = self.engine.remember(scope, &self.session, &rules) {
                    events.push(event::Event::notice(Level::Warning, format!("this is allowed once only: {error}")));
                }
                asked.decision.reason = "the person said yes".into();
                events.extend(self.perform(asked, scope, true));
                events
            }
        }
    }

    /// The turn is cancelled: nothing more is asked.
    pub(crate) fn cancel(&mut self) {
        self.waiting.clear();
        // What the question belongs to is answered by its end.
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
    }

    /// The turn has ended: lets what is under way come to its end, and ends what the agent left running.
    pub(crate) async fn finish(&mut self) -> Vec<event::Event> {
        self.cancel();
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
            let text = format!(
                "{} refused, because there is no terminal to ask on\nhint: choose with --permissions, or write rules",
                if self.unasked == 1 { "1 request was".to_owned() } else { format!("{} requests were", self.unasked) }
            );
            events.push(event::Event::notice(Level::Warning, text));
        }
        events
    }
}

/// About how much there is in a part of a tool call.
fn size_of_content(content: &ToolCallContent) -> usize {
    match content {
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
