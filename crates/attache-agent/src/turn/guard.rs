//! Notices a model that makes the same call again and again.

use crate::model::{Call, Message};

/// What is said to the model when it repeats itself.
pub(super) const WARNING: &str = "You have made the same call several times with the same result. Do something else, or say \
                                  what keeps you from going on.\n";
/// What is said to the person when it does not stop.
pub(super) const ENDED: &str = "The model makes the same call over and over, so the turn was ended.";

/// Sees every round of calls of a turn.
#[derive(Default)]
pub(super) struct Guard {
    last: Option<Round>,
    repeats: u32,
}

#[derive(PartialEq)]
struct Round {
    calls: Vec<(String, String)>,
    results: Vec<Message>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Fine,
    Repeats,
    Loops,
}

impl Guard {
    /// Sees one round: the calls, whose results are the last of the messages.
    pub(super) fn see(&mut self, calls: &[Call], messages: &[Message]) -> Seen {
        let results = messages[messages.len().saturating_sub(calls.len())..].iter().map(without_id).collect();
        let calls = calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        let round = Round { calls, results };
        self.repeats = if self.last.as_ref() == Some(&round) { self.repeats + 1 } else { 1 };
        self.last = Some(round);
        match self.repeats {
            3..6 => Seen::Repeats,
            6.. => Seen::Loops,
            _ => Seen::Fine,
        }
    }
}

/// The same result has another id each time.
fn without_id(message: &Message) -> Message {
    match message.clone() {
        Message::Tool { name, parts, is_error, .. } => Message::Tool { id: String::new(), name, parts, is_error },
        message => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Part;

    fn round(guard: &mut Guard, number: u32, arguments: &str, result: &str) -> Seen {
        let id = format!("call-{number}");
        let call = Call { id: id.clone(), name: "read_file".into(), arguments: arguments.into() };
        let result = Message::Tool { id, name: "read_file".into(), parts: vec![Part::text(result)], is_error: false };
        guard.see(&[call], &[result])
    }

    #[test]
    fn the_same_call_with_the_same_result_is_warned_about_and_then_ended() {
        let mut guard = Guard::default();
        let seen: Vec<Seen> = (1..=6).map(|number| round(&mut guard, number, "{}", "same")).collect();
        assert_eq!(seen, [Seen::Fine, Seen::Fine, Seen::Repeats, Seen::Repeats, Seen::Repeats, Seen::Loops]);
    }

    #[test]
    fn waiting_for_something_that_changes_is_no_loop() {
        let mut guard = Guard::default();
        for number in 1..=20 {
            assert_eq!(round(&mut guard, number, "{}", &number.to_string()), Seen::Fine);
        }
    }
}
