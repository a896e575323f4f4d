//! Hooks: what they are told, what they refuse and say, and what becomes of those that do not behave.

use std::fs;
use std::time::{Duration, Instant};

use attache_agent::{Hook, HookEvent};
use serde_json::{Value, json};

use crate::scripted;
use crate::support::{Person, World, check};

pub(super) fn hook(event: HookEvent, tools: &[&str], command: &str) -> Hook {
    let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
    Hook { event, tools, command: command.into(), timeout: Duration::from_secs(20) }
}

async fn hooked(hooks: Vec<Hook>) -> World {
    let mut world = scripted().await;
    world.config.hooks = hooks;
    world
}

/// A hook judges what is done, whatever the model has called it.
#[tokio::test]
async fn a_hook_is_told_the_arguments_under_our_names() {
    let world = hooked(vec![hook(HookEvent::BeforeTool, &["run_*"], "grep -q '\"command\":\"touch' && exit 2")]).await;
    world.turn(Person::new(), "call bash {\"cmd\":\"touch a.txt\",\"unknown\":1}").await;
    assert!(world.results()[0].contains("refused by a hook"), "{:?}", world.results());
    assert!(!world.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_hook_before_a_tool_is_told_of_the_call_and_can_refuse_it() {
    let refuse = "cat > told.json; echo 'no writing on Sundays' >&2; exit 2";
    let world = hooked(vec![hook(HookEvent::BeforeTool, &["write_*"], refuse)]).await;
    let seen = world.turn(Person::new(), "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}").await;
    check(
        &seen,
        r#"
        text step 1
        tool write_file "Create `a.txt`" edit: pending → failed
          at ~/a.txt
          | refused by a hook of the person's: no writing on Sundays
        usage
        text done
        usage
        stop end_turn
        "#,
    );
    assert_eq!(world.results(), ["error: refused by a hook of the person's: no writing on Sundays"]);
    assert!(!world.project().join("a.txt").exists());
    let told: Value = serde_json::from_str(&fs::read_to_string(world.project().join("told.json")).unwrap()).unwrap();
    assert_eq!((&told["event"], &told["tool"]), (&json!("before_tool"), &json!("write_file")));
    assert_eq!(told["arguments"], json!({"path": "a.txt", "content": "x"}));
    assert_eq!(told["cwd"], json!(world.project()));
    assert!(told["sessionId"].as_str().is_some_and(|id| !id.is_empty()));
}

#[tokio::test]
async fn what_a_hook_after_a_tool_says_is_told_and_what_it_changes_is_taken_back_with_the_turn() {
    let world = hooked(vec![hook(
        HookEvent::AfterTool,
        &["write_file"],
        "grep -q 'is created' - || exit 7; echo formatted > a.txt; echo 'line 1 is bad'; exit 2",
    )])
    .await;
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\ncall list_directory {}").await;
    assert!(!seen.contains("notice") && !seen.contains("thought"), "{seen}");
    assert!(world.results()[0].contains("A hook of the person's says:\nline 1 is bad"), "{:?}", world.results());
    assert_eq!(world.files(), "a.txt \"formatted\\n\"");
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("- `a.txt`, with what the agent changed before that"), "{seen}");
    assert_eq!(world.files(), "a.txt \"formatted\\n\"");
    let seen = chat.turn("/undo all").await;
    assert_eq!(world.files(), "", "{seen}");
}

#[tokio::test]
async fn what_a_hook_says_at_the_end_is_no_command_for_the_model_that_is_built_in() {
    let mut world = World::new("offline", None);
    world.config.hooks = vec![hook(HookEvent::EndOfTurn, &[], "echo 'tests fail'; exit 2")];
    let seen = world.turn(Person::new(), "say hello").await;
    assert!(seen.contains("tests fail") && !seen.contains("do not understand"), "{seen}");
    assert!(seen.ends_with("stop end_turn"), "{seen}");
}

#[tokio::test]
async fn a_hook_at_the_end_of_a_turn_lets_it_go_on_once() {
    let count = "echo x >> count; echo 'the tests fail'; exit 2";
    let mut world = World::answering(vec![
        attache_testkit::model_server::Answer::text("Done."),
        attache_testkit::model_server::Answer::text("Really."),
    ])
    .await;
    world.config.hooks = vec![hook(HookEvent::EndOfTurn, &[], count)];
    let seen = world.turn(Person { news: true, ..Person::new() }, "go").await;
    check(
        &seen,
        r#"
        text Done.
        usage
        text Really.
        usage
        notice warning A hook at the end of the turn says:
        the tests fail
        stop end_turn
        "#,
    );
    let texts = world.model().requests()[1].texts();
    assert!(texts.last().unwrap().contains("the tests fail"), "{texts:?}");
    assert_eq!(world.files(), "count \"x\\nx\\n\"");
}

#[tokio::test]
async fn a_hook_at_the_end_of_a_turn_runs_also_where_the_model_cannot_go_on() {
    let answer =
        attache_testkit::model_server::Answer::text("I will no").stop(attache_testkit::model_server::Stop::Length);
    let mut world = World::answering(vec![answer]).await;
    world.config.hooks = vec![hook(HookEvent::EndOfTurn, &[], "echo x >> count; echo 'not formatted'; exit 2")];
    let seen = world.turn(Person { news: true, ..Person::new() }, "go").await;
    assert!(seen.contains("not formatted") && seen.ends_with("stop max_tokens"), "{seen}");
    assert_eq!(world.files(), "count \"x\\n\"");
}

#[tokio::test]
async fn a_hook_before_a_tool_that_fails_or_hangs_is_a_notice_and_lets_nothing_pass() {
    for (command, notice) in [
        ("sleep 300 & sleep 300", "hook before_tool: `sleep 300 & sleep 300` timed out after 1 s"),
        ("echo first; printf 'last \\033[31m'; exit 3", "ended with status 3: last"),
        ("kill -9 $$", "hook before_tool: `kill -9 $$` ended by a signal"),
        ("/no/such/program", "hook before_tool: `/no/such/program` ended with status 127"),
    ] {
        let mut guard = hook(HookEvent::BeforeTool, &[], command);
        guard.timeout = Duration::from_secs(1);
        let world = hooked(vec![guard]).await;
        let seen = world
            .turn(Person { news: true, ..Person::new() }, "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}")
            .await;
        assert!(seen.contains(notice) && !seen.contains('\u{1b}'), "{notice}: {seen}");
        assert!(world.results()[0].contains("refused by a hook"), "{:?}", world.results());
        assert!(!world.project().join("a.txt").exists());
    }
}

#[tokio::test]
async fn hooks_that_fail_hang_or_print_without_end_are_notices_and_the_work_goes_on() {
    let mut endless = hook(HookEvent::AfterTool, &[], "yes");
    endless.timeout = Duration::from_secs(1);
    let world = hooked(vec![
        endless,
        hook(HookEvent::AfterTool, &[], "echo first; printf 'last \\033[31m'; exit 3"),
        hook(HookEvent::AfterTool, &[], "yes | head -c 3000000; exit 2"),
        hook(HookEvent::BeforeTool, &["other"], "echo no; exit 2"),
    ])
    .await;
    let begun = Instant::now();
    let mut chat = world.open(Person { news: true, ..Person::new() }).await;
    let seen = chat.turn("call list_directory {}").await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    for notice in ["notice warning hook after_tool: `yes` timed out after 1 s", "ended with status 3: last"] {
        assert!(seen.contains(notice), "{notice}: {seen}");
    }
    assert!(!seen.contains('\u{1b}') && seen.contains("completed"), "{seen}");
    assert!(world.results()[0].len() < 20_000, "{}", world.results()[0].len());
    let seen = chat.turn("/status").await;
    assert!(seen.contains("- Hook: before_tool of other: `echo no; exit 2` (agent.toml)"), "{seen}");
}

#[tokio::test]
async fn hooks_of_a_project_need_trust_and_lose_it_when_their_program_changes() {
    let world = scripted().await;
    world.put("check.sh", "echo ran >> ran; exit 0\n");
    world.put(".attache/hooks.toml", "[[hooks]]\nevent = 'before_tool'\ncommand = 'sh ./check.sh'\n");
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("call list_directory {}").await;
    assert!(seen.contains("has no effect, because it is not trusted"), "{seen}");
    assert!(!world.project().join("ran").exists());
    assert!(!chat.turn("/status").await.contains("Hook"));

    world.trust();
    let mut chat = world.open(Person { news: true, ..Person::new() }).await;
    chat.turn("call list_directory {}").await;
    assert_eq!(fs::read_to_string(world.project().join("ran")).unwrap(), "ran\n");
    assert!(chat.turn("/status").await.contains("`sh ./check.sh` (the project's hooks.toml)"));
    // The agent, or whoever, puts something else in its place while the session is open.
    let seen = chat
        .turn(
            "call read_file {\"path\":\"check.sh\"}\ncall write_file {\"path\":\"check.sh\",\"content\":\"touch pwned\"}\n\
             call list_directory {}",
        )
        .await;
    assert!(seen.contains("did not run: ") && seen.contains("it has changed since it was trusted"), "{seen}");
    assert!(!world.project().join("pwned").exists());
}

#[tokio::test]
async fn a_file_of_hooks_with_a_mistake_runs_none_and_is_named() {
    let world = scripted().await;
    world.put(".attache/hooks.toml", "[[hooks]]\nevent = 'sometimes'\ncommand = 'touch x'\n");
    world.trust();
    let seen = world.turn(Person::new(), "call list_directory {}").await;
    assert!(seen.contains("`hooks.toml` of the project: line 2"), "{seen}");
    assert!(!world.project().join("x").exists());
}
