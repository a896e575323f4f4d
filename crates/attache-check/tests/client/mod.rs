//! A small correct client: it keeps files on disk, runs commands that it makes up, and answers what it is asked.

use std::collections::HashMap;
use std::time::Duration;

use attache::client::{Pending, PermissionAsk, Session};
use attache::model::elicitation::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationMode, ElicitationValue,
};
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse};
use attache::model::terminal::{
    CreateTerminalRequest, CreateTerminalResponse, ExitStatus, KillTerminalResponse, ReleaseTerminalResponse,
    TerminalId, TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use attache::{Client, Connection, Error, Event, Protocol};
use tokio::io::DuplexStream;
use tokio::time::timeout;

/// What a client does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    /// What it asks for.
    pub protocol: Protocol,
    /// Whether it offers files, terminals and forms.
    pub offers: bool,
    /// Whether it cancels its turn instead of answering a question.
    pub cancels: bool,
    /// How many prompts it sends.
    pub prompts: usize,
}

/// Runs a client until it has sent its prompts.
pub(crate) async fn run(wire: DuplexStream, cwd: &std::path::Path, behaviour: Behaviour) -> Result<(), Error> {
    let agent = meet(wire, behaviour).await?;
    let mut terminals = Terminals::default();
    let opened = agent.session(cwd).open().await;
    let session = match (opened, agent.auth_methods().first()) {
        (Err(_), Some(method)) => {
            agent.authenticate(method.id().expect("a method has an id")).await?;
            agent.session(cwd).open().await?
        }
        (opened, _) => opened?,
    };
    for _ in 0..behaviour.prompts {
        let mut turn = match session.prompt("Go on.").await {
            // The prompt was refused; the session goes on.
            Err(Error::Refused(_)) => continue,
            turn => turn?,
        };
        while let Some(event) = match turn.next().await {
            Err(Error::Refused(_)) => None,
            event => event?,
        } {
            match event {
                Event::Permission(_) if behaviour.cancels => turn.cancel().await?,
                event => terminals.serve(event).await?,
            }
        }
        while let Ok(event) = timeout(Duration::from_secs(2), session.next()).await {
            terminals.serve(event?).await?;
        }
    }
    drop(session);
    agent.shutdown().await;
    Ok(())
}

/// Agrees with an agent.
pub(crate) async fn meet(wire: DuplexStream, behaviour: Behaviour) -> Result<Connection, Error> {
    let mut client = Client::new("probed-client", "1.0").protocol(behaviour.protocol);
    if behaviour.offers {
        client = client.read_files().write_files().terminals().forms().urls().switches();
    }
    let (reader, writer) = tokio::io::split(wire);
    client.connect(reader, writer).await
}

/// Opens a session, lists and loads the one that is on the list, sets what can be set, and closes and deletes what there is.
pub(crate) async fn manage(
    wire: DuplexStream,
    cwd: &std::path::Path,
    behaviour: Behaviour,
) -> Result<Vec<String>, Error> {
    let agent = meet(wire, behaviour).await?;
    let session = agent.session(cwd).open().await?;
    let (mut listed, mut request) = (Vec::new(), attache::model::session::ListSessionsRequest::new());
    loop {
        let page = agent.list_sessions(&request).await?;
        listed.extend(page.sessions.iter().map(|info| info.session_id.to_string()));
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    let loaded: Session = agent.session(cwd).load(listed[0].clone()).await?;
    let mut replayed = 0;
    while let Ok(event) = timeout(Duration::from_secs(1), loaded.next()).await {
        replayed += usize::from(matches!(event?, Event::Update(_)));
    }
    assert!(replayed >= 2, "{replayed} updates");
    let option = loaded.options().first().expect("there are options").id.clone();
    loaded.set_option(option, attache::model::config::ConfigSetting::Id("code".into())).await?;
    loaded.close().await?;
    session.close().await?;
    agent.delete_session(listed[0].clone()).await?;
    agent.shutdown().await;
    Ok(listed)
}

/// The commands that run, or seem to.
#[derive(Default)]
struct Terminals {
    all: HashMap<TerminalId, Terminal>,
    count: usize,
}

struct Terminal {
    output: String,
    is_cut: bool,
    status: Option<ExitStatus>,
    waiting: Vec<Pending<WaitForTerminalExitRequest>>,
}

impl Terminals {
    async fn serve(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Permission(ask) => allow(ask).await,
            Event::ReadTextFile(call) => {
                let result = read(&call);
                call.reply(result).await
            }
            Event::WriteTextFile(call) => {
                let result = write(&call);
                call.reply(result).await
            }
            Event::Elicitation(call) => {
                let answer = fill_in(&call);
                call.reply(Ok(answer)).await
            }
            Event::CreateTerminal(call) => {
                let result = self.start(&call);
                call.reply(result).await
            }
            Event::TerminalOutput(call) => {
                let result = self.find(&call.terminal_id).map(|terminal| {
                    TerminalOutputResponse::new(terminal.output.clone(), terminal.is_cut)
                        .with(|response| response.exit_status = terminal.status.clone())
                });
                call.reply(result).await
            }
            Event::WaitForTerminalExit(call) => match self.find(&call.terminal_id) {
                Ok(Terminal { status: None, waiting, .. }) => {
                    waiting.push(call);
                    Ok(())
                }
                Ok(terminal) => {
                    let status = terminal.status.clone().unwrap_or_default();
                    call.reply(Ok(status)).await
                }
                Err(error) => call.reply(Err(error)).await,
            },
            Event::KillTerminal(call) => match self.find(&call.terminal_id) {
                Ok(terminal) => {
                    terminal.end().await?;
                    call.reply(Ok(KillTerminalResponse::new())).await
                }
                Err(error) => call.reply(Err(error)).await,
            },
            Event::ReleaseTerminal(call) => match self.find(&call.terminal_id) {
                Ok(terminal) => {
                    terminal.end().await?;
                    self.all.remove(&call.terminal_id);
                    call.reply(Ok(ReleaseTerminalResponse::new())).await
                }
                Err(error) => call.reply(Err(error)).await,
            },
            other => other.decline().await,
        }
    }

    fn find(&mut self, id: &TerminalId) -> Result<&mut Terminal, ErrorObject> {
        self.all.get_mut(id).ok_or_else(|| ErrorObject::not_found("there is no such terminal"))
    }

    fn start(&mut self, call: &CreateTerminalRequest) -> Result<CreateTerminalResponse, ErrorObject> {
        let script = call.args.get(1).map_or("", String::as_str);
        let (output, exit_code) = match script {
            _ if call.command != "sh" => return Err(ErrorObject::not_found("there is no such program")),
            script if script.contains("sleep") => ("begun\n".to_owned(), None),
            script if script.contains("while") => ("\u{e4}\u{1f980}".repeat(40), Some(0)),
            _ => ("one\ntwo three\n".to_owned(), Some(3)),
        };
        let limit = call.output_byte_limit.map_or(usize::MAX, |limit| limit as usize);
        let surplus = output.len().saturating_sub(limit);
        let begin = (surplus..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
        self.count += 1;
        let id = TerminalId::from(format!("terminal_{}", self.count));
        let status = exit_code.map(|code| ExitStatus::new().with(|status| status.exit_code = Some(code)));
        let terminal = Terminal { output: output[begin..].to_owned(), is_cut: begin > 0, status, waiting: Vec::new() };
        self.all.insert(id.clone(), terminal);
        Ok(CreateTerminalResponse::new(id))
    }
}

impl Terminal {
    async fn end(&mut self) -> Result<(), Error> {
        let killed = || ExitStatus::new().with(|status| status.signal = Some("SIGKILL".into()));
        let status = self.status.get_or_insert_with(killed).clone();
        for call in self.waiting.drain(..) {
            let status: WaitForTerminalExitResponse = status.clone();
            call.reply(Ok(status)).await?;
        }
        Ok(())
    }
}

/// Fills in what the probes' form requires; anything else is declined.
fn fill_in(call: &CreateElicitationRequest) -> CreateElicitationResponse {
    let ElicitationMode::Form(form) = &call.mode else { return CreateElicitationResponse::decline() };
    if !form.requested_schema.required.iter().flatten().any(|name| name == "colour") {
        return CreateElicitationResponse::decline();
    }
    let text = |text: &str| ElicitationValue::Text(text.to_owned());
    CreateElicitationResponse::accept(vec![
        ("name".to_owned(), text("Ada")),
        ("colour".to_owned(), text("blue")),
        ("count".to_owned(), ElicitationValue::Integer(4)),
        ("days".to_owned(), ElicitationValue::Texts(vec!["Mo".to_owned()])),
    ])
}

async fn allow(ask: PermissionAsk) -> Result<(), Error> {
    let yes = ask.options.iter().find(|option| option.kind.is_allow()).map(|option| option.option_id.clone());
    match yes {
        Some(option) => ask.select(option).await,
        None => ask.reject().await,
    }
}

fn read(call: &ReadTextFileRequest) -> Result<ReadTextFileResponse, ErrorObject> {
    if !std::path::Path::new(&call.path).is_absolute() {
        return Err(ErrorObject::new(-32602, "the path is not absolute"));
    }
    let text = std::fs::read_to_string(&call.path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ErrorObject::not_found("there is no such file"),
        kind => ErrorObject::internal(kind.to_string()),
    })?;
    let first = call.line.unwrap_or(1).saturating_sub(1) as usize;
    let limit = call.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(ReadTextFileResponse::new(text.split_inclusive('\n').skip(first).take(limit).collect::<String>()))
}

fn write(call: &WriteTextFileRequest) -> Result<WriteTextFileResponse, ErrorObject> {
    let path = std::path::Path::new(&call.path);
    if !path.is_absolute() {
        return Err(ErrorObject::new(-32602, "the path is not absolute"));
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made.and_then(|()| std::fs::write(path, &call.content));
    written.map(|()| WriteTextFileResponse::new()).map_err(|error| ErrorObject::internal(error.kind().to_string()))
}
