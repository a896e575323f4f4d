//! Which models a session can have: told when they come to be known, chosen, and kept.

use attache::model::config::{ConfigKind, ConfigOption, ConfigSetting};
use attache::model::update::SessionUpdate;
use attache::{Event, Protocol};
use attache_agent::model::discover::Place;
use attache_agent::{Lists, ModelList};
use attache_testkit::model_server::{Answer, ModelServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Chat, DIALECTS, LONGEST, Person, World};

/// A server on this machine, as it is looked for.
fn place(provider: &'static str, server: &ModelServer) -> Place {
    Place { provider, address: server.url().trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap() }
}

fn offered(options: &[ConfigOption]) -> Vec<String> {
    let model = options.iter().find(|option| option.id.as_str() == "model").unwrap();
    let ConfigKind::Select(select) = &model.kind else { panic!("{model:?}") };
    select.options.iter().map(|value| value.value.as_str().to_owned()).collect()
}

/// Waits until the client is told, between turns, that all of these models can be chosen.
async fn told(chat: &Chat, models: &[&str]) {
    let is_all = |offered: &[String]| models.iter().all(|model| offered.iter().any(|id| id == model));
    // A list may be quicker than a session.
    if is_all(&offered(&chat.session().options())) {
        return;
    }
    let told = async {
        loop {
            match chat.session().next().await.unwrap() {
                Event::Update(SessionUpdate::ConfigOptions(update)) if is_all(&offered(&update.config_options)) => {
                    return;
                }
                Event::Update(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(LONGEST, told).await.expect("the client is told in time");
}

#[tokio::test]
async fn a_client_is_told_of_models_when_their_list_comes_and_those_of_this_machine_can_be_chosen() {
    for protocol in DIALECTS {
        let hosted = ModelServer::with(|_| Answer::text("hosted")).await;
        hosted.list_models(&["scripted", "other"]);
        let local = ModelServer::with(|_| Answer::text("local")).await;
        local.list_models(&["small", "large"]);
        let mut world = World::new("openai:scripted", Some(hosted));
        world.config.lists_models = true;
        world.config.local_servers = vec![place("llamacpp", &local)];
        let mut chat = world.open(Person::at(protocol)).await;
        told(&chat, &["openai:other", "llamacpp:small", "llamacpp:large"]).await;
        chat.set("model", "llamacpp:large").await;
        let seen = chat.turn("hello").await;
        assert!(seen.contains("text local"), "{protocol:?}: {seen}");
        assert_eq!(local.requests().remove(0).model(), "large");
        let seen = chat.turn("/model llamacpp:small").await;
        assert!(seen.contains("The model is `llamacpp:small` now."), "{protocol:?}: {seen}");
        // One whose provider lists others is none.
        for (id, is_to_choose) in [("llamacpp:none", false), ("openai:none", false), ("vllm:any", true)] {
            let chosen = chat.session().set_option("model", ConfigSetting::Id(id.into())).await;
            assert_eq!(chosen.is_ok(), is_to_choose, "{protocol:?} {id}: {chosen:?}");
            let seen = chat.turn(format!("/model {id}")).await;
            assert_eq!(seen.contains("There is no model"), !is_to_choose, "{protocol:?} {id}: {seen}");
        }
    }
}

#[tokio::test]
async fn a_list_that_comes_late_is_told_between_turns() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = World::new("vllm:m", None);
    world.config.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    world.config.lists_models = true;
    let chat = world.open(Person::at(Protocol::V2)).await;
    assert!(!offered(&chat.session().options()).contains(&"vllm:late".to_owned()));
    let serving = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let is_list = String::from_utf8_lossy(&request[..length]).starts_with("GET /v1/models");
            let (status, body) = match is_list {
                true => ("200 OK", r#"{"data":[{"id":"m"},{"id":"late"}]}"#),
                false => ("404 No", ""),
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    };
    tokio::select! {
        () = told(&chat, &["vllm:late"]) => {}
        _ = serving => {}
    }
}

#[tokio::test]
async fn a_server_whose_address_was_given_is_not_looked_for_elsewhere() {
    let given = ModelServer::with(|_| Answer::text("given")).await;
    let other = ModelServer::with(|_| Answer::text("other")).await;
    other.list_models(&["elsewhere"]);
    let mut world = World::new("llamacpp:scripted", Some(given));
    world.config.lists_models = true;
    world.config.local_servers = vec![place("llamacpp", &other)];
    let models = ModelList::find(&world.config).await.unwrap();
    models.fetch_lists(Lists::All, |_| {}, |_, _| {}).await;
    assert!(!models.choices().iter().any(|(id, _)| id == "llamacpp:elsewhere"), "{:?}", models.choices());
    assert!(other.request_lines().is_empty(), "{:?}", other.request_lines());
}

#[tokio::test]
async fn lists_that_were_never_fetched_are_fetched_once() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    server.list_models(&["scripted", "other"]);
    let mut world = World::new("vllm:scripted", Some(server));
    let local = ModelServer::with(|_| Answer::text("ok")).await;
    world.config.local_servers = vec![place("lmstudio", &local)];
    for (lists_models, which, expected) in [
        (false, Lists::Missing, vec![]),
        (true, Lists::Missing, vec!["lmstudio", "vllm"]),
        (true, Lists::Missing, vec![]),
        (true, Lists::All, vec!["lmstudio", "vllm"]),
    ] {
        world.config.lists_models = lists_models;
        let models = ModelList::find(&world.config).await.unwrap();
        let mut asked: Vec<String> = Vec::new();
        models.fetch_lists(which, |names| asked.extend(names.iter().map(|&name| name.to_owned())), |_, _| {}).await;
        // Whoever runs this may have keys of others.
        asked.retain(|name| matches!(name.as_str(), "lmstudio" | "vllm"));
        assert_eq!(asked, expected, "{lists_models} {which:?}");
        let is_known = models.choices().iter().any(|(id, _)| id == "vllm:other");
        assert_eq!(is_known, lists_models, "{lists_models} {which:?}");
    }
}

#[tokio::test]
async fn who_chose_to_do_without_a_model_asks_nobody_for_lists() {
    for (model, expected) in [("offline", false), ("vllm:scripted", true)] {
        let server = ModelServer::with(|_| Answer::text("ok")).await;
        server.list_models(&["mine"]);
        let mut world = World::new(model, None);
        let toml = format!("[providers.own]\napi = 'openai'\nbase_url = '{}/v1'\n", server.url());
        std::fs::create_dir_all(&world.config.config_dir).unwrap();
        std::fs::write(world.config.config_dir.join("agent.toml"), toml).unwrap();
        let loaded = attache_agent::Config::load(&world.config.config_dir, &world.config.state_dir).unwrap();
        world.config.providers = loaded.providers;
        world.config.lists_models = true;
        let mut chat = world.open(Person::at(Protocol::V2)).await;
        match expected {
            // It is asked in the background, sooner or later.
            true => {
                while server.request_lines().is_empty() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            }
            false => drop(chat.turn("say hello").await),
        }
        assert_eq!(!server.request_lines().is_empty(), expected, "{model}: {:?}", server.request_lines());
    }
}

/// Takes a session up again, with a prompt.
async fn take_up(world: &World, id: &attache::model::session::SessionId, prompt: &str) -> (Chat, String) {
    let mut chat = world.connect(Person::at(Protocol::V2)).await;
    chat.session = Some(chat.connection.session(world.project()).resume(id.clone()).await.unwrap());
    let seen = chat.turn(prompt).await;
    (chat, seen)
}

#[tokio::test]
async fn a_session_goes_on_with_its_own_model() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    let mut world = World::new("vllm:one", Some(server));
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    chat.turn("hello").await;
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    // Others begin with another one by now, and nobody lists this one.
    world.config.model = Some("vllm:two".into());
    let (chat, seen) = take_up(&world, &id, "again").await;
    assert!(!seen.contains("cannot be used"), "{seen}");
    assert_eq!(chat.option("model").as_deref(), Some("vllm:one"));
    assert_eq!(world.model().requests().last().unwrap().model(), "one");
    chat.set("model", "vllm:three").await;
    chat.session().close().await.unwrap();
    let (chat, _) = take_up(&world, &id, "again").await;
    assert_eq!(world.model().requests().last().unwrap().model(), "three");
    drop(chat);
}

#[tokio::test]
async fn a_session_whose_model_is_gone_says_which_one_it_has_instead() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    let url = server.url();
    let mut world = World::new("mine:big", Some(server));
    world.config.base_url = None;
    world.put_at("config/agent.toml", &format!("[providers.mine]\napi = 'openai'\nbase_url = '{url}'\n"));
    let loaded = attache_agent::Config::load(&world.config.config_dir, &world.config.state_dir).unwrap();
    world.config.providers = loaded.providers;
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    chat.turn("hello").await;
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    world.config.providers.clear();
    world.config.model = Some("offline:rules".into());
    let (chat, seen) = take_up(&world, &id, "say hello").await;
    let told =
        "This session's model `mine:big` cannot be used: there is no provider `mine`. It goes on with `offline:rules`.";
    assert!(seen.contains(told), "{seen}");
    assert_eq!(chat.option("model").as_deref(), Some("offline:rules"));
    // What is built in only stands in.
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    chat.turn("say hello").await;
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    world.config.model = Some("vllm:one".into());
    world.config.base_url = Some(url);
    let (chat, _) = take_up(&world, &id, "hello").await;
    assert_eq!(chat.option("model").as_deref(), Some("vllm:one"));
}
