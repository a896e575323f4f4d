//! Ways through an exchange that the rules of several areas share.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::{Body, Call, Exchange, MessageIndex};
use crate::record::Side;

/// Whether a path is absolute, as POSIX or as Windows has it: we do not know where the peer runs.
pub(super) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with("\\\\") || has_drive
}

/// Whether a value is one of those that the dialect has. Version 2 leaves room for others, which begin with `_`.
pub(super) fn is_known(value: &str, known: &[&str], dialect: Dialect) -> bool {
    known.contains(&value) || (dialect != Dialect::V1 && value.starts_with('_'))
}

/// The elements of an array; nothing if it is none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The first text that occurs twice.
pub(super) fn repeated<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    texts.into_iter().find(|text| !seen.insert(*text))
}

/// The sessions that a connection speaks of as existing: those that were opened, and those that were listed.
pub(super) fn known_sessions<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = &'a str> {
    let opened = exchange.sessions.keys().map(String::as_str);
    let listed = exchange.calls_to("session/list").filter_map(|call| call.result()?["sessions"].as_array());
    opened.chain(listed.flatten().filter_map(|session| session["sessionId"].as_str()))
}

/// The sessions that were made on a connection, each with its request and the directory that was asked for.
pub(super) fn made_sessions<'a>(
    exchange: &'a Exchange<'_>,
) -> impl Iterator<Item = (&'a Call, &'a str, Option<&'a str>)> {
    let made =
        exchange.calls_of(Side::Client).filter(|call| matches!(call.method.as_str(), "session/new" | "session/fork"));
    made.filter_map(|call| Some((call, call.result()?["sessionId"].as_str()?, call.params["cwd"].as_str())))
}

/// Whether a request was refused for something that has nothing to do with what is asked for in it: nobody is logged in, the connection is
/// not agreed, there is no such session to be taken up, or no such method.
pub(super) fn is_unrelated_refusal(exchange: &Exchange<'_>, call: &Call) -> bool {
    let is_agreed = exchange.agreed_at().is_some_and(|agreed| agreed < call.at);
    let takes_up = matches!(call.method.as_str(), "session/load" | "session/resume" | "session/fork");
    match call.error().map(|error| error.code) {
        Some(-32000 | -32601) => true,
        Some(-32600) => !is_agreed,
        Some(-32002) => takes_up,
        _ => false,
    }
}

/// How often a session was opened before a message. What is known of a session's parts is forgotten when it is opened again:
/// its history may be sent once more.
pub(super) fn opening(exchange: &Exchange<'_>, session: &str, message: MessageIndex) -> usize {
    let openings = exchange.sessions.get(session).map_or(&[][..], |session| &session.openings);
    openings.partition_point(|call| exchange.calls[*call].at < message)
}

/// Whether all of a session's history was sent on this connection: it was new, or its history was asked for.
pub(super) fn is_whole(exchange: &Exchange<'_>, session: &str, message: MessageIndex) -> bool {
    let count = opening(exchange, session, message);
    let Some(last) = count
        .checked_sub(1)
        .and_then(|last| exchange.sessions.get(session)?.openings.get(last))
        .map(|call| &exchange.calls[*call])
    else {
        return false;
    };
    match last.method.as_str() {
        "session/new" | "session/load" => true,
        "session/resume" => last.params["replayFrom"].is_object(),
        _ => false,
    }
}

/// Whether a message was sent while a session was being opened again, so that it may be history.
pub(super) fn is_replay(exchange: &Exchange<'_>, session: &str, message: MessageIndex) -> bool {
    let Some(last) = opening(exchange, session, message).checked_sub(1) else { return false };
    let call = exchange.sessions.get(session).and_then(|session| session.openings.get(last));
    call.map(|call| &exchange.calls[*call]).is_some_and(|call| call.method != "session/new" && call.is_open_at(message))
}

/// Work that may be going on and is not over by itself.
pub(super) struct OpenWork<'a> {
    /// Where each session last told of a tool call that is not finished.
    tool_calls: HashMap<&'a str, MessageIndex>,
    /// The last question to the client that has no answer.
    question: Option<MessageIndex>,
}

impl<'a> OpenWork<'a> {
    pub(super) fn of(exchange: &'a Exchange<'_>) -> Self {
        let mut unfinished: HashMap<(&str, &str), MessageIndex> = HashMap::new();
        for (at, session, update) in exchange.updates() {
            let Some(id) = update["toolCallId"].as_str() else { continue };
            match update["status"].as_str() {
                Some("completed" | "failed" | "cancelled") => unfinished.remove(&(session, id)),
                _ => unfinished.insert((session, id), at),
            };
        }
        let mut tool_calls = HashMap::new();
        for ((session, _), at) in unfinished {
            let last = tool_calls.entry(session).or_insert(at);
            *last = at.max(*last);
        }
        let questions = exchange.calls_of(Side::Agent).filter(|call| call.answers.is_empty());
        OpenWork { tool_calls, question: questions.map(|call| call.at).max() }
    }

    /// Whether such work of a session began, or was told of, after a message: a tool call, or a question to the client.
    pub(super) fn is_there(&self, session: &str, since: MessageIndex) -> bool {
        self.tool_calls.get(session).copied().max(self.question).is_some_and(|at| at > since)
    }
}

/// For how long the end of a prompt's turn was waited for, if it did not come although nothing held it up. Turns that were cancelled, and
/// those of sessions that were closed, have rules of their own.
pub(super) fn gave_up_on(exchange: &Exchange<'_>, prompt: &Call, work: &OpenWork<'_>) -> Option<Duration> {
    let id = prompt.session().filter(|_| prompt.method == "session/prompt" && prompt.from == Side::Client)?;
    let session = exchange.sessions.get(id)?;
    let is_stopped = session.cancels.last().is_some_and(|at| *at > prompt.at) || session.closed_at.is_some();
    let is_held_up = is_stopped || prompt.cancelled_at.is_some() || work.is_there(id, prompt.at);
    exchange.gave_up_on_turn(prompt.at).filter(|_| !is_held_up)
}

/// A time for people: `10 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// What is said of a tool call in one message.
pub(super) struct Report<'a> {
    /// The message.
    pub at: MessageIndex,
    /// The session.
    pub session: &'a str,
    /// The tool call's id, empty if there is none.
    pub id: &'a str,
    /// How it is said: the kind of update, or `session/request_permission`.
    pub by: &'a str,
    /// The update, or the tool call in the request for permission.
    pub call: &'a Value,
}

impl<'a> Report<'a> {
    /// The pieces of content in it.
    pub(super) fn content(&self) -> impl Iterator<Item = &'a Value> {
        let content = &self.call["content"];
        let one = content.is_object().then_some(content);
        items(content).iter().chain(one)
    }
}

/// The updates of tool calls, and what requests for permission say of them, in order.
pub(super) fn reports<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = Report<'a>> {
    exchange.messages_of(Side::Agent).filter_map(|(at, message)| {
        let (params, call, by) = match &message.body {
            Body::Notification { method, params } if method == "session/update" => {
                let update = &params["update"];
                let kind = update["sessionUpdate"].as_str().filter(|kind| kind.starts_with("tool_call"))?;
                (params, update, kind)
            }
            Body::Request { method, params, .. } if method == "session/request_permission" => {
                (params, asked_for(params)?, method.as_str())
            }
            _ => return None,
        };
        let session = params["sessionId"].as_str().unwrap_or("");
        Some(Report { at, session, id: call["toolCallId"].as_str().unwrap_or(""), by, call })
    })
}

/// The tool call that permission is asked for, if it is one.
pub(super) fn asked_for(params: &Value) -> Option<&Value> {
    [&params["toolCall"], &params["subject"]["toolCall"]].into_iter().find(|call| call.is_object())
}

/// The pieces of content that a side sent: in messages, prompts, tool calls and summaries.
pub(super) fn blocks<'a>(exchange: &'a Exchange<'_>, side: Side) -> Vec<(MessageIndex, &'a Value)> {
    let mut blocks = Vec::new();
    for (at, message) in exchange.messages_of(side) {
        match (&message.body, side) {
            (Body::Request { method, params, .. }, Side::Client) if method == "session/prompt" => {
                blocks.extend(items(&params["prompt"]).iter().map(|block| (at, block)));
            }
            (Body::Notification { method, params }, Side::Agent) if method == "session/update" => {
                let update = &params["update"];
                let kind = update["sessionUpdate"].as_str().unwrap_or("");
                let content = &update["content"];
                match kind {
                    _ if is_message_chunk(kind) || kind == "compaction_summary_chunk" => blocks.push((at, content)),
                    _ if is_whole_message(kind) => blocks.extend(items(content).iter().map(|block| (at, block))),
                    "compaction_update" => {
                        blocks.extend(items(&update["summary"]).iter().map(|block| (at, block)));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if side == Side::Agent {
        for report in reports(exchange) {
            let content = report.content().filter(|item| item["type"] == "content");
            blocks.extend(content.map(|item| (report.at, &item["content"])));
        }
    }
    blocks
}

/// Whether this kind of update is a piece of a message.
pub(super) fn is_message_chunk(kind: &str) -> bool {
    matches!(kind, "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk")
}

/// Whether this kind of update is about a message as a whole.
pub(super) fn is_whole_message(kind: &str) -> bool {
    matches!(kind, "user_message" | "agent_message" | "agent_thought")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_of_both_systems_are_known() {
        for path in ["/p", "/", "C:\\p", "c:/p", "\\\\server\\share"] {
            assert!(is_absolute(path), "{path}");
        }
        for path in ["", "p", "./p", "../p", "C:", "C:p", "~/p"] {
            assert!(!is_absolute(path), "{path}");
        }
    }
}
