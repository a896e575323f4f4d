//! MCP servers of a session: from the client, from settings, from a project that is trusted; asked about, followed, ended.

use std::path::Path;
use std::time::Duration;

use attache::model::command::{AvailableCommand, CommandInput};
use attache::model::mcp::{McpServer, McpServerHttp, McpServerSse};
use attache::model::permission::PermissionOptionKind;
use attache::model::update::SessionUpdate;
use attache::{Event, Protocol};
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

/// Settings whose one server is given a variable of ours, and whose other server lacks one.
fn with_variables() -> String {
    let tiny = |value: &str| json!({"command": example("mcp_server"), "env": {"GIVEN": value}});
    json!({"mcpServers": {"tiny": tiny("${CARGO_PKG_NAME}!"), "lacks": tiny("${ATTACHE_NO_SUCH_VARIABLE}")}})
        .to_string()
}

#[tokio::test]
async fn variables_of_the_environment_are_put_in_and_one_that_is_missing_is_named() {
    let world = scripted().await;
    world.put_at("config/mcp.json", &with_variables());
    let seen = world.turn(Person::new(), "call tiny__env {\"text\":\"GIVEN\"}").await;
    assert!(seen.contains("attache-agent!"), "{seen}");
    let missing =
        "`mcp.json` of your settings: server `lacks`: environment variable `ATTACHE_NO_SUCH_VARIABLE` is not set";
    assert!(seen.contains(missing), "{seen}");
}

#[tokio::test]
async fn variables_in_a_project_need_trust() {
    let world = scripted().await;
    world.put(".attache/mcp.json", &with_variables());
    let call = "call tiny__env {\"text\":\"GIVEN\"}";
    let seen = world.turn(Person::new(), call).await;
    assert!(!seen.contains("attache-agent!") && seen.contains("not trusted"), "{seen}");
    trust(&world);
    let seen = world.turn(Person::new(), call).await;
    assert!(seen.contains("attache-agent!") && seen.contains("of the project: server `lacks`"), "{seen}");
}

#[tokio::test]
async fn a_long_result_reaches_neither_the_client_nor_the_log_whole() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let mut chat = open(&world, Person::at(protocol), vec![mcp_server("tiny", &[])]).await;
        let seen = chat.turn("call tiny__big {\"text\":\"300000\"}").await;
        assert!(seen.contains("completed") && seen.contains("the whole text is in"), "{}", &seen[..2000]);
        let longest = chat.updates.iter().map(|update| format!("{update:?}").len()).max().unwrap();
        assert!(longest < 100 << 10, "{longest}");
        assert!(world.results().last().unwrap().len() < 64 << 10);
        let log = size(&world.config.sessions_dir());
        assert!(log < 256 << 10, "{log}");
    }
}

fn size(path: &Path) -> u64 {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path())).sum();
    }
    path.metadata().unwrap().len()
}

#[tokio::test]
async fn a_server_that_dies_is_restarted_and_told_about() {
    let world = scripted().await;
    let mut chat = open(&world, Person { news: true, ..Person::new() }, vec![mcp_server("tiny", &[])]).await;
    let seen = chat.turn("call tiny__die {}").await;
    assert!(seen.contains("failed") && seen.contains("`tiny` is gone: it ended with exit code 3"), "{seen}");
    assert!(world.results().last().unwrap().contains("it is being restarted"));
    let seen = chat.turn("call tiny__echo {\"text\":\"hello again\"}").await;
    assert!(seen.contains("hello again") && seen.contains("completed"), "{seen}");
    let seen = format!("{seen}{}", chat.turn("say hello").await);
    assert!(seen.contains("the MCP server `tiny` is running again"), "{seen}");
}

/// The commands of servers that the client is told of, once there are any.
async fn commands_of_servers(chat: &Chat) -> Vec<(String, Option<String>)> {
    let next = async {
        loop {
            let Event::Update(SessionUpdate::AvailableCommands(update)) = chat.session().next().await.unwrap() else {
                continue;
            };
            let about = |command: &AvailableCommand| match command {
                AvailableCommand::Command(command) => match &command.input {
                    Some(CommandInput::Text(input)) => (command.name.clone(), Some(input.hint.clone())),
                    _ => (command.name.clone(), None),
                },
                other => panic!("{other:?}"),
            };
            let commands: Vec<_> = update.available_commands.iter().map(about).collect();
            let servers: Vec<_> = commands.into_iter().filter(|(name, _)| name.contains(':')).collect();
            if !servers.is_empty() {
                return servers;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), next).await.expect("the client is told in time")
}

#[tokio::test]
async fn prompts_of_a_server_are_slash_commands() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let mut chat = open(&world, Person::at(protocol), vec![mcp_server("tiny", &[])]).await;
        let commands = commands_of_servers(&chat).await;
        let hint = Some("<who> [how]".to_owned());
        let wanted = [("tiny:greet", hint), ("tiny:odd_name_", None), ("tiny:broken", None)];
        assert_eq!(commands, wanted.map(|(name, hint)| (name.to_owned(), hint)), "{protocol:?}");

        let seen = chat.turn("/tiny:greet Bob very warmly").await;
        assert!(seen.contains("text hello Bob \"very warmly\""), "{seen}");
        chat.turn("/tiny:odd_name_").await;
        let texts = world.model().requests().last().unwrap().texts();
        assert_eq!(texts.last().unwrap(), "say odd\n\nAn example answer:\n\nyes");
        // What goes wrong is told, and the model is not asked.
        let count = world.model().requests().len();
        let seen = chat.turn("/tiny:greet").await;
        assert!(seen.contains("missing `who` for `/tiny:greet`\n  | hint: `/tiny:greet <who> [how]`"), "{seen}");
        let seen = chat.turn("/tiny:broken").await;
        assert!(seen.contains("`tiny` failed: it refuses: no such prompt (-32000)"), "{seen}");
        assert_eq!(world.model().requests().len(), count);
        // What is none is a prompt like any other.
        chat.turn("/tiny:nothing here").await;
        assert_eq!(world.model().requests().last().unwrap().texts().last().unwrap(), "/tiny:nothing here");
    }
}

#[tokio::test]
async fn prompts_that_come_later_are_offered_too() {
    let world = scripted().await;
    let mut chat = open(&world, Person::new(), vec![mcp_server("tiny", &[])]).await;
    commands_of_servers(&chat).await;
    // Not with the answer: the client is told some time after it, in the turn or later.
    chat.turn("call tiny__change {}").await;
    let is_told = |chat: &Chat| chat.updates.iter().any(|update| format!("{update:?}").contains("tiny:new"));
    if !is_told(&chat) {
        while !commands_of_servers(&chat).await.contains(&("tiny:new".into(), None)) {}
    }
}

#[tokio::test]
async fn resources_are_mentioned_and_bounded() {
    let world = scripted().await;
    let mut chat = open(&world, Person { news: true, ..Person::new() }, vec![mcp_server("tiny", &[])]).await;
    let seen = chat.turn("say fine (@tiny:note:/one). Not me@tiny:note:/two, nor @other:note:/one").await;
    assert!(seen.contains("text fine"), "{seen}");
    let texts = world.model().requests().last().unwrap().texts();
    let wanted = "say fine (@tiny:note:/one). Not me@tiny:note:/two, nor @other:note:/one\n\nFrom the MCP server `tiny`, as \
                  the person mentions `note:/one`:\n\nResource note:/one:\nmilk and honey";
    assert_eq!(texts.last().unwrap(), wanted);

    chat.turn("say fine\n@tiny:note:/long @tiny:note:/long").await;
    let texts = world.model().requests().last().unwrap().texts();
    let long = texts.last().unwrap();
    assert!(long.len() < 40 << 10 && long.contains("the whole text is in"), "{}", long.len());

    let seen = chat.turn("say fine\n@tiny:note:/none").await;
    assert!(seen.contains("it refuses: no such resource (-32002)") && seen.contains("text fine"), "{seen}");
    let texts = world.model().requests().last().unwrap().texts();
    let wanted = "The resource `note:/none` that the person mentions could not be read.";
    assert!(texts.last().unwrap().ends_with(wanted), "{texts:?}");
}

#[tokio::test]
async fn servers_are_listed_and_restarted_on_demand() {
    let world = scripted().await;
    let servers = vec![mcp_server("tiny", &[]), mcp_server("broken", &["--die"])];
    let mut chat = open(&world, Person::new(), servers).await;
    let seen = chat.turn("/mcp").await;
    for part in [
        "- `tiny`: connected",
        "`tiny__echo`, `tiny__endless`",
        "Prompts: `/tiny:greet <who> [how]`, `/tiny:odd_name_`",
        "Resources: `@tiny:note:/one`, `@tiny:note:/long`\n",
        "- `broken`: the MCP server `broken` cannot be used: it ended with exit code 2",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    chat.turn("call tiny__child {}").await;
    let child: u32 = world.results().last().unwrap().trim().parse().unwrap();
    let seen = chat.turn("/mcp restart tiny").await;
    assert!(seen.contains("`tiny` is being restarted"), "{seen}");
    until("the old process is left", || !is_alive(child)).await;
    let seen = chat.turn("call tiny__echo {\"text\":\"new life\"}").await;
    assert!(seen.contains("completed") && seen.contains("new life"), "{seen}");
    let seen = chat.turn("/mcp restart nobody").await;
    assert!(seen.contains("there is no MCP server `nobody`"), "{seen}");
    let seen = chat.turn("/mcp dance").await;
    assert!(seen.contains("Say what to do"), "{seen}");
    let seen = world.turn(Person::new(), "/mcp").await;
    assert!(seen.contains("There are no MCP servers"), "{seen}");
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
