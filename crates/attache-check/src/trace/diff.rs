//! Where two recordings differ in what was said.

use std::fmt;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::canonical::{CanonicalMessage, canonical};
use crate::record::{Record, Side};
use crate::rule::harmless;

/// A difference between two recordings.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The first has a message that the second does not have.
    OnlyFirst(CanonicalMessage),
    /// The second has a message that the first does not have.
    OnlySecond(CanonicalMessage),
    /// Both have it, and it is not the same.
    Changed {
        /// The message of the first.
        first: CanonicalMessage,
        /// The message of the second.
        second: CanonicalMessage,
        /// Where they differ: the path, and the value there in the first and in the second.
        places: Vec<(String, Value, Value)>,
    },
}

/// How much of a value is shown.
const LONGEST_VALUE: usize = 80;

/// How many places of a message are shown.
const MOST_PLACES: usize = 8;

/// Compares what both sides said in two recordings, each side by itself: how their messages crossed does not count, nor do ids, times
/// and the pieces in which a text came.
pub fn diff(first: &Record, second: &Record) -> Vec<Difference> {
    let (first, second) = (canonical(first), canonical(second));
    [Side::Client, Side::Agent].into_iter().flat_map(|side| diff_side(side, &first, &second)).collect()
}

/// Compares what one side said.
pub(super) fn diff_side(side: Side, first: &[CanonicalMessage], second: &[CanonicalMessage]) -> Vec<Difference> {
    let of = |messages: &[CanonicalMessage]| -> Vec<CanonicalMessage> {
        messages.iter().filter(|message| message.from == side).cloned().collect()
    };
    let (first, second) = (of(first), of(second));
    let labels = |messages: &[CanonicalMessage]| -> Vec<String> {
        messages.iter().map(|message| message.label.clone()).collect()
    };
    let mut differences = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &labels(&first), &labels(&second)) {
        let only_first = |range: std::ops::Range<usize>| first[range].iter().cloned().map(Difference::OnlyFirst);
        let only_second = |range: std::ops::Range<usize>| second[range].iter().cloned().map(Difference::OnlySecond);
        match operation {
            DiffOp::Equal { old_index, new_index, len } => {
                let pairs = first[old_index..old_index + len].iter().zip(&second[new_index..new_index + len]);
                differences.extend(pairs.filter_map(|(first, second)| changed(first, second)));
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                differences.extend(only_first(operation.old_range()));
                differences.extend(only_second(operation.new_range()));
            }
        }
    }
    differences
}

fn changed(first: &CanonicalMessage, second: &CanonicalMessage) -> Option<Difference> {
    let mut places = Vec::new();
    compare("", &first.body, &second.body, &mut places);
    (!places.is_empty()).then(|| Difference::Changed { first: first.clone(), second: second.clone(), places })
}

/// Finds where two values differ. They come from JSON whose depth is limited.
fn compare(path: &str, first: &Value, second: &Value, places: &mut Vec<(String, Value, Value)>) {
    match (first, second) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let (one, other) = (one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null));
                compare(&format!("{path}.{key}"), one, other, places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), one, other, places);
            }
        }
        _ if first == second => {}
        _ => places.push((path.trim_start_matches('.').to_owned(), first.clone(), second.clone())),
    }
}

/// For people: a line for each message, and one for each place.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = |message: &CanonicalMessage| if message.from == Side::Client { "-->" } else { "<--" };
        let whole = |f: &mut fmt::Formatter<'_>, sign: &str, message: &CanonicalMessage| {
            let body = harmless(&message.body.to_string(), LONGEST_VALUE);
            write!(f, "{sign} {} {} {body}", arrow(message), harmless(&message.label, LONGEST_VALUE))
        };
        match self {
            Difference::OnlyFirst(message) => whole(f, "-", message),
            Difference::OnlySecond(message) => whole(f, "+", message),
            Difference::Changed { first, places, .. } => {
                write!(f, "~ {} {}", arrow(first), harmless(&first.label, LONGEST_VALUE))?;
                for (path, one, other) in places.iter().take(MOST_PLACES) {
                    let value = |value: &Value| harmless(&value.to_string(), LONGEST_VALUE);
                    write!(f, "\n    {}: {} -> {}", harmless(path, LONGEST_VALUE), value(one), value(other))?;
                }
                if places.len() > MOST_PLACES {
                    write!(f, "\n    and {} more", places.len() - MOST_PLACES)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "
        --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
        <-- {'id':0,'result':{'protocolVersion':1}}
        --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
        <-- {'id':1,'result':{'sessionId':'abc','_meta':{'x':1}}}
        <-- {'method':'session/update','params':{'sessionId':'abc','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'hel'}}}}
        <-- {'method':'session/update','params':{'sessionId':'abc','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'lo'}}}}";

    fn differences(second: &str) -> Vec<String> {
        let read = |text| Record::from_transcript(text).unwrap();
        diff(&read(FIRST), &read(second)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ids_pieces_and_metadata_are_no_difference() {
        let second = "
            --> {'id':'a','method':'initialize','params':{'protocolVersion':1}}
            <-- {'id':'a','result':{'protocolVersion':1}}
            --> {'id':'b','method':'session/new','params':{'cwd':'/p'}}
            <-- {'id':'b','result':{'sessionId':'other'}}
            <-- {'method':'session/update','params':{'sessionId':'other','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'hello'}}}}";
        assert_eq!(differences(second), [""; 0]);
    }

    #[test]
    fn content_that_is_a_list_is_no_piece_of_a_text() {
        let message = "<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','content':[{'type':'text','text':'x'}]}}}";
        let odd = "<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'a_chunk','content':{'type':'text','text':'x'}}}}";
        let record = Record::from_transcript(&format!("{message}\n{odd}\n{message}\n{odd}\n{odd}")).unwrap();
        assert_eq!(diff(&record, &record), []);
        assert_eq!(canonical(&record).len(), 4);
    }

    #[test]
    fn what_was_said_is_a_difference() {
        let second = FIRST.replace("'lo'", "'p'").replace("/p", "/q") + "\n<-- {'method':'_x','params':{}}";
        assert_eq!(
            differences(&second),
            [
                "~ --> session/new\n    cwd: \"/p\" -> \"/q\"",
                "~ <-- session/update agent_message_chunk\n    update.content.text: \"hello\" -> \"help\"",
                "+ <-- _x {}",
            ]
        );
    }
}
