//! Logins to MCP servers, against an authorization server that checks every step, on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/oauth.rs"]
mod oauth;

use std::path::Path;
use std::time::Duration;

use attache::model::Secret;
use attache::model::mcp::{HttpHeader, McpServer, McpServerHttp, McpServerSse};
use attache_agent::mcp::oauth::{Login, LoginError, logout};
use attache_agent::mcp::{Servers, Setup};
use attache_agent::model::Part;
use attache_agent::tools::Live;
use oauth::{Fault, OAuthSite, visit};
use serde_json::json;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn server(site: &OAuthSite) -> McpServer {
    McpServer::Http(McpServerHttp::new("web", site.url()))
}

async fn started(site: &OAuthSite, config_dir: &Path) -> Servers {
    let setup = Setup { config_dir: Some(config_dir.to_owned()), restarts: Vec::new(), ..Setup::new("/") };
    let servers = Servers::start(vec![server(site)], setup);
    tokio::time::timeout(PATIENCE, servers.ready()).await.unwrap();
    servers
}

async fn say(servers: &Servers, text: &str) -> String {
    let work = servers.prepare("web__echo", &json!({ "text": text })).unwrap().unwrap().work;
    let (live, _shown) = Live::channel();
    let outcome = tokio::time::timeout(PATIENCE, servers.perform(work, &live)).await.unwrap();
    match &outcome.parts[..] {
        [Part::Text { text }] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

async fn back(servers: &Servers) {
    let mut changes = servers.changes();
    let back = async {
        while servers.specs().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, back).await.unwrap();
}

/// Logs in with a browser.
async fn log_in(site: &OAuthSite, config_dir: &Path) -> Result<String, LoginError> {
    let login = Login::begin(&server(site), config_dir, None).await?;
    let address = login.address().to_owned();
    let (finished, page) = tokio::join!(login.finish(), visit(&address));
    finished.map(|()| page)
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_used_once_somebody_has_logged_in() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::None).await;
    let servers = started(&site, directory.path()).await;
    let told = servers.notices().remove(0).text;
    let wanted = "the MCP server `web` cannot be used: it wants a login\nhint: `/mcp login web`, or `attache mcp login web` \
                  in a terminal";
    assert_eq!(told, wanted);
    // Nobody was asked anything else before a person wanted it.
    assert_eq!(site.seen(), ["POST /mcp"]);

    let login = servers.begin_login("web").await.unwrap();
    let address = login.address().to_owned();
    let (finished, page) = tokio::join!(login.finish(), visit(&address));
    finished.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("Logged in."), "{page}");
    servers.restart("web").unwrap();
    back(&servers).await;
    assert_eq!(say(&servers, "hi").await, "hi");

    // What is kept is for its owner alone, and good for the next session.
    let file = directory.path().join("mcp-logins.json");
    assert!(attache::private::is_private(&file).unwrap());
    let others = started(&site, directory.path()).await;
    assert_eq!((others.notices(), say(&others, "hello").await), (vec![], "hello".into()));

    // A server that repeats the token is not repeated.
    let leak = say(&servers, "leak").await;
    assert_eq!(leak, "the call of the MCP server `web` failed: it refuses: your token is … (-32000)");
    assert!(logout(&server(&site), directory.path()).await.unwrap());
    assert!(!logout(&server(&site), directory.path()).await.unwrap());
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(site.secrets().iter().all(|secret| !kept.contains(secret)));
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_and_one_that_cannot_be_wants_a_login() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::None).await;
    log_in(&site, directory.path()).await.unwrap();
    let servers = started(&site, directory.path()).await;
    assert_eq!(say(&servers, "one").await, "one");
    site.end_tokens(false);
    assert_eq!(say(&servers, "two").await, "two");
    // Another session has the old one in mind, and finds the new one in the file.
    let others = started(&site, directory.path()).await;
    site.end_tokens(false);
    assert_eq!((say(&servers, "three").await, say(&others, "four").await), ("three".into(), "four".into()));
    site.end_tokens(true);
    assert_eq!(say(&servers, "five").await, "the call of the MCP server `web` failed: it wants a login");
}

#[tokio::test]
async fn a_token_that_is_about_to_end_is_renewed_before_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::ShortLived).await;
    log_in(&site, directory.path()).await.unwrap();
    let servers = started(&site, directory.path()).await;
    assert_eq!(say(&servers, "hi").await, "hi");
    let renewed = site.seen().iter().filter(|line| *line == "POST /auth/token").count();
    assert!(renewed > 2, "{renewed}");
}

#[tokio::test]
async fn sessions_that_share_a_login_do_not_end_it_by_renewing_it_twice() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::EndsOnReuse).await;
    log_in(&site, directory.path()).await.unwrap();
    let one = started(&site, directory.path()).await;
    let other = started(&site, directory.path()).await;
    for text in ["a", "b"] {
        assert_eq!((say(&one, text).await, say(&other, text).await), (text.into(), text.into()));
    }
}

#[tokio::test]
async fn servers_of_the_first_version_are_logged_in_to() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::Old).await;
    log_in(&site, directory.path()).await.unwrap();
    assert_eq!(say(&started(&site, directory.path()).await, "hi").await, "hi");
}

#[tokio::test]
async fn what_is_not_as_it_should_be_is_no_login() {
    for (fault, wanted) in [
        (Fault::NoMetadata, "it does not say how to log in"),
        (Fault::OtherResource, "its description of itself belongs to another server"),
        (Fault::OtherIssuer, "its authorization server belongs to another server"),
        (Fault::NoPkce, "its authorization server does not support PKCE with S256"),
        (Fault::Insecure, "its token endpoint is not an https address"),
        (Fault::Denied, "its authorization server refuses: access_denied"),
        (Fault::Endless, "its answer about the login is too long"),
        (Fault::TokenElsewhere, "its authorization server refuses: HTTP status 307"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let site = OAuthSite::start(fault).await;
        let error = tokio::time::timeout(PATIENCE, log_in(&site, directory.path())).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), wanted, "{fault:?}");
        assert!(!site.seen().contains(&"POST /elsewhere".into()), "{fault:?}");
        assert!(!directory.path().join("mcp-logins.json").exists(), "{fault:?}");
    }
    let site = OAuthSite::start(Fault::NoRegistration).await;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(log_in(&site, directory.path()).await.unwrap_err(), LoginError::NoRegistration);
    // A client that was registered by hand will do.
    let login = Login::begin(&server(&site), directory.path(), Some("mine")).await.unwrap();
    let address = login.address().to_owned();
    assert!(address.contains("client_id=mine"), "{address}");
    let (finished, _) = tokio::join!(login.finish(), visit(&address));
    finished.unwrap();
}

#[tokio::test]
async fn nobody_else_describes_a_server() {
    // The description on another host is passed over for the one in its known place.
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::MetadataElsewhere).await;
    log_in(&site, directory.path()).await.unwrap();
    assert!(site.seen().contains(&"GET /.well-known/oauth-protected-resource/mcp".into()));
}

#[tokio::test]
async fn a_token_does_not_follow_a_redirect() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::Redirects).await;
    log_in(&site, directory.path()).await.unwrap();
    let servers = started(&site, directory.path()).await;
    assert_eq!(servers.notices()[0].text, "the MCP server `web` cannot be used: it answers with HTTP status 307");
    assert!(!site.seen().iter().any(|line| line.contains("elsewhere")), "{:?}", site.seen());
}

#[tokio::test]
async fn who_does_not_know_the_state_does_not_end_a_login() {
    let directory = tempfile::tempdir().unwrap();
    let site = OAuthSite::start(Fault::None).await;
    let login = Login::begin(&server(&site), directory.path(), None).await.unwrap();
    let address = login.address().to_owned();
    let query = address.split_once("redirect_uri=").unwrap().1.split('&').next().unwrap();
    let back = query.replace("%3A", ":").replace("%2F", "/");
    let visiting = async {
        for path in ["?code=evil&state=guessed", "?code=evil", "/other"] {
            assert!(visit(&format!("{back}{path}")).await.starts_with("HTTP/1.1 404"));
        }
        visit(&address).await
    };
    let (finished, page) = tokio::join!(login.finish(), visiting);
    finished.unwrap();
    assert!(page.contains("Logged in."), "{page}");
}

#[tokio::test]
async fn servers_that_one_does_not_log_in_to_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let begin = async |server: &McpServer| Login::begin(server, directory.path(), None).await.err().unwrap();
    let headers = vec![HttpHeader::new("authorization", Secret::from("Bearer mine"))];
    let with_key = McpServer::Http(McpServerHttp::new("web", "https://example.com/").headers(headers));
    assert_eq!(begin(&with_key).await, LoginError::HasHeader);
    let old = McpServer::Sse(McpServerSse::new("web", "https://example.com/"));
    assert_eq!(begin(&old).await, LoginError::NotHttp);
    let open = McpServer::Http(McpServerHttp::new("web", "http://example.com/"));
    assert_eq!(begin(&open).await, LoginError::Insecure("address"));
}
