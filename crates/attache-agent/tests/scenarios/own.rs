//! The tools that concern the conversation, the web, and the ten kinds of tools.

use std::collections::BTreeSet;

use attache::Protocol;
use attache::model::Patch;
use attache::model::update::SessionUpdate;
use attache_testkit::{HttpFixture, Response};
use serde_json::json;

use crate::calling;
use crate::support::{DIALECTS, Person, Says, World, check};

#[tokio::test]
async fn thoughts_plans_and_modes_are_shown() {
    for protocol in DIALECTS {
        let entries = json!([
            {"content": "Look", "status": "completed", "priority": "high"},
            {"content": "Change", "status": "in_progress"},
            {"content": "Check", "status": "pending", "priority": "low"},
        ]);
        let world = World::answering(calling(vec![
            ("think", json!({"thought": "What now?\nThis."})),
            ("update_plan", json!({"entries": entries})),
            ("switch_mode", json!({"mode": "code"})),
        ]))
        .await;
        let seen = world.turn(Person::at(protocol), "think").await;
        // Version 1 has modes beside the options, version 2 has a title for the question.
        assert_eq!(seen.contains("\nmode code\n"), protocol == Protocol::V1);
        let seen =
            seen.replace("\nmode code\n", "\n").replace("Switch from mode `ask` to `code`", "Switch to mode `code`");
        check(
            &seen,
            r#"
            tool think "Think" think: pending → in_progress → completed
              | What now?
              | This.
            usage
            tool update_plan "Plan with 3 entries" think: pending → in_progress → completed
            usage
            plan high completed "Look", medium in_progress "Change", low pending "Check"
            tool switch_mode "Switch to mode `code`" switch_mode: pending → in_progress → completed
            usage
            permission "Switch to mode `code`" [allow_once, reject_once] → allow_once
            options mode=code model=openai:scripted
            text Done.
            usage
            stop end_turn
            "#,
        );
    }
}

#[tokio::test]
async fn a_question_reaches_the_person_where_there_are_forms() {
    let question = || calling(vec![("ask_user", json!({"question": "Which one?", "choices": ["red", "blue"]}))]);
    for (forms, told) in [
        (
            None,
            "the person cannot be asked in the middle of a turn here: put the question into your answer and end the turn",
        ),
        (Some(None), "the person did not want to answer"),
        (Some(Some("blue")), "the person answered: blue"),
    ] {
        for protocol in [Protocol::V1, Protocol::V2] {
            let world = World::answering(question()).await;
            let seen = world.turn(Person { forms, ..Person::at(protocol) }, "ask me").await;
            let asked = match forms {
                None => "",
                Some(answer) => &format!("question \"Which one?\" → {}\n", answer.unwrap_or("declined")),
            };
            check(
                &seen,
                &format!(
                    "tool ask_user \"Ask: Which one?\" other: pending → in_progress → completed\n  | Which one?\nusage\n\
                     {asked}text Done.\nusage\nstop end_turn"
                ),
            );
            assert_eq!(world.results(), [told]);
        }
    }
}

#[tokio::test]
async fn a_page_is_fetched_as_text_when_that_is_allowed() {
    let server = HttpFixture::start(vec![("/page", Response::html("<h1>Hello</h1><p>There."))]).await;
    for protocol in DIALECTS {
        let url = server.url("/page");
        let mut world = World::answering(calling(vec![
            ("fetch_url", json!({"url": url})),
            ("fetch_url", json!({"url": server.url("/none")})),
        ]))
        .await;
        world.config.fetches_loopback = true;
        let seen = world.turn(Person::at(protocol), "fetch it").await;
        check(
            &seen.replace(&server.url(""), "http://SERVER"),
            r#"
            tool fetch_url "Fetch http://SERVER/page" fetch: pending → in_progress → completed
              | http://SERVER/page: HTTP 200, text/html, 23 bytes
              | ```
              | # Hello
              |
              | There.
              | ```
            usage
            permission "Fetch http://SERVER/page" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool fetch_url "Fetch http://SERVER/none" fetch: pending → in_progress → failed
              | http://SERVER/none: HTTP 404, no type, 0 bytes
            usage
            permission "Fetch http://SERVER/none" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            text Done.
            usage
            stop end_turn
            "#,
        );
        check(
            &world.results().join("\n").replace(&server.url(""), "http://SERVER"),
            r#"
            http://SERVER/page: HTTP 200, text/html, 23 bytes

            # Hello

            There.
            error: http://SERVER/none: HTTP 404, no type, 0 bytes
            "#,
        );
    }
}

#[tokio::test]
async fn pages_of_this_machine_are_not_fetched() {
    let server = HttpFixture::start(vec![("/", Response::text("secret"))]).await;
    let world = World::answering(calling(vec![("fetch_url", json!({"url": server.url("/")}))])).await;
    let seen = world.turn(Person::new(), "fetch it").await;
    check(
        &seen,
        r#"
        tool fetch_url "Fetch a page" fetch: pending → failed
          | `127.0.0.1` is not on the public internet, so it is not fetched
          | hint: a command can reach it
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    assert!(server.requests().is_empty());
}

/// The protocol has ten kinds of tools. The built-in model calls every one.
#[tokio::test]
async fn all_ten_kinds_of_tools_occur() {
    for protocol in DIALECTS {
        let world = World::answering(calling(vec![
            ("read_file", json!({"path": "a.txt"})),
            ("write_file", json!({"path": "b.txt", "content": "b"})),
            ("delete_file", json!({"path": "b.txt"})),
            ("move_file", json!({"from": "a.txt", "to": "c.txt"})),
            ("find_files", json!({"pattern": "*"})),
            ("run_command", json!({"command": "true"})),
            ("think", json!({"thought": "Hm."})),
            ("fetch_url", json!({"url": "http://127.0.0.1/"})),
            ("switch_mode", json!({"mode": "architect"})),
            ("ask_user", json!({"question": "Well?"})),
        ]))
        .await;
        world.put("a.txt", "a");
        let mut chat = world.open(Person { says: Says::AllowOnce, ..Person::at(protocol) }).await;
        chat.turn("all of them").await;
        let kinds: BTreeSet<&str> = chat
            .updates
            .iter()
            .filter_map(|update| match update {
                SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => match &call.kind {
                    Patch::Set(kind) => Some(kind.as_str()),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let all = ["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"];
        assert_eq!(kinds, BTreeSet::from(all));
    }
}
