//! The runtime that talks to the database: one of its own, so that calls can block anywhere, and leases are renewed however
//! busy the program is.

use std::sync::mpsc;

use attache_agent::store::StoreError;
use tokio::runtime::{Builder, Handle};

/// A runtime with a thread of its own, which ends with this value.
#[derive(Debug)]
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub(crate) fn start() -> Result<Self, StoreError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("attache-postgres").enable_all().build();
        let failed = |error| StoreError::Unavailable { problem: format!("cannot start a thread: {error}") };
        Ok(Runtime(Some(runtime.map_err(failed)?)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("the runtime is there until it is dropped").handle()
    }

    /// Does work there, and waits for it.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle().spawn(async move {
            // Somebody waits for it, unless they were killed.
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(StoreError::Unavailable { problem: "the store has ended".into() }))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
