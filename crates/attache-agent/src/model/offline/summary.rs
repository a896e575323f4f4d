//! What is answered where there are no tools: the agent wants a summary of the conversation, or a title for it.

use super::show::brief;
use super::speak::{Answer, Bit};
use super::stage::texts;
use crate::model::{EndReason, Message, Request};

/// How many lines a summary has.
const LINES: usize = 10;

/// A summary: what the person said, a line each.
pub(super) fn answer(request: &Request) -> Answer {
    let said = request.messages.iter().filter_map(|message| match message {
        Message::User { parts } => texts(parts).map(|text| brief(text, 100)).find(|line| !line.is_empty()),
        _ => None,
    });
    let mut said: Vec<String> = said.collect();
    let text = if request.system.to_lowercase().contains("title") {
        said.first().map_or_else(|| "A conversation".into(), |first| brief(first, 50))
    } else if said.is_empty() {
        "Nothing was said.".into()
    } else {
        // The first and the last are what matters most.
        let left_out = said.len().saturating_sub(LINES - 2);
        if left_out > 1 {
            said.splice(1..=left_out, [format!("… and {left_out} more")]);
        }
        format!("What was asked for:\n- {}", said.join("\n- "))
    };
    Answer { bits: vec![Bit::Text(text)], calls: Vec::new(), reason: EndReason::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(system: &str, said: &[&str]) -> String {
        let messages = said.iter().map(|said| Message::user(*said)).collect();
        let answer = answer(&Request { system: system.into(), messages, ..Request::default() });
        let [Bit::Text(text)] = &answer.bits[..] else { panic!("{answer:?}") };
        text.clone()
    }

    #[test]
    fn a_summary_has_a_line_for_what_was_said_and_no_more_than_ten() {
        assert_eq!(summary("Summarise.", &["read a\nlist", " ", "run x"]), "What was asked for:\n- read a…\n- run x");
        assert_eq!(summary("Summarise.", &[]), "Nothing was said.");
        for count in 1..30 {
            let said: Vec<_> = (0..count).map(|number| format!("say {number}")).collect();
            let text = summary("", &said.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(text.contains("say 0") && text.ends_with(&format!("say {}", count - 1)), "{text}");
        }
    }

    #[test]
    fn a_title_is_the_first_words() {
        assert_eq!(summary("Give it a title.", &["fix the\nbug", "run x"]), "fix the…");
        assert_eq!(summary("Title?", &[]), "A conversation");
    }
}
