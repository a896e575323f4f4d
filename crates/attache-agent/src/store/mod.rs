//! Where sessions are kept: an append-only log each.
//!
//! A [`Store`] keeps the sessions of one owner, a [`Log`] is one of them that is open for writing. [`FileStore`] keeps them
//! in a directory of this machine; the crate `attache-postgres` has one that many machines share.
//!
//! # What can go wrong
//!
//! - **The process is killed**: every entry whose [`Log::append`] returned is there.
//! - **The power fails**: every entry before the last [`Log::sync`] is there.
//! - **There is no room**: [`StoreError::NoSpace`]. The log is as it was, and goes on when there is room.
//! - **Something changed the log**: [`StoreError::Damaged`] names the place. Nothing is written to such a log, and
//!   [`Store::open_log`] and [`Store::read`] refuse it. [`Store::salvage`] reads what stands before the damage, and
//!   [`Store::fork`] goes on from there.
//! - **A second writer**: [`StoreError::Busy`], with the address of the first one where that is known. Readers never wait and
//!   never write.
//! - **A writer that others take for dead**: another one has taken the session over, and [`Log::append`] fails with
//!   [`StoreError::Lost`] from then on. Only stores that several machines share do that.
//! - **The store is away**: [`StoreError::Unavailable`], after a time of trying. An entry that was being appended may be
//!   there or not; to append the same one again writes it once.
//! - **Somebody else's session**: [`StoreError::NotFound`], as if it did not exist.
//! - **A newer version wrote it**: entries that are not understood are [`Entry::Unknown`].
//!
//! All calls block, for as long as the disk or the database takes: they are not for a runtime's thread.

mod entry;
mod error;
mod file;
mod list;
mod merge;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use entry::{Entry, Opened};
pub use error::StoreError;
pub use file::FileStore;
pub use list::{Cursor, Listed, Page, Query, Summary};
pub use merge::merged;
use tokio::sync::watch;

/// The sessions of one owner.
///
/// ```
/// use attache_agent::store::{Entry, FileStore, Opened, Query, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = FileStore::open(directory.path().join("sessions"))?;
/// let mut log = store.create("s1", Opened { cwd: "/project".into(), ..Opened::default() })?;
/// log.append(&Entry::Title { title: "Hello".into() })?;
/// log.sync()?;
/// assert_eq!(store.read("s1")?.len(), 2);
/// assert_eq!(store.list(&Query::default())?.sessions[0].title.as_deref(), Some("Hello"));
/// // What one has opened, another does not see.
/// assert!(store.owned_by("alice").read("s1").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: fmt::Debug + Send + Sync {
    /// Whose sessions these are. Empty for those of a person on their own machine.
    fn owner(&self) -> &str;

    /// The sessions of somebody else, in the same place. No other ones can be listed, read, opened, forked or deleted with
    /// what is returned.
    fn owned_by(&self, owner: &str) -> Arc<dyn Store>;

    /// Begins a session with these entries, the first of which is [`Entry::Opened`] with the owner of this store. Nobody
    /// sees it before all of them are there. For implementations; see [`create`](Store::create) and [`fork`](Store::fork).
    fn begin(&self, id: &str, entries: &[Entry]) -> Result<Box<dyn Log>, StoreError>;

    /// Opens a session to go on with it.
    fn open_log(&self, id: &str) -> Result<(Box<dyn Log>, Vec<Entry>), StoreError>;

    /// Reads as much of a session as can be, and the damage that follows. There is one entry at least.
    fn salvage(&self, id: &str) -> Result<(Vec<Entry>, Option<StoreError>), StoreError>;

    /// Lists sessions, those first to which something was added last.
    fn list(&self, query: &Query) -> Result<Page, StoreError>;

    /// Deletes a session, and says whether there was one. One that is not there is deleted already.
    fn delete(&self, id: &str) -> Result<bool, StoreError>;

    /// Deletes the sessions that are too many or too old, of each owner by itself, and returns their ids. Those that are open
    /// stay.
    fn prune(&self, kept: Kept) -> Result<Vec<String>, StoreError>;

    /// Asks whoever has a session open to let go of it, if no turn runs in it. Does not wait for that. Does nothing where
    /// nobody can be asked.
    fn ask_to_release(&self, _id: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Begins a session of the owner of this store.
    fn create(&self, id: &str, opened: Opened) -> Result<Box<dyn Log>, StoreError> {
        self.begin(id, &[Entry::Opened(Opened { owner: self.owner().to_owned(), ..opened })])
    }

    /// Reads a session, which may be open for writing. A damaged one is an error.
    fn read(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        match self.salvage(id)? {
            (entries, None) => Ok(entries),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Begins a session with what another one has so far, which may be open for writing, or damaged at its end.
    fn fork(&self, from: &str, id: &str, opened: Opened) -> Result<(Box<dyn Log>, Vec<Entry>), StoreError> {
        check_id(id)?;
        let (mut entries, _) = self.salvage(from)?;
        entries[0] = Entry::Opened(Opened { owner: self.owner().to_owned(), ..opened });
        Ok((self.begin(id, &entries)?, entries))
    }
}

/// A session's log that is open for writing, by this value and by nothing else: others are told that it is busy until it
/// is dropped.
pub trait Log: fmt::Debug + Send {
    /// Adds an entry. It survives the end of this process when this returns, and a loss of power after [`Log::sync`].
    ///
    /// After an error the log is as it was before, and more can be added when there is room again. After
    /// [`StoreError::Unavailable`] the entry may still turn out to be there; it is there once if it is appended again.
    fn append(&mut self, entry: &Entry) -> Result<(), StoreError>;

    /// Adds entries in order, as [`append`](Log::append) does each. A store may do it in fewer steps. With an error comes how
    /// many were added before it.
    fn append_all(&mut self, entries: &[&Entry]) -> Result<(), (usize, StoreError)> {
        for (number, entry) in entries.iter().enumerate() {
            self.append(entry).map_err(|error| (number, error))?;
        }
        Ok(())
    }

    /// Waits until everything survives a loss of power.
    fn sync(&mut self) -> Result<(), StoreError>;

    /// Is true while another writer may have the session. What runs for it has to stop by then: it can write nothing that
    /// it does. Never true where there is one machine.
    fn lost(&self) -> watch::Receiver<bool> {
        watch::channel(false).1
    }
}

/// How much is kept of the sessions of one owner. When there is more, those go to which nothing was added for the longest
/// time. What one keeps takes no room from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How many sessions.
    pub sessions: usize,
    /// How many bytes in their logs.
    pub bytes: u64,
    /// For how long after something was last added. `None` is forever.
    pub age: Option<Duration>,
}

impl Default for Kept {
    /// Years of work for most people, and no more than a few gigabytes for the others.
    fn default() -> Self {
        Kept { sessions: 2000, bytes: 4 << 30, age: None }
    }
}

impl Kept {
    /// Those that are not older than this, however many there are.
    pub fn for_age(age: Duration) -> Self {
        Kept { sessions: usize::MAX, bytes: u64::MAX, age: Some(age) }
    }
}

/// Refuses what cannot be the id of a session. An id can be the name of a file on every system.
pub fn check_id(id: &str) -> Result<(), StoreError> {
    if is_id(id) { Ok(()) } else { Err(StoreError::wrong_id(id)) }
}

fn is_id(id: &str) -> bool {
    const LONGEST: usize = 128;
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
