//! Everything that the agent offers is driven. What is offered without a row here fails the test.

use attache::model::content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceContents, TextResource,
};
use attache::model::mcp::{McpServer, McpServerHttp, McpServerSse};
use attache::model::session::ListSessionsRequest;
use attache::model::unstable::{ForkSessionRequest, SetTitleRequest};
use attache::{Prompt, Protocol};
use attache_agent::model::catalog;
use attache_agent::{Keys, ModelFacts};
use serde_json::Value;

use crate::help::{load, mcp_server, said, scripted};
use crate::site::Site;
use crate::support::{Chat, DIALECTS, Person, World};

/// The answer to `initialize`, as it went over the wire.
fn answer(chat: &Chat) -> Value {
    let lines = chat.wire.lines();
    let line = lines.iter().find(|line| line.starts_with('<')).unwrap();
    serde_json::from_str::<Value>(&line[2..]).unwrap()["result"].clone()
}

/// The paths of all that is offered: `true`, or an object with nothing more in it.
fn offered(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Bool(true) => paths.push(path.to_owned()),
        Value::Object(members) if members.is_empty() => paths.push(path.to_owned()),
        Value::Object(members) => {
            for (name, value) in members {
                offered(value, &format!("{path}.{name}"), paths);
            }
        }
        Value::Bool(false) | Value::Null => {}
        other => panic!("{path} is {other}"),
    }
}

/// What an agent offers, without what is said of itself.
fn all(chat: &Chat) -> Vec<String> {
    let answer = answer(chat);
    let capabilities = match answer.get("agentCapabilities") {
        Some(capabilities) => capabilities,
        None => &answer["capabilities"],
    };
    let mut paths = Vec::new();
    offered(capabilities, "", &mut paths);
    paths
}

/// Makes use of one thing that is offered. `false` when nobody has written down how.
async fn drive(world: &World, chat: &mut Chat, path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap();
    chat.open(&world.project()).await;
    let id = chat.session().id().clone();
    let cwd = world.project().to_str().unwrap().to_owned();
    let last = || world.model().requests().last().unwrap().body.to_string();
    match name {
        "loadSession" | "load" => {
            chat.turn("say hello").await;
            chat.session().close().await.unwrap();
            assert_eq!(said(&load(chat, &world.project(), &id).await), "hello\ndone");
        }
        "resume" => {
            chat.session().close().await.unwrap();
            chat.session = Some(chat.connection.session(world.project()).resume(id).await.unwrap());
            assert!(chat.turn("say hello").await.contains("hello"));
        }
        "list" => {
            let list = chat.connection.list_sessions(&ListSessionsRequest::new()).await.unwrap();
            assert!(list.sessions.iter().any(|session| session.session_id == id));
        }
        "close" => chat.session().close().await.unwrap(),
        "delete" => {
            chat.connection.delete_session(id.clone()).await.unwrap();
            assert!(chat.connection.session(world.project()).load(id).await.is_err());
        }
        "fork" => {
            chat.turn("remember apple").await;
            let forked = chat.connection.call(&ForkSessionRequest::new(id, cwd)).await.unwrap().session_id;
            load(chat, &world.project(), &forked).await;
            assert!(chat.turn("recall").await.contains("remembered apple"));
        }
        "title" => {
            let title = chat.connection.call(&SetTitleRequest::new(id, "A title")).await.unwrap().title;
            assert_eq!(title, "A title");
        }
        "additionalDirectories" => {
            world.put_at("other/b.txt", "from elsewhere\n");
            let other = world.root.join("other");
            let session = chat.connection.session(world.project()).directory(&other).open().await.unwrap();
            chat.session = Some(session);
            let asked = chat.asked.len();
            chat.turn(format!("call read_file {{\"path\":\"{}/b.txt\"}}", other.display()).as_str()).await;
            assert!(world.results()[0].contains("from elsewhere"), "{:?}", world.results());
            assert_eq!(chat.asked.len(), asked);
        }
        "image" => {
            let blocks = vec!["look".into(), ContentBlock::Image(ImageContent::new("aW1hZ2U=", "image/png").into())];
            chat.turn(Prompt::from(blocks)).await;
            assert!(last().contains("aW1hZ2U="), "{}", last());
        }
        "audio" => {
            let blocks = vec!["listen".into(), ContentBlock::Audio(AudioContent::new("c291bmQ=", "audio/wav").into())];
            chat.turn(Prompt::from(blocks)).await;
            assert!(last().contains("c291bmQ="), "{}", last());
        }
        "embeddedContext" => {
            let text = TextResource::new("what stands in it", "file:///a.txt");
            let resource = EmbeddedResource::new(ResourceContents::Text(text));
            chat.turn(Prompt::from(vec!["read".into(), ContentBlock::Resource(resource.into())])).await;
            assert!(last().contains("what stands in it"), "{}", last());
        }
        "stdio" | "http" | "sse" => {
            let site = Site::start().await;
            let server = match name {
                "stdio" => mcp_server("web", &[]),
                "http" => McpServer::Http(McpServerHttp::new("web", site.url("mcp"))),
                _ => McpServer::Sse(McpServerSse::new("web", site.url("sse"))),
            };
            let session = chat.connection.session(world.project()).mcp_server(server).open().await.unwrap();
            chat.session = Some(session);
            let seen = chat.turn("call web__echo {\"text\":\"hello\"}").await;
            assert!(seen.contains("completed"), "{seen}");
        }
        // It takes a client that serves one; `carried` drives it.
        "acp" => {}
        "logout" => chat.connection.logout().await.unwrap(),
        // A place for more, with nothing in it.
        "auth" => {}
        _ => return false,
    }
    true
}

#[tokio::test]
async fn everything_that_is_offered_is_served() {
    for protocol in DIALECTS {
        let mut world = scripted().await;
        let facts = ModelFacts { images: Some(true), audio: Some(true), ..ModelFacts::default() };
        world.config.models.insert("openai:scripted".into(), facts);
        let mut chat = world.connect(Person::at(protocol)).await;
        let paths = all(&chat);
        assert!(paths.len() > 6, "{paths:?}");
        for path in paths {
            assert!(drive(&world, &mut chat, &path).await, "{protocol:?}: `{path}` is offered, and nothing drives it");
        }
    }
}

#[tokio::test]
async fn every_way_to_log_in_that_is_offered_is_served() {
    for protocol in DIALECTS {
        let mut world = World::offline();
        world.config.model = Some("groq:some-model".into());
        let chat = world.connect(Person::at(protocol)).await;
        let offered = answer(&chat);
        let methods = offered["authMethods"].as_array().unwrap();
        assert_eq!(methods.len(), 1, "{methods:?}");
        Keys::new(&world.config.config_dir).keep(catalog::provider("groq").unwrap(), "some-key").unwrap();
        for method in methods {
            let id = method.get("id").or_else(|| method.get("methodId")).unwrap().as_str().unwrap();
            chat.connection.authenticate(id).await.unwrap();
        }
        chat.connection.session(world.project()).open().await.unwrap();
        // All dialects have a logout where there is a login; older ones say so.
        assert_eq!(all(&chat).contains(&".auth.logout".to_owned()), protocol != Protocol::V2);
        chat.connection.logout().await.unwrap();
        assert!(chat.connection.session(world.project()).open().await.is_err());
    }
}

#[tokio::test]
async fn what_the_model_cannot_take_is_not_offered() {
    for protocol in DIALECTS {
        let chat = World::offline().connect(Person::at(protocol)).await;
        let paths = all(&chat);
        assert!(!paths.iter().any(|path| path.ends_with("image") || path.ends_with("audio")), "{paths:?}");
        assert!(!paths.iter().any(|path| path.ends_with("logout")), "{paths:?}");
    }
}
