//! Tests of what stays of a conversation.

use super::*;
use crate::conversation::Conversation;
use crate::model::Call;

/// Messages of one letter each: `p` is a prompt, `h` what was said in mid-turn, `a` an answer, `c` a call with its result;
/// capitals are long.
fn messages(letters: &str) -> Vec<Message> {
    let mut messages = Vec::new();
    for (at, letter) in letters.chars().enumerate() {
        let size = if letter.is_uppercase() { 4000 } else { 40 };
        let text = format!("{letter}{at} {}", "x".repeat(size));
        match letter.to_ascii_lowercase() {
            'p' | 'h' | 's' => messages.push(Message::user(text)),
            'a' => messages.push(Message::Assistant { text, calls: Vec::new(), opaque: None }),
            _ => {
                let call = Call { id: at.to_string(), name: "read".into(), arguments: format!("{letter}{at}") };
                messages.push(Message::Assistant { text: String::new(), calls: vec![call], opaque: None });
                let parts = vec![Part::text(text)];
                messages.push(Message::Tool { id: at.to_string(), name: "read".into(), parts, is_error: false });
            }
        }
    }
    messages
}

/// The first words of messages; `…` behind those that were cut.
fn words(messages: &[Message]) -> String {
    let word = |message: &Message| match message {
        Message::User { parts } | Message::Tool { parts, .. } => {
            let text = transcript::text_of(parts);
            let mark = if text.contains("left out") { "…" } else { "" };
            format!("{}{mark}", text.split(' ').next().unwrap_or_default())
        }
        Message::Assistant { text, calls, .. } => match calls.first() {
            Some(call) => call.arguments.clone(),
            None => text.split(' ').next().unwrap_or_default().to_owned(),
        },
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What is summed up, and what the conversation is afterwards. `s` in the letters is the summary.
fn check(letters: &str, room: u64, is_asked: bool, older: &str, kept: &str) {
    let messages = messages(letters);
    let summary = letters.find('s');
    let in_turn = letters.to_ascii_lowercase().rsplit('p').next().unwrap_or_default().matches('h').count();
    let mut conversation = Conversation::new(messages.clone(), summary, None);
    conversation.turn_prompts = 1 + in_turn;
    match Plan::of(&messages, summary, &conversation.prompts_of_turn(), room, is_asked) {
        None => assert_eq!(("", ""), (older, kept), "{letters}"),
        Some(plan) => {
            assert_eq!(words(&plan.older), older, "{letters}");
            let (messages, at) = plan.with_summary(Message::user("SUMMARY"));
            assert_eq!(words(&messages), kept, "{letters}");
            assert_eq!(messages[at], Message::user("SUMMARY"), "{letters}");
        }
    }
}

#[test]
fn the_first_prompt_and_what_was_said_last_stay() {
    // A thousand tokens, a third of them for what was said last: twenty short ones and no long one.
    check("pApApa", 1000, false, "A1 p2 A3", "p0 SUMMARY p4 a5");
    check("pcCcp", 1000, false, "c1 c1 C2 C2", "p0 SUMMARY c3 c3 p4");
    // The prompt that is being answered stays, however long ago it was.
    check("papCCc", 1000, false, "a1 C3 C3 C4 C4", "p0 SUMMARY p2 c5 c5");
    // A first prompt that is too long for what it is worth later is cut.
    check("PApa", 1000, false, "A1", "P0… SUMMARY p2 a3");
}

#[test]
fn what_was_said_in_mid_turn_stays_and_so_does_the_prompt_before_it() {
    check("papah", 100_000, false, "a1", "p0 SUMMARY p2 a3 h4");
    check("papCChCc", 1000, false, "a1 C3 C3 C4 C4 C6 C6", "p0 SUMMARY p2 h5 c7 c7");
    check("psCh", 100_000, false, "C2 C2", "p0 SUMMARY h3");
    // Of what is too long together, the last stays.
    check("paPaH", 1500, false, "a1 P2", "p0 SUMMARY a3 H4");
}

#[test]
fn a_summary_takes_the_place_of_the_one_before() {
    check("psApa", 1000, false, "A2", "p0 SUMMARY p3 a4");
    // In older logs it was all that was left.
    check("sApa", 1000, false, "A1", "SUMMARY p2 a3");
}

#[test]
fn a_result_that_is_too_long_is_cut_and_its_call_stays() {
    check("pC", 1000, false, "", "p0 SUMMARY C1 C1…");
    check("paC", 1000, false, "a1", "p0 SUMMARY C2 C2…");
    // A call that is too long itself is summed up.
    check("pA", 100, false, "A1", "p0 SUMMARY");
}

#[test]
fn what_seems_to_fit_is_still_made_shorter() {
    check("papapa", 100_000, false, "a1 p2 a3", "p0 SUMMARY p4 a5");
    check("pcccc", 100_000, false, "c1 c1 c2 c2 c3 c3", "p0 SUMMARY c4 c4");
    check("pap", 100_000, false, "a1", "p0 SUMMARY p2");
    for nothing in ["", "p", "pc", "ps"] {
        check(nothing, 100_000, false, "", "");
    }
}

#[test]
fn a_person_who_asks_gets_it_as_short_as_it_can_be() {
    check("pa", 100_000, true, "a1", "p0 SUMMARY");
    check("papa", 100_000, true, "a1", "p0 SUMMARY p2 a3");
    check("pspa", 100_000, true, "a3", "p0 SUMMARY p2");
    check("p", 100_000, true, "", "");
    check("ps", 100_000, true, "", "");
}

/// Whatever the conversation is, what stays of it is no longer than it may be.
#[test]
fn what_stays_fits() {
    let mut dice = 7u64;
    for _ in 0..2000 {
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (dice >> 33) % sides
        };
        let mut letters = String::from("p");
        for _ in 0..roll(12) {
            letters.push(['p', 'a', 'c', 'A', 'C', 'P'][roll(6) as usize]);
        }
        let messages = messages(&letters);
        let prompt = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
        let room = 300 + roll(6000);
        let prompt_size = prompt.map_or(0, |at| tokens::of_message(&messages[at]));
        let Some(plan) = Plan::of(&messages, None, prompt.as_slice(), room, false) else { continue };
        let rest = room.saturating_sub(prompt_size);
        let summary = plan.summary_bytes;
        let (kept, _) = plan.with_summary(Message::user("x".repeat(summary)));
        let limit = prompt_size + rest + LEAST_SUMMARY + 20;
        assert!(tokens::of_messages(&kept) <= limit, "{letters} {room}: {}", tokens::of_messages(&kept));
    }
}
