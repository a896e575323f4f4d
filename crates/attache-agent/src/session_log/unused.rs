//! Sessions in which nothing was said: they leave nothing behind. Else whoever can open sessions could fill a disk with them.

use std::sync::Arc;

use tokio::sync::watch;

use crate::store::{Entry, Log, Store, StoreError};

/// The log of a session that was just begun. The session is deleted when this is dropped and nothing was added.
#[derive(Debug)]
pub(crate) struct Unused {
    store: Arc<dyn Store>,
    id: String,
    /// Always there, but for the end.
    log: Option<Box<dyn Log>>,
    is_used: bool,
}

impl Unused {
    pub(crate) fn new(store: Arc<dyn Store>, id: &str, log: Box<dyn Log>) -> Self {
        Unused { store, id: id.to_owned(), log: Some(log), is_used: false }
    }

    fn log(&mut self) -> Result<&mut Box<dyn Log>, StoreError> {
        self.log.as_mut().ok_or_else(|| StoreError::NotFound(self.id.clone()))
    }
}

impl Log for Unused {
    fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.is_used = true;
        self.log()?.append(entry)
    }

    fn append_all(&mut self, entries: &[&Entry]) -> Result<(), (usize, StoreError)> {
        self.is_used |= !entries.is_empty();
        self.log().map_err(|error| (0, error))?.append_all(entries)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.log()?.sync()
    }

    fn lost(&self) -> watch::Receiver<bool> {
        self.log.as_ref().map_or_else(|| watch::channel(false).1, |log| log.lost())
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let (log, store, id) = (self.log.take(), self.store.clone(), std::mem::take(&mut self.id));
        let delete = move || {
            drop(log);
            // What stays is deleted when there is too much.
            let _ = store.delete(&id);
        };
        // A store may take its time, and not on the runtime's thread.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(delete)),
            Err(_) => delete(),
        }
    }
}
