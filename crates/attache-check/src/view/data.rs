//! What the page is given: columns of all messages, pairs, turns, findings, changes of views, and sums.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::OwnTexts;
use super::fold::{Change, Room, fold};
use crate::exchange::{Body, Exchange};
use crate::judge::{Choice, judge};
use crate::record::{Event, Record, Side};
use crate::trace::label_of;

/// How many bytes of messages a page has, at most. Where there are more, messages are cut, all at the same length.
const MOST_TEXT: usize = 32 << 20;

/// A message is never cut to less than this.
const LEAST_TEXT: usize = 160;

/// How many bytes of a message are shown, whatever room there is.
const LONGEST_TEXT: usize = 64 << 10;

/// How much of a name is shown: of a method, a session, a tool call.
const LONGEST_NAME: usize = 200;

/// Columns, an entry for each message.
#[derive(Default)]
struct Columns<'r> {
    time: Vec<u64>,
    /// 0 client, 1 agent, 2 neither.
    from: Vec<u8>,
    /// 0 request, 1 notification, 2 answer, 3 error, 4 no message, 5 something beside the conversation.
    kind: Vec<u8>,
    label: Vec<usize>,
    session: Vec<usize>,
    tool: Vec<usize>,
    /// The request of an answer and the answer to a request, plus one.
    peer: Vec<usize>,
    /// Milliseconds from a request to its answer, plus one, at both.
    latency: Vec<u64>,
    bytes: Vec<usize>,
    text: Vec<Cow<'r, str>>,
}

/// Texts that come often, by their number. The empty one is 0.
struct Table(Vec<String>, BTreeMap<String, usize>);

impl Table {
    fn new() -> Self {
        Table(vec![String::new()], BTreeMap::from([(String::new(), 0)]))
    }

    fn number(&mut self, text: &str) -> usize {
        if text.len() > LONGEST_NAME {
            return self.number(&cut(text, LONGEST_NAME - '…'.len_utf8()));
        }
        if let Some(number) = self.1.get(text) {
            return *number;
        }
        self.0.push(text.to_owned());
        self.1.insert(text.to_owned(), self.0.len() - 1);
        self.0.len() - 1
    }
}

/// What the page is given.
pub(super) fn data(name: &str, record: &Record) -> Value {
    let mut columns = Columns::default();
    let (mut labels, mut sessions, mut tools) = (Table::new(), Table::new(), Table::new());
    let mut turns = Vec::new();
    let mut changes: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    let mut room = Room::default();
    // The row of each entry, for findings.
    let mut row_of_entry: BTreeMap<usize, usize> = BTreeMap::new();
    let mut dialects = Vec::new();
    for (start, entries) in record.connections() {
        let exchange = Exchange::new(entries);
        dialects.push(exchange.dialect.to_string());
        // Rows are the messages, and what happened beside them.
        let mut texts = OwnTexts::default();
        let mut messages = exchange.messages.iter().enumerate().peekable();
        let mut row_of_message = vec![0; exchange.messages.len()];
        for (index, entry) in entries.iter().enumerate() {
            let at = u64::try_from(entry.at.as_millis()).unwrap_or(u64::MAX);
            let mut is_message = false;
            while let Some((number, message)) = messages.next_if(|(_, message)| message.entry == index) {
                is_message = true;
                row_of_message[number] = columns.time.len();
                row_of_entry.entry(start + index).or_insert(columns.time.len());
                let params = message.body.params();
                columns.time.push(at);
                columns.from.push(u8::from(message.from == Side::Agent));
                columns.kind.push(kind(&message.body));
                columns.label.push(labels.number(&label_of(&exchange, number, message)));
                columns.session.push(sessions.number(params["sessionId"].as_str().unwrap_or_default()));
                let tool = [
                    &params["update"]["toolCallId"],
                    &params["toolCall"]["toolCallId"],
                    &params["subject"]["toolCall"]["toolCallId"],
                    &params["toolCallId"],
                ];
                columns.tool.push(tools.number(tool.iter().find_map(|id| id.as_str()).unwrap_or_default()));
                columns.peer.push(0);
                columns.latency.push(0);
                let text = texts.of(message);
                columns.bytes.push(text.len());
                columns.text.push(text.into());
            }
            if let (false, Some(text)) = (is_message, beside(&entry.event)) {
                columns.time.push(at);
                columns.from.push(2);
                columns.kind.push(5);
                columns.label.push(labels.number(&cut(&text, 80)));
                columns.session.push(0);
                columns.tool.push(0);
                columns.peer.push(0);
                columns.latency.push(0);
                columns.bytes.push(text.len());
                columns.text.push(text.into());
            }
        }
        for call in &exchange.calls {
            let asked = row_of_message[call.at];
            // The answer to `session/new` names the session that it opens.
            let opened = call.result().and_then(|result| result["sessionId"].as_str());
            let session = call.session().or(opened).map_or(0, |session| sessions.number(session));
            for answer in &call.answers {
                let answered = row_of_message[answer.at];
                let latency = columns.time[answered].saturating_sub(columns.time[asked]) + 1;
                (columns.peer[answered], columns.latency[answered], columns.session[answered]) =
                    (asked + 1, latency, session);
                if columns.peer[asked] == 0 {
                    (columns.peer[asked], columns.latency[asked]) = (answered + 1, latency);
                }
            }
        }
        for (id, session) in &exchange.sessions {
            let number = sessions.number(id);
            turns.extend(session.turns.iter().map(|turn| {
                let row = |message: usize| row_of_message[message];
                json!([number, row(turn.begins), turn.ends.map(row), turn.stop, turn.cancelled.map(row)])
            }));
        }
        let mut folded = BTreeMap::new();
        fold(&exchange, &mut folded, &mut room);
        for (session, list) in folded {
            let rows = list.into_iter().map(|change| Change { message: row_of_message[change.message], ..change });
            changes.entry(session).or_default().extend(rows);
        }
    }
    let statistics = statistics(&columns, &labels);
    let views = views(changes, &mut sessions);
    let total: usize = columns.text.iter().map(|text| text.len().min(LONGEST_TEXT)).sum();
    let room_for_each = MOST_TEXT / columns.text.len().max(1);
    let longest = if total <= MOST_TEXT { LONGEST_TEXT } else { room_for_each.clamp(LEAST_TEXT, LONGEST_TEXT) };
    let texts: Vec<String> = columns.text.iter().map(|text| cut(text, longest)).collect();
    json!({
        "name": name,
        "started": record.started.map(attache::trace::rfc3339),
        "dialects": dialects,
        "isCut": longest < LONGEST_TEXT,
        "time": columns.time,
        "from": columns.from,
        "kind": columns.kind,
        "label": columns.label,
        "session": columns.session,
        "tool": columns.tool,
        "peer": columns.peer,
        "latency": columns.latency,
        "bytes": columns.bytes,
        "text": texts,
        "labels": labels.0,
        "sessions": sessions.0,
        "tools": tools.0,
        "turns": turns,
        "views": views,
        "viewsAreCut": room.is_full(),
        "findings": findings(record, &row_of_entry),
        "statistics": statistics,
    })
}

fn kind(body: &Body) -> u8 {
    match body {
        Body::Request { .. } => 0,
        Body::Notification { .. } => 1,
        Body::Response { outcome: Ok(_), .. } => 2,
        Body::Response { outcome: Err(_), .. } => 3,
        Body::Invalid { .. } | Body::EmptyBatch | Body::NotJson | Body::Junk => 4,
    }
}

/// What happened beside the conversation, in words.
pub(super) fn beside(event: &Event) -> Option<String> {
    Some(match event {
        Event::Stderr { text } => format!("stderr: {text}"),
        Event::Closed { from } => format!("closed by {}", if *from == Side::Client { "client" } else { "agent" }),
        Event::Exited { code: Some(code) } => format!("agent exited with status {code}"),
        Event::Exited { code: None } => "agent was ended by a signal".to_owned(),
        Event::Waited { time } => format!("nothing came for {} ms", time.as_millis()),
        Event::Restarted => "a new connection".to_owned(),
        Event::Continued => "the file was rotated: what came before is not in it".to_owned(),
        Event::Note { text } => text.clone(),
        Event::Frame { .. } | Event::Junk { .. } => return None,
    })
}

/// The changes of the views, by session: `[row, place, kind, title, text, is more]`.
fn views(changes: BTreeMap<String, Vec<Change>>, sessions: &mut Table) -> Value {
    let mut views = serde_json::Map::new();
    for (session, list) in changes {
        let rows: Vec<Value> = list
            .into_iter()
            .map(|change| {
                json!([change.message, change.place, change.kind, change.title, change.text, u8::from(change.is_more)])
            })
            .collect();
        views.insert(sessions.number(&session).to_string(), rows.into());
    }
    views.into()
}

/// What both sides did wrong: `[rows, side, rule, level, statement, seen]`. The last row is the message that breaks the rule.
fn findings(record: &Record, row_of_entry: &BTreeMap<usize, usize>) -> Vec<Value> {
    let judged = |side: Side| {
        judge(record, side, &Choice::default()).into_iter().flat_map(move |judged| {
            let (rule, findings) = (judged.rule, judged.findings);
            findings.into_iter().map(move |finding| (side, rule, finding))
        })
    };
    let all = [Side::Client, Side::Agent].into_iter().flat_map(judged);
    all.map(|(side, rule, finding)| {
        let rows: Vec<usize> = finding.entries.iter().filter_map(|entry| row_of_entry.get(entry).copied()).collect();
        json!([rows, u8::from(side == Side::Agent), rule.id, rule.level.as_str(), rule.statement, finding.seen])
    })
    .collect()
}

/// For each label: how many, how many bytes, and the latencies of its answers: median, the slowest hundredth, the slowest.
fn statistics(columns: &Columns<'_>, labels: &Table) -> Vec<Value> {
    let mut sums: BTreeMap<(u8, usize), (usize, usize, Vec<u64>)> = BTreeMap::new();
    for row in 0..columns.time.len() {
        let sum = sums.entry((columns.from[row], columns.label[row])).or_default();
        sum.0 += 1;
        sum.1 += columns.bytes[row];
        if columns.kind[row] == 0 && columns.latency[row] > 0 {
            sum.2.push(columns.latency[row] - 1);
        }
    }
    let row = |((from, label), (count, bytes, mut latencies)): ((u8, usize), (usize, usize, Vec<u64>))| {
        latencies.sort_unstable();
        let at =
            |part: usize| latencies.get((latencies.len() * part / 100).min(latencies.len().saturating_sub(1))).copied();
        json!([from, labels.0[label], count, bytes, at(50), at(99), at(100)])
    };
    sums.into_iter().filter(|((from, _), _)| *from < 2).map(row).collect()
}

fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}
