//! The store.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use attache::proto::json::RawJson;
use attache_agent::store::{Cursor, Entry, Kept, Log, Page, Query, Store, StoreError, Summary, check_id};
use tokio::sync::{broadcast, watch};
use tokio_postgres::types::Type;

use crate::database::{Database, Failure, Parameters};
use crate::leases::{Leases, fresh_writer};
use crate::listener::{self, Change};
use crate::log::PostgresLog;
use crate::migrate::migrate;
use crate::runtime::Runtime;
use crate::settings::Settings;

/// Makes a session with its first records, unless there is one. Says whether it is the one of this attempt.
const BEGIN: &str = "\
    with made as ( \
        insert into attache_session (id, owner, cwd, directories, created, title, first_prompt, prompts, count, bytes, \
            updated, fence, writer, lease_holder, lease_until) \
        values ($1, $2, $3, $4, $5, $6, $7, $8, cardinality($9), $10, attache_milliseconds(), 1, $11, $12, \
            clock_timestamp() + make_interval(secs => $13)) \
        on conflict (id) do nothing \
        returning id, updated \
    ), written as ( \
        insert into attache_record (session, number, time, fence, entry) \
        select made.id, place - 1, made.updated, 1, entry \
        from made, unnest($9) with ordinality as given (entry, place) \
    ) \
    select exists (select from made) or exists (select from attache_session where id = $1 and writer = $11)";

/// How many records are read at once.
const AT_ONCE: i64 = 1000;

const READ: &str = "\
    select record.number, record.entry from attache_record as record \
    join attache_session as session on session.id = record.session \
    where record.session = $1 and session.owner = $2 and record.number >= $3 \
    order by record.number limit $4";

const LIST: &str = "\
    select id, cwd, directories, coalesce(title, first_prompt), created, updated, prompts from attache_session \
    where owner = $1 and ($2 is null or cwd = $2) and ($3 is null or (updated, id) < ($3, $4)) \
    order by updated desc, id desc limit $5";

const DELETE: &str = "\
    delete from attache_session \
    where id = $1 and owner = $2 and (lease_until is null or lease_until <= clock_timestamp()) returning id";

/// Deletes the oldest of those that are too many or too old of each owner, a hundred at most: so that it takes no longer than
/// a statement may.
const PRUNE: &str = "\
    with ranked as ( \
        select id, updated, row_number() over newest as place, sum(bytes) over newest as total from attache_session \
        window newest as (partition by owner order by updated desc, id desc rows unbounded preceding) \
    ), excess as ( \
        select session.id, session.updated from ranked join attache_session as session using (id) \
        where (session.lease_until is null or session.lease_until <= clock_timestamp()) \
            and (ranked.updated < attache_milliseconds() - $3 \
                or (ranked.place > 1 and (ranked.place > $1 or ranked.total > $2))) \
        order by session.updated limit 100 \
    ) \
    delete from attache_session as session using excess \
    where session.id = excess.id and session.updated = excess.updated \
        and (session.lease_until is null or session.lease_until <= clock_timestamp()) \
    returning session.id";

const ASK: &str = "select pg_notify($3, id) from attache_session where id = $1 and owner = $2";

/// The sessions of one owner in a PostgreSQL database.
///
/// It is cheap to clone. The connections are closed when the last clone and the last log of it is dropped.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    owner: String,
}

/// What stores of all owners and their logs share.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) runtime: Runtime,
}

/// What the tasks on the runtime share.
pub(crate) struct Core {
    pub(crate) database: Database,
    pub(crate) leases: Leases,
    pub(crate) changes: broadcast::Sender<Change>,
    /// Whether the database has told of changes yet.
    pub(crate) is_listening: watch::Sender<bool>,
}

impl PostgresStore {
    /// Connects, and makes the tables or changes them to what this version needs. Blocks.
    pub fn connect(settings: Settings) -> Result<Self, StoreError> {
        let runtime = Runtime::start()?;
        // Whoever does not keep up with so many changes is told that it missed some.
        let (changes, _) = broadcast::channel(256);
        let core = Arc::new(Core {
            database: Database::new(settings)?,
            leases: Leases::default(),
            changes,
            is_listening: watch::Sender::new(false),
        });
        let shared = core.clone();
        runtime.wait_for(async move { migrate(&shared.database).await })?;
        let shared = core.clone();
        runtime.handle().spawn(async move {
            let tell = |id| listener::tell(&shared.changes, Change::Lost { id });
            shared.leases.keep_renewing(&shared.database, tell).await;
        });
        let shared = core.clone();
        runtime.handle().spawn(async move { shared.leases.keep_watch(&shared.database).await });
        let shared = core.clone();
        runtime.handle().spawn(async move { listener::listen(&shared).await });
        // So that what changes from now on is heard. If it takes long, the rest works without it.
        let mut is_listening = core.is_listening.subscribe();
        let limit = core.database.settings.connect_timeout;
        runtime.wait_for(async move {
            let _ = tokio::time::timeout(limit, is_listening.wait_for(|is_listening| *is_listening)).await;
            Ok(())
        })?;
        Ok(PostgresStore { shared: Arc::new(Shared { core, runtime }), owner: String::new() })
    }

    /// Tells of changes that any server makes from now on. After [`Change::Missed`], or when the receiver could not keep
    /// up, a list has to be read anew.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.core.changes.subscribe()
    }

    /// Asks the database whether it is there, once.
    pub async fn check(&self) -> Result<(), StoreError> {
        let core = self.shared.core.clone();
        let asked = self.shared.runtime.handle().spawn(async move { core.database.try_query("select 1", &[]).await });
        match asked.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Failure::Away(problem))) => Err(StoreError::Unavailable { problem }),
            Ok(Err(Failure::Refused(error))) => Err(error),
            Err(_) => Err(StoreError::Unavailable { problem: "the store has ended".into() }),
        }
    }

    /// Does work on the runtime, and waits for it.
    fn wait_for<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Core>, String) -> F,
    ) -> Result<T, StoreError> {
        self.shared.runtime.wait_for(work(self.shared.core.clone(), self.owner.clone()))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.shared.core.database.settings.to_string();
        f.debug_struct("PostgresStore").field("database", &database).field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // So that the sessions which were open here can be opened elsewhere at once.
        self.core.leases.wait_for_all(Duration::from_secs(1));
    }
}

impl Store for PostgresStore {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn owned_by(&self, owner: &str) -> Arc<dyn Store> {
        Arc::new(PostgresStore { shared: self.shared.clone(), owner: owner.to_owned() })
    }

    fn begin(&self, id: &str, entries: &[Entry]) -> Result<Box<dyn Log>, StoreError> {
        check_id(id)?;
        let (id, entries) = (id.to_owned(), entries.to_vec());
        let log_id = id.clone();
        let taken = self.wait_for(|core, owner| async move {
            let Some(Entry::Opened(opened)) = entries.first() else {
                let problem = "the session does not begin with where it is".into();
                return Err(StoreError::Unkeepable { log: id, problem });
            };
            core.leases.wait_for_release(&core.database, &id).await;
            let (mut title, mut first_prompt, mut prompts) = (None, None, 0_i64);
            for entry in &entries {
                let listed = entry.listed();
                title = listed.title.as_deref().map(plain).or(title);
                first_prompt = first_prompt.or(listed.beginning.as_deref().map(plain));
                prompts += i64::from(listed.is_prompt);
            }
            let texts: Vec<String> = entries.iter().map(|entry| entry.to_text(&id)).collect::<Result<_, _>>()?;
            let bytes: i64 = texts.iter().map(|text| text.len() as i64).sum();
            let (writer, sent, settings) = (fresh_writer(), Instant::now(), &core.database.settings);
            let rows = core
                .database
                .query(
                    BEGIN,
                    &[
                        (&id, Type::TEXT),
                        (&owner, Type::TEXT),
                        (&opened.cwd, Type::TEXT),
                        (&opened.directories, Type::TEXT_ARRAY),
                        (&opened.created, Type::TEXT),
                        (&title, Type::TEXT),
                        (&first_prompt, Type::TEXT),
                        (&prompts, Type::INT8),
                        (&texts, Type::TEXT_ARRAY),
                        (&bytes, Type::INT8),
                        (&writer, Type::TEXT),
                        (&settings.address, Type::TEXT),
                        (&settings.lease.as_secs_f64(), Type::FLOAT8),
                    ],
                )
                .await?;
            if rows.first().is_some_and(|row| row.get(0)) {
                Ok(core.leases.hold(&id, writer, 1, texts.len() as i64, sent))
            } else {
                Err(StoreError::Exists(id))
            }
        })?;
        Ok(Box::new(PostgresLog::new(self.shared.clone(), &log_id, taken)))
    }

    fn open_log(&self, id: &str) -> Result<(Box<dyn Log>, Vec<Entry>), StoreError> {
        check_id(id)?;
        let of = id.to_owned();
        let taken = self.wait_for(|core, owner| async move { core.leases.take(&core.database, &of, &owner).await })?;
        let count = taken.count;
        // From here on the lease is given back, whatever happens.
        let log = PostgresLog::new(self.shared.clone(), id, taken);
        let entries = self.read(id)?;
        if entries.len() as i64 != count {
            let problem = format!("it has {} records where {count} should be", entries.len());
            return Err(StoreError::Damaged { log: id.into(), unit: "record", offset: entries.len() as u64, problem });
        }
        Ok((Box::new(log), entries))
    }

    fn salvage(&self, id: &str) -> Result<(Vec<Entry>, Option<StoreError>), StoreError> {
        check_id(id)?;
        let id = id.to_owned();
        self.wait_for(|core, owner| async move {
            let mut entries: Vec<Entry> = Vec::new();
            loop {
                let next = entries.len() as i64;
                let rows = core
                    .database
                    .query(
                        READ,
                        &[(&id, Type::TEXT), (&owner, Type::TEXT), (&next, Type::INT8), (&AT_ONCE, Type::INT8)],
                    )
                    .await?;
                let is_last = (rows.len() as i64) < AT_ONCE;
                for row in rows {
                    let number = entries.len() as u64;
                    match read_entry(row.get(0), row.get(1), number) {
                        Ok(entry) => entries.push(entry),
                        Err(problem) => {
                            let damage = StoreError::Damaged { log: id, unit: "record", offset: number, problem };
                            // Without a beginning it is not known what the rest is about.
                            return if entries.is_empty() { Err(damage) } else { Ok((entries, Some(damage))) };
                        }
                    }
                }
                match entries.is_empty() {
                    true => return Err(StoreError::NotFound(id)),
                    false if is_last => return Ok((entries, None)),
                    false => {}
                }
            }
        })
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let after: Option<Cursor> = query.cursor.as_deref().map(str::parse).transpose()?;
        let (updated, id) = after.map(|after| (number(after.updated), after.id)).unzip();
        let (cwd, limit) = (query.cwd.clone(), query.limit.max(1));
        // No text of the database has a zero in it.
        if cwd.as_ref().is_some_and(|cwd| cwd.contains('\0')) {
            return Ok(Page::default());
        }
        self.wait_for(|core, owner| async move {
            let most = number(limit as u64).saturating_add(1);
            let rows = core
                .database
                .query(
                    LIST,
                    &[
                        (&owner, Type::TEXT),
                        (&cwd, Type::TEXT),
                        (&updated, Type::INT8),
                        (&id, Type::TEXT),
                        (&most, Type::INT8),
                    ],
                )
                .await?;
            let mut page = Page::default();
            for row in rows.iter().take(limit) {
                let (id, updated): (String, i64) = (row.get(0), row.get(5));
                let prompts: i64 = row.get(6);
                page.sessions.push(Summary {
                    id,
                    cwd: row.get(1),
                    directories: row.get(2),
                    title: row.get(3),
                    created: row.get(4),
                    updated: attache::trace::rfc3339(UNIX_EPOCH + Duration::from_millis(updated.unsigned_abs())),
                    prompts: prompts.unsigned_abs(),
                });
            }
            page.next = (rows.len() > limit).then(|| {
                let last = &rows[limit - 1];
                Cursor { updated: last.get::<_, i64>(5).unsigned_abs(), id: last.get(0) }.to_string()
            });
            Ok(page)
        })
    }

    fn delete(&self, id: &str) -> Result<bool, StoreError> {
        check_id(id)?;
        let id = id.to_owned();
        self.wait_for(|core, owner| async move {
            core.leases.wait_for_release(&core.database, &id).await;
            let rows = core.database.query(DELETE, &[(&id, Type::TEXT), (&owner, Type::TEXT)]).await?;
            if !rows.is_empty() {
                return Ok(true);
            }
            match core.leases.refusal(&core.database, &id, &owner).await {
                StoreError::NotFound(_) => Ok(false),
                error => Err(error),
            }
        })
    }

    fn prune(&self, kept: Kept) -> Result<Vec<String>, StoreError> {
        self.wait_for(|core, _| async move {
            let age = kept.age.map(|age| number(age.as_millis().try_into().unwrap_or(u64::MAX)));
            let parameters: Parameters<'_> =
                &[(&number(kept.sessions as u64), Type::INT8), (&number(kept.bytes), Type::INT8), (&age, Type::INT8)];
            core.leases.wait_for_releases(&core.database).await;
            let mut gone = Vec::new();
            loop {
                let rows = core.database.query(PRUNE, parameters).await?;
                if rows.is_empty() {
                    return Ok(gone);
                }
                gone.extend(rows.iter().map(|row| row.get::<_, String>(0)));
            }
        })
    }

    fn ask_to_release(&self, id: &str) -> Result<(), StoreError> {
        check_id(id)?;
        let id = id.to_owned();
        self.wait_for(|core, owner| async move {
            let parameters: Parameters<'_> =
                &[(&id, Type::TEXT), (&owner, Type::TEXT), (&listener::WANTED, Type::TEXT)];
            core.database.query(ASK, parameters).await.map(drop)
        })
    }
}

/// Reads a record that should have this number.
fn read_entry(number: i64, text: &str, expected: u64) -> Result<Entry, String> {
    if number.unsigned_abs() != expected {
        return Err(format!("there is record {number} where {expected} should be"));
    }
    let json = RawJson::new(text).map_err(|_| format!("record {number} is not JSON"))?;
    match Entry::from_json(json) {
        entry if expected == 0 && !matches!(entry, Entry::Opened(_)) => {
            Err("the session does not begin with where it is".into())
        }
        entry => Ok(entry),
    }
}

/// A number as the database has it.
fn number(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A text as the database has it: without zeros.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
