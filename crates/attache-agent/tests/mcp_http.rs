//! MCP servers that speak HTTP, new and old: written by hand, on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::model::Secret;
use attache::model::mcp::{HttpHeader, McpServer, McpServerHttp, McpServerSse};
use attache_agent::mcp::{Servers, Setup};
use attache_agent::model::Part;
use attache_agent::tools::{Live, Outcome, Shown};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const KEY: &str = "Bearer sk-confidential";

/// A request as it came.
#[derive(Debug, Clone)]
struct Request {
    line: String,
    head: String,
    body: Value,
}

impl Request {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }

    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered: status, headers and body, and what follows piece by piece until the sender is dropped.
struct Answer {
    head: String,
    body: String,
    rest: Option<mpsc::UnboundedReceiver<String>>,
}

fn answer(status: &str, headers: &str, body: impl ToString) -> Answer {
    Answer {
        head: format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n"),
        body: body.to_string(),
        rest: None,
    }
}

const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n";

/// A site that answers requests with a function and remembers them.
struct Site {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    async fn start(answers: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answers, remembered) = (Arc::new(answers), seen.clone());
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, remembered) = (answers.clone(), remembered.clone());
                connections.spawn(async move { serve(stream, &*answers, &remembered).await });
            }
        });
        Site { address, seen, task }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp?key=sk-in-the-address", self.address)
    }

    fn http(&self) -> McpServer {
        let headers = vec![HttpHeader::new("Authorization", Secret::from(KEY))];
        McpServer::Http(McpServerHttp::new("web", self.url()).headers(headers))
    }

    fn sse(&self) -> McpServer {
        let headers = vec![HttpHeader::new("Authorization", Secret::from(KEY))];
        McpServer::Sse(McpServerSse::new("web", self.url()).headers(headers))
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    answers: &(impl Fn(&Request) -> Answer + Sync),
    seen: &Mutex<Vec<Request>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut head) = (String::new(), String::new());
    stream.read_line(&mut line).await.ok()?;
    while !head.ends_with("\r\n\r\n") && head != "\r\n" {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let request = Request { line, head, body: serde_json::from_slice(&body).unwrap_or_default() };
    let mut answer = answers(&request);
    seen.lock().unwrap().push(request);
    stream.write_all(format!("{}{}", answer.head, answer.body).as_bytes()).await.ok()?;
    while let Some(more) = match &mut answer.rest {
        Some(rest) => rest.recv().await,
        None => None,
    } {
        stream.write_all(more.as_bytes()).await.ok()?;
    }
    stream.shutdown().await.ok()
}

/// What a good server says to a message; `None` to a notification.
fn reply(message: &Value) -> Option<Value> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
        _ => return None,
    };
    Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// The rest of a good server that answers in JSON.
fn good(request: &Request) -> Answer {
    if !request.line.starts_with("POST") {
        return answer("405 No", "", "");
    }
    match reply(&request.body) {
        Some(reply) => answer("200 OK", &format!("{JSON}mcp-session-id: s1\r\n"), reply),
        None => answer("202 Accepted", "", ""),
    }
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

async fn started(server: McpServer) -> Servers {
    let mut setup = Setup::new("/");
    setup.connect_limit = Duration::from_secs(10);
    setup.restarts.clear();
    let servers = Servers::start(vec![server], setup);
    tokio::time::timeout(PATIENCE, servers.ready()).await.unwrap();
    servers
}

async fn call(servers: &Servers, arguments: Value) -> Outcome {
    let prepared = servers.prepare("web__echo", &arguments).unwrap().unwrap();
    let (live, _shown) = Live::channel();
    tokio::time::timeout(PATIENCE, servers.perform(prepared.work, &live)).await.unwrap()
}

fn text(outcome: &Outcome) -> &str {
    match &outcome.parts[..] {
        [Part::Text { text }] => text,
        other => panic!("not one text: {other:?}"),
    }
}

/// Why a server cannot be used. Nothing that it was given may be in it.
async fn failure(server: McpServer) -> String {
    let servers = started(server).await;
    let notices = servers.notices();
    let [notice] = &notices[..] else { panic!("not one notice: {notices:?}") };
    assert!(!notice.text.contains("sk-") && !notice.text.contains("127.0.0.1"), "{}", notice.text);
    assert!(servers.specs().is_empty());
    notice.text.strip_prefix("the MCP server `web` cannot be used: ").unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_answers_in_json_is_used() {
    let site = Site::start(good).await;
    let servers = started(site.http()).await;
    assert_eq!(servers.notices(), []);
    assert_eq!(text(&call(&servers, json!({ "text": "hi" })).await), "hi");
    tokio::time::timeout(PATIENCE, servers.close()).await.unwrap();
    let seen = site.seen();
    assert!(seen.iter().all(|request| request.has(&format!("authorization: {KEY}"))), "{seen:?}");
    assert!(seen.iter().filter(|request| request.method() == "tools/call").all(|call| call.has("mcp-session-id: s1")));
    // The session is ended, not left behind.
    assert!(seen.last().unwrap().line.starts_with("DELETE /mcp"), "{seen:?}");
}

#[tokio::test]
async fn a_server_that_was_started_anew_is_used_in_a_new_session() {
    let unknown = json!({
        "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "Bad Request: No valid session ID provided" },
    });
    for (status, headers, body) in
        [("404 No", "", String::new()), ("400 No", "", String::new()), ("400 No", JSON, unknown.to_string())]
    {
        // Each start has a session of its own.
        let starts = Arc::new(Mutex::new(1));
        let now = starts.clone();
        let site = Site::start(move |request| {
            let session = format!("mcp-session-id: s{}", now.lock().unwrap());
            let is_good = request.method() == "initialize" || request.has(&session);
            match reply(&request.body) {
                _ if !request.line.starts_with("POST") => answer("405 No", "", ""),
                _ if !is_good => answer(status, headers, &body),
                Some(_) if request.body["params"]["arguments"]["text"] == "wrong" => {
                    let error = json!({ "code": -32602, "message": "wrong text" });
                    answer("400 No", JSON, json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error }))
                }
                Some(reply) => answer("200 OK", &format!("{JSON}{session}\r\n"), reply),
                None => answer("202 Accepted", "", ""),
            }
        })
        .await;
        let servers = started(site.http()).await;
        assert_eq!(text(&call(&servers, json!({ "text": "one" })).await), "one", "{status}");
        *starts.lock().unwrap() += 1;
        assert_eq!(text(&call(&servers, json!({ "text": "two" })).await), "two", "{status}");
        // An error that is about a message is no lost session.
        let failed = "the call of the MCP server `web` failed: it refuses: wrong text (-32602)";
        assert_eq!(text(&call(&servers, json!({ "text": "wrong" })).await), failed, "{status}");
        assert_eq!(site.seen().iter().filter(|request| request.method() == "initialize").count(), 2, "{status}");
        assert_eq!(servers.notices(), [], "{status}");
    }
}

#[tokio::test]
async fn a_server_that_answers_with_events_is_used_and_shows_how_far_it_is() {
    let site = Site::start(|request| {
        if request.method() != "tools/call" {
            return match reply(&request.body) {
                Some(reply) => answer("200 OK", EVENTS, event(&reply)),
                None => good(request),
            };
        }
        let token = &request.body["params"]["_meta"]["progressToken"];
        let step = json!({ "progressToken": token, "progress": 1.5, "message": "half" });
        let step = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": step });
        let (sender, rest) = mpsc::unbounded_channel();
        let reply = reply(&request.body).unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let _ = sender.send(event(&reply));
        });
        Answer { rest: Some(rest), ..answer("200 OK", EVENTS, format!(": hello\n\n{}", event(&step))) }
    })
    .await;
    let servers = started(site.http()).await;
    let work = servers.prepare("web__echo", &json!({ "text": "hi" })).unwrap().unwrap().work;
    let (live, mut shown) = Live::channel();
    let outcome = tokio::time::timeout(PATIENCE, servers.perform(work, &live)).await.unwrap();
    assert_eq!(text(&outcome), "hi");
    let Shown::Content(content) = shown.recv().await.unwrap() else { panic!("no content") };
    assert_eq!(serde_json::to_value(content).unwrap()[0]["content"]["text"], "1.5: half");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_told_about_without_secrets() {
    let closed = Site::start(good).await;
    let server = closed.http();
    drop(closed);
    assert!(failure(server).await.starts_with("it cannot be reached: Connection refused"));

    let check = async |answers: fn(&Request) -> Answer, wanted: &str| {
        let site = Site::start(answers).await;
        assert_eq!(failure(site.http()).await, wanted);
    };
    let let_in = "access denied (HTTP status 401)\nhint: check the headers that are configured for it";
    check(|_| answer("401 No", JSON, json!({ "error": "sk-confidential is wrong" })), let_in).await;
    check(|_| answer("401 No", "www-authenticate: Bearer x=\"sk-confidential\"\r\n", ""), let_in).await;
    check(|_| answer("500 Oh", "", "sk-confidential"), "it answers with HTTP status 500").await;
    check(|_| answer("404 No", "content-type: text/html\r\n", "<html>"), "it answers with HTTP status 404").await;
    check(|_| answer("200 OK", "content-type: text/html\r\n", "<html>"), "what it answers is not MCP").await;
    check(|_| answer("200 OK", JSON, "{\"half\":"), "what it answers is not MCP").await;
    let refusal = "it refuses: not you with … (-32000)";
    check(
        |request| {
            let error = json!({ "code": -32000, "message": "not you\u{1b} with sk-confidential" });
            answer("400 No", JSON, json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error }))
        },
        refusal,
    )
    .await;
}

#[tokio::test]
async fn keys_do_not_follow_a_redirect_elsewhere() {
    let other = Site::start(good).await;
    let target = other.url();
    let site = Site::start(move |_| answer("307 There", &format!("location: {target}\r\n"), "")).await;
    assert_eq!(failure(site.http()).await, "it answers with HTTP status 307");
    assert_eq!(failure(site.sse()).await, "it answers with HTTP status 307");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn an_answer_without_an_end_fails_the_call_and_nothing_else() {
    let site = Site::start(|request| {
        let how = request.body["params"]["arguments"]["text"].as_str().unwrap_or_default();
        if request.method() != "tools/call" || how == "fine" {
            return good(request);
        }
        let (sender, rest) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while !sender.is_closed() {
                let _ = sender.send("x".repeat(1 << 20));
                tokio::task::yield_now().await;
            }
        });
        let (headers, body) = if how == "json" { (JSON, "\"") } else { (EVENTS, "data: ") };
        Answer { rest: Some(rest), ..answer("200 OK", headers, body) }
    })
    .await;
    let servers = started(site.http()).await;
    let outcome = call(&servers, json!({ "text": "json" })).await;
    let why = "the call of the MCP server `web` failed: it sent a message of more than 16 MiB";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
    let outcome = call(&servers, json!({ "text": "events" })).await;
    let why = "the call of the MCP server `web` failed: it ended the connection";
    assert_eq!((text(&outcome), outcome.is_error), (why, true));
    assert_eq!(text(&call(&servers, json!({ "text": "fine" })).await), "fine");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_over_http() {
    let site = Site::start(|request| {
        if request.method() != "tools/call" {
            return good(request);
        }
        let (sender, rest) = mpsc::unbounded_channel();
        tokio::spawn(async move { sender.closed().await });
        Answer { rest: Some(rest), ..answer("200 OK", EVENTS, ": wait\n\n") }
    })
    .await;
    let servers = started(site.http()).await;
    {
        let work = servers.prepare("web__echo", &json!({})).unwrap().unwrap().work;
        let (live, _shown) = Live::channel();
        let mut call = std::pin::pin!(servers.perform(work, &live));
        while !site.seen().iter().any(|request| request.method() == "tools/call") {
            let _ = tokio::time::timeout(Duration::from_millis(10), &mut call).await;
        }
    }
    let told = async {
        while !site.seen().iter().any(|request| request.method() == "notifications/cancelled") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
}

/// A server of the old sort, whose endpoint is the given one.
async fn old(endpoint: &'static str) -> Site {
    let stream: Mutex<Option<mpsc::UnboundedSender<String>>> = Mutex::default();
    Site::start(move |request| {
        if request.line.starts_with("GET") {
            let (sender, rest) = mpsc::unbounded_channel();
            *stream.lock().unwrap() = Some(sender);
            let first = format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n");
            return Answer { rest: Some(rest), ..answer("200 OK", EVENTS, first) };
        }
        let mut stream = stream.lock().unwrap();
        if request.body["params"]["arguments"]["text"] == "die" {
            *stream = None;
        } else if request.body["params"]["arguments"]["text"] == "long" {
            for _ in 0..20 {
                stream.as_ref().unwrap().send(format!("data: {}\n", "x".repeat(1 << 20))).unwrap();
            }
        } else if let Some(reply) = reply(&request.body) {
            stream
                .as_ref()
                .unwrap()
                .send(format!("event: other\ndata: {{}}\n\ndata: junk\n\n{}", event(&reply)))
                .unwrap();
        }
        answer("202 Accepted", "", "Accepted")
    })
    .await
}

#[tokio::test]
async fn a_server_of_the_old_sort_is_used() {
    let site = old("/messages?session=1").await;
    let servers = started(site.sse()).await;
    assert_eq!(servers.notices(), []);
    assert_eq!(text(&call(&servers, json!({ "text": "hi" })).await), "hi");
    let seen = site.seen();
    assert!(seen.iter().all(|request| request.has(&format!("authorization: {KEY}"))), "{seen:?}");
    assert!(seen[1].line.starts_with("POST /messages?session=1 "), "{seen:?}");
    tokio::time::timeout(PATIENCE, servers.close()).await.unwrap();
}

#[tokio::test]
async fn a_server_of_the_old_sort_that_goes_away_is_told_about() {
    for (how, why) in [
        ("die", "the MCP server `web` is gone: it ended the connection"),
        ("long", "the MCP server `web` is gone: it sent a message of more than 16 MiB"),
    ] {
        let site = old("messages").await;
        let servers = started(site.sse()).await;
        let outcome = call(&servers, json!({ "text": how })).await;
        assert_eq!((text(&outcome), outcome.is_error), (why, true));
        assert_eq!(servers.notices()[0].text, why);
        assert!(servers.specs().is_empty());
    }
}

#[tokio::test]
async fn a_server_of_the_old_sort_that_goes_away_is_connected_again() {
    let site = old("messages").await;
    let mut setup = Setup::new("/");
    setup.restarts = vec![Duration::from_millis(50)];
    let servers = Servers::start(vec![site.sse()], setup);
    tokio::time::timeout(PATIENCE, servers.ready()).await.unwrap();
    let why = "the MCP server `web` is gone: it ended the connection\nit is being restarted";
    assert_eq!(text(&call(&servers, json!({ "text": "die" })).await), why);
    assert_eq!(text(&call(&servers, json!({ "text": "hi" })).await), "hi");
    let texts: Vec<String> = servers.notices().into_iter().map(|notice| notice.text).collect();
    assert_eq!(texts, [why, "the MCP server `web` is running again"]);
}

#[tokio::test]
async fn a_server_of_the_old_sort_cannot_send_us_elsewhere() {
    for endpoint in ["http://127.0.0.1:1/messages", "//example.com/messages", "https://127.0.0.1/"] {
        let site = old(endpoint).await;
        assert_eq!(failure(site.sse()).await, "it redirects to another origin than the configured one");
    }
    let site = Site::start(|_| answer("200 OK", EVENTS, "data: {}\n\n")).await;
    assert_eq!(failure(site.sse()).await, "it ended the connection");
    let site = Site::start(|_| answer("403 No", "", "")).await;
    assert!(failure(site.sse()).await.starts_with("access denied (HTTP status 403)"));
}

#[tokio::test]
async fn addresses_and_headers_that_make_no_sense_are_told_about() {
    let server = McpServer::Http(McpServerHttp::new("web", "ftp://sk-host/"));
    assert_eq!(failure(server).await, "its address is not an HTTP address");
    let headers = vec![HttpHeader::new("X-Key", Secret::from("sk-\n"))];
    let server = McpServer::Sse(McpServerSse::new("web", "http://localhost:1/").headers(headers));
    assert_eq!(failure(server).await, "the header `X-Key` cannot be sent");
}
