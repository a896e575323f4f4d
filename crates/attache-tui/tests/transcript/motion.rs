//! Scrolling, following, folding and the focus.

use attache_proto::model::content::ContentBlock;
use attache_proto::model::tool::{Location, ToolCallStatus, ToolKind};
use attache_proto::model::update::{MessageUpdate, SessionUpdate};
use attache_proto::view::SessionView;
use attache_tui::theme::ColorDepth;
use attache_tui::transcript::{Scroll, Transcript};

use crate::support::*;

const SIZE: (u16, u16) = (40, 10);

/// Turns of one question and one answer of two paragraphs: six rows each.
fn turns(count: usize) -> SessionView {
    let mut view = SessionView::new();
    for number in 0..count {
        view.user_prompt(&[format!("question {number}").into()]);
        view.begin_turn();
        apply(&mut view, [say(format!("answer {number}\n\nmore {number}"))]);
        view.end_turn(&attache_proto::model::prompt::StopReason::EndTurn);
    }
    view
}

fn shown(transcript: &mut Transcript, view: &SessionView) -> Vec<String> {
    let rows = rows(&draw(transcript, view, SIZE, &theme(ColorDepth::None)));
    rows.into_iter().map(|row| row.trim().to_owned()).collect()
}

#[test]
fn it_follows_the_end_until_one_scrolls_up() {
    let mut view = turns(10);
    let mut transcript = Transcript::new();
    assert_eq!(shown(&mut transcript, &view).last().unwrap(), "more 9");
    assert!(transcript.is_following());
    transcript.scroll(Scroll::Lines(-3));
    let above = shown(&mut transcript, &view);
    assert!(!transcript.is_following());
    // What comes at the end moves nothing.
    let place = view.apply(&say(" and more")).unwrap();
    transcript.changed(place);
    assert_eq!(shown(&mut transcript, &view), above);
    transcript.scroll(Scroll::Lines(100));
    assert_eq!(shown(&mut transcript, &view).last().unwrap(), "and more");
    assert!(transcript.is_following());
}

#[test]
fn a_step_up_and_down_is_no_step() {
    let view = turns(30);
    let mut transcript = Transcript::new();
    transcript.scroll(Scroll::Top);
    let mut screens = vec![shown(&mut transcript, &view)];
    assert_eq!(screens[0][0], "❯ question 0");
    for _ in 0..60 {
        transcript.scroll(Scroll::Lines(1));
        screens.push(shown(&mut transcript, &view));
    }
    for pair in screens.windows(2) {
        assert_eq!(pair[0][1..], pair[1][..pair[1].len() - 1]);
    }
    for screen in screens.iter().rev().skip(1) {
        transcript.scroll(Scroll::Lines(-1));
        assert_eq!(&shown(&mut transcript, &view), screen);
    }
    transcript.scroll(Scroll::Pages(2));
    transcript.scroll(Scroll::Pages(-2));
    assert_eq!(shown(&mut transcript, &view), screens[0]);
    transcript.scroll(Scroll::Pages(i32::MIN));
    assert_eq!(shown(&mut transcript, &view), screens[0]);
    transcript.scroll(Scroll::Pages(i32::MAX));
    shown(&mut transcript, &view);
    assert!(transcript.is_following());
}

#[test]
fn one_can_go_from_message_to_message() {
    let view = turns(10);
    let mut transcript = Transcript::new();
    shown(&mut transcript, &view);
    transcript.scroll(Scroll::Top);
    transcript.scroll(Scroll::NextMessage);
    assert_eq!(shown(&mut transcript, &view)[0], "▌ ❯ question 1");
    transcript.scroll(Scroll::NextMessage);
    assert!(shown(&mut transcript, &view)[0].contains("question 2"));
    transcript.scroll(Scroll::PreviousMessage);
    assert!(shown(&mut transcript, &view)[0].contains("question 1"));
    assert_eq!(transcript.focused(), Some(2));
}

#[test]
fn the_focus_moves_and_folds() {
    let mut view = turns(1);
    apply(&mut view, [think("one\ntwo\nthree"), say("done")]);
    let mut transcript = Transcript::new();
    let folded = shown(&mut transcript, &view);
    assert!(folded.iter().any(|row| row.contains("Thought (3 lines)")), "{folded:?}");
    // Without a choice it is the last that can be unfolded.
    assert_eq!(transcript.focused(), Some(2));
    transcript.toggle_fold();
    assert!(shown(&mut transcript, &view).iter().any(|row| row.ends_with("two")));
    transcript.toggle_fold();
    assert_eq!(shown(&mut transcript, &view), folded);
    transcript.scroll(Scroll::PreviousEntry);
    transcript.scroll(Scroll::PreviousEntry);
    shown(&mut transcript, &view);
    assert_eq!(transcript.focused(), Some(2));
    transcript.scroll(Scroll::Bottom);
    transcript.unfold_all();
    assert!(shown(&mut transcript, &view).iter().any(|row| row.ends_with("two")));
    transcript.fold_all();
    assert_eq!(shown(&mut transcript, &view), folded);
}

/// A message that is replaced by another of the same length is shown as it is now, wherever one looks.
#[test]
fn a_replaced_message_is_shown_as_it_is_now() {
    let mut view = SessionView::new();
    let message =
        |text: String| SessionUpdate::AgentMessage(MessageUpdate::new("m").content([ContentBlock::text(text)]));
    let text = |word: &str| (0..50).map(|number| format!("{word} {number}\n\n")).collect::<String>();
    let place = view.apply(&message(text("old"))).unwrap();
    let mut transcript = Transcript::new();
    transcript.scroll(Scroll::Top);
    assert_eq!(shown(&mut transcript, &view)[0], "old 0");
    transcript.scroll(Scroll::Bottom);
    shown(&mut transcript, &view);
    view.apply(&message(text("new")));
    transcript.changed(place);
    assert_eq!(shown(&mut transcript, &view).last().unwrap(), "new 49");
    transcript.scroll(Scroll::Top);
    assert_eq!(shown(&mut transcript, &view)[0], "new 0");
    for shorter in ["one\n\ntwo", ""] {
        view.apply(&message(shorter.into()));
        transcript.changed(place);
        let rows = shown(&mut transcript, &view);
        assert_eq!(
            rows.iter().filter(|row| !row.is_empty()).count(),
            if shorter.is_empty() { 1 } else { 2 },
            "{rows:?}"
        );
    }
}

#[test]
fn terminals_are_seen_without_being_told() {
    let mut view = SessionView::new();
    let run = call("1", "Run", ToolKind::Execute, ToolCallStatus::InProgress).content([terminal("t")]);
    apply(&mut view, [SessionUpdate::ToolCallUpdate(Box::new(run)), command("t", "make"), output("t", b"one\n")]);
    let mut transcript = Transcript::new();
    assert!(shown(&mut transcript, &view).join("\n").contains("one"));
    assert!(transcript.is_animated());
    assert!(transcript.running_terminal_of(&view, 0).is_some());
    apply(&mut view, [output("t", b"two\n")]);
    assert!(shown(&mut transcript, &view).join("\n").contains("two"));
}

#[test]
fn a_command_that_is_the_title_is_told_once() {
    for (title, count) in [("make all", 1), ("`make all`", 1), ("Build it", 1), ("make all of it", 2)] {
        let mut view = SessionView::new();
        let run = call("1", title, ToolKind::Execute, ToolCallStatus::InProgress).content([terminal("t")]);
        apply(
            &mut view,
            [SessionUpdate::ToolCallUpdate(Box::new(run)), command("t", "make all"), output("t", b"one\n")],
        );
        let text = shown(&mut Transcript::new(), &view).join("\n");
        assert_eq!(text.matches("make all").count(), count, "{text}");
    }
}

#[test]
fn what_an_entry_is_about_can_be_taken_elsewhere() {
    let mut view = SessionView::new();
    let read = call("1", "Read\u{1b}[2J it", ToolKind::Read, ToolCallStatus::Completed)
        .locations([Location::new("/work/a.rs").line(7_u32)]);
    apply(&mut view, [SessionUpdate::ToolCallUpdate(Box::new(read)), say("a\u{202e}b")]);
    let transcript = Transcript::new();
    assert_eq!(transcript.location_of(&view, 0).unwrap().line, Some(7));
    assert_eq!(transcript.location_of(&view, 1), None);
    assert_eq!(transcript.text_of(&view, 0), "Read\\x1b[2J it\n/work/a.rs:7");
    assert_eq!(transcript.text_of(&view, 1), "a\\u{202e}b");
}

#[test]
fn any_size_is_drawn() {
    let mut view = turns(3);
    apply(&mut view, [think("a\nb"), say("```\ncode\n```\n\n| a | b |\n|-|-|\n| 日本 | 2 |\n")]);
    let mut transcript = Transcript::new();
    for width in [0, 1, 2, 3, 7, 19, 20, 200] {
        for height in [0, 1, 2, 50] {
            for scroll in [Scroll::Lines(-1), Scroll::Pages(1), Scroll::NextEntry, Scroll::PreviousMessage] {
                transcript.scroll(scroll);
                draw(&mut transcript, &view, (width, height), &theme(ColorDepth::True));
            }
        }
    }
    draw(&mut Transcript::new(), &SessionView::new(), (10, 10), &theme(ColorDepth::True));
}
