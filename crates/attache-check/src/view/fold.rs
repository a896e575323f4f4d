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

/// How much of a place is shown at once.
const LONGEST_TEXT: usize = 8 << 10;

/// The same of what comes in pieces, which are shown as they come.
const LONGEST_PIECES: usize = 256 << 10;

/// How much the changes of all sessions may take together, and how many there may be. What comes later is not shown.
const MOST_BYTES: usize = 24 << 20;
const MOST_CHANGES: usize = 400_000;

/// What there is room for on a page.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    changes: usize,
    is_full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Room::new(MOST_BYTES, MOST_CHANGES)
    }
}

impl Room {
    /// Room for so many bytes, in so many changes.
    pub(super) fn new(bytes: usize, changes: usize) -> Self {
        Room { bytes, changes, is_full: false }
    }

    /// Whether there is room for a change.
    fn take(&mut self, change: &Change) -> bool {
        let size = change.place.len() + change.title.len() + change.text.len();
        match (self.bytes.checked_sub(size), self.changes.checked_sub(1)) {
            (Some(bytes), Some(changes)) if !self.is_full => (self.bytes, self.changes) = (bytes, changes),
            // What comes after a gap would be shown without what it changes.
            _ => self.is_full = true,
        }
        !self.is_full
    }

    /// Whether something found no room.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}

/// How much a session holds before it forgets its oldest entries: more than is ever recorded.
const ROOM: usize = 1 << 30;

/// A session as it is folded.
struct Folded {
    view: SessionView,
    /// The terminals that were told of: their names are only ever added.
    terminals: usize,
    /// How much has been added to a place in pieces.
    added: BTreeMap<usize, usize>,
}

impl Folded {
    fn new() -> Self {
        Folded { view: SessionView::with_limit(ROOM), terminals: 0, added: BTreeMap::new() }
    }
}

/// The changes of all sessions of a connection, by session, as far as there is room.
pub(super) fn fold(exchange: &Exchange<'_>, changes: &mut BTreeMap<String, Vec<Change>>, room: &mut Room) {
    let mut sessions: BTreeMap<&str, Folded> = BTreeMap::new();
    let mut stops: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
    for (id, session) in &exchange.sessions {
        for turn in &session.turns {
            let (Some(ends), Some(stop)) = (turn.ends, &turn.stop) else { continue };
            stops.entry(ends).or_default().push((id, stop));
        }
    }
    let mut add = |session: &str, message: usize, change: Change| {
        let change = Change { message, ..change };
        if room.take(&change) {
            changes.entry(session.to_owned()).or_default().push(change);
        }
        !room.is_full()
    };
    for (index, message) in exchange.messages.iter().enumerate() {
        let mut changed = Vec::new();
        if let Some(session) = message.body.params()["sessionId"].as_str() {
            let folded = sessions.entry(session).or_insert_with(Folded::new);
            let new = match (message.from, message.body.method()) {
                (Side::Agent, Some("session/update")) => updated(folded, &message.body, exchange.dialect),
                (Side::Client, Some("session/prompt")) => prompted(&mut folded.view, &message.body, exchange.dialect),
                (Side::Client, Some("session/cancel")) => {
                    folded.view.cancel_requested();
                    vec![beside("state", "cancel requested".to_owned())]
                }
                _ => Vec::new(),
            };
            changed.extend(new.into_iter().map(|change| (session, change)));
        }
        let stopped = stops.remove(&index).unwrap_or_default().into_iter();
        changed.extend(stopped.map(|(session, stop)| (session, beside("state", cut(&format!("idle: {stop}"))))));
        if !changed.into_iter().all(|(session, change)| add(session, index, change)) {
            return;
        }
    }
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

fn updated(folded: &mut Folded, body: &Body, dialect: Dialect) -> Vec<Change> {
    let params = body.params().to_string();
    let Ok(notification) = decode_result::<SessionNotification>(&params, dialect, &mut Vec::new()) else {
        return Vec::new();
    };
    let update = notification.update;
    let view = &mut folded.view;
    let before = view.timeline().len();
    let had_content = match &update {
        SessionUpdate::ToolCallContentChunk(chunk) => {
            view.tool_call(&chunk.tool_call_id).is_some_and(|call| !call.content.is_empty())
        }
        _ => false,
    };
    let place = view.apply(&update);
    if let Some(place) = place {
        // A piece is added: the whole is not written down again for each.
        let piece = match &update {
            _ if view.timeline().len() > before => None,
            SessionUpdate::AgentMessageChunk(chunk)
            | SessionUpdate::AgentThoughtChunk(chunk)
            | SessionUpdate::UserMessageChunk(chunk) => Some(match chunk.content.as_text() {
                Some(text) => text.to_owned(),
                None => format!("\n{}\n", cut(RawJson::encode_in(&chunk.content, Dialect::V2).as_str())),
            }),
            SessionUpdate::ToolCallContentChunk(chunk) if had_content => {
                Some(format!("\n{}", content(&chunk.content, LONGEST_TEXT)))
            }
            _ => None,
        };
        let added = folded.added.entry(place).or_default();
        let change = match piece {
            Some(_) if *added > LONGEST_PIECES => return Vec::new(),
            Some(mut piece) => {
                *added += piece.len();
                if *added > LONGEST_PIECES {
                    piece.push('…');
                }
                let kind = view.entry(place).map_or("agent", kind);
                Change { text: piece, is_more: true, kind, ..beside("", String::new()) }
            }
            None => {
                *added = 0;
                at(view, place)
            }
        };
        return vec![Change { place: place.to_string(), ..change }];
    }
    let json = |value: &RawJson| cut(value.as_str());
    let params = body.params();
    let shown = match &update {
        SessionUpdate::Plan(_) => match view.plans.first() {
            Some(plan) => ("plan", json(&RawJson::encode_in(plan, Dialect::V2))),
            None => return Vec::new(),
        },
        // Each plan has a place of its own, so that none is written down again for another.
        SessionUpdate::PlanUpdate(update) => {
            let name = update.plan.plan_id().map_or_else(String::new, |id| format!(" {id}"));
            return vec![beside(&cut(&format!("plan{name}")), json(&RawJson::encode_in(&update.plan, Dialect::V2)))];
        }
        SessionUpdate::PlanRemoved(removed) => {
            return vec![beside(&cut(&format!("plan {}", removed.plan_id)), "removed".to_owned())];
        }
        SessionUpdate::AvailableCommands(_) => {
            let commands = params["update"]["availableCommands"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names = commands.iter().filter_map(|command| command["name"].as_str());
            ("commands", cut(&names.map(|name| format!("/{name}")).collect::<Vec<_>>().join(" ")))
        }
        SessionUpdate::CurrentMode(_) => {
            ("mode", view.current_mode.as_ref().map_or_else(String::new, |mode| cut(&mode.to_string())))
        }
        SessionUpdate::SessionInfo(_) => ("title", cut(view.title.as_deref().unwrap_or_default())),
        SessionUpdate::Usage(_) => (
            "usage",
            view.usage.as_ref().map_or_else(String::new, |usage| format!("{} of {} tokens", usage.used, usage.size)),
        ),
        SessionUpdate::State(_) => ("state", cut(params["update"]["state"].as_str().unwrap_or_default())),
        SessionUpdate::ConfigOptions(_) => ("options", cut(&params["update"]["configOptions"].to_string())),
        SessionUpdate::TerminalUpdate(_) | SessionUpdate::TerminalOutputChunk(_) => {
            let count = view.terminals.len();
            if std::mem::replace(&mut folded.terminals, count) >= count {
                return Vec::new();
            }
            let id = cut(params["update"]["terminalId"].as_str().unwrap_or_default());
            return vec![Change { is_more: count > 1, ..beside("terminals", format!("{id} ")) }];
        }
        _ => ("other", cut(&params["update"].to_string())),
    };
    vec![beside(shown.0, shown.1)]
}

/// What is at a place of the conversation.
fn at(view: &SessionView, place: usize) -> Change {
    let Some(entry) = view.entry(place) else { return beside("", String::new()) };
    let (title, text) = match entry {
        Entry::Message(message) => (String::new(), cut(&message.text())),
        Entry::ToolCall(call) => {
            let mut text = String::new();
            for (index, part) in call.content.iter().enumerate() {
                if text.len() > LONGEST_TEXT {
                    break;
                }
                text.push_str(if index > 0 { "\n" } else { "" });
                text.push_str(&content(part, LONGEST_TEXT + 1));
            }
            (format!("{} ({}, {})", cut(&call.title), call.kind, call.status), cut(&text))
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

/// What a tool call produced, in text, as far as it is shown.
fn content(content: &ToolCallContent, longest: usize) -> String {
    let start = |text: &str| text[..text.floor_char_boundary(longest)].to_owned();
    match content {
        ToolCallContent::Content(block) => match block.content.as_text() {
            Some(text) => start(text),
            None => start(RawJson::encode_in(&block.content, Dialect::V2).as_str()),
        },
        other => start(RawJson::encode_in(other, Dialect::V2).as_str()),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", &text[..text.floor_char_boundary(LONGEST_TEXT)], text.len())
}
