//! MCP servers of a session: from the client, from settings, from a project that is trusted; asked about, followed, ended.

use std::path::Path;

use attache::Protocol;
use attache::model::mcp::{McpServer, McpServerHttp, McpServerSse};
use attache::model::permission::PermissionOptionKind;
use attache_host::trust::{Contents, Trust};
use serde_json::json;

use crate::help::{example, is_alive, mcp_server, scripted, until};
use crate::site::Site;
use crate::support::{Chat, DIALECTS, Person, Says, World};

/// Opens a session with servers.
async fn open(world: &World, person: Person, servers: Vec<McpServer>) -> Chat {
    let mut chat = world.connect(person).await;
    let mut builder = chat.connection.session(world.project());
    for server in servers {
        builder = builder.mcp_server(server);
    }
    chat.session = Some(builder.open().await.unwrap());
    chat
}

fn settings(name: &str, args: &[&str]) -> String {
    json!({"mcpServers": {name: {"command": example("mcp_server"), "args": args}}}).to_string()
}

/// Trusts the project as it is now.
fn trust(world: &World) {
    let trust = Trust::new(world.config.state_dir.join("trust.toml"));
    trust.trust(&Contents::read(&world.project()).unwrap()).unwrap();
}

#[tokio::test]
async fn servers_of_every_transport_are_called() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let site = Site::start().await;
        let mut servers = vec![mcp_server("tiny", &[]), McpServer::Http(McpServerHttp::new("web", site.url("mcp")))];
        let mut names = vec!["tiny", "web"];
        // Version 2 has no servers of the old kind.
        if protocol != Protocol::V2 {
            servers.push(McpServer::Sse(McpServerSse::new("old", site.url("sse"))));
            names.push("old");
        }
        let mut chat = open(&world, Person::at(protocol), servers).await;
        for name in names {
            let seen = chat.turn(format!("call {name}__echo {{\"text\":\"hello {name}\"}}").as_str()).await;
            assert!(seen.contains(&format!("hello {name}")), "{protocol:?}: {seen}");
            assert!(seen.contains("pending → in_progress → completed"), "{seen}");
        }
        chat.session().close().await.unwrap();
    }
}

#[tokio::test]
async fn a_tool_of_a_server_is_asked_about_by_its_whole_name_and_remembered() {
    let world = scripted().await;
    let mut chat = open(&world, Person::saying(Says::RejectOnce), vec![mcp_server("tiny", &[])]).await;
    let call = "call tiny__echo {\"text\":\"hello\"}";
    let seen = chat.turn(call).await;
    assert!(seen.contains("failed") && !seen.contains("completed"), "{seen}");
    let always = chat.asked[0].options.iter().find(|option| option.kind == PermissionOptionKind::AllowAlways).unwrap();
    assert!(always.name.contains("tiny__echo"), "{always:?}");
    chat.says(Says::AllowAlways);
    chat.turn(call).await;
    chat.says(Says::RejectOnce);
    let seen = chat.turn(call).await;
    assert!(seen.contains("completed") && chat.asked.len() == 2, "{seen}");
    // The rule is for this tool alone.
    let seen = chat.turn("call tiny__cwd {}").await;
    assert!(seen.contains("failed") && chat.asked.len() == 3, "{seen}");
    let seen = chat.turn("/permissions").await;
    assert!(seen.contains("tiny__echo"), "{seen}");
    // In architect, nothing of a server is done.
    chat.set("mode", "architect").await;
    let seen = chat.turn(call).await;
    assert!(seen.contains("failed"), "{seen}");
}

#[tokio::test]
async fn a_list_of_tools_that_changes_is_followed_in_the_next_request() {
    let world = scripted().await;
    let mut chat = open(&world, Person::new(), vec![mcp_server("tiny", &[])]).await;
    chat.turn("call tiny__change {}").await;
    let names = |world: &World| world.model().requests().last().unwrap().tool_names();
    for _ in 0..50 {
        if names(&world).contains(&"tiny__brand_new".to_owned()) {
            return;
        }
        chat.turn("say hello").await;
    }
    panic!("{:?}", names(&world));
}

#[tokio::test]
async fn a_server_that_fails_is_told_about_and_the_session_works_on() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let gone = McpServer::Http(McpServerHttp::new("gone", "http://127.0.0.1:1/mcp"));
        let servers = vec![mcp_server("broken", &["--die"]), mcp_server("tiny", &[]), gone];
        let mut chat = open(&world, Person { news: true, ..Person::at(protocol) }, servers).await;
        let seen = chat.turn("call tiny__echo {\"text\":\"hello\"}").await;
        for name in ["broken", "gone"] {
            assert!(seen.contains(&format!("the MCP server `{name}` cannot be used")), "{protocol:?}: {seen}");
        }
        assert!(seen.contains("completed") && seen.ends_with("stop end_turn"), "{seen}");
        let seen = chat.turn("say hello").await;
        assert!(!seen.contains("cannot be used"), "it is told once: {seen}");
    }
}

#[tokio::test]
async fn servers_come_from_settings_and_the_client_has_the_last_word() {
    let world = scripted().await;
    world.put_at("config/mcp.json", &settings("tiny", &["--die"]));
    let mut chat = open(&world, Person::new(), vec![mcp_server("tiny", &[])]).await;
    let seen = chat.turn("call tiny__echo {\"text\":\"hello\"}").await;
    assert!(seen.contains("completed") && !seen.contains("cannot be used"), "{seen}");

    world.put_at("config/mcp.json", &settings("mine", &[]));
    let seen = world.turn(Person::new(), "call mine__echo {\"text\":\"hello\"}").await;
    assert!(seen.contains("completed"), "{seen}");

    world.put_at("config/mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"sk-secret");
    let seen = world.turn(Person::new(), "say hello").await;
    assert!(seen.contains("`mcp.json` of your settings") && !seen.contains("sk-secret"), "{seen}");
    assert!(seen.contains("text hello"), "{seen}");
}

#[tokio::test]
async fn servers_of_a_project_need_trust() {
    let world = scripted().await;
    world.put(".attache/mcp.json", &settings("theirs", &[]));
    let call = "call theirs__echo {\"text\":\"hello\"}";
    let seen = world.turn(Person::new(), call).await;
    assert!(seen.contains("has no effect, because it is not trusted"), "{seen}");
    assert!(!seen.contains("completed"), "{seen}");
    trust(&world);
    let seen = world.turn(Person::new(), call).await;
    assert!(seen.contains("completed") && !seen.contains("trusted"), "{seen}");
    world.put(".attache/mcp.json", &settings("theirs", &["--pages"]));
    let seen = world.turn(Person::new(), call).await;
    assert!(seen.contains("it has changed since it was trusted") && !seen.contains("completed"), "{seen}");
}

#[tokio::test]
async fn no_process_of_a_server_is_left_when_the_session_ends() {
    for protocol in DIALECTS {
        let world = scripted().await;
        for is_closed in [true, false] {
            let mut chat = open(&world, Person::at(protocol), vec![mcp_server("tiny", &[])]).await;
            chat.turn("call tiny__child {}").await;
            let child: u32 = world.results().last().unwrap().trim().parse().unwrap();
            let server = parent(child);
            assert!(is_alive(child) && is_alive(server));
            if is_closed {
                chat.session().close().await.unwrap();
            }
            // Or the client leaves without a word.
            drop(chat);
            until("processes are left", || !is_alive(child) && !is_alive(server)).await;
        }
    }
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn servers_are_started_again_when_a_session_is_loaded() {
    let world = scripted().await;
    world.put_at("config/mcp.json", &settings("mine", &[]));
    let mut chat = world.open(Person::new()).await;
    chat.turn("call mine__echo {\"text\":\"one\"}").await;
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    crate::help::load(&mut chat, &world.project(), &id).await;
    let seen = chat.turn("call mine__echo {\"text\":\"two\"}").await;
    assert!(seen.contains("completed") && seen.contains("two"), "{seen}");
}
