//! Text that means harm, in every field: nothing of it reaches the terminal as it came.

use crate::driver::*;

/// What of a stream of bytes is not of our own drawing.
fn foreign(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).expect("we write UTF-8");
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '\x1b' => match control(rest) {
                Some(length) => length,
                None => {
                    found.push(rest.chars().take(12).collect());
                    1
                }
            },
            _ => {
                let is_hidden = matches!(letter, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
                if letter.is_control() || is_hidden {
                    found.push(rest.chars().take(12).collect());
                }
                letter.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found
}

/// The length of a sequence that our own drawing makes: it moves the cursor to a place, sets colours of a palette of
/// 256, hides or shows the cursor, and begins or ends a picture.
fn control(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find(|letter: char| !letter.is_ascii_digit() && !";?:".contains(letter))?;
    let (parameters, last) = (&body[..end], body[end..].chars().next()?);
    let is_ours = match last {
        'H' => parameters.split_once(';').is_some_and(|(row, column)| !row.is_empty() && !column.is_empty()),
        'h' | 'l' => matches!(parameters, "?2026" | "?25"),
        // The ones that the texts hold are of another palette.
        'm' => !parameters.contains("38;2") && parameters != "31",
        _ => false,
    };
    is_ours.then_some(2 + end + 1)
}

#[test]
fn what_is_not_ours_is_found() {
    for text in
        ["\x1b[2J", "\x1b[H", "\x1b[31m", "\x1b]0;t\x07", "\x07", "\u{9b}2J", "\u{202e}", "\x1bc", "\r", "\x1b[?1049l"]
    {
        assert!(!foreign(format!("a{text}b").as_bytes()).is_empty(), "{text:?}");
    }
    assert!(foreign("\x1b[?2026h\x1b[3;4H\x1b[38;5;12m日本\x1b[0m\x1b[?25l\x1b[?2026l".as_bytes()).is_empty());
}

fn check(args: &[&str]) {
    let mut chat = Setup::scripted(args, &[]).size(100, 40).start();
    chat.see_ready();
    chat.say("hostile");
    let before = chat.raw().len();
    chat.answer("[y] yes", "?");
    chat.see("do not do it, and tell the agent why");
    chat.keys("z");
    chat.see_gone("do not do it, and tell the agent why");
    chat.keys("n");
    chat.see("that was all");
    chat.see("enter send");
    // Look at all of it, unfolded, and at the lists that the agent fills.
    chat.keys(&alt('o'));
    for _ in 0..30 {
        chat.keys("\x1b[5~");
    }
    chat.keys(F2);
    chat.see("╭ options");
    chat.keys(ESC);
    chat.see_gone("╭ options");
    chat.keys(CTRL_T);
    chat.see("╭ Who");
    chat.keys(ESC);
    chat.see_gone("╭ Who");
    chat.keys("/");
    chat.see("› /");
    let found = foreign(&chat.raw()[before..]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn no_hostile_text_of_a_version_1_agent_reaches_the_terminal() {
    check(&["--protocol", "1"]);
}

#[test]
fn no_hostile_text_of_a_version_2_agent_reaches_the_terminal() {
    check(&["--protocol", "2"]);
}

#[test]
fn what_a_dying_agent_writes_is_harmless() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    let before = chat.raw().len();
    chat.say("die here");
    chat.see("panicked at here");
    let found = foreign(&chat.raw()[before..]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn what_is_pasted_is_harmless() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    let before = chat.raw().len();
    chat.paste("evil\u{9b}2J\u{202e} \x07 paste");
    chat.see("paste");
    chat.keys(ENTER);
    chat.until("it is sent", |screen| screen.matches("paste").count() > 1);
    let found = foreign(&chat.raw()[before..]);
    assert!(found.is_empty(), "{found:?}");
}
