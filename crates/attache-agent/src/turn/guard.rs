//! Notices a model that goes round in circles: the same call with the same outcome, at once or with others between.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{Call, Part};
use crate::tools::Outcome;

/// What is said to the person when it does not stop.
pub(super) const ENDED: &str = "The model makes the same call over and over, so the turn was ended.";

/// What is said to a model that has to come to an end.
pub(super) const LAST: &str = "You are repeating yourself. Finish now: say what you found or did, and what is left.";

/// Sees every call of a turn.
pub(super) struct Guard {
    /// How often a call had an outcome since something was changed.
    seen: HashMap<u64, u32>,
    /// How often a change was made. Going to and fro changes something each time.
    changes: HashMap<u64, u32>,
    /// From which time on the model is told, and from which it is stopped.
    warns_at: u32,
    ends_at: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Fine,
    /// What the model is told, beside the outcome.
    Repeats(&'static str),
    Loops,
}

impl Guard {
    /// Small models do not notice it by themselves.
    pub(super) fn new(is_small: bool) -> Self {
        let (warns_at, ends_at) = if is_small { (2, 4) } else { (3, 6) };
        Guard { seen: HashMap::new(), changes: HashMap::new(), warns_at, ends_at }
    }

    /// Sees what came of a call.
    pub(super) fn see(&mut self, call: &Call, outcome: &Outcome) -> Seen {
        // Whoever waits looks again and again.
        if call.name == "job_output" {
            return Seen::Fine;
        }
        let is_change = !outcome.is_error && is_change(&call.name);
        let times = if is_change {
            self.seen.clear();
            self.changes.entry(hash(&(&call.name, &call.arguments))).or_default()
        } else {
            let texts: Vec<&str> = outcome.parts.iter().map(text).collect();
            self.seen.entry(hash(&(&call.name, &call.arguments, texts))).or_default()
        };
        *times += 1;
        match *times {
            times if times >= self.ends_at => Seen::Loops,
            times if times >= self.warns_at => Seen::Repeats(advice(&call.name, outcome.is_error)),
            _ => Seen::Fine,
        }
    }
}

fn is_change(name: &str) -> bool {
    matches!(name, "edit_file" | "write_file" | "delete_file" | "move_file")
}

/// What to do instead.
fn advice(name: &str, is_error: bool) -> &'static str {
    match (name, is_error) {
        ("edit_file", true) => {
            "[The same edit has failed in the same way before. Read the file and copy `old_text` from it exactly, or write \
             the whole file with write_file.]"
        }
        ("edit_file" | "write_file", false) => "[This change was made before. Check what you want, or finish.]",
        ("read_file", false) => {
            "[You have read this before, and it has not changed. Go on with it: make the change, or finish.]"
        }
        (_, true) => "[The same call has failed in the same way before. Do something else, or say what is in the way.]",
        (_, false) => "[The same call had the same result before. Do something else, or finish.]",
    }
}

fn text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Media { data, .. } => data,
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(guard: &mut Guard, name: &str, arguments: &str, outcome: Result<&str, &str>) -> Seen {
        let call = Call { id: String::new(), name: name.into(), arguments: arguments.into() };
        guard.see(&call, &outcome.map_or_else(Outcome::failed, Outcome::done))
    }

    #[test]
    fn the_same_call_with_the_same_outcome_is_warned_about_and_then_ended() {
        let mut guard = Guard::new(false);
        let seen: Vec<Seen> = (1..=6).map(|_| see(&mut guard, "read_file", "{}", Ok("same"))).collect();
        let warning = || Seen::Repeats(advice("read_file", false));
        assert_eq!(seen, [Seen::Fine, Seen::Fine, warning(), warning(), warning(), Seen::Loops]);
    }

    #[test]
    fn what_comes_between_makes_no_difference_unless_it_changes_something() {
        let mut guard = Guard::new(true);
        for round in 1..=4 {
            let read = see(&mut guard, "read_file", "{}", Ok("same"));
            let edit = see(&mut guard, "edit_file", "{}", Err("not there"));
            match round {
                1 => assert_eq!((read, edit), (Seen::Fine, Seen::Fine)),
                4 => assert_eq!((read, edit), (Seen::Loops, Seen::Loops)),
                _ => assert!(matches!((read, edit), (Seen::Repeats(_), Seen::Repeats(_)))),
            }
        }
        see(&mut guard, "write_file", "{}", Ok("written"));
        assert_eq!(see(&mut guard, "read_file", "{}", Ok("same")), Seen::Fine);
    }

    #[test]
    fn to_and_fro_is_a_circle_too() {
        let mut guard = Guard::new(false);
        let seen = (1..=6).map(|_| {
            see(&mut guard, "edit_file", "{\"old\":\"a\"}", Ok("edited"));
            see(&mut guard, "edit_file", "{\"old\":\"b\"}", Ok("edited"))
        });
        assert_eq!(seen.last(), Some(Seen::Loops));
    }

    #[test]
    fn waiting_for_something_that_changes_is_no_loop() {
        let mut guard = Guard::new(true);
        for number in 1..=20 {
            assert_eq!(see(&mut guard, "run_command", "{}", Ok(&number.to_string())), Seen::Fine);
            assert_eq!(see(&mut guard, "job_output", "{}", Ok("nothing new")), Seen::Fine);
        }
    }
}
