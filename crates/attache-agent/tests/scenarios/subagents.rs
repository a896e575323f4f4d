//! Sub-agents: a task of their own, read-only unless allowed, a text as the result.

use std::time::Duration;

use attache::Protocol;
use attache::model::tool::ToolCallStatus;
use attache::model::update::SessionUpdate;
use attache_testkit::model_server::{Answer, ModelRequest, ModelServer};
use serde_json::json;

use crate::support::{DIALECTS, Person, Says, World, check};

/// A model that gives these tasks at once, and a sub-agent that answers as the function says, given how many results of
/// tools it has.
async fn tasks(tasks: Vec<serde_json::Value>, sub: impl Fn(&ModelRequest, usize) -> Answer + Send + 'static) -> World {
    let server = ModelServer::with(move |request| {
        let results = request.tool_results().len();
        if request.system().contains("You are a sub-agent") {
            return sub(request, results);
        }
        match results {
            0 => tasks.iter().fold(Answer::new(), |answer, task| answer.call("task", task.clone())),
            _ => Answer::text("Done."),
        }
    })
    .await;
    World::new("openai:scripted", Some(server))
}

fn task(prompt: &str) -> serde_json::Value {
    json!({"description": "look around", "prompt": prompt})
}

#[tokio::test]
async fn a_task_is_done_in_a_conversation_of_its_own_and_its_last_text_is_the_result() {
    for protocol in DIALECTS {
        let world = tasks(vec![task("Where is main?")], |_, results| match results {
            0 => Answer::text("I look.").call("search_files", json!({"pattern": "fn main"})),
            1 => Answer::new().call("read_file", json!({"path": "none.rs"})),
            _ => Answer::text("In src/main.rs, line 2.").usage(70, 0, 7),
        })
        .await;
        world.put("src/main.rs", "\nfn main() {}\n");
        let mut chat = world.open(Person::at(protocol)).await;
        let seen = chat.turn("find it").await;
        let states: Vec<String> = chat
            .updates
            .iter()
            .filter_map(|update| match update {
                SessionUpdate::Subagent(update) => Some(format!("{:?}", update.state)),
                _ => None,
            })
            .collect();
        let expected = if protocol == Protocol::V2 { 2 } else { 0 };
        assert_eq!(states.len(), expected, "{protocol:?}: {states:?}");
        assert!(states.is_empty() || (states[0].contains("Running") && states[1].contains("Idle")), "{states:?}");
        let seen: Vec<&str> = seen.lines().filter(|line| !line.starts_with("Subagent")).collect();
        check(
            &seen.join("\n"),
            r#"
            tool task "Task: look around" other: pending → in_progress → completed
              | - Search for `fn main` in `.`
              | - Read `none.rs` (failed)
              | In src/main.rs, line 2.
            usage
            usage
            usage
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        assert_eq!(world.results(), ["In src/main.rs, line 2."]);
        let requests = world.model().requests();
        assert_eq!(requests[1].texts(), ["Where is main?"], "it knows nothing of the conversation");
        let told = requests.last().unwrap().texts();
        assert!(!told.iter().any(|text| text.contains("I look.") || text.contains("Where is main")), "{told:?}");
        let offered = requests[1].tool_names();
        assert!(offered.contains(&"read_file".into()), "{offered:?}");
        for tool in ["task", "ask_user", "switch_mode", "update_plan", "write_file", "edit_file", "run_command"] {
            assert!(!offered.contains(&tool.to_owned()), "{offered:?}");
        }
        let status = chat.turn("/status").await;
        assert!(status.contains("- Sub-agents: ") && status.contains(" out"), "{status}");
    }
}

#[tokio::test]
async fn a_sub_agent_changes_nothing_unless_it_is_allowed_and_then_the_person_is_asked() {
    let write = |_: &ModelRequest, results| match results {
        0 => Answer::new().call("write_file", json!({"path": "a.txt", "content": "x"})),
        1 => Answer::new().call("task", task("deeper")),
        _ => Answer::text("Tried."),
    };
    let world = tasks(vec![task("write")], write).await;
    let seen = world.turn(Person::new(), "go").await;
    assert!(!seen.contains("permission") && seen.contains("- Create `a.txt` (failed)"), "{seen}");
    assert_eq!(world.files(), "");

    let allowed = json!({"description": "write", "prompt": "write", "allow_changes": true});
    for says in [Says::AllowOnce, Says::RejectOnce] {
        let world = tasks(vec![allowed.clone()], write).await;
        let mut chat = world.open(Person::saying(says)).await;
        let seen = chat.turn("go").await;
        assert!(seen.contains("permission \"Create `a.txt`\""), "{seen}");
        assert!(seen.contains("- Task: look around (failed)"), "no deeper: {seen}");
        let is_done = says == Says::AllowOnce;
        assert_eq!(world.files(), if is_done { "a.txt \"x\"" } else { "" }, "{seen}");
        assert_eq!(chat.turn("/undo").await.contains("`a.txt`: removed"), is_done);
        assert_eq!(world.files(), "");
    }
}

#[tokio::test]
async fn what_is_outside_of_the_project_is_asked_about_as_usual() {
    let world = tasks(vec![task("read it")], |_, results| match results {
        0 => Answer::new().call("read_file", json!({"path": "../outside.txt"})),
        _ => Answer::text("Refused."),
    })
    .await;
    world.put_at("outside.txt", "precious");
    let seen = world.turn(Person::saying(Says::RejectOnce), "go").await;
    assert!(seen.contains("permission \"Read"), "{seen}");
    let requests = world.model().requests();
    assert!(!requests.iter().any(|request| request.tool_results().iter().any(|text| text.contains("precious"))));
}

#[tokio::test]
async fn tasks_that_only_look_run_side_by_side() {
    let world = tasks(vec![task("read a.txt"), task("read b.txt")], |request, results| {
        let path = request.texts()[0].replace("read ", "");
        match results {
            0 => Answer::new().call("read_file", json!({"path": path})),
            _ => Answer::text(format!("read {path}")),
        }
    })
    .await;
    world.put("a.txt", "a");
    world.put("b.txt", "b");
    // The client answers no read before both are there.
    let mut chat = world.open(Person { files: true, held_reads: 2, ..Person::new() }).await;
    let seen = chat.turn("go").await;
    assert!(seen.ends_with("stop end_turn"), "{seen}");
    assert_eq!(world.results(), ["read a.txt", "read b.txt"], "in the order of the calls");
}

#[tokio::test]
async fn a_sub_agent_that_never_ends_is_stopped_and_one_that_fails_says_so() {
    let world = tasks(vec![task("loop")], |_, _| Answer::text("Still.").call("list_directory", json!({}))).await;
    let seen = world.turn(Person::new(), "go").await;
    assert!(world.results()[0].contains("stopped after 30 requests. It said last:\nStill."), "{:?}", world.results());
    assert!(seen.contains("(10 earlier calls)"), "{seen}");
    assert_eq!(world.model().requests().len(), 32);

    let world = tasks(vec![task("fail")], |_, _| Answer::status(400)).await;
    let seen = world.turn(Person::new(), "go").await;
    assert!(seen.ends_with("text Done.\nusage\nstop end_turn"), "{seen}");
    assert!(world.results()[0].contains("the sub-agent's model failed"), "{:?}", world.results());

    let world = tasks(vec![json!({"description": "x", "prompt": " "})], |_, _| Answer::text("never")).await;
    world.turn(Person::new(), "go").await;
    assert!(world.results()[0].contains("`prompt` is empty"), "{:?}", world.results());
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_sub_agents_and_leaves_nothing_open() {
    for protocol in DIALECTS {
        let allowed = json!({"description": "wait", "prompt": "wait", "allow_changes": true});
        let world =
            tasks(vec![allowed], |_, _| Answer::new().call("run_command", json!({"command": "sleep 60"}))).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let mut turn = chat.session().clone().prompt("go").await.unwrap();
        let mut view = attache::SessionView::new();
        let (mut transcript, mut is_cancelled) = (Default::default(), false);
        let work = async {
            while let Some(event) = turn.next().await.unwrap() {
                if let attache::Event::Update(update) = &event {
                    view.apply(update);
                }
                let is_running = |name: &str| {
                    view.tool_calls().any(|call| call.title.contains(name) && call.status == ToolCallStatus::InProgress)
                };
                if is_running("sleep 60") && !is_cancelled {
                    is_cancelled = true;
                    turn.cancel().await.unwrap();
                }
                chat.handle(event, &mut transcript).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), work).await.expect("it ends in time");
        assert!(is_cancelled);
        assert_eq!(view.tool_calls().count(), 2);
        assert!(view.tool_calls().all(|call| call.status.is_final()), "{protocol:?}");
    }
}
