//! The life of one server: it is connected, what it offers is listed and listed again, it dies and is started again.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use attache::model::mcp::McpServer;
use attache::process::{ExitStatus, Process};
use futures_util::future::Either;
use rmcp::service::{Peer, RunningService};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::acp::Acp;
use super::guard::Guarded;
use super::handler::{Handler, Progress};
use super::offers::{Listed, Offers, list};
use super::sse::Sse;
use super::words::{Reason, Secrets, Trouble, last_words, plain};
use super::{Notice, Setup, http, lock, oauth, server_name, stdio};

/// How long a program may take to leave after its stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long a connection may take to end.
const PARTING: Duration = Duration::from_secs(3);

/// How long we wait to hear how a program ended that has closed its stdout.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a list of tools is fetched again at most, however often a server says that it has changed.
const REST: Duration = Duration::from_secs(1);

type Running = RunningService<RoleClient, Handler>;

/// A server that worked for so long begins with all its restarts again.
const STEADY: Duration = Duration::from_secs(60);

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

    pub(super) fn notify(&self, slot: &Slot, text: String) {
        self.tell(Notice { server: slot.name.clone(), text, is_problem: true });
    }

    fn tell(&self, notice: Notice) {
        lock(&self.notices).push(notice);
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
    /// Told when a person wants the server started again.
    pub(super) again: Notify,
    /// Where one logs in to it, if one can.
    pub(super) login: Option<String>,
}

enum State {
    Connecting,
    Up(Up),
    /// It died and is started again. What it offers stays listed.
    Restarting(Offers, String),
    Down(String),
}

/// A server that can be used.
#[derive(Clone)]
pub(super) struct Up {
    pub(super) peer: Peer<RoleClient>,
    pub(super) progress: Progress,
    pub(super) secrets: Secrets,
    pub(super) offers: Offers,
    /// Why this connection ended, once it has.
    pub(super) ended: Arc<OnceLock<String>>,
}

impl Slot {
    pub(super) fn new(server: &McpServer, label: String) -> Self {
        // The name comes from outside and is shown to people.
        let name = plain(server_name(server)).replace('\n', " ");
        let login = oauth::login_address(server);
        Slot { name, label, state: Mutex::new(State::Connecting), again: Notify::new(), login }
    }

    /// The server, or why it cannot be used.
    pub(super) fn up(&self) -> Result<Up, String> {
        match &*lock(&self.state) {
            State::Up(up) => Ok(up.clone()),
            State::Restarting(_, text) | State::Down(text) => Err(text.clone()),
            State::Connecting => Err(format!("the MCP server `{}` is not connected yet", self.name)),
        }
    }

    /// What the server offers, also while it is started again, or why it offers nothing.
    pub(super) fn offers(&self) -> Result<Offers, String> {
        match &*lock(&self.state) {
            State::Up(up) => Ok(up.offers.clone()),
            State::Restarting(offers, _) => Ok(offers.clone()),
            State::Down(text) => Err(text.clone()),
            State::Connecting => Err(format!("the MCP server `{}` is not connected yet", self.name)),
        }
    }

    /// How the server is, in a word or a few.
    pub(super) fn condition(&self) -> String {
        match &*lock(&self.state) {
            State::Connecting => "connecting".into(),
            State::Up(_) => "connected".into(),
            State::Restarting(..) => "restarting".into(),
            State::Down(text) => text.clone(),
        }
    }

    fn is_restarting(&self) -> bool {
        matches!(&*lock(&self.state), State::Restarting(..))
    }

    /// The server, once it is back if it is started again just now.
    pub(super) async fn back(&self, shared: &Shared) -> Result<Up, String> {
        let mut changes = shared.changes.subscribe();
        let back = async { while self.is_restarting() && changes.changed().await.is_ok() {} };
        let limit = shared.setup.connect_limit;
        if timeout(limit, back).await.is_err() {
            let (name, limit) = (&self.name, limit.as_secs());
            return Err(format!("the MCP server `{name}` is being restarted and was not ready within {limit} seconds"));
        }
        self.up()
    }
}

/// Runs a server until all are to end. One that dies is started again, a few times in a row; one that cannot be used, or
/// stays dead, waits for somebody who wants it started again.
pub(super) async fn run(shared: Arc<Shared>, index: usize, server: McpServer) {
    let Some(slot) = shared.slots.get(index) else { return };
    let mut closing = shared.closing.subscribe();
    let mut life = Life::new(&shared, slot, &server);
    let mut restarts = 0;
    loop {
        let death = life.live(restarts > 0, &mut closing).await;
        life.settle();
        let Some(death) = death else { return };
        if death.lived.is_some_and(|lived| lived >= STEADY) {
            restarts = 0;
        }
        // What never worked is set up wrong, which time does not heal.
        let has_worked = death.lived.is_some() || restarts > 0;
        let delay = shared.setup.restarts.get(restarts).filter(|_| has_worked && death.may_pass).copied();
        let again = match delay {
            Some(delay) => {
                let text = format!("{}\nit is being restarted", death.text);
                if let Some(ended) = &death.ended {
                    let _ = ended.set(text.clone());
                    shared.notify(slot, text.clone());
                }
                shared.set(slot, State::Restarting(life.offers.clone(), text));
                restarts += 1;
                Either::Left(sleep(delay))
            }
            None => {
                let text = match restarts {
                    0 => death.text,
                    count => format!("{}\nit was restarted {count} times and is left alone now", death.text),
                };
                if let Some(ended) = &death.ended {
                    let _ = ended.set(text.clone());
                }
                shared.set(slot, State::Down(text.clone()));
                shared.notify(slot, text);
                restarts = 0;
                Either::Right(std::future::pending())
            }
        };
        death.body.end().await;
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return,
            () = slot.again.notified() => {
                restarts = 0;
                shared.set(slot, State::Connecting);
            }
            () = again => {}
        }
    }
}

/// How a life of a server ended, if it was not ended by us.
struct Death {
    text: String,
    /// How long it could be used. `None` if it never could.
    lived: Option<Duration>,
    /// Whether it may be better the next time.
    may_pass: bool,
    /// Where those who wait for an answer look why there is none.
    ended: Option<Arc<OnceLock<String>>>,
    /// What may still be left of it.
    body: Body,
}

/// What the server offers now, once it says that this has changed.
async fn refreshed(
    peer: &Peer<RoleClient>,
    handler: &Handler,
    slot: &Slot,
    limit: Duration,
    not_before: Instant,
) -> Result<Listed, Trouble> {
    handler.changed.notified().await;
    sleep_until(not_before).await;
    timeout(limit, list(peer, &slot.label)).await.unwrap_or(Err(Trouble::Late(limit.as_secs())))
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
            let (name, count) = (&slot.name, listed.offers.tools.len());
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

/// A server over all its connections.
struct Life<'a> {
    shared: &'a Shared,
    slot: &'a Slot,
    server: &'a McpServer,
    secrets: Secrets,
    /// What it offered last.
    offers: Offers,
    told: Told,
    is_settled: bool,
}

impl<'a> Life<'a> {
    fn new(shared: &'a Shared, slot: &'a Slot, server: &'a McpServer) -> Self {
        let secrets = Secrets::of(server, &shared.setup.hidden);
        Life { shared, slot, server, secrets, offers: Offers::default(), told: Told::default(), is_settled: false }
    }

    /// Says, once, that it is known whether the server can be used.
    fn settle(&mut self) {
        if !std::mem::replace(&mut self.is_settled, true) {
            self.shared.settle();
        }
    }

    /// Connects the server and uses it until it ends. `None` if all are to end.
    async fn live(&mut self, is_restart: bool, closing: &mut watch::Receiver<bool>) -> Option<Death> {
        let (shared, slot) = (self.shared, self.slot);
        let mut body = Body { process: None, reason: Reason::default(), secrets: self.secrets.clone() };
        let handler = Handler::new(&shared.setup.directories);
        let limit = shared.setup.connect_limit;
        let connected = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => None,
            connected = timeout(limit, body.connect(self.server, &shared.setup, slot, handler.clone())) => {
                Some(connected.unwrap_or(Err(Trouble::Late(limit.as_secs()))))
            }
        };
        let (running, listed) = match connected {
            Some(Ok(connected)) => connected,
            Some(Err(trouble)) => {
                let may_pass = trouble.may_pass();
                let hint = match &trouble {
                    Trouble::Login => {
                        let name = &slot.name;
                        format!("\nhint: `/mcp login {name}`, or `attache mcp login {name}` in a terminal")
                    }
                    _ => String::new(),
                };
                let why = body.explain(trouble).await;
                let text = format!("the MCP server `{}` cannot be used: {why}{hint}", slot.name);
                return Some(Death { text, lived: None, may_pass, ended: None, body });
            }
            None => {
                body.end().await;
                return None;
            }
        };
        let since = Instant::now();
        let ended = Arc::<OnceLock<String>>::default();
        let mut up = Up {
            peer: running.peer().clone(),
            progress: handler.progress.clone(),
            secrets: self.secrets.clone(),
            offers: self.take(listed),
            ended: ended.clone(),
        };
        shared.set(slot, State::Up(up.clone()));
        if is_restart {
            let text = format!("the MCP server `{}` is running again", slot.name);
            shared.tell(Notice { server: slot.name.clone(), text, is_problem: false });
        }
        self.settle();
        let trouble = self.stay(running, &mut up, &mut body, &handler, closing).await;
        let text = match trouble {
            Some(Trouble::Unwanted) => format!("the MCP server `{}` was stopped", slot.name),
            Some(trouble) => format!("the MCP server `{}` is gone: {}", slot.name, body.explain(trouble).await),
            None => {
                body.end().await;
                return None;
            }
        };
        Some(Death { text, lived: Some(since.elapsed()), may_pass: true, ended: Some(ended), body })
    }

    /// Follows what the server offers until it ends, and tells why it did; `None` if all are to end.
    async fn stay(
        &mut self,
        running: Running,
        up: &mut Up,
        body: &mut Body,
        handler: &Handler,
        closing: &mut watch::Receiver<bool>,
    ) -> Option<Trouble> {
        let (shared, slot, limit) = (self.shared, self.slot, self.shared.setup.connect_limit);
        let peer = up.peer.clone();
        let token = running.cancellation_token();
        let mut waiting = Box::pin(running.waiting());
        let mut is_over = false;
        let mut refresh = Box::pin(refreshed(&peer, handler, slot, limit, Instant::now()));
        let ended = loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => break None,
                _ = &mut waiting => {
                    is_over = true;
                    break Some(Trouble::Closed);
                }
                _ = body.exited() => break Some(Trouble::Closed),
                // A connection to an HTTP server has no end that is seen from here.
                () = slot.again.notified() => break Some(Trouble::Unwanted),
                listed = &mut refresh => {
                    match listed {
                        Ok(listed) => {
                            up.offers = self.take(listed);
                            shared.set(slot, State::Up(up.clone()));
                        }
                        Err(trouble) => {
                            let why = self.secrets.hide(&trouble.to_string());
                            self.told.tell_stale(shared, slot, &why);
                        }
                    }
                    refresh = Box::pin(refreshed(&peer, handler, slot, limit, Instant::now() + REST));
                }
            }
        };
        if ended.is_some() {
            // What a program said last may still be in the pipe.
            is_over = is_over || timeout(LAST_WORDS, &mut waiting).await.is_ok();
        }
        token.cancel();
        match (is_over, ended.is_some()) {
            (true, _) => {}
            // Those who wait for an answer are told at once.
            (false, true) => drop(tokio::spawn(timeout(PARTING, waiting))),
            (false, false) => drop(timeout(PARTING, waiting).await),
        }
        ended
    }

    fn take(&mut self, listed: Listed) -> Offers {
        self.told.tell(self.shared, self.slot, &listed);
        self.offers = listed.offers;
        self.offers.clone()
    }
}

/// What a server is made of beside its connection.
struct Body {
    process: Option<Process>,
    reason: Reason,
    secrets: Secrets,
}

impl Body {
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
            McpServer::Http(server) => {
                let config_dir = setup.config_dir.as_deref();
                let transport = http::open(server, config_dir, self.secrets.clone()).await?;
                self.serve(handler, transport).await?
            }
            McpServer::Sse(server) => {
                let sse = Sse::open(&server.url, &server.headers, self.reason.clone()).await?;
                self.serve(handler, sse).await?
            }
            McpServer::Acp(server) => self.serve(handler, Acp::open(server, setup.carrier.as_ref())?).await?,
            _ => return Err(Trouble::UnknownSort),
        };
        let listed = list(running.peer(), &slot.label).await?;
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
            text.push_str("\nlast lines on stderr: ");
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
