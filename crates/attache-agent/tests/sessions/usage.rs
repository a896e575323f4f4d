//! What sessions take: shown, kept, summed up, and held to a limit. And which models there are to choose from.

use std::time::Duration;

use attache::Event;
use attache::model::config::ConfigKind;
use attache::model::update::SessionUpdate;
use attache_agent::model::price::Cost;
use attache_agent::store::{Entry, FileStore, Store};
use attache_agent::{Budget, CodingAgent, Lists, ModelFacts, ModelList, PriceFacts};
use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{DIALECTS, LONGEST, Person, World};

/// A world whose model costs a dollar for a million tokens in, ten for a million out, and a tenth from the cache.
async fn priced(answers: Vec<Answer>) -> World {
    let mut world = World::answering(answers).await;
    let price = PriceFacts { input: 1.0, output: 10.0, cached: Some(0.1), written: None };
    world.config.models.insert("openai:scripted".into(), ModelFacts { price: Some(price), ..ModelFacts::default() });
    world
}

fn reading() -> Answer {
    Answer::new().call("read_file", json!({"path": "a.txt"})).usage(1_000, 0, 100)
}

/// What the client was told of the cost, in order.
fn costs(updates: &[SessionUpdate]) -> Vec<String> {
    let cost = |update: &SessionUpdate| match update {
        SessionUpdate::Usage(usage) => usage.cost.set().map(|cost| {
            assert_eq!(cost.currency, "USD");
            format!("{:.6}", cost.amount)
        }),
        _ => None,
    };
    updates.iter().filter_map(cost).collect()
}

#[tokio::test]
async fn tokens_and_money_are_told_after_each_request_and_survive_a_reload() {
    for protocol in DIALECTS {
        let second = Answer::text("Done.").usage(2_000, 1_000, 10);
        let third = Answer::text("Again.").usage(3_000, 0, 20);
        let world = priced(vec![reading(), second, third]).await;
        world.put("a.txt", "x");
        let mut chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut turn = session.prompt("look").await.unwrap();
        let mut updates = Vec::new();
        while let Some(event) = turn.next().await.unwrap() {
            match event {
                Event::Update(update) => updates.push(update),
                other => other.decline().await.unwrap(),
            }
        }
        let told = costs(&updates);
        assert_eq!(told, ["0.002000", "0.003200"], "{protocol:?}");
        // The draft has no word for it.
        if protocol != attache::Protocol::V2Draft {
            let usage = turn.usage().unwrap_or_else(|| panic!("{protocol:?}"));
            assert_eq!((usage.total_tokens, usage.input_tokens, usage.output_tokens), (3_110, 3_000, 110));
            assert_eq!(usage.cached_read_tokens, Some(1_000));
        }
        drop(turn);
        let seen = chat.turn("/status").await;
        let spent = "Spent: 3000 tokens in (1000 cached), 110 out, 2 requests, 0.0032 USD";
        assert!(seen.contains(spent), "{seen}");

        // Another process takes it up.
        let id = session.id().clone();
        drop((chat, session));
        let mut chat = world.connect(Person::at(protocol)).await;
        let opened = chat.connection.session(world.project()).resume(id).await;
        chat.session = Some(opened.unwrap());
        let seen = chat.turn("/status").await;
        assert!(seen.contains(spent), "{protocol:?}: {seen}");
        chat.turn("again").await;
        assert_eq!(costs(&chat.updates), ["0.006400"], "{protocol:?}");
    }
}

#[tokio::test]
async fn limits_of_a_session_end_its_turns_by_name() {
    for (cost, tokens, stop, named) in [
        (Cost::from_dollars(0.003), None, "max_turn_requests", "`max_cost` is 0.003 USD"),
        (None, Some(2_000), "max_tokens", "`max_tokens_total` is 2000"),
    ] {
        let mut world = priced(vec![reading(), reading(), reading()]).await;
        world.put("a.txt", "x");
        world.config.limits.max_cost = cost;
        world.config.limits.max_tokens_total = tokens;
        let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
        let seen = chat.turn("look").await;
        assert!(seen.ends_with(&format!("stop {stop}")) && seen.contains(named), "{seen}");
        assert_eq!(world.model().requests().len(), 2);
        // It stays so, and says so again.
        let seen = chat.turn("look again").await;
        assert!(seen.ends_with(&format!("stop {stop}")) && seen.contains(named), "{seen}");
        assert_eq!(world.model().requests().len(), 2);
    }
    // Limits of a run count from when the session is opened.
    let budget = Budget { tokens: Some(2_000), ..Budget::default() };
    let mut world = priced(vec![reading(), reading(), reading(), reading(), reading()]).await;
    world.config.run_budget = budget;
    world.put("a.txt", "x");
    let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
    let seen = chat.turn("look").await;
    let named = "the run has used 2200 tokens, and `--max-tokens` is 2000";
    assert!(seen.ends_with("stop max_tokens") && seen.contains(named), "{seen}");
    let id = chat.session().id().clone();
    drop(chat);
    let mut chat = world.connect(Person::at(attache::Protocol::V2)).await;
    chat.session = Some(chat.connection.session(world.project()).resume(id).await.unwrap());
    assert!(chat.turn("look").await.contains(named));
    assert_eq!(world.model().requests().len(), 4);
    // Where nobody knows the price, the person knows that.
    let mut world = World::answering(vec![Answer::text("hi"), Answer::text("hi")]).await;
    world.config.limits.max_cost = Cost::from_dollars(1.0);
    let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
    let seen = chat.turn("hello").await;
    assert!(seen.contains("the price of `openai:scripted` is not known, so `max_cost` does not limit it"), "{seen}");
    assert!(!chat.turn("hello").await.contains("max_cost"));
}

/// What was cancelled is paid for: it counts, is kept, and meets the limit.
#[tokio::test]
async fn answers_that_were_cancelled_count() {
    for protocol in DIALECTS {
        let hanging = || Answer::text("some words that take long").hang_after(2);
        let mut world = priced(vec![hanging(), hanging(), Answer::text("never")]).await;
        world.config.limits.max_tokens_total = Some(3_000);
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        for number in 1..=2 {
            let is_text = |event: &Event| crate::help::is_text(event);
            let view = crate::help::cancelled(&mut chat, "begin", is_text).await;
            let cost = view.usage.and_then(|usage| usage.cost).map(|cost| cost.amount).unwrap_or_default();
            assert!(cost > 0.0, "{protocol:?}: it is told with the end of the turn");
            world.model().wait_for_closed(number).await;
        }
        let seen = chat.turn("/status").await;
        assert!(seen.contains("2 requests, 0.00"), "{protocol:?}: {seen}");
        let seen = chat.turn("go on").await;
        assert!(seen.contains("`max_tokens_total` is 3000"), "{protocol:?}: {seen}");
        assert_eq!(world.model().requests().len(), 2, "{protocol:?}");
    }
}

#[tokio::test]
async fn answers_that_fail_and_summaries_are_told() {
    for protocol in DIALECTS {
        let broken = Answer::text("some words that take long").error_after(2, "no more");
        let summary = Answer::text("They said hello.").usage(2_000, 0, 10);
        let mut world = priced(vec![broken, Answer::text("Hello.").usage(1_000, 0, 100), summary]).await;
        world.config.patience.attempts = 1;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        let seen = chat.turn("hello").await;
        assert!(chat.failed.is_some(), "{protocol:?}: {seen}");
        let failed = costs(&chat.updates);
        assert_eq!(failed.len(), 1, "{protocol:?}: {seen}");
        chat.turn("hello").await;
        chat.turn("/compact").await;
        let summed_up = costs(&chat.updates);
        assert_eq!(summed_up.len(), 1, "{protocol:?}");
        let dollars = |told: &[String]| told[0].parse::<f64>().unwrap();
        let added = dollars(&summed_up) - dollars(&failed);
        assert!((added - 0.002 - 0.0021).abs() < 0.000_002, "{protocol:?}: {added}");
    }
}

/// The client knows of a request of a sub-agent when it is kept, so that no end of the process loses it.
#[tokio::test]
async fn every_request_of_a_sub_agent_is_kept_and_told_when_it_is_made() {
    for protocol in DIALECTS {
        let server = ModelServer::with(|request| {
            let results = request.tool_results().len();
            match (request.system().contains("You are a sub-agent"), results) {
                (true, 0) => reading(),
                (true, _) => Answer::hang(),
                (false, _) => {
                    Answer::new().call("task", json!({"description": "look", "prompt": "look"})).usage(1_000, 0, 100)
                }
            }
        })
        .await;
        let mut world = World::new("openai:scripted", Some(server));
        let price = PriceFacts { input: 1.0, output: 10.0, cached: None, written: None };
        let facts = ModelFacts { price: Some(price), ..ModelFacts::default() };
        world.config.models.insert("openai:scripted".into(), facts);
        world.put("a.txt", "x");
        let chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut turn = session.prompt("look").await.unwrap();
        let mut told = Vec::new();
        while told.len() < 2 {
            let event = tokio::time::timeout(LONGEST, turn.next()).await.unwrap().unwrap().unwrap();
            match event {
                Event::Update(update) => told.extend(costs(&[update])),
                other => other.decline().await.unwrap(),
            }
        }
        assert_eq!(told, ["0.002000", "0.004000"], "{protocol:?}");
        // Another process reads what there is.
        let entries = FileStore::open(world.config.sessions_dir()).unwrap().read(session.id().as_str()).unwrap();
        let spent = entries.iter().filter(|entry| matches!(entry, Entry::Spent(_))).count();
        assert_eq!(spent, 2, "{protocol:?}");
    }
}

#[tokio::test]
async fn what_is_built_in_takes_nothing() {
    let world = World::offline();
    let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
    chat.turn("say hello").await;
    assert!(costs(&chat.updates).is_empty());
    assert!(!chat.turn("/status").await.contains("Spent"));
}

/// The models that a client can choose.
fn offered(chat: &crate::support::Chat) -> Vec<String> {
    let options = chat.session().options();
    let model = options.iter().find(|option| option.id.as_str() == "model").unwrap();
    let ConfigKind::Select(select) = &model.kind else { panic!("{model:?}") };
    select.options.iter().map(|value| value.value.as_str().to_owned()).collect()
}

#[tokio::test]
async fn models_that_a_server_lists_can_be_chosen_and_nobody_waits_for_the_list() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    server.list_models(&["scripted", "other", "text-embedding-x"]);
    let mut world = World::new("openai:scripted", Some(server));
    world.config.lists_models = true;
    let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
    // It may have come already, or come with the first turn.
    chat.turn("hello").await;
    let seen = chat.turn("/model").await;
    assert!(seen.contains("`openai:other`") && !seen.contains("embedding"), "{seen}");
    chat.set("model", "openai:other").await;
    chat.turn("hello").await;
    assert_eq!(world.model().requests().last().unwrap().model(), "other");
    // The next agent finds it where it was kept, and asks nobody.
    world.config.lists_models = false;
    let lines = world.model().request_lines().len();
    let chat = world.open(Person::at(attache::Protocol::V2)).await;
    assert!(offered(&chat).contains(&"openai:other".to_owned()));
    assert_eq!(world.model().request_lines().len(), lines);
}

/// From a provider's list to what the person is told.
#[tokio::test]
async fn a_price_that_a_provider_lists_becomes_the_cost_of_a_session() {
    let server = ModelServer::start(vec![Answer::text("Done.").usage(2_000, 1_000, 100)]).await;
    // In OpenRouter's words: dollars for a token.
    let pricing = json!({"prompt": "0.000001", "completion": "0.00001", "input_cache_read": "0.0000001"});
    let model = json!({"id": "acme/large", "context_length": 64_000, "pricing": pricing});
    server.say_at("/v1/models", json!({ "data": [model] }));
    let mut world = World::new("openrouter:acme/large", Some(server));
    world.config.lists_models = true;
    let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
    chat.turn("hello").await;
    assert_eq!(costs(&chat.updates), ["0.002100"]);
    let seen = chat.turn("/status").await;
    let spent = "Spent: 2000 tokens in (1000 cached), 100 out, 1 requests, 0.0021 USD";
    assert!(seen.contains(spent) && seen.contains(" of 64000 tokens"), "{seen}");
}

#[tokio::test]
async fn the_context_that_a_local_server_tells_is_counted_on() {
    for (model, path, body) in [
        ("llamacpp:scripted", "/props", json!({"default_generation_settings": {"n_ctx": 12_288}})),
        ("ollama:scripted", "/api/show", json!({"model_info": {"llama.context_length": 12_288}})),
    ] {
        let server = ModelServer::start(vec![Answer::text("Done.")]).await;
        server.say_at(path, body);
        let mut world = World::new(model, Some(server));
        world.config.lists_models = true;
        let mut chat = world.open(Person::at(attache::Protocol::V2)).await;
        chat.turn("hello").await;
        let seen = chat.turn("/status").await;
        assert!(seen.contains(" of 12288 tokens"), "{model}: {seen}");
        if model.starts_with("ollama") {
            assert_eq!(world.model().requests()[0].body["options"]["num_ctx"], 12_288);
        }
    }
}

#[tokio::test]
async fn a_server_that_never_gives_its_list_delays_no_session() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = World::new("vllm:m", None);
    world.config.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    world.config.lists_models = true;
    let start = std::time::Instant::now();
    let chat = world.open(Person::at(attache::Protocol::V2)).await;
    assert_eq!(offered(&chat)[0], "vllm:m");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn what_a_local_server_says_of_its_one_model_counts_whatever_it_is_called() {
    let pages = [
        ("/v1/models", json!({"data": [{"id": "/models/m.gguf", "meta": {"n_params": 1_777_088_000_u64}}]})),
        ("/props", json!({"default_generation_settings": {"n_ctx": 6_144}, "modalities": {"vision": true}})),
    ];
    let pages =
        pages.map(|(path, body)| (path, attache_testkit::Response::bytes("application/json", body.to_string())));
    let server = attache_testkit::HttpFixture::start(pages.to_vec()).await;
    let mut world = World::new("llamacpp:m", None);
    world.config.base_url = Some(server.url("/v1"));
    let models = ModelList::find(&world.config).await.unwrap();
    assert_eq!((models.first_info().context, models.first_info().is_small), (32_000, false));
    models.fetch_lists(Lists::All, |_| {}, |_, _| {}).await;
    let info = models.first_info();
    assert_eq!((info.context, info.images, info.is_small), (6_144, true, true));
    // What the person says comes first.
    let facts = ModelFacts { context: Some(2_048), ..ModelFacts::default() };
    world.config.models.insert("llamacpp:m".into(), facts);
    let models = ModelList::find(&world.config).await.unwrap();
    assert_eq!(models.first_info().context, 2_048);
}

#[tokio::test]
async fn a_provider_of_ones_own_is_asked_by_its_name() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    let url = server.url();
    let mut world = World::new("mine:some/model", Some(server));
    world.config.base_url = None;
    world.put_at(
        "config/agent.toml",
        &format!(
            "model = 'mine:some/model'\n[providers.mine]\napi = 'anthropic'\nbase_url = '{url}'\n\
             headers = {{ X-Team = 'blue ${{PATH}}' }}\n"
        ),
    );
    let loaded = attache_agent::Config::load(&world.config.config_dir, &world.config.state_dir).unwrap();
    world.config.providers = loaded.providers;
    attache_agent::Keys::new(&world.config.config_dir).keep_for("mine", "kept-key").unwrap();
    CodingAgent::new(world.config.clone()).await.unwrap();
    let seen = world.turn(Person::at(attache::Protocol::V2), "hello").await;
    assert!(seen.contains("ok"), "{seen}");
    let asked = world.model().requests().remove(0);
    assert_eq!((asked.path.as_str(), asked.model()), ("/v1/messages", "some/model"));
    assert_eq!(asked.header("x-api-key"), Some("kept-key"));
    let team = asked.header("x-team").unwrap();
    assert!(team.starts_with("blue /"), "{team}");
}

#[tokio::test]
async fn the_context_is_as_full_as_it_was_when_a_session_is_taken_up_again() {
    for protocol in [attache::Protocol::V1, attache::Protocol::V2] {
        let world = World::answering(vec![Answer::text("hi").usage(1_000, 0, 100)]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("hello").await;
        let before = chat.turn("/status").await;
        assert!(before.contains("Context: 1100 of "), "{before}");
        let id = chat.session().id().clone();
        drop(chat);
        let mut chat = world.connect(Person::at(protocol)).await;
        chat.session = Some(chat.connection.session(world.project()).resume(id).await.unwrap());
        let after = chat.turn("/status").await;
        assert!(after.contains("Context: 1100 of "), "{after}");
    }
}
