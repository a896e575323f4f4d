//! Plays one side of a recording to a live peer, and compares what the peer says with what was recorded.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::canonical::{IDS, canonical, label_and_body};
use super::diff::{Difference, diff_side};
use crate::exchange::{Body, Exchange, other};
use crate::probe::{Peer, Received, Wire};
use crate::record::{Event, Record, Side};

/// How a recording is played.
#[derive(Debug, Clone, Copy)]
pub struct Replay {
    /// Whose part is played.
    pub part: Side,
    /// Whether what is sent waits as long as it did in the recording; else it is sent as soon as what came before it has been answered.
    pub at_recorded_speed: bool,
    /// How long the live peer may take for a message that was recorded.
    pub patience: Duration,
}

/// What came of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// Where the live peer differs from the recorded one: the first is the recording.
    pub differences: Vec<Difference>,
    /// What was said this time.
    pub record: Record,
    /// Messages of the recording that could not be sent, because the live peer did not ask for them.
    pub unasked: usize,
    /// Why the recording was not played to its end, if it was not.
    pub given_up: Option<GivenUp>,
}

/// Why a recording was not played to its end, and how many of the peer's recorded messages did not come in the end. They are no
/// differences one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    /// Whether the live peer closed its end. Else it said nothing of what was waited for, several times in a row.
    pub is_closed: bool,
    /// How many messages did not come.
    pub missing: usize,
}

/// What came of waiting for a message.
#[derive(PartialEq)]
enum Heard {
    /// It came.
    Came,
    /// It is a piece of a text whose other pieces came.
    Piece,
    /// It did not come.
    Missed,
}

/// How many messages in a row may not come before a peer is given up.
const MOST_MISSES: usize = 3;

/// The longest time between two messages that is played.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How many messages that were not recorded are held, in case they are waited for later, and how many bytes they may have together.
const MOST_UNEXPECTED: usize = 10_000;
const MOST_UNEXPECTED_BYTES: usize = 32 << 20;

/// Plays a part of the first connection of a recording to a live peer.
///
/// Ids that the live peer makes up take the place of the recorded ones. Text may come in other pieces.
pub async fn replay(recording: &Record, peer: Peer, how: Replay) -> Replayed {
    let first = recording.connections().next().map_or(&[][..], |(_, entries)| entries);
    let first = Record { started: recording.started, entries: first.to_vec() };
    let mut player = Player {
        wire: Wire::new(other(how.part), peer),
        exchange: Exchange::new(&first.entries),
        live: Vec::new(),
        ids: HashMap::new(),
        calls: HashMap::new(),
        how,
        started: Instant::now(),
        times: squeezed(&first.entries),
        is_closed: false,
        unasked: 0,
        live_bytes: 0,
    };
    let is_given_up = player.play().await;
    let (is_closed, record, unasked) = (player.is_closed, player.wire.into_record(), player.unasked);
    let mut differences = diff_side(other(how.part), &canonical(&first), &canonical(&record));
    let mut given_up = None;
    if is_given_up {
        let came = differences.iter().rposition(|difference| !matches!(difference, Difference::OnlyFirst(_)));
        let missing = differences.split_off(came.map_or(0, |last| last + 1)).len();
        given_up = (missing > 0).then_some(GivenUp { is_closed, missing });
    }
    Replayed { differences, record, unasked, given_up }
}

struct Player<'r> {
    wire: Wire,
    exchange: Exchange<'r>,
    /// What came and was not expected yet: its label, and the message.
    live: Vec<(String, Value)>,
    live_bytes: usize,
    /// The ids of the live peer, by the recorded ones.
    ids: HashMap<(&'static str, String), Value>,
    /// The ids of the live peer's requests, by the recorded ones.
    calls: HashMap<String, Value>,
    how: Replay,
    started: Instant,
    /// When each entry is due, counted from the start.
    times: Vec<Duration>,
    is_closed: bool,
    unasked: usize,
}

impl Player<'_> {
    /// Plays it; `true` if it was given up before its end.
    async fn play(&mut self) -> bool {
        let mut played = None;
        let mut misses = 0;
        for index in 0..self.exchange.messages.len() {
            let (from, entry) = (self.exchange.messages[index].from, self.exchange.messages[index].entry);
            // Entries of a batch are one line.
            if played.replace(entry) == Some(entry) {
                continue;
            }
            if from == self.how.part {
                self.say(index, entry).await;
            } else {
                match self.hear(index).await {
                    Heard::Came => misses = 0,
                    Heard::Piece => {}
                    Heard::Missed => misses += 1,
                }
            }
            if self.is_closed || misses == MOST_MISSES {
                return true;
            }
        }
        // What comes after the last recorded message is a difference, too.
        let deadline = Instant::now() + Duration::from_millis(200).min(self.how.patience);
        while self.receive(deadline).await {}
        let is_closed = self.exchange.closed_at(self.how.part).is_some();
        if is_closed {
            self.wire.close().await;
            let deadline = Instant::now() + self.how.patience;
            while self.receive(deadline).await {}
        }
        false
    }

    /// Sends a recorded message.
    async fn say(&mut self, index: usize, entry: usize) {
        if self.how.at_recorded_speed {
            let due = self.started + self.times[entry];
            while Instant::now() < due && self.receive(due).await {}
            if !self.is_closed {
                tokio::time::sleep_until(due).await;
            }
        }
        let message = &self.exchange.messages[index];
        let sent = match serde_json::from_str::<Value>(message.text) {
            Err(_) => self.wire.send_text(message.text, self.how.patience).await,
            Ok(mut value) => {
                if matches!(message.body, Body::Response { .. }) {
                    let Some(id) = self.calls.get(&value["id"].to_string()) else {
                        self.unasked += 1;
                        return;
                    };
                    value.as_object_mut().map(|members| members.insert("id".to_owned(), id.clone()));
                }
                self.translate(&mut value);
                self.wire.send_text(&value.to_string(), self.how.patience).await
            }
        };
        // A peer that does not read has closed its end, or will never go on.
        self.is_closed |= sent.is_err();
    }

    /// Waits for what the peer said here in the recording.
    async fn hear(&mut self, index: usize) -> Heard {
        let message = &self.exchange.messages[index];
        let (label, _) = label_and_body(&self.exchange, index, message);
        let recorded: Value = serde_json::from_str(message.text).unwrap_or(Value::Null);
        let is_piece = label.ends_with("_chunk");
        let deadline = Instant::now() + self.how.patience;
        loop {
            if let Some(found) = self.live.iter().position(|(live, _)| *live == label) {
                let (label, live) = self.live.remove(found);
                self.live_bytes -= label.len() + live.to_string().len();
                if matches!(self.exchange.messages[index].body, Body::Request { .. }) {
                    self.calls.insert(recorded["id"].to_string(), live["id"].clone());
                }
                self.learn("", &recorded, &live);
                return Heard::Came;
            }
            // The pieces of a text may be fewer.
            let is_last_piece = is_piece && self.is_continued(index, &label);
            if is_last_piece {
                return Heard::Piece;
            }
            if !self.receive(deadline).await {
                return Heard::Missed;
            }
        }
    }

    /// Whether a piece of a text was recorded directly before this one, so that there may be no other this time.
    fn is_continued(&self, index: usize, label: &str) -> bool {
        let part = other(self.how.part);
        let before = self.exchange.messages[..index].iter().enumerate().rfind(|(_, message)| message.from == part);
        before.is_some_and(|(before, message)| label_and_body(&self.exchange, before, message).0 == label)
    }

    /// Takes in what comes next; `false` if nothing does.
    async fn receive(&mut self, deadline: Instant) -> bool {
        match self.wire.receive_until(deadline).await {
            Received::Json(value) => {
                let label = self.live_label(&value);
                // What is not waited for in the end is in the record.
                let size = label.len() + value.to_string().len();
                if self.live.len() < MOST_UNEXPECTED && self.live_bytes + size <= MOST_UNEXPECTED_BYTES {
                    self.live_bytes += size;
                    self.live.push((label, value));
                }
                true
            }
            Received::Junk => true,
            Received::Closed => {
                self.is_closed = true;
                false
            }
            Received::Nothing => {
                self.wire.note(Event::Waited { time: self.how.patience });
                false
            }
        }
    }

    /// What a live message is, in the words of [`label_and_body`].
    fn live_label(&self, value: &Value) -> String {
        match (value["method"].as_str(), value["params"]["update"]["sessionUpdate"].as_str()) {
            (Some(method), Some(kind)) if value.get("id").is_none() => format!("{method} {kind}"),
            (Some(method), _) => method.to_owned(),
            // Our requests have the ids that they were recorded with.
            (None, _) => {
                let id = value["id"].to_string();
                let call = self.exchange.calls_of(self.how.part).find(|call| id_text(&call.id) == id);
                format!("answer to {}", call.map_or("an unknown request", |call| &call.method))
            }
        }
    }

    /// Learns which ids of the live peer stand for the recorded ones.
    fn learn(&mut self, key: &str, recorded: &Value, live: &Value) {
        match (recorded, live) {
            (Value::Object(one), Value::Object(other)) => {
                for (key, value) in one {
                    if let Some(live) = other.get(key) {
                        self.learn(key, value, live);
                    }
                }
            }
            (Value::Array(one), Value::Array(other)) => {
                one.iter().zip(other).for_each(|(one, other)| self.learn(key, one, other));
            }
            (Value::String(one), Value::String(_)) => {
                if let Some(id) = IDS.iter().find(|id| **id == key) {
                    let id = if *id == "nextCursor" { "cursor" } else { id };
                    self.ids.entry((id, one.clone())).or_insert_with(|| live.clone());
                }
            }
            _ => {}
        }
    }

    /// Puts the ids of the live peer in the place of the recorded ones.
    fn translate(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.translate(item)),
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    let known = match (IDS.iter().find(|id| *id == key), &*member) {
                        (Some(&"requestId"), id) => self.calls.get(&id.to_string()),
                        (Some(id), Value::String(text)) => self.ids.get(&(*id, text.clone())),
                        _ => None,
                    };
                    match known {
                        Some(known) => *member = known.clone(),
                        None => self.translate(member),
                    }
                }
            }
            _ => {}
        }
    }
}

/// When each entry is due, counted from the first. Nobody waits for hours.
fn squeezed(entries: &[crate::record::Entry]) -> Vec<Duration> {
    let mut due = Duration::ZERO;
    let mut before = entries.first().map_or(Duration::ZERO, |entry| entry.at);
    let times = entries.iter().map(|entry| {
        due += entry.at.saturating_sub(before).min(LONGEST_PAUSE);
        before = entry.at;
        due
    });
    times.collect()
}

/// The id as it stands in JSON.
fn id_text(id: &attache_proto::model::request::RequestId) -> String {
    use attache_proto::model::request::RequestId;
    match id {
        RequestId::Null => "null".to_owned(),
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => Value::from(&**text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use attache_testkit::RawPeer;
    use tokio::io::{duplex, split};

    use super::*;

    const RECORDING: &str = "
        --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
        <-- {'id':0,'result':{'protocolVersion':1}}
        --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
        <-- {'id':1,'result':{'sessionId':'old'}}
        --> {'id':2,'method':'session/prompt','params':{'sessionId':'old','prompt':[]}}
        <-- {'id':'ask-1','method':'session/request_permission','params':{'sessionId':'old','toolCall':{'toolCallId':'t'}}}
        --> {'id':'ask-1','result':{'outcome':{'outcome':'cancelled'}}}
        <-- {'method':'session/update','params':{'sessionId':'old','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'no'}}}}
        <-- {'method':'session/update','params':{'sessionId':'old','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'pe'}}}}
        <-- {'id':2,'result':{'stopReason':'end_turn'}}
        (closed by client)";

    async fn against(script: &'static str) -> Replayed {
        let (near, far) = duplex(4096);
        let agent = tokio::spawn(async move {
            let mut agent = RawPeer::new(far);
            agent.play(script).await;
            while agent.next().await.is_some() {}
        });
        let (reader, writer) = split(near);
        let peer = Peer { reader: Box::new(reader), writer: Box::new(writer) };
        let how = Replay { part: Side::Client, at_recorded_speed: false, patience: Duration::from_secs(2) };
        let replayed = replay(&Record::from_transcript(RECORDING).unwrap(), peer, how).await;
        agent.await.unwrap();
        replayed
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_the_same_does_not_differ() {
        let replayed = against(
            "<-- {'id':0,'method':'initialize'}
            --> {'id':0,'result':{'protocolVersion':1}}
            <-- {'id':1,'method':'session/new'}
            --> {'id':1,'result':{'sessionId':'new'}}
            <-- {'id':2,'method':'session/prompt','params':{'sessionId':'new'}}
            --> {'id':77,'method':'session/request_permission','params':{'sessionId':'new','toolCall':{'toolCallId':'u'}}}
            <-- {'id':77,'result':{'outcome':{'outcome':'cancelled'}}}
            --> {'method':'session/update','params':{'sessionId':'new','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'nope'}}}}
            --> {'id':2,'result':{'stopReason':'end_turn'}}",
        )
        .await;
        assert_eq!(replayed.differences, [], "{}", replayed.record.to_transcript());
        assert_eq!(replayed.unasked, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_something_else_is_told() {
        let replayed = against(
            "<-- {'id':0,'method':'initialize'}
            --> {'id':0,'result':{'protocolVersion':1}}
            <-- {'id':1,'method':'session/new'}
            --> {'id':1,'result':{'sessionId':'new'}}
            <-- {'id':2,'method':'session/prompt','params':{'sessionId':'new'}}
            --> {'id':2,'result':{'stopReason':'refusal'}}",
        )
        .await;
        let told: Vec<String> = replayed.differences.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("- <-- session/request_permission "), "{told:?}");
        assert!(told[2].contains("result.stopReason: \"end_turn\" -> \"refusal\""), "{told:?}");
        assert_eq!(replayed.unasked, 1);
    }

    /// A peer that answers the first request, and no other.
    async fn nearly_silent(recording: &str, at_recorded_speed: bool, leaves: bool) -> (Replayed, Duration) {
        let (near, far) = duplex(4096);
        let agent = tokio::spawn(async move {
            let mut agent = RawPeer::new(far);
            agent.play("<-- {'id':0,'method':'initialize'}\n--> {'id':0,'result':{'protocolVersion':1}}").await;
            if !leaves {
                std::future::pending::<()>().await;
            }
        });
        let (reader, writer) = split(near);
        let peer = Peer { reader: Box::new(reader), writer: Box::new(writer) };
        let how = Replay { part: Side::Client, at_recorded_speed, patience: Duration::from_secs(30) };
        let begin = Instant::now();
        let replayed = replay(&Record::from_transcript(recording).unwrap(), peer, how).await;
        agent.abort();
        (replayed, begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_more_is_given_up() {
        let asked = |id: usize| {
            format!("--> {{'id':{id},'method':'session/list','params':{{}}}}\n<-- {{'id':{id},'result':{{}}}}\n")
        };
        let greeting = "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}\n<-- {'id':0,'result':{'protocolVersion':1}}\n";
        let recording: String = std::iter::once(greeting.to_owned()).chain((1..1000).map(asked)).collect();
        let (replayed, time) = nearly_silent(&recording, false, false).await;
        assert_eq!(replayed.given_up, Some(GivenUp { is_closed: false, missing: 999 }));
        assert_eq!(replayed.differences, []);
        assert!(time < Duration::from_secs(100), "{time:?}");
        let (replayed, time) = nearly_silent(&recording, false, true).await;
        assert_eq!(replayed.given_up, Some(GivenUp { is_closed: true, missing: 999 }));
        assert!(replayed.differences.is_empty() && time < Duration::from_secs(1), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_pause_of_a_recording_is_not_waited_for() {
        let recording = "
            (waited 5000 ms)
            --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
            <-- {'id':0,'result':{'protocolVersion':1}}
            (waited 36000000 ms)
            --> {'method':'_x','params':{}}";
        let (replayed, time) = nearly_silent(recording, true, false).await;
        assert_eq!((replayed.given_up, replayed.differences), (None, Vec::new()));
        assert!((60..70).contains(&time.as_secs()), "{time:?}");
    }
}
