//! What each message changes of the view of its session.

use std::collections::BTreeMap;

use attache_proto::Dialect;
use attache_proto::json::RawJson;
use attache_proto::method::{ClientRequest, Method, decode_result};
use attache_proto::model::tool::ToolCallContent;
use attache_proto::model::update::{SessionNotification, SessionUpdate};
use attache_proto::view::{Entry, SessionView};

use crate::exchange::{Body, Exchange};
use crate::record::Side;

/// A change of what there is to show of a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// The message that made it.
    pub(super) message: usize,
    /// The place in the conversation, or what is beside it.
    pub(super) place: String,
    /// What is there: `user`, `agent`, `thought`, `tool`, …
    pub(super) kind: &'static str,
    /// Its heading; empty if it has none.
    pub(super) title: String,
    /// Its text, or what is added to its text.
    pub(super) text: String,
    /// Whether the text is added to what is there.
    pub(super) is_more: bool,
}

/// How much of a place is shown at once. What comes in pieces may be longer.
const LONGEST_TEXT: usize = 8 << 10;

/// How much a session holds before it forgets its oldest entries: more than is ever recorded.
const ROOM: usize = 1 << 30;

/// The changes of all sessions of a connection, by session. `offset` is the number of messages before it.
pub(super) fn fold(exchange: &Exchange<'_>, offset: usize, changes: &mut BTreeMap<String, Vec<Change>>) {
    let mut views: BTreeMap<&str, SessionView> = BTreeMap::new();
    for (index, message) in exchange.messages.iter().enumerate() {
        let Some(session) = message.body.params()["sessionId"].as_str() else { continue };
        let view = views.entry(session).or_insert_with(|| SessionView::with_limit(ROOM));
        let changed = match (message.from, message.body.method()) {
            (Side::Agent, Some("session/update")) => updated(view, &message.body, exchange.dialect),
            (Side::Client, Some("session/prompt")) => prompted(view, &message.body, exchange.dialect),
            (Side::Client, Some("session/cancel")) => {
                view.cancel_requested();
                vec![beside("state", "cancel requested".to_owned())]
            }
            _ => continue,
        };
        let list = changes.entry(session.to_owned()).or_default();
        list.extend(changed.into_iter().map(|change| Change { message: offset + index, ..change }));
    }
    for (id, session) in &exchange.sessions {
        for turn in &session.turns {
            let (Some(ends), Some(stop)) = (turn.ends, &turn.stop) else { continue };
            let change = Change { message: offset + ends, ..beside("state", format!("idle: {stop}")) };
            changes.entry(id.clone()).or_default().push(change);
        }
    }
    changes.values_mut().for_each(|list| list.sort_by_key(|change| change.message));
}

fn beside(place: &str, text: String) -> Change {
    Change { message: 0, place: place.to_owned(), kind: "beside", title: String::new(), text, is_more: false }
}

fn prompted(view: &mut SessionView, body: &Body, dialect: Dialect) -> Vec<Change> {
    let params = body.params().to_string();
    let decoded = ClientRequest::decode(Method::Prompt, Some(&params), dialect, &mut Vec::new());
    let Some(Ok(ClientRequest::Prompt(request))) = decoded else { return Vec::new() };
    view.begin_turn();
    // An agent of version 2 repeats the prompt itself.
    if !dialect.answers_at_end() {
        return vec![beside("state", "prompted".to_owned())];
    }
    let place = view.user_prompt(&request.prompt);
    vec![at(view, place), beside("state", "running".to_owned())]
        .into_iter()
        .filter(|change| !change.place.is_empty())
        .collect()
}

fn updated(view: &mut SessionView, body: &Body, dialect: Dialect) -> Vec<Change> {
    let params = body.params().to_string();
    let Ok(notification) = decode_result::<SessionNotification>(&params, dialect, &mut Vec::new()) else {
        return Vec::new();
    };
    let update = notification.update;
    let before = view.timeline().len();
    let place = view.apply(&update);
    if let Some(place) = place {
        let piece = match &update {
            SessionUpdate::AgentMessageChunk(chunk)
            | SessionUpdate::AgentThoughtChunk(chunk)
            | SessionUpdate::UserMessageChunk(chunk) => chunk.content.as_text(),
            _ => None,
        };
        let mut change = match piece {
            // A piece of a text is added: the whole is not written down again for each.
            Some(piece) if view.timeline().len() == before => {
                let kind = view.entry(place).map_or("agent", kind);
                Change { text: piece.to_owned(), is_more: true, kind, ..beside("", String::new()) }
            }
            _ => at(view, place),
        };
        change.place = place.to_string();
        return vec![change];
    }
    let json = |value: &RawJson| cut(value.as_str());
    let shown = match &update {
        SessionUpdate::Plan(_) | SessionUpdate::PlanUpdate(_) | SessionUpdate::PlanRemoved(_) => {
            let plans: Vec<String> =
                view.plans.iter().map(|plan| json(&RawJson::encode_in(plan, Dialect::V2))).collect();
            ("plan", plans.join("\n"))
        }
        SessionUpdate::AvailableCommands(_) => {
            let commands =
                body.params()["update"]["availableCommands"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names = commands.iter().filter_map(|command| command["name"].as_str());
            ("commands", cut(&names.map(|name| format!("/{name}")).collect::<Vec<_>>().join(" ")))
        }
        SessionUpdate::CurrentMode(_) => {
            ("mode", view.current_mode.as_ref().map_or_else(String::new, ToString::to_string))
        }
        SessionUpdate::SessionInfo(_) => ("title", view.title.clone().unwrap_or_default()),
        SessionUpdate::Usage(_) => (
            "usage",
            view.usage.as_ref().map_or_else(String::new, |usage| format!("{} of {} tokens", usage.used, usage.size)),
        ),
        SessionUpdate::State(_) => ("state", body.params()["update"]["state"].as_str().unwrap_or_default().to_owned()),
        SessionUpdate::ConfigOptions(_) => ("options", cut(&body.params()["update"]["configOptions"].to_string())),
        SessionUpdate::TerminalUpdate(_) | SessionUpdate::TerminalOutputChunk(_) => {
            ("terminals", view.terminals.keys().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        }
        _ => ("other", cut(&body.params()["update"].to_string())),
    };
    vec![beside(shown.0, shown.1)]
}

/// What is at a place of the conversation.
fn at(view: &SessionView, place: usize) -> Change {
    let Some(entry) = view.entry(place) else { return beside("", String::new()) };
    let (title, text) = match entry {
        Entry::Message(message) => (String::new(), cut(&message.text())),
        Entry::ToolCall(call) => {
            let content: Vec<String> = call.content.iter().map(content).collect();
            (format!("{} ({}, {})", call.title, call.kind, call.status), cut(&content.join("\n")))
        }
        Entry::Notice(notice) => (String::new(), cut(RawJson::encode_in(notice, Dialect::V2).as_str())),
        Entry::Compaction(compaction) => (String::new(), cut(RawJson::encode_in(compaction, Dialect::V2).as_str())),
        Entry::PeerMessage(message) => (String::new(), cut(RawJson::encode_in(&**message, Dialect::V2).as_str())),
        _ => (String::new(), String::new()),
    };
    Change { place: place.to_string(), kind: kind(entry), title: cut(&title), text, ..beside("", String::new()) }
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Message(message) => message.role.as_str(),
        Entry::ToolCall(_) => "tool",
        Entry::Notice(_) => "notice",
        Entry::Compaction(_) => "compaction",
        _ => "other",
    }
}

/// What a tool call produced, in text.
fn content(content: &ToolCallContent) -> String {
    match content {
        ToolCallContent::Content(block) => match block.content.as_text() {
            Some(text) => text.to_owned(),
            None => RawJson::encode_in(&block.content, Dialect::V2).as_str().to_owned(),
        },
        other => RawJson::encode_in(other, Dialect::V2).as_str().to_owned(),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let end = (0..=LONGEST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}
