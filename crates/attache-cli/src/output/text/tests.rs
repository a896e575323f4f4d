//! What a person sees of a run.

use super::*;

fn printer(moves: bool) -> TextPrinter {
    TextPrinter::new(Screen { out: moves, err: moves, moves, colour: false })
}

#[test]
fn a_screen_shows_that_somebody_works_and_takes_it_back() {
    let mut printer = printer(true);
    assert_eq!(printer.idle(&Waiting::Model, Duration::from_millis(900)), []);
    let cargo = Waiting::Command("cargo test".into());
    let sign = "\x1b7\x1b[Krunning `cargo test` 3 s\x1b8";
    assert_eq!(printer.idle(&cargo, Duration::from_secs(3)), [Ink::err(sign)]);
    let text = Event::Text(crate::event::Text { text: "hello".into(), message_id: None });
    assert_eq!(printer.event(&text, ""), [Ink::err("\x1b[K"), Ink::out("hello")]);
    assert_eq!(printer.clear(), []);
    // Behind text there is room for a number.
    assert_eq!(printer.idle(&Waiting::Model, Duration::from_secs(3)), [Ink::err("\x1b7\x1b[K … 3 s\x1b8")]);
}

#[test]
fn a_log_is_told_now_and_then_in_plain_text() {
    let mut printer = printer(false);
    let told =
        |printer: &mut TextPrinter, seconds| !printer.idle(&Waiting::Model, Duration::from_secs(seconds)).is_empty();
    assert_eq!([5, 29, 30, 31, 59, 60].map(|at| told(&mut printer, at)), [false, false, true, false, false, true]);
    // The agent has spoken meanwhile.
    assert_eq!([1, 29, 30].map(|at| told(&mut printer, at)), [false, false, true]);
}

/// What a screen shows of events, text and talk together.
fn screen(events: Vec<Event>) -> String {
    let mut printer = TextPrinter::new(Screen { out: true, err: true, moves: true, colour: false });
    let mut shown = Vec::new();
    for event in &events {
        let gap = if printer.is_after_text { "" } else { "\n\n" };
        for ink in printer.event(event, gap) {
            match ink {
                Ink::Out(bytes) | Ink::Err(bytes) => shown.extend(bytes),
            }
        }
    }
    String::from_utf8(shown).unwrap()
}

fn text(text: &str) -> Event {
    Event::Text(crate::event::Text { text: text.into(), message_id: None })
}

fn tool(kind: &str, title: &str, status: &str, output: Option<&str>) -> Event {
    Event::Tool(Tool {
        id: title.into(),
        title: Some(title.into()),
        kind: Some(kind.into()),
        status: Some(status.into()),
        output: output.map(str::to_owned),
        ..Tool::default()
    })
}

#[test]
fn text_and_talk_stand_apart_by_one_empty_line() {
    let read = tool("read", "Read a", "in_progress", None);
    let shown =
        screen(vec![read.clone(), text("one"), read, tool("read", "Read b", "completed", None), text("\n\ntwo")]);
    assert_eq!(shown, "* Read a\n\none\n\n* Read b\n\ntwo");
}

#[test]
fn a_plan_is_told_by_what_has_changed() {
    let plan = |statuses: [&str; 2]| {
        let entry = |text: &str, status: &str| crate::event::PlanEntry {
            text: text.into(),
            status: Some(status.into()),
            priority: None,
        };
        Event::Plan(Plan { id: None, entries: vec![entry("look", statuses[0]), entry("leap", statuses[1])] })
    };
    let silent = tool("think", "Plan with 2 entries", "completed", None);
    let begun = plan(["in_progress", "pending"]);
    let shown = screen(vec![begun.clone(), silent, begun, plan(["completed", "pending"])]);
    assert_eq!(shown, "plan\n  [>] look\n  [ ] leap\nplan\n  [x] look\n");
}

#[test]
fn a_call_is_named_once_unless_something_came_between() {
    let command = |id: &str, line: &str| {
        Event::Command(Command { id: id.into(), command: Some(line.into()), ..Command::default() })
    };
    let events = vec![
        tool("execute", "make", "in_progress", None),
        command("1", "make"),
        tool("execute", "make", "failed", Some("no rule")),
        tool("execute", "a", "in_progress", None),
        tool("execute", "b", "in_progress", None),
        command("2", "sh -c b"),
        tool("execute", "a", "failed", None),
        tool("think", "c", "failed", Some("too hard")),
    ];
    let expected = "* make\n  failed\n    no rule\n* a\n* b\n  $ sh -c b\n  failed: a\n* c\n  failed\n    too hard\n";
    assert_eq!(screen(events), expected);
}

#[test]
fn an_agent_without_a_version_has_no_blank_for_it() {
    let agent = |version: Option<&str>| {
        let agent = serde_json::json!({
            "type": "agent", "agent": "mine", "version": version, "protocol": "1",
        });
        screen(vec![serde_json::from_value(agent).unwrap()])
    };
    assert_eq!(agent(None), "mine, protocol 1\n");
    assert_eq!(agent(Some("")), "mine, protocol 1\n");
    assert_eq!(agent(Some("2.0")), "mine 2.0, protocol 1\n");
}
