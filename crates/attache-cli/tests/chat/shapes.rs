//! Terminals of all kinds: sizes, colours, inline, plain, none at all.

use std::process::Stdio;

use crate::driver::*;
use crate::support::{Home, run, scripted};

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("say a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p");
    chat.see_ready();
    chat.resize(30, 10);
    let screen = chat.until("it is narrow", |screen| screen.lines().any(|line| line == "─".repeat(30)));
    assert!(screen.lines().all(|line| line.chars().count() <= 30), "{screen}");
    chat.resize(120, 40);
    chat.until("it is wide", |screen| screen.lines().any(|line| line == "─".repeat(120)));
}

#[test]
fn tiny_terminals_work() {
    for (columns, rows) in [(20, 5), (1, 1), (3, 2)] {
        let mut chat = Setup::scripted(&[], &[]).size(columns, rows).start();
        // Before that it is the terminal that takes the keys.
        chat.see_raw("\x1b[?2026l");
        chat.keys("say x\r");
        chat.resize(80, 24);
        chat.see("❯ say x");
        chat.see_ready();
        chat.resize(columns, rows);
        chat.keys("ask touch y\r");
        chat.resize(80, 24);
        chat.answer("[y] yes", "n");
        chat.see("command denied");
        chat.resize(columns, rows);
        chat.keys(F2);
        chat.resize(80, 24);
        chat.see("╭ options");
        chat.keys(ESC);
        chat.see_gone("╭ options");
        chat.see_ready();
        assert_eq!(chat.quit(), 0);
    }
}

#[test]
fn without_colours_nothing_is_coloured() {
    let mut chat = Setup::scripted(&[], &[]).env("NO_COLOR", "1").start();
    chat.see_ready();
    chat.say("say **bold** `code`; think x; tool read the book; fail execute it");
    chat.see_ready();
    let raw = String::from_utf8(chat.raw()).unwrap();
    for colour in ["\x1b[38;", "\x1b[48;", "\x1b[31m", ";38;", ";48;"] {
        assert!(!raw.contains(colour), "{colour:?}");
    }
}

#[test]
fn a_terminal_without_utf_8_gets_ascii() {
    let mut chat = Setup::scripted(&[], &[]).env("LANG", "C").start();
    chat.see_ready();
    chat.keys("say plain words; tool read the book\r");
    chat.see("last line");
    assert!(chat.raw().is_ascii(), "{}", chat.screen());
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_returns() {
    for by_key in [true, false] {
        let mut chat = Setup::scripted(&[], &[]).start();
        chat.see_ready();
        chat.keys("not sent yet");
        chat.see("not sent yet");
        match by_key {
            true => chat.keys(CTRL_Z),
            false => chat.signal(libc::SIGTSTP),
        }
        chat.see_stopped();
        eventually("the screen is given back", || !chat.has_alternate_screen());
        chat.signal(libc::SIGCONT);
        eventually("the screen is taken", || chat.has_alternate_screen());
        chat.see("not sent yet");
        chat.keys(" but now");
        chat.see("not sent yet but now");
    }
}

#[test]
fn a_request_to_end_gives_the_terminal_back() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.signal(libc::SIGTERM);
    assert_eq!(chat.end(), 143);
    eventually("the screen is given back", || !chat.has_alternate_screen());
}

#[test]
fn inline_prints_what_is_finished_into_the_scrollback() {
    let mut chat = Setup::scripted(&["--inline"], &[]).start();
    chat.see_ready();
    assert!(!chat.has_alternate_screen());
    chat.say("say the first answer; tool read the book");
    chat.see("the book");
    chat.see_ready();
    for number in 0..8 {
        chat.say(&format!("say answer number {number}"));
        chat.until("it answers", |screen| screen.matches(&format!("answer number {number}")).count() > 1);
        chat.see_ready();
    }
    let all = chat.scrollback();
    for text in ["❯ say the first answer", "✓ → the book", "❯ say answer number 0", "❯ say answer number 7"] {
        assert_eq!(all.matches(text).count(), 1, "{text}:\n{all}");
    }
    chat.say("ask touch inline");
    chat.answer("[y] yes", "y");
    chat.see("command allowed");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
    // What was said stays when we go.
    let all = chat.scrollback();
    assert!(all.contains("command allowed"), "{all}");
    // And what comes next comes right below it.
    assert!(!all.trim_end().contains("\n\n\n"), "{all}");
}

#[test]
fn a_terminal_that_can_only_print_is_talked_to_line_by_line() {
    let mut chat = Setup::scripted(&[], &[]).env("TERM", "dumb").start();
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    assert!(!chat.has_alternate_screen() && !chat.raw().contains(&0x1b));
    chat.keys("say plain answer\r");
    chat.until("it answers", |screen| screen.matches("plain answer").count() > 1);
}

#[test]
fn wide_letters_are_printed_whole_above_an_inline_screen() {
    let mut chat = Setup::scripted(&["--inline"], &[]).start();
    chat.see_ready();
    chat.say("say hello 世界 😀 end");
    chat.see_ready();
    // Finished parts are printed when the next one begins.
    chat.say("say next");
    chat.see_ready();
    assert!(chat.scrollback().contains("\nhello 世界 😀 end"), "{}", chat.scrollback());
}

#[test]
fn plain_is_read_out_line_by_line() {
    let mut chat = Setup::scripted(&["--plain", "--protocol", "1"], &[]).start();
    let ready = |chat: &Chat| drop(chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>")));
    ready(&chat);
    chat.keys("say plain answer\r");
    chat.until("it answers", |screen| screen.matches("plain answer").count() > 1);
    ready(&chat);
    chat.keys("ask touch x\r");
    chat.see("[y] yes");
    chat.see(")?");
    chat.keys("r\r");
    chat.see("why not");
    chat.keys("it is mine\r");
    chat.see("command denied");
    chat.until("the reason is told", |screen| screen.matches("it is mine").count() > 2);
    ready(&chat);
    chat.keys("later something between turns\r");
    chat.until("it is read out", |screen| screen.matches("something between turns").count() > 1);
    let raw = chat.raw();
    assert!(!raw.contains(&0x1b), "{:?}", String::from_utf8_lossy(&raw));
    chat.keys(CTRL_D);
    assert_eq!(chat.end(), 0);
}

#[test]
fn without_a_terminal_there_is_a_clear_error() {
    let home = Home::new();
    let mut command = home.command(&["chat", "--", &scripted()]);
    command.stdin(Stdio::null());
    run(command).check(2, &[], &["cannot show a screen", "attache run"]);
    let bare = run(home.command(&[]));
    bare.check(2, &[], &["Usage: attache"]);
    assert_eq!(bare.out, "");
}

#[test]
fn mistakes_of_the_settings_are_told_on_a_terminal_that_works() {
    let setup = Setup::scripted(&[], &[]);
    setup.home.write_config("");
    std::fs::write(setup.home.path("config/attache/chat.toml"), "[keys]\nfly = [\"x\"]\n").unwrap();
    let mut chat = setup.start();
    assert_eq!(chat.end(), 2);
    chat.until("the mistake is told", |screen| screen.contains("unknown action `fly`"));
    assert!(!chat.has_alternate_screen());
}

#[test]
fn keys_can_be_bound_to_others() {
    let setup = Setup::scripted(&[], &[]);
    setup.home.write_config("");
    std::fs::write(setup.home.path("config/attache/chat.toml"), "[keys]\nhelp = [\"f12\"]\n").unwrap();
    let mut chat = setup.start();
    chat.see_ready();
    chat.keys("\x1b[24~");
    chat.see("╭ keys");
}

#[test]
fn wide_letters_stay_in_their_columns() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.paste("say 日本語 👩‍👩‍👧 שלום end");
    chat.see("end");
    chat.keys(ENTER);
    let screen = chat.until("it answers", |screen| screen.matches("日本語").count() > 1);
    assert!(screen.contains("end"), "{screen}");
    chat.see_ready();
}
