//! A client with a session at an agent: prompts in, transcripts out, everything that the agent asks for answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::agent::Server;
use attache::client::{Pending, Session};
use attache::model::config::{ConfigKind, ConfigSetting};
use attache::model::elicitation::{CreateElicitationResponse, ElicitationValue};
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileResponse};
use attache::model::permission::PermissionRequest;
use attache::model::update::SessionUpdate;
use attache::{Connection, Error, Event, Prompt};
use attache_agent::CodingAgent;
use attache_host::files::Files;
use attache_host::terminals::{Limits, Terminals};
use tokio::io::DuplexStream;

use super::LONGEST;
use super::person::{Person, Says};
use super::transcript::Transcript;
use super::wire::Wire;

/// A client of an agent, and its session.
pub(crate) struct Chat {
    pub(crate) person: Person,
    pub(crate) connection: Connection,
    pub(crate) session: Option<Session>,
    pub(crate) wire: Wire,
    /// Every request for permission so far.
    pub(crate) asked: Vec<PermissionRequest>,
    /// What was asked of the client's files and terminals, such as `read a.txt`.
    pub(crate) served: Vec<String>,
    /// What the last turn that failed was answered with.
    pub(crate) failed: Option<ErrorObject>,
    /// Every update of the last turn.
    pub(crate) updates: Vec<SessionUpdate>,
    root: PathBuf,
    cwd: PathBuf,
    terminals: Arc<Terminals>,
    held: Vec<Pending<ReadTextFileRequest>>,
}

impl Chat {
    pub(crate) async fn connect(server: Server<CodingAgent>, person: Person, root: &Path) -> Self {
        Chat::connect_to(person, root, |agent| {
            let (reader, writer) = tokio::io::split(agent);
            tokio::spawn(server.connect(reader, writer));
        })
        .await
    }

    /// The same with an agent that is somewhere else, and takes its end of the wire.
    pub(crate) async fn connect_to(person: Person, root: &Path, agent: impl FnOnce(DuplexStream)) -> Self {
        let says = person.says;
        let (wire, agent_end, client) = Wire::new(move |line| says.spoil(line));
        agent(agent_end);
        let (reader, writer) = tokio::io::split(client);
        let connection = person.client().connect(reader, writer).await.unwrap();
        Chat {
            person,
            connection,
            session: None,
            wire,
            asked: Vec::new(),
            served: Vec::new(),
            failed: None,
            updates: Vec::new(),
            root: root.to_owned(),
            cwd: root.to_owned(),
            terminals: Arc::new(Terminals::new(Limits::default())),
            held: Vec::new(),
        }
    }

    /// Opens a session, which takes the place of the one before.
    pub(crate) async fn open(&mut self, cwd: &Path) {
        self.cwd = cwd.to_owned();
        self.session = Some(self.connection.session(cwd).open().await.unwrap());
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().unwrap()
    }

    /// Sets an option of the session.
    pub(crate) async fn set(&self, option: &str, value: &str) {
        self.session().set_option(option, ConfigSetting::Id(value.into())).await.unwrap();
    }

    /// What an option was when the session was opened.
    pub(crate) fn option(&self, id: &str) -> Option<String> {
        let option = self.session().options().into_iter().find(|option| option.id.as_str() == id)?;
        match &option.kind {
            ConfigKind::Select(select) => Some(select.current.as_str().to_owned()),
            _ => None,
        }
    }

    /// A whole turn: what the person saw.
    pub(crate) async fn turn(&mut self, prompt: impl Into<Prompt>) -> String {
        let turn = self.run(prompt.into());
        tokio::time::timeout(LONGEST, turn).await.expect("the turn ends in time")
    }

    async fn run(&mut self, prompt: Prompt) -> String {
        let session = self.session().clone();
        let mut transcript = Transcript::default();
        self.updates.clear();
        let mut turn = match session.prompt(prompt).await {
            Ok(turn) => turn,
            Err(error) => return format!("not sent: {error}"),
        };
        loop {
            match turn.next().await {
                Ok(Some(event)) => self.handle(event, &mut transcript).await,
                Ok(None) => break transcript.plain(format!("stop {}", turn.stop().unwrap())),
                Err(Error::Refused(error)) => {
                    self.failed = Some(error.clone());
                    break transcript.plain(format!("error {} {}", error.code, told(&error)));
                }
                Err(error) => break transcript.plain(format!("broken {error}")),
            }
        }
        transcript.render(&self.root)
    }

    /// Shows or answers what the agent sent.
    pub(crate) async fn handle(&mut self, event: Event, transcript: &mut Transcript) {
        match event {
            Event::Update(update) => {
                transcript.update(&update);
                self.updates.push(update);
            }
            Event::Permission(ask) => {
                let kinds: Vec<&str> = ask.options.iter().map(|option| option.kind.as_str()).collect();
                let title = ask.title.as_deref().unwrap_or_default();
                let says = self.person.says;
                transcript.plain(format!("permission {title:?} [{}] → {}", kinds.join(", "), says.word()));
                self.asked.push((*ask).clone());
                if let Some(hook) = &self.person.before_answer {
                    hook.run();
                }
                says.say(ask).await;
            }
            Event::Elicitation(call) => {
                let answer = self.person.forms.flatten();
                transcript.plain(format!("question {:?} → {}", call.message, answer.unwrap_or("declined")));
                let value = |text: &str| vec![("answer".into(), ElicitationValue::Text(text.into()))];
                let response = answer.map(|text| CreateElicitationResponse::accept(value(text)));
                call.reply(Ok(response.unwrap_or_else(CreateElicitationResponse::decline))).await.unwrap();
            }
            Event::ReadTextFile(call) => {
                self.serve("read", &call.path);
                self.held.push(call);
                if self.held.len() >= self.person.held_reads {
                    self.person.held_reads = 0;
                    self.answer_reads().await;
                }
            }
            Event::WriteTextFile(call) => {
                self.serve("write", &call.path);
                let written = self.files().write(call.path.as_ref(), &call.content);
                let written = written.map(|()| WriteTextFileResponse::new()).map_err(|error| error.to_peer());
                call.reply(written).await.unwrap();
            }
            other => self.terminal(other).await,
        }
    }

    async fn answer_reads(&mut self) {
        let files = self.files();
        for call in std::mem::take(&mut self.held).into_iter().rev() {
            let read = files.read_lines(call.path.as_ref(), call.line, call.limit);
            let read = read.map(ReadTextFileResponse::new).map_err(|error| error.to_peer());
            call.reply(read).await.unwrap();
        }
    }

    async fn terminal(&mut self, event: Event) {
        match event {
            Event::CreateTerminal(call) => {
                let line = call.args.last().cloned().unwrap_or_default();
                self.serve("terminal", &line);
                let created = self.terminals.create(call.request(), &self.cwd).map_err(|error| error.to_peer());
                call.reply(created).await.unwrap();
            }
            Event::WaitForTerminalExit(call) => {
                let terminals = self.terminals.clone();
                tokio::spawn(async move {
                    let exit = terminals.wait_for_exit(call.request()).await.map_err(|error| error.to_peer());
                    call.reply(exit).await
                });
            }
            Event::TerminalOutput(call) => {
                let output = self.terminals.output(call.request()).map_err(|error| error.to_peer());
                call.reply(output).await.unwrap();
            }
            Event::KillTerminal(call) => {
                self.serve("kill", "");
                let killed = self.terminals.kill(call.request()).await.map_err(|error| error.to_peer());
                call.reply(killed).await.unwrap();
            }
            Event::ReleaseTerminal(call) => {
                self.serve("release", "");
                let released = self.terminals.release(call.request()).map_err(|error| error.to_peer());
                call.reply(released).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    fn files(&self) -> Files {
        Files::open(&self.cwd, &[]).unwrap()
    }

    fn serve(&mut self, what: &str, path: &str) {
        let path = path.strip_prefix(self.cwd.to_str().unwrap()).unwrap_or(path).trim_start_matches('/');
        self.served.push(format!("{what} {path}").trim_end().to_owned());
    }

    /// What is said to requests for permission from now on. What only the wire can say has to be said from the start.
    pub(crate) fn says(&mut self, says: Says) {
        self.person.says = says;
    }
}

/// An error as clients show it: what a model's server said is in the data.
fn told(error: &ErrorObject) -> String {
    let details = error.data.as_ref().and_then(|data| data.get("details")?.parse::<String>().ok());
    let (what, hint) = error.message.split_at(error.message.find('\n').unwrap_or(error.message.len()));
    details.map_or_else(|| error.message.clone(), |details| format!("{what}: {details}{hint}"))
}
