//! What a model is asked, whole and to the letter: the prompt, the tools, and what comes with each prompt.

use std::path::PathBuf;

use attache_agent::ModelFacts;
use attache_testkit::model_server::{Answer, ModelRequest, ModelServer};
use serde_json::{Value, json};

use crate::calling;
use crate::support::{Person, World};

/// Compares a request with a file. `BLESS=1` takes what there is for right.
fn compare(name: &str, request: &ModelRequest, world: &World) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/requests").join(name);
    let root = world.root.to_str().unwrap();
    // A machine, a folder and a day of its own.
    let mut body = request.body.clone();
    if let Some(key) = body.get_mut("prompt_cache_key") {
        *key = json!("$KEY");
    }
    let text = serde_json::to_string_pretty(&body).unwrap().replace(root, "$WORLD");
    let text = text.replace(std::env::consts::OS, "$OS");
    let (before, rest) = text.split_once("Date: ").map_or((text.as_str(), ""), |(before, rest)| (before, &rest[10..]));
    let text = if rest.is_empty() { before.to_owned() } else { format!("{before}Date: $DATE{rest}") };
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{text}\n")).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept.trim_end() == text, "{} is not what is sent; look at it, then BLESS=1:\n{text}", path.display());
}

/// About how many tokens a request is.
fn tokens(request: &ModelRequest) -> usize {
    request.body.to_string().len() / 4
}

#[tokio::test]
async fn a_strong_model_is_asked_like_this() {
    for (model, file) in [
        ("openai:gpt-4.1", "openai.json"),
        ("anthropic:claude-sonnet-4-5", "anthropic.json"),
        ("gemini:gemini-2.5-flash", "gemini.json"),
    ] {
        let world = World::of(model, vec![Answer::text("Hello.")]).await;
        world.put("src/main.rs", "fn main() {}\n");
        world.put("AGENTS.md", "Use tabs.\n");
        world.turn(Person::new(), "say hello").await;
        let request = &world.model().requests()[0];
        compare(file, request, &world);
        // Without what the project adds.
        let world = World::of(model, vec![Answer::text("Hello.")]).await;
        world.turn(Person::new(), "say hello").await;
        let tokens = tokens(&world.model().requests()[0]);
        assert!(tokens < 3_000, "{tokens}");
    }
}

/// A strong model with little room calls tools by itself, and is told of few in few words.
#[tokio::test]
async fn a_model_with_a_short_context_is_asked_like_this() {
    let mut world = World::answering(vec![Answer::text("Hello.")]).await;
    let facts = ModelFacts { context: Some(8_192), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    world.put("src/main.rs", "fn main() {}\n");
    world.turn(Person::new(), "say hello").await;
    let request = &world.model().requests()[0];
    compare("short_context.json", request, &world);
    assert!(tokens(request) < 800, "{}", tokens(request));
    let names = request.tool_names();
    assert!(names.iter().any(|name| name == "edit_file") && !names.iter().any(|name| name == "task"), "{names:?}");
}

/// What has changed since the last commit comes with the prompt, where git can be confined.
#[tokio::test]
async fn what_git_says_comes_with_the_prompt() {
    use attache_host::sandbox::{Policy, Sandbox};
    let server = ModelServer::with(|_: &ModelRequest| Answer::text("Hello.")).await;
    let world = World::new("openai:gpt-4.1", Some(server));
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(world.project());
        git.status().is_ok_and(|status| status.success())
    };
    let is_whole = Sandbox::new(&Policy::read_only(&[world.project()], &[])).is_ok_and(|sandbox| sandbox.is_whole());
    if !is_whole || !git(&["init", "--quiet", "--initial-branch=topic"]) {
        eprintln!("git is not here, or cannot be confined on this machine");
        return;
    }
    world.put("src/main.rs", "fn main() {}\n");
    let mut chat = world.open(Person::new()).await;
    for wanted in ["Git status: 1 untracked (src/)", "Git status: 1 staged (src/main.rs)"] {
        // Where the machine is busy it takes too long, and comes with a later prompt.
        for _ in 0..20 {
            chat.turn("say hello").await;
            if world.model().requests().last().unwrap().body.to_string().contains(wanted) {
                break;
            }
        }
        let told = world.model().requests().last().unwrap().body.to_string();
        assert!(told.contains(wanted) && told.contains("Git branch: topic"), "{told}");
        assert!(git(&["add", "."]));
    }
}

#[tokio::test]
async fn a_small_model_is_asked_like_this() {
    let answer = Answer::text(json!({"action": "answer", "arguments": {}}).to_string());
    let act = |action: &str, arguments| Answer::text(json!({"action": action, "arguments": arguments}).to_string());
    let answers = vec![
        act("write_file", json!({"path": "src/main.rs"})),
        Answer::text("It has to stop.\n\n```rust\nfn main() { std::process::exit(1) }\n```"),
        act("done", json!({"message": "It fails now."})),
        answer,
        Answer::text("It ends with 1."),
    ];
    let mut world = World::answering(answers).await;
    let facts = ModelFacts { small: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    world.put("src/main.rs", "fn main() {}\n");
    world.turn(Person::new(), "Let src/main.rs exit with 1.").await;
    world.turn(Person::new(), "What does src/main.rs do?").await;
    let requests = world.model().requests();
    for (number, file) in
        [(0, "small.json"), (1, "small_text.json"), (3, "small_question.json"), (4, "small_answer.json")]
    {
        compare(file, &requests[number], &world);
        // The schema is for the server; the model does not read it.
        let mut read = requests[number].body.clone();
        read.as_object_mut().unwrap().remove("response_format");
        assert!(read.to_string().len() / 4 < 1_200, "{}", read.to_string().len() / 4);
    }
}

/// Providers keep what requests begin with, so each has to begin with the one before.
#[tokio::test]
async fn every_request_begins_with_the_one_before() {
    let read = || ("read_file", json!({"path": "a.txt"}));
    let answers = calling(vec![read(), read(), read(), ("write_file", json!({"path": "b.txt", "content": "b"}))]);
    let world = World::of("openai:gpt-4.1", answers.into_iter().chain(calling(vec![read()])).collect()).await;
    world.put("a.txt", "a\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("read it").await;
    // The mode, the files and the warning of a loop have all changed.
    chat.set("mode", "architect").await;
    chat.turn("and again").await;
    let requests = world.model().requests();
    assert_eq!(requests.len(), 7);
    let all: String = requests.iter().map(|request| request.body.to_string()).collect();
    assert!(all.contains("You have read this before") && all.contains("Mode: architect"), "{all}");
    let messages = |request: &ModelRequest| request.body["messages"].as_array().unwrap().clone();
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        assert!(after.len() > before.len());
        let begin: Vec<Value> = after[..before.len()].to_vec();
        assert_eq!(json!(begin).to_string(), json!(before).to_string());
        assert_eq!(pair[0].body["tools"].to_string(), pair[1].body["tools"].to_string());
    }
}
