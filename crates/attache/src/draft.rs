//! What only the draft of version 2 has: several messages in one array.

use std::pin::Pin;
use std::task::{Context, Poll};

use attache_proto::json::RawJson;
use attache_proto::method::{Notification, Request};
use attache_proto::{Dialect, Encode};

use crate::Error;
use crate::link::answer::{self, AnswerSender};
use crate::link::{Link, Router, Waiter};

/// Requests and notifications that are to be sent together. The peer answers them together too.
///
/// ```no_run
/// # async fn example(agent: attache::Connection) -> Result<(), attache::Error> {
/// use attache::draft::Batch;
/// use attache::model::session::ListSessionsRequest;
///
/// let mut batch = Batch::new();
/// let sessions = batch.call(&ListSessionsRequest::new());
/// agent.send_batch(batch).await?;
/// println!("{}", sessions.await?.sessions.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    method: &'static str,
    params: RawJson,
    asked: Option<AnswerSender>,
}

impl Batch {
    /// An empty batch. Sending it sends nothing.
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a request; its answer comes from what is returned.
    pub fn call<Q: Request>(&mut self, request: &Q) -> BatchAnswer<Q::Response> {
        let method = Q::METHOD.name(Dialect::V2Draft).unwrap_or(Q::METHOD.any_name());
        let (asked, answer) = answer::channel(method);
        self.entries.push(Entry { method, params: encoded(request), asked: Some(asked) });
        BatchAnswer(answer)
    }

    /// Adds a notification.
    pub fn notify<N: Notification>(&mut self, notification: &N) {
        let method = N::METHOD.name(Dialect::V2Draft).unwrap_or(N::METHOD.any_name());
        self.entries.push(Entry { method, params: encoded(notification), asked: None });
    }

    /// Sends the batch, if the dialect has batches.
    pub(crate) async fn send<R: Router>(self, link: &Link<R>) -> Result<(), Error> {
        if !link.dialect().has_batches() {
            return Err(Error::NotOffered("batches"));
        }
        link.send(|_, port| {
            port.peer.batch(
                |batch| {
                    for entry in self.entries {
                        match entry.asked {
                            Some(asked) => {
                                let waiter = Waiter::Call(asked);
                                batch.request(entry.method, |writer| writer.value(&entry.params), waiter);
                            }
                            None => batch.notify(entry.method, |writer| writer.value(&entry.params)),
                        }
                    }
                },
                port.out,
            );
        })
        .await
    }
}

fn encoded(params: &impl Encode) -> RawJson {
    RawJson::encode_in(params, Dialect::V2Draft)
}

/// The answer to one request of a batch: a future.
#[derive(Debug)]
#[must_use = "the answer comes when this is awaited"]
pub struct BatchAnswer<T>(answer::PendingAnswer<T>);

impl<T> Future for BatchAnswer<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}
