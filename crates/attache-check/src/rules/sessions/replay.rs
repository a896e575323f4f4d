//! Replays: what the agent tells of a conversation when its session is loaded or resumed.

use std::collections::{HashMap, HashSet};

use attache_proto::Dialect;
use attache_proto::method::decode_result;
use attache_proto::model::update::SessionNotification;
use attache_proto::view::{Entry, MessageRole, SessionView};
use serde_json::Value;

use crate::exchange::{Call, Exchange, MessageIndex, Session, Turn};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

const INVALID_PARAMS: i32 = -32602;

/// A conversation as far as it can be compared: texts without white space, in order.
#[derive(Default)]
struct Conversation {
    user: Vec<String>,
    agent: Vec<String>,
    tool_calls: Vec<String>,
    message_ids: HashSet<String>,
    /// Whether there is more of it than was kept.
    is_cut: bool,
}

impl Conversation {
    fn is_empty(&self) -> bool {
        self.user.is_empty() && self.agent.is_empty() && self.tool_calls.is_empty()
    }

    fn add_view(&mut self, view: &SessionView, with_user: bool) {
        self.is_cut |= view.omitted > 0;
        for entry in view.timeline() {
            match entry {
                Entry::Message(message) => {
                    self.message_ids.extend(message.id.iter().map(|id| id.as_str().to_owned()));
                    let text = squeezed(&message.text());
                    match message.role {
                        MessageRole::User if with_user => self.user.push(text),
                        MessageRole::Agent => self.agent.push(text),
                        _ => {}
                    }
                }
                Entry::ToolCall(call) => self.tool_calls.push(call.id.as_str().to_owned()),
                _ => {}
            }
        }
    }
}

/// A text without white space: agents may trim, and join pieces with line breaks.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn is_replaying(call: &Call) -> bool {
    match call.method.as_str() {
        "session/load" => true,
        "session/resume" => !call.params["replayFrom"].is_null(),
        _ => false,
    }
}

/// The requests that open a session that was there before, with success: with the session and where they were answered.
fn reopenings<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, &'a str, MessageIndex)> {
    let calls =
        trial.calls_of(Side::Client).filter(|call| matches!(call.method.as_str(), "session/load" | "session/resume"));
    calls.filter(|call| call.result().is_some()).filter_map(|call| Some((call, call.session()?, call.answered_at()?)))
}

/// The conversations that were seen live, each up to a message that is never before the last one that was asked for. Turns that did not end
/// well may be kept by an agent or not, so they are left out, and so is what stands before a compaction or a command, which may have changed
/// the history.
struct Lives<'a> {
    trial: &'a Trial<'a>,
    /// Each with the turns that are still to come, the last first.
    of: HashMap<&'a str, (Vec<&'a Turn>, Conversation)>,
}

impl<'a> Lives<'a> {
    fn new(trial: &'a Trial<'_>) -> Self {
        Lives { trial, of: HashMap::new() }
    }

    /// The conversation of a session before a message.
    fn until(&mut self, id: &'a str, until: MessageIndex) -> &Conversation {
        let here = self.trial.sessions.get(id);
        let (coming, lived) = self.of.entry(id).or_insert_with(|| {
            let mut lived = Conversation::default();
            for exchange in self.trial.before.of_session(id) {
                let Some(session) = exchange.sessions.get(id) else { continue };
                session.turns.iter().for_each(|turn| live_through(exchange, session, turn, &mut lived));
            }
            let turns = here.into_iter().flat_map(|session| &session.turns);
            let mut coming: Vec<&Turn> = turns.filter(|turn| turn.ends.is_some()).collect();
            coming.sort_by_key(|turn| std::cmp::Reverse(turn.ends));
            (coming, lived)
        });
        let Some(session) = here else { return lived };
        while let Some(turn) = coming.pop_if(|turn| turn.ends.is_some_and(|ends| ends < until)) {
            live_through(self.trial.exchange, session, turn, lived);
        }
        lived
    }
}

fn live_through(exchange: &Exchange<'_>, session: &Session, turn: &Turn, lived: &mut Conversation) {
    let ended_well = matches!(turn.stop.as_deref(), Some("end_turn"));
    let prompt = exchange.calls[turn.call].params["prompt"].as_array();
    let texts: Vec<&str> = prompt.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
    let (Some(ends), true) = (turn.ends, ended_well) else { return };
    let start = session.updates.partition_point(|at| *at < turn.begins);
    let updates: Vec<MessageIndex> = session.updates[start..].iter().copied().take_while(|at| *at <= ends).collect();
    let kind = |at: &MessageIndex| exchange.messages[*at].body.params()["update"]["sessionUpdate"].as_str();
    let is_compacted = updates.iter().filter_map(kind).any(|kind| kind.starts_with("compaction"));
    if is_compacted || texts.iter().any(|text| text.trim_start().starts_with('/')) {
        *lived = Conversation { is_cut: lived.is_cut, ..Conversation::default() };
        return;
    }
    lived.user.extend(texts.into_iter().map(squeezed));
    lived.add_view(&folded(exchange, updates), false);
}

fn folded(exchange: &Exchange<'_>, updates: impl IntoIterator<Item = MessageIndex>) -> SessionView {
    let mut view = SessionView::new();
    for at in updates {
        let params = exchange.messages[at].body.params().to_string();
        if let Ok(notification) = decode_result::<SessionNotification>(&params, exchange.dialect, &mut Vec::new()) {
            view.apply(&notification.update);
        }
    }
    view
}

/// The updates of a session between two messages.
fn updates_between<'a>(
    trial: &'a Trial<'_>,
    id: &str,
    from: MessageIndex,
    to: MessageIndex,
) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
    let updates = trial.sessions.get(id).map_or(&[][..], |session| &session.updates);
    let start = updates.partition_point(|at| *at < from);
    let updates = updates[start..].iter().take_while(move |at| **at < to);
    updates.map(|at| {
        let update = &trial.exchange.messages[*at].body.params()["update"];
        (*at, update["sessionUpdate"].as_str().unwrap_or(""), update)
    })
}

pub(super) fn matches(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut lives = Lives::new(trial);
    for (call, id, answered) in reopenings(trial).filter(|(call, ..)| is_replaying(call)) {
        let lived = lives.until(id, call.at);
        if lived.is_empty() || lived.is_cut {
            continue;
        }
        let mut replay = Conversation::default();
        let updates = updates_between(trial, id, call.at, answered).map(|(at, ..)| at);
        replay.add_view(&folded(trial.exchange, updates), true);
        if replay.is_cut {
            continue;
        }
        match missing(lived, &replay) {
            None => verdict.kept(),
            Some(seen) => verdict.broken_by(vec![call.at, answered], seen),
        }
    }
}

fn missing(lived: &Conversation, replay: &Conversation) -> Option<String> {
    let user =
        first_missing(&lived.user, &replay.user).map(|text| format!("what the user said is missing: {}", shown(text)));
    let agent = || {
        first_missing(&lived.agent, &replay.agent)
            .map(|text| format!("what the agent said is missing: {}", shown(text)))
    };
    let tool_calls = || {
        // They may have other ids now, which is no matter as long as all are there.
        let is_there = replay.tool_calls.len() >= lived.tool_calls.len();
        let replayed: HashSet<&String> = replay.tool_calls.iter().collect();
        let missing = lived.tool_calls.iter().find(|id| !is_there && !replayed.contains(id));
        missing.map(|id| format!("the tool call {} is missing", shown(id)))
    };
    user.or_else(agent).or_else(tool_calls)
}

/// The first text that is not in the replay, or not in its place. How an agent cuts its texts into messages is its own affair.
fn first_missing<'a>(lived: &'a [String], replay: &[String]) -> Option<&'a str> {
    let replay = replay.concat();
    let mut from = 0;
    for text in lived {
        match replay[from..].find(text.as_str()) {
            Some(place) => from += place + text.len(),
            None => return Some(text),
        }
    }
    None
}

fn is_message(kind: &str) -> bool {
    matches!(
        kind,
        "user_message"
            | "user_message_chunk"
            | "agent_message"
            | "agent_message_chunk"
            | "agent_thought"
            | "agent_thought_chunk"
    )
}

/// The first message after a reopening that the client caused: its next prompt for the session, or its next opening.
fn next_word(trial: &Trial<'_>, id: &str, after: MessageIndex) -> MessageIndex {
    let Some(session) = trial.sessions.get(id) else { return usize::MAX };
    let turn = session.turns.get(session.turns.partition_point(|turn| turn.begins <= after)).map(|turn| turn.begins);
    let at = |call: &usize| trial.calls[*call].at;
    let opening = session.openings.get(session.openings.partition_point(|call| at(call) <= after)).map(at);
    turn.unwrap_or(usize::MAX).min(opening.unwrap_or(usize::MAX))
}

/// Whether an update tells something of a conversation that was there before.
fn is_history(update: &Value, kind: &str, lived: &Conversation) -> bool {
    if let Some(id) = update["messageId"].as_str().filter(|_| is_message(kind)) {
        return lived.message_ids.contains(id) && !update["content"].is_null();
    }
    match kind {
        "agent_message_chunk" => {
            const LONG_ENOUGH: usize = 8;
            let text = squeezed(update["content"]["text"].as_str().unwrap_or(""));
            text.len() >= LONG_ENOUGH && lived.agent.iter().any(|said| said.contains(&text))
        }
        "tool_call" => lived.tool_calls.iter().any(|id| update["toolCallId"] == id.as_str()),
        _ => false,
    }
}

pub(super) fn then_answer(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut lives = Lives::new(trial);
    for (call, id, answered) in reopenings(trial).filter(|(call, ..)| is_replaying(call)) {
        let lived = lives.until(id, call.at);
        // What was replayed may be changed later.
        let replayed: HashSet<&str> = updates_between(trial, id, call.at, answered)
            .filter_map(|(_, _, update)| update["messageId"].as_str())
            .collect();
        let is_replayed = |update: &Value| update["messageId"].as_str().is_some_and(|id| replayed.contains(id));
        let until = next_word(trial, id, answered);
        let is_old = trial.dialect != Dialect::V2;
        let mut late = updates_between(trial, id, answered, until).filter(|(_, kind, update)| {
            (is_old && matches!(*kind, "user_message" | "user_message_chunk"))
                || !is_replayed(update) && is_history(update, kind, lived)
        });
        match late.next() {
            Some((at, kind, _)) => {
                verdict.broken_by(vec![answered, at], format!("a {} of the replay after the answer", shown(kind)))
            }
            None => verdict.kept(),
        }
    }
}

pub(super) fn resume_is_silent(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut lives = Lives::new(trial);
    for (call, id, answered) in reopenings(trial).filter(|(call, ..)| !is_replaying(call)) {
        // What a session does that was open all the time is no replay.
        let session = trial.sessions.get(id);
        if session.is_some_and(|session| session.turn_at(call.at).is_some()) {
            continue;
        }
        let lived = lives.until(id, call.at);
        let until = next_word(trial, id, call.at);
        let is_v2 = trial.dialect == Dialect::V2;
        let mut told = updates_between(trial, id, call.at, until).filter(|(at, kind, update)| {
            let is_early = *at < answered;
            let of_user = matches!(*kind, "user_message" | "user_message_chunk");
            let is_told = if is_v2 { of_user } else { is_message(kind) || *kind == "tool_call" };
            (is_early && is_told) || is_history(update, kind, lived)
        });
        match told.next() {
            Some((at, kind, _)) => {
                verdict.broken_by(vec![call.at, at], format!("a {} of the conversation so far", shown(kind)))
            }
            None => verdict.kept(),
        }
    }
}

pub(super) fn unknown_cursor(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_to("session/resume").filter(|call| call.from == Side::Client) {
        let kind = call.params["replayFrom"]["type"].as_str();
        let (Some(kind), Some(at)) =
            (kind.filter(|kind| *kind != "start" && !kind.starts_with('_')), call.answered_at())
        else {
            continue;
        };
        match call.error().map(|error| error.code) {
            Some(INVALID_PARAMS) => verdict.kept(),
            _ if walk::is_unrelated_refusal(trial.exchange, call) => {}
            Some(code) => verdict.broken(at, format!("error {code} for `replayFrom` {}", shown(kind))),
            None => verdict.broken(at, format!("a result for `replayFrom` {}", shown(kind))),
        }
    }
}
