//! `attache serve`: an agent for many clients on other machines.

mod guard;
mod listen;
mod log;
mod mcp;
pub(crate) mod options;
mod owners;
#[cfg(unix)]
mod sockets;
#[cfg(windows)]
#[path = "serve/sockets_windows.rs"]
mod sockets;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache::Dialect;
use attache::proto::bridge::Bridge;
use attache::relay::{Relay, RelayMessage};
use attache_agent::store::Kept;
use attache_agent::{CodingAgent, SandboxMode};
use attache_host::sandbox::Sandbox;
use attache_http::{Accepted, HttpServer, Principal};
use attache_postgres::{PostgresStore, Settings};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::agents::{self, AgentSpec};
use crate::cli::{SandboxKind, Version};
use crate::client::confine::Confinement;
use crate::exit::{Code, Failure};
use crate::project::Project;
use crate::signals::Signals;
use crate::visible::one_line;
use guard::Guard;
use log::log;
use mcp::McpRules;
use options::{Serve, ServeCommand};
use owners::{Owners, owner_of};

/// How long an agent may take to leave when its client has.
const GRACE: Duration = Duration::from_secs(2);

/// Does what the command line says.
pub(crate) async fn run(options: Serve) -> Result<(), Failure> {
    match options.command {
        None => serve(options).await,
        Some(ServeCommand::Token { command }) => tokens::run(command),
    }
}

/// What all connections share.
struct Service {
    agent: Served,
    directories: Vec<PathBuf>,
    /// Which MCP servers clients may name.
    mcp: McpRules,
    /// What the agent speaks, if clients may speak something else.
    bridge: Option<Dialect>,
}

/// The agent that is served.
enum Served {
    /// The one that is built in, in this process.
    BuiltIn(Box<CodingAgent>),
    /// A program: a process for each connection.
    Program { spec: Box<AgentSpec>, sandbox: SandboxKind, owners: Arc<Owners> },
}

async fn serve(options: Serve) -> Result<(), Failure> {
    let directories = directories(&options.dir)?;
    let (tokens, looked_at) = tokens::read_or_create()?;
    let listening = listen::listen(&options).await?;
    let (agent, database) = served(&options, &directories).await?;
    let service = Arc::new(Service {
        agent,
        directories,
        mcp: McpRules { allows_commands: options.allow_mcp_commands, origins: options.allow_mcp_url.clone() },
        bridge: match options.protocol {
            Version::Auto => None,
            Version::V1 => Some(Dialect::V1),
            Version::V2 => Some(Dialect::V2),
        },
    });
    let known = tokens.clone();
    let mut server = HttpServer::new(tokens.clone()).refresh(move || tokens::refresh(&known));
    let watched = database.map(|database| {
        let is_there = Arc::new(AtomicBool::new(true));
        (is_there.clone(), tokio::spawn(watch_database(database, is_there)))
    });
    if let Some((is_there, _)) = &watched {
        let is_there = is_there.clone();
        server = server.readiness(move || is_there.load(Ordering::Relaxed));
    }
    for host in options.host.iter().chain(&listening.hosts) {
        server = server.host(host);
    }
    for origin in &options.origin {
        server = server.origin(origin);
    }
    let mut signals = Signals::new().map_err(|error| Failure::usage(format!("cannot wait for signals: {error}")))?;
    let watching = tokio::spawn(tokens::watch(tokens, looked_at));
    // Files are looked at when the agent starts, too, and a server may run for years.
    let kept = match (options.keep_days, &options.store) {
        (Some(days), _) => Some(Kept::for_age(Duration::from_secs(u64::from(days) * 24 * 60 * 60))),
        (None, None) => Some(Kept::default()),
        (None, Some(_)) => None,
    };
    let pruning = kept.map(|kept| tokio::spawn(prune(service.clone(), kept)));
    log("listening", &json!({ "address": listening.address }));
    if let Some(fingerprint) = &listening.fingerprint {
        log("certificate", &json!({ "fingerprint": fingerprint }));
    }
    if let Served::Program { spec, sandbox, .. } = &service.agent
        && *sandbox != SandboxKind::Off
    {
        let writable: Vec<String> = spec.state.iter().map(|path| path.display().to_string()).collect();
        log(
            "confined",
            &json!({ "agent": spec.name, "state": writable, "hint": "--writable DIR, for where else it keeps state" }),
        );
    }
    let accept = move |client: Accepted| {
        let service = service.clone();
        async move {
            let (number, who) = (client.number, client.principal.clone());
            let mut line = json!({ "connection": number, "principal": who.as_str() });
            if let Some(group) = who.group() {
                line["group"] = group.into();
            }
            log("connected", &line);
            let why = match service.serve(client).await {
                Ok(()) => "closed".to_owned(),
                Err(left) => {
                    if !left.stderr.is_empty() {
                        line["stderr"] = left.stderr.into();
                    }
                    left.why
                }
            };
            line["why"] = why.into();
            log("disconnected", &line);
        }
    };
    let stop = async move {
        signals.next().await;
        log("stopping", &json!({}));
    };
    let served = server.serve_until(listening.listener, accept, stop).await;
    watching.abort();
    watched.inspect(|(_, watching)| watching.abort());
    pruning.inspect(|pruning| pruning.abort());
    log("stopped", &json!({}));
    log::finish();
    served.map_err(|error| Failure::new(Code::Died, format!("cannot accept connections: {error}")))
}

/// The directories that sessions may work in: those that were named, else this one. Without links.
fn directories(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if named.is_empty() {
        return Ok(vec![crate::connect::directory(None)?]);
    }
    named.iter().map(|path| crate::connect::directory(Some(path))).collect()
}

/// The agent that the command line names.
async fn served(options: &Serve, directories: &[PathBuf]) -> Result<(Served, Option<Arc<PostgresStore>>), Failure> {
    let mut spec = agents::resolve(options.agent.as_deref(), &options.agent_command, &Project::none())?;
    if spec.is_built_in {
        if !options.writable.is_empty() {
            let hint = "hint: `[commands] writable` in agent.toml is for the commands of the built-in agent";
            return Err(Failure::usage(format!("`--writable` is for other agents than the built-in one\n{hint}")));
        }
        let (mut config, _) = crate::agent::settings(options.model.as_ref())?;
        if options.sandbox != SandboxKind::Off {
            if let Err(error) = Sandbox::check() {
                let hint = "hint: --sandbox off serves it all the same; then a token is worth this whole account";
                return Err(Failure::usage(format!("commands cannot be confined here: {error}\n{hint}")));
            }
            config.sandbox =
                if options.sandbox == SandboxKind::Offline { SandboxMode::Offline } else { SandboxMode::On };
            config.stays_inside = true;
        }
        config.beneath = directories.to_vec();
        let store = match &options.store {
            Some(url) => Some(store(url, options).await?),
            None => None,
        };
        let agent = match &store {
            Some(store) => CodingAgent::with_store(config, store.clone()).await,
            None => CodingAgent::new(config).await,
        };
        let agent = agent.map_err(|error| Failure::usage(error.to_string()))?;
        return Ok((Served::BuiltIn(Box::new(agent)), store));
    }
    if options.model.is_some() {
        let hint = "hint: an option of that agent for its model belongs behind its command, after `--`";
        return Err(Failure::usage(format!("`--model` is for the built-in agent alone\n{hint}")));
    }
    let program = spec.words.first().map(String::as_str).unwrap_or_default();
    if agents::catalog::on_path(program).is_none() {
        let install = spec.install_hint.map(|hint| format!("\nhint: to install it: {hint}")).unwrap_or_default();
        return Err(Failure::new(Code::Died, format!("no program `{}` to serve{install}", one_line(program))));
    }
    let here = crate::connect::here()?;
    spec.state.extend(options.writable.iter().map(|path| here.join(path)));
    let owners = Owners::open(&spec.name)?;
    Ok((Served::Program { spec: Box::new(spec), sandbox: options.sandbox, owners: Arc::new(owners) }, None))
}

/// The sessions of several servers.
async fn store(url: &str, options: &Serve) -> Result<Arc<PostgresStore>, Failure> {
    let mut settings = Settings::new(url).map_err(|error| Failure::usage(format!("--store: {error}")))?;
    settings.address.clone_from(&options.address);
    let place = settings.to_string();
    let mut connecting = tokio::task::spawn_blocking(|| PostgresStore::connect(settings));
    let connected = tokio::select! {
        connected = &mut connecting => connected,
        () = tokio::time::sleep(TOLD_AFTER) => {
            log("waiting", &json!({ "for": place }));
            connecting.await
        }
    };
    let failed = |what: String| Failure::new(Code::Died, format!("cannot use the database {place}: {what}"));
    let store = connected.map_err(|_| failed("it was given up".into()))?.map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(store))
}

/// How long the database may take before it is said what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// How often the database is asked whether it is there.
const ASK: Duration = Duration::from_secs(2);

/// Notes whether the database is there, for `/ready`, and says when that changes.
async fn watch_database(store: Arc<PostgresStore>, is_there: Arc<AtomicBool>) {
    loop {
        let asked = store.check().await;
        let was_there = is_there.swap(asked.is_ok(), Ordering::Relaxed);
        match asked {
            Ok(()) if !was_there => log("database back", &json!({})),
            Err(error) if was_there => log("database lost", &json!({ "why": error.to_string() })),
            _ => {}
        }
        tokio::time::sleep(ASK).await;
    }
}

/// How often old sessions are looked for.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Deletes sessions that are too many or too old, now and every hour.
async fn prune(service: Arc<Service>, kept: Kept) {
    let Served::BuiltIn(agent) = &service.agent else { return };
    loop {
        match agent.prune(kept).await {
            Ok(0) => {}
            Ok(count) => log("pruned", &json!({ "sessions": count })),
            Err(error) => log("not pruned", &json!({ "why": error.to_string() })),
        }
        tokio::time::sleep(PRUNE).await;
    }
}

/// Why a connection ended that nobody closed.
struct Left {
    /// On one line.
    why: String,
    /// The last that the agent wrote to stderr.
    stderr: String,
}

impl Left {
    fn because(why: String) -> Self {
        Left { why: why.lines().next().unwrap_or_default().to_owned(), stderr: String::new() }
    }
}

/// How much of what an agent wrote to stderr is logged.
const MOST_STDERR: usize = 2000;

/// The end of a text.
fn last_of(text: &str) -> String {
    let text = text.trim();
    let start = text.char_indices().rev().nth(MOST_STDERR - 1).map_or(0, |(at, _)| at);
    text[start..].to_owned()
}

impl Service {
    /// Passes messages between a client and its agent until one of them leaves. What the client may not say is answered
    /// here.
    async fn serve(&self, client: Accepted) -> Result<(), Left> {
        let (client_reader, client_writer) = client.transport.into_streams();
        let failed = |error: std::io::Error| Left::because(error.to_string());
        match &self.agent {
            Served::BuiltIn(agent) => {
                let (near, far) = tokio::io::duplex(256 << 10);
                let (reader, writer) = tokio::io::split(far);
                let server = agent.for_owner(&owner_of(&client.principal)).server();
                let agent = tokio::spawn(server.connect(reader, writer));
                let (agent_reader, agent_writer) = tokio::io::split(near);
                let (client_side, agent_side) = ((client_reader, client_writer), (agent_reader, agent_writer));
                let relayed = self.relay(client_side, agent_side, &client.principal, None, false).await;
                // The agent ends its turns and writes down what is to be kept.
                let _ = agent.await;
                relayed.map(drop).map_err(failed)
            }
            Served::Program { spec, sandbox, owners } => {
                let directory = &self.directories[0];
                let confinement = Confinement::new(Some(*sandbox), None, spec, directory, &self.directories[1..]);
                let confinement = confinement.map_err(|failure| Left::because(failure.message))?;
                let mut command = spec.command().cwd(directory);
                if let Some(sandbox) = &confinement.agent {
                    command = sandbox.confine(command);
                }
                let (mut process, stdin, stdout) = command.spawn().map_err(|error| Left::because(error.to_string()))?;
                let (client_side, agent_side) = ((client_reader, client_writer), (stdout, stdin));
                let is_confined = confinement.agent.is_some();
                let owners = Some(owners.clone());
                let relayed = self.relay(client_side, agent_side, &client.principal, owners, is_confined).await;
                if !relayed.as_ref().is_ok_and(|client_left| !client_left) {
                    process.shutdown(GRACE).await;
                    return relayed.map(drop).map_err(failed);
                }
                // The agent left first: why, is what whoever looks after the server has to know.
                let _ = tokio::time::timeout(GRACE, process.wait()).await;
                let tail = process.stderr_tail();
                let status = process.shutdown(GRACE).await;
                Err(Left { why: format!("the agent ended by itself: {status}"), stderr: last_of(&tail) })
            }
        }
    }

    /// Passes messages on. What the guard has seen of the client is what the guard sees answered: a bridge, which gives requests
    /// numbers of its own, is between the guard and the agent. Says whether the client left first.
    async fn relay<R, W, S, T>(
        &self,
        (client_reader, client_writer): (R, W),
        (agent_reader, agent_writer): (S, T),
        principal: &Principal,
        owners: Option<Arc<Owners>>,
        is_confined: bool,
    ) -> std::io::Result<bool>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
        S: AsyncRead + Send + Unpin + 'static,
        T: AsyncWrite + Send + Unpin + 'static,
    {
        let mut guard = Guard::new(principal, self.directories.clone(), self.mcp.clone(), owners, is_confined);
        let judge = move |direction, message: &RelayMessage<'_>| guard.judge(direction, message);
        let Some(dialect) = self.bridge else {
            let relay = Relay::new(client_reader, client_writer, agent_reader, agent_writer);
            return relay.on_message(judge).run().await.map(|relayed| relayed.client_left);
        };
        let (near, far) = tokio::io::duplex(256 << 10);
        let (near_reader, near_writer) = tokio::io::split(near);
        let (far_reader, far_writer) = tokio::io::split(far);
        let guarded = Relay::new(client_reader, client_writer, near_reader, near_writer).on_message(judge).run();
        let bridged =
            Relay::new(far_reader, far_writer, agent_reader, agent_writer).bridged(Bridge::new(dialect)).run();
        let (guarded, bridged) = tokio::join!(guarded, bridged);
        guarded.and(bridged).map(|relayed| relayed.client_left)
    }
}
