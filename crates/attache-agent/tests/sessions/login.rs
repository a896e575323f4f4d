//! Logging in to MCP servers in a session: by an address that is shown, or that the client opens.

use attache::model::elicitation::{CreateElicitationResponse, ElicitationMode};
use attache::model::mcp::{McpServer, McpServerHttp};
use attache::model::update::SessionUpdate;
use attache::{Client, Event};

use crate::help::scripted;
use crate::oauth::{Fault, OAuthSite, visit};
use crate::support::{Chat, DIALECTS, LONGEST, Person, World};

async fn open(world: &World, client: Client, site: &OAuthSite) -> Chat {
    let mut chat = world.connect(Person::new()).await;
    let agent = attache_agent::CodingAgent::new(world.config.clone()).await.unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(agent.server().connect(reader, writer));
    let (reader, writer) = tokio::io::split(ours);
    chat.connection = client.connect(reader, writer).await.unwrap();
    let server = McpServer::Http(McpServerHttp::new("web", site.url()));
    chat.session = Some(chat.connection.session(world.project()).mcp_server(server).open().await.unwrap());
    chat
}

/// A turn in which the person goes where they are sent, if they want to.
async fn log_in(chat: &Chat, is_willing: bool) -> String {
    let session = chat.session().clone();
    let mut turn = session.prompt("/mcp login web").await.unwrap();
    let (mut said, mut is_gone) = (String::new(), false);
    let work = async {
        while let Some(event) = turn.next().await.unwrap() {
            match event {
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                    said.push_str(chunk.content.as_text().unwrap_or_default());
                    let address = said.split_whitespace().find(|word| word.starts_with("http://127.0.0.1"));
                    if let (Some(address), false, false) = (address, is_gone, chat.person.forms.is_some()) {
                        is_gone = true;
                        tokio::spawn(visit_owned(address.to_owned()));
                    }
                }
                Event::Elicitation(call) => {
                    let ElicitationMode::Url(url) = &call.mode else { panic!("{call:?}") };
                    let address = url.url.clone();
                    assert!(call.message.contains("`web`") && said.contains(&address));
                    if is_willing {
                        call.reply(Ok(CreateElicitationResponse::accept(Vec::new()))).await.unwrap();
                        tokio::spawn(visit_owned(address));
                    } else {
                        call.reply(Ok(CreateElicitationResponse::decline())).await.unwrap();
                    }
                }
                Event::Update(_) => {}
                other => other.decline().await.unwrap(),
            }
        }
    };
    tokio::time::timeout(LONGEST, work).await.expect("the turn ends in time");
    said
}

async fn visit_owned(address: String) {
    visit(&address).await;
}

#[tokio::test]
async fn a_person_logs_in_by_the_address_that_is_shown() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let site = OAuthSite::start(Fault::None).await;
        let client = Client::new("editor", "1").protocol(protocol);
        let mut chat = open(&world, client, &site).await;
        let seen = chat.turn("say hello").await;
        assert!(seen.contains("it wants a login") && seen.contains("text hello"), "{protocol:?}: {seen}");
        let said = log_in(&chat, true).await;
        assert!(said.contains("You are logged in to `web`"), "{protocol:?}: {said}");
        let seen = loop {
            let seen = chat.turn("call web__echo {\"text\":\"let in\"}").await;
            // It is connected a moment later.
            if !seen.contains("not connected yet") {
                break seen;
            }
        };
        assert!(seen.contains("completed") && seen.contains("let in"), "{protocol:?}: {seen}");
        let seen = chat.turn("/mcp logout web").await;
        assert!(seen.contains("You are logged out of `web`"), "{seen}");
        // No token is in anything that was written down.
        let written = all_text(&world.config.state_dir) + &said + &seen;
        assert!(site.secrets().iter().all(|secret| !written.contains(secret)));
    }
}

fn all_text(path: &std::path::Path) -> String {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().map(|entry| all_text(&entry.unwrap().path())).collect();
    }
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

#[tokio::test]
async fn a_client_that_can_opens_the_address_if_the_person_wants_to() {
    let world = scripted().await;
    let site = OAuthSite::start(Fault::None).await;
    let mut chat = open(&world, Client::new("editor", "1").urls(), &site).await;
    chat.person.forms = Some(None);
    let said = log_in(&chat, false).await;
    assert!(said.contains("You are not logged in."), "{said}");
    assert!(!world.config.config_dir.join("mcp-logins.json").exists());
    let said = log_in(&chat, true).await;
    assert!(said.contains("You are logged in to `web`"), "{said}");
}

#[tokio::test]
async fn a_login_that_is_cancelled_leaves_nothing() {
    let world = scripted().await;
    let site = OAuthSite::start(Fault::None).await;
    let mut chat = open(&world, Client::new("editor", "1"), &site).await;
    let view = crate::help::cancelled(&mut chat, "/mcp login web", crate::help::is_text).await;
    let said = crate::help::said(&view);
    let address = said.split_whitespace().find(|word| word.starts_with("http://127.0.0.1")).unwrap();
    let back = address.split_once("redirect_uri=http%3A%2F%2F").unwrap().1.split_once("%2F").unwrap().0;
    let back = back.replace("%3A", ":");
    // Nobody waits there any more.
    crate::help::until("the port is still open", || std::net::TcpStream::connect(&back).is_err()).await;
    assert!(!world.config.config_dir.join("mcp-logins.json").exists());
}
