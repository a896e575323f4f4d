//! Compaction: long sessions go on, with the first prompt, a summary and what was said last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use attache::Protocol;
use attache_agent::store::{Entry, FileStore, Store};
use attache_agent::{HookEvent, ModelFacts};
use attache_testkit::model_server::{Answer, ModelRequest, ModelServer, Turn};
use serde_json::json;

use crate::hooks::hook;
use crate::support::{Person, World, check};

/// A model that is full after its first answer.
async fn full(answers: Vec<Answer>) -> World {
    let mut world = World::answering(answers).await;
    let facts = ModelFacts { context: Some(20_000), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    world
}

fn said(text: &str) -> Answer {
    Answer::text(text).usage(17_000, 0, 50)
}

#[tokio::test]
async fn a_conversation_near_the_limit_is_compacted() {
    for (protocol, news) in
        [(Protocol::V1, false), (Protocol::V1, true), (Protocol::V2Draft, false), (Protocol::V2, false)]
    {
        let world =
            full(vec![said("It is blue."), Answer::text("They asked for the colour: blue."), Answer::text("Yes.")])
                .await;
        let mut chat = world.open(Person { news, ..Person::at(protocol) }).await;
        check(&chat.turn("which colour?").await, "text It is blue.\nusage\nstop end_turn");
        let seen = chat.turn("is that sure?").await;
        if news || protocol == Protocol::V2 {
            check(
                &seen,
                r#"
                compaction in_progress
                compaction completed
                usage
                text Yes.
                usage
                stop end_turn
                "#,
            );
        } else {
            check(
                &seen,
                r#"
                usage
                thought The conversation had become long; the model works with a summary of its older part from here on.
                text Yes.
                usage
                stop end_turn
                "#,
            );
        }
        let requests = world.model().requests();
        assert_eq!(requests.len(), 3);
        assert!(requests[1].tool_names().is_empty(), "a summary needs no tools");
        check(
            &requests[2].texts().join("\n"),
            r#"
            which colour?

            Summary of the conversation so far; what came before is no longer shown:

            They asked for the colour: blue.

            is that sure?
            "#,
        );
        assert!(!requests[2].tool_names().is_empty());
    }
}

#[tokio::test]
async fn a_command_compacts_at_once() {
    let world =
        World::answering(vec![Answer::text("Blue."), Answer::text("Colour: blue."), Answer::text("Yes.")]).await;
    let mut chat = world.open(Person::new()).await;
    check(
        &chat.turn("/compact").await,
        r#"
        text There is nothing to compact yet.
        stop end_turn
        "#,
    );
    chat.turn("which colour?").await;
    check(
        &chat.turn("/compact").await,
        r#"
        usage
        text The model works with a summary of the conversation from here on.
        stop end_turn
        "#,
    );
    chat.turn("sure?").await;
    check(
        &world.model().requests()[2].texts().join("\n---\n"),
        r#"
        which colour?

        Summary of the conversation so far; what came before is no longer shown:

        Colour: blue.

        sure?
        "#,
    );
}

#[tokio::test]
async fn a_request_that_was_too_long_is_compacted_and_asked_again() {
    let world = World::answering(vec![
        Answer::new().call("list_directory", json!({})),
        Answer::new().call("find_files", json!({"pattern": "*"})),
        too_long(),
        Answer::text("They want the files listed: there are none."),
        Answer::text("There are none."),
    ])
    .await;
    let seen = world.turn(Person::new(), "list them").await;
    let end = "thought The conversation had become long; the model works with a summary of its older part from here \
               on.\ntext There are none.\nusage\nstop end_turn";
    assert!(seen.ends_with(end), "{seen}");
    let last = world.model().requests().pop().unwrap();
    let begin =
        "list them\n\nSummary of the conversation so far; what came before is no longer shown:\n\nThey want the";
    assert!(last.texts()[0].starts_with(begin), "{:?}", last.texts());
    assert_eq!(last.tool_results().len(), 1, "what came last stays");
    // Where there is nothing to sum up, nothing is asked again.
    let world = World::answering(vec![too_long(), Answer::text("Hello.")]).await;
    let mut chat = world.open(Person::new()).await;
    check(
        &chat.turn("list them").await,
        r#"
        error -32603 the conversation is longer than `scripted` takes, and could not be made shorter
        hint: use `/compact`, or a model with a larger context
        "#,
    );
    check(&chat.turn("hi").await, "text Hello.\nusage\nstop end_turn");
}

/// A turn that has to be given up leaves the summary of its beginning behind.
#[tokio::test]
async fn a_turn_that_stays_too_long_keeps_its_summary() {
    let world = World::answering(vec![
        Answer::new().call("list_directory", json!({})),
        Answer::new().call("find_files", json!({"pattern": "*"})),
        too_long(),
        Answer::text("They want the files listed: there are none."),
        too_long(),
        Answer::text("Hello."),
        Answer::text("A summary of the summary."),
    ])
    .await;
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("list them").await;
    assert!(seen.contains("the conversation is longer than `scripted` takes"), "{seen}");
    let id = chat.session().id().clone();
    drop(chat);
    let mut chat = world.connect(Person::new()).await;
    chat.session = Some(chat.connection.session(world.project()).load(id).await.unwrap());
    // What is told again comes before that.
    chat.turn("/status").await;
    check(&chat.turn("hi").await, "text Hello.\nusage\nstop end_turn");
    check(
        &world.model().requests().last().unwrap().texts().join("\n---\n"),
        r#"
        list them

        Summary of the conversation so far; what came before is no longer shown:

        They want the files listed: there are none.
        ---
        (Stopped here: what the tools brought was too long.)
        ---
        hi
        "#,
    );
    // It is known as the summary, which the next one is made of.
    chat.turn("/compact").await;
    let texts = world.model().requests().last().unwrap().texts().concat();
    assert_eq!(texts.matches("there are none").count(), 1, "{texts}");
    assert!(!texts.contains("Summary of the conversation so far"), "{texts}");
}

/// What a hook says at the end of a turn is no new task: the prompt that began the turn stays.
#[tokio::test]
async fn the_prompt_of_a_turn_stays_when_a_hook_has_something_to_say() {
    let mut world = full(vec![
        said("Blue."),
        Answer::text("They asked for the colour: blue."),
        said("Done."),
        Answer::text("It was painted."),
        Answer::text("Really."),
    ])
    .await;
    let command = "[ -e painted ] || exit 0; echo 'the tests fail'; exit 2";
    world.config.hooks = vec![hook(HookEvent::EndOfTurn, &[], command)];
    let mut chat = world.open(Person::new()).await;
    chat.turn("which colour?").await;
    world.put("painted", "");
    chat.turn("paint it").await;
    let texts = world.model().requests().last().unwrap().texts();
    assert!(texts.iter().any(|text| text.contains("\n\npaint it\n\n")), "{texts:?}");
    assert!(texts.last().unwrap().contains("the tests fail"), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("It was painted.")), "{texts:?}");
}

#[tokio::test]
async fn a_summary_that_fails_ends_the_turn_and_loses_nothing() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let world =
            full(vec![said("Blue."), Answer::status(400), Answer::text("A summary."), Answer::text("Yes.")]).await;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        chat.turn("which colour?").await;
        check(
            &chat.turn("sure?").await,
            r#"
            compaction in_progress
            compaction failed
            error -32603 `openai` rejected the request (400): the script wants this error
            "#,
        );
        let seen = chat.turn("so?").await;
        assert!(seen.ends_with("text Yes.\nusage\nstop end_turn"), "{seen}");
        let summary = &world.model().requests()[2];
        assert!(summary.texts().concat().contains("which colour?"), "{:?}", summary.texts());
    }
}

/// How many tokens a server counts for a request.
fn size(request: &ModelRequest) -> u64 {
    request.body.to_string().len() as u64 * 2 / 7
}

fn too_long() -> Answer {
    Answer::status(400)
        .body(json!({"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}))
}

/// A server whose model takes so many tokens, and refuses more. Tells how often it refused.
async fn small(limit: u64, answer: impl Fn(&ModelRequest) -> Answer + Send + 'static) -> (World, Arc<AtomicU64>) {
    let refused = Arc::new(AtomicU64::new(0));
    let count = refused.clone();
    let server = ModelServer::with(move |request: &ModelRequest| {
        let tokens = size(request);
        if tokens > limit {
            count.fetch_add(1, Relaxed);
            return too_long();
        }
        answer(request).usage(tokens, 0, 50)
    })
    .await;
    let mut world = World::new("openai:scripted", Some(server));
    let facts = ModelFacts { context: Some(limit), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    (world, refused)
}

/// Reads a file once a prompt, and tells what it has read.
fn reader(request: &ModelRequest) -> Answer {
    if request.tool_names().is_empty() {
        let number = request.number;
        return Answer::text(format!("Summary {number}: they read files. {}", "It went well. ".repeat(40)));
    }
    match request.turns().last() {
        Some(Turn::User(prompt)) => {
            let number: usize = prompt.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default();
            Answer::new().call("read_file", json!({"path": format!("{}.txt", number % 7)}))
        }
        _ => Answer::text(format!("I have read it. {}", "It is a long file. ".repeat(10))),
    }
}

#[tokio::test]
async fn two_hundred_turns_on_a_model_with_a_small_context() {
    const LIMIT: u64 = 8192;
    let (world, refused) = small(LIMIT, reader).await;
    for number in 0..7 {
        let lines = (0..60 + number * 10).map(|line| format!("{number} {line} {}\n", "some words of a file".repeat(4)));
        world.put(&format!("{number}.txt"), &lines.collect::<String>());
    }
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    for number in 0..200 {
        let prompt = match number {
            0 => "remember the green elephant, and read file 0".to_owned(),
            number => format!("now read file {number}"),
        };
        let seen = chat.turn(prompt.as_str()).await;
        assert!(seen.ends_with("stop end_turn"), "turn {number}: {seen}");
    }
    let requests = world.model().requests();
    let with_tools: Vec<&ModelRequest> = requests.iter().filter(|request| !request.tool_names().is_empty()).collect();
    assert_eq!(with_tools.len(), 400, "a call and an answer each");
    for (at, request) in with_tools.iter().enumerate() {
        let texts = request.texts();
        assert!(texts[0].contains("green elephant"), "{at}: {texts:?}");
        let prompt = if at < 2 { "remember the green".into() } else { format!("now read file {}", at / 2) };
        let is_prompt = |text: &String| text.split("\n\n").any(|part| part.starts_with(&prompt));
        assert!(texts.iter().any(is_prompt), "{at}: {texts:?}");
        let summaries = texts.iter().filter(|text| text.contains("Summary of the conversation")).count();
        assert!(summaries <= 1, "{at}: {texts:?}");
        if at % 2 == 1 {
            assert!(request.tool_results().last().unwrap().contains("some words of a file"), "{at}");
        }
    }
    assert_eq!(refused.load(Relaxed), 0, "no request was too long");
    let entries = FileStore::open(world.config.sessions_dir()).unwrap().read(chat.session().id().as_str()).unwrap();
    let compactions = entries.iter().filter(|entry| matches!(entry, Entry::Compacted { .. })).count();
    // Of 171 with the prompt and the tools of models that have room for them.
    assert!((5..100).contains(&compactions), "{compactions}");
}

/// A summary is made of the one before and of what came since, and takes its place.
#[tokio::test]
async fn summaries_do_not_nest() {
    let (world, _) = small(20_000, reader).await;
    world.put("0.txt", "short\n");
    let mut chat = world.open(Person::new()).await;
    for number in 0..4 {
        chat.turn(format!("read {number}")).await;
        chat.turn("/compact").await;
    }
    let requests = world.model().requests();
    let summaries: Vec<&ModelRequest> = requests.iter().filter(|request| request.tool_names().is_empty()).collect();
    assert_eq!(summaries.len(), 4);
    for pair in summaries.windows(2) {
        let text = pair[1].texts().concat();
        assert!(text.contains(&format!("Summary {}:", pair[0].number)), "{text}");
        assert_eq!(text.matches("It went well. It went well.").count(), 20, "one summary: {text}");
    }
    chat.turn("read 0").await;
    let last = world.model().requests().pop().unwrap();
    assert_eq!(last.texts().concat().matches("Summary of the conversation").count(), 1, "{:?}", last.texts());
}

/// The server takes less than it is said to take: what it refused is not sent again, and the turn goes on.
#[tokio::test]
async fn a_model_that_takes_less_than_we_think_is_asked_for_less() {
    let (mut world, refused) = small(9000, reader).await;
    let facts = ModelFacts { context: Some(1_000_000), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let lines = (0..150).map(|line| format!("{line} {}\n", "some words of a file".repeat(4)));
    world.put("0.txt", &lines.collect::<String>());
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    for number in 0..20 {
        let seen = chat.turn(format!("read {}", number * 7)).await;
        assert!(seen.ends_with("stop end_turn"), "turn {number}: {seen}");
    }
    assert!(refused.load(Relaxed) < 4, "{refused:?}");
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_named_and_the_session_goes_on() {
    for protocol in [Protocol::V1, Protocol::V2] {
        for known in [8192, 1_000_000] {
            let (mut world, refused) = small(8192, reader).await;
            let facts = ModelFacts { context: Some(known), ..ModelFacts::default() };
            world.config.models.insert("openai:scripted".into(), facts);
            world.put("0.txt", "short\n");
            let mut chat = world.open(Person::at(protocol)).await;
            let seen = chat.turn(format!("read this: {}", "word ".repeat(20_000))).await;
            assert!(seen.contains("error -32603 the prompt is too long for `scripted`: it has about "), "{seen}");
            assert!(seen.contains("\nhint: send it in parts"), "{seen}");
            assert_eq!(refused.load(Relaxed), u64::from(known > 8192), "it is sent only if it may fit");
            let seen = chat.turn("read 0").await;
            assert!(seen.ends_with("stop end_turn"), "{seen}");
            let id = chat.session().id().clone();
            // Also when the session is taken up again.
            drop(chat);
            let mut chat = world.connect(Person::at(protocol)).await;
            chat.session = Some(chat.connection.session(world.project()).load(id).await.unwrap());
            let seen = chat.turn("read 0").await;
            assert!(seen.ends_with("stop end_turn"), "{seen}");
        }
    }
}

/// What is kept keeps its images; what is summed up has them named.
#[tokio::test]
async fn images_survive_or_are_named() {
    use attache::model::content::{ContentBlock, ImageContent};
    let mut world =
        full(vec![said("A cat."), said("A dog."), Answer::text("Cats and dogs."), Answer::text("Yes.")]).await;
    let facts = ModelFacts { context: Some(25_000), images: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let mut chat = world.open(Person::new()).await;
    let prompt = |text: &str| vec![text.into(), ContentBlock::Image(ImageContent::new("AAAA", "image/png").into())];
    chat.turn(prompt("what is it?")).await;
    chat.turn(prompt("and this?")).await;
    chat.turn("sure?").await;
    let requests = world.model().requests();
    let summary = requests.iter().find(|request| request.tool_names().is_empty()).unwrap();
    assert!(summary.texts().concat().contains("[image/png, no longer shown]"), "{:?}", summary.texts());
    let last = requests.last().unwrap().body.to_string();
    assert_eq!(last.matches("AAAA").count(), 1, "that of the first prompt: {last}");
}

/// A model that gives no summary does not stop the session.
#[tokio::test]
async fn a_session_goes_on_without_a_summary() {
    let world = full(vec![said("Blue."), Answer::text(""), Answer::text("Yes.")]).await;
    let mut chat = world.open(Person::new()).await;
    chat.turn("which colour?").await;
    let seen = chat.turn("sure?").await;
    assert!(seen.ends_with("text Yes.\nusage\nstop end_turn"), "{seen}");
    let texts = world.model().requests()[2].texts();
    let [text] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(text.starts_with("which colour?\n\nSummary of") && text.ends_with("\n\nsure?"), "{text}");
    assert!(text.contains("was left out"), "{text}");
}
