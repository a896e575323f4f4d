//! Texts that mean harm, in every place where an agent can put one.

use std::time::{Duration, Instant};

use attache_proto::model::content::{ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextResource};
use attache_proto::model::diff::{Diff, DiffChange, DiffPatch, DiffPatchFormat, PatchDiff, PathChange};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::notice::{CompactionStatus, CompactionUpdate, Notice, NoticeSeverity};
use attache_proto::model::plan::{PlanEntries, PlanEntry, PlanPriority, PlanStatus};
use attache_proto::model::state::StateUpdate;
use attache_proto::model::terminal::{ExitStatus, TerminalSize, TerminalUpdate};
use attache_proto::model::tool::{Location, ToolCallContent, ToolCallStatus, ToolKind};
use attache_proto::model::unstable::{SessionMessage, SubagentUpdate};
use attache_proto::model::update::SessionUpdate;
use attache_proto::view::SessionView;
use attache_tui::theme::ColorDepth;
use attache_tui::transcript::{Scroll, Transcript, text_of};

use crate::support::*;

/// Two hundred of them: what does harm, alone and in the midst of Markdown.
fn texts() -> Vec<String> {
    let escape = [
        "\x1b[2J",
        "\x1b[H",
        "\x1b[31m",
        "\x1b[?1049h",
        "\x1b[6n",
        "\x1b[c",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGk=\x07",
        "\x1b]8;;https://evil.example\x1b\\text\x1b]8;;\x1b\\",
        "\x1bP$q\"p\x1b\\",
        "\x1b_apc\x1b\\",
        "\x1b^pm\x1b\\",
        "\x1bc",
        "\x1b[20;1Hallow? [y]",
        "\u{9b}2J",
        "\u{9d}0;t\u{9c}",
        "\u{90}q\u{9c}",
        "\u{85}",
        "\u{84}",
    ];
    let characters = [
        "\r",
        "over\rwritten",
        "\x08\x08\x08",
        "\x07",
        "\0",
        "\x7f",
        "\x0b\x0c",
        "\x0e\x0f",
        "\t\t\t",
        "\x1a",
        "\u{202e}txt.exe",
        "\u{2066}x\u{2069}",
        "\u{200e}\u{200f}",
        "\u{061c}",
        "\u{200b}\u{200b}",
        "\u{feff}",
        "\u{2060}",
        "\u{ad}",
        "\u{e0041}\u{e0042}",
        "\u{fe0f}\u{fe0f}\u{fe0f}",
        "\u{2028}\u{2029}",
        "\u{fff9}a\u{fffa}b\u{fffb}",
        "\u{3164}",
        "\u{115f}",
        "\u{1d173}",
    ];
    let mut texts: Vec<String> = Vec::new();
    for bad in escape.iter().chain(&characters) {
        texts.push((*bad).to_owned());
        texts.push(format!("before{bad}after"));
        texts.push(format!(
            "# {bad}\n\n- `{bad}` [l{bad}](https://{bad})\n\n```{bad}\n{bad}\n```\n\n| {bad} |\n|---|\n| {bad} |\n"
        ));
        texts.push(format!("日{bad}本"));
    }
    texts.extend([
        format!("e{}", "\u{301}".repeat(8_000)),
        "\u{301}".repeat(8_000),
        "👩\u{200d}".repeat(4_000),
        "\u{200d}".repeat(8_000),
        "\u{1100}".repeat(8_000),
        "\u{0600}".repeat(8_000),
        "🇩".repeat(3_999),
        "x".repeat(100_000),
        "日".repeat(8_000),
        "a\t".repeat(8_000),
        "\n".repeat(8_000),
        "- ".repeat(8_000),
        "> ".repeat(8_000),
        "[".repeat(8_000),
        "*_`".repeat(8_000),
        "|".repeat(8_000),
        "| a ".repeat(5_000) + "|\n" + &"|-".repeat(5_000) + "|\n",
        "<".repeat(8_000),
        "```\n".repeat(4_000),
        "&#27;[2J &#x9b;2J &#x202e; &NewLine;".to_owned(),
        "[a]: <\x1b[2J>\n[a]".to_owned(),
        "ﷺ".repeat(5_000),
        "क्षि".repeat(4_000),
        "\u{ff9e}".repeat(4_000),
    ]);
    assert!(texts.len() >= 200, "{}", texts.len());
    texts
}

/// A session that has a text wherever an agent can put one.
fn session(text: &str) -> SessionView {
    let mut view = SessionView::new();
    let blocks = || {
        [
            ContentBlock::text(text),
            ImageContent::new(text, text).uri(text).into(),
            ResourceLink::new(text, text).title(text).into(),
            EmbeddedResource::new(TextResource::new(text, text)).into(),
        ]
    };
    view.user_prompt(&blocks());
    view.begin_turn();
    let message = SessionMessage::new("m").sender_session_id(text).content(blocks());
    let old = format!("same\n{text}\n");
    let changes = [DiffChange::Modify(PathChange::new(text))];
    let patch = DiffPatch::new(
        DiffPatchFormat::GitPatch,
        format!("--- {text}\n+++ {text}\n@@ -1,2 +1,2 @@\n-{text}\n+x{text}\n {text}\n"),
    );
    let content = [
        ToolCallContent::text(text),
        ToolCallContent::Diff(Box::new(Diff::text(text, Some(old), format!("same\n{text}x\n")))),
        ToolCallContent::Diff(Box::new(Diff::Patch(PatchDiff::new(changes).patch(patch)))),
        terminal("t"),
        terminal("u"),
    ];
    let run = call("1", text, ToolKind::from(text), ToolCallStatus::from(text))
        .name(text)
        .content(content)
        .locations([Location::new(text)])
        .raw_input(attache_proto::model::RawJson::from_model(&Location::new(text)));
    let sized = TerminalUpdate::new("u").command(text).size(TerminalSize::new(13, 5));
    apply(
        &mut view,
        [
            think(text),
            say(text),
            SessionUpdate::ToolCallUpdate(Box::new(run)),
            command("t", text),
            output("t", text.as_bytes()),
            SessionUpdate::TerminalUpdate(Box::new(sized)),
            output("u", text.as_bytes()),
            exit("t", ExitStatus::new().signal(text)),
            SessionUpdate::Notice(Notice::new(NoticeSeverity::from(text), text).description(text)),
            SessionUpdate::Compaction(
                CompactionUpdate::new("c", CompactionStatus::from(text)).summary(blocks()).error(text),
            ),
            SessionUpdate::SessionMessage(Box::new(message)),
            SessionUpdate::Plan(PlanEntries::new([PlanEntry::new(
                text,
                PlanPriority::from(text),
                PlanStatus::from(text),
            )])),
            SessionUpdate::Subagent(Box::new(SubagentUpdate::new(text).title(text))),
            SessionUpdate::State(StateUpdate::failed(ErrorObject::new(1, text))),
        ],
    );
    view
}

/// What no cell may hold: control characters, and what turns or hides text.
fn does_harm(symbol: &str) -> bool {
    symbol.contains(|c: char| {
        c.is_control() || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    }) || symbol.len() > 64
}

#[test]
fn no_hostile_text_reaches_a_cell() {
    check_every_second(0);
}

#[test]
fn no_hostile_text_reaches_a_cell_unfolded() {
    check_every_second(1);
}

/// Each harm comes in four texts, so it is seen both folded and unfolded.
fn check_every_second(parity: usize) {
    let colors = theme(ColorDepth::True);
    for (index, text) in texts().into_iter().enumerate().filter(|(index, _)| index % 2 == parity) {
        let name: String = text.chars().take(12).collect();
        let view = session(&text);
        let size = [(33, 10), (80, 24), (140, 40)][index % 3];
        let started = Instant::now();
        let mut transcript = Transcript::new();
        let look = |scroll: Scroll, transcript: &mut Transcript| {
            transcript.scroll(scroll);
            let buffer = draw(transcript, &view, size, &colors);
            let bad = buffer.content.iter().find(|cell| does_harm(cell.symbol()));
            assert!(bad.is_none(), "{name:?}: {bad:?}");
            rows(&buffer);
        };
        if parity == 1 {
            transcript.unfold_all();
        }
        look(Scroll::Bottom, &mut transcript);
        look(Scroll::Top, &mut transcript);
        // To the head of each entry.
        for _ in 0..view.timeline().len() {
            look(Scroll::NextEntry, &mut transcript);
        }
        // Some ten screens take a tenth of a second in an unoptimised build; machines are busy at times.
        assert!(started.elapsed() < Duration::from_secs(10), "{name:?} took {:?}", started.elapsed());
        for place in 0..view.timeline().len() {
            assert!(!text_of(&view, place).contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{name:?}");
        }
    }
}
