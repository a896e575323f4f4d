//! Models that fail: retries are seen, what helps nobody is not tried again, and the end is a sentence for people.

use attache::proto::view::{Entry as Shown, MessageRole};
use attache::{Event, Protocol, SessionView};
use attache_testkit::model_server::{Answer, ModelServer};
use futures_util::FutureExt;
use serde_json::json;

use crate::support::{DIALECTS, Person, World, check};

const MODELS: [&str; 3] = ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"];

#[tokio::test]
async fn a_retry_is_seen_and_then_it_works() {
    for model in MODELS {
        for (protocol, news) in
            [(Protocol::V1, false), (Protocol::V1, true), (Protocol::V2Draft, true), (Protocol::V2, true)]
        {
            let world = World::of(model, vec![Answer::status(429), Answer::status(503), Answer::text("Here.")]).await;
            let seen = world.turn(Person { news, ..Person::at(protocol) }, "hi").await;
            let provider = model.split(':').next().unwrap();
            // A notice where there are notices, else a thought.
            let mark = if news && protocol != Protocol::V2Draft { "notice warning" } else { "thought" };
            let seen = seen.replace(mark, "NEWS").replace(provider, "PROVIDER");
            check(
                &seen,
                r#"
                NEWS `PROVIDER` is rate limiting requests: the script wants this error; trying again in 1 s (2 of 5, for 4 minutes at most)
                NEWS `PROVIDER` is overloaded: the script wants this error; trying again in 1 s (3 of 5, for 4 minutes at most)
                text Here.
                usage
                stop end_turn
                "#,
            );
            assert_eq!(world.model().requests().len(), 3);
        }
    }
}

#[tokio::test]
async fn a_server_that_says_when_is_asked_then() {
    let busy = Answer::status(429).header("retry-after", "1");
    let world = World::answering(vec![busy, Answer::text("Here.")]).await;
    let start = std::time::Instant::now();
    let seen = world.turn(Person::new(), "hi").await;
    assert!(start.elapsed() >= std::time::Duration::from_secs(1));
    assert!(seen.contains("trying again in 1 s (2 of 5, for 4 minutes at most)"), "{seen}");
    let later = Answer::status(429).header("retry-after", "7200");
    let world = World::answering(vec![later]).await;
    let mut chat = world.open(Person::new()).await;
    check(
        &chat.turn("hi").await,
        r#"
        error -32029 `openai` is rate limiting requests: the script wants this error
        hint: ask again later, or choose another model
        hint: it can be asked again in 2 hours
        "#,
    );
    assert_eq!(world.model().requests().len(), 1);
    let error = chat.failed.unwrap();
    let hints = "hint: ask again later, or choose another model\nhint: it can be asked again in 2 hours";
    assert_eq!(error.message, format!("`openai` is rate limiting requests\n{hints}"));
    let data: serde_json::Value = error.data.unwrap().parse().unwrap();
    let expected = json!({"reason": "rate_limited", "retryAfter": 7200, "details": "the script wants this error"});
    assert_eq!(data, expected);
}

#[tokio::test]
async fn a_model_that_stays_broken_ends_the_turn_with_a_sentence() {
    for protocol in DIALECTS {
        let mut left = 5;
        let server = ModelServer::with(move |_| {
            left -= 1;
            if left >= 0 { Answer::status(500) } else { Answer::text("Here.") }
        })
        .await;
        let world = World::new("openai:gpt-5.1", Some(server));
        let mut chat = world.open(Person::at(protocol)).await;
        let seen = chat.turn("hi").await.replace("notice warning", "thought");
        check(
            &seen,
            r#"
            thought `openai` returned a server error (500): the script wants this error; trying again in 1 s (2 of 5, for 4 minutes at most)
            thought `openai` returned a server error (500): the script wants this error; trying again in 1 s (3 of 5, for 4 minutes at most)
            thought `openai` returned a server error (500): the script wants this error; trying again in 1 s (4 of 5, for 4 minutes at most)
            thought `openai` returned a server error (500): the script wants this error; trying again in 1 s (5 of 5, for 4 minutes at most)
            error -32603 `openai` returned a server error (500) (after 5 attempts): the script wants this error
            hint: look at the log of the server, or choose another model
            "#,
        );
        check(&chat.turn("and now?").await, "text Here.\nusage\nstop end_turn");
        // Nobody has answered the first one.
        assert_eq!(world.model().requests()[5].texts(), ["hi\n\nand now?"]);
    }
}

/// What is wrong once is wrong again: one request, one error.
#[tokio::test]
async fn what_would_fail_again_is_not_tried_again() {
    let error = |status: u16, message: &str| {
        Answer::status(status).body(json!({"error": {"message": message, "type": "invalid_request_error"}}))
    };
    let mut sentences = Vec::new();
    for answer in [
        error(400, "unsupported parameter"),
        Answer::status(401),
        Answer::status(403),
        error(404, "no such model"),
        Answer::status(402),
    ] {
        let world = World::of("openai:gpt-5.1", vec![answer]).await;
        sentences.push(world.turn(Person::new(), "hi").await);
        assert_eq!(world.model().requests().len(), 1);
    }
    check(
        &sentences.join("\n"),
        r#"
        error -32603 `openai` rejected the request (400): unsupported parameter
        error -32000 `openai` wants a key (401)
        hint: set OPENAI_API_KEY, or run `attache login openai`
        error -32000 `openai` wants a key (403): the script wants this error
        hint: set OPENAI_API_KEY, or run `attache login openai`
        error -32603 `openai` has no model `gpt-5.1`: no such model
        hint: look at the name of the model and at the base URL
        error -32603 the account at `openai` has no credit left: the script wants this error
        "#,
    );
}

#[tokio::test]
async fn a_key_that_is_no_longer_taken_is_told_without_the_key() {
    for model in MODELS {
        let (provider, _) = model.split_once(':').unwrap();
        let world = World::of(model, vec![Answer::text("Hello."), Answer::status(401), Answer::text("Again.")]).await;
        let keys = json!({ provider: "sk-very-secret-0123456789" });
        world.put_at("config/keys.json", &keys.to_string());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(world.root.join("config/keys.json"), mode).unwrap();
        }
        let mut chat = world.open(Person::new()).await;
        check(&chat.turn("hi").await, "text Hello.\nusage\nstop end_turn");
        let seen = chat.turn("more").await;
        assert!(seen.starts_with(&format!("error -32000 `{provider}` rejected the API key (401)")), "{seen}");
        check(&chat.turn("once more").await, "text Again.\nusage\nstop end_turn");
        let sent = world.model().requests();
        let has_own = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        let is_used = format!("{:?}", sent[0].headers).contains("sk-very-secret-0123456789");
        assert!(is_used || has_own, "the key was used");
        assert!(!chat.wire.lines().concat().contains("sk-very-secret"), "and never shown");
    }
}

/// Whatever was shown of it is taken back in version 2, and marked in version 1.
#[tokio::test]
async fn an_answer_that_breaks_off_begins_anew() {
    for (model, protocol) in MODELS.into_iter().zip([Protocol::V1, Protocol::V2Draft, Protocol::V2].into_iter().cycle())
    {
        let broken = || {
            let call = Answer::text("I was about to ")
                .thought("Hm, hm.")
                .call("write_file", json!({"path": "a.txt", "content": "x".repeat(400)}));
            call.cut_after(if model.starts_with("gemini") { 3 } else { 9 })
        };
        let world = World::of(model, vec![broken(), broken(), Answer::text("Yes.").thought("Well.")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let mut view = SessionView::new();
        let seen = chat.turn("talk").await;
        chat.updates.iter().for_each(|update| _ = view.apply(update));
        assert!(seen.ends_with("text Yes.\nusage\nstop end_turn"), "{model} {protocol:?}: {seen}");
        assert_eq!(world.model().requests().len(), 3, "{seen}");
        let texts = |view: &SessionView| {
            let messages = view.timeline().iter().filter_map(|entry| match entry {
                Shown::Message(message) if message.role != MessageRole::User => Some(message.text()),
                _ => None,
            });
            messages.filter(|text| !text.is_empty() && !text.contains("trying again")).collect::<Vec<_>>()
        };
        let said = texts(&view);
        match protocol {
            Protocol::V1 => {
                assert_eq!(said.iter().filter(|text| text.contains("broke off here")).count(), 2, "{seen}\n{said:?}");
            }
            _ => assert_eq!(said, ["Well.", "Yes."], "{seen}"),
        }
        let calls = seen.lines().filter(|line| line.starts_with("tool ")).collect::<Vec<_>>();
        assert!(calls.iter().all(|call| call.ends_with("pending → failed")), "{seen}");
        // The model hears of it no more, and nothing was done.
        assert_eq!(world.model().requests()[2].texts(), ["talk"]);
        assert_eq!(world.files(), "");

        // What was taken back is not shown again, in any version.
        if protocol == Protocol::V2 {
            let id = chat.session().id().clone();
            chat.session().close().await.unwrap();
            for protocol in DIALECTS {
                let mut chat = world.connect(Person::at(protocol)).await;
                let session = chat.connection.session(world.project()).load(id.clone()).await.unwrap();
                let mut view = SessionView::new();
                while let Some(Ok(Event::Update(update))) = session.next().now_or_never() {
                    view.apply(&update);
                }
                assert_eq!(texts(&view), ["Well.", "Yes."], "{protocol:?}");
                session.close().await.unwrap();
                chat.session = None;
            }
        }
    }
}

/// One that breaks off every time is an error in the end, and what it said last is kept.
#[tokio::test]
async fn an_answer_that_always_breaks_off_is_an_error() {
    let server = ModelServer::with(|request| match request.texts().len() {
        1 => Answer::text("I was about to ".repeat(10)).cut_after(6),
        _ => Answer::text("Yes."),
    })
    .await;
    let world = World::new("openai:gpt-5.1", Some(server));
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    let seen = chat.turn("talk").await;
    assert!(seen.contains("\nerror -32603 ") && seen.contains("(after 5 attempts)"), "{seen}");
    assert_eq!(world.model().requests().len(), 5);
    check(&chat.turn("go on").await, "text Yes.\nusage\nstop end_turn");
    let texts = world.model().requests()[5].texts();
    assert!(texts[1].starts_with("I was"), "{texts:?}");
}

#[tokio::test]
async fn a_server_of_this_machine_that_is_not_there_is_named_at_once() {
    let mut world = World::answering(vec![]).await;
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.config.base_url = Some(format!("http://127.0.0.1:{port}/v1"));
    let seen = world.turn(Person::new(), "hi").await;
    check(
        &seen.replace(&port.to_string(), "PORT"),
        r#"
        error -32603 `127.0.0.1:PORT` cannot be reached: Connection refused (os error 111)
        hint: does a server run at `127.0.0.1:PORT`, and is the base URL right?
        "#,
    );
}

#[tokio::test]
async fn silence_in_the_middle_of_a_turn_can_be_cancelled() {
    let world =
        World::answering(vec![Answer::new().call("list_directory", json!({})), Answer::hang(), Answer::text("Here.")])
            .await;
    let mut chat = world.open(Person::new()).await;
    let session = chat.session().clone();
    let cancel = async {
        world.model().wait_for_requests(2).await;
        session.cancel().await.unwrap();
    };
    let (seen, ()) = tokio::join!(chat.turn("look"), cancel);
    check(
        &seen,
        r#"
        tool list_directory "List `.`" read: pending → in_progress → completed
          at ~
          | `.` is empty
        usage
        usage
        stop cancelled
        "#,
    );
    world.model().wait_for_closed(1).await;
    check(&chat.turn("and?").await, "text Here.\nusage\nstop end_turn");
}
