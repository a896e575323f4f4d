//! Turns: prompts, answers, tools, the queue, cancelling.

use crate::driver::*;

/// Both versions of the protocol.
const VERSIONS: [&str; 2] = ["1", "2"];

#[test]
fn the_built_in_agent_answers() {
    let mut chat = Setup::new(&["chat", "-a", "attache", "--sandbox", "none"]).start();
    chat.see_ready();
    chat.say("hello");
    chat.see("❯ hello");
    chat.see("I do not understand this: hello");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
    assert!(!chat.has_alternate_screen());
}

#[test]
fn the_composer_takes_keys_while_the_agent_starts() {
    let mut chat = Setup::scripted(&[], &["--hang"]).start();
    chat.see("starting");
    chat.keys("early words");
    chat.see("early words");
    chat.keys(ENTER);
    // It waits, and is not lost.
    chat.see("1 waiting");
    assert_eq!(chat.quit(), 0);
}

#[test]
fn an_answer_streams_in() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        chat.say("slowly # The title and **bold** words; think it over; say done");
        chat.see("Thought (1 line) it over");
        let screen = chat.see("done");
        assert!(screen.contains("The title and bold words"), "{screen}");
        chat.see_ready();
        // What is folded can be opened.
        chat.keys(&alt('o'));
        chat.until("the thought opens", |screen| screen.contains("▾ Thought"));
    }
}

#[test]
fn a_first_prompt_can_be_given_on_the_command_line() {
    let chat = Setup::scripted(&["say hello there"], &[]).start();
    chat.see("❯ say hello there");
    chat.until("it is answered", |screen| screen.matches("hello there").count() > 1);
}

#[test]
fn plans_usage_and_places_are_shown() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &["--generous"]).start();
        chat.see_ready();
        chat.say("steps now; spend; at /tmp/file.rs; compact; title My talk");
        chat.see("dig a hole");
        chat.see("Plan (0/2)");
        chat.see("$1.50");
        chat.see("25% of 200k");
        chat.see("file.rs:42");
        chat.see("Small");
        chat.see_ready();
        chat.say("steps done");
        // In place, not once more.
        let screen = chat.see("Plan (2/2)");
        assert_eq!(screen.matches("Plan (").count(), 1, "{screen}");
        // What is done takes no room when the turn is over.
        chat.see_ready();
        chat.see_gone("dig a hole");
    }
}

#[test]
fn a_change_is_shown_as_a_diff() {
    let mut chat = Setup::scripted(&["--permissions", "all"], &[]).start();
    chat.see_ready();
    let path = chat.home.path("a.txt").display().to_string();
    chat.say(&format!("edit {path}"));
    let screen = chat.see("+1 -1");
    assert!(screen.contains("- old") && screen.contains("+ new") && screen.contains("same"), "{screen}");
    chat.see("edit allowed");
}

#[test]
fn a_command_is_shown_as_it_runs_and_killed_by_a_key() {
    let mut chat = Setup::scripted(&["--protocol", "1", "--permissions", "all"], &[]).start();
    chat.see_ready();
    chat.say("term echo 'be''gun' && sleep 60");
    // The output is there while the command runs.
    let screen = chat.see("begun");
    assert!(!screen.contains("signal Some"), "{screen}");
    chat.keys(&alt('k'));
    chat.see("signal Some(\"SIG");
    chat.see_ready();
}

#[test]
fn a_command_is_killed_wherever_the_focus_is() {
    let mut chat = Setup::scripted(&["--protocol", "1", "--permissions", "all"], &[]).start();
    chat.see_ready();
    chat.say("say first");
    chat.see_ready();
    chat.say("term echo 'be''gun' && sleep 60");
    chat.see("begun");
    // In the transcript, on another entry. The keys that are told are those of the transcript.
    chat.keys(&alt('t'));
    chat.see("esc write");
    chat.keys("KKKK");
    chat.keys("x");
    chat.see("signal Some(\"SIG");
}

#[test]
fn a_command_of_the_agents_own_is_cancelled_alone() {
    let mut chat = Setup::scripted(&["--protocol", "2"], &[]).start();
    chat.see_ready();
    chat.say("own make all");
    chat.see("green output");
    chat.keys(&alt('k'));
    chat.see("the command was cancelled alone");
    chat.see_ready();
    chat.say("cancellable");
    chat.see("A long search");
    chat.keys(&alt('k'));
    chat.see("the tool call was cancelled alone");
}

#[test]
fn what_cannot_be_ended_alone_says_so() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    chat.say("say nothing runs");
    chat.see_ready();
    chat.keys(&alt('k'));
    chat.see("nothing runs here that can be ended alone");
}

#[test]
fn messages_queue_while_the_agent_works_and_can_be_edited() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        chat.say("slow");
        chat.see("working");
        chat.say("say first");
        chat.see("1 waiting");
        chat.say("say second");
        chat.see("2 waiting");
        // The last one comes back to be edited.
        chat.keys(UP);
        chat.see("1 waiting");
        chat.keys(" indeed");
        chat.keys(ENTER);
        chat.see("2 waiting");
        chat.keys(ESC);
        chat.see("enter send");
        // A cancel leaves the queue alone; Enter sends the next, and the rest follows.
        let screen = chat.screen();
        assert!(screen.contains("2 waiting") && !screen.contains("❯ say first"), "{screen}");
        chat.keys(ENTER);
        chat.see("❯ say first");
        chat.see("❯ say second indeed");
        chat.see_ready();
        chat.see_gone("waiting:");
    }
}

#[test]
fn a_draft_agent_is_steered_and_another_is_not() {
    let mut chat = Setup::scripted(&["--protocol", "2"], &[]).start();
    chat.see_ready();
    chat.say("await");
    chat.see("waiting for you");
    chat.keys("to the left");
    chat.see("to the left");
    chat.keys(&alt('s'));
    chat.see("steered: to the left");
    chat.see_ready();

    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    chat.say("slow");
    chat.see("working");
    chat.keys("to the left");
    chat.see("to the left");
    chat.keys(&alt('s'));
    // It waits for the end of the turn.
    chat.see("1 waiting");
}

#[test]
fn a_turn_that_does_not_stop_can_be_left_by_restarting() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    chat.say("deaf");
    chat.see("working");
    chat.keys(ESC);
    chat.see("cancelling");
    chat.see("f5 restart");
    // Said without being asked, after a while.
    chat.see("F5 restarts it and resumes the session");
    chat.keys(F5);
    chat.see_ready();
    // What was said stays.
    chat.see("❯ deaf");
    chat.say("say alive");
    chat.until("it answers", |screen| screen.matches("alive").count() > 1);
}

#[test]
fn what_is_said_between_turns_is_shown() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        chat.say("say now; later and one more thing");
        chat.until("it comes", |screen| screen.matches("and one more thing").count() > 1);
        chat.see_ready();
    }
}

#[test]
fn a_retry_that_an_agent_tells_of_counts_down() {
    let mut chat = Setup::scripted(&["--protocol", "2"], &[]).start();
    chat.see_ready();
    chat.say("notice overloaded, trying again in 30 s; await");
    chat.see("waiting for you");
    chat.keys("go on");
    chat.see("go on");
    chat.keys(&alt('s'));
    chat.see("steered: go on");
    chat.say("notice overloaded, trying again in 30 s; hush");
    chat.see("retry in 30 s");
    chat.see("retry in 29 s");
}

#[test]
fn modes_and_options_are_changed() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &["--generous"]).start();
        chat.see_ready();
        chat.see("· Ask");
        chat.keys(SHIFT_TAB);
        chat.see("· Auto");
        chat.keys(F2);
        chat.see("╭ options");
        chat.keys("model");
        chat.keys(ENTER);
        chat.see("Large");
        chat.keys(DOWN);
        chat.keys(ENTER);
        chat.see_gone("╭ ");
        chat.see("Large");
        chat.say("session");
        chat.see("auto large-2");
    }
}

#[test]
fn forms_are_filled_in() {
    for version in VERSIONS {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        chat.say("form");
        chat.see("Who are you?");
        // Typed for what was there before.
        chat.keys("gone");
        chat.answer("Your name", "Ada");
        chat.see("Ada");
        chat.keys(TAB);
        chat.keys(" ");
        chat.see("◉ yes");
        // Ctrl-S sends it from anywhere.
        chat.keys("\x13");
        chat.see("form accepted name=Ada sure=true");
        chat.say("form");
        chat.answer("Who are you?", ESC);
        chat.see("form declined");
    }
}

#[test]
fn a_page_is_opened_only_with_consent() {
    let mut chat = Setup::scripted(&["--protocol", "2"], &[]).start();
    chat.see_ready();
    chat.say("url https://example.org/path?x=1");
    let screen = chat.answer("https://example.org/path?x=1", "n");
    assert!(screen.contains("example.org"), "{screen}");
    chat.see("page declined");
    chat.say("url https://example.org/copied");
    chat.answer("https://example.org/copied", "c");
    let copied = "aHR0cHM6Ly9leGFtcGxlLm9yZy9jb3BpZWQ=";
    chat.see_raw(&format!("\x1b]52;c;{copied}\x07"));
    // To copy is no answer.
    let screen = chat.see("[o] open in the browser");
    assert!(!screen.contains("page accepted"), "{screen}");
    chat.keys("n");
    chat.until("it is declined", |screen| screen.matches("page declined").count() > 1);
    // Nothing but the web is opened.
    chat.see_ready();
    chat.say("url file:///etc/passwd");
    chat.see("page declined");
}

#[test]
fn an_entry_is_copied() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("say xyzzy");
    chat.see_ready();
    chat.keys(&alt('c'));
    chat.see("given to the terminal's clipboard: xyzzy");
    chat.see_raw("\x1b]52;c;");
}

#[test]
fn a_turn_is_undone_by_the_agents_own_command() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.keys(F8);
    chat.see("no command to undo");
    chat.say("offer-undo");
    chat.see_ready();
    chat.keys("half a thought");
    chat.see("half a thought");
    chat.keys(F8);
    chat.see("❯ /undo");
    // What was being written stays.
    chat.see("half a thought");
}

#[test]
fn a_bell_rings_when_a_turn_ends_while_nobody_looks() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("say one");
    chat.see_ready();
    assert!(!chat.raw().contains(&7), "nobody was away");
    chat.keys(FOCUS_LOST);
    chat.say("say two");
    chat.see_raw("\x07");
    chat.keys(FOCUS_GAINED);
}

#[test]
fn a_failed_turn_says_why_and_the_next_one_works() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    chat.say("error");
    chat.see("broke");
    chat.see_ready();
    // The message is there to be mended.
    chat.see("› error");
    chat.keys(CTRL_C);
    chat.see_gone("› error");
    chat.say("say well again");
    chat.until("it answers", |screen| screen.matches("well again").count() > 1);
}

#[test]
fn keys_come_through_while_an_agent_floods() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("flood 20000");
    chat.keys("typed in the flood");
    chat.see("typed in the flood");
    chat.see("19999");
    chat.see("enter send");
}
