//! Whatever happens in whatever order: the screen is that of a transcript which has only now begun.

use attache_proto::model::content::{ContentBlock, ImageContent};
use attache_proto::model::prompt::StopReason;
use attache_proto::model::tool::{ToolCallContent, ToolCallStatus, ToolKind};
use attache_proto::model::update::{MessageChunk, MessageUpdate, SessionUpdate};
use attache_proto::view::SessionView;
use attache_tui::theme::ColorDepth;
use attache_tui::transcript::{Scroll, Transcript};

use crate::support::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

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

fn text(random: &mut Random) -> String {
    (0..random.below(12)).map(|_| random.one_of(&PIECES)).collect()
}

/// Changes the session, and returns the place that changed.
fn change(view: &mut SessionView, random: &mut Random) -> Option<usize> {
    let id = random.below(3).to_string();
    match random.below(12) {
        0 => Some(view.user_prompt(&[text(random).into()])),
        1 => view.apply(&think(text(random))),
        2 => {
            let image = ContentBlock::from(ImageContent::new("AAAA", "image/png"));
            view.apply(&SessionUpdate::AgentMessageChunk(MessageChunk::new(image)))
        }
        3 => {
            let blocks = (0..random.below(4)).map(|_| ContentBlock::text(text(random))).collect::<Vec<_>>();
            view.apply(&SessionUpdate::AgentMessage(MessageUpdate::new(id).content(blocks)))
        }
        4 => {
            let chunk = MessageChunk::new(ContentBlock::text(text(random))).message_id(id);
            view.apply(&SessionUpdate::AgentMessageChunk(chunk))
        }
        5 => {
            let status = random.one_of(&[ToolCallStatus::InProgress, ToolCallStatus::Completed]);
            let content = [ToolCallContent::text(text(random)), terminal("t")];
            let call = call(&id, "Do it", ToolKind::Execute, status).content(content);
            view.apply(&SessionUpdate::ToolCallUpdate(Box::new(call)))
        }
        6 => view.apply(&output("t", text(random).as_bytes())),
        7 => {
            view.begin_turn();
            None
        }
        8 => {
            view.end_turn(&StopReason::EndTurn);
            None
        }
        _ => view.apply(&say(text(random))),
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
        let mut random = Random(seed);
        let mut view = SessionView::with_limit(random.one_of(&[16 << 10, 1 << 20]));
        let mut transcript = Transcript::new();
        let size = random.one_of(&[(1, 1), (12, 3), (40, 12), (80, 24)]);
        for step in 0..150 {
            if let Some(place) = change(&mut view, &mut random) {
                transcript.changed(place);
            }
            match random.below(12) {
                0 => transcript.toggle_fold(),
                1..5 => transcript.scroll(random.one_of(&scrolls)),
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
