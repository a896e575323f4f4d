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

#[test]
fn the_last_line_tells_tokens_and_money() {
    let usage = |cached| crate::event::Usage {
        total_tokens: 1_534,
        input_tokens: 1_234,
        output_tokens: 300,
        thought_tokens: None,
        cached_read_tokens: cached,
        cached_write_tokens: None,
    };
    let cost = |amount| Cost { amount, currency: "USD".into() };
    let line = |usage, run: Option<f64>, session: Option<f64>| {
        let context = session.map(|amount| crate::event::ContextUsage { used: 1, size: 2, cost: Some(cost(amount)) });
        let mut printer = printer(false);
        let result = Result { usage, cost: run.map(cost), context, ..done() };
        let ink: Vec<u8> = printer
            .result(&result)
            .into_iter()
            .flat_map(|ink| match ink {
                Ink::Out(bytes) | Ink::Err(bytes) => bytes,
            })
            .collect();
        String::from_utf8(ink).unwrap()
    };
    for (usage, run, session, expected) in [
        (None, None, None, "1.5 s · session abc\n"),
        (Some(usage(None)), None, None, "1.5 s · 1.2k in · 300 out · session abc\n"),
        (
            Some(usage(Some(900))),
            Some(0.0123),
            Some(0.0123),
            "1.5 s · 1.2k in (900 cached) · 300 out · $0.0123 · session abc\n",
        ),
        (
            Some(usage(None)),
            Some(0.0123),
            Some(0.5),
            "1.5 s · 1.2k in · 300 out · $0.0123 ($0.50 in this session) · session abc\n",
        ),
        (None, None, Some(0.5), "1.5 s · $0.50 in this session · session abc\n"),
    ] {
        assert_eq!(line(usage, run, session), expected);
    }
}

/// What a run came to that did nothing.
fn done() -> Result {
    Result {
        status: crate::event::Status::Done,
        exit_code: 0,
        stop_reason: Some("end_turn".into()),
        text: String::new(),
        text_truncated: false,
        session_id: Some("abc".into()),
        run: String::new(),
        agent: Default::default(),
        model: None,
        usage: None,
        context: None,
        cost: None,
        permissions: Default::default(),
        tool_calls: Vec::new(),
        plan: None,
        unknown_updates: 0,
        files_changed: Vec::new(),
        sandbox: None,
        duration_ms: 1_500,
        error: None,
    }
}
