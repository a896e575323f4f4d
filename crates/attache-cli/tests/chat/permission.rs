//! The permission dialog.

use crate::driver::*;

fn chat(version: &str) -> Chat {
    let chat = Setup::scripted(&["--protocol", version], &[]).start();
    chat.see_ready();
    chat
}

#[test]
fn keys_right_after_a_question_are_no_answer() {
    let mut chat = chat("1");
    chat.say("ask touch x");
    chat.see("[y] yes");
    // Typed for what was there before: it neither allows nor denies.
    chat.keys("yyyy\r");
    chat.answer("[y] yes", "n");
    chat.see("command denied");
}

#[test]
fn yes_and_no_are_told_to_the_agent() {
    for version in ["1", "2"] {
        let mut chat = chat(version);
        chat.say("ask touch x");
        let screen = chat.answer("[y] yes", "y");
        assert!(screen.contains("$ touch x") && screen.contains("╭ ") && screen.contains("[N] no"), "{screen}");
        chat.see("command allowed");
        chat.see_ready();
        chat.say("ask touch y");
        // Enter alone is no.
        chat.answer("$ touch y", ENTER);
        chat.see("command denied");
        chat.see_ready();
        chat.say("ask touch z");
        // Ctrl-C is no as well, and ends the turn.
        chat.answer("$ touch z", CTRL_C);
        chat.see_ready();
        chat.see_gone("[y] yes");
    }
}

#[test]
fn the_conversation_ends_above_the_question_and_a_note_takes_one_row() {
    let mut chat = chat("1");
    chat.say("say why I want it; ask touch x");
    let screen = chat.see("[y] yes");
    let (above, _) = screen.split_once("╭ ").unwrap();
    assert!(above.contains("❯ say why I want it") && above.contains("\n  why I want it"), "{screen}");
    chat.answer("[y] yes", "n");
    chat.see_ready();
    chat.keys(CTRL_C);
    let screen = chat.see("once more leaves");
    assert!(screen.contains("command denied"), "{screen}");
}

#[test]
fn the_keys_of_a_question_are_seen_in_the_smallest_window() {
    let mut chat = Setup::scripted(&[], &[]).size(20, 6).start();
    chat.see_ready();
    chat.say("ask touch x");
    chat.see("[y] yes");
}

#[test]
fn a_reason_reaches_the_agent() {
    for version in ["1", "2"] {
        let mut chat = chat(version);
        chat.say("ask rm file");
        chat.answer("[y] yes", "?");
        chat.see("do not do it, and tell the agent why");
        chat.keys(" ");
        chat.see_gone("tell the agent why");
        chat.keys("r");
        chat.see("no, because:");
        chat.keys("it is mine");
        chat.see("it is mine");
        chat.keys(ENTER);
        chat.see("command denied");
        // It is the next prompt, which this agent says back.
        chat.see("❯ it is mine");
        chat.until("the agent has it", |screen| screen.matches("it is mine").count() >= 3);
    }
}

#[test]
fn several_questions_queue() {
    for version in ["1", "2"] {
        let mut chat = chat(version);
        chat.say("asks");
        chat.answer("1 of 3", "y");
        chat.answer("1 of 2", "n");
        chat.see_gone("1 of 2");
        chat.answer("[y] yes", "y");
        chat.see("answers: yes no yes");
    }
}

#[test]
fn a_question_that_is_taken_back_leaves_the_screen() {
    let mut chat = chat("2");
    chat.say("withdraw");
    chat.see("[y] yes");
    chat.see("withdrawn.");
    chat.see_gone("[y] yes");
    chat.see_ready();
}

#[test]
fn a_question_in_the_background_is_seen_everywhere() {
    let mut chat = chat("1");
    chat.say("title Behind; slowly a b c d e f g h i j k l m n o p q r s t u v w x y z; ask touch behind");
    chat.see("a b c");
    chat.keys(&alt('n'));
    // Two sessions; the new one is on the screen.
    chat.see("[2 ");
    let screen = chat.answer("$ touch behind", "y");
    assert!(screen.contains("in the session `Behind`"), "{screen}");
    chat.see_gone("$ touch behind");
    chat.keys("\x1b[1;3D");
    chat.see("command allowed");
}

#[test]
fn a_long_change_can_be_scrolled_and_the_choices_stay() {
    let mut chat = chat("1");
    let script = (0..150).map(|line| format!("echo line-{line}")).collect::<Vec<_>>().join(" && ");
    chat.paste(&format!("ask {script}"));
    chat.keys(ENTER);
    chat.answer("more lines below", "\x1b[6~");
    let screen = chat.see("[y] yes");
    assert!(screen.contains("[N] no"), "{screen}");
    chat.keys("n");
    chat.see("command denied");
}

#[test]
fn a_question_that_an_agent_paints_is_no_question() {
    let mut chat = chat("1");
    chat.say("paint; slow");
    let screen = chat.see("[y] yes");
    // It is a part of the transcript: the composer is below it, and takes the keys.
    let at =
        |text: &str| screen.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(screen.lines().skip(at("[y] yes")).any(|line| line.starts_with("›")), "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with('╭')), "{screen}");
    chat.keys("y");
    chat.see("› y");
    chat.keys("\x7f");
    chat.keys(ESC);
    chat.see_ready();
    chat.say("ask touch real");
    chat.see("$ touch real");
    let screen = chat.screen();
    // The real one is framed from edge to edge, at the bottom, and the composer is gone.
    assert!(screen.lines().last().unwrap().starts_with('╰'), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with('╭') && line.ends_with('╮')), "{screen}");
}
