//! `attache serve`: an agent for many clients on other machines.

mod guard;
mod listen;
mod owners;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache::Dialect;
use attache::proto::bridge::Bridge;
use attache::relay::Relay;
use attache_agent::store::Kept;
use attache_agent::{CodingAgent, SandboxMode};
use attache_host::sandbox::Sandbox;
use attache_http::{Accepted, HttpServer, Principal};
use attache_postgres::{PostgresStore, Settings};
use serde_json::json;

use crate::agents::{self, AgentSpec};
use crate::cli::{SandboxKind, Serve, ServeCommand, Version};
use crate::client::confine::Confinement;
use crate::exit::{Code, Failure};
use crate::project::Project;
use crate::signals::Signals;
use guard::Guard;
use owners::Owners;

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
    allows_mcp_commands: bool,
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
    let tokens = tokens::read_or_create()?;
    let listening = listen::listen(&options).await?;
    let agent = served(&options).await?;
    let service = Arc::new(Service {
        agent,
        directories,
        allows_mcp_commands: options.allow_mcp_commands,
        bridge: match options.protocol {
            Version::Auto => None,
            Version::V1 => Some(Dialect::V1),
            Version::V2 => Some(Dialect::V2),
        },
    });
    let mut server = HttpServer::new(tokens.clone());
    for host in options.host.iter().chain(&listening.hosts) {
        server = server.host(host);
    }
    for origin in &options.origin {
        server = server.origin(origin);
    }
    let mut signals = Signals::new().map_err(|error| Failure::usage(format!("cannot wait for signals: {error}")))?;
    let watching = tokio::spawn(tokens::watch(tokens));
    let pruning = options.keep_days.map(|days| tokio::spawn(prune(service.clone(), days)));
    log("listening", &json!({ "address": listening.address }));
    if let Some(fingerprint) = &listening.fingerprint {
        log("certificate", &json!({ "fingerprint": fingerprint }));
    }
    let accept = move |client: Accepted| {
        let service = service.clone();
        async move {
            let (number, who) = (client.number, client.principal.clone());
            log("connected", &json!({ "connection": number, "principal": who.as_str() }));
            let why = match service.serve(client).await {
                Ok(()) => "closed".to_owned(),
                Err(failure) => failure.message.lines().next().unwrap_or_default().to_owned(),
            };
            log("disconnected", &json!({ "connection": number, "principal": who.as_str(), "why": why }));
        }
    };
    let stop = async move {
        signals.next().await;
        log("stopping", &json!({}));
    };
    let served = server.serve_until(listening.listener, accept, stop).await;
    watching.abort();
    pruning.inspect(|pruning| pruning.abort());
    log("stopped", &json!({}));
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
async fn served(options: &Serve) -> Result<Served, Failure> {
    let spec = agents::resolve(options.agent.as_deref(), &options.agent_command, &Project::none())?;
    if spec.is_built_in {
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
        let agent = match &options.store {
            Some(url) => CodingAgent::with_store(config, store(url, options).await?).await,
            None => CodingAgent::new(config).await,
        };
        return Ok(Served::BuiltIn(Box::new(agent.map_err(|error| Failure::usage(error.to_string()))?)));
    }
    let owners = Owners::open(&spec.name)?;
    Ok(Served::Program { spec: Box::new(spec), sandbox: options.sandbox, owners: Arc::new(owners) })
}

/// The sessions of several servers.
async fn store(url: &str, options: &Serve) -> Result<Arc<PostgresStore>, Failure> {
    let mut settings = Settings::new(url).map_err(|error| Failure::usage(format!("--store: {error}")))?;
    settings.address.clone_from(&options.address);
    let connected = tokio::task::spawn_blocking(|| PostgresStore::connect(settings)).await;
    let failed = |what: String| Failure::new(Code::Died, format!("cannot use the database: {what}"));
    let store = connected.map_err(|_| failed("it was given up".into()))?.map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(store))
}

/// How often old sessions are looked for.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Deletes sessions that are older than they may be, now and every hour.
async fn prune(service: Arc<Service>, days: u32) {
    let Served::BuiltIn(agent) = &service.agent else { return };
    let age = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    loop {
        match agent.prune(Kept::for_age(age)).await {
            Ok(0) => {}
            Ok(count) => log("pruned", &json!({ "sessions": count })),
            Err(error) => log("not pruned", &json!({ "why": error.to_string() })),
        }
        tokio::time::sleep(PRUNE).await;
    }
}

impl Service {
    /// Passes messages between a client and its agent until one of them leaves. What the client may not say is answered
    /// here.
    async fn serve(&self, client: Accepted) -> Result<(), Failure> {
        let (client_reader, client_writer) = client.transport.into_streams();
        let failed = |error: std::io::Error| Failure::new(Code::Died, error.to_string());
        match &self.agent {
            Served::BuiltIn(agent) => {
                let (near, far) = tokio::io::duplex(256 << 10);
                let (reader, writer) = tokio::io::split(far);
                let server = agent.for_owner(client.principal.as_str()).server();
                let agent = tokio::spawn(server.connect(reader, writer));
                let (agent_reader, agent_writer) = tokio::io::split(near);
                let relay = Relay::new(client_reader, client_writer, agent_reader, agent_writer);
                let relayed = self.guarded(relay, &client.principal, None).run().await;
                // The agent ends its turns and writes down what is to be kept.
                let _ = agent.await;
                relayed.map(drop).map_err(failed)
            }
            Served::Program { spec, sandbox, owners } => {
                let directory = &self.directories[0];
                let confinement = Confinement::new(Some(*sandbox), None, spec, directory, &self.directories[1..])?;
                let mut command = spec.command().cwd(directory);
                if let Some(sandbox) = &confinement.agent {
                    command = sandbox.confine(command);
                }
                let started = command.spawn().map_err(|error| Failure::new(Code::Died, error.to_string()));
                let (process, stdin, stdout) = started?;
                let relay = Relay::new(client_reader, client_writer, stdout, stdin);
                let relayed = self.guarded(relay, &client.principal, Some(owners.clone())).run().await;
                process.shutdown(GRACE).await;
                relayed.map(drop).map_err(failed)
            }
        }
    }

    fn guarded(&self, relay: Relay, principal: &Principal, owners: Option<Arc<Owners>>) -> Relay {
        let mut guard = Guard::new(principal, self.directories.clone(), self.allows_mcp_commands, owners);
        let relay = relay.on_message(move |direction, message| guard.judge(direction, message));
        match self.bridge {
            Some(dialect) => relay.bridged(Bridge::new(dialect)),
            None => relay,
        }
    }
}

/// Writes a line for whoever looks after the server: a time, what happened, and nothing that was said.
fn log(event: &str, fields: &serde_json::Value) {
    let mut line = json!({ "time": attache::trace::rfc3339(std::time::SystemTime::now()), "event": event });
    if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object()) {
        line.extend(fields.clone());
    }
    eprintln!("{line}");
}
