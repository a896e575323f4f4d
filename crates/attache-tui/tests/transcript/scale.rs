//! What a frame costs does not depend on how much there is.

use attache_proto::model::tool::{ToolCallStatus, ToolKind};
use attache_proto::model::update::SessionUpdate;
use attache_proto::view::SessionView;
use attache_tui::theme::ColorDepth;
use attache_tui::transcript::{Scroll, Transcript};

use crate::support::*;

const SIZE: (u16, u16) = (80, 24);

/// How many pieces a frame lays out at most: each has a row, and one is looked at beyond each edge.
const SCREEN: u64 = 24 + 4;

/// The most that may be kept, whatever was shown.
const CACHE: usize = 5 << 20;

#[test]
fn a_hundred_thousand_entries_cost_as_much_as_a_screen() {
    let mut view = SessionView::with_limit(1 << 30);
    for number in 0..100_000 {
        match number % 3 {
            0 => view.user_prompt(&[format!("question {number}").into()]),
            1 => view.apply(&say(format!("answer {number}\n\n- one\n- two\n"))).unwrap(),
            _ => {
                let call = call(&number.to_string(), "Read", ToolKind::Read, ToolCallStatus::Completed);
                view.apply(&SessionUpdate::ToolCallUpdate(Box::new(call))).unwrap()
            }
        };
    }
    assert_eq!(view.timeline().len(), 100_000);
    let mut transcript = Transcript::new();
    let cost = |transcript: &mut Transcript, scroll: Option<Scroll>| {
        let before = transcript.layouts();
        scroll.into_iter().for_each(|scroll| transcript.scroll(scroll));
        draw(transcript, &view, SIZE, &theme(ColorDepth::True));
        transcript.layouts() - before
    };
    let costs = [
        cost(&mut transcript, None),
        cost(&mut transcript, None),
        cost(&mut transcript, Some(Scroll::Top)),
        cost(&mut transcript, Some(Scroll::Pages(1))),
        cost(&mut transcript, Some(Scroll::Bottom)),
        cost(&mut transcript, Some(Scroll::Pages(-1))),
        cost(&mut transcript, Some(Scroll::PreviousMessage)),
    ];
    assert!(costs.iter().all(|cost| *cost <= 2 * SCREEN), "{costs:?}");
    assert_eq!(costs[1], 0, "nothing changed");
    for _ in 0..300 {
        assert!(cost(&mut transcript, Some(Scroll::Pages(-1))) <= 2 * SCREEN);
        assert!(transcript.cached_bytes() <= CACHE, "{}", transcript.cached_bytes());
    }
}

#[test]
fn a_chunk_costs_the_same_in_a_long_message() {
    let mut view = SessionView::new();
    let mut transcript = Transcript::new();
    let paragraph =
        "Some *text* with `code` that is long enough to take more than one line on a screen of eighty columns.\n\n";
    let code = format!("```rust\n{}```\n\n", "let value = compute(1, \"two\");\n".repeat(20));
    let mut costs = Vec::new();
    for number in 0..400 {
        let text = if number % 20 == 0 { &code } else { paragraph };
        let place = view.apply(&say(text)).unwrap();
        transcript.changed(place);
        let before = transcript.layouts();
        draw(&mut transcript, &view, SIZE, &theme(ColorDepth::None));
        costs.push(transcript.layouts() - before);
    }
    // A screen at first, then what is new and the end that is open.
    assert!(costs[40..].iter().all(|cost| *cost <= 4), "{:?}", &costs[40..]);
    // Text that is still the same is not laid out again, only the end that is open.
    transcript.all_changed();
    let before = transcript.layouts();
    draw(&mut transcript, &view, SIZE, &theme(ColorDepth::None));
    assert!(transcript.layouts() - before <= 1);
    transcript.scroll(Scroll::Top);
    draw(&mut transcript, &view, SIZE, &theme(ColorDepth::None));
    assert!(transcript.cached_bytes() <= CACHE);
}

#[test]
fn a_text_without_end_is_kept_in_parts() {
    let mut view = SessionView::new();
    let mut transcript = Transcript::new();
    for text in [
        "word ".repeat(400_000),
        "x".repeat(1_000_000),
        "- item\n".repeat(100_000),
        format!("```\n{}", "code\n".repeat(200_000)),
    ] {
        let place = view.apply(&say(text)).unwrap();
        transcript.changed(place);
        for scroll in [Scroll::Bottom, Scroll::Pages(-3), Scroll::Top, Scroll::Pages(3)] {
            let before = transcript.layouts();
            transcript.scroll(scroll);
            draw(&mut transcript, &view, SIZE, &theme(ColorDepth::None));
            assert!(transcript.layouts() - before <= 4 * SCREEN);
        }
    }
    // The records of the parts themselves are kept while their message is on the screen.
    assert!(transcript.cached_bytes() <= 4 * CACHE, "{}", transcript.cached_bytes());
}
