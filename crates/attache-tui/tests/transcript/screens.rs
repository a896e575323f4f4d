//! What every kind of content looks like.

use attache_proto::model::content::{ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextResource};
use attache_proto::model::diff::Diff;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::notice::{CompactionStatus, CompactionUpdate, Notice, NoticeSeverity};
use attache_proto::model::plan::{PlanEntries, PlanEntry, PlanPriority, PlanStatus};
use attache_proto::model::prompt::StopReason;
use attache_proto::model::state::StateUpdate;
use attache_proto::model::terminal::ExitStatus;
use attache_proto::model::tool::{Location, ToolCallContent, ToolCallStatus, ToolKind};
use attache_proto::model::unstable::{SessionMessage, SubagentUpdate};
use attache_proto::model::update::{MessageChunk, SessionUpdate};
use attache_proto::model::{RawJson, Unknown};
use attache_proto::view::SessionView;
use attache_tui::theme::{Background, ColorDepth, Theme};
use attache_tui::transcript::{Scroll, Transcript, block, plan_lines, turn_end};

use crate::support::*;

const MARKDOWN: &str = "# Findings\n\nThe parser **drops** the last *line* if it has no `\\n`; see \
[the report](https://tracker.example/issues/12).\n\n1. Read `parse.rs`\n2. Add a test\n   - one for CRLF\n   - one for LF\n\n\
- [x] found\n- [ ] fixed\n\n> Quoted text that is long enough to be wrapped on a narrow screen, and not on a wide one.\n\n\
```rust\nfn parse(text: &str) -> Vec<&str> {\n    text.lines().collect() // all of them\n}\n```\n\n\
| file | lines | state |\n|:-----|------:|:-----:|\n| parse.rs | 120 | ok |\n| a/very/long/path/of/a/module.rs | 7 | old |\n\n---\n\nDone.";

fn conversation() -> SessionView {
    let mut view = SessionView::new();
    view.user_prompt(&["Why does the parser lose a line?\nLook at parse.rs first.".into()]);
    view.begin_turn();
    view
}

#[test]
fn markdown() {
    let mut view = conversation();
    apply(&mut view, [say(MARKDOWN)]);
    check("markdown", &view, |_| {});
    check_with("markdown-true-color", &view, &theme(ColorDepth::True), |_| {});
    let ascii = Theme::new(ColorDepth::None, Background::Light, false);
    check_with("markdown-ascii", &view, &ascii, |transcript| transcript.scroll(Scroll::Top));
}

#[test]
fn an_unfinished_fence_is_code() {
    let mut view = conversation();
    apply(&mut view, [say("Look:\n\n```python\ndef f(x):\n    return \"a")]);
    check("unfinished-fence", &view, |_| {});
}

#[test]
fn user_messages_with_attachments() {
    let mut view = SessionView::new();
    view.user_prompt(&[
        "What is on this picture?".into(),
        ImageContent::new("A".repeat(16_000), "image/png").into(),
        ResourceLink::new("notes.md", "file:///work/notes.md").into(),
        EmbeddedResource::new(TextResource::new("one\ntwo\n", "file:///work/a.txt")).into(),
    ]);
    view.begin_turn();
    apply(
        &mut view,
        [
            say("A cat. "),
            SessionUpdate::AgentMessageChunk(MessageChunk::new(ContentBlock::from(ImageContent::new(
                "AAAA",
                "image/jpeg",
            )))),
        ],
    );
    check("attachments", &view, |_| {});
}

#[test]
fn thoughts_are_folded() {
    let mut view = conversation();
    apply(&mut view, [think("**Reading the code**\n\nFirst the lines, then\nthe rest.\n"), say("It is simple.")]);
    check("thought", &view, |_| {});
    check("thought-unfolded", &view, Transcript::toggle_fold);
}

#[test]
fn tool_calls_are_cards() {
    let mut view = conversation();
    let place = |path: &str, line: Option<u32>| Location::new(path).with(|location| location.line = line);
    let text = |text: &str| vec![ToolCallContent::text(text)];
    let calls = [
        call("1", "Read parse.rs", ToolKind::Read, ToolCallStatus::Completed)
            .locations([place("/work/src/parse.rs", Some(12))]),
        call("2", "Search for `lines`", ToolKind::Search, ToolCallStatus::Failed).content(text("grep: no such file\n")),
        call("3", "Fetch https://docs.example/lines", ToolKind::Fetch, ToolCallStatus::InProgress),
        call("4", "Delete old.rs", ToolKind::Delete, ToolCallStatus::Cancelled),
        call("5", "Move a.rs to b.rs", ToolKind::Move, ToolCallStatus::Pending),
        call("6", "Think about it", ToolKind::Think, ToolCallStatus::Paused),
        call(
            "7",
            "A tool of a kind that is not known, with a title that goes on and on and on until it is cut",
            ToolKind::from("_x"),
            ToolCallStatus::from("_stuck"),
        ),
    ];
    apply(&mut view, calls.map(|call| SessionUpdate::ToolCallUpdate(Box::new(call))));
    check("tool-calls", &view, |_| {});
    check("tool-calls-unfolded", &view, Transcript::unfold_all);
    let ascii = Theme::new(ColorDepth::None, Background::Dark, false);
    check_with("tool-calls-ascii", &view, &ascii, |_| {});
}

#[test]
fn long_text_of_a_tool_is_folded() {
    let mut view = conversation();
    let text: String = (1..=200).map(|number| format!("line {number}\n")).collect();
    let call = call("1", "Read long.txt", ToolKind::Read, ToolCallStatus::Completed)
        .content([
            ToolCallContent::text(text),
            ToolCallContent::text("```rust\nlet x = 1;\n```"),
            ToolCallContent::Content(attache_proto::model::tool::ToolCallBlock::new(ImageContent::new(
                "A".repeat(3000),
                "image/png",
            ))),
        ])
        .raw_input(RawJson::new(r#"{"path":"/work/long.txt"}"#).unwrap());
    apply(&mut view, [SessionUpdate::ToolCallUpdate(Box::new(call))]);
    check("tool-text", &view, |_| {});
    check("tool-text-unfolded", &view, |transcript| {
        transcript.unfold_all();
        transcript.scroll(Scroll::Bottom);
    });
}

fn changed() -> SessionView {
    let mut view = conversation();
    let old: String = (1..=60).map(|number| format!("    let value_{number} = {number};\n")).collect();
    let new = old.replace("value_30 = 30", "value_30 = compute(30)").replace("    let value_50 = 50;\n", "");
    let call = call("1", "Edit parse.rs", ToolKind::Edit, ToolCallStatus::Completed)
        .content([ToolCallContent::Diff(Box::new(Diff::text("/work/src/parse.rs", Some(old), new)))])
        .locations([Location::new("/work/src/parse.rs")]);
    apply(&mut view, [SessionUpdate::ToolCallUpdate(Box::new(call))]);
    let new = Diff::text("/work/src/new.rs", None, "fn new() {\n\treturn;\n}\n");
    let patch = ToolCallContent::Diff(Box::new(Diff::Patch(new.to_patch())));
    let call = crate::support::call("2", "Write new.rs", ToolKind::Edit, ToolCallStatus::InProgress).content([patch]);
    apply(&mut view, [SessionUpdate::ToolCallUpdate(Box::new(call))]);
    view
}

#[test]
fn diffs() {
    check("diff", &changed(), |_| {});
    check_with("diff-true-color", &changed(), &theme(ColorDepth::True), Transcript::unfold_all);
    check_with("diff-no-color", &changed(), &theme(ColorDepth::None), Transcript::unfold_all);
}

#[test]
fn terminals() {
    let mut view = conversation();
    let run = |id: &str, status| {
        let call = call(id, "Run the tests", ToolKind::Execute, status).content([terminal(id)]);
        SessionUpdate::ToolCallUpdate(Box::new(call))
    };
    let lines: String = (1..=30).map(|number| format!("test number_{number} ... \x1b[32mok\x1b[0m\n")).collect();
    apply(
        &mut view,
        [run("t1", ToolCallStatus::Failed), command("t1", "cargo test --workspace"), output("t1", lines.as_bytes())],
    );
    apply(
        &mut view,
        [output("t1", b"\x1b[1;31merror\x1b[0m: it broke\n"), exit("t1", ExitStatus::new().exit_code(101))],
    );
    apply(
        &mut view,
        [run("t2", ToolCallStatus::InProgress), command("t2", "sleep 5"), output("t2", b"10%\r20%\r\x1b[K30%")],
    );
    apply(&mut view, [run("t3", ToolCallStatus::Cancelled), exit("t3", ExitStatus::new().signal("SIGKILL"))]);
    check("terminal", &view, |_| {});
    check("terminal-unfolded", &view, |transcript| {
        transcript.unfold_all();
        transcript.scroll(Scroll::Top);
    });
}

#[test]
fn plans_are_checklists() {
    let mut view = conversation();
    let step = |text: &str, priority, status| PlanEntry::new(text, priority, status);
    let plan = PlanEntries::new([
        step("Read the parser", PlanPriority::High, PlanStatus::Completed),
        step(
            "Write a test that fails, and that says in its name what it is about",
            PlanPriority::Medium,
            PlanStatus::InProgress,
        ),
        step("Mend it", PlanPriority::Low, PlanStatus::Pending),
        step("Rewrite everything", PlanPriority::Low, PlanStatus::Cancelled),
    ]);
    apply(&mut view, [SessionUpdate::Plan(plan), say("Working.")]);
    check("plan", &view, |_| {});
    let panel = plan_lines(&view, 40, &theme(ColorDepth::None));
    assert_eq!(panel[0].to_string(), "Plan (1/4)");
    assert_eq!(panel[1].to_string(), "[x] Read the parser (high)");
}

#[test]
fn of_a_plan_that_is_done_the_title_is_left() {
    let mut view = conversation();
    let steps = ["Look", "Mend"].map(|text| PlanEntry::new(text, PlanPriority::Medium, PlanStatus::Completed));
    view.begin_turn();
    apply(&mut view, [SessionUpdate::Plan(PlanEntries::new(steps)), say("Done.")]);
    let lines = |view: &SessionView| plan_lines(view, 40, &theme(ColorDepth::None)).len();
    assert_eq!(lines(&view), 3);
    view.end_turn(&attache_proto::model::prompt::StopReason::EndTurn);
    assert_eq!(lines(&view), 1);
}

#[test]
fn a_call_that_was_denied_says_so() {
    let mut view = conversation();
    let calls = [("1", ToolCallStatus::Failed), ("2", ToolCallStatus::Failed), ("3", ToolCallStatus::Completed)]
        .map(|(id, status)| call(id, &format!("Call {id}"), ToolKind::Edit, status));
    apply(&mut view, calls.map(|call| SessionUpdate::ToolCallUpdate(Box::new(call))));
    for id in ["1", "3", "not there"] {
        view.permission_denied(&id.into());
    }
    let first = view.first_place();
    let words: Vec<String> = (first..first + view.timeline().len())
        .filter_map(|place| block(&view, place, 40, &theme(ColorDepth::None)).first().map(ToString::to_string))
        .filter(|line| line.contains("Call"))
        .collect();
    assert!(words[0].ends_with("denied") && words[1].ends_with("failed") && words[2].ends_with("Call 3"), "{words:?}");
}

#[test]
fn news_beside_the_conversation() {
    let mut view = conversation();
    let notice = |severity, title: &str| SessionUpdate::Notice(Notice::new(severity, title));
    apply(
        &mut view,
        [notice(NoticeSeverity::Info, "A new version is there"), notice(NoticeSeverity::Error, "No network")],
    );
    let warning = Notice::new(NoticeSeverity::Warning, "The context is almost full")
        .description("Use `/compact` to make **room**.");
    apply(&mut view, [SessionUpdate::Notice(warning)]);
    let compaction = |id: &str, status| CompactionUpdate::new(id, status);
    apply(
        &mut view,
        [SessionUpdate::Compaction(
            compaction("c1", CompactionStatus::Completed).summary([ContentBlock::text("All that was said.")]),
        )],
    );
    apply(&mut view, [SessionUpdate::Compaction(compaction("c2", CompactionStatus::Failed).error("too short"))]);
    apply(&mut view, [SessionUpdate::Compaction(compaction("c3", CompactionStatus::InProgress))]);
    let message = SessionMessage::new("m1").sender_session_id("helper-1").content([ContentBlock::text("I am *done*.")]);
    apply(&mut view, [SessionUpdate::SessionMessage(Box::new(message))]);
    let agent = |id: &str, title: &str, state| {
        SessionUpdate::Subagent(Box::new(SubagentUpdate::new(id).title(title).state(state)))
    };
    apply(
        &mut view,
        [
            agent("s1", "Look through the tests", StateUpdate::running()),
            agent("s2", "Read the docs", StateUpdate::idle(StopReason::EndTurn)),
        ],
    );
    for tag in ["_one", "_two", "_three"] {
        let raw = RawJson::new(r#"{"sessionUpdate":"_x"}"#).unwrap();
        apply(&mut view, [SessionUpdate::Other(Unknown::new(tag, raw))]);
    }
    check("news", &view, |_| {});
    check("news-unfolded", &view, Transcript::unfold_all);
}

#[test]
fn turns_that_do_not_just_end() {
    let mut view = conversation();
    apply(&mut view, [say("I begin.")]);
    view.end_turn(&StopReason::MaxTokens);
    let mut transcript = Transcript::new();
    let colors = theme(ColorDepth::Ansi16);
    let text = rows(&draw(&mut transcript, &view, (80, 24), &colors)).join("\n");
    assert!(text.contains("! stopped: the token limit was reached"), "{text}");
    // The reason stays where it was when the next turn begins.
    view.user_prompt(&["Go on.".into()]);
    view.begin_turn();
    draw(&mut transcript, &view, (80, 24), &colors);
    apply(
        &mut view,
        [SessionUpdate::State(StateUpdate::failed(ErrorObject::new(-32603, "the model\u{1b}[2J is away")))],
    );
    let text = rows(&draw(&mut transcript, &view, (80, 24), &colors));
    let at =
        |words: &str| text.iter().position(|row| row.contains(words)).unwrap_or_else(|| panic!("{words}: {text:?}"));
    assert!(at("token limit") < at("Go on.") && at("Go on.") < at("the model\\x1b[2J is away (error -32603)"));
    check("failed", &view, |_| {});
    assert_eq!(turn_end(&view, 60, &colors)[0].to_string(), "✗ the model\\x1b[2J is away (error -32603)");
}

#[test]
fn what_was_forgotten_is_said() {
    let mut view = SessionView::with_limit(8 << 10);
    for number in 0..100 {
        view.user_prompt(&[format!("message {number}").into()]);
        view.end_turn(&StopReason::EndTurn);
    }
    assert!(view.omitted > 0);
    check("omitted", &view, |transcript| transcript.scroll(Scroll::Top));
}

#[test]
fn characters_of_all_widths_keep_the_columns() {
    let mut view = conversation();
    let text = "日本語のテキストは二倍の幅です。折り返しても端をまたぎません。\n\n👩‍👩‍👧‍👦 family, 🇩🇪 flag, ❤️ heart, e\u{301} accent\n\nשלום עולם, مرحبا بالعالم\n\n| 名前 | emoji |\n|---|---|\n| 太郎 | 👍🏽 |\n\n```\nタブ\tend\n```";
    apply(&mut view, [say(text)]);
    check("wide", &view, |_| {});
}

#[test]
fn the_focus_is_marked() {
    check("focus", &changed(), |transcript| {
        transcript.scroll(Scroll::NextEntry);
        transcript.scroll(Scroll::PreviousEntry);
    });
}

#[test]
fn one_entry_as_lines() {
    let view = changed();
    let lines = block(&view, 1, 60, &theme(ColorDepth::None));
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert!(text[0].starts_with("✓ ✎ Edit parse.rs"), "{text:?}");
    assert!(text.iter().any(|line| line.contains("+1 -2")), "{text:?}");
    assert!(block(&view, 99, 60, &theme(ColorDepth::None)).is_empty());
}
