//! What only the draft of version 2 has: several messages in one array.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use attache_proto::json::RawJson;
use attache_proto::method::{Notification, Request};
use attache_proto::rpc::MAX_BATCH;
use attache_proto::{Dialect, Encode};
use tokio::sync::oneshot;

use crate::Error;
use crate::link::answer::{self, AnswerSender};
use crate::link::{Abandon, BoxFuture, Expects, Link, Port, Router, Waiter};

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
#[derive(Default)]
pub struct Batch {
    entries: Vec<Entry>,
}

struct Entry {
    method: &'static str,
    params: RawJson,
    asked: Option<Asked>,
}

/// What is needed to send a request.
struct Asked {
    answer: AnswerSender,
    sent: oneshot::Sender<Sent>,
}

/// What whoever waits for the answer needs to know once the request is sent.
struct Sent {
    timeout: Option<Duration>,
    /// Tells the peer when nobody waits any more.
    _abandon: Box<dyn Send>,
}

impl Batch {
    /// An empty batch. Sending it sends nothing.
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a request; its answer comes from what is returned.
    pub fn call<Q: Request>(&mut self, request: &Q) -> BatchAnswer<Q::Response> {
        let method = Q::METHOD.name(Dialect::V2Draft).unwrap_or(Q::METHOD.any_name());
        let (sender, answer) = answer::channel(method);
        let (sent, sending) = oneshot::channel();
        let asked = Asked { answer: sender, sent };
        self.entries.push(Entry { method, params: encoded(request), asked: Some(asked) });
        BatchAnswer(Box::pin(async move {
            // What comes through the channel cancels the request when it is dropped, with this future or in the channel.
            let sent: Option<Sent> = sending.await.ok();
            match sent.as_ref().and_then(|sent| sent.timeout) {
                None => answer.await,
                Some(time) => tokio::time::timeout(time, answer).await.unwrap_or(Err(Error::TimedOut(time))),
            }
        }))
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
        if self.entries.len() > MAX_BATCH {
            return Err(Error::Invalid(format!("batch has more than {MAX_BATCH} messages")));
        }
        let is_asking = self.entries.iter().any(|entry| entry.asked.is_some());
        let expects = if is_asking { Expects::Answer } else { Expects::Nothing };
        let send = |_: &mut R, port: &mut Port<'_, R>| {
            let mut requests = Vec::new();
            port.peer.batch(
                |batch| {
                    for entry in self.entries {
                        match entry.asked {
                            Some(Asked { answer, sent }) => {
                                let waiter = Waiter::Call(answer);
                                let key = batch.request(entry.method, |writer| writer.value(&entry.params), waiter);
                                requests.push((key, sent));
                            }
                            None => batch.notify(entry.method, |writer| writer.value(&entry.params)),
                        }
                    }
                },
                port.out,
            );
            requests
        };
        for (key, sent) in link.send_to(expects, send).await? {
            let abandon = Box::new(Abandon { link: link.clone(), key: Some(key), reads_late: false });
            // Dropped at once if nobody waits for the answer.
            let _ = sent.send(Sent { timeout: link.limits().request_timeout, _abandon: abandon });
        }
        Ok(())
    }
}

fn encoded(params: &impl Encode) -> RawJson {
    RawJson::encode_in(params, Dialect::V2Draft)
}

/// The answer to one request of a batch: a future. Dropping it tells the peer that nobody waits any more.
#[must_use = "the answer comes when this is awaited"]
pub struct BatchAnswer<T>(BoxFuture<'static, Result<T, Error>>);

impl<T> Future for BatchAnswer<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.method)).finish()
    }
}

impl<T> fmt::Debug for BatchAnswer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BatchAnswer")
    }
}
