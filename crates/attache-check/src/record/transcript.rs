//! Records as transcripts: what people read and write in tests and bug reports.
//!
//! ```text
//! # A comment.
//! --> {'id':1,'method':'initialize','params':{'protocolVersion':1}}
//! <-- {'id':1,'result':{'protocolVersion':1}}
//! <== {"jsonrpc":"2.0","id":1}
//! (waited 2000 ms)
//! (closed by agent)
//! ```
//!
//! `-->` is what the client sends and `<--` what the agent sends: single quotes stand for double quotes, and `"jsonrpc":"2.0"` is
//! added where it is missing. `==>` and `<==` are taken to the letter. Other lines, in parentheses, say what else happened. A text
//! with control characters in it, such as line breaks, is written as a string of JSON: `(stderr) "one\ntwo"`,
//! `(line from agent) "one\ntwo"`.

use std::time::Duration;

use serde_json::Value;

use super::trace::on_one_line;
use super::{Event, Record, Side};

/// Why a text is no transcript: the number of the line, from 1, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for TranscriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for TranscriptError {}

impl Record {
    /// Reads a transcript. Each line happens a millisecond after the one before.
    pub fn from_transcript(text: &str) -> Result<Record, TranscriptError> {
        let mut record = Record::default();
        let mut at = Duration::ZERO;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let event = entry(line).map_err(|why| TranscriptError { line: number, why })?;
            at += match event {
                Event::Waited { time } => time,
                _ => Duration::from_millis(1),
            };
            record.push(at, event);
        }
        Ok(record)
    }

    /// Writes the record as a transcript, without its times.
    pub fn to_transcript(&self) -> String {
        self.entries.iter().map(|entry| line(&entry.event) + "\n").collect()
    }
}

fn entry(line: &str) -> Result<Event, String> {
    if let Some(event) = line.strip_prefix('(').and_then(|line| line.split_once(')')) {
        return event_of(event.0, event.1.trim());
    }
    let (arrow, text) = line.split_once(' ').unwrap_or((line, ""));
    let (from, is_exact) = match arrow {
        "-->" => (Side::Client, false),
        "<--" => (Side::Agent, false),
        "==>" => (Side::Client, true),
        "<==" => (Side::Agent, true),
        _ => return Err("expected `-->`, `<--`, `==>`, `<==` or `(…)`".to_owned()),
    };
    let text = if is_exact { text.to_owned() } else { message(text)? };
    Ok(Event::Frame { from, text })
}

/// A message with single quotes for double quotes.
fn message(text: &str) -> Result<String, String> {
    let mut value: Value = serde_json::from_str(&text.replace('\'', "\""))
        .map_err(|error| format!("{error}; `==>` and `<==` take any text"))?;
    let complete = |value: &mut Value| {
        if let Value::Object(members) = value {
            members.entry("jsonrpc").or_insert_with(|| "2.0".into());
        }
    };
    match &mut value {
        Value::Array(entries) => entries.iter_mut().for_each(complete),
        _ => complete(&mut value),
    }
    Ok(value.to_string())
}

fn event_of(event: &str, text: &str) -> Result<Event, String> {
    let words: Vec<&str> = event.split_whitespace().collect();
    let side = |name: &str| match name.trim_end_matches(',') {
        "client" => Ok(Side::Client),
        "agent" => Ok(Side::Agent),
        other => Err(format!("`{other}` is no side; expected `client` or `agent`")),
    };
    let number = |digits: &str| digits.parse().map_err(|_| format!("`{digits}` is no number"));
    Ok(match words[..] {
        ["closed", "by", who] => Event::Closed { from: side(who)? },
        ["exited"] => Event::Exited { code: None },
        ["exited", code] => Event::Exited { code: Some(number(code)?) },
        ["waited", millis, "ms"] => {
            Event::Waited { time: Duration::from_millis(u64::from(number(millis)?.unsigned_abs())) }
        }
        ["junk", "from", who, bytes, "bytes"] => {
            Event::Junk { from: side(who)?, bytes: usize::try_from(number(bytes)?).unwrap_or_default() }
        }
        ["restarted"] => Event::Restarted,
        ["continued"] => Event::Continued,
        ["note"] => Event::Note { text: unquoted(text) },
        ["stderr"] => Event::Stderr { text: unquoted(text) },
        ["line", "from", who] => Event::Frame { from: side(who)?, text: unquoted(text) },
        _ => {
            return Err(
                "expected closed by …, exited, waited … ms, junk from …, line from …, restarted, continued, note or stderr"
                    .to_owned(),
            );
        }
    })
}

/// A text on one line: as a string of JSON if it has a line break in it, or could be taken for such a string.
fn quoted(text: &str) -> String {
    let is_plain = !text.contains(char::is_control) && text.trim() == text && unquoted(text) == text;
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn unquoted(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

fn line(event: &Event) -> String {
    let side = |from: &Side| if *from == Side::Client { "client" } else { "agent" };
    match event {
        Event::Frame { from, text } => {
            let text = if serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok() {
                on_one_line(text)
            } else if text.contains(char::is_control) {
                return format!("(line from {}) {}", side(from), quoted(text));
            } else {
                text.into()
            };
            let text = &*text;
            let quoted = text.replace('"', "'");
            // What would not be read back as the same message is written to the letter.
            let value = |text: &str| serde_json::from_str::<Value>(text).ok();
            let is_same = message(&quoted).is_ok_and(|read| value(&read) == value(text));
            match (from, is_same) {
                (Side::Client, true) => format!("--> {quoted}"),
                (Side::Agent, true) => format!("<-- {quoted}"),
                (Side::Client, false) => format!("==> {text}"),
                (Side::Agent, false) => format!("<== {text}"),
            }
        }
        Event::Junk { from, bytes } => format!("(junk from {}, {bytes} bytes)", side(from)),
        Event::Stderr { text } => format!("(stderr) {}", quoted(text)),
        Event::Closed { from } => format!("(closed by {})", side(from)),
        Event::Exited { code: Some(code) } => format!("(exited {code})"),
        Event::Exited { code: None } => "(exited)".to_owned(),
        Event::Waited { time } => format!("(waited {} ms)", time.as_millis()),
        Event::Restarted => "(restarted)".to_owned(),
        Event::Continued => "(continued)".to_owned(),
        Event::Note { text } => format!("(note) {}", quoted(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
--> {'id':0,'jsonrpc':'2.0','method':'initialize','params':{'protocolVersion':1}}
<== Starting up
<== {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"text\":\"it's\"}}
(junk from agent, 17 bytes)
(stderr) warning: old
(waited 2000 ms)
(restarted)
(note) files
(closed by client)
(exited 1)
(exited)
";

    #[test]
    fn a_transcript_is_written_as_it_was_read() {
        let record = Record::from_transcript(TEXT).unwrap();
        assert_eq!(record.entries.len(), 11);
        assert_eq!(record.to_transcript(), TEXT);
        assert_eq!(
            record.connections().map(|(start, entries)| (start, entries.len())).collect::<Vec<_>>(),
            [(0, 6), (7, 4)]
        );
    }

    #[test]
    fn a_line_break_begins_no_line_of_its_own() {
        let mut record = Record::default();
        let forged = "a\n==> {\"id\":1}\r(closed by agent)\u{1b}[2J \\ \"";
        let texts = [forged, "\"quoted\"", "\"a\\nb\"", " spaces ", "plain \\n", ""];
        for text in texts.map(str::to_owned) {
            record.push(Duration::ZERO, Event::Stderr { text: text.clone() });
            record.push(Duration::ZERO, Event::Note { text });
        }
        record.push(Duration::ZERO, Event::Frame { from: Side::Agent, text: forged.to_owned() });
        record.push(Duration::ZERO, Event::Frame { from: Side::Agent, text: "\"text\"".to_owned() });
        let text = record.to_transcript();
        assert_eq!(text.lines().count(), record.entries.len(), "{text}");
        let events = |record: &Record| record.entries.iter().map(|entry| entry.event.clone()).collect::<Vec<_>>();
        assert_eq!(events(&Record::from_transcript(&text).unwrap()), events(&record));
        // JSON on several lines is the same message on one.
        let pretty = Event::Frame { from: Side::Client, text: "{\n  \"id\": 1,\r\n  \"c\": \"'\"\n}".to_owned() };
        let text = line(&pretty);
        assert!(!text.contains(['\n', '\r']) && text.starts_with("==> {   \"id\": 1,"), "{text}");
    }

    #[test]
    fn a_trace_holds_the_same_as_a_transcript() {
        let record = Record::from_transcript(TEXT).unwrap();
        let read = Record::from_trace(&record.to_trace()).unwrap();
        assert_eq!(read.to_transcript(), TEXT);
    }

    #[test]
    fn a_trace_of_an_agent_is_turned_round() {
        let trace = "{\"time\":\"2026-11-15T09:30:00.125Z\",\"dir\":\"in\",\"message\":{\"id\":0,\"method\":\"initialize\"}}\n{\"dir\":\"ou";
        let record = Record::from_trace(trace).unwrap();
        assert_eq!(record.to_transcript(), "==> {\"id\":0,\"method\":\"initialize\"}\n");
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = Record::from_transcript("\n--> {'id'").unwrap_err();
        assert_eq!(error.line, 2);
        assert_eq!(Record::from_transcript("(slept)").unwrap_err().line, 1);
    }
}
