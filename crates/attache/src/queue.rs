//! A queue that knows how many bytes wait in it, and who waits for it.

use std::collections::VecDeque;
use std::task::Waker;

/// What waits to be taken, in order.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
    pub(crate) waiters: Waiters,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { items: VecDeque::new(), bytes: 0, waiters: Waiters::default() }
    }
}

impl<T> Queue<T> {
    /// Adds an item that takes so many bytes, its place in the queue not counted, and wakes whoever waits.
    pub(crate) fn push(&mut self, item: T, size: usize) {
        let size = size + size_of::<(usize, T)>();
        if self.items.capacity() == 0 {
            // Many queues never hold more than one item.
            self.items.reserve_exact(1);
        }
        self.bytes += size;
        self.items.push_back((size, item));
        self.waiters.wake();
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let (size, item) = self.items.pop_front()?;
        self.bytes -= size;
        Some(item)
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front().map(|(_, item)| item)
    }

    /// Takes the first item of a kind.
    pub(crate) fn take(&mut self, kind: impl Fn(&T) -> bool) -> Option<T> {
        let position = self.items.iter().position(|(_, item)| kind(item))?;
        let (size, item) = self.items.remove(position)?;
        self.bytes -= size;
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }

    /// Takes all there is.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.bytes = 0;
        std::mem::take(&mut self.items).into_iter().map(|(_, item)| item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether somebody waits, with nothing there for them.
    pub(crate) fn is_awaited(&self) -> bool {
        self.items.is_empty() && !self.waiters.waiting.is_empty()
    }
}

/// Tasks that wait for the same thing. All of them are woken, so that none can take another's wake-up; each leaves when it
/// has what it wanted or is dropped.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    next: u64,
    waiting: Vec<(u64, Waker)>,
}

impl Waiters {
    /// Has a task wait under a key, which it is given the first time.
    pub(crate) fn join(&mut self, key: &mut Option<u64>, waker: &Waker) {
        if let Some((_, known)) = self.waiting.iter_mut().find(|(known, _)| Some(*known) == *key) {
            return known.clone_from(waker);
        }
        self.next += 1;
        *key = Some(self.next);
        if self.waiting.capacity() == 0 {
            self.waiting.reserve_exact(1);
        }
        self.waiting.push((self.next, waker.clone()));
    }

    pub(crate) fn leave(&mut self, key: &mut Option<u64>) {
        if let Some(key) = key.take() {
            self.waiting.retain(|(known, _)| *known != key);
        }
    }

    pub(crate) fn wake(&self) {
        for (_, waker) in &self.waiting {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_in_and_out() {
        let place = size_of::<(usize, char)>();
        let mut queue = Queue::default();
        for (item, size) in [('a', 1), ('b', 2), ('c', 4), ('d', 8)] {
            queue.push(item, size);
        }
        assert_eq!(queue.bytes(), 15 + 4 * place);
        assert_eq!(queue.take(|item| *item == 'c'), Some('c'));
        assert_eq!(queue.pop(), Some('a'));
        assert_eq!(queue.bytes(), 10 + 2 * place);
        assert_eq!((queue.drain().count(), queue.bytes()), (2, 0));
    }

    #[test]
    fn a_waiter_that_left_is_not_waited_for() {
        let mut queue: Queue<()> = Queue::default();
        let (mut first, mut second) = (None, None);
        queue.waiters.join(&mut first, Waker::noop());
        queue.waiters.join(&mut second, Waker::noop());
        queue.waiters.join(&mut second, Waker::noop());
        queue.waiters.leave(&mut first);
        assert!(queue.is_awaited());
        queue.waiters.leave(&mut second);
        assert!(!queue.is_awaited() && second.is_none());
    }
}
