//! Every reason for which a turn stops.

use attache_testkit::model_server::{Answer, ModelServer, Stop};
use serde_json::json;

use crate::calling;
use crate::support::{DIALECTS, Person, World, check};

const MODELS: [&str; 3] = ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"];

#[tokio::test]
async fn a_model_that_has_said_all_ends_the_turn() {
    for model in MODELS {
        for protocol in DIALECTS {
            let world = World::of(model, vec![Answer::text("Hello.")]).await;
            check(&world.turn(Person::at(protocol), "hi").await, "text Hello.\nusage\nstop end_turn");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_stops_with_max_tokens() {
    for model in MODELS {
        for protocol in DIALECTS {
            let cut = Answer::text("I was about").stop(Stop::Length);
            let world = World::of(model, vec![cut, Answer::text("Here I am.")]).await;
            let mut chat = world.open(Person::at(protocol)).await;
            check(&chat.turn("talk").await, "text I was about\nusage\nstop max_tokens");
            check(&chat.turn("go on").await, "text Here I am.\nusage\nstop end_turn");
            assert_eq!(world.model().requests()[1].texts(), ["talk", "I was about", "go on"]);
        }
    }
}

#[tokio::test]
async fn calls_of_an_answer_that_is_cut_off_are_not_made() {
    for model in MODELS {
        let cut = Answer::text("Now").call("write_file", json!({"path": "a.txt", "content": "x"})).stop(Stop::Length);
        let world = World::of(model, vec![cut, Answer::text("Sorry.")]).await;
        let mut chat = world.open(Person::new()).await;
        check(
            &chat.turn("write").await,
            r#"
            text Now
            tool write_file "Create `a.txt`" edit: pending → failed
              at ~/a.txt
              | not done: the answer was cut off
            usage
            stop max_tokens
            "#,
        );
        check(&chat.turn("go on").await, "text Sorry.\nusage\nstop end_turn");
        assert_eq!(world.files(), "");
        assert!(chat.asked.is_empty());
    }
}

#[tokio::test]
async fn a_refusal_stops_with_refusal() {
    for model in MODELS {
        for protocol in DIALECTS {
            let no = Answer::text("I will not.").stop(Stop::Refusal);
            let world = World::of(model, vec![no, Answer::text("Gladly.")]).await;
            let mut chat = world.open(Person::at(protocol)).await;
            check(&chat.turn("do harm").await, "text I will not.\nusage\nstop refusal");
            check(&chat.turn("do good").await, "text Gladly.\nusage\nstop end_turn");
        }
    }
}

#[tokio::test]
async fn a_turn_that_asks_too_often_stops_with_max_turn_requests() {
    for protocol in DIALECTS {
        let mut number = 0;
        let server = ModelServer::with(move |_| {
            number += 1;
            Answer::new().call("think", json!({"thought": format!("thought {number}")}))
        })
        .await;
        let mut world = World::new("openai:scripted", Some(server));
        world.config.limits.requests = 3;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        let seen = chat.turn("think").await;
        // The draft has no notices; there it is a thought.
        check(
            &seen.replace("thought Stopped", "notice warning Stopped"),
            r#"
            tool think "Think" think: pending → in_progress → completed
              | thought 1
            usage
            tool think "Think" think: pending → in_progress → completed
              | thought 2
            usage
            tool think "Think" think: pending → in_progress → completed
              | thought 3
            usage
            notice warning Stopped: the model was asked 3 times in this turn.
            stop max_turn_requests
            "#,
        );
        assert_eq!(world.model().requests().len(), 3);
        assert!(chat.turn("more").await.ends_with("stop max_turn_requests"), "the next turn begins anew");
        assert_eq!(world.model().requests().len(), 6);
    }
}

#[tokio::test]
async fn a_loop_of_the_same_call_is_noticed_and_ended() {
    let server = ModelServer::with(|_| Answer::new().call("read_file", json!({"path": "a.txt"}))).await;
    let world = World::new("openai:scripted", Some(server));
    world.put("a.txt", "a");
    let seen = world.turn(Person::new(), "read").await;
    check(
        &seen,
        r#"
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | a
          | ```
        usage
        text The model makes the same call over and over, so the turn was ended.
        stop max_turn_requests
        "#,
    );
    let requests = world.model().requests();
    assert_eq!(requests.len(), 6);
    let warned =
        requests.iter().position(|request| request.tool_results().concat().contains("You have read this before"));
    assert_eq!(warned, Some(3), "after the third time");
}

#[tokio::test]
async fn a_cancelled_turn_stops_with_cancelled_and_the_next_one_works() {
    for protocol in DIALECTS {
        let world = World::answering(vec![
            Answer::text("Let me think about it for ever.").hang_after(4),
            Answer::text("Here."),
        ])
        .await;
        let mut chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let cancel = async {
            world.model().wait_for_requests(1).await;
            session.cancel().await.unwrap();
        };
        let (seen, ()) = tokio::join!(chat.turn("think"), cancel);
        assert!(seen.ends_with("stop cancelled"), "{seen}");
        world.model().wait_for_closed(1).await;
        check(&chat.turn("and now?").await, "text Here.\nusage\nstop end_turn");
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_error_and_no_end() {
    // Gemini's API has no such answer: there, it is one that was cut off.
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5"] {
        let world = World::of(model, vec![Answer::new(), Answer::text("Here.")]).await;
        let mut chat = world.open(Person::new()).await;
        check(
            &chat.turn("hi").await,
            r#"
            usage
            error -32603 the model gave an empty answer
            hint: ask again, or choose another model
            "#,
        );
        check(&chat.turn("hello?").await, "text Here.\nusage\nstop end_turn");
    }
}

/// Some models say nothing more when their calls have said it.
#[tokio::test]
async fn an_empty_answer_after_calls_is_an_end() {
    for model in MODELS {
        let answers = vec![Answer::text("Look.").call("list_directory", json!({})), Answer::new()];
        let world = World::of(model, answers).await;
        let seen = world.turn(Person::new(), "hi").await;
        assert!(seen.ends_with("usage\nusage\nstop end_turn"), "{model}: {seen}");
    }
}

#[tokio::test]
async fn usage_is_told_after_every_request() {
    let mut answers = calling(vec![("think", json!({"thought": "Hm."})), ("list_directory", json!({}))]);
    for (index, answer) in answers.iter_mut().enumerate() {
        *answer = answer.clone().usage(1000 * (index as u64 + 1), 500, 7);
    }
    for model in MODELS {
        for protocol in DIALECTS {
            let mut world = World::of(model, answers.clone()).await;
            let facts = attache_agent::ModelFacts { context: Some(50_000), ..Default::default() };
            world.config.models.insert(model.into(), facts);
            let mut chat = world.open(Person::at(protocol)).await;
            chat.turn("go").await;
            let usage = chat.updates.iter().filter_map(|update| match update {
                attache::model::update::SessionUpdate::Usage(usage) => Some((usage.used, usage.size)),
                _ => None,
            });
            assert_eq!(usage.collect::<Vec<_>>(), [(1007, 50_000), (2007, 50_000), (3007, 50_000)], "{model}");
        }
    }
}
