use attache_proto::model::command::{AvailableCommand, Command, TextInput};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use super::*;
use crate::theme::Theme;

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn type_text(composer: &mut Composer, text: &str) {
    for letter in text.chars() {
        composer.handle_key(key(KeyCode::Char(letter)));
    }
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn image() -> Attachment {
    Attachment {
        name: "cat.png".into(),
        mime_type: "image/png".into(),
        source: AttachmentSource::File("/home/me/cat.png".into()),
    }
}

#[test]
fn a_long_paste_is_a_label_until_it_is_sent() {
    let mut composer = Composer::new();
    type_text(&mut composer, "look: ");
    assert_eq!(composer.handle_paste("short\r\ntext"), Pasted::Inserted);
    assert_eq!(composer.text(), "look: short\ntext");
    assert_eq!(composer.handle_paste(&lines(120)), Pasted::Chip);
    assert_eq!(composer.handle_paste(&lines(120)), Pasted::Chip);
    assert_eq!(composer.handle_paste(&"x".repeat(1_500)), Pasted::Chip);
    assert_eq!(composer.text(), "look: short\ntext[pasted 120 lines][pasted 120 lines, 2][pasted 1500 characters]");
    let sent = composer.take().unwrap();
    assert_eq!(sent.text, format!("look: short\ntext{}{}{}", lines(120), lines(120), "x".repeat(1_500)));
    assert!(composer.is_empty() && composer.take().is_none());
}

#[test]
fn a_label_is_one_thing() {
    let mut composer = Composer::new();
    type_text(&mut composer, "a ");
    composer.handle_paste(&lines(20));
    type_text(&mut composer, " b");
    for _ in 0..2 {
        composer.handle_key(key(KeyCode::Left));
    }
    composer.handle_key(key(KeyCode::Left));
    type_text(&mut composer, "<");
    assert_eq!(composer.text(), "a <[pasted 20 lines] b");
    composer.handle_key(key(KeyCode::Right));
    type_text(&mut composer, ">");
    assert_eq!(composer.text(), "a <[pasted 20 lines]> b");
    composer.handle_key(key(KeyCode::Backspace));
    assert_eq!(composer.handle_key(key(KeyCode::Backspace)), ComposerReply::Changed);
    assert_eq!(composer.text(), "a < b");
    assert_eq!(composer.take().unwrap().text, "a < b");
}

#[test]
fn a_label_can_be_expanded() {
    let mut composer = Composer::new();
    assert!(!composer.expand_paste());
    composer.handle_paste(&format!("{}\u{1b}[2J", lines(10)));
    type_text(&mut composer, " end");
    assert!(composer.expand_paste());
    assert_eq!(composer.text(), format!("{}\\x1b[2J end", lines(10)));
    assert!(!composer.expand_paste());
}

#[test]
fn attachments_go_with_the_text_that_names_them() {
    let mut composer = Composer::new();
    type_text(&mut composer, "see ");
    composer.attach(image());
    composer.attach(image());
    assert_eq!(composer.text(), "see [image 1: cat.png][image 2: cat.png]");
    composer.handle_key(key(KeyCode::Backspace));
    let sent = composer.take().unwrap();
    assert_eq!((sent.text.as_str(), sent.attachments.len()), ("see [image 1: cat.png]", 1));
    composer.restore(sent.clone());
    assert_eq!(composer.take().unwrap(), sent);
    assert_eq!(composer.handle_paste(" /home/me/cat.png"), Pasted::MaybeImagePath("/home/me/cat.png".into()));
    assert!(composer.is_empty());
    assert_eq!(composer.handle_paste(&"x".repeat(9 * 1024 * 1024)), Pasted::TooLong);
}

#[test]
fn the_past_is_beyond_the_edges() {
    let mut composer = Composer::new();
    composer.set_history(vec!["first".into(), "second\nline".into()]);
    type_text(&mut composer, "draft");
    composer.handle_key(key(KeyCode::Up));
    assert_eq!(composer.text(), "second\nline");
    composer.handle_key(key(KeyCode::Up));
    assert_eq!(composer.text(), "first");
    assert_eq!(composer.handle_key(key(KeyCode::Up)), ComposerReply::Ignored);
    composer.handle_key(key(KeyCode::Down));
    assert_eq!(composer.text(), "second\nline");
    composer.handle_key(key(KeyCode::Down));
    assert_eq!(composer.text(), "draft");
    assert_eq!(composer.handle_key(key(KeyCode::Down)), ComposerReply::Ignored);
    composer.handle_key(key(KeyCode::Up));
    type_text(&mut composer, "!");
    composer.handle_key(key(KeyCode::Up));
    assert_eq!(composer.text(), "draft", "what was being written is not lost by editing something else");
}

#[test]
fn the_past_can_be_searched() {
    let mut composer = Composer::new();
    composer.set_history(vec!["run the tests".into(), "fix the parser".into(), "write docs".into()]);
    composer.start_history_search();
    assert!(composer.has_popup());
    type_text(&mut composer, "the");
    composer.handle_key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL));
    composer.handle_key(key(KeyCode::Enter));
    assert_eq!(composer.text(), "run the tests");
    composer.start_history_search();
    composer.handle_key(key(KeyCode::Esc));
    assert!(!composer.has_popup());
    assert_eq!(composer.text(), "run the tests");
}

#[test]
fn an_editor_gets_what_was_pasted_and_it_still_names_no_files() {
    let mut composer = Composer::new();
    type_text(&mut composer, "see ");
    assert_eq!(composer.handle_paste(&format!("{}@secret.txt\n", lines(120))), Pasted::Chip);
    composer.attach(image());
    let text = composer.text_to_edit();
    assert!(text.starts_with("see line 1\nline 2\n") && text.contains("@secret.txt\n[image 1: cat.png]"), "{text}");
    composer.set_text(&format!("{text} and @mine.txt"));
    let sent = composer.take().unwrap();
    assert_eq!((sent.pasted_mentions.as_slice(), sent.attachments.len()), (&["@secret.txt".to_owned()][..], 1));
    assert!(sent.typed.ends_with("@mine.txt") && !sent.typed.contains("@secret.txt"), "{}", sent.typed);
}

#[test]
fn the_nearest_file_comes_first() {
    let files = ["deep/er/main.rs", "src/main.rs", "a/README.md", "README.md", "main.rs", "src/domain.rs"];
    let found = |query: &str| -> Vec<String> {
        let mut composer = Composer::new();
        type_text(&mut composer, &format!("@{query}"));
        composer.offer(files.map(Completion::file).into());
        let matches = &composer.popup.matches.rows;
        matches.iter().map(|(index, _)| files[*index].to_owned()).collect()
    };
    assert_eq!(found("")[..2], ["main.rs", "README.md"]);
    assert_eq!(found("main"), ["main.rs", "src/main.rs", "deep/er/main.rs", "src/domain.rs"]);
}

#[test]
fn files_are_mentioned() {
    let mut composer = Composer::new();
    type_text(&mut composer, "mail me@example");
    assert_eq!(composer.completions(), None);
    type_text(&mut composer, " see @");
    assert_eq!(
        composer.completions().map(|request| (request.kind, request.query)),
        Some((CompletionKind::Mention, "".into()))
    );
    composer.offer(["src/main.rs", "src/my file.rs", "docs/"].map(Completion::file).into());
    assert!(composer.has_popup());
    type_text(&mut composer, "mfil");
    assert_eq!(composer.handle_key(key(KeyCode::Tab)), ComposerReply::Changed);
    assert_eq!(composer.text(), "mail me@example see @\"src/my file.rs\" ");
    assert!(!composer.has_popup());
    type_text(&mut composer, "and @mai");
    composer.handle_key(key(KeyCode::Enter));
    assert_eq!(composer.text(), "mail me@example see @\"src/my file.rs\" and @src/main.rs ");
    type_text(&mut composer, "@doc");
    composer.handle_key(key(KeyCode::Tab));
    assert!(composer.text().ends_with(" @docs/"), "a directory is on the way to a file");
    assert_eq!(composer.take().unwrap().mentions, ["src/my file.rs", "src/main.rs", "docs/"]);
}

#[test]
fn commands_are_completed_with_their_hints() {
    let commands = [
        AvailableCommand::Command(Command::new("review", "Review the changes")),
        AvailableCommand::Command(Command::new("plan", "Make a plan").input(TextInput::new("what to plan"))),
    ];
    let mut composer = Composer::new();
    type_text(&mut composer, "/");
    composer.offer(Completion::commands(&commands));
    type_text(&mut composer, "pl");
    composer.handle_key(key(KeyCode::Enter));
    assert_eq!(composer.text(), "/plan ");
    let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 2));
    composer.render(
        buffer.area,
        &mut buffer,
        &Theme::new(crate::theme::ColorDepth::None, crate::theme::Background::Dark, true),
    );
    let row: String = (0..40).map(|x| buffer[(x, 1)].symbol().to_owned()).collect();
    assert_eq!(row.trim_end(), "› /plan  what to plan");
    composer.clear();
    type_text(&mut composer, "/");
    composer.offer(Completion::commands(&commands));
    type_text(&mut composer, "review");
    assert!(composer.has_popup());
    assert_eq!(composer.handle_key(key(KeyCode::Enter)), ComposerReply::Ignored, "nothing is left to complete: send");
    composer.clear();
    type_text(&mut composer, "/re");
    composer.offer(Completion::commands(&commands));
    composer.handle_key(key(KeyCode::Esc));
    assert!(!composer.has_popup());
    type_text(&mut composer, "v");
    assert!(composer.has_popup(), "what was closed opens again when more is typed");
    composer.clear();
    type_text(&mut composer, "a /");
    assert_eq!(composer.completions(), None);
}

#[test]
fn messages_wait_and_nothing_is_lost() {
    let mut composer = Composer::new();
    for text in ["one", "two", "three"] {
        type_text(&mut composer, text);
        assert!(composer.enqueue());
    }
    assert!(!composer.enqueue(), "there is nothing to send");
    type_text(&mut composer, "draft");
    composer.handle_paste(&lines(30));
    composer.attach(image());
    let draft = composer.draft();
    let json = serde_json::to_string(&draft).unwrap();
    let mut composer = Composer::new();
    composer.set_draft(serde_json::from_str(&json).unwrap());
    assert_eq!(composer.draft(), draft);
    assert_eq!(composer.take().unwrap().text, format!("draft{}[image 1: cat.png]", lines(30)));

    composer.handle_key(key(KeyCode::Up));
    assert_eq!((composer.text().as_str(), composer.queue.len()), ("three", 2));
    composer.queue.focus();
    assert_eq!(composer.queue.handle_key(KeyEvent::new(KeyCode::Up, KeyModifiers::ALT)), QueueReply::Used);
    assert_eq!(composer.queue.messages().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["two", "one"]);
    let QueueReply::Edit(message) = composer.queue.handle_key(key(KeyCode::Enter)) else { panic!() };
    composer.edit_queued(message);
    assert_eq!(composer.text(), "two");
    assert_eq!(composer.queue.messages().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["one", "three"]);
    composer.queue.focus();
    composer.queue.handle_key(key(KeyCode::Delete));
    assert_eq!(composer.queue.pop_next().unwrap().text, "one");
    assert_eq!(composer.queue.pop_next(), None);
    assert!(!composer.queue.is_focused());
}

#[test]
fn it_grows_to_a_third_of_the_screen() {
    let mut composer = Composer::new();
    assert_eq!(composer.height(80, 24), 2);
    composer.set_text("a\nb\nc");
    assert_eq!(composer.height(80, 24), 4);
    composer.set_text(&"word ".repeat(200));
    assert_eq!(composer.height(80, 24), 8);
    assert_eq!(composer.height(80, 3), 2);
}

#[test]
fn what_is_too_long_to_edit_is_a_label() {
    let mut composer = Composer::new();
    let long = lines(40_000);
    composer.set_text(&long);
    assert_eq!(composer.text(), "[pasted 40000 lines]");
    assert!(!composer.expand_paste(), "there is no room for it");
    assert_eq!(composer.take().unwrap().text, long);
}

#[test]
fn what_was_cleared_can_be_had_back() {
    let mut composer = Composer::new();
    type_text(&mut composer, "draft");
    composer.discard();
    assert_eq!(composer.context(), Context::EmptyComposer);
    composer.handle_key(key(KeyCode::Up));
    assert_eq!((composer.text().as_str(), composer.context()), ("draft", Context::Composer));
}

#[test]
fn the_cursor_of_the_terminal_follows() {
    let theme = Theme::new(crate::theme::ColorDepth::None, crate::theme::Background::Dark, true);
    let mut composer = Composer::new();
    type_text(&mut composer, "漢字a");
    let area = Rect::new(3, 5, 20, 3);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 10));
    composer.render(area, &mut buffer, &theme);
    assert_eq!(composer.cursor_position(), Some(Position::new(3 + 2 + 5, 6)));
}

#[test]
fn what_is_not_seen_is_shown() {
    let mut composer = Composer::new();
    type_text(&mut composer, "a\u{202e}b");
    assert_eq!(composer.text(), "a\\u{202e}b");
}

#[test]
fn only_what_was_typed_or_chosen_names_files() {
    let mut composer = Composer::new();
    composer.insert_text("look at @mine.rs and ");
    composer.handle_paste("@theirs.rs, then\n@mine.rs");
    let submission = composer.take().unwrap();
    assert_eq!(submission.text, "look at @mine.rs and @theirs.rs, then\n@mine.rs");
    // Which of two that are the same was typed cannot be told, and none names a file then.
    assert_eq!(submission.typed, "look at and then");
    assert_eq!(submission.pasted_mentions, ["@mine.rs", "@theirs.rs,"]);
    // The same when it comes back, is queued, or is in a draft.
    composer.restore(submission);
    let draft = composer.draft();
    let mut other = Composer::new();
    other.set_draft(draft);
    other.enqueue();
    assert_eq!(other.queue.pop_next().unwrap().typed, "look at and then");

    let mut composer = Composer::new();
    composer.insert_text("@typed.rs ");
    composer.handle_paste(&"@long.rs\n".repeat(20));
    let submission = composer.take().unwrap();
    assert_eq!((&*submission.typed, submission.pasted_mentions), ("@typed.rs", vec!["@long.rs".to_owned()]));
    // A long one that is shown in full is still pasted.
    composer.handle_paste(&"@long.rs\n".repeat(20));
    assert!(composer.expand_paste());
    assert_eq!(composer.take().unwrap().typed, "");
}
