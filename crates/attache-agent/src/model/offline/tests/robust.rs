//! Bad input, bad luck and long texts; and the tour in every weather.

use super::super::verb::TABLE;
use super::*;

/// A world that does what the dice say.
fn luck(dice: &mut Dice) -> (String, bool) {
    let text =
        dice.pick(&["", "fine", NO, "it broke\nbadly", "ünïcödé ``` ````", "1\n2\n3\n", "The user said no to it"]);
    (text.to_string(), dice.one_in(2))
}

#[tokio::test]
async fn every_command_ends_whatever_comes_of_its_calls() {
    for row in TABLE {
        for tool in [fine, broken, refused] {
            turn(row.example, &mut { tool }).await;
            converse(Vec::new(), vec![Part::text(row.example)], READING, &mut { tool }).await;
        }
        for seed in 0..5 {
            let mut dice = Dice::new(seed);
            turn(row.example, &mut |_| luck(&mut dice)).await;
        }
    }
}

#[tokio::test]
async fn the_tour_shows_everything_and_cleans_up() {
    let mut tool = |call: &Call| match call.arguments.contains("exit 3") {
        true => ("exit code 3".to_string(), true),
        false => ("fine".to_string(), false),
    };
    let turn = turn("tour", &mut tool).await;
    let names = turn.names();
    for name in TOOLS.iter().filter(|name| !["job_output", "stop_job", "find_files", "server__tool"].contains(name)) {
        assert!(names.iter().any(|called| called == name), "{name}");
    }
    assert!(!turn.answers[0].thoughts.is_empty());
    let calls = turn.calls();
    let at = |name: &str| calls.iter().rposition(|(called, _)| called == name).unwrap();
    assert_eq!(calls[at("delete_file")].1["path"], "attache-tour");
    assert_eq!(calls[at("delete_file") - 1].1["path"], "attache-tour/goodbye.txt");
    let marks = calls[at("update_plan")].1["entries"].as_array().unwrap().clone();
    assert!(marks.iter().all(|entry| entry["status"] == "completed"));
    let last = &turn.answers.last().unwrap().text;
    assert!(!last.contains('✗') && !last.contains("| – |") && last.contains("16 of 16"), "{last}");
    // Every answer that calls something says what there is to see, except for the marks of the plan.
    for said in turn.answers.iter().filter(|said| said.calls.iter().any(|call| call.name == "edit_file")) {
        assert!(said.text.contains("**Edit**"));
    }
}

#[tokio::test]
async fn the_tour_leaves_out_what_is_refused_and_touches_nothing_that_it_did_not_make() {
    let turn = turn("tour", &mut |call| if call.name == "write_file" { refused(call) } else { fine(call) }).await;
    for name in ["read_file", "edit_file", "move_file", "delete_file"] {
        assert!(!turn.names().contains(&name.to_string()), "{name}");
    }
    // The table without its padding.
    let rows = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(rows(turn.text()).contains("| create | – | you said no |"));
    assert!(rows(turn.text()).contains("| failed command | ✗ | it should have failed, and did not |"));
    assert!(rows(turn.text()).contains("| edit | – | there was no file to show it with |"));
    let there = super::turn("tour; say x", &mut |_| ("attache-tour/".into(), false)).await;
    assert_eq!(there.names(), ["update_plan", "list_directory"]);
    let all = super::turn("tour", &mut refused).await;
    assert!(rows(all.text()).contains("| question | – | you said no |"), "{}", all.text());
    let reading = converse(begun(), vec![Part::text("tour")], READING, &mut fine).await;
    assert!(rows(reading.text()).contains("| create | – | this mode has no such tool |"), "{}", reading.text());
    assert!(!reading.names().contains(&"switch_mode".to_string()));
}

#[tokio::test]
async fn the_tour_ends_in_every_weather() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut world = Dice::new(seed + 1);
        let offered: Vec<_> = TOOLS.iter().copied().filter(|_| !dice.one_in(6)).chain(["read_file"]).collect();
        converse(begun(), vec![Part::text("tour")], &offered, &mut |_| luck(&mut world)).await;
    }
}

#[tokio::test]
async fn no_prompt_makes_it_stumble() {
    let bits = [
        "read",
        "create",
        "a.txt",
        " ",
        "with",
        "\n",
        ";",
        "\"",
        "'",
        "`",
        "```",
        "“",
        "”",
        "in",
        "to",
        "and",
        "lines 3-",
        "9",
        "plan",
        ",",
        "$",
        "ä",
        "\u{202e}",
        "\0",
        "🦀",
        "\\",
        "replace",
        "[a/b]",
        "[",
        "](",
        ")",
        "file://%",
        "ask",
        "run",
        "append",
        "call t {",
        "}",
        ":",
        "please",
        "the",
        "<",
        "@",
        "…",
        "say",
        "-",
        "1.",
        "\r\n",
        "\t",
        "search",
        "/",
        "mode",
        "find",
        "delete",
        "move",
        "think",
        "ls",
        "write",
        "in the background",
        "line 2 of",
    ];
    for seed in 0..3000 {
        let mut dice = Dice::new(seed);
        let mut prompt = String::new();
        for _ in 0..dice.below(14) {
            prompt.push_str(dice.pick(&bits));
            prompt.push_str(dice.pick(&[" ", "", " "]));
        }
        let mut world = Dice::new(seed);
        let count = prompt.len();
        let turn = turn(&prompt, &mut |_| luck(&mut world)).await;
        assert!(turn.answers.len() <= count + 3, "{prompt:?}");
    }
}

#[tokio::test]
async fn any_conversation_is_answered() {
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut messages = Vec::new();
        for _ in 0..dice.below(10) {
            let name = dice.pick(TOOLS).to_string();
            let id = dice.pick(&["1", "2", ""]).to_string();
            let prompt = dice.pick(&[
                "tour",
                "append x to y",
                "replace a with b in c",
                "plan list, read a",
                "loop",
                "read a and b",
            ]);
            let arguments = dice.pick(&["{}", "", "[1]", "{\"path\": 1}", "{\"path\":\"c\"}"]).to_string();
            messages.push(match dice.below(4) {
                0 => Message::user(prompt),
                1 => Message::Tool { id, name, parts: vec![Part::text(luck(&mut dice).0)], is_error: dice.one_in(2) },
                2 => Message::User { parts: Vec::new() },
                _ => {
                    let call = Call { id, name, arguments };
                    Message::Assistant { text: String::new(), calls: vec![call; dice.below(3)], opaque: None }
                }
            });
        }
        let offered = if dice.one_in(4) { &[][..] } else { TOOLS };
        let said = ask(Request { messages, tools: tools(offered), ..Request::default() }).await;
        assert!(!said.text.is_empty() || !said.calls.is_empty());
    }
}

#[tokio::test]
async fn long_prompts_take_time_in_proportion() {
    let begin = Instant::now();
    let check = async |start: &str, bit: &str, length: usize| {
        let prompt = format!("{start}{}", bit.repeat(length / bit.len()));
        ask(Request { messages: vec![Message::user(prompt)], tools: tools(TOOLS), ..Request::default() }).await;
    };
    check("say ", "some words ", 10 << 20).await;
    check("create a with ", "\"'`“ ", 10 << 20).await;
    let bits = [
        "x",
        "say x ",
        "read a, ",
        "read a & ",
        "\"'`“ ",
        "\" ",
        "say a;",
        "now ",
        "; ",
        " ",
        "\n",
        "read 'a",
        "\\\"",
        "plan a,",
    ];
    for bit in bits {
        for start in ["", "say ", "read ", "create a with ", "plan ", "replace ", "now say x;", "mode ", "ask "] {
            // Long enough for what grows with the square of the length to take minutes, each.
            check(start, bit, 64 << 10).await;
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn without_tools_it_sums_up() {
    let messages = vec![Message::user("read a"), Message::user("list\nmore")];
    let said = ask(Request { system: "Sum up.".into(), messages, ..Request::default() }).await;
    assert_eq!(said.text, "What was asked for:\n- read a\n- list…");
    assert!(said.calls.is_empty());
}
