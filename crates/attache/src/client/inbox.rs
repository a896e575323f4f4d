//! What waits to be read of a session, or of the connection.

use attache_proto::conversation::{ClientSession, TurnEnd, TurnId};
use attache_proto::json::RawJson;
use attache_proto::method::{AgentNotification, AgentRequest};
use attache_proto::model::Meta;
use attache_proto::model::session::SessionId;
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc::Call;

use crate::Error;
use crate::queue::Queue;

/// One thing that waits to be taken.
pub(crate) enum Item {
    Update(SessionUpdate, Option<Box<Meta>>),
    Call(Call, Box<AgentRequest>),
    Extension(Option<Call>, Box<str>, Option<RawJson>),
    Notification(Box<AgentNotification>),
    End(TurnId, Result<TurnEnd, Error>),
}

impl Item {
    /// The call that has to be answered.
    pub(super) fn call(&self) -> Option<Call> {
        match self {
            Item::Call(call, _) | Item::Extension(Some(call), ..) => Some(*call),
            _ => None,
        }
    }

    /// Whether it is a call whose answer may be long.
    pub(super) fn is_answered_with_content(&self) -> bool {
        match self {
            Item::Call(_, request) => {
                matches!(**request, AgentRequest::ReadTextFile(_) | AgentRequest::TerminalOutput(_))
            }
            Item::Extension(call, ..) => call.is_some(),
            _ => false,
        }
    }
}

/// What waits to be taken, in wire order.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) session: ClientSession,
    pub(super) items: Queue<Item>,
    /// How many handles there are to the session: the same one may be opened again while an older handle lives.
    pub(super) claims: usize,
    /// Turns that somebody holds and that have not been told their end.
    pub(super) readers: Vec<TurnId>,
    /// A turn that was dropped before its end, with no other to read. What comes until then is discarded.
    pub(super) dropped: Option<TurnId>,
    /// Ends of turns that a reader of something else has come across.
    pub(super) ends: Vec<(TurnId, Result<TurnEnd, Error>)>,
    /// Whether the history that is told was not asked for.
    pub(super) is_muted: bool,
    /// How many items were discarded, once the inbox has overflowed.
    pub(super) overflow: Option<u64>,
}

impl Inbox {
    /// Discards what is there of a turn, and has the rest of it discarded as it comes.
    pub(super) fn discard_turn(&mut self, turn: TurnId) -> Vec<Call> {
        let mut calls = Vec::new();
        while let Some(item) = self.items.pop() {
            calls.extend(item.call());
            if matches!(item, Item::End(ended, _) if ended == turn) {
                return calls;
            }
        }
        self.dropped = Some(turn).filter(|turn| self.session.is_open(*turn));
        calls
    }

    /// Discards what is there; returns the calls that nobody will answer. Ends of turns are kept: somebody waits for them.
    pub(super) fn discard(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        for item in self.items.drain() {
            calls.extend(item.call());
            match item {
                Item::End(turn, end) if self.readers.contains(&turn) => self.ends.push((turn, end)),
                Item::End(..) => {}
                _ => self.overflow = self.overflow.map(|count| count + 1),
            }
        }
        calls
    }

    pub(super) fn push(&mut self, item: Item, size: usize) {
        match (&mut self.overflow, item) {
            (_, Item::End(turn, _)) if self.dropped == Some(turn) => self.dropped = None,
            (_, item) if self.dropped.is_some() && !matches!(item, Item::End(..)) => {}
            // Somebody waits for the end all the same.
            (_, Item::End(turn, end)) => self.items.push(Item::End(turn, end), size),
            (Some(discarded), _) => *discarded += 1,
            (None, item) => self.items.push(item, size),
        }
    }

    pub(super) fn take(
        &mut self,
        session: Option<&SessionId>,
        turn: Option<TurnId>,
        is_full: bool,
        is_busy: bool,
        is_owed: impl Fn(Call) -> bool,
    ) -> Option<Result<Item, Error>> {
        if let Some(turn) = turn
            && let Some(index) = self.ends.iter().position(|(ended, _)| *ended == turn)
        {
            self.readers.retain(|reader| *reader != turn);
            let (turn, end) = self.ends.remove(index);
            return Some(Ok(Item::End(turn, end)));
        }
        if let Some(discarded) = self.overflow {
            let overflow = Error::SessionOverflow { session: session.cloned(), discarded };
            // The connection's own inbox has nothing that ends: it goes on once that is told.
            if session.is_none() {
                self.overflow = None;
            }
            return Some(Err(overflow));
        }
        loop {
            let front = self.items.front()?;
            if let Some(call) = front.call() {
                // It was cancelled before anybody read it.
                if !is_owed(call) {
                    self.items.pop();
                    continue;
                }
                // It is handed out when there is room for its answer: what our own code answers with is in memory too.
                if is_full || is_busy && front.is_answered_with_content() {
                    return None;
                }
            }
            match self.items.pop()? {
                Item::End(ended, end) if Some(ended) == turn => {
                    self.readers.retain(|reader| *reader != ended);
                    return Some(Ok(Item::End(ended, end)));
                }
                Item::End(ended, end) if self.readers.contains(&ended) => {
                    self.ends.push((ended, end));
                    self.items.waiters.wake();
                }
                // The end of a turn that nobody reads.
                Item::End(..) => {}
                item => return Some(Ok(item)),
            }
        }
    }
}
