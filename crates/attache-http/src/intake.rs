//! Bytes of clients' messages that a server holds because no agent has taken them yet: counted from when they arrive, in all and
//! of each principal, so that no number of connections holds more than the server has room for.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::access::Principal;

/// What a WebSocket holds of a message before it counts: as much as it holds to read at all, and enough for a cancel.
const UNCOUNTED: usize = 16 << 10;

/// The room of a server.
#[derive(Debug)]
pub(crate) struct Intake {
    all: AtomicUsize,
    most: usize,
    most_each: usize,
    shares: Mutex<HashMap<Principal, Weak<Share>>>,
    /// Sockets that wait for room.
    waiting: Mutex<Vec<Waker>>,
}

/// What one principal takes of it.
#[derive(Debug)]
pub(crate) struct Share {
    intake: Arc<Intake>,
    bytes: AtomicUsize,
}

impl Intake {
    pub(crate) fn new(most: usize, most_each: usize) -> Arc<Self> {
        // A message that counts only when it is complete has to fit, or it would wait for ever.
        let (most, most_each) = (most.max(2 * UNCOUNTED), most_each.max(2 * UNCOUNTED));
        let all = AtomicUsize::new(0);
        Arc::new(Intake { all, most, most_each, shares: Mutex::default(), waiting: Mutex::default() })
    }

    /// The share of a principal: one for all of its connections.
    pub(crate) fn share(self: &Arc<Self>, principal: &Principal) -> Arc<Share> {
        let shares = &mut *self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(principal).and_then(Weak::upgrade) {
            return share;
        }
        // There are as many principals as tokens; those that have left are forgotten.
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Share { intake: self.clone(), bytes: AtomicUsize::new(0) });
        shares.insert(principal.clone(), Arc::downgrade(&share));
        share
    }

    /// How many bytes there are of all clients.
    pub(crate) fn bytes(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Nothing yet, for a message that begins to arrive.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        Held { share: self.clone(), bytes: 0 }
    }

    fn add(&self, bytes: usize) -> bool {
        let add = |counter: &AtomicUsize, most: usize| {
            let added = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= most);
            counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, added).is_ok()
        };
        if !add(&self.bytes, self.intake.most_each) {
            return false;
        }
        let has_room = add(&self.intake.all, self.intake.most);
        if !has_room {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
        has_room
    }
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    share: Arc<Share>,
    bytes: usize,
}

impl Held {
    /// Counts more bytes; `false` if there is no room for them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let has_room = self.share.add(bytes);
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }

    /// Counts so many bytes and no others; `false` if there is no room for more.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        drop(Held { share: self.share.clone(), bytes: self.bytes - bytes });
        self.bytes = bytes;
        true
    }

    /// Counts so many bytes and no others, as soon as there is room.
    fn poll_resize(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<()> {
        if bytes <= self.bytes {
            self.resize(bytes);
            return Poll::Ready(());
        }
        let more = bytes - self.bytes;
        if self.grow(more) {
            return Poll::Ready(());
        }
        let intake = &self.share.intake;
        {
            let waiting = &mut *intake.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
        }
        // What was given back before we were on the list woke nobody.
        if self.grow(more) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.share.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.share.intake.all.fetch_sub(self.bytes, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.share.intake.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The bytes below a WebSocket, counted while a message is put together from them.
pub(crate) struct Metered<S> {
    io: S,
    /// Where they count; clients count nothing.
    share: Option<Arc<Share>>,
    held: Option<Held>,
    /// What came since the last message.
    since: usize,
}

impl<S> Metered<S> {
    pub(crate) fn new(io: S, share: Option<Arc<Share>>) -> Self {
        Metered { io, share, held: None, since: 0 }
    }

    /// A message of so many bytes is complete: what counts for it, as soon as there is room.
    pub(crate) fn poll_held(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<Option<Held>> {
        let Some(share) = &self.share else { return Poll::Ready(None) };
        let held = self.held.get_or_insert_with(|| share.hold());
        std::task::ready!(held.poll_resize(cx, bytes));
        self.since = 0;
        Poll::Ready(self.held.take())
    }

    /// What came is of no more use.
    pub(crate) fn forget(&mut self) {
        (self.held, self.since) = (None, 0);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        self.since += read;
        let this = &mut *self;
        if let Some(share) = this.share.as_ref().filter(|_| this.since > UNCOUNTED)
            && !this.held.get_or_insert_with(|| share.hold()).grow(read)
        {
            // Others like it may wait for the same room, each with half a message: one has to give way. Its client comes back.
            this.held = None;
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_all_nor_one_take_more_than_they_may_and_what_is_dropped_is_free_again() {
        const K: usize = UNCOUNTED;
        let intake = Intake::new(10 * K, 6 * K);
        let [anna, bert] = ["anna", "bert"].map(|name| intake.share(&Principal::new(name)));
        let (mut hers, mut more, mut his) = (anna.hold(), anna.hold(), bert.hold());
        assert!(hers.grow(5 * K) && !more.grow(K + 1) && more.grow(K));
        assert!(his.grow(4 * K) && !his.grow(1));
        assert_eq!(intake.bytes(), 10 * K);
        drop(more);
        assert!(his.grow(K) && !his.grow(1));
        // The same one by whichever connection it comes.
        assert!(Arc::ptr_eq(&anna, &intake.share(&Principal::new("anna"))));
        drop((hers, his));
        assert_eq!(intake.bytes(), 0);
    }

    #[test]
    fn who_waits_for_room_is_woken_when_there_is_some() {
        use std::sync::atomic::AtomicBool;
        struct Flag(AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        const K: usize = UNCOUNTED;
        let share = Intake::new(2 * K, 2 * K).share(&Principal::new("anna"));
        let (mut first, mut second) = (share.hold(), share.hold());
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(flag.clone());
        let mut cx = Context::from_waker(&waker);
        assert!(first.poll_resize(&mut cx, K + 2).is_ready());
        assert!(second.poll_resize(&mut cx, K - 1).is_pending());
        assert!(!flag.0.load(Ordering::Relaxed));
        assert!(first.poll_resize(&mut cx, K + 1).is_ready());
        assert!(flag.0.load(Ordering::Relaxed));
        assert!(second.poll_resize(&mut cx, K - 1).is_ready());
    }
}
