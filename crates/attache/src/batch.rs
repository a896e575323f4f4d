//! Several messages in one array, for peers that speak the draft of version 2.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{Notification, Request};
use attache_proto::{Decode, Dialect, Encode};
use tokio::sync::oneshot;

use crate::link::{Link, Router, Waiter};
use crate::{Closed, Error};

/// Requests and notifications that are to be sent together. The peer answers them together too.
///
/// ```no_run
/// # async fn example(agent: attache::Connection) -> Result<(), attache::Error> {
/// use attache::Batch;
/// use attache::model::ListSessionsRequest;
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
    sender: Option<oneshot::Sender<Result<RawJson, Error>>>,
}

impl Batch {
    /// An empty batch. Sending it sends nothing.
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a request; its answer comes from what is returned.
    pub fn call<Q: Request>(&mut self, request: &Q) -> Answer<Q::Response> {
        let (sender, receiver) = oneshot::channel();
        let method = Q::METHOD.name(Dialect::V2Draft).unwrap_or(Q::METHOD.any_name());
        self.entries.push(Entry { method, params: encoded(request), sender: Some(sender) });
        Answer { method, receiver, response: PhantomData }
    }

    /// Adds a notification.
    pub fn notify<N: Notification>(&mut self, notification: &N) {
        let method = N::METHOD.name(Dialect::V2Draft).unwrap_or(N::METHOD.any_name());
        self.entries.push(Entry { method, params: encoded(notification), sender: None });
    }

    /// Sends the batch, if the dialect has batches.
    pub(crate) async fn send<R: Router>(self, link: &Link<R>) -> Result<(), Error> {
        if link.dialect() != Dialect::V2Draft {
            return Err(Error::NotOffered("batches"));
        }
        link.send(|_, port| {
            port.peer.batch(
                |batch| {
                    for entry in self.entries {
                        match entry.sender {
                            Some(sender) => {
                                let waiter = Waiter::Call(sender);
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
pub struct Answer<T> {
    method: &'static str,
    receiver: oneshot::Receiver<Result<RawJson, Error>>,
    response: PhantomData<fn() -> T>,
}

impl<T: Decode> Future for Answer<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let method = self.method;
        Pin::new(&mut self.receiver).poll(cx).map(|answer| {
            let text = answer.unwrap_or(Err(Error::Closed(Closed::ByUs)))?;
            let mut reader = Reader::new(text.as_str(), Dialect::V2Draft);
            reader.decode().map_err(|error| Error::BadAnswer { method, error })
        })
    }
}
