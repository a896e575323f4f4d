//! Records as traces: one JSON object a line, as `attache trace` and `--trace` write them.
//!
//! ```text
//! {"time":"2026-11-15T09:30:00.125Z","dir":"out","message":{"jsonrpc":"2.0","id":0,"method":"initialize",…}}
//! {"time":"2026-11-15T09:30:00.250Z","dir":"in","junk":17}
//! {"time":"2026-11-15T09:30:00.251Z","dir":"err","text":"warning: …"}
//! {"time":"2026-11-15T09:30:00.252Z","event":"closed","from":"agent"}
//! ```
//!
//! `out` is what the client sent and `in` what the agent sent; an agent that wrote its own trace had it the other way round, which
//! shows in who sent `initialize`.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use attache::trace::{redact, redact_text, rfc3339};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Entry, Event, Record, Side, time};

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceError {
    /// A line is not an object of a trace.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no message in it.
    Empty,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TraceError::Line { number, why } => write!(f, "line {number}: {why}"),
            TraceError::Empty => f.write_str("no message in it"),
        }
    }
}

impl std::error::Error for TraceError {}

/// How a note begins that tells of lines that could not be read.
const UNREADABLE: &str = "Lines of the trace that cannot be read: ";

/// What is written down of secrets, and of what may be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Everything is written down as it is.
    Kept,
    /// Secrets are left out of messages and texts.
    LeftOut,
    /// The same, and of lines that are no messages only the length is written down.
    LeftOutOfMessages,
}

/// A line of a trace, as far as it is understood.
#[derive(Default)]
struct Line<'a> {
    time: Option<String>,
    dir: Option<String>,
    message: Option<&'a str>,
    junk: Option<u64>,
    text: Option<String>,
    event: Option<String>,
    from: Option<String>,
    number: Option<i64>,
}

impl Record {
    /// Reads a trace. A last line that was not written to its end is left out. Other lines that cannot be read are left out, too, as
    /// long as there are more that can, and a note tells of them ([`Record::unreadable`]): a disk may have been full for a moment.
    pub fn from_trace(text: &str) -> Result<Record, TraceError> {
        let mut record = Record::default();
        let mut wrong: Option<(usize, TraceError)> = None;
        let (mut count, mut note_at) = (0, 0);
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        while let Some((index, line)) = lines.next() {
            match entry(line, &mut record) {
                Ok(event) => event.into_iter().for_each(|entry| record.entries.push(entry)),
                // Whoever wrote it was killed.
                Err(_) if !text.ends_with('\n') && lines.peek().is_none() => {}
                Err(why) => {
                    count += 1;
                    wrong.get_or_insert_with(|| {
                        note_at = record.entries.len();
                        (index + 1, TraceError::Line { number: index + 1, why })
                    });
                }
            }
        }
        if let Some((number, error)) = wrong {
            if count >= record.entries.len() {
                return Err(error);
            }
            let at = record.entries[..note_at].last().map_or(Duration::ZERO, |entry| entry.at);
            let text = format!("{UNREADABLE}{count}, the first is line {number}");
            record.entries.insert(note_at, Entry { at, event: Event::Note { text } });
        }
        if !record.entries.iter().any(|entry| matches!(entry.event, Event::Frame { .. } | Event::Junk { .. })) {
            return Err(TraceError::Empty);
        }
        if record.is_turned_round() {
            record.turn_round();
        }
        Ok(record)
    }

    /// What could not be read of the trace that this record was read from, in words.
    pub fn unreadable(&self) -> Option<&str> {
        self.entries.iter().find_map(|entry| match &entry.event {
            Event::Note { text } if text.starts_with(UNREADABLE) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Writes the record as a trace, without its secrets: what [`redact`] leaves out of messages and [`redact_text`] of other texts.
    pub fn to_trace(&self) -> String {
        self.trace(Secrets::LeftOut)
    }

    /// Writes the record as a trace, with all that was said.
    pub fn to_raw_trace(&self) -> String {
        self.trace(Secrets::Kept)
    }

    fn trace(&self, secrets: Secrets) -> String {
        let mut out = String::new();
        let started = self.started.unwrap_or(std::time::UNIX_EPOCH);
        for entry in &self.entries {
            append_line(&entry.event, started + entry.at, secrets, &mut out);
        }
        out
    }

    /// Whether an agent wrote it, to whom `out` is what it sent itself.
    fn is_turned_round(&self) -> bool {
        self.entries.iter().find_map(|entry| match &entry.event {
            Event::Frame { from, text } if text.contains("\"initialize\"") => {
                let message: Value = serde_json::from_str(text).ok()?;
                (message["method"] == "initialize").then_some(*from == Side::Agent)
            }
            _ => None,
        }) == Some(true)
    }

    fn turn_round(&mut self) {
        let other = |side: Side| if side == Side::Client { Side::Agent } else { Side::Client };
        for entry in &mut self.entries {
            match &mut entry.event {
                Event::Frame { from, .. } | Event::Junk { from, .. } => *from = other(*from),
                _ => {}
            }
        }
    }
}

/// Appends a line of a trace, with its end.
pub(crate) fn append_line(event: &Event, time: SystemTime, secrets: Secrets, line: &mut String) {
    let string = |text: &str| Value::from(text).to_string();
    let shown = |text: &str| match secrets {
        Secrets::Kept => string(text),
        Secrets::LeftOut | Secrets::LeftOutOfMessages => string(&redact_text(text)),
    };
    let dir = |from: &Side| if *from == Side::Client { "out" } else { "in" };
    let side = |from: &Side| if *from == Side::Client { "client" } else { "agent" };
    line.push_str("{\"time\":\"");
    line.push_str(&rfc3339(time));
    line.push_str("\",");
    match event {
        Event::Frame { from, text } => {
            line.push_str("\"dir\":\"");
            line.push_str(dir(from));
            line.push_str("\",\"message\":");
            if !append_message(text, secrets, line) {
                line.truncate(line.len() - "\"message\":".len());
                match secrets {
                    Secrets::LeftOutOfMessages => line.push_str(&format!("\"junk\":{}", text.len())),
                    Secrets::Kept | Secrets::LeftOut => line.push_str(&format!("\"text\":{}", shown(text))),
                }
            }
        }
        Event::Junk { from, bytes } => line.push_str(&format!(r#""dir":"{}","junk":{bytes}"#, dir(from))),
        Event::Stderr { text } => line.push_str(&format!(r#""dir":"err","text":{}"#, shown(text))),
        Event::Closed { from } => line.push_str(&format!(r#""event":"closed","from":"{}""#, side(from))),
        Event::Exited { code: Some(code) } => line.push_str(&format!(r#""event":"exited","number":{code}"#)),
        Event::Exited { code: None } => line.push_str(r#""event":"exited""#),
        Event::Waited { time } => line.push_str(&format!(r#""event":"waited","number":{}"#, time.as_millis())),
        Event::Restarted => line.push_str(r#""event":"restarted""#),
        Event::Continued => line.push_str(r#""event":"continued""#),
        Event::Note { text } => line.push_str(&format!(r#""event":"note","text":{}"#, shown(text))),
    }
    line.push_str("}\n");
}

/// Appends a message on one line; `false` when it is no JSON, and then nothing is appended.
fn append_message(text: &str, secrets: Secrets, line: &mut String) -> bool {
    if secrets != Secrets::Kept {
        return redact(text, line);
    }
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    if is_json {
        line.push_str(&on_one_line(text.trim()));
    }
    is_json
}

/// JSON without line breaks: where it has one, it is between two words of it.
pub(super) fn on_one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ").into() } else { json.into() }
}

fn entry(text: &str, record: &mut Record) -> Result<Option<Entry>, &'static str> {
    let line = line(text)?;
    let at = match line.time.as_deref().map(time::parse) {
        Some(None) => return Err("`time` is no time"),
        Some(Some(time)) => time.duration_since(*record.started.get_or_insert(time)).unwrap_or_default(),
        None => record.entries.last().map_or(Duration::ZERO, |entry| entry.at),
    };
    let from = match line.dir.as_deref() {
        Some("out") => Some(Side::Client),
        Some("in") => Some(Side::Agent),
        _ => match line.from.as_deref() {
            Some("client") => Some(Side::Client),
            Some("agent") => Some(Side::Agent),
            _ => None,
        },
    };
    let event = match (from, line.event.as_deref()) {
        (Some(from), None) => match (line.message, line.junk, line.text) {
            (Some(message), ..) => Event::Frame { from, text: message.to_owned() },
            (_, Some(bytes), _) => Event::Junk { from, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) },
            (.., Some(text)) => Event::Frame { from, text },
            _ => return Err("no `message`, `junk` or `text`"),
        },
        (None, None) if line.dir.as_deref() == Some("err") => Event::Stderr { text: line.text.unwrap_or_default() },
        (Some(from), Some("closed")) => Event::Closed { from },
        (_, Some("exited")) => Event::Exited { code: line.number.and_then(|code| i32::try_from(code).ok()) },
        (_, Some("waited")) => {
            let millis = line.number.and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
            Event::Waited { time: Duration::from_millis(millis) }
        }
        (_, Some("restarted")) => Event::Restarted,
        (_, Some("continued")) => Event::Continued,
        (_, Some("note")) => Event::Note { text: line.text.unwrap_or_default() },
        // Of a newer version.
        (_, Some(_)) => return Ok(None),
        (None, None) => return Err("no `dir`; expected `in`, `out` or `err`"),
    };
    Ok(Some(Entry { at, event }))
}

fn line(text: &str) -> Result<Line<'_>, &'static str> {
    let members: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| "not an object of a trace")?;
    let string = |name| members.get(name).and_then(|value| serde_json::from_str(value.get()).ok());
    let number = |name: &str| members.get(name).and_then(|value| value.get().parse().ok());
    Ok(Line {
        time: string("time"),
        dir: string("dir"),
        message: members.get("message").map(|value| value.get()),
        junk: members.get("junk").and_then(|value| value.get().parse().ok()),
        text: string("text"),
        event: string("event"),
        from: string("from"),
        number: number("number"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Event {
        Event::Frame { from: Side::Agent, text: text.to_owned() }
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out_and_told() {
        let good = "{\"dir\":\"out\",\"message\":{\"id\":0,\"method\":\"initialize\"}}\n";
        let torn = "{\"time\":\"2026-11-15T09:30:00.125Z\",\"dir\":\"in\",\"mess";
        let record = Record::from_trace(&format!("{good}{torn}{good}{torn}\n\n{good}{good}{good}{torn}")).unwrap();
        assert_eq!(record.entries.len(), 5);
        assert_eq!(record.unreadable(), Some("Lines of the trace that cannot be read: 2, the first is line 2"));
        assert_eq!(record.entries[1].event, Event::Note { text: record.unreadable().unwrap().to_owned() });
        assert_eq!(Record::from_trace(good).unwrap().unreadable(), None);
        for wrong in
            ["{\"a\":1}\n{\"b\":2}\n".to_owned(), format!("{good}{{}}\n{{}}\n"), format!("{torn}\n"), torn.to_owned()]
        {
            assert!(Record::from_trace(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_is_one_line_however_it_was_written() {
        let forged = "{\r\n \"id\": 1,\n\"result\":\n{\"dir\":\"out\",\"message\":{\"a\":\"\\n\"}}\n}";
        let mut record = Record::default();
        for text in [forged, "no\nJSON"] {
            record.push(Duration::ZERO, frame(text));
        }
        for trace in [record.to_trace(), record.to_raw_trace()] {
            assert_eq!(trace.lines().count(), 2, "{trace}");
            let read = Record::from_trace(&trace).unwrap();
            let Event::Frame { text, .. } = &read.entries[0].event else { panic!("{read:?}") };
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), serde_json::from_str::<Value>(forged).unwrap());
            assert_eq!(read.entries[1].event, frame("no\nJSON"));
        }
    }

    #[test]
    fn secrets_are_left_out_unless_they_are_wanted() {
        let mut record = Record::default();
        record.push(Duration::ZERO, frame(r#"{"result":{"apiKey":"sesame"}}"#));
        record.push(Duration::ZERO, frame("password=sesame"));
        record.push(Duration::ZERO, Event::Stderr { text: "Authorization: Bearer sesame".to_owned() });
        assert_eq!(record.to_trace().matches("sesame").count(), 0, "{}", record.to_trace());
        assert_eq!(record.to_raw_trace().matches("sesame").count(), 3);
    }
}
