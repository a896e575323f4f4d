//! The three modes: what goes through, what is asked about, what is refused whoever asks; and how they are left.

use attache::Protocol;
use attache::model::permission::PermissionSubject;
use attache::model::tool::ToolCallContent;
use attache_agent::Mode;
use serde_json::{Value, json};

use crate::calling;
use crate::support::{DIALECTS, Person, Says, World, check};

/// Calls of every sort, each with a word for it.
fn calls() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("read", "read_file", json!({"path": "a.txt"})),
        ("read outside", "read_file", json!({"path": "../other.txt"})),
        ("list", "list_directory", json!({})),
        ("search", "search_files", json!({"pattern": "x"})),
        ("write", "write_file", json!({"path": "new.txt", "content": "x"})),
        ("write outside", "write_file", json!({"path": "../new.txt", "content": "x"})),
        ("edit", "edit_file", json!({"path": "a.txt", "old_text": "a", "new_text": "b"})),
        ("move", "move_file", json!({"from": "b.txt", "to": "c.txt"})),
        ("delete", "delete_file", json!({"path": "d.txt"})),
        ("run", "run_command", json!({"command": "touch ran.txt"})),
        ("fetch", "fetch_url", json!({"url": "https://example.com/"})),
        ("think", "think", json!({"thought": "Hm."})),
    ]
}

/// What becomes of each call in a mode, when the person says no to everything: `done`, `asked` or `refused`.
async fn fates(mode: Mode, protocol: Protocol) -> (World, String) {
    let script = calls().into_iter().map(|(_, name, arguments)| (name, arguments));
    let mut world = World::answering(calling(script.collect())).await;
    world.config.mode = mode;
    for name in ["a.txt", "b.txt", "d.txt"] {
        world.put(name, "a");
    }
    world.put_at("other.txt", "x");
    let mut chat = world.open(Person { says: Says::RejectOnce, ..Person::at(protocol) }).await;
    chat.turn("all of it").await;
    let results = world.results();
    assert_eq!(results.len(), calls().len(), "{results:?}");
    let fate = |result: &String| match result {
        result if result.contains("the person refused this call") => "asked",
        result if result.contains("refused: the mode `architect`") => "refused",
        result if result.contains("error") => panic!("{result}"),
        _ => "done",
    };
    let asked = results.iter().filter(|result| fate(result) == "asked").count();
    assert_eq!(chat.asked.len(), asked);
    let words = calls().into_iter().zip(&results).map(|((word, ..), result)| format!("{word}: {}", fate(result)));
    (world, words.collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn ask_reads_and_asks_for_the_rest() {
    for protocol in DIALECTS {
        let (world, fates) = fates(Mode::Ask, protocol).await;
        check(
            &fates,
            r#"
            read: done
            read outside: asked
            list: done
            search: done
            write: asked
            write outside: asked
            edit: asked
            move: asked
            delete: asked
            run: asked
            fetch: asked
            think: done
            "#,
        );
        check(
            &world.files(),
            r#"
            a.txt "a"
            b.txt "a"
            d.txt "a"
            "#,
        );
    }
}

#[tokio::test]
async fn architect_reads_and_changes_nothing_whatever_the_model_calls() {
    for protocol in DIALECTS {
        let (world, fates) = fates(Mode::Architect, protocol).await;
        check(
            &fates,
            r#"
            read: done
            read outside: asked
            list: done
            search: done
            write: refused
            write outside: refused
            edit: refused
            move: refused
            delete: refused
            run: refused
            fetch: asked
            think: done
            "#,
        );
        check(
            &world.files(),
            r#"
            a.txt "a"
            b.txt "a"
            d.txt "a"
            "#,
        );
        // What it called there was not even offered.
        check(
            &world.model().requests()[0].tool_names().join("\n"),
            r#"
            read_file
            list_directory
            find_files
            search_files
            job_output
            fetch_url
            think
            update_plan
            ask_user
            switch_mode
            task
            "#,
        );
    }
}

#[tokio::test]
async fn code_changes_files_in_the_project_and_asks_for_commands() {
    for protocol in DIALECTS {
        let (world, fates) = fates(Mode::Code, protocol).await;
        check(
            &fates,
            r#"
            read: done
            read outside: asked
            list: done
            search: done
            write: done
            write outside: asked
            edit: done
            move: done
            delete: asked
            run: asked
            fetch: asked
            think: done
            "#,
        );
        check(
            &world.files(),
            r#"
            a.txt "b"
            c.txt "a"
            d.txt "a"
            new.txt "x"
            "#,
        );
    }
}

#[tokio::test]
async fn a_change_in_architect_is_refused_even_if_a_rule_allows_it() {
    let mut world = World::answering(calling(vec![
        ("write_file", json!({"path": "new.txt", "content": "changed"})),
        ("run_command", json!({"command": "touch ran.txt"})),
    ]))
    .await;
    world.config.mode = Mode::Architect;
    world.put("a.txt", "as it was");
    let rules = "[[rule]]\nverdict = 'allow'\nkind = 'edit'\n\n[[rule]]\nverdict = 'allow'\ncommand = ['touch']\n";
    world.put_at("config/permissions.toml", rules);
    let seen = world.turn(Person::new(), "change it").await;
    check(
        &seen,
        r#"
        tool write_file "Create `new.txt`" edit: pending → failed
          at ~/new.txt
          | refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode with your plan when it is ready to be carried out.
        usage
        tool run_command "touch ran.txt" execute: pending → failed
          | refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode with your plan when it is ready to be carried out.
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    check(
        &world.files(),
        r#"
        a.txt "as it was"
        "#,
    );
}

/// Leaves `architect`, and gives what was seen and the mode that it is in afterwards.
async fn leave(plan: Option<&str>, to: &str, says: Says, protocol: Protocol) -> (String, String) {
    let mut arguments = json!({"mode": to});
    if let Some(plan) = plan {
        arguments["plan"] = plan.into();
    }
    let mut world = World::answering(calling(vec![
        ("switch_mode", arguments),
        ("write_file", json!({"path": "a.txt", "content": "changed"})),
    ]))
    .await;
    world.config.mode = Mode::Architect;
    let mut chat = world.open(Person { says, ..Person::at(protocol) }).await;
    assert_eq!(chat.option("mode").as_deref(), Some("architect"));
    let seen = chat.turn("carry it out").await;
    if let (Some(plan), Some(ask)) = (plan, chat.asked.first()) {
        let Some(PermissionSubject::ToolCall(subject)) = &ask.subject else { panic!("{ask:?}") };
        let content = subject.tool_call.content.set().unwrap();
        assert_eq!(content, &[ToolCallContent::text(plan)], "the person is shown the plan");
    }
    (seen, world.files())
}

#[tokio::test]
async fn architect_is_left_with_a_plan_that_is_allowed() {
    let (seen, files) = leave(Some("1. Write it."), "code", Says::AllowOnce, Protocol::V1).await;
    check(
        &seen,
        r#"
        tool switch_mode "Switch to mode `code`" switch_mode: pending → in_progress → completed
          | 1. Write it.
        usage
        permission "Switch to mode `code`" [allow_once, reject_once] → allow_once
        options mode=code model=openai:scripted
        mode code
        tool write_file "Create `a.txt`" edit: pending → in_progress → completed
          at ~/a.txt
          diff ~/a.txt: nothing → "changed"
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    check(&files, "a.txt \"changed\"");
    let (seen, _) = leave(Some("1. Write it."), "ask", Says::AllowOnce, Protocol::V2).await;
    check(
        &seen,
        r#"
        tool switch_mode "Switch to mode `ask`" switch_mode: pending → in_progress → completed
          | 1. Write it.
        usage
        permission "Switch from mode `architect` to `ask`" [allow_once, reject_once] → allow_once
        options mode=ask model=openai:scripted
        tool write_file "Create `a.txt`" edit: pending → in_progress → completed
          at ~/a.txt
          diff ~/a.txt: nothing → "changed"
        usage
        permission "Create `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        text Done.
        usage
        stop end_turn
        "#,
    );
}

#[tokio::test]
async fn architect_is_not_left_without_a_plan_or_a_yes() {
    for protocol in DIALECTS {
        let (seen, files) = leave(None, "code", Says::AllowOnce, protocol).await;
        check(
            &seen,
            r#"
            tool switch_mode "Switch to mode `code`" switch_mode: pending → failed
              | leaving `architect` needs the `plan`: the person is asked whether to carry it out
            usage
            tool write_file "Create `a.txt`" edit: pending → failed
              at ~/a.txt
              | refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode with your plan when it is ready to be carried out.
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        assert_eq!(files, "");
    }
    for says in [Says::RejectOnce, Says::Cancelled, Says::Nothing, Says::SomethingElse] {
        let (seen, files) = leave(Some("1. Write it."), "code", says, Protocol::V1).await;
        let seen = seen.replace(&format!("→ {}", says.word()), "→ NO");
        check(
            &seen,
            r#"
            tool switch_mode "Switch to mode `code`" switch_mode: pending → failed
              | the person refused this: they want to stay in mode `architect`
            usage
            permission "Switch to mode `code`" [allow_once, reject_once] → NO
            tool write_file "Create `a.txt`" edit: pending → failed
              at ~/a.txt
              | refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode with your plan when it is ready to be carried out.
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        assert_eq!(files, "");
    }
}

#[tokio::test]
async fn the_person_changes_the_mode_themselves() {
    for protocol in DIALECTS {
        let world = World::answering(calling(vec![("write_file", json!({"path": "a.txt", "content": "x"}))])).await;
        let mut chat = world.open(Person::at(protocol)).await;
        assert_eq!(chat.option("mode").as_deref(), Some("ask"));
        // Older clients of version 1 know modes only.
        let has_modes = chat.wire.lines().iter().any(|line| line.contains(r#""currentModeId":"ask""#));
        assert_eq!(has_modes, protocol == Protocol::V1);
        chat.set("mode", "architect").await;
        chat.turn("change it").await;
        assert!(chat.asked.is_empty());
        assert_eq!(world.files(), "");
        assert!(world.model().requests()[0].system().contains("Mode: architect"));
    }
}

#[tokio::test]
async fn a_command_plans_without_changing_anything() {
    let world = World::answering(calling(vec![("write_file", json!({"path": "a.txt", "content": "x"}))])).await;
    let seen = world.turn(Person::new(), "/plan add a test").await;
    check(
        &seen,
        r#"
        options mode=architect model=openai:scripted
        mode architect
        tool write_file "Create `a.txt`" edit: pending → failed
          at ~/a.txt
          | refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode with your plan when it is ready to be carried out.
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    assert_eq!(world.model().requests()[0].texts(), ["Make a plan, and change nothing yet: add a test"]);
}
