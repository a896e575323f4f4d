//! Sessions side by side, in the past, and after a crash.

use std::fs;
use std::sync::Arc;

use crate::driver::*;
use crate::support::Home;

#[test]
fn a_dead_agent_shows_its_last_words_and_is_restarted_by_one_key() {
    for version in ["1", "2"] {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        chat.say("die in the middle");
        chat.see("panicked at in the middle");
        // Typed for what was there before: nothing is copied, and nothing restarted.
        chat.keys("ccr");
        // The queue and what is being written outlive it.
        let screen = chat.answer("panicked at in the middle", "r");
        assert!(screen.contains("has ended") && screen.contains('9'), "{screen}");
        assert!(!chat.raw().windows(5).any(|window| window == b"\x1b]52;"));
        chat.see_ready();
        // The transcript is still there, once, and the session goes on.
        let screen = chat.see("about to die");
        assert_eq!(screen.matches("❯ die in the middle").count(), 1, "{screen}");
        chat.say("say back again");
        chat.until("it answers", |screen| screen.matches("back again").count() > 1);
    }
}

#[test]
fn an_agent_that_never_starts_says_why() {
    let mut chat = Setup::scripted(&[], &["--die", "start"]).start();
    chat.answer("cannot go on", ESC);
    chat.see_gone("cannot go on");
    chat.see("the agent has ended");
    assert_eq!(chat.quit(), 9);

    let chat = Setup::new(&["chat", "--", "/no/such/agent"]).start();
    chat.see("/no/such/agent");
}

fn with_sessions(home: &Arc<Home>, version: &str) -> Chat {
    let list = home.path("sessions.txt");
    if !list.exists() {
        fs::write(&list, "old-one\nold-two\n").unwrap();
    }
    let chat = Setup::scripted(&["--protocol", version], &["--sessions", list.to_str().unwrap()]).home(home).start();
    chat.see_ready();
    chat
}

#[test]
fn the_list_comes_back_where_there_is_nothing_else() {
    let home = Arc::new(Home::new());
    home.run(&["run", "say of the past"]);
    let mut chat = Setup::new(&[]).home(&home).start();
    chat.see("say of the past");
    chat.keys("\x1bOP");
    chat.see("Show all keys");
    chat.keys(ESC);
    chat.see("say of the past");
    chat.keys("of the past");
    chat.see_gone("built in");
    chat.keys(CTRL_D);
    // It is named as the list does.
    let screen = chat.answer("Delete session", "n");
    assert!(screen.contains("say of the past"), "{screen}");
    chat.see("built in");
    chat.keys("of the past");
    chat.see_gone("built in");
    chat.keys(CTRL_D);
    chat.answer("Delete session", "y");
    chat.see("built in");
    chat.see_gone("say of the past");
    chat.keys(ESC);
    assert_eq!(chat.end(), 0);
}

#[test]
fn a_session_in_which_nothing_was_said_is_not_listed() {
    let home = Arc::new(Home::new());
    for args in [&["chat", "-a", "attache"][..], &["chat", "--", &crate::support::scripted()]] {
        let mut chat = Setup::new(args).home(&home).start();
        chat.see_ready();
        assert_eq!(chat.quit(), 0);
        assert!(!chat.screen().contains("to go on with it"), "{}", chat.screen());
    }
    let chat = Setup::new(&[]).home(&home).start();
    let screen = chat.see("built in");
    assert!(!screen.contains("sessions here"), "{screen}");
}

#[test]
fn sessions_are_listed_resumed_and_deleted() {
    for version in ["1", "2"] {
        let home = Arc::new(Home::new());
        let mut chat = with_sessions(&home, version);
        chat.keys(CTRL_T);
        let screen = chat.see("about old-two");
        assert!(screen.contains("2024-02-29"), "{screen}");
        chat.keys("old-one");
        chat.until("it is found", |screen| !screen.contains("old-two"));
        chat.keys(CTRL_D);
        chat.answer("Delete session old-one?", "y");
        eventually("it is deleted", || fs::read_to_string(home.path("sessions.txt")).unwrap() == "old-two\n");
        // Whoever tidies up goes on in the list.
        chat.see("about old-two");
        chat.keys("old-two");
        chat.see("old-two");
        chat.keys(ENTER);
        // A second session, with its history.
        chat.see("what was said long ago");
        chat.see("[2 ");
        chat.say("say on we go");
        chat.until("it answers", |screen| screen.matches("on we go").count() > 1);
        let screen = chat.screen();
        assert!(screen.find("what was said long ago") < screen.find("❯ say on we go"), "{screen}");
    }
}

#[test]
fn history_comes_before_what_was_asked_on_the_command_line() {
    for version in ["1", "2"] {
        let chat = Setup::scripted(&["--protocol", version, "--resume", "s1", "say fresh"], &[]).start();
        chat.until("it is answered", |screen| screen.matches("fresh").count() > 1);
        let screen = chat.see("what was said long ago");
        assert!(screen.find("what was said long ago") < screen.find("❯ say fresh"), "{screen}");
    }
}

#[test]
fn sessions_are_forked_switched_and_closed() {
    let home = Arc::new(Home::new());
    let mut chat = with_sessions(&home, "1");
    chat.say("say in the first");
    chat.see_ready();
    chat.keys(F6);
    chat.see("forked from");
    chat.see("[2 ");
    // What was said before is in the copy, and that it is one is said.
    let screen = chat.see("a copy of ");
    assert!(screen.find("❯ say in the first") < screen.find("a copy of "), "{screen}");
    chat.say("say in the second");
    chat.see("❯ say in the second");
    chat.keys("\x1b[1;3D");
    chat.see("❯ say in the first");
    chat.see_gone("in the second");
    chat.keys("\x1b[1;3C");
    chat.see("❯ say in the second");
    chat.see_ready();
    chat.keys(&alt('w'));
    chat.see("❯ say in the first");
    chat.keys(&alt('w'));
    // Nothing is open: what can be begun is shown.
    chat.see("Who do you want to talk to?");
    chat.keys(ESC);
    assert_eq!(chat.end(), 0);
}

#[test]
fn closing_a_session_that_works_is_asked_first() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("slow");
    chat.see("working");
    chat.keys(&alt('w'));
    chat.answer("Close the session?", "n");
    chat.see_gone("Close the session?");
    chat.keys(&alt('w'));
    chat.answer("Close the session?", "y");
    chat.see("Who do you want to talk to?");
}

#[test]
fn a_bare_command_offers_agents_and_the_sessions_of_the_directory() {
    let home = Arc::new(Home::new());
    let mut chat = Setup::new(&[]).home(&home).start();
    let screen = chat.see("Who do you want to talk to?");
    assert!(screen.contains("▸ attache  built in, with offline:rules"), "{screen}");
    chat.keys(ENTER);
    chat.see_ready();
    chat.say("hello");
    chat.see("I do not understand this: hello");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
    let mut chat = Setup::new(&[]).home(&home).start();
    let screen = chat.see("sessions here");
    assert!(screen.contains("hello  attache, just now"), "{screen}");
    chat.keys("hello");
    chat.see_gone("built in");
    chat.keys(ENTER);
    chat.see("❯ hello");
    chat.see("I do not understand this: hello");
    chat.see_ready();
}

#[test]
fn logging_in_by_the_agent() {
    let home = Arc::new(Home::new());
    let state = home.path("logged-in");
    let agent = ["--auth", "agent", "--state", state.to_str().unwrap()];
    let mut chat = Setup::scripted(&[], &agent).home(&home).start();
    chat.answer("API key", ENTER);
    eventually("the login is done", || state.exists());
    chat.see_gone("╭ ");
    chat.see_ready();
}

#[test]
fn logging_in_in_the_middle_of_a_session() {
    for version in ["1", "2"] {
        let home = Arc::new(Home::new());
        let state = home.path("logged-in");
        std::fs::write(&state, "").unwrap();
        let agent = ["--auth", "agent", "--state", state.to_str().unwrap()];
        let mut chat = Setup::scripted(&["--protocol", version], &agent).home(&home).start();
        chat.see_ready();
        std::fs::remove_file(&state).unwrap();
        chat.say("guarded");
        // Whoever does not want to log in goes on without.
        chat.answer("API key", ESC);
        chat.see_gone("API key");
        // The message is back.
        chat.see("› guarded");
        chat.keys(ENTER);
        chat.answer("API key", ENTER);
        eventually("the login is done", || state.exists());
        chat.see("logged in; send your message again");
        chat.keys(ENTER);
        chat.see("\n  logged in");
        chat.see_ready();
    }
}

#[test]
fn logging_in_in_a_terminal() {
    let home = Arc::new(Home::new());
    let state = home.path("logged-in");
    let agent = ["--auth", "terminal", "--state", state.to_str().unwrap()];
    let mut chat = Setup::scripted(&[], &agent).home(&home).start();
    chat.answer("In a terminal", ENTER);
    // The command is shown, and only a yes runs it.
    chat.answer("--login", "n");
    chat.see("▸ In a terminal");
    assert!(!state.exists());
    // A key that was meant for the list does not answer what comes after it.
    chat.answer("▸ In a terminal", "\ry");
    chat.answer("--login", "y");
    eventually("the login is done", || state.exists());
    chat.see_gone("╭ ");
    chat.see_ready();
}

#[test]
fn a_draft_survives_a_kill() {
    let home = Arc::new(Home::new());
    let mut chat = Setup::scripted(&[], &[]).home(&home).start();
    chat.see_ready();
    chat.say("slow");
    chat.see("working");
    chat.say("queued words");
    chat.see("1 waiting");
    chat.keys("half a sent");
    let drafts = home.path("state/attache/chat/drafts");
    let is_kept = || {
        let files = fs::read_dir(&drafts).into_iter().flatten().flatten().map(|file| file.path());
        // Not one that is being written: it is a draft when it has its name.
        let mut drafts = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        drafts.any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("half a sent")))
    };
    eventually("the draft is kept", is_kept);
    chat.signal(libc::SIGKILL);
    assert_eq!(chat.end(), -libc::SIGKILL);
    // What waited waits for a key; what was being written is there.
    let mut chat = Setup::scripted(&[], &[]).home(&home).start();
    chat.see("› half a sent");
    chat.see_ready();
    chat.keys("ence");
    let screen = chat.see("half a sentence");
    assert!(screen.contains("1 waiting") && !screen.contains("❯ queued words"), "{screen}");
    chat.keys(CTRL_C);
    chat.see_gone("half a sentence");
    chat.keys(ENTER);
    chat.see("❯ queued words");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
    assert!(!is_kept());
}

#[test]
fn a_call_that_its_agent_did_not_live_to_end_is_cancelled() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    chat.say("allow uname; die now");
    chat.answer("[y] yes", "y");
    chat.answer("panicked at now", ESC);
    chat.see_gone("panicked at now");
    chat.see("Something for later · cancelled");
}

#[test]
fn a_session_that_nobody_knows_is_looked_up_in_the_list() {
    for version in ["1", "2"] {
        let chat = Setup::scripted(&["--protocol", version, "--resume", "unknown"], &[]).start();
        chat.see("attache sessions list");
    }
}
