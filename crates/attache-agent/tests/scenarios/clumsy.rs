//! Models that know their work, and models that stumble: the same task, done in the end.

use attache::Protocol;
use attache_agent::ModelFacts;
use attache_testkit::model_server::Answer;
use serde_json::{Value, json};

use crate::support::{DIALECTS, Person, World, check};

const BROKEN: &str = "def add(a, b):\n    return a - b\n";
const MENDED: &str = "def add(a, b):\n    return a + b\n";

fn text(value: Value) -> Answer {
    Answer::text(value.to_string())
}

fn mend() -> Value {
    json!({"path": "sum.py", "old_text": "a - b", "new_text": "a + b"})
}

async fn world(answers: Vec<Answer>) -> World {
    let world = World::answering(answers).await;
    world.put("sum.py", BROKEN);
    world
}

fn is_mended(world: &World) {
    check(&world.files(), &format!("sum.py {MENDED:?}"));
}

#[tokio::test]
async fn a_model_that_knows_its_work_takes_four_requests() {
    for protocol in DIALECTS {
        let world = world(vec![
            Answer::new().call("read_file", json!({"path": "sum.py"})),
            Answer::new().call("edit_file", mend()),
            Answer::new().call("run_command", json!({"command": "grep -c '+' sum.py"})),
            Answer::text("add() adds now."),
        ])
        .await;
        let seen = world.turn(Person::at(protocol), "mend it").await;
        assert!(seen.ends_with("text add() adds now.\nusage\nstop end_turn"), "{seen}");
        is_mended(&world);
        assert_eq!(world.results().last().unwrap(), "1\n");
    }
}

/// Calls as text in every guise, wrong paths, half JSON, wrong names of tools and arguments, an edit that does not fit.
#[tokio::test]
async fn a_clumsy_model_gets_there() {
    let world = world(vec![
        text(json!({"name": "read_file", "arguments": {"path": "src/sum.py"}})),
        Answer::new().raw_call("read_file", "{\"path\": \"sum"),
        Answer::text(format!("```json\n{}\n```", json!({"name": "read", "arguments": {"file_path": "sum.py"}}))),
        Answer::text(format!(
            "<tool_call>{}</tool_call>",
            json!({"name": "edit_file", "arguments": {
            "path": "sum.py", "old_text": "    return a-b", "new_text": "    return a+b"}})
        )),
        Answer::new().call("write_file", json!({"path": "sum.py", "content": BROKEN})),
        Answer::new().call(
            "str_replace",
            json!({"path": "sum.py", "old_str": "2\t    return a - b", "new_str": "    return a + b"}),
        ),
        Answer::text("It is mended."),
    ])
    .await;
    let seen = world.turn(Person::new(), "mend it").await;
    assert!(seen.ends_with("text It is mended.\nusage\nstop end_turn"), "{seen}");
    is_mended(&world);
    let results = world.results();
    for (number, part) in [
        (0, "there is no file `src/sum.py`"),
        (1, "the arguments are not JSON"),
        (2, "1\tdef add(a, b):"),
        (3, "This is the file:\ndef add"),
        (4, "has this content already"),
        (5, "is edited: replaced line 2"),
    ] {
        assert!(results[number].contains(part), "{number}: {}", results[number]);
    }
}

/// The same for a small one that is held to a form: it has to begin, is told what was cut off, and is stopped when it goes
/// round in circles.
#[tokio::test]
async fn a_small_clumsy_model_gets_there() {
    let act = |action: &str, arguments: Value| text(json!({"action": action, "arguments": arguments}));
    let read = || act("read_file", json!({"path": "sum.py"}));
    let answers = vec![
        act("read_file", json!({"path": "sums.py"})),
        Answer::text("{\"action\": \"run_command\", \"arguments\": {\"command\": \"cat s"),
        read(),
        read(),
        act("write_file", json!({"path": "sum.py"})),
        Answer::text(format!("It has to add.\n\n```python\n{MENDED}```")),
        act("done", json!({"message": "It adds now."})),
    ];
    let mut world = world(answers).await;
    let facts = ModelFacts { small: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let seen = world.turn(Person::at(Protocol::V2), "mend it").await;
    assert!(seen.ends_with("text It adds now.\nusage\nstop end_turn"), "{seen}");
    is_mended(&world);
    let requests = world.model().requests();
    assert_eq!(requests.len(), 7);
    let actions = |number: usize| requests[number].body["response_format"].to_string();
    assert!(!actions(0).contains("\"done\"") && !actions(1).contains("\"done\"") && actions(3).contains("\"done\""));
    assert!(requests[5].body.get("response_format").is_none(), "a text is no JSON");
    let told = requests[6].texts().concat();
    for part in [
        "the arguments are not JSON",
        "You have read this before",
        "What has changed:\n-    return a - b\n+    return a + b",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// One that never comes to an end is made to.
#[tokio::test]
async fn a_small_model_in_a_circle_has_to_finish() {
    let read = || text(json!({"action": "read_file", "arguments": {"path": "sum.py"}}));
    let mut answers: Vec<Answer> = std::iter::repeat_with(read).take(4).collect();
    answers.push(text(json!({"action": "done", "arguments": {"message": "I could not."}})));
    let mut world = world(answers).await;
    let facts = ModelFacts { small: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let seen = world.turn(Person::new(), "mend it").await;
    assert!(seen.ends_with("text I could not.\nusage\nstop end_turn"), "{seen}");
    let last = world.model().requests().last().unwrap().body["response_format"]["json_schema"]["schema"].clone();
    assert_eq!(last["oneOf"].as_array().unwrap().len(), 1, "{last}");
}
