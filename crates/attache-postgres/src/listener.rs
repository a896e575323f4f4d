//! What servers tell each other through the database.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Notification};

use crate::database::{Connection, Database, Failure};
use crate::store::Core;

/// Where servers tell that a list has changed; the trigger of the tables does it.
const CHANGED: &str = "attache_changed";

/// Where servers ask for a session.
pub(crate) const WANTED: &str = "attache_wanted";

/// After this long in silence the connection is tried.
const SILENCE: Duration = Duration::from_secs(30);

/// Something changed in the database, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A session was made or deleted, or has another title. Of any owner.
    Session {
        /// The session.
        id: String,
    },
    /// A session that was open here was taken over by another server.
    Lost {
        /// The session.
        id: String,
    },
    /// The connection was made anew: what changed before that was not heard.
    Missed,
}

/// Listens as long as the store exists.
pub(crate) async fn listen(core: &Core) {
    loop {
        // It is known by then that the database is away, to those who want something of it.
        let _ = listen_once(&core.database, core).await;
        sleep(Duration::from_millis(500)).await;
    }
}

async fn listen_once(database: &Database, core: &Core) -> Result<(), Failure> {
    let (client, mut driver) = database.connect().await?;
    let (sender, mut heard) = mpsc::unbounded_channel::<Notification>();
    let task = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| driver.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message {
                let _ = sender.send(notification);
            }
        }
    });
    let connection = Connection { client, task: task.abort_handle() };
    let limit = database.settings.statement_timeout;
    let ask = async |sql: &str| match timeout(limit, connection.client.batch_execute(sql)).await {
        Ok(done) => done.map_err(crate::database::failure),
        Err(_) => Err(Failure::Away("the database does not answer".into())),
    };
    ask(&format!("listen {CHANGED}; listen {WANTED}")).await?;
    let is_first = !core.is_listening.send_replace(true);
    if !is_first {
        tell(&core.changes, Change::Missed);
    }
    loop {
        match timeout(SILENCE, heard.recv()).await {
            Ok(Some(heard)) if heard.channel() == WANTED => core.leases.hand_over(database, heard.payload()).await,
            Ok(Some(heard)) => tell(&core.changes, Change::Session { id: heard.payload().to_owned() }),
            Ok(None) => return Ok(()),
            Err(_) => ask("select 1").await?,
        }
    }
}

/// Tells whoever wants to know.
pub(crate) fn tell(changes: &broadcast::Sender<Change>, change: Change) {
    let _ = changes.send(change);
}
