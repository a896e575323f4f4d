//! What comes while a turn runs: a second prompt waits, a setting holds at once.

use attache::model::config::ConfigSetting;
use attache::{Event, Stop};
use attache_testkit::model_server::Answer;
use serde_json::json;

use crate::help::{is_text, scripted};
use crate::support::{DIALECTS, Person, World};

#[tokio::test]
async fn a_second_prompt_is_answered_after_the_first() {
    for protocol in DIALECTS {
        let world = World::answering(vec![
            Answer::text("first answer").delay(std::time::Duration::from_millis(20)),
            Answer::text("second answer"),
        ])
        .await;
        let chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut first = session.prompt("first").await.unwrap();
        let mut second = session.prompt("second").await.unwrap();
        let mut text = String::new();
        for turn in [&mut first, &mut second] {
            while let Some(event) = turn.next().await.unwrap() {
                if let Event::Update(attache::model::update::SessionUpdate::AgentMessageChunk(chunk)) = event {
                    text.push_str(chunk.content.as_text().unwrap_or_default());
                }
            }
            assert_eq!(turn.stop(), Some(&Stop::EndTurn));
        }
        assert_eq!(text, "first answersecond answer", "{protocol:?}");
        let texts = world.model().requests().last().unwrap().texts();
        assert_eq!(texts, ["first", "first answer", "second"]);
    }
}

/// Two files are written; the mode is changed while the first is asked about.
async fn change(mode: &str) -> Vec<(usize, String)> {
    let mut outcomes = Vec::new();
    for protocol in DIALECTS {
        let calls = Answer::new()
            .call("write_file", json!({"path": "a.txt", "content": "1"}))
            .call("write_file", json!({"path": "b.txt", "content": "2"}));
        let world = World::answering(vec![calls, Answer::text("done")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut turn = session.prompt("begin").await.unwrap();
        let mut asked = 0;
        while let Some(event) = turn.next().await.unwrap() {
            if let Event::Permission(_) = &event {
                asked += 1;
                if asked == 1 {
                    let options = session.set_option("mode", ConfigSetting::Id(mode.into())).await.unwrap();
                    assert!(format!("{options:?}").contains(mode));
                }
            }
            chat.handle(event, &mut Default::default()).await;
        }
        assert_eq!(turn.stop(), Some(&Stop::EndTurn));
        outcomes.push((asked, world.files()));
    }
    outcomes
}

#[tokio::test]
async fn a_freer_mode_holds_for_the_next_call() {
    assert_eq!(change("code").await, vec![(1, "a.txt \"1\"\nb.txt \"2\"".to_owned()); 3]);
}

#[tokio::test]
async fn a_stricter_mode_holds_for_the_next_call() {
    assert_eq!(change("architect").await, vec![(1, "a.txt \"1\"".to_owned()); 3]);
}

#[tokio::test]
async fn a_setting_that_is_not_there_is_refused_in_the_middle_of_a_turn_and_the_turn_goes_on() {
    let world = World::offline();
    let chat = world.open(Person::new()).await;
    let session = chat.session().clone();
    let mut turn = session.prompt("slowly one two three four").await.unwrap();
    while !turn.next().await.unwrap().is_some_and(|event| is_text(&event)) {}
    let (no_value, no_option) = ("value: not one of the values of this option", "configId: there is no such option");
    for (option, value, why) in
        [("mode", "free", no_value), ("colour", "red", no_option), ("model", "nobody:nothing", no_value)]
    {
        let error = session.set_option(option, ConfigSetting::Id(value.into())).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    while turn.next().await.unwrap().is_some() {}
    assert_eq!(turn.stop(), Some(&Stop::EndTurn));
}

#[tokio::test]
async fn a_model_that_is_set_in_the_middle_of_a_turn_is_asked_next() {
    let world = scripted().await;
    world.put("a.txt", "one\n");
    let mut chat = world.open(Person { files: true, ..Person::new() }).await;
    let session = chat.session().clone();
    let mut turn = session.prompt("say I look.\ncall read_file {\"path\":\"a.txt\"}").await.unwrap();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::ReadTextFile(_) = &event {
            session.set_option("model", ConfigSetting::Id("offline:rules".into())).await.unwrap();
        }
        chat.handle(event, &mut Default::default()).await;
    }
    assert_eq!(world.model().requests().len(), 1);
}

/// In version 2 the model hears of it with its next step; before that, it is the next turn.
#[tokio::test]
async fn a_prompt_in_mid_turn_is_heard_with_the_next_step() {
    for protocol in DIALECTS {
        for said in ["use tabs", "/status"] {
            let look = Answer::text("I look around.").call("list_directory", json!({}));
            let look = look.delay(std::time::Duration::from_millis(20));
            let world = World::answering(vec![look, Answer::text("done"), Answer::text("again")]).await;
            let mut chat = world.open(Person::at(protocol)).await;
            let session = chat.session().clone();
            let mut first = session.prompt("begin").await.unwrap();
            while !first.next().await.unwrap().is_some_and(|event| is_text(&event)) {}
            let mut second = session.prompt(said).await.unwrap();
            for turn in [&mut first, &mut second] {
                while turn.next().await.unwrap().is_some() {}
                assert_eq!(turn.stop(), Some(&Stop::EndTurn));
            }
            let is_heard = protocol == attache::Protocol::V2 && said == "use tabs";
            let requests = world.model().requests();
            let texts = requests[1].texts();
            assert_eq!(texts.iter().any(|text| text == said), is_heard, "{protocol:?} {said}: {texts:?}");
            let all = if is_heard || said == "/status" { 2 } else { 3 };
            assert_eq!(requests.len(), all, "{protocol:?} {said}");

            // It is in its place when the session is loaded.
            let id = session.id().clone();
            session.close().await.unwrap();
            let loaded = crate::help::load(&mut chat, &world.project(), &id).await;
            let said_by_person = crate::help::picture(&loaded).to_string().matches(said).count();
            assert!(said_by_person >= 1, "{protocol:?} {said}");
        }
    }
}
