//! The agent: opens sessions, takes them up again, lists and deletes them, and logs in and out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use attache::Error;
use attache::agent::{
    Agent, Authenticate, ClientInfo, Context, Delete, Fork, HandlerError, List, OpenRequest, Opened, Restore, Server,
    SessionHandle,
};
use attache::model::auth::{AuthMethod, AuthMethodId};
use attache::model::capability::Capability;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::model::unstable::{McpMessageNotification, SetTitleRequest, SetTitleResponse};
use attache::proto::json::RawJson;
use attache_host::files::FileError;
use attache_host::mcp::{Loaded, name_of};
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::conversation::Conversation;
use crate::cut::Spill;
use crate::mcp::{self, Servers};
use crate::model::ModelError;
use crate::model::metered::{Budget, Meter};
use crate::model_list::ModelList;
use crate::project::Watched;
use crate::replay::{self, Past};
use crate::session::{self, Begin, CodingSession};
use crate::session_files::SessionFiles;
use crate::session_log::{SessionLog, Unused};
use crate::settings::{Settings, Values};
use crate::store::{self, Entry, FileStore, Kept, Log, Query, Store, StoreError};
use crate::system_prompt::{InstructionCache, Place};
use crate::toolbox::Toolbox;
use crate::tools::commands::{self, Commands};
use crate::tools::fetch::Fetch;
use crate::turn::Desk;
use crate::watch::Watches;
use crate::{lock, off_thread};

/// The coding agent.
///
/// It serves any client: on stdin and stdout, as `attache agent` does, or in the same process:
///
/// ```
/// use attache::Client;
/// use attache_agent::{CodingAgent, Config};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let directory = tempfile::tempdir()?;
/// let mut config = Config::new(directory.path().join("config"), directory.path().join("state"));
/// config.model = Some("offline".into());
/// let (ours, theirs) = tokio::io::duplex(1 << 16);
/// let (reader, writer) = tokio::io::split(theirs);
/// tokio::spawn(CodingAgent::new(config).await?.server().connect(reader, writer));
///
/// let (reader, writer) = tokio::io::split(ours);
/// let agent = Client::new("example", "1.0").connect(reader, writer).await?;
/// let session = agent.session(directory.path()).open().await?;
/// let mut turn = session.prompt("say hello").await?;
/// while let Some(event) = turn.next().await? {
///     // A client shows what comes, and answers what is asked.
///     event.decline().await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CodingAgent {
    config: Config,
    models: Arc<ModelList>,
    store: Arc<dyn Store>,
    /// How many more may wait for the store, of this owner: threads that wait are few, and others need some, too.
    store_calls: Arc<Semaphore>,
    /// The same of the owners that are connected.
    owners_calls: OwnersCalls,
    /// The sessions that are open here.
    open: Arc<Mutex<HashMap<SessionId, SessionLog>>>,
    /// Where messages of the client's own MCP servers go.
    routes: mcp::Routes,
    /// Tells sessions when their files change.
    watches: Watches,
}

/// By owner.
type OwnersCalls = Arc<Mutex<HashMap<String, Weak<Semaphore>>>>;

/// How many requests of one owner wait for the store at once, over all connections. A store that is away keeps each of them for a
/// while.
const STORE_CALLS: usize = 16;

/// How many sessions a page of the list has.
const PAGE: usize = 50;

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Sessions cannot be kept.
    #[error("sessions cannot be kept: {0}")]
    Store(#[from] StoreError),
}

/// Deletes a session that is not open, with all that is kept of it.
pub fn delete_session(config: &Config, store: &dyn Store, id: &str) -> Result<(), StoreError> {
    // What is kept beside the session of somebody else is theirs, too.
    if store.delete(id)? {
        delete_files(config, id);
    }
    Ok(())
}

/// Deletes what is kept beside the log of a session. The store took the id, so it is a plain name.
fn delete_files(config: &Config, id: &str) {
    let _ = std::fs::remove_dir_all(config.spill_dir(id));
    let _ = std::fs::remove_dir_all(config.checkpoints_dir(id));
}

impl CodingAgent {
    /// An agent that is set up like this, with its sessions in files. Looks for a model if none was named.
    pub async fn new(config: Config) -> Result<Self, StartError> {
        let directory = config.sessions_dir();
        let store = off_thread(move || FileStore::open(directory)).await?;
        let agent = CodingAgent::with_store(config, Arc::new(store)).await?;
        agent.prune(Kept::default()).await?;
        Ok(agent)
    }

    /// The same with its sessions in a store.
    pub async fn with_store(config: Config, store: Arc<dyn Store>) -> Result<Self, StartError> {
        let models = Arc::new(ModelList::find(&config).await?);
        let watches = Watches::new(config.watches_files);
        let (open, routes) = Default::default();
        let store_calls = Arc::new(Semaphore::new(STORE_CALLS));
        let owners_calls = OwnersCalls::default();
        Ok(CodingAgent { config, models, store, store_calls, owners_calls, open, routes, watches })
    }

    /// The same agent for a connection of somebody who sees no sessions but their own. It has the same models.
    pub fn for_owner(&self, owner: &str) -> Self {
        CodingAgent {
            config: self.config.clone(),
            models: self.models.clone(),
            store: self.store.owned_by(owner),
            store_calls: self.store_calls_of(owner),
            owners_calls: self.owners_calls.clone(),
            open: Arc::default(),
            routes: mcp::Routes::default(),
            watches: self.watches.clone(),
        }
    }

    fn store_calls_of(&self, owner: &str) -> Arc<Semaphore> {
        let calls = &mut *lock(&self.owners_calls);
        if let Some(calls) = calls.get(owner).and_then(Weak::upgrade) {
            return calls;
        }
        calls.retain(|_, calls| calls.strong_count() > 0);
        let own = Arc::new(Semaphore::new(STORE_CALLS));
        calls.insert(owner.to_owned(), Arc::downgrade(&own));
        own
    }

    /// Deletes the sessions that are too many or too old, of each owner by itself, with all that is kept of them here. Returns
    /// how many they were.
    pub async fn prune(&self, kept: Kept) -> Result<usize, StoreError> {
        let config = self.config.clone();
        let prune = move |store: &dyn Store| {
            let ids = store.prune(kept)?;
            ids.iter().for_each(|id| delete_files(&config, id));
            Ok(ids.len())
        };
        self.stored(prune).await
    }

    /// Prepares to serve it, with all that it offers.
    pub fn server(self) -> Server<Self> {
        let info = self.models.first_info();
        let can_log_in = !self.models.auth_methods().is_empty();
        let server = attache::serve(self)
            .restores()
            .lists()
            .deletes()
            .forks()
            .handles(async |agent: Arc<Self>, request: SetTitleRequest, _| Ok(agent.set_title(request).await?))
            .handles_notification(async |agent: Arc<Self>, message: McpMessageNotification, _| {
                agent.routes.take(&message);
                Ok(())
            })
            .sessions(|session| {
                session.additional_directories = Some(Capability::new());
                session.prompt.embedded_context = Some(Capability::new());
                session.prompt.image = info.images.then(Capability::new);
                session.prompt.audio = info.audio.then(Capability::new);
                session.mcp.http = Some(Capability::new());
                session.mcp.sse = Some(Capability::new());
            });
        if can_log_in { server.authenticates() } else { server }
    }

    /// Opens a session on its log.
    async fn build(
        &self,
        request: OpenRequest,
        handle: SessionHandle,
        log: Box<dyn Log>,
        past: Past,
    ) -> Result<Opened<CodingSession>, Error> {
        let given: Vec<PathBuf> =
            std::iter::once(&request.cwd).chain(&request.directories).map(PathBuf::from).collect();
        let session_log = SessionLog::new(handle.clone(), log);
        for repair in past.repairs {
            session_log.keep(repair).await?;
        }
        let news = self.models.news();
        self.models.refresh();
        let is_model_kept = past.settings.iter().any(|(option, _)| option == "model");
        let read = {
            let (config, models, handle) = (self.config.clone(), self.models.clone(), handle.clone());
            move || {
                let files = SessionFiles::read(&config, given, &handle).map_err(wrong_directory)?;
                Ok::<_, Error>((files, settings(&config, &models, &past.settings)))
            }
        };
        let (files, (settings, other_model)) = off_thread(read).await?;
        let id = handle.id().clone();
        let roots = files.roots;
        let (cwd, directories) = (roots[0].clone(), roots[1..].to_vec());
        let spill = Arc::new(Spill::new(self.config.spill_dir(id.as_str())));
        let commands = Commands::new(commands::Setup {
            roots: roots.clone(),
            client: Some(handle.clone()),
            sandbox: settings.now().sandbox,
            hidden: vec![self.config.config_dir.clone(), self.config.state_dir.clone()],
            pass_env: self.config.pass_env.clone(),
            writable: self.config.writable.clone(),
            state_dir: Some(self.config.state_dir.clone()),
            layer_limits: self.config.layer_limits,
            fixed: self.config.stays_inside.then(|| files.workspace.files()),
            ..commands::Setup::new(cwd.clone(), spill.clone())
        });
        let Loaded { mut servers, values: hidden, .. } = files.servers;
        servers.retain(|server| !request.mcp_servers.iter().any(|given| name_of(given) == name_of(server)));
        servers.extend(request.mcp_servers);
        let setup = mcp::Setup {
            directories: roots,
            spill: Some(spill.clone()),
            hidden,
            config_dir: Some(self.config.config_dir.clone()),
            carrier: Some(mcp::Carrier::new(handle.clone(), self.routes.clone())),
            ..mcp::Setup::new(cwd.clone())
        };
        let fetch = Fetch::new(spill.clone());
        let budget = Budget { cost: self.config.limits.max_cost, tokens: self.config.limits.max_tokens_total };
        let meter = Meter::new(budget, past.spent).for_run(self.config.run_budget);
        let mut notices = files.notices;
        notices.extend(files.gate.problems().await);
        notices.extend(other_model);
        let desk = Desk {
            log: session_log.clone(),
            settings,
            tools: Toolbox {
                workspace: files.workspace,
                commands,
                servers: Servers::start(servers, setup),
                fetch: if self.config.fetches_loopback { fetch.with_loopback() } else { fetch },
                skills: files.skills.clone(),
            },
            gate: files.gate,
            models: Arc::new(self.models.metered(meter)),
            spill,
            place: Place {
                cwd,
                directories,
                config_dir: self.config.config_dir.clone(),
                system: self.config.system.clone(),
                skills: files.skills,
                read: InstructionCache::default(),
            },
            limits: self.config.limits.clone(),
            checkpoints: files.checkpoints,
            hooks: files.hooks,
            context_told: Mutex::default(),
            unended: Mutex::default(),
            left: Mutex::default(),
        };
        let teller = news.tell(desk.models.clone(), desk.settings.clone(), handle.clone());
        let watched = Watched::start(files.commands, desk.tools.servers.offered(), handle, &self.watches);
        let (options, available) = (desk.settings.options(), watched.available());
        lock(&self.open).insert(id.clone(), session_log.clone());
        let open = self.open.clone();
        let place = session::Place::new(move || drop(lock(&open).remove(&id)));
        let begin = Begin {
            conversation: Conversation::new(past.messages, past.summary, past.context),
            has_title: past.title.is_some(),
            is_model_kept,
            notices,
        };
        let session = CodingSession::new(desk, begin, watched, teller, place);
        Ok(Opened::from(session).options(options).commands(available))
    }

    /// Nothing is opened before the key is there that was asked for, in a directory that is not there, or by a
    /// relative path.
    async fn check(&self, request: &OpenRequest, client: &ClientInfo) -> Result<(), Error> {
        let has_terminal = client.capabilities.auth.terminal.is_some();
        let models = self.models.clone();
        let directories: Vec<PathBuf> =
            std::iter::once(&request.cwd).chain(&request.directories).map(PathBuf::from).collect();
        off_thread(move || {
            models.check_key().map_err(|error| models.auth_required(error, has_terminal))?;
            for directory in directories {
                if !directory.is_absolute() {
                    return Err(Error::Refused(ErrorObject::wrong_params("cwd: not an absolute path")));
                }
                if !directory.is_dir() {
                    return Err(Error::Refused(ErrorObject::wrong_params("cwd: there is no such directory")));
                }
            }
            Ok(())
        })
        .await
    }

    /// Opens a session's log. One that another process has may be free in a moment: when that process is just ending, or
    /// was killed while it started a command, or lets go of it because it is asked to.
    async fn take_log(&self, id: &str) -> Result<(Box<dyn Log>, Vec<Entry>), StoreError> {
        let open = || {
            let id = id.to_owned();
            self.stored(move |store| store.open_log(&id))
        };
        for attempt in 0..10 {
            match open().await {
                Err(StoreError::Busy { .. }) if attempt == 0 => {
                    let id = id.to_owned();
                    self.stored(move |store| store.ask_to_release(&id)).await?;
                }
                Err(StoreError::Busy { .. }) => {}
                opened => return opened,
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        open().await
    }

    /// Asks the store, and not on the runtime's thread: a disk that is stuck must not keep another session from being
    /// cancelled.
    async fn stored<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.store.clone();
        // Nobody closes it.
        let _place = self.store_calls.acquire().await;
        off_thread(move || work(&*store)).await
    }

    /// The log of a session that was just begun. Of one that is of a client's own making nothing is kept until something is said
    /// in it.
    fn unused(&self, id: &SessionId, log: Box<dyn Log>) -> Box<dyn Log> {
        if self.store.owner().is_empty() { log } else { Box::new(Unused::new(self.store.clone(), id.as_str(), log)) }
    }

    async fn set_title(&self, request: SetTitleRequest) -> Result<SetTitleResponse, Error> {
        let title = crate::tools::first_line(&request.title, 200);
        let open = lock(&self.open).get(&request.session_id).cloned();
        match open {
            Some(session_log) => session_log.title(&title).await?,
            None => {
                let (id, entry) = (request.session_id.clone(), Entry::Title { title: title.clone() });
                let kept = self.stored(move |store| {
                    let (mut log, _) = store.open_log(id.as_str())?;
                    log.append(&entry).and_then(|()| log.sync())
                });
                kept.await.map_err(|error| session_error(error, &request.session_id))?;
            }
        }
        Ok(SetTitleResponse::new(title))
    }
}

impl Agent for CodingAgent {
    type Session = CodingSession;

    fn info(&self) -> Implementation {
        Implementation::new("attache", env!("CARGO_PKG_VERSION")).title("Attaché")
    }

    async fn open(&self, request: OpenRequest, handle: SessionHandle) -> Result<Opened<CodingSession>, HandlerError> {
        self.check(&request, handle.client()).await?;
        let (id, new) = (handle.id().clone(), opened(&request));
        let log = self.stored(move |store| store.create(id.as_str(), new)).await.map_err(store_error)?;
        let log = self.unused(handle.id(), log);
        Ok(self.build(request, handle, log, Past::default()).await?)
    }
}

impl Restore for CodingAgent {
    async fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<CodingSession>, HandlerError> {
        self.check(&request, handle.client()).await?;
        let taken = self.take_log(session.as_str()).await;
        let (log, mut entries) = taken.map_err(|error| session_error(error, &session))?;
        let past = Past::read(&entries);
        if replay {
            entries.extend(past.repairs.iter().cloned());
            replay::tell(&handle, &entries).await?;
        } else {
            replay::tell_usage(&handle, &entries).await?;
        }
        Ok(self.build(request, handle, log, past).await?)
    }
}

impl Fork for CodingAgent {
    async fn fork(
        &self,
        session: SessionId,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> Result<Opened<CodingSession>, HandlerError> {
        self.check(&request, handle.client()).await?;
        let (from, id, new) = (session.clone(), handle.id().clone(), opened(&request));
        let forked = self.stored(move |store| store.fork(from.as_str(), id.as_str(), new)).await;
        let (log, entries) = forked.map_err(|error| session_error(error, &session))?;
        Ok(self.build(request, handle, log, Past::read(&entries)).await?)
    }
}

impl List for CodingAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        let query = Query { cwd: request.cwd, cursor: request.cursor, limit: PAGE };
        let page = self.stored(move |store| store.list(&query)).await.map_err(store_error)?;
        let sessions = page.sessions.into_iter().map(|summary| {
            SessionInfo::new(summary.id, summary.cwd)
                .additional_directories(summary.directories)
                .updated_at(summary.updated)
                .with(|info| info.title = summary.title)
        });
        Ok(ListSessionsResponse::new(Vec::new()).with(|response| {
            response.sessions = sessions.collect();
            response.next_cursor = page.next;
        }))
    }
}

impl Delete for CodingAgent {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        let open = lock(&self.open).remove(&session);
        if let Some(session_log) = open {
            session_log.leave().await;
        }
        let config = self.config.clone();
        let deleted = self.stored(move |store| delete_session(&config, store, session.as_str())).await;
        Ok(deleted.map_err(store_error)?)
    }
}

impl Authenticate for CodingAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        self.models.auth_methods()
    }

    async fn authenticate(&self, _: AuthMethodId, _: Context) -> Result<(), HandlerError> {
        let models = self.models.clone();
        Ok(off_thread(move || models.log_in().map_err(|error| models.auth_required(error, false))).await?)
    }

    async fn logout(&self) -> Result<(), HandlerError> {
        let models = self.models.clone();
        let logged_out = off_thread(move || models.log_out()).await;
        Ok(logged_out.map_err(|error| ErrorObject::internal(error.to_string()))?)
    }
}

/// What sessions begin with: what is set for all of them, and what was set in this one. And what the person should know
/// if the session cannot go on with its model.
fn settings(config: &Config, models: &ModelList, set: &[(String, String)]) -> (Settings, Option<String>) {
    let values =
        Values { mode: config.mode, model: models.first().into(), thought: config.thought, sandbox: config.sandbox };
    let choices = models.choices();
    let thinks = choices.iter().any(|(id, _)| models.facts(id).thinks);
    let settings = Settings::new(values, choices, thinks).fixing_sandbox(config.stays_inside);
    for (option, value) in set.iter().filter(|(option, _)| option != "model") {
        // What cannot be had any more stays as it is by default.
        let _ = settings.set_word(option, value);
    }
    let own = set.iter().rfind(|(option, _)| option == "model").map(|(_, id)| id.as_str());
    // Keys are read now and not on the runtime's thread. A model that its provider does not list any more may still be
    // there; one without a provider or a key is not.
    let opened = models.open(own.unwrap_or(models.first()));
    match (own, opened) {
        (Some(own), Ok(_)) => {
            settings.add_model(own);
            let _ = settings.set_word("model", own);
            (settings, None)
        }
        (Some(own), Err(error)) if own != models.first() => {
            let _ = models.open(models.first());
            let (own, now) = (crate::tools::first_line(own, 80), models.first());
            let why = error.message.lines().next().unwrap_or_default();
            let notice = format!("This session's model `{own}` cannot be used: {why}. It goes on with `{now}`.");
            (settings, Some(notice))
        }
        _ => (settings, None),
    }
}

fn opened(request: &OpenRequest) -> store::Opened {
    let created = attache::trace::rfc3339(std::time::SystemTime::now());
    store::Opened {
        cwd: request.cwd.clone(),
        directories: request.directories.clone(),
        created,
        ..store::Opened::default()
    }
}

/// What a client is told of a session that cannot be had.
fn session_error(error: StoreError, session: &SessionId) -> Error {
    match error {
        StoreError::NotFound(_) | StoreError::WrongId(_) => Error::Refused(ErrorObject::session_not_found(session)),
        error => store_error(error),
    }
}

fn store_error(error: StoreError) -> Error {
    Error::Refused(match error {
        StoreError::NotFound(_) | StoreError::WrongId(_) => ErrorObject::not_found("Session not found"),
        StoreError::Busy { holder, .. } => open_elsewhere(OPEN_ELSEWHERE, holder),
        StoreError::Lost { holder, .. } => open_elsewhere(TAKEN_OVER, holder),
        StoreError::WrongCursor => ErrorObject::wrong_params("cursor: unknown or expired"),
        error => ErrorObject::internal(error.to_string()),
    })
}

/// What a client is told of a session that is open somewhere else.
const OPEN_ELSEWHERE: &str = "the session is open in another window, or on another machine\n\
    hint: close it there, or fork it to go on with a copy";

/// What a client is told whose session was opened somewhere else meanwhile.
pub(crate) const TAKEN_OVER: &str = "the session was taken over: it was opened in another window, or on another machine\n\
    hint: load it again to go on here, when it is closed there, or fork it to go on with a copy";

/// What a client is told of a session that another process has, and where it finds that one: as `data.server`.
pub(crate) fn open_elsewhere(what: &'static str, holder: Option<String>) -> ErrorObject {
    let error = ErrorObject::invalid_request(what);
    match holder.and_then(|holder| RawJson::from_value(&serde_json::json!({ "server": holder })).ok()) {
        Some(data) => error.data(data),
        None => error,
    }
}

/// What a client is told of a directory that cannot be opened. Only some of the reasons are the client's fault.
fn wrong_directory(error: FileError) -> Error {
    Error::Refused(match error {
        FileError::Io { source, .. } if !is_refused(&source) => {
            ErrorObject::internal(format!("cannot open the directory: {}", os_words(&source)))
        }
        _ => ErrorObject::wrong_params("cwd: the directory cannot be opened"),
    })
}

/// What the system calls an error, without its number.
fn os_words(error: &std::io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or(&words).to_owned()
}

fn is_refused(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Only what the client can do something about is its fault. The numbers are Unix's own.
    #[test]
    fn a_directory_that_we_cannot_open_is_not_the_clients_fault() {
        let said = |error: std::io::Error| {
            let error = FileError::Io { path: "/a".into(), source: error };
            let said = wrong_directory(error).to_peer();
            (said.code, said.message)
        };
        for (number, words) in [
            (libc::EMFILE, "Too many open files"),
            (libc::ENFILE, "Too many open files in system"),
            (libc::ENOMEM, "Cannot allocate memory"),
        ] {
            let expected = format!("cannot open the directory: {words}");
            assert_eq!(said(std::io::Error::from_raw_os_error(number)), (-32603, expected));
        }
        assert_eq!(said(std::io::ErrorKind::PermissionDenied.into()).0, -32602);
    }
}
