//! MCP servers: programs and HTTP servers that the client or the configuration names. The model gets their tools; a
//! person gets their prompts as slash commands (`/server:prompt`) and mentions their resources (`@server:uri`).
//!
//! [`Servers::start`] returns at once; the servers are connected in the background. One that fails is told about once,
//! and the others work on. One that dies is started again, a few times; its tools stay listed, and calls wait for it.

mod acp;
mod call;
mod content;
mod guard;
mod handler;
mod http;
mod names;
pub mod oauth;
mod offers;
mod prompts;
mod server;
mod sse;
mod stdio;
mod tools;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::model::Secret;
use attache::model::mcp::McpServer;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use acp::Carrier;
pub(crate) use acp::Routes;
pub use call::McpWork;
use oauth::Login;
pub(crate) use prompts::{Offered, for_model};
use server::{Shared, Slot};

use crate::cut::Spill;
use crate::lock;
use crate::model::ToolSpec;

/// How long [`Servers::close`] waits for all servers together.
const GOODBYE: Duration = Duration::from_secs(8);

/// Where servers work, and how long they may take.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The session's directory, in which programs are started.
    pub cwd: PathBuf,
    /// All directories of the session, for servers that ask.
    pub directories: Vec<PathBuf>,
    /// How long a server may take until it is connected and has listed its tools.
    pub connect_limit: Duration,
    /// How long a call may take.
    pub call_limit: Duration,
    /// How long a server that died stays dead before each restart in a row. After the last it is left alone.
    pub restarts: Vec<Duration>,
    /// Where results that are too long are kept whole. Without it, the rest of them is lost.
    pub spill: Option<Arc<Spill>>,
    /// Values that servers were given in confidence besides those of their variables and headers: they are taken out of
    /// what is shown.
    pub hidden: Vec<Secret>,
    /// The user's settings, where logins to HTTP servers are kept. Without them, there are none.
    pub config_dir: Option<PathBuf>,
    /// The client's connection, for servers that the client carries messages to. Without it, there are none.
    pub carrier: Option<Carrier>,
}

impl Setup {
    /// The usual limits, in one directory.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        Setup {
            directories: vec![cwd.clone()],
            cwd,
            connect_limit: Duration::from_secs(30),
            call_limit: Duration::from_secs(600),
            restarts: [500, 2_000, 8_000, 20_000].map(Duration::from_millis).into(),
            spill: None,
            hidden: Vec::new(),
            config_dir: None,
            carrier: None,
        }
    }
}

/// Something about a server that people have to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The server's name.
    pub server: String,
    /// What happened, in sentences for people, with the server's name in it.
    pub text: String,
    /// Whether something is wrong.
    pub is_problem: bool,
}

/// The MCP servers of a session. They end when this is dropped; [`Servers::close`] is the polite way.
pub struct Servers {
    shared: Arc<Shared>,
    /// One task a server. Ending a task ends its server.
    tasks: JoinSet<()>,
}

impl Servers {
    /// Begins to start and connect the servers. Must be called in a tokio runtime.
    pub fn start(servers: Vec<McpServer>, setup: Setup) -> Self {
        let labels = names::labels(&servers.iter().map(server_name).collect::<Vec<_>>());
        let slots = servers.iter().zip(labels).map(|(server, label)| Slot::new(server, label)).collect();
        let shared = Arc::new(Shared::new(slots, setup));
        let mut tasks = JoinSet::new();
        for (index, server) in servers.into_iter().enumerate() {
            tasks.spawn(server::run(shared.clone(), index, server));
        }
        Servers { shared, tasks }
    }

    /// Waits until every server is connected or has failed.
    pub async fn ready(&self) {
        let _ = self.shared.pending.subscribe().wait_for(|pending| *pending == 0).await;
    }

    /// The tools that there are now, in an order that stays the same.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = Vec::new();
        for slot in &self.shared.slots {
            if let Ok(offers) = slot.offers() {
                specs.extend(offers.tools.iter().map(|tool| tool.spec.clone()));
            }
        }
        specs
    }

    /// What people have to know and have not been told: each notice is given once.
    pub fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *lock(&self.shared.notices))
    }

    /// A number that grows whenever there are other tools or new notices; wait for it with `changed()`.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Starts a server again, whatever became of it. It is named as in the configuration, or as in its tools.
    pub fn restart(&self, name: &str) -> Result<(), String> {
        self.slot(name)?.again.notify_one();
        Ok(())
    }

    /// Begins to log in to a server. When that is done, [restart](Servers::restart) it.
    pub async fn begin_login(&self, name: &str) -> Result<Login, String> {
        let (url, config_dir, name) = self.login_place(name)?;
        let begun = Login::begin_at(url, config_dir, None).await;
        begun.map_err(|error| format!("cannot log in to the MCP server `{name}`: {error}"))
    }

    /// Forgets the login to a server. Tells whether there was one.
    pub async fn logout(&self, name: &str) -> Result<bool, String> {
        let (url, config_dir, name) = self.login_place(name)?;
        let left = oauth::logout_at(url, config_dir).await;
        left.map_err(|error| format!("cannot log out of the MCP server `{name}`: {error}"))
    }

    fn login_place(&self, name: &str) -> Result<(&str, &Path, &str), String> {
        let slot = self.slot(name)?;
        let place = slot.login.as_deref().zip(self.shared.setup.config_dir.as_deref());
        let (url, config_dir) =
            place.ok_or_else(|| format!("one does not log in to the MCP server `{}`", slot.name))?;
        Ok((url, config_dir, &slot.name))
    }

    /// The server of a name, or a sentence for people.
    fn slot(&self, name: &str) -> Result<&Slot, String> {
        let slots = &self.shared.slots;
        let found = slots.iter().find(|slot| slot.name == name).or(slots.iter().find(|slot| slot.label == name));
        found.ok_or_else(|| format!("there is no MCP server `{}`", crate::tools::first_line(name, 80)))
    }

    /// Ends all servers, politely, and waits until they have ended.
    pub async fn close(mut self) {
        self.shared.closing.send_replace(true);
        let _ = tokio::time::timeout(GOODBYE, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.shared.slots.iter().map(|slot| slot.name.as_str()).collect();
        f.debug_struct("Servers").field("names", &names).finish_non_exhaustive()
    }
}

fn server_name(server: &McpServer) -> &str {
    match server {
        McpServer::Stdio(server) => &server.name,
        McpServer::Http(server) => &server.name,
        McpServer::Sse(server) => &server.name,
        McpServer::Acp(server) => &server.name,
        _ => "unknown",
    }
}
