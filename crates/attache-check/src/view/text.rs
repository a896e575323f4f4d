//! A recording as lines of text.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::OwnTexts;
use super::data::beside;
use crate::exchange::{Body, Exchange};
use crate::judge::{Choice, judge};
use crate::record::{Record, Side};
use crate::rule::harmless;
use crate::trace::label_of;

/// How much of a message is shown.
const LONGEST: usize = 100;

/// A line for each message: when, who, what, and how long a request waited for its answer; findings below their message.
pub(super) fn text(record: &Record) -> String {
    let mut findings: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for side in [Side::Client, Side::Agent] {
        for judged in judge(record, side, &Choice::default()) {
            for finding in judged.findings {
                let line = format!("{}: {} [{}]", judged.rule.level.as_str(), finding.seen, judged.rule.id);
                findings.entry(finding.entries.first().copied().unwrap_or(0)).or_default().push(line);
            }
        }
    }
    let mut out = String::new();
    for (start, entries) in record.connections() {
        let exchange = Exchange::new(entries);
        let mut texts = OwnTexts::default();
        let mut messages = exchange.messages.iter().enumerate().peekable();
        for (index, entry) in entries.iter().enumerate() {
            let time = format!("{:>10.3}", entry.at.as_secs_f64());
            while let Some((number, message)) = messages.next_if(|(_, message)| message.entry == index) {
                let arrow = if message.from == Side::Client { "-->" } else { "<--" };
                let label = harmless(&label_of(&exchange, number, message), LONGEST);
                let asked = exchange.call_of(number).map(|call| &exchange.calls[call]).filter(|call| call.at != number);
                let waited = asked.map_or_else(String::new, |call| {
                    let since = entries[exchange.messages[call.at].entry].at;
                    format!(" ({} ms)", entry.at.saturating_sub(since).as_millis())
                });
                let id = match &message.body {
                    Body::Request { id, .. } | Body::Response { id, .. } => {
                        format!(" #{}", harmless(&id.to_string(), 24))
                    }
                    _ => String::new(),
                };
                let summary = harmless(&summary(texts.of(message)), LONGEST);
                let _ = writeln!(out, "{time} {arrow} {label}{id}{waited} {summary}");
            }
            if let Some(text) = beside(&entry.event) {
                let _ = writeln!(out, "{time}  .  {}", harmless(&text.replace('\t', " "), LONGEST));
            }
            for finding in findings.get(&(start + index)).into_iter().flatten() {
                let _ = writeln!(out, "           !  {finding}");
            }
        }
    }
    out
}

/// What a message carries, without its envelope.
fn summary(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let carried = ["params", "result", "error"].into_iter().find_map(|key| value.get(key));
    carried.map_or_else(|| text.to_owned(), ToString::to_string)
}
