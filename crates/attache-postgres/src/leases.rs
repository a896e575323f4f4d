//! The leases of the sessions that are open here: taken, renewed, given back, and handed over to a server that asks.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use attache_agent::store::{Entry, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

use crate::database::{Database, Parameters};
use crate::lock;

/// Takes the lease of a session that nobody has: or that the same attempt has taken, if its answer was lost.
const TAKE: &str = "\
    update attache_session set fence = fence + 1, writer = $3, lease_holder = $4, \
        lease_until = clock_timestamp() + make_interval(secs => $5) \
    where id = $1 and owner = $2 and (lease_until is null or lease_until <= clock_timestamp() or writer = $3) \
    returning fence, count";

const HOLDER: &str = "select lease_holder from attache_session where id = $1 and owner = $2";

const RENEW: &str = "\
    update attache_session as session set lease_until = clock_timestamp() + make_interval(secs => $3) \
    from unnest($1, $2) as open (id, fence) \
    where session.id = open.id and session.fence = open.fence returning session.id";

/// Gives a lease back, and ends what its writer can do. Not if something was added meanwhile, where that matters.
const RELEASE: &str = "\
    update attache_session set fence = fence + 1, writer = null, lease_holder = null, lease_until = null \
    where id = $1 and fence = $2 and ($3 is null or count = $3) returning id";

/// The leases of this server.
#[derive(Default)]
pub(crate) struct Leases {
    /// By the attempt that took each.
    open: Mutex<HashMap<String, Lease>>,
    /// How many of a session are being given back.
    releasing: Mutex<HashMap<String, usize>>,
    released: Notify,
    /// The same for threads that block.
    all_released: Condvar,
}

struct Lease {
    id: String,
    fence: i64,
    count: i64,
    /// No turn runs.
    is_idle: bool,
    /// When the last renewal was sent that the database did. The lease lasts at least this long after it.
    renewed: Instant,
    /// Whether another server may have the session.
    lost: watch::Sender<bool>,
}

/// What a writer got.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) writer: String,
    pub(crate) fence: i64,
    pub(crate) count: i64,
    pub(crate) lost: watch::Receiver<bool>,
}

/// A word that no other attempt has had.
pub(crate) fn fresh_writer() -> String {
    format!("{:032x}", fastrand::u128(..))
}

impl Leases {
    /// Takes the lease of a session.
    pub(crate) async fn take(&self, database: &Database, id: &str, owner: &str) -> Result<Taken, StoreError> {
        self.wait_for_release(database, id).await;
        let (writer, sent) = (fresh_writer(), Instant::now());
        let (address, lease) = (&database.settings.address, database.settings.lease.as_secs_f64());
        let rows = database
            .query(
                TAKE,
                &[
                    (&id, Type::TEXT),
                    (&owner, Type::TEXT),
                    (&writer, Type::TEXT),
                    (address, Type::TEXT),
                    (&lease, Type::FLOAT8),
                ],
            )
            .await?;
        match rows.first() {
            Some(row) => Ok(self.hold(id, writer, row.get(0), row.get(1), sent)),
            None => Err(self.refusal(database, id, owner).await),
        }
    }

    /// Why a lease cannot be had.
    pub(crate) async fn refusal(&self, database: &Database, id: &str, owner: &str) -> StoreError {
        match database.query(HOLDER, &[(&id, Type::TEXT), (&owner, Type::TEXT)]).await {
            Err(error) => error,
            Ok(rows) => match rows.first() {
                Some(row) => StoreError::Busy { id: id.into(), holder: row.get(0) },
                None => StoreError::NotFound(id.into()),
            },
        }
    }

    /// Renews a lease from now on.
    pub(crate) fn hold(&self, id: &str, writer: String, fence: i64, count: i64, sent: Instant) -> Taken {
        let (sender, lost) = watch::channel(false);
        let lease = Lease { id: id.into(), fence, count, is_idle: true, renewed: sent, lost: sender };
        lock(&self.open).insert(writer.clone(), lease);
        Taken { writer, fence, count, lost }
    }

    /// Whether no other server is known to have the session.
    pub(crate) fn is_held(&self, writer: &str) -> bool {
        lock(&self.open).contains_key(writer)
    }

    /// Notes that entries are being added. A turn begins with a prompt.
    pub(crate) fn note_append(&self, writer: &str, entries: &[Entry]) {
        let has_prompt = entries.iter().any(|entry| matches!(entry, Entry::Prompt { .. }));
        if let (true, Some(lease)) = (has_prompt, lock(&self.open).get_mut(writer)) {
            lease.is_idle = false;
        }
    }

    /// Notes that entries were added, by a statement that was sent at this time. That renews the lease, too.
    pub(crate) fn note_appended(&self, writer: &str, entries: &[Entry], count: i64, sent: Instant) {
        if let Some(lease) = lock(&self.open).get_mut(writer) {
            for entry in entries {
                match entry {
                    Entry::Prompt { .. } => lease.is_idle = false,
                    Entry::TurnEnded { .. } => lease.is_idle = true,
                    _ => {}
                }
            }
            lease.count = count;
            lease.renew(sent);
        }
    }

    /// Notes that another server has the session.
    pub(crate) fn note_lost(&self, writer: &str) {
        if let Some(lease) = lock(&self.open).remove(writer) {
            lease.lost.send_replace(true);
        }
    }

    /// Forgets a lease, and says that it is being given back. Nothing to give back if it was lost.
    pub(crate) fn begin_release(&self, writer: &str) -> Option<(String, i64)> {
        let lease = lock(&self.open).remove(writer)?;
        *lock(&self.releasing).entry(lease.id.clone()).or_default() += 1;
        Some((lease.id, lease.fence))
    }

    /// Gives a lease back. If the database is away for too long, it ends by itself.
    pub(crate) async fn release(&self, database: &Database, id: &str, fence: i64) {
        let count: Option<i64> = None;
        let parameters: Parameters<'_> = &[(&id, Type::TEXT), (&fence, Type::INT8), (&count, Type::INT8)];
        let _ = timeout(database.settings.lease, database.query(RELEASE, parameters)).await;
        let mut releasing = lock(&self.releasing);
        if let Some(left) = releasing.get_mut(id) {
            *left -= 1;
            if *left == 0 {
                releasing.remove(id);
            }
        }
        self.released.notify_waiters();
        self.all_released.notify_all();
    }

    /// Waits for what was dropped here before: whoever closes a session can open it again.
    pub(crate) async fn wait_for_release(&self, database: &Database, id: &str) {
        self.wait_until(database, |releasing| !releasing.contains_key(id)).await;
    }

    /// The same for all sessions.
    pub(crate) async fn wait_for_releases(&self, database: &Database) {
        self.wait_until(database, HashMap::is_empty).await;
    }

    async fn wait_until(&self, database: &Database, is_done: impl Fn(&HashMap<String, usize>) -> bool) {
        let wait = async {
            loop {
                let released = self.released.notified();
                if is_done(&lock(&self.releasing)) {
                    return;
                }
                released.await;
            }
        };
        let _ = timeout(database.settings.statement_timeout, wait).await;
    }

    /// Waits until everything is given back, but not for long. Blocks.
    pub(crate) fn wait_for_all(&self, limit: Duration) {
        let releasing = lock(&self.releasing);
        let _released = self
            .all_released
            .wait_timeout_while(releasing, limit, |releasing| !releasing.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Hands a session over to a server that asks for it, if no turn runs in it.
    pub(crate) async fn hand_over(&self, database: &Database, id: &str) {
        let idle = {
            let open = lock(&self.open);
            let lease = open.iter().find(|(_, lease)| lease.id == id && lease.is_idle);
            lease.map(|(writer, lease)| (writer.clone(), lease.fence, lease.count))
        };
        let Some((writer, fence, count)) = idle else { return };
        let parameters: Parameters<'_> = &[(&id, Type::TEXT), (&fence, Type::INT8), (&Some(count), Type::INT8)];
        if database.try_query(RELEASE, parameters).await.is_ok_and(|rows| !rows.is_empty()) {
            self.note_lost(&writer);
        }
    }

    /// Renews all leases, again and again. Returns those that were lost to `tell`.
    pub(crate) async fn keep_renewing(&self, database: &Database, tell: impl Fn(String)) {
        let interval = database.settings.lease / 3;
        loop {
            sleep(interval).await;
            let (ids, fences): (Vec<String>, Vec<i64>) =
                lock(&self.open).values().map(|lease| (lease.id.clone(), lease.fence)).unzip();
            if ids.is_empty() {
                continue;
            }
            let (sent, lease) = (Instant::now(), database.settings.lease.as_secs_f64());
            let parameters: Parameters<'_> =
                &[(&ids, Type::TEXT_ARRAY), (&fences, Type::INT8_ARRAY), (&lease, Type::FLOAT8)];
            let Ok(Ok(rows)) = timeout(interval, database.try_query(RENEW, parameters)).await else { continue };
            let renewed: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let mut open = lock(&self.open);
            open.retain(|_, lease| {
                let was_asked = ids.iter().zip(&fences).any(|(id, fence)| *id == lease.id && *fence == lease.fence);
                let is_ours = renewed.contains(&lease.id);
                match (was_asked, is_ours) {
                    (false, _) => {}
                    (true, true) => lease.renew(sent),
                    (true, false) => {
                        lease.lost.send_replace(true);
                        tell(lease.id.clone());
                    }
                }
                !was_asked || is_ours
            });
        }
    }

    /// Stops what runs on leases that could not be renewed in time, before another server can begin: by the clock of this
    /// machine, counted from when the last renewal was sent.
    pub(crate) async fn keep_watch(&self, database: &Database) {
        let lease = database.settings.lease;
        loop {
            sleep(lease / 20).await;
            for open in lock(&self.open).values() {
                if open.renewed.elapsed() >= lease * 9 / 10 {
                    open.lost.send_if_modified(|lost| !std::mem::replace(lost, true));
                }
            }
        }
    }
}

impl Lease {
    fn renew(&mut self, sent: Instant) {
        self.renewed = self.renewed.max(sent);
        self.lost.send_if_modified(|lost| std::mem::replace(lost, false));
    }
}
