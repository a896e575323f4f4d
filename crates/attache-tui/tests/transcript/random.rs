//! Whatever happens in whatever order: the screen is that of a transcript which has only now begun.

use attache_proto::model::content::{ContentBlock, ImageContent};
use attache_proto::model::prompt::StopReason;
use attache_proto::model::tool::{ToolCallContent, ToolCallStatus, ToolKind};
use attache_proto::model::update::{MessageChunk, MessageUpdate, SessionUpdate};
use attache_proto::view::SessionView;
use attache_testkit::Dice;
use attache_tui::theme::ColorDepth;
use attache_tui::transcript::{Scroll, Transcript};

use crate::support::*;

const PIECES: [&str; 18] = [
    "\r",
    "p\r1. a\r",
    "word ",
    "\n",
    "\n\n",
    "# ",
    "- item\n",
    "1. one\n",
    "```rust\n",
    "```\n",
    "let x = 1;\n",
    "| a | b |\n",
    "|---|---|\n",
    "> ",
    "**",
    "日本",
    "`",
    "[l](u)",
];

fn text(dice: &mut Dice) -> String {
    (0..dice.below(12)).map(|_| dice.pick(&PIECES)).collect()
}

fn one_of<T: Clone>(dice: &mut Dice, choices: &[T]) -> T {
    choices[dice.below(choices.len())].clone()
}

/// Changes the session, and returns the place that changed.
fn change(view: &mut SessionView, dice: &mut Dice) -> Option<usize> {
    let id = dice.below(3).to_string();
    match dice.below(12) {
        0 => Some(view.user_prompt(&[text(dice).into()])),
        1 => view.apply(&think(text(dice))),
        2 => {
            let image = ContentBlock::from(ImageContent::new("AAAA", "image/png"));
            view.apply(&SessionUpdate::AgentMessageChunk(MessageChunk::new(image)))
        }
        3 => {
            let blocks = (0..dice.below(4)).map(|_| ContentBlock::text(text(dice))).collect::<Vec<_>>();
            view.apply(&SessionUpdate::AgentMessage(MessageUpdate::new(id).content(blocks)))
        }
        4 => {
            let chunk = MessageChunk::new(ContentBlock::text(text(dice))).message_id(id);
            view.apply(&SessionUpdate::AgentMessageChunk(chunk))
        }
        5 => {
            let status = one_of(dice, &[ToolCallStatus::InProgress, ToolCallStatus::Completed]);
            let content = [ToolCallContent::text(text(dice)), terminal("t")];
            let call = call(&id, "Do it", ToolKind::Execute, status).content(content);
            view.apply(&SessionUpdate::ToolCallUpdate(Box::new(call)))
        }
        6 => view.apply(&output("t", text(dice).as_bytes())),
        7 => {
            view.begin_turn();
            None
        }
        8 => {
            view.end_turn(&StopReason::EndTurn);
            None
        }
        _ => view.apply(&say(text(dice))),
    }
}

#[test]
fn what_was_laid_out_before_makes_no_difference() {
    let colors = theme(ColorDepth::None);
    let scrolls = [
        Scroll::Lines(-3),
        Scroll::Lines(2),
        Scroll::Pages(-1),
        Scroll::Pages(1),
        Scroll::Top,
        Scroll::NextEntry,
        Scroll::PreviousEntry,
        Scroll::NextMessage,
        Scroll::PreviousMessage,
    ];
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let mut view = SessionView::with_limit(one_of(&mut dice, &[16 << 10, 1 << 20]));
        let mut transcript = Transcript::new();
        let size = one_of(&mut dice, &[(1, 1), (12, 3), (40, 12), (80, 24)]);
        for step in 0..150 {
            if let Some(place) = change(&mut view, &mut dice) {
                transcript.changed(place);
            }
            match dice.below(12) {
                0 => transcript.toggle_fold(),
                1..5 => transcript.scroll(one_of(&mut dice, &scrolls)),
                _ => {}
            }
            rows(&draw(&mut transcript, &view, size, &colors));
            if step % 5 == 0 {
                // Folded the same way and at the same end, an old transcript and a new one show the same.
                transcript.fold_all();
                transcript.scroll(Scroll::Bottom);
                let old = rows(&draw(&mut transcript, &view, size, &colors));
                let new = rows(&draw(&mut Transcript::new(), &view, size, &colors));
                assert_eq!(old, new, "seed {seed}, step {step}, at the end {:?}", view.timeline().last());
                transcript.scroll(Scroll::Top);
                let mut fresh = Transcript::new();
                fresh.scroll(Scroll::Top);
                let old = rows(&draw(&mut transcript, &view, size, &colors));
                let new = rows(&draw(&mut fresh, &view, size, &colors));
                assert_eq!(old, new, "seed {seed}, step {step}, at the top of {:?}", view.timeline().first());
            }
        }
    }
}
