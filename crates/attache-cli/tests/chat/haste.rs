//! Keys that are typed while something else comes up.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use crate::driver::*;

#[test]
fn a_question_waits_until_the_keys_rest() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("ask touch x");
    // Somebody writes the next message, and every letter of it would be a yes.
    let mut typed = 0;
    while !chat.screen().contains("a question waits until you stop typing") || typed < 20 {
        chat.keys("y");
        typed += 1;
        assert!(typed < 200, "{}", chat.screen());
        thread::sleep(Duration::from_millis(30));
        if chat.screen().contains("[y] yes") && typed == 1 {
            // It was there before the first letter.
            chat.see("[y] yes");
        }
    }
    let screen = chat.screen();
    assert!(!screen.contains("command allowed"), "{screen}");
    chat.answer("[y] yes", "n");
    chat.see("command denied");
    // What was written is still there.
    chat.see("› yyyyyyyy");
}

#[test]
fn a_question_that_comes_in_front_of_another_has_a_grace_of_its_own() {
    let words = |count: usize| "w ".repeat(count);
    let mut chat = Setup::scripted(&[], &[]).size(100, 30).start();
    chat.see_ready();
    chat.paste(&format!("title Behind; slowly {}; ask touch behind", words(60)));
    chat.keys(ENTER);
    chat.see("w w w");
    chat.keys(&alt('n'));
    chat.see("[2 ");
    chat.see_ready();
    chat.paste(&format!("slowly {}; ask touch front", words(200)));
    chat.keys(ENTER);
    // The one in the background can be answered for a while, and then the other one is in its place.
    chat.see("$ touch behind");
    chat.see("$ touch front");
    chat.keys("y");
    thread::sleep(Duration::from_millis(200));
    let screen = chat.screen();
    assert!(screen.contains("$ touch front") && !screen.contains("command allowed"), "{screen}");
    chat.answer("$ touch front", "n");
    chat.see("command denied");
    // And so has the other one when it comes back.
    chat.see("$ touch behind");
    chat.keys("y");
    chat.see("wait: what was typed before is no answer");
    chat.answer("$ touch behind", "n");
    chat.see_gone("$ touch behind");
}

#[test]
fn ctrl_c_refuses_and_twice_leaves() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("asks");
    chat.see("[y] yes");
    chat.keys(CTRL_C);
    chat.see("once more leaves");
    chat.keys(CTRL_C);
    assert_eq!(chat.end(), 0);
}

#[test]
fn an_agent_that_does_not_stop_asking_is_refused_by_one_key() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    let asked: Vec<String> = (0..12).map(|number| format!("ask touch file-{number}")).collect();
    chat.paste(&asked.join("; "));
    chat.keys(ENTER);
    for number in 0..5 {
        let screen = chat.answer(&format!("$ touch file-{number}"), "n");
        assert!(!screen.contains("ctrl-n refuses"), "{screen}");
    }
    chat.see("ctrl-n refuses all of this turn");
    chat.answer("$ touch file-5", CTRL_N);
    // The other seven are refused too, and the next turn is asked about.
    chat.see_ready();
    let screen = chat.screen();
    assert!(!screen.contains("[y] yes") && !screen.contains("command allowed"), "{screen}");
    chat.say("ask touch again");
    chat.answer("$ touch again", "y");
    chat.see("command allowed");
}

#[test]
fn an_agent_that_asks_can_be_restarted_and_left() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("ask touch x");
    // The sessions stand over the question, which comes back.
    chat.answer("[y] yes", CTRL_T);
    chat.see("╭ Who");
    chat.keys(ESC);
    chat.answer("[y] yes", F5);
    chat.see_gone("[y] yes");
    chat.see_ready();
    chat.say("ask touch y");
    chat.answer("[y] yes", &alt('w'));
    chat.answer("Close the session?", "y");
    chat.see("╭ Who");
}

#[test]
fn a_terminal_that_is_closed_ends_quietly() {
    let setup = Setup::scripted(&[], &[]);
    let (mut child, mut terminal) = setup.spawn();
    let mut screen = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
    let mut buffer = [0; 4096];
    while !screen.screen().contents().contains("enter send") {
        let length = terminal.read(&mut buffer).unwrap();
        screen.process(&buffer[..length]);
    }
    drop(terminal);
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(143), None));
}

#[test]
fn the_pager_is_left_for_the_question() {
    let setup = Setup::scripted(&[], &[]);
    let pager = setup.home.path("pager.sh");
    fs::write(&pager, "#!/bin/sh\ncat > \"$HOME/paged.txt\"\n").unwrap();
    fs::set_permissions(&pager, fs::Permissions::from_mode(0o755)).unwrap();
    let mut chat = setup.env("PAGER", pager.to_str().unwrap()).start();
    chat.see_ready();
    let script = (0..150).map(|line| format!("echo line-{line}")).collect::<Vec<_>>().join(" && ");
    chat.paste(&format!("ask {script}"));
    chat.keys(ENTER);
    // Nobody has seen the end: each yes goes on by a page first, and none of it is left out.
    chat.answer("more lines below", "y");
    let screen = chat.see("more lines before a yes counts");
    assert!(screen.contains("line-60 "), "{screen}");
    chat.keys("y");
    chat.see("this is the end; now a yes counts");
    chat.keys("e");
    let paged = chat.home.path("paged.txt");
    eventually("it is in the pager", || fs::read_to_string(&paged).is_ok_and(|text| text.contains("line-149")));
    chat.see("[y] yes");
    chat.answer("line-149", "y");
    chat.see("command allowed");
}

#[test]
fn a_pager_that_does_not_start_has_shown_nothing() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).env("PAGER", "/no/such/pager").start();
    chat.see_ready();
    let script = (0..15_000).map(|line| format!("echo line-{line}")).collect::<Vec<_>>().join(" && ");
    chat.paste(&format!("ask {script}"));
    chat.keys(ENTER);
    chat.answer("too long to be shown here", "y");
    chat.see("read it in the pager (e) before a yes");
    chat.keys("e");
    chat.see("cannot start the pager");
    chat.answer("[y] yes", "y");
    let screen = chat.see("read it in the pager (e) before a yes");
    assert!(!screen.contains("command allowed"), "{screen}");
    chat.keys("n");
    chat.see("command denied");
}

#[test]
fn an_editor_that_is_stopped_stops_the_chat_and_both_go_on() {
    let setup = Setup::scripted(&[], &[]);
    let editor = setup.home.path("editor.sh");
    fs::write(&editor, "#!/bin/sh\nkill -STOP $$\nprintf ' and edited' >> \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut chat = setup.env("EDITOR", editor.to_str().unwrap()).start();
    chat.see_ready();
    chat.keys("say written");
    chat.see("› say written");
    chat.keys("\x07");
    chat.see_stopped();
    chat.signal(libc::SIGCONT);
    chat.see("› say written and edited");
    chat.keys(ENTER);
    chat.until("it answers", |screen| screen.matches("written and edited").count() > 1);
}

#[test]
fn an_inline_screen_comes_back_from_the_editor() {
    let setup = Setup::scripted(&["--inline"], &[]);
    let editor = setup.home.path("editor.sh");
    fs::write(&editor, "#!/bin/sh\nprintf ' and edited' >> \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut chat = setup.env("EDITOR", editor.to_str().unwrap()).start();
    chat.see_ready();
    chat.keys("say written");
    chat.see("› say written");
    chat.keys("\x07");
    chat.see("› say written and edited");
    chat.keys(ENTER);
    chat.see("❯ say written and edited");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
}

#[test]
fn a_form_is_marked_as_the_agents() {
    let mut chat = Setup::scripted(&["--protocol", "2"], &[]).start();
    chat.see_ready();
    chat.say("form");
    let screen = chat.see("Who are you?");
    assert!(screen.contains("╭ a form of the agent scripted_agent"), "{screen}");
    assert!(screen.contains("scripted_agent says: “Who are you?”"), "{screen}");
    chat.keys(CTRL_C);
    chat.see_gone("╭ a form");
    chat.see_ready();
}
