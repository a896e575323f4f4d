//! An MCP server that speaks HTTP on loopback, new and old: one tool, `echo`.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A server, until it is dropped.
pub(crate) struct Site {
    port: u16,
    task: tokio::task::JoinHandle<()>,
}

/// Where answers go for clients of the old kind: into the stream that they opened first.
type Events = Arc<Mutex<Option<UnboundedSender<String>>>>;

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let events = Events::default();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, events.clone()));
            }
        });
        Site { port, task }
    }

    /// Where it speaks the new way (`mcp`) or the old (`sse`).
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

async fn serve(stream: TcpStream, events: Events) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut head) = (String::new(), String::new());
    stream.read_line(&mut line).await.ok()?;
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match (line.split(' ').next()?, line.contains("/sse"), line.contains("/post"), reply(&message)) {
        ("GET", true, ..) => {
            let (sender, rest) = unbounded_channel();
            *events.lock().unwrap() = Some(sender);
            return stay(stream, rest).await;
        }
        ("POST", _, true, reply) => {
            if let (Some(reply), Some(sender)) = (reply, &*events.lock().unwrap()) {
                let _ = sender.send(format!("event: message\ndata: {reply}\n\n"));
            }
            "HTTP/1.1 202 Accepted\r\nconnection: close\r\n\r\n".to_owned()
        }
        ("POST", false, false, Some(reply)) => {
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{reply}")
        }
        ("POST", false, false, None) => "HTTP/1.1 202 Accepted\r\nconnection: close\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 405 No\r\nconnection: close\r\n\r\n".to_owned(),
    };
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

/// A stream of events, which begins with where messages are to be posted.
async fn stay(mut stream: BufReader<TcpStream>, mut rest: UnboundedReceiver<String>) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}event: endpoint\ndata: /post\n\n").as_bytes()).await.ok()?;
    while let Some(event) = rest.recv().await {
        stream.write_all(event.as_bytes()).await.ok()?;
    }
    None
}

/// What is said to a message; `None` to a notification.
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
