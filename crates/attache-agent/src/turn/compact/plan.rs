//! What of a conversation stays, and what is summed up, so that the rest fits by construction.

use crate::model::{Message, Part};
use crate::tokens;

use super::transcript;

/// What becomes of a conversation.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// The first prompt, which says what all of it is about.
    pub(super) first: Option<Message>,
    /// What is summed up.
    pub(super) older: Vec<Message>,
    /// The prompts of the turn that runs, where they would be among the older ones.
    prompts: Vec<Message>,
    /// What stays as it is.
    recent: Vec<Message>,
    /// How long the summary may be.
    pub(super) summary_bytes: usize,
}

/// A summary shorter than this, in tokens, helps nobody.
const LEAST_SUMMARY: u64 = 150;

impl Plan {
    /// Divides messages that should take no more than `room` tokens. `summary` and `prompts` are where the last summary and
    /// the prompts of the last turn are. `None` if there is nothing that could be summed up.
    pub(super) fn of(
        messages: &[Message],
        summary: Option<usize>,
        prompts: &[usize],
        room: u64,
        is_asked: bool,
    ) -> Option<Plan> {
        let has_first = summary != Some(0) && matches!(messages.first(), Some(Message::User { .. }));
        let start = summary.map_or(usize::from(has_first), |summary| summary + 1);
        // What was said in the turn that runs stays whole, or the last of it if all is too long; the rest shares what it leaves.
        let size = |prompts: &[usize]| prompts.iter().map(|at| tokens::of_message(&messages[*at])).sum::<u64>();
        let prompts = if size(prompts) <= room { prompts } else { &prompts[prompts.len().saturating_sub(1)..] };
        let rest = room.saturating_sub(size(prompts));
        let recent_room = if is_asked { rest / 10 } else { rest / 3 };
        let is_prompt = |at: usize| prompts.contains(&at);
        let cost = |at: usize| if is_prompt(at) { 0 } else { tokens::of_message(&messages[at]) };

        let groups = groups(messages, start);
        let mut from = messages.len();
        let mut taken = 0;
        for group in groups.iter().rev() {
            taken += group.clone().map(cost).sum::<u64>();
            if taken > recent_room {
                break;
            }
            from = group.start;
        }
        let older = |from: usize| (start..from).filter(|at| !is_prompt(*at)).count();
        if older(from) == 0 {
            // It all seems to fit, and yet it is too long, or the person wants it shorter: the turn that runs is kept, or
            // its last step, or nothing.
            let turn = prompts.first().map_or(start, |at| *at);
            let last = groups.last().map_or(start, |group| group.start);
            let steps = [turn, if is_asked { messages.len() } else { last }];
            from = steps.into_iter().find(|from| older(*from) > 0)?;
        }
        let mut recent = messages[from..].to_vec();
        let last = groups.last().filter(|group| from == messages.len() && group.len() > 1 && !is_asked);
        let mut end = from;
        if let Some(last) = last
            && let Some(shorter) = shortened(&messages[last.clone()], recent_room)
        {
            // The model has to see what came of its last calls, or it makes them again.
            end = last.start;
            recent = shorter;
        }
        let first = messages.first().filter(|_| has_first);
        let first = first.map(|first| if is_prompt(0) { first.clone() } else { prompt_within(first, rest / 4) });
        let older = (start..end).filter(|at| !is_prompt(*at)).map(|at| messages[at].clone()).collect();
        let older_prompts = prompts.iter().filter(|at| (start..end).contains(*at));
        let prompts = older_prompts.map(|at| messages[*at].clone()).collect();
        let summary_bytes = tokens::bytes((rest / 4).max(LEAST_SUMMARY));
        Some(Plan { first, older, prompts, recent, summary_bytes })
    }

    /// The messages with a summary in the place of the older ones, and where it is.
    pub(super) fn with_summary(self, summary: Message) -> (Vec<Message>, usize) {
        let at = usize::from(self.first.is_some());
        let messages = self.first.into_iter().chain([summary]).chain(self.prompts).chain(self.recent);
        (messages.collect(), at)
    }
}

/// Messages that cannot be parted: an answer and the results of its calls.
fn groups(messages: &[Message], start: usize) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, message) in messages.iter().enumerate().skip(start) {
        match (message, groups.last_mut()) {
            (Message::Tool { .. }, Some(last)) => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// An answer and the results of its calls, with results that are short enough. `None` if the calls alone are too long.
fn shortened(group: &[Message], room: u64) -> Option<Vec<Message>> {
    let (answer, results) = group.split_first()?;
    let calls = tokens::of_message(answer) + results.len() as u64 * RESULT_COST;
    let each = room.checked_sub(calls)? / results.len().max(1) as u64;
    let result = |message: &Message| match message {
        Message::Tool { id, name, parts, is_error } => {
            let parts = parts_within(parts, each);
            Message::Tool { id: id.clone(), name: name.clone(), parts, is_error: *is_error }
        }
        other => other.clone(),
    };
    Some(std::iter::once(answer.clone()).chain(results.iter().map(result)).collect())
}

/// What a result costs beside its text, with the line that says that it was cut.
const RESULT_COST: u64 = 40;

/// A prompt as it was, or its beginning and end if it is too long for what it is worth later.
fn prompt_within(prompt: &Message, room: u64) -> Message {
    match prompt {
        Message::User { parts } => Message::User { parts: parts_within(parts, room) },
        other => other.clone(),
    }
}

/// Parts that are no more than so many tokens: all of them, or the text that fits, and the names of the media.
fn parts_within(parts: &[Part], room: u64) -> Vec<Part> {
    if parts.iter().map(tokens::of_part).sum::<u64>() <= room {
        return parts.to_vec();
    }
    vec![Part::text(transcript::cut(&transcript::text_of(parts), tokens::bytes(room)))]
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
