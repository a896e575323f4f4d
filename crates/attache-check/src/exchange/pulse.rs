//! Whether a side goes on after something that could have upset it.

use std::time::Duration;

use super::calls::{Call, other};
use super::message::{Body, Message, MessageIndex};
use super::{Exchange, Mistake};
use crate::probe::LONGEST_FRAME;
use crate::record::{Entry, Event, Side};

/// Requests whose answer may take as long as people and language models do.
const PATIENT: [&str; 9] = [
    "session/prompt",
    "session/request_permission",
    "elicitation/create",
    "terminal/wait_for_exit",
    "authenticate",
    "auth/login",
    "mcp/message",
    "proxy/initialize",
    "proxy/successor",
];

/// A wait for the end of a turn is as long as this, or longer; waits for answers that need no model are shorter, unless told otherwise.
const LONG_TURN: Duration = Duration::from_secs(2);

/// How a side left by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It closed its end, and nothing is known of a process.
    Closed,
    /// Its process exited with this status.
    Exited(i32),
    /// Its process was ended by a signal.
    Killed,
}

impl Departure {
    /// Whether it did not end in order.
    pub fn is_failure(self) -> bool {
        !matches!(self, Departure::Closed | Departure::Exited(0))
    }
}

impl std::fmt::Display for Departure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Departure::Closed => f.write_str("closed the connection"),
            Departure::Exited(code) => write!(f, "exited with status {code}"),
            Departure::Killed => f.write_str("was ended by a signal"),
        }
    }
}

/// A long wait after the last word of the client.
#[derive(Debug)]
pub(super) struct Wait {
    time: Duration,
    until: Duration,
    /// When the agent had last said something.
    spoke: Duration,
}

/// The long waits after the last that the client said, until it left.
pub(super) fn last_waits(entries: &[Entry], messages: &[Message<'_>]) -> Vec<Wait> {
    let is_word = |message: &&Message<'_>| message.from == Side::Client && message.body.method().is_some();
    let Some(start) = messages.iter().rfind(is_word).map(|message| message.entry) else { return Vec::new() };
    let spoke = entries[..start].iter().rfind(|entry| matches!(entry.event, Event::Frame { from: Side::Agent, .. }));
    let mut spoke = spoke.map_or(Duration::ZERO, |entry| entry.at);
    let mut waits = Vec::new();
    for entry in &entries[start..] {
        match entry.event {
            Event::Closed { from: Side::Client } => break,
            Event::Frame { from: Side::Agent, .. } => spoke = entry.at,
            Event::Waited { time } if time >= LONG_TURN => waits.push(Wait { time, until: entry.at, spoke }),
            _ => {}
        }
    }
    waits
}

/// Who left first, where, and how.
pub(super) fn departed(entries: &[Entry]) -> Option<(Side, usize, Departure)> {
    let is_end = |entry: &Entry| matches!(entry.event, Event::Closed { .. } | Event::Exited { .. });
    let left = entries.iter().position(is_end)?;
    let side = match entries[left].event {
        Event::Closed { from } => from,
        // An end without more is that of the agent's process, as in a transcript.
        _ => Side::Agent,
    };
    let exit = entries[left..].iter().find_map(|entry| match entry.event {
        Event::Exited { code } => Some(code.map_or(Departure::Killed, Departure::Exited)),
        _ => None,
    });
    Some((side, left, exit.unwrap_or(Departure::Closed)))
}

/// What is known of a side's life.
#[derive(Debug)]
pub struct Pulse {
    /// The last request that it answered, by where it was asked.
    served: Option<MessageIndex>,
    /// The last request that it left without an answer.
    ignored: Option<MessageIndex>,
    /// The last message that it sent without being asked.
    word: Option<MessageIndex>,
    /// Where it ended by itself: the messages before.
    ended: Option<MessageIndex>,
}

impl Pulse {
    /// Whether it went on after a message: yes if it answered something asked later, no if it ended or left that without an answer, and
    /// unknown if nobody asked.
    pub fn beats_after(&self, message: MessageIndex) -> Option<bool> {
        let is_later = |at: Option<MessageIndex>| at.is_some_and(|at| at > message);
        match () {
            () if is_later(self.served) => Some(true),
            () if is_later(self.ignored) => Some(false),
            () if is_later(self.ended) && !is_later(self.word) => Some(false),
            () => None,
        }
    }
}

impl Exchange<'_> {
    /// Whether a request was left without an answer, although there was time for one and it is of a kind that can be answered at once.
    /// Something that is meant as an answer is one here, and so is the refusal of the array that it came in.
    pub fn is_ignored(&self, call: &Call) -> bool {
        self.is_owed(call) && !self.is_patient(call) && self.had_time(call.to(), call.at)
    }

    /// Whether the answer to a request may take as long as people and language models do. A prompt has nothing to take its time for if
    /// there is no such session.
    fn is_patient(&self, call: &Call) -> bool {
        let is_idle =
            || call.method == "session/prompt" && call.session().is_none_or(|id| !self.sessions.contains_key(id));
        PATIENT.contains(&call.method.as_str()) && !is_idle()
    }

    /// Whether a request has no answer, and nothing that is meant as one.
    fn is_owed(&self, call: &Call) -> bool {
        call.answers.is_empty()
            && call.botched.is_none()
            && self.batch_of(call.at).is_none_or(|batch| batch.refusal.is_none())
            && !self.strayed.contains(&call.at)
    }

    /// How a side left that owed the answer to a request: it went without being asked to. A client may leave when it likes, and what people
    /// and commands take their time for is then left open; one that fails has no such excuse.
    pub fn abandoned(&self, call: &Call) -> Option<Departure> {
        let side = call.to();
        let departure = self.departed_after(side, call.at)?;
        let is_excused = side == Side::Client && self.is_patient(call) && !departure.is_failure();
        (!is_excused && self.is_owed(call)).then_some(departure)
    }

    /// How a side left by itself after a message.
    pub fn departed_after(&self, side: Side, message: MessageIndex) -> Option<Departure> {
        let (left, departure) = self.departure(side)?;
        self.messages.get(message).is_some_and(|message| message.entry < left).then_some(departure)
    }

    /// Where a side left by itself, and how.
    fn departure(&self, side: Side) -> Option<(usize, Departure)> {
        let (leaver, left, departure) = self.departed?;
        (leaver == side).then_some((left, departure))
    }

    /// For how long the end of a turn was waited for in vain: whoever recorded it gave up and asked for nothing more, and the agent had been
    /// silent for half of that time. An agent that still says something is slow, and that is no fault.
    pub fn gave_up_on_turn(&self, since: MessageIndex) -> Option<Duration> {
        let asked = self.time_of(since);
        let is_silence = |wait: &&Wait| wait.until.saturating_sub(wait.spoke.max(asked)) >= wait.time / 2;
        self.waits.iter().find(is_silence).map(|wait| wait.time)
    }

    /// The first message of the other side that is longer or deeper than a side has to take, if the side served nothing that was asked after
    /// it. How much it takes is for each to say, and so is what becomes of the connection.
    pub fn choked_at(&self, side: Side) -> Option<MessageIndex> {
        let served = self.pulse(side).served;
        let is_too_much = |at: MessageIndex| {
            let event =
                self.messages.get(at).and_then(|message| self.entries.get(message.entry)).map(|entry| &entry.event);
            matches!(event, Some(Event::Junk { bytes, .. }) if *bytes >= LONGEST_FRAME)
        };
        let mut mishaps = self.mishaps.iter().filter(|mishap| mishap.from == other(side));
        mishaps
            .find(|mishap| {
                let is_last = served.is_none_or(|served| served < mishap.at);
                is_last && (mishap.what == Mistake::TooDeep || is_too_much(mishap.at))
            })
            .map(|mishap| mishap.at)
    }

    /// Whether a request of a session was begun before it was answered: something was asked for it. Its error may be that of what was
    /// asked then, handed on.
    pub fn was_begun(&self, call: &Call) -> bool {
        let Some((answered, session)) = call.answered_at().zip(call.session()) else { return false };
        let first = self.calls.partition_point(|asked| asked.at <= call.at);
        let asked = self.calls[first..].iter().take_while(|asked| asked.at < answered);
        asked.into_iter().any(|asked| asked.from == call.to() && asked.session() == Some(session))
    }

    /// What is known of a side's life.
    pub fn pulse(&self, side: Side) -> Pulse {
        let asked = |wanted: &dyn Fn(&Call) -> bool| {
            self.calls.iter().rev().find(|call| call.to() == side && wanted(call)).map(|call| call.at)
        };
        let is_word = |body: &Body| matches!(body, Body::Request { .. } | Body::Notification { .. });
        let ended =
            self.entries.iter().position(|entry| matches!(entry.event, Event::Closed { .. } | Event::Exited { .. }));
        // Who was left has every reason to end.
        let by_itself = ended.filter(|entry| self.entries[*entry].event != Event::Closed { from: super::other(side) });
        Pulse {
            served: asked(&|call| !call.answers.is_empty() || call.botched.is_some()),
            ignored: asked(&|call| self.is_ignored(call)),
            word: self.messages.iter().rposition(|message| message.from == side && is_word(&message.body)),
            ended: by_itself.map(|entry| self.messages.partition_point(|message| message.entry < entry)),
        }
    }
}
