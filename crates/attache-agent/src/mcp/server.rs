//! The life of one server: it is connected, its tools are listed and listed again, and it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::model::mcp::McpServer;
use attache::process::{ExitStatus, Process};
use rmcp::service::{Peer, RunningService};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::guard::Guarded;
use super::handler::{Handler, Progress};
use super::sse::Sse;
use super::tools::{Listed, Tool, fetch};
use super::words::{Reason, Secrets, Trouble, last_words, plain};
use super::{Notice, Setup, http, lock, stdio};

/// How long a program may take to leave after its stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long a connection may take to end.
const PARTING: Duration = Duration::from_secs(3);

/// How long we wait to hear how a program ended that has closed its stdout.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a list of tools is fetched again at most, however often a server says that it has changed.
const REST: Duration = Duration::from_secs(1);

type Running = RunningService<RoleClient, Handler>;

/// What the servers of a session share.
pub(super) struct Shared {
    pub(super) slots: Vec<Slot>,
    pub(super) setup: Setup,
    pub(super) notices: Mutex<Vec<Notice>>,
    pub(super) changes: watch::Sender<u64>,
    /// How many servers are neither connected nor failed.
    pub(super) pending: watch::Sender<usize>,
    pub(super) closing: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(slots: Vec<Slot>, setup: Setup) -> Self {
        let pending = watch::Sender::new(slots.len());
        Shared {
            slots,
            setup,
            notices: Mutex::default(),
            changes: watch::Sender::new(0),
            pending,
            closing: watch::Sender::new(false),
        }
    }

    fn set(&self, slot: &Slot, state: State) {
        *lock(&slot.state) = state;
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn notify(&self, slot: &Slot, text: String) {
        lock(&self.notices).push(Notice { server: slot.name.clone(), text });
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn settle(&self) {
        self.pending.send_modify(|pending| *pending -= 1);
    }
}

/// The place of one server.
pub(super) struct Slot {
    /// What people call it.
    pub(super) name: String,
    /// What it is called in the names of its tools.
    pub(super) label: String,
    state: Mutex<State>,
}

enum State {
    Connecting,
    Up(Up),
    Down(String),
}

/// A server that can be used.
#[derive(Clone)]
pub(super) struct Up {
    pub(super) peer: Peer<RoleClient>,
    pub(super) progress: Progress,
    pub(super) secrets: Secrets,
    pub(super) tools: Arc<[Tool]>,
}

impl Slot {
    pub(super) fn new(name: &str, label: String) -> Self {
        // The name comes from outside and is shown to people.
        Slot { name: plain(name).replace('\n', " "), label, state: Mutex::new(State::Connecting) }
    }

    /// The server, or why it cannot be used.
    pub(super) fn up(&self) -> Result<Up, String> {
        match &*lock(&self.state) {
            State::Up(up) => Ok(up.clone()),
            State::Down(text) => Err(text.clone()),
            State::Connecting => Err(format!("the MCP server `{}` is not connected yet", self.name)),
        }
    }
}

/// Runs a server until it ends or all are to end.
pub(super) async fn run(shared: Arc<Shared>, index: usize, server: McpServer) {
    let Some(slot) = shared.slots.get(index) else { return };
    let mut life = Life { process: None, reason: Reason::default(), secrets: Secrets::of(&server) };
    let handler = Handler::new(&shared.setup.directories);
    let mut closing = shared.closing.subscribe();
    let limit = shared.setup.connect_limit;
    let connected = tokio::select! {
        biased;
        _ = closing.wait_for(|closing| *closing) => None,
        connected = timeout(limit, life.connect(&server, &shared.setup, slot, handler.clone())) => {
            Some(connected.unwrap_or(Err(Trouble::Late(limit.as_secs()))))
        }
    };
    // What it was given in confidence is needed no longer.
    drop(server);
    let (running, listed) = match connected {
        Some(Ok(connected)) => connected,
        Some(Err(trouble)) => {
            let text = format!("the MCP server `{}` cannot be used: {}", slot.name, life.explain(trouble).await);
            shared.set(slot, State::Down(text.clone()));
            shared.notify(slot, text);
            shared.settle();
            return life.end().await;
        }
        None => {
            shared.settle();
            return life.end().await;
        }
    };

    let peer = running.peer().clone();
    let token = running.cancellation_token();
    let mut up = Up {
        peer: peer.clone(),
        progress: handler.progress.clone(),
        secrets: life.secrets.clone(),
        tools: Arc::default(),
    };
    let mut told = Told::default();
    told.tell(&shared, slot, &listed);
    up.tools = listed.tools.into();
    shared.set(slot, State::Up(up.clone()));
    shared.settle();

    let mut waiting = Box::pin(running.waiting());
    let mut is_over = false;
    let mut refresh = Box::pin(refreshed(&peer, &handler, slot, limit, Instant::now()));
    let ended = loop {
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => break None,
            _ = &mut waiting => {
                is_over = true;
                break Some(Trouble::Closed);
            }
            _ = life.exited() => break Some(Trouble::Closed),
            listed = &mut refresh => {
                match listed {
                    Ok(listed) => {
                        told.tell(&shared, slot, &listed);
                        up.tools = listed.tools.into();
                        shared.set(slot, State::Up(up.clone()));
                    }
                    Err(trouble) => told.tell_stale(&shared, slot, &life.secrets.hide(&trouble.to_string())),
                }
                refresh = Box::pin(refreshed(&peer, &handler, slot, limit, Instant::now() + REST));
            }
        }
    };
    if let Some(trouble) = ended {
        // What a program said last may still be in the pipe.
        is_over = is_over || timeout(LAST_WORDS, &mut waiting).await.is_ok();
        let text = format!("the MCP server `{}` is gone: {}", slot.name, life.explain(trouble).await);
        shared.set(slot, State::Down(text.clone()));
        shared.notify(slot, text);
    }
    token.cancel();
    if !is_over {
        let _ = timeout(PARTING, waiting).await;
    }
    life.end().await;
}

/// The new list of tools, once the server says that it has changed.
async fn refreshed(
    peer: &Peer<RoleClient>,
    handler: &Handler,
    slot: &Slot,
    limit: Duration,
    not_before: Instant,
) -> Result<Listed, Trouble> {
    handler.changed.notified().await;
    sleep_until(not_before).await;
    timeout(limit, fetch(peer, &slot.label)).await.unwrap_or(Err(Trouble::Late(limit.as_secs())))
}

/// What people have been told of a server's list of tools, to tell it once.
#[derive(Default)]
struct Told {
    is_cut: bool,
    is_stale: bool,
}

impl Told {
    fn tell(&mut self, shared: &Shared, slot: &Slot, listed: &Listed) {
        if listed.is_cut && !std::mem::replace(&mut self.is_cut, true) {
            let (name, count) = (&slot.name, listed.tools.len());
            shared.notify(
                slot,
                format!("the MCP server `{name}` has more tools than can be used; the first {count} are"),
            );
        }
    }

    fn tell_stale(&mut self, shared: &Shared, slot: &Slot, why: &str) {
        if !std::mem::replace(&mut self.is_stale, true) {
            shared.notify(
                slot,
                format!("the MCP server `{}` has other tools now, but does not list them: {why}", slot.name),
            );
        }
    }
}

/// What a server is made of beside its connection.
struct Life {
    process: Option<Process>,
    reason: Reason,
    secrets: Secrets,
}

impl Life {
    async fn connect(
        &mut self,
        server: &McpServer,
        setup: &Setup,
        slot: &Slot,
        handler: Handler,
    ) -> Result<(Running, Listed), Trouble> {
        let running = match server {
            McpServer::Stdio(server) => {
                let (process, pipes) = stdio::start(server, &setup.cwd, self.reason.clone()).await?;
                self.process = Some(process);
                self.serve(handler, pipes).await?
            }
            McpServer::Http(server) => self.serve(handler, http::open(&server.url, &server.headers).await?).await?,
            McpServer::Sse(server) => {
                let sse = Sse::open(&server.url, &server.headers, self.reason.clone()).await?;
                self.serve(handler, sse).await?
            }
            _ => return Err(Trouble::UnknownSort),
        };
        let listed = fetch(running.peer(), &slot.label).await?;
        Ok((running, listed))
    }

    async fn serve(
        &self,
        handler: Handler,
        transport: impl Transport<RoleClient> + 'static,
    ) -> Result<Running, Trouble> {
        let transport = Guarded::new(transport, self.reason.clone());
        handler.serve(transport).await.map_err(|error| Trouble::of_start(&error))
    }

    /// Waits for the program's end. Never comes back where there is none.
    async fn exited(&mut self) -> ExitStatus {
        match &mut self.process {
            Some(process) => process.wait().await,
            None => std::future::pending().await,
        }
    }

    /// What went wrong, as well as it can be told.
    async fn explain(&mut self, trouble: Trouble) -> String {
        let trouble = self.reason.get().cloned().unwrap_or(trouble);
        let exit = match trouble {
            Trouble::Closed => timeout(LAST_WORDS, self.exited()).await.ok(),
            _ => None,
        };
        let mut text = match exit {
            Some(status) => format!("it ended with {status}"),
            None => trouble.to_string(),
        };
        let words = self.process.as_ref().map(|process| last_words(&process.stderr_tail())).unwrap_or_default();
        if !words.is_empty() {
            text.push_str("\nits last words: ");
            text.push_str(&words);
        }
        self.secrets.hide(&text)
    }

    async fn end(self) {
        if let Some(process) = self.process {
            process.shutdown(GRACE).await;
        }
    }
}
