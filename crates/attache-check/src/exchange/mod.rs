//! One connection of a record, understood: messages, calls with their answers, sessions with their turns.
//!
//! Rules judge this. It decides nothing: whatever was wrong stays visible in it. What the messages mean is asked of the library's own
//! values (`rpc::parse`, `conversation`), so that the checker and the library cannot read one thing in two ways.

mod calls;
mod message;
mod mishaps;
mod pulse;
mod sessions;
mod timing;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use attache_proto::Dialect;
use serde_json::Value;

pub use calls::{Answer, Call, CallIndex, other};
pub use message::{Body, Message, MessageIndex, RpcError};
pub use mishaps::{Batch, Mishap, Mistake, Stray, depth};
pub use pulse::{Departure, Pulse};
pub use sessions::{Session, Turn};

use crate::record::{Entry, Event, Side};

/// One connection of a record.
#[derive(Debug)]
pub struct Exchange<'r> {
    /// What happened, in order.
    pub entries: &'r [Entry],
    /// How the two speak, as far as that is known from `initialize`; version 1 if it is not.
    pub dialect: Dialect,
    /// The messages of both sides in order, entries of batches one by one, and what was none.
    pub messages: Vec<Message<'r>>,
    /// The requests of both sides, in order, with their answers.
    pub calls: Vec<Call>,
    /// The call of each message that is a request or an answer to one.
    call_of_message: Vec<Option<CallIndex>>,
    /// The sessions that were opened, by their id.
    pub sessions: BTreeMap<String, Session>,
    /// The `initialize` that counts: the last that was answered with a result, else the first.
    pub initialize: Option<CallIndex>,
    /// What stood in the place of messages and is none, and responses that answer nothing, in order, with the errors that answer them.
    pub mishaps: Vec<Mishap>,
    /// The arrays of messages, in order.
    pub batches: Vec<Batch>,
    /// The responses that answer nothing, in order.
    pub strays: Vec<Stray>,
    /// What responses that answer nothing seem to be meant for.
    strayed: HashSet<MessageIndex>,
    /// The last entry until which a side had time, if the other side let it: the agent, the client.
    time_until: [Option<usize>; 2],
    /// Who left first, where, and how.
    departed: Option<(Side, usize, Departure)>,
    /// The long waits after the last that the client said.
    waits: Vec<pulse::Wait>,
}

impl<'r> Exchange<'r> {
    /// Reads the entries of one connection.
    pub fn new(entries: &'r [Entry]) -> Self {
        let messages = message::read(entries);
        let (calls, tracker) = calls::pair(&messages);
        let initialize = settled(&calls);
        let mut call_of_message = vec![None; messages.len()];
        for (index, call) in calls.iter().enumerate() {
            let answers = call.answers.iter().map(|answer| answer.at);
            answers.chain([call.at]).for_each(|message| call_of_message[message] = Some(index));
        }
        let mut exchange = Exchange {
            entries,
            departed: pulse::departed(entries),
            waits: pulse::last_waits(entries, &messages),
            dialect: Dialect::V1,
            messages,
            calls,
            call_of_message,
            sessions: BTreeMap::new(),
            initialize,
            mishaps: tracker.mishaps,
            batches: tracker.batches,
            strayed: tracker.strays.iter().filter_map(|stray| stray.to).collect(),
            strays: tracker.strays,
            time_until: [Side::Agent, Side::Client].map(|side| time_until(entries, side)),
        };
        exchange.dialect = exchange.spoken();
        exchange.sessions = sessions::read(&exchange);
        exchange
    }

    /// The dialect that the answer to `initialize` settles, or that its question asks for.
    fn spoken(&self) -> Dialect {
        let Some(call) = self.initialize.map(|index| &self.calls[index]) else { return Dialect::V1 };
        let asked =
            attache_proto::conversation::requested_dialect(Some(&call.params.to_string())).unwrap_or(Dialect::V1);
        let Some(result) = call.result() else { return asked };
        let mut greeting = attache_proto::conversation::Greeting::in_dialect(asked);
        use attache_proto::conversation::Greeted;
        match greeting.handle_answer(Ok(&result.to_string())) {
            Greeted::Agreed(dialect, _) | Greeted::Again(dialect) => dialect,
            // What cannot be read is for rules to say.
            Greeted::Restart | Greeted::Failed(_) => match result["protocolVersion"].as_u64() {
                Some(2) => asked,
                _ => Dialect::V1,
            },
        }
    }

    /// The params of `initialize`, null if there was none.
    pub fn client_hello(&self) -> &Value {
        self.initialize.map_or(&Value::Null, |index| &self.calls[index].params)
    }

    /// The result of `initialize`, null if there was none.
    pub fn agent_hello(&self) -> &Value {
        self.initialize.and_then(|index| self.calls[index].result()).unwrap_or(&Value::Null)
    }

    /// What a side said that it can do, at a path such as `fs.readTextFile`; null if it said nothing.
    pub fn capability(&self, side: Side, path: &str) -> &Value {
        let (hello, old) = match side {
            Side::Client => (self.client_hello(), "clientCapabilities"),
            Side::Agent => (self.agent_hello(), "agentCapabilities"),
        };
        let (own, other) = if self.dialect == Dialect::V1 { (old, "capabilities") } else { ("capabilities", old) };
        // That these are the words of another version is for a rule of its own to say: what they offer may be used.
        let root = if hello[own].is_null() { &hello[other] } else { &hello[own] };
        at(root, path)
    }

    /// Whether a side offered what is at a path: `true`, or an object.
    pub fn offers(&self, side: Side, path: &str) -> bool {
        let value = self.capability(side, path);
        value.as_bool() == Some(true) || value.is_object()
    }

    /// The position in the wire's order at which the connection was agreed: after the answer to the first `initialize` that had a
    /// result.
    pub fn agreed_at(&self) -> Option<MessageIndex> {
        self.calls.iter().find(|call| call.method == "initialize" && call.result().is_some())?.answered_at()
    }

    /// The call that a message asks or answers.
    pub fn call_of(&self, message: MessageIndex) -> Option<CallIndex> {
        self.call_of_message.get(message).copied().flatten()
    }

    /// The calls that a side made, in order.
    pub fn calls_of(&self, side: Side) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.from == side)
    }

    /// The calls of a method, by its name on the wire, whoever made them.
    pub fn calls_to<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.method == method)
    }

    /// The messages of a side, in order, with their positions.
    pub fn messages_of(&self, side: Side) -> impl Iterator<Item = (MessageIndex, &Message<'r>)> {
        self.messages.iter().enumerate().filter(move |(_, message)| message.from == side)
    }

    /// The notifications of a method, with their positions and params.
    pub fn notifications<'a>(&'a self, side: Side, method: &'a str) -> impl Iterator<Item = (MessageIndex, &'a Value)> {
        self.messages_of(side).filter_map(move |(index, message)| match &message.body {
            Body::Notification { method: name, params } if name == method => Some((index, params)),
            _ => None,
        })
    }

    /// The updates of all sessions: position, session and the update.
    pub fn updates(&self) -> impl Iterator<Item = (MessageIndex, &str, &Value)> {
        self.notifications(Side::Agent, "session/update")
            .map(|(index, params)| (index, params["sessionId"].as_str().unwrap_or(""), &params["update"]))
    }

    /// The updates of one kind (`sessionUpdate`), of all sessions.
    pub fn updates_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
        self.updates().filter(move |(_, _, update)| update["sessionUpdate"] == kind)
    }

    /// The messages of a side as JSON, each by itself, null where that cannot be.
    pub fn values_of(&self, side: Side) -> impl Iterator<Item = (MessageIndex, Value)> {
        let mut batch: (usize, Vec<Value>) = (usize::MAX, Vec::new());
        self.messages_of(side).map(move |(index, message)| {
            let Some(place) = message.in_batch else {
                return (index, serde_json::from_str(message.text).unwrap_or_default());
            };
            if batch.0 != message.entry {
                batch = (message.entry, serde_json::from_str(message.text).unwrap_or_default());
            }
            (index, batch.1.get_mut(place).map(Value::take).unwrap_or_default())
        })
    }

    /// The array that a message came in.
    pub fn batch_of(&self, message: MessageIndex) -> Option<&Batch> {
        let after = self.batches.partition_point(|batch| batch.messages.start <= message);
        after.checked_sub(1).map(|index| &self.batches[index]).filter(|batch| batch.messages.contains(&message))
    }

    /// Whether a side had its time to answer what came before and is not known to have gone on: whoever recorded waited, or the
    /// side closed its end or ended, after this message. Only then is "not answered" a fault. Nothing is owed to who has gone: what
    /// comes after the other side closed its end does not count.
    pub fn had_time(&self, side: Side, since: MessageIndex) -> bool {
        let Some(message) = self.messages.get(since) else { return false };
        self.time_until[usize::from(side == Side::Client)].is_some_and(|until| until >= message.entry)
    }

    /// The first entry at which a side closed its end.
    pub fn closed_at(&self, side: Side) -> Option<usize> {
        self.entries.iter().position(|entry| entry.event == Event::Closed { from: side })
    }
}

/// A side that did not answer for so long is taken not to answer. Probes wait longer; recordings say nothing of waiting.
pub(crate) const ENOUGH_TIME: Duration = Duration::from_millis(500);

/// The last entry that shows that a side had time, before the other side closed its end.
fn time_until(entries: &[Entry], side: Side) -> Option<usize> {
    let end = entries.iter().position(|entry| entry.event == Event::Closed { from: other(side) });
    entries[..end.unwrap_or(entries.len())].iter().rposition(|entry| match &entry.event {
        Event::Waited { time } => *time >= ENOUGH_TIME,
        Event::Closed { from } => *from == side,
        Event::Exited { .. } => true,
        _ => false,
    })
}

/// The `initialize` that counts.
fn settled(calls: &[Call]) -> Option<CallIndex> {
    let greetings =
        || calls.iter().enumerate().filter(|(_, call)| call.method == "initialize" && call.from == Side::Client);
    let settled = greetings().rfind(|(_, call)| call.result().is_some());
    settled.or_else(|| greetings().next()).map(|(index, _)| index)
}

/// The value at a path of keys with dots between them; null if there is none.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

#[cfg(test)]
mod tests;
