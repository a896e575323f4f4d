//! Runs one prompt with any agent, prints one line an event, and serves files and commands to the agent.
//!
//!     cargo run --example run_client -- [OPTION…] PROMPT -- COMMAND…
//!
//! `--protocol 1|2|draft|auto`, `--allow|--reject|--cancel` (what to do when asked for permission; `--cancel` cancels
//! the turn), `--set ID=VALUE`, `--cwd DIR`, `--load SESSION`, `--trace FILE` (every message, without secrets).
//! The last line is `stop: REASON`; the exit code is 0 when that is `end_turn`. It trusts the agent with everything: use it for agents that you know.
#![allow(clippy::print_stdout, reason = "what a person reads goes there")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use attache::client::{PermissionAsk, Session};
use attache::model::config::{ConfigOption, ConfigSetting};
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileResponse};
use attache::model::terminal::{
    CreateTerminalRequest, CreateTerminalResponse, ExitStatus, KillTerminalResponse, ReleaseTerminalResponse,
    TerminalId, TerminalOutputResponse,
};
use attache::model::update::SessionUpdate;
use attache::trace::Tap;
use attache::{Client, Error, Event, Protocol, Stop};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\nusage: run_client [OPTION…] PROMPT -- COMMAND…");
            return ExitCode::from(2);
        }
    };
    match run(options).await {
        Ok(Stop::EndTurn) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn run(options: Options) -> Result<Stop, Error> {
    let client = Client::new("run-client", env!("CARGO_PKG_VERSION")).read_files().write_files().terminals().strict();
    let mut client = client.protocol(options.protocol).on_report(|report| println!("report: {report}"));
    if let Some(path) = options.trace {
        let tap = Tap::file(&path).map_err(|error| Error::Invalid(format!("`{}`: {error}", path.display())))?;
        client = client.trace(tap);
    }
    let agent = client.launch(options.command).await?;
    let name = agent.info().map_or_else(|| "unnamed".into(), |info| format!("{} {}", info.name, info.version));
    println!("agent: {name}, {:?}", agent.dialect());
    let session = match options.load {
        None => agent.session(&options.cwd).open().await?,
        Some(id) => agent.session(&options.cwd).load(id).await?,
    };
    let (options_count, commands) = (session.options().len(), session.commands().len());
    println!("session: {}, {options_count} options, {commands} commands", session.id());
    for (id, value) in options.settings {
        println!("set: {id} = {value}, {} options", set(&session, &id, &value).await?.len());
    }
    let mut terminals = Terminals::default();
    let mut turn = session.prompt(options.prompt).await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Update(update) => println!("update: {}", show(&update)),
            Event::Permission(ask) => {
                println!("permission: {}", ask.title.as_deref().unwrap_or("(no title)"));
                match options.answer {
                    Answer::Allow => allow(ask).await?,
                    Answer::Reject => ask.reject().await?,
                    // The request is answered `cancelled` with the turn that it belongs to.
                    Answer::Cancel => turn.cancel().await?,
                }
            }
            Event::ReadTextFile(call) => {
                println!("read: {}", call.path);
                let result = read(&call).map(ReadTextFileResponse::new);
                call.reply(result.map_err(|error| failed(&error))).await?;
            }
            Event::WriteTextFile(call) => {
                println!("write: {}", call.path);
                let result = std::fs::write(&call.path, &call.content).map(|()| WriteTextFileResponse::new());
                call.reply(result.map_err(|error| failed(&error))).await?;
            }
            other => terminals.serve(other).await?,
        }
    }
    let stop = turn.stop().cloned().unwrap_or(Stop::Error);
    println!("stop: {stop}");
    drop((turn, session));
    agent.shutdown().await;
    Ok(stop)
}

async fn set(session: &Session, id: &str, value: &str) -> Result<Vec<ConfigOption>, Error> {
    let setting = match value {
        "true" => ConfigSetting::Boolean(true),
        "false" => ConfigSetting::Boolean(false),
        value => ConfigSetting::Id(value.into()),
    };
    session.set_option(id, setting).await
}

async fn allow(ask: PermissionAsk) -> Result<(), Error> {
    let yes = ask.options.iter().find(|option| option.kind.is_allow()).map(|option| option.option_id.clone());
    match yes {
        Some(option) => ask.select(option).await,
        None => ask.reject().await,
    }
}

/// An update in one line: what it is, and the words in it.
fn show(update: &SessionUpdate) -> String {
    let detail = match update {
        SessionUpdate::AgentMessageChunk(chunk)
        | SessionUpdate::AgentThoughtChunk(chunk)
        | SessionUpdate::UserMessageChunk(chunk) => chunk.content.as_text().map(|text| format!("{text:?}")),
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
            let status = call.status.set().map_or("", |status| status.as_str());
            Some(format!("{status} {}", call.title.set().map_or("", String::as_str)))
        }
        SessionUpdate::State(state) => Some(format!("{state:?}").chars().take(40).collect()),
        _ => None,
    };
    format!("{} {}", update.tag(), detail.unwrap_or_default()).trim_end().to_owned()
}

fn read(call: &ReadTextFileRequest) -> std::io::Result<String> {
    let text = std::fs::read_to_string(&call.path)?;
    if call.line.is_none() && call.limit.is_none() {
        return Ok(text);
    }
    let first = call.line.unwrap_or(1).saturating_sub(1) as usize;
    let limit = call.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(text.split_inclusive('\n').skip(first).take(limit).collect())
}

fn failed(error: &std::io::Error) -> ErrorObject {
    match error.kind() {
        std::io::ErrorKind::NotFound => ErrorObject::not_found("there is no such file"),
        kind => ErrorObject::internal(kind.to_string()),
    }
}

/// The commands that run for the agent.
#[derive(Default)]
struct Terminals {
    all: HashMap<TerminalId, Terminal>,
    count: usize,
}

struct Terminal {
    output: Arc<Mutex<Vec<u8>>>,
    status: watch::Receiver<Option<ExitStatus>>,
    /// Aborting it ends the command.
    task: JoinHandle<()>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Terminals {
    async fn serve(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::CreateTerminal(call) => {
                println!("run: {} {}", call.command, call.args.join(" "));
                let result = self.start(&call).map(CreateTerminalResponse::new);
                call.reply(result.map_err(|error| failed(&error))).await
            }
            Event::TerminalOutput(call) => {
                let result = self.find(&call.terminal_id).map(|terminal| {
                    let output = terminal.output.lock().unwrap_or_else(PoisonError::into_inner);
                    let exit_status = terminal.status.borrow().clone();
                    let text = String::from_utf8_lossy(&output);
                    TerminalOutputResponse::new(text, false).with(|response| response.exit_status = exit_status)
                });
                call.reply(result).await
            }
            Event::WaitForTerminalExit(call) => {
                let mut status = match self.find(&call.terminal_id) {
                    Ok(terminal) => terminal.status.clone(),
                    Err(error) => return call.reply(Err(error)).await,
                };
                // Other events have to be served while the command runs.
                tokio::spawn(async move {
                    let status = status.wait_for(Option::is_some).await.ok().and_then(|status| status.clone());
                    call.reply(Ok(status.unwrap_or_default())).await
                });
                Ok(())
            }
            Event::KillTerminal(call) => {
                let result = self.find(&call.terminal_id).map(|terminal| terminal.task.abort());
                call.reply(result.map(|()| KillTerminalResponse::new())).await
            }
            Event::ReleaseTerminal(call) => {
                self.all.remove(&call.terminal_id);
                call.reply(Ok(ReleaseTerminalResponse::new())).await
            }
            other => other.decline().await,
        }
    }

    fn find(&self, id: &TerminalId) -> Result<&Terminal, ErrorObject> {
        self.all.get(id).ok_or_else(|| ErrorObject::not_found("there is no such terminal"))
    }

    fn start(&mut self, request: &CreateTerminalRequest) -> std::io::Result<TerminalId> {
        // Some agents put a whole shell line into the command.
        let mut command = if request.args.is_empty() {
            let mut shell = tokio::process::Command::new("sh");
            shell.arg("-c").arg(&request.command);
            shell
        } else {
            let mut command = tokio::process::Command::new(&request.command);
            command.args(&request.args);
            command
        };
        for variable in &request.env {
            command.env(&variable.name, variable.value.expose());
        }
        if let Some(cwd) = &request.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let (sender, status) = watch::channel(None);
        let (stdout, stderr, kept) = (child.stdout.take(), child.stderr.take(), output.clone());
        let task = tokio::spawn(async move {
            let (_, _, ended) = tokio::join!(collect(stdout, &kept), collect(stderr, &kept), child.wait());
            let exit_code = ended.ok().and_then(|status| status.code()).map(i64::from);
            let _ = sender.send(Some(ExitStatus::new().with(|status| status.exit_code = exit_code)));
        });
        self.count += 1;
        let id = TerminalId::from(format!("terminal_{}", self.count));
        self.all.insert(id.clone(), Terminal { output, status, task });
        Ok(id)
    }
}

async fn collect(source: Option<impl AsyncRead + Unpin>, kept: &Mutex<Vec<u8>>) {
    let Some(mut source) = source else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..length]);
    }
}

enum Answer {
    Allow,
    Reject,
    Cancel,
}

struct Options {
    protocol: Protocol,
    answer: Answer,
    settings: Vec<(String, String)>,
    cwd: PathBuf,
    load: Option<String>,
    trace: Option<PathBuf>,
    prompt: String,
    command: Vec<String>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options {
            protocol: Protocol::Auto,
            answer: Answer::Allow,
            settings: Vec::new(),
            cwd: std::env::current_dir().map_err(|error| error.to_string())?,
            load: None,
            trace: None,
            prompt: String::new(),
            command: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match &*arg {
                "--protocol" => {
                    options.protocol = match &*value()? {
                        "1" => Protocol::V1,
                        "2" => Protocol::V2,
                        "draft" => Protocol::V2Draft,
                        "auto" => Protocol::Auto,
                        other => return Err(format!("`{other}` is no protocol")),
                    }
                }
                "--allow" => options.answer = Answer::Allow,
                "--reject" => options.answer = Answer::Reject,
                "--cancel" => options.answer = Answer::Cancel,
                "--set" => {
                    let value = value()?;
                    let (id, value) = value.split_once('=').ok_or("`--set` needs ID=VALUE")?;
                    options.settings.push((id.into(), value.into()));
                }
                "--cwd" => options.cwd = value()?.into(),
                "--load" => options.load = Some(value()?),
                "--trace" => options.trace = Some(value()?.into()),
                "--" => options.command = args.by_ref().collect(),
                other if other.starts_with("--") => return Err(format!("there is no option `{other}`")),
                _ => options.prompt = arg,
            }
        }
        if options.command.is_empty() {
            return Err("which agent?".into());
        }
        Ok(options)
    }
}
