//! A transport that lets a server have only so many questions open at us.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use super::words::{Reason, Trouble};

/// How many requests of a server may wait for our answers to be taken. We answer at once, so a server that reads what we
/// write never has more than a few.
const MAX_OPEN: usize = 256;

/// Ends the connection to a server that asks and asks and takes no answers; they would pile up in memory.
pub(super) struct Guarded<T> {
    inner: T,
    open: Arc<AtomicUsize>,
    reason: Reason,
}

impl<T> Guarded<T> {
    pub(super) fn new(inner: T, reason: Reason) -> Self {
        Guarded { inner, open: Arc::default(), reason }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guarded<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_answer = matches!(item, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        let open = self.open.clone();
        let sent = self.inner.send(item);
        async move {
            let result = sent.await;
            if is_answer {
                let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await?;
        if matches!(message, ServerJsonRpcMessage::Request(_)) && self.open.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN
        {
            let _ = self.reason.set(Trouble::Flood);
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
