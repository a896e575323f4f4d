//! Connections to the database: a few of them, each statement bounded in time, and tried again while the database is away.

use std::error::Error as _;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use attache_agent::store::StoreError;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::lock;
use crate::settings::Settings;
use crate::tls::Tls;

/// The values of a statement, with their types: so it is sent and answered in one round.
pub(crate) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// How long is waited after the first failure, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The database.
pub(crate) struct Database {
    pub(crate) settings: Settings,
    tls: Tls,
    room: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// A connection, and the task that drives it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server that does not answer would keep it.
        self.task.abort();
    }
}

/// Why a statement was not answered.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database could not be reached, or did not answer. Nobody knows whether it was done.
    Away(String),
    /// The database says no. It was not done.
    Refused(StoreError),
}

impl Database {
    pub(crate) fn new(mut settings: Settings) -> Result<Self, StoreError> {
        let tls =
            Tls::new(settings.root_certificates.as_deref()).map_err(|problem| StoreError::Database { problem })?;
        let options = settings.database.get_options().unwrap_or_default();
        let timeout = settings.statement_timeout.as_millis().max(1);
        let options = format!("{options} -c statement_timeout={timeout}");
        settings.database.options(options.trim_start()).connect_timeout(settings.connect_timeout);
        settings.database.tcp_user_timeout(settings.statement_timeout).keepalives_idle(Duration::from_secs(30));
        let room = Semaphore::new(settings.connections.max(1));
        Ok(Database { settings, tls, room, idle: Mutex::default() })
    }

    /// Has a statement done, and tries again while the database is away. It has to be one that may be done twice.
    pub(crate) async fn query(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let start = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            match self.try_query(sql, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Away(problem)) if start.elapsed() + pause >= self.settings.patience => {
                    let waited = start.elapsed().as_secs_f64();
                    return Err(StoreError::Unavailable { problem: format!("{problem} (tried for {waited:.1} s)") });
                }
                Err(Failure::Away(_)) => sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Has a statement done, once.
    pub(crate) async fn try_query(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        let limit = self.settings.connect_timeout;
        let Ok(Ok(_room)) = timeout(limit, self.room.acquire()).await else {
            let count = self.settings.connections;
            return Err(Failure::Away(format!("all {count} connections to the database are in use")));
        };
        let idle = {
            let mut idle = lock(&self.idle);
            idle.retain(|connection| !connection.client.is_closed());
            idle.pop()
        };
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let (client, driver) = self.connect().await?;
                let task = tokio::spawn(async move {
                    // What is wrong with it is told to those who use it.
                    let _ = driver.await;
                });
                Connection { client, task: task.abort_handle() }
            }
        };
        // The database ends it first, and says so, unless it cannot be heard any more.
        let limit = self.settings.statement_timeout + Duration::from_millis(500);
        let rows = match timeout(limit, connection.client.query_typed(sql, parameters)).await {
            Ok(result) => result.map_err(failure),
            Err(_) => Err(Failure::Away("the database does not answer".into())),
        };
        match &rows {
            // Those that were opened before are as bad.
            Err(Failure::Away(_)) => lock(&self.idle).clear(),
            _ => lock(&self.idle).push(connection),
        }
        rows
    }

    /// Makes a connection, which does something as long as the second value is awaited or polled.
    pub(crate) async fn connect(&self) -> Result<(Client, Driver), Failure> {
        let limit = self.settings.connect_timeout;
        match timeout(limit, self.settings.database.connect(self.tls.clone())).await {
            Ok(result) => result.map_err(failure),
            Err(_) => Err(Failure::Away("the database does not accept a connection".into())),
        }
    }
}

/// What moves the bytes of a connection.
pub(crate) type Driver =
    tokio_postgres::Connection<tokio_postgres::Socket, crate::tls::Encrypted<tokio_postgres::Socket>>;

/// What an error means for a statement.
pub(crate) fn failure(error: Error) -> Failure {
    let Some(said) = error.as_db_error() else {
        let problem = words(&error);
        let is_io = causes(&error).any(|cause| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() != io::ErrorKind::InvalidData)
        });
        // What lies in the settings or in a certificate does not go away. The kind of an error is only in its words.
        let is_lasting = !is_io
            && ["TLS", "authentication", "configuration", "parameter", "column"]
                .iter()
                .any(|word| error.to_string().contains(word));
        return if is_lasting { Failure::Refused(StoreError::Database { problem }) } else { Failure::Away(problem) };
    };
    const PASSING: &[SqlState] = &[
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::OUT_OF_MEMORY,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // The one that was the first is a copy now.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    let problem = said.message().to_owned();
    if PASSING.contains(said.code()) || said.code().code().starts_with("08") {
        Failure::Away(problem)
    } else if *said.code() == SqlState::DISK_FULL {
        Failure::Refused(StoreError::NoSpace { log: "the database".into() })
    } else {
        Failure::Refused(StoreError::Database { problem })
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

/// What an error says, with its causes. None of them has the password in it.
fn words(error: &Error) -> String {
    let causes = causes(error).map(|cause| cause.to_string());
    std::iter::once(error.to_string()).chain(causes).collect::<Vec<_>>().join(": ")
}
