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

use std::time::Duration;

use attache::trace::rfc3339;
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
    /// Reads a trace. A last line that was not written to its end is left out.
    pub fn from_trace(text: &str) -> Result<Record, TraceError> {
        let mut record = Record::default();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (index, line) in lines {
            match entry(line, &mut record) {
                Ok(event) => event.into_iter().for_each(|entry| record.entries.push(entry)),
                // Whoever wrote it was killed.
                Err(_) if !text.ends_with('\n') && index + 1 == text.lines().count() => {}
                Err(why) => return Err(TraceError::Line { number: index + 1, why }),
            }
        }
        if !record.entries.iter().any(|entry| matches!(entry.event, Event::Frame { .. } | Event::Junk { .. })) {
            return Err(TraceError::Empty);
        }
        if record.is_turned_round() {
            record.turn_round();
        }
        Ok(record)
    }

    /// Writes the record as a trace.
    pub fn to_trace(&self) -> String {
        self.entries.iter().map(|entry| self.trace_line(entry)).collect()
    }

    fn trace_line(&self, entry: &Entry) -> String {
        let started = self.started.unwrap_or(std::time::UNIX_EPOCH);
        let dir = |from: &Side| if *from == Side::Client { "out" } else { "in" };
        let side = |from: &Side| if *from == Side::Client { "client" } else { "agent" };
        let rest = match &entry.event {
            Event::Frame { from, text } if serde_json::from_str::<&RawValue>(text).is_ok() => {
                format!(r#""dir":"{}","message":{}"#, dir(from), text.trim())
            }
            Event::Frame { from, text } => format!(r#""dir":"{}","text":{}"#, dir(from), Value::from(text.as_str())),
            Event::Junk { from, bytes } => format!(r#""dir":"{}","junk":{bytes}"#, dir(from)),
            Event::Stderr { text } => format!(r#""dir":"err","text":{}"#, Value::from(text.as_str())),
            Event::Closed { from } => format!(r#""event":"closed","from":"{}""#, side(from)),
            Event::Exited { code: Some(code) } => format!(r#""event":"exited","number":{code}"#),
            Event::Exited { code: None } => r#""event":"exited""#.to_owned(),
            Event::Waited { time } => format!(r#""event":"waited","number":{}"#, time.as_millis()),
            Event::Restarted => r#""event":"restarted""#.to_owned(),
            Event::Continued => r#""event":"continued""#.to_owned(),
            Event::Note { text } => format!(r#""event":"note","text":{}"#, Value::from(text.as_str())),
        };
        format!("{{\"time\":\"{}\",{rest}}}\n", rfc3339(started + entry.at))
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
