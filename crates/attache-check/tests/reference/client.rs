//! The reference client: does a list of steps, and answers what it is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use attache::client::{Connection, Session, Turn};
use attache::model::Meta;
use attache::model::auth::AuthMethod;
use attache::model::capability::Capability;
use attache::model::config::ConfigSetting;
use attache::model::content::{
    ContentBlock, EmbeddedResource, ImageContent, ResourceContents, ResourceLink, TextResource,
};
use attache::model::elicitation::{CreateElicitationResponse, ElicitationMode, ElicitationValue};
use attache::model::error::ErrorObject;
use attache::model::form::{ElicitationProperty, ElicitationSchema};
use attache::model::fs::{ReadTextFileResponse, WriteTextFileResponse};
use attache::model::mcp::{McpServerHttp, McpServerStdio};
use attache::model::session::{ListSessionsRequest, SessionId};
use attache::model::terminal::{
    CreateTerminalResponse, ExitStatus, KillTerminalResponse, ReleaseTerminalResponse, TerminalOutputResponse,
};
use attache::model::tool::ToolCallStatus;
use attache::model::update::SessionUpdate;
use attache::{Client, Error, Event, Protocol};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

/// How long the client stays when it has done everything.
const REST: Duration = Duration::from_secs(5);

/// How many pages of a list are read at most.
const PAGES: usize = 5;

/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(200);

/// Something that the client does. Steps after the first session are about the one that was opened last.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Login,
    Logout,
    /// Opens a session.
    New,
    /// Opens a session with an MCP server over stdio.
    NewWithServer,
    /// Opens a session with all that can be said: more directories, MCP servers.
    NewWithAll,
    Load,
    Resume,
    Fork,
    /// Reads all pages.
    List,
    Close,
    Delete,
    Prompt(&'static str),
    /// A prompt with a link and, where the agent takes them, a picture and a resource.
    PromptWithAll(&'static str),
    /// A prompt with a link.
    PromptWithLink(&'static str),
    /// A prompt that is cancelled when the agent says something, or asks for permission.
    PromptAndCancel(&'static str),
    /// A prompt whose tool call is cancelled when that is offered.
    PromptAndCancelCall(&'static str),
    /// A prompt during which another one is sent.
    TwoPrompts(&'static str, &'static str),
    /// A prompt to which every permission is refused.
    PromptAndReject(&'static str),
    SetOption(&'static str, ConfigSetting),
    /// A method that the agent does not have.
    Unknown,
    /// A method of the agent's own.
    Extension,
}

/// A client with all that it can do.
pub(crate) fn client(protocol: Protocol) -> Client {
    let client = Client::new("reference-client", "1.0").protocol(protocol).on_report(|_| {});
    client.read_files().write_files().terminals().forms().urls().switches().capabilities(|offered| {
        offered.meta = Meta::new("{\"_reference/client\":{}}").ok();
        offered.auth.terminal = Some(Capability::new());
        offered.session.notices = Some(Capability::new());
        offered.session.compaction = Some(Capability::new());
    })
}

/// Connects to an agent and does the steps; then rests, says so, and leaves. A step that the agent refuses is passed over.
pub(crate) async fn run(
    agent: impl AsyncRead + AsyncWrite + Send + 'static,
    protocol: Protocol,
    steps: Vec<Step>,
    rested: impl FnOnce(Duration) + Send,
) -> Result<(), Error> {
    let (reader, writer) = tokio::io::split(agent);
    let connection = client(protocol).connect(Box::pin(reader), Box::pin(writer)).await?;
    let mut player = Player { connection: connection.clone(), session: None, last: None, person: Person::default() };
    for step in &steps {
        // Everything else is something that the agent does not do, or not in time.
        if let Ok(Err(error @ Error::Closed(_))) = timeout(PATIENCE, player.play(step)).await {
            return Err(error);
        }
    }
    sleep(REST).await;
    rested(REST);
    drop(player);
    connection.shutdown().await;
    Ok(())
}

struct Player {
    connection: Connection,
    session: Option<Session>,
    /// The session that was opened last, also when it is closed.
    last: Option<SessionId>,
    person: Person,
}

/// When a prompt is cancelled.
#[derive(Clone, Copy, PartialEq)]
enum Cancel {
    Never,
    Turn,
    Call,
}

impl Player {
    fn session(&self) -> Result<&Session, Error> {
        self.session.as_ref().ok_or(Error::Invalid("no session is open".into()))
    }

    async fn play(&mut self, step: &Step) -> Result<(), Error> {
        let result = self.play_step(step).await;
        if let Some(session) = &self.session {
            self.last = Some(session.id().clone());
        }
        result
    }

    fn last(&self) -> Result<SessionId, Error> {
        self.last.clone().ok_or(Error::Invalid("no session was open".into()))
    }

    async fn play_step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Login => {
                let methods = self.connection.auth_methods().iter();
                let mut methods = methods.filter(|method| matches!(method, AuthMethod::Agent(_)));
                let id = methods.find_map(AuthMethod::id).ok_or(Error::NotOffered("logging in"))?;
                self.connection.authenticate(id).await?;
            }
            Step::Logout => self.connection.logout().await?,
            Step::New => self.session = Some(self.connection.session("/project").open().await?),
            Step::NewWithServer => {
                let stdio = McpServerStdio::new("files", "/usr/bin/mcp-files");
                self.session = Some(self.connection.session("/project").mcp_server(stdio).open().await?);
            }
            Step::NewWithAll => {
                let stdio = McpServerStdio::new("files", "/usr/bin/mcp-files");
                let http = McpServerHttp::new("web", "https://example.com/mcp");
                let builder =
                    self.connection.session("/project").directory("/library").mcp_server(stdio).mcp_server(http);
                self.session = Some(builder.open().await?);
            }
            Step::Load | Step::Resume | Step::Fork => {
                let id = self.last()?;
                let builder = self.connection.session("/project");
                self.session = Some(match step {
                    Step::Load => builder.load(id).await?,
                    Step::Resume => builder.resume(id).await?,
                    _ => builder.fork(id).await?,
                });
            }
            Step::List => self.list().await?,
            Step::Close => {
                let session = self.session.take().ok_or(Error::Invalid("no session is open".into()))?;
                session.close().await?;
            }
            Step::Delete => self.connection.delete_session(self.last()?).await?,
            Step::Prompt(text) => self.turn(text, Cancel::Never).await?,
            Step::PromptAndReject(text) => {
                self.person.rejects = true;
                let result = self.turn(text, Cancel::Never).await;
                self.person.rejects = false;
                result?;
            }
            Step::PromptAndCancel(text) => self.turn(text, Cancel::Turn).await?,
            Step::PromptAndCancelCall(text) => self.turn(text, Cancel::Call).await?,
            Step::PromptWithLink(text) => {
                let link = ResourceLink::new("notes", "file:///project/notes.txt");
                let turn = self.session()?.prompt(vec![ContentBlock::from(*text), link.into()]).await?;
                self.read(turn, Cancel::Never).await?;
            }
            Step::PromptWithAll(text) => {
                let link = ResourceLink::new("notes", "file:///project/notes.txt");
                let image = ImageContent::new("iVBORw0KGgo=", "image/png");
                let text_resource = TextResource::new("what it says", "file:///project/a.txt");
                let resource = EmbeddedResource::new(ResourceContents::Text(text_resource));
                let blocks: Vec<ContentBlock> = vec![(*text).into(), link.into(), image.into(), resource.into()];
                let turn = self.session()?.prompt(blocks).await?;
                self.read(turn, Cancel::Never).await?;
            }
            Step::TwoPrompts(first, second) => {
                let session = self.session()?.clone();
                let (first, second) = (session.prompt(*first).await?, session.prompt(*second).await?);
                self.read(first, Cancel::Never).await?;
                self.read(second, Cancel::Never).await?;
            }
            Step::SetOption(option, value) => {
                self.session()?.set_option(*option, value.clone()).await?;
            }
            Step::Unknown => {
                self.connection
                    .call_extension::<serde_json::Value>("_reference/unknown", &serde_json::json!({}))
                    .await?;
            }
            Step::Extension => {
                let params = serde_json::json!({"a": 1});
                self.connection.call_extension::<serde_json::Value>("_reference/echo", &params).await?;
            }
        }
        Ok(())
    }

    async fn list(&self) -> Result<(), Error> {
        let mut request = ListSessionsRequest::new();
        for _ in 0..PAGES {
            let page = self.connection.list_sessions(&request).await?;
            match page.next_cursor {
                Some(cursor) => request = ListSessionsRequest::new().cursor(cursor),
                None => break,
            }
        }
        Ok(())
    }

    async fn turn(&mut self, text: &str, cancel: Cancel) -> Result<(), Error> {
        let turn = self.session()?.prompt(text).await?;
        self.read(turn, cancel).await
    }

    /// Reads a turn to its end.
    async fn read(&mut self, mut turn: Turn, mut cancel: Cancel) -> Result<(), Error> {
        while let Some(event) = turn.next().await? {
            let is_reason = matches!(
                &event,
                Event::Permission(_) | Event::Update(SessionUpdate::AgentMessageChunk(_)) | Event::CreateTerminal(_)
            );
            if cancel == Cancel::Turn && is_reason {
                cancel = Cancel::Never;
                turn.cancel().await?;
            }
            if cancel == Cancel::Call
                && let Event::Update(SessionUpdate::ToolCallUpdate(call)) = &event
                && call.capabilities.set().is_some_and(|offered| offered.cancel.is_some())
                && call.status.set() != Some(&ToolCallStatus::Completed)
            {
                cancel = Cancel::Never;
                self.session()?.cancel_tool_call(call.tool_call_id.clone()).await?;
            }
            match self.person.answer(event).await {
                // The agent did not want the answer any more.
                Ok(()) | Err(Error::Cancelled) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A terminal of the client's.
struct Shown {
    /// How its command ended.
    status: ExitStatus,
    /// How much of its output is kept, in bytes.
    limit: usize,
}

/// Whoever uses the client, with their files and commands.
#[derive(Default)]
struct Person {
    files: BTreeMap<String, String>,
    terminals: BTreeMap<String, Shown>,
    count: u64,
    rejects: bool,
}

impl Person {
    async fn answer(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Permission(ask) if self.rejects => ask.reject().await,
            Event::Permission(ask) => ask.allow_once().await,
            Event::ReadTextFile(call) => {
                let text = self.files.get(&call.path).cloned().ok_or_else(|| ErrorObject::not_found("no such file"));
                let (line, limit) =
                    (call.line.unwrap_or(1).max(1) as usize, call.limit.map_or(usize::MAX, |limit| limit as usize));
                let some = |text: String| text.split_inclusive('\n').skip(line - 1).take(limit).collect::<String>();
                call.reply(text.map(|text| ReadTextFileResponse::new(some(text)))).await
            }
            Event::WriteTextFile(call) => {
                self.files.insert(call.path.clone(), call.content.clone());
                call.reply(Ok(WriteTextFileResponse::new())).await
            }
            Event::CreateTerminal(call) => {
                self.count += 1;
                let id = format!("terminal-{}", self.count);
                let limit =
                    call.output_byte_limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
                self.terminals.insert(id.clone(), Shown { status: ExitStatus::new().exit_code(0), limit });
                call.reply(Ok(CreateTerminalResponse::new(id))).await
            }
            Event::TerminalOutput(call) => {
                const OUTPUT: &str = "it ran\n";
                let shown = self.terminals.get(call.terminal_id.as_str());
                let answer = shown.map(|shown| {
                    let kept = &OUTPUT[OUTPUT.len().saturating_sub(shown.limit)..];
                    TerminalOutputResponse::new(kept, kept != OUTPUT).exit_status(shown.status.clone())
                });
                call.reply(answer.ok_or_else(|| ErrorObject::not_found("no such terminal"))).await
            }
            Event::WaitForTerminalExit(call) => {
                let status = self.status(call.terminal_id.as_str());
                call.reply(status).await
            }
            Event::KillTerminal(call) => {
                let terminal = self.terminals.get_mut(call.terminal_id.as_str());
                let killed = terminal.map(|terminal| terminal.status = ExitStatus::new().signal("SIGKILL"));
                let killed = killed.ok_or_else(|| ErrorObject::not_found("no such terminal"));
                call.reply(killed.map(|()| KillTerminalResponse::new())).await
            }
            Event::ReleaseTerminal(call) => {
                let known = self.terminals.remove(call.terminal_id.as_str());
                let released = known.ok_or_else(|| ErrorObject::not_found("no such terminal"));
                call.reply(released.map(|_| ReleaseTerminalResponse::new())).await
            }
            Event::Elicitation(call) => {
                let answer = match &call.mode {
                    ElicitationMode::Form(form) => filled_in(&form.requested_schema),
                    ElicitationMode::Url(_) => {
                        CreateElicitationResponse::new(attache::model::elicitation::ElicitationAccept::new())
                    }
                    _ => CreateElicitationResponse::cancel(),
                };
                call.reply(Ok(answer)).await
            }
            other => other.decline().await,
        }
    }

    fn status(&self, terminal: &str) -> Result<ExitStatus, ErrorObject> {
        self.terminals
            .get(terminal)
            .map(|shown| shown.status.clone())
            .ok_or_else(|| ErrorObject::not_found("no such terminal"))
    }
}

/// A form with everything filled in that is required; no answer if somebody would have to know what that means.
fn filled_in(schema: &ElicitationSchema) -> CreateElicitationResponse {
    let is_required = |name: &String| schema.required.as_ref().is_some_and(|required| required.contains(name));
    let fields = schema.properties.iter().filter(|(name, _)| is_required(name));
    let values: Option<Vec<_>> = fields.map(|(name, field)| Some((name.clone(), value(field)?))).collect();
    values.map_or_else(CreateElicitationResponse::decline, CreateElicitationResponse::accept)
}

/// A value that fits a field.
fn value(field: &ElicitationProperty) -> Option<ElicitationValue> {
    match field {
        ElicitationProperty::String(field) => {
            let listed = field.enum_values.as_ref().and_then(|values| values.first().cloned());
            let titled = field.one_of.as_ref().and_then(|values| values.first().map(|value| value.value.clone()));
            let is_free = field.pattern.is_none() && field.format.is_none();
            let free = is_free.then(|| "a".repeat(field.min_length.unwrap_or(3).max(1) as usize));
            listed.or(titled).or(field.default.clone()).or(free).map(ElicitationValue::Text)
        }
        ElicitationProperty::Integer(field) => Some(ElicitationValue::Integer(field.minimum.unwrap_or(0))),
        ElicitationProperty::Number(field) => Some(ElicitationValue::Number(field.minimum.unwrap_or(0.0))),
        ElicitationProperty::Boolean(_) => Some(ElicitationValue::Boolean(true)),
        _ => None,
    }
}
