//! A session's log that is open for writing.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use attache_agent::store::{Entry, Log, StoreError};
use tokio::sync::watch;
use tokio_postgres::types::Type;

use crate::leases::Taken;
use crate::store::{Core, Shared, plain};

/// Adds records in their place, for the newest writer only: all of them, or none. It renews the lease on the way.
const APPEND: &str = "\
    with held as ( \
        update attache_session set count = count + cardinality($4), bytes = bytes + $6, \
            updated = attache_milliseconds(), title = coalesce($7, title), prompts = prompts + $8, \
            first_prompt = coalesce(first_prompt, $9), lease_until = clock_timestamp() + make_interval(secs => $5) \
        where id = $1 and fence = $2 and count = $3 \
        returning updated \
    ), written as ( \
        insert into attache_record (session, number, time, fence, entry) \
        select $1, $3 + place - 1, updated, $2, entry \
        from held, unnest($4) with ordinality as given (entry, place) \
    ) \
    select from held";

/// No more than this is added at once, in bytes; an entry that is longer goes alone.
const AT_ONCE: usize = 8 << 20;

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

    /// Adds entries at once.
    fn add(&mut self, entries: &[&Entry], texts: Vec<String>) -> Result<(), StoreError> {
        if texts.is_empty() {
            return Ok(());
        }
        let core = self.shared.core.clone();
        let append = Append {
            id: self.id.clone(),
            writer: self.taken.writer.clone(),
            fence: self.taken.fence,
            count: self.count,
            entries: entries.iter().map(|entry| (*entry).clone()).collect(),
            texts,
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
        self.append_all(&[entry]).map_err(|(_, error)| error)
    }

    fn append_all(&mut self, entries: &[&Entry]) -> Result<(), (usize, StoreError)> {
        let mut done = 0;
        while done < entries.len() {
            let mut texts = Vec::new();
            let mut length = 0;
            let mut wrong = None;
            for entry in &entries[done..] {
                match entry.to_text(&self.id) {
                    Ok(text) if texts.is_empty() || length + text.len() <= AT_ONCE => {
                        length += text.len();
                        texts.push(text);
                    }
                    Ok(_) => break,
                    Err(error) => {
                        wrong = Some(error);
                        break;
                    }
                }
            }
            let next = done + texts.len();
            self.add(&entries[done..next], texts).map_err(|error| (done, error))?;
            done = next;
            if let Some(error) = wrong {
                return Err((done, error));
            }
        }
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
    entries: Vec<Entry>,
    texts: Vec<String>,
}

/// What stands in the place of the first record that is to be added, when the database did not add it.
enum Found {
    /// That record: the answer to an earlier attempt was lost.
    Same,
    /// Another one of ours, which we gave up without knowing that it was written. Ours comes after it.
    GivenUp,
}

impl Append {
    /// Adds the entries, and gives the number of the next one.
    async fn run(mut self, core: &Core) -> Result<i64, StoreError> {
        core.leases.note_append(&self.writer, &self.entries);
        let lease = core.database.settings.lease.as_secs_f64();
        while !self.texts.is_empty() {
            let (mut title, mut first_prompt, mut prompts) = (None, None, 0_i64);
            for listed in self.entries.iter().map(Entry::listed) {
                title = listed.title.as_deref().map(plain).or(title);
                first_prompt = first_prompt.or(listed.beginning.as_deref().map(plain));
                prompts += i64::from(listed.is_prompt);
            }
            let length: i64 = self.texts.iter().map(|text| text.len() as i64).sum();
            let sent = Instant::now();
            let rows = core
                .database
                .query(
                    APPEND,
                    &[
                        (&self.id, Type::TEXT),
                        (&self.fence, Type::INT8),
                        (&self.count, Type::INT8),
                        (&self.texts, Type::TEXT_ARRAY),
                        (&lease, Type::FLOAT8),
                        (&length, Type::INT8),
                        (&title, Type::TEXT),
                        (&prompts, Type::INT8),
                        (&first_prompt, Type::TEXT),
                    ],
                )
                .await?;
            // How many of ours are there, and how many records.
            let (ours, records) = match rows.is_empty() {
                false => (self.texts.len(), self.texts.len()),
                true => match self.find(core).await? {
                    Found::Same => (1, 1),
                    Found::GivenUp => (0, 1),
                },
            };
            self.count += records as i64;
            self.texts.drain(..ours);
            core.leases.note_appended(&self.writer, &self.entries[..ours], self.count, sent);
            self.entries.drain(..ours);
        }
        Ok(self.count)
    }

    /// Looks at what stands in our place. If it is another writer's, the session is lost.
    async fn find(&self, core: &Core) -> Result<Found, StoreError> {
        let rows = core
            .database
            .query(WHY, &[(&self.id, Type::TEXT), (&self.count, Type::INT8), (&self.texts[0], Type::TEXT)])
            .await?;
        let Some(row) = rows.first() else {
            core.leases.note_lost(&self.writer);
            return Err(StoreError::NotFound(self.id.clone()));
        };
        let (fence, count, holder): (i64, i64, Option<String>) = (row.get(0), row.get(1), row.get(2));
        let (by, is_same): (Option<i64>, Option<bool>) = (row.get(3), row.get(4));
        match is_same.filter(|_| by == Some(self.fence)) {
            Some(true) => Ok(Found::Same),
            Some(false) if fence == self.fence => Ok(Found::GivenUp),
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
