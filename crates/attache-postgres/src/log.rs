//! A session's log that is open for writing.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use attache_agent::store::{Entry, Log, StoreError};
use tokio::sync::watch;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::leases::Taken;
use crate::store::{Core, Shared, plain};

/// Adds a record in its place, for the newest writer only. It renews the lease on the way.
const APPEND: &str = "\
    with held as ( \
        update attache_session set count = count + 1, bytes = bytes + $6, updated = attache_milliseconds(), \
            title = coalesce($7, title), prompts = prompts + $8, first_prompt = coalesce(first_prompt, $9), \
            lease_until = clock_timestamp() + make_interval(secs => $5) \
        where id = $1 and fence = $2 and count = $3 \
        returning updated \
    ), written as ( \
        insert into attache_record (session, number, time, fence, entry) \
        select $1, $3, updated, $2, $4 from held returning number \
    ) \
    select number from written";

/// Why a record was not added.
const WHY: &str = "\
    select session.fence, session.count, session.lease_holder, record.fence, record.entry = $3 \
    from attache_session as session \
    left join attache_record as record on record.session = session.id and record.number = $2 \
    where session.id = $1";

/// A session's log that is open for writing. Gives its lease back when it is dropped.
pub(crate) struct PostgresLog {
    shared: Arc<Shared>,
    id: String,
    taken: Taken,
    /// The number of the next record.
    count: i64,
}

impl PostgresLog {
    pub(crate) fn new(shared: Arc<Shared>, id: &str, taken: Taken) -> Self {
        let count = taken.count;
        PostgresLog { shared, id: id.to_owned(), taken, count }
    }
}

impl fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLog")
            .field("id", &self.id)
            .field("fence", &self.taken.fence)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl Log for PostgresLog {
    fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let text = entry.to_text(&self.id)?;
        let core = self.shared.core.clone();
        let append = Append {
            id: self.id.clone(),
            writer: self.taken.writer.clone(),
            fence: self.taken.fence,
            count: self.count,
            entry: entry.clone(),
            text,
        };
        let mut lost = self.taken.lost.clone();
        let work = async move {
            let writer = append.writer.clone();
            let mut append = std::pin::pin!(append.run(&core));
            tokio::select! {
                biased;
                // Nobody waits for longer than the session is ours, nor does whoever ends a turn, for each entry of many.
                Ok(_) = lost.wait_for(|is_lost| *is_lost), if core.leases.is_held(&writer) => {}
                done = &mut append => return done,
            }
            if core.leases.is_held(&writer) {
                let problem = "the database did not answer for too long, so another server may have the session";
                return Err(StoreError::Unavailable { problem: problem.into() });
            }
            // It is known who has it: the database answers.
            append.await
        };
        self.count = self.shared.runtime.wait_for(work)?;
        Ok(())
    }

    /// Does nothing: the database has done it with each record, as far as it is set up to.
    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn lost(&self) -> watch::Receiver<bool> {
        self.taken.lost.clone()
    }
}

impl Drop for PostgresLog {
    fn drop(&mut self) {
        let core = self.shared.core.clone();
        if let Some((id, fence)) = core.leases.begin_release(&self.taken.writer) {
            self.shared.runtime.handle().spawn(async move { core.leases.release(&core.database, &id, fence).await });
        }
    }
}

struct Append {
    id: String,
    writer: String,
    fence: i64,
    count: i64,
    entry: Entry,
    text: String,
}

impl Append {
    /// Adds the entry, and gives the number of the next one.
    async fn run(mut self, core: &Core) -> Result<i64, StoreError> {
        core.leases.note_append(&self.writer, &self.entry);
        let listed = self.entry.listed();
        let (title, beginning) = (listed.title.as_deref().map(plain), listed.beginning.as_deref().map(plain));
        let (length, prompts) = (self.text.len() as i64, i64::from(listed.is_prompt));
        let lease = core.database.settings.lease.as_secs_f64();
        loop {
            let sent = Instant::now();
            let rows = core
                .database
                .query(
                    APPEND,
                    &[
                        (&self.id, Type::TEXT),
                        (&self.fence, Type::INT8),
                        (&self.count, Type::INT8),
                        (&self.text, Type::TEXT),
                        (&lease, Type::FLOAT8),
                        (&length, Type::INT8),
                        (&title, Type::TEXT),
                        (&prompts, Type::INT8),
                        (&beginning, Type::TEXT),
                    ],
                )
                .await?;
            let is_there = !rows.is_empty() || self.is_there(core).await?;
            self.count += 1;
            if is_there {
                core.leases.note_appended(&self.writer, &self.entry, self.count, sent);
                return Ok(self.count);
            }
        }
    }

    /// Whether the record was written, when the database did not write it now. That is so if the answer to an earlier
    /// attempt was lost: it has our number, our fence and our text. If it has another text, it is an entry that we gave up,
    /// and ours comes after it.
    async fn is_there(&self, core: &Core) -> Result<bool, StoreError> {
        let rows = core
            .database
            .query(WHY, &[(&self.id, Type::TEXT), (&self.count, Type::INT8), (&self.text, Type::TEXT)])
            .await?;
        let Some(row) = rows.first() else {
            core.leases.note_lost(&self.writer);
            return Err(StoreError::NotFound(self.id.clone()));
        };
        let (fence, count, holder): (i64, i64, Option<String>) = (row.get(0), row.get(1), row.get(2));
        match written(row, self.fence) {
            Some(true) => Ok(true),
            Some(false) if fence == self.fence && count == self.count + 1 => Ok(false),
            _ if fence != self.fence => {
                core.leases.note_lost(&self.writer);
                Err(StoreError::Lost { id: self.id.clone(), holder })
            }
            _ => {
                let problem = format!("it has {count} records where {} should be", self.count);
                let offset = self.count.unsigned_abs();
                Err(StoreError::Damaged { log: self.id.clone(), unit: "record", offset, problem })
            }
        }
    }
}

/// Whether the record in our place is the one we want to write. `None` if it is not ours, or not there.
fn written(row: &Row, fence: i64) -> Option<bool> {
    let by: Option<i64> = row.get(3);
    by.filter(|by| *by == fence)?;
    row.get(4)
}
