//! Recordings as transcripts that a raw peer can play: what one side sends, and what has to come back.

use std::collections::HashMap;

use serde_json::Value;

use super::canonical::IDS;
use crate::exchange::{Body, Exchange};
use crate::record::{Record, Side};

/// Writes the first connection of a recording as a transcript for [`RawPeer`](attache_testkit::RawPeer): `-->` is what `side` sends,
/// `<--` what the other side answers. Ids that the other side makes up are names (`$session1`), so that they may be others the next
/// time.
///
/// ```
/// use attache_check::{Record, Side, trace};
///
/// let record = Record::from_transcript("
///     --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
///     <-- {'id':1,'result':{'sessionId':'5f3c'}}
///     --> {'method':'session/cancel','params':{'sessionId':'5f3c'}}
/// ")?;
/// assert_eq!(
///     trace::export(&record, Side::Client),
///     "--> {'id':1,'method':'session/new','params':{'cwd':'/p'}}\n\
///      <-- {'id':1,'result':{'sessionId':'$session1'}}\n\
///      --> {'method':'session/cancel','params':{'sessionId':'$session1'}}\n"
/// );
/// # Ok::<(), attache_check::record::TranscriptError>(())
/// ```
pub fn export(record: &Record, side: Side) -> String {
    let Some((_, entries)) = record.connections().next() else { return String::new() };
    let exchange = Exchange::new(entries);
    let mut names = Names { theirs: HashMap::new(), counts: HashMap::new() };
    let mut out = String::new();
    let mut entry = None;
    for message in &exchange.messages {
        // Entries of a batch are one line.
        if entry.replace(message.entry) == Some(message.entry) {
            continue;
        }
        let is_ours = message.from == side;
        let Ok(mut value) = serde_json::from_str::<Value>(message.text) else {
            out.push_str("# A line that is no message was here.\n");
            continue;
        };
        names.walk(&mut value, !is_ours);
        if let Some(members) = value.as_object_mut() {
            if members.get("jsonrpc") == Some(&"2.0".into()) {
                members.shift_remove("jsonrpc");
            }
            // The id of a request of theirs, and of our answer to it.
            let is_theirs =
                matches!((&message.body, is_ours), (Body::Request { .. }, false) | (Body::Response { .. }, true));
            if let (true, Some(id)) = (is_theirs, members.get_mut("id")) {
                names.name("call", id, !is_ours);
            }
        }
        let arrow = if is_ours { "-->" } else { "<--" };
        out.push_str(&format!("{arrow} {}\n", quoted(&value)));
    }
    out
}

/// JSON with single quotes.
fn quoted(value: &Value) -> String {
    let mut out = String::new();
    let mut is_text = false;
    let mut is_escaped = false;
    for c in value.to_string().chars() {
        match c {
            '\'' => out.push_str("\\u0027"),
            '"' if !is_escaped => {
                is_text = !is_text;
                out.push('\'');
            }
            c => out.push(c),
        }
        is_escaped = is_text && c == '\\' && !is_escaped;
    }
    out
}

/// The names of ids.
struct Names {
    theirs: HashMap<(String, String), String>,
    counts: HashMap<String, usize>,
}

impl Names {
    /// Puts the name of an id in its place, if the other side made it up: it is theirs if they say it first.
    fn name(&mut self, kind: &str, id: &mut Value, is_theirs: bool) {
        let key = (kind.to_owned(), id.to_string());
        if is_theirs && !self.theirs.contains_key(&key) {
            let count = self.counts.entry(kind.to_owned()).or_default();
            *count += 1;
            self.theirs.insert(key.clone(), format!("${kind}{count}"));
        }
        if let Some(name) = self.theirs.get(&key) {
            *id = name.as_str().into();
        }
    }

    fn walk(&mut self, value: &mut Value, is_theirs: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, is_theirs)),
            Value::Object(members) => {
                if is_theirs {
                    members.shift_remove("_meta");
                }
                for (key, member) in members.iter_mut() {
                    match (IDS.iter().find(|id| *id == key), &*member) {
                        // A request id of `$/cancel_request` is named with its request, or is ours.
                        (Some(&"requestId"), _) => self.name("call", member, false),
                        (Some(id), Value::String(_)) => {
                            let kind = if *id == "nextCursor" { "cursor" } else { id.trim_end_matches("Id") };
                            self.name(kind, member, is_theirs);
                        }
                        (None, Value::String(_)) if is_theirs && key == "updatedAt" => *member = "*".into(),
                        // It would be taken for a name.
                        (None, Value::String(text)) if is_theirs && text.starts_with('$') => *member = "*".into(),
                        _ => self.walk(member, is_theirs),
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_transcript_reads_as_the_same_messages() {
        let text = r#"
            ==> {"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"it's \"so\" \\"}}
            <== {"jsonrpc":"2.0","id":"x-1","method":"session/request_permission","params":{"sessionId":"s","_meta":{}}}
            ==> {"jsonrpc":"2.0","id":"x-1","result":{"outcome":{"outcome":"cancelled"}}}"#;
        let exported = export(&Record::from_transcript(text).unwrap(), Side::Client);
        let line = |index: usize| exported.lines().nth(index).unwrap().to_owned();
        assert_eq!(
            line(1),
            "<-- {'id':'$call1','method':'session/request_permission','params':{'sessionId':'$session1'}}"
        );
        assert_eq!(line(2), "--> {'id':'$call1','result':{'outcome':{'outcome':'cancelled'}}}");
        let sent: Value = serde_json::from_str(&line(0)[4..].replace('\'', "\"")).unwrap();
        assert_eq!(sent["params"]["text"], "it's \"so\" \\");
        let turned = export(&Record::from_transcript(text).unwrap(), Side::Agent);
        assert!(turned.starts_with("<-- {'id':'$call1','method':'m'"), "{turned}");
    }
}
