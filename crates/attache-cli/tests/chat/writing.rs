//! The composer: files, history, editors, images, long texts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::driver::*;

const CTRL_G: &str = "\x07";
const CTRL_R: &str = "\x12";

/// A program that edits: what it is given to edit gets a line more, and it tells its arguments.
fn with_editor(setup: Setup) -> Setup {
    let path = setup.home.path("editor.sh");
    let script = "#!/bin/sh\necho \"$@\" >> \"$HOME/edited.txt\"\nfor last; do :; done\n\
                  case \"$last\" in *message*) printf 'and edited' >> \"$last\";; esac\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let editor = path.display().to_string();
    setup.env("EDITOR", &editor)
}

#[test]
fn a_file_with_a_blank_in_its_name_is_attached_when_it_was_chosen() {
    let setup = Setup::scripted(&[], &["--generous"]);
    fs::write(setup.home.path("my file.txt"), "the content").unwrap();
    let mut chat = setup.start();
    chat.see_ready();
    chat.keys("blocks @my");
    chat.see("my file.txt");
    chat.keys(TAB);
    chat.see("@\"my file.txt\"");
    chat.keys(ENTER);
    chat.see("text resource");
}

#[test]
fn a_command_that_there_is_not_becomes_no_other() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    // The agent has `help`, which helps.
    chat.keys("/elps");
    chat.see("› /elps");
    chat.keys(ENTER);
    chat.see("❯ /elps");
}

#[test]
fn a_message_is_edited_in_the_editor() {
    let mut chat = with_editor(Setup::scripted(&[], &[])).start();
    chat.see_ready();
    chat.keys("say written ");
    chat.see("say written");
    chat.keys(CTRL_G);
    chat.see("› say written and edited");
    // The screen works as before.
    chat.keys("!");
    chat.see("and edited!");
    chat.keys(ENTER);
    chat.see("❯ say written and edited!");
    chat.see_ready();
}

#[test]
fn the_file_that_an_agent_works_on_is_opened_at_its_line() {
    let mut chat = with_editor(Setup::scripted(&[], &[])).start();
    chat.see_ready();
    let file = chat.home.path("work.rs").display().to_string();
    chat.say(&format!("at {file}"));
    chat.see("work.rs:42");
    chat.see_ready();
    chat.keys(&alt('e'));
    let told = chat.home.path("edited.txt");
    let expected = format!("+42 {file}\n");
    eventually("the editor is started", || fs::read_to_string(&told).is_ok_and(|text| text == expected));
    chat.see_ready();
    chat.say("say still here");
    chat.until("it answers", |screen| screen.matches("still here").count() > 1);
}

#[test]
fn files_are_named_with_an_at_sign_but_not_those_that_git_ignores() {
    let setup = Setup::scripted(&[], &["--generous"]);
    fs::write(setup.home.path("notes.txt"), "the notes").unwrap();
    fs::write(setup.home.path("notes.secret"), "").unwrap();
    fs::write(setup.home.path(".gitignore"), "*.secret\n").unwrap();
    let mut chat = setup.start();
    chat.see_ready();
    chat.keys("contents @note");
    let screen = chat.see("notes.txt");
    assert!(!screen.contains("notes.secret"), "{screen}");
    chat.keys(TAB);
    chat.see("@notes.txt");
    chat.keys(ENTER);
    chat.see("❯ contents @notes.txt");
    chat.see("/notes.txt");
}

#[test]
fn commands_of_the_agent_are_offered() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.keys("/he");
    chat.see("Helps");
    chat.keys(TAB);
    chat.see("› /help");
}

#[test]
fn what_was_sent_before_is_found_again() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("say something unusual");
    chat.see_ready();
    let home = chat.home.clone();
    assert_eq!(chat.quit(), 0);
    let mut chat = Setup::scripted(&[], &[]).home(&home).start();
    chat.see_ready();
    chat.keys(CTRL_R);
    chat.keys("unus");
    chat.see("say something unusual");
    chat.keys(ENTER);
    chat.see("› say something unusual");
}

#[test]
fn a_long_text_is_pasted_as_a_whole() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    let text: String = (0..400).map(|line| format!("line {line} of the text\n")).collect();
    chat.paste(&text);
    chat.see("[pasted 40");
    chat.keys(ENTER);
    // The agent says it back.
    chat.see("line 399 of the text");
    chat.see_ready();
}

#[test]
fn an_image_is_attached_by_its_path() {
    let setup = Setup::scripted(&[], &["--generous"]);
    let image = setup.home.path("cat.png");
    fs::write(&image, b"\x89PNG\r\n\x1a\n").unwrap();
    let mut chat = setup.start();
    chat.see_ready();
    chat.keys("blocks ");
    chat.see("› blocks");
    chat.paste(image.to_str().unwrap());
    chat.see("[image 1: cat.png]");
    chat.keys(ENTER);
    chat.see("text image");
}

#[test]
fn the_keys_are_shown_and_found() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.keys("?");
    chat.see("╭ keys");
    chat.keys("restart");
    chat.until("it is found", |screen| screen.contains("Restart the agent") && !screen.contains("history"));
    chat.keys(ESC);
    chat.see_gone("╭ keys");
}
