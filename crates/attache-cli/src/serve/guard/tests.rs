//! What comes through the guard, seen from both ends of a relay.

use attache::relay::Relay;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};

use super::*;

/// The last word of either side: all that was said before it has been judged.
const CLIENT_END: &str = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"end"}}"#;
const AGENT_END: &str = r#"{"jsonrpc":"2.0","method":"end"}"#;

struct Place {
    directory: tempfile::TempDir,
    owners: Arc<Owners>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("served/sub")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("served/sub", directory.path().join("link")).unwrap();
        #[cfg(windows)]
        std::os::windows::fs::symlink_dir(r"served\sub", directory.path().join("link")).unwrap();
        let owners = Owners::open_in(&directory.path().join("state"), "x").unwrap();
        owners.add("hers", "anna").unwrap();
        owners.add("his", "bert").unwrap();
        Place { directory, owners: Arc::new(owners) }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    /// What the agent gets of what bert says, and what bert gets of what the agent says after that.
    async fn relayed(&self, from_client: &[String], from_agent: &[&str]) -> (Vec<Value>, Vec<Value>) {
        let (client, near) = duplex(1 << 20);
        let (agent, far) = duplex(1 << 20);
        let ((near_reader, near_writer), (far_reader, far_writer)) = (split(near), split(far));
        let directories = vec![self.path("served").into()];
        let mut guard =
            Guard::new(&Principal::new("bert"), directories, McpRules::default(), Some(self.owners.clone()), false);
        let relay = Relay::new(near_reader, near_writer, far_reader, far_writer)
            .on_message(move |direction, message| guard.judge(direction, message));
        let relay = tokio::spawn(relay.run());
        let ((client_reader, mut client_writer), (agent_reader, mut agent_writer)) = (split(client), split(agent));
        for line in from_client.iter().map(String::as_str).chain([CLIENT_END]) {
            client_writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        let to_agent = until(CLIENT_END, agent_reader).await;
        for line in from_agent.iter().chain(&[AGENT_END]) {
            agent_writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        let to_client = until(AGENT_END, client_reader).await;
        drop((client_writer, agent_writer));
        relay.await.unwrap().unwrap();
        (to_agent, to_client)
    }
}

/// The lines up to the last one.
async fn until(end: &str, reader: impl tokio::io::AsyncRead + Unpin) -> Vec<Value> {
    let end: Value = serde_json::from_str(end).unwrap();
    let (mut lines, mut found) = (BufReader::new(reader).lines(), Vec::new());
    loop {
        let line = lines.next_line().await.unwrap().expect("the other side is there");
        match serde_json::from_str(&line) {
            Ok(value) if value == end => return found,
            Ok(value) => found.push(value),
            // An agent may be able to read it.
            Err(_) => found.push(Value::String(line)),
        }
    }
}

fn call(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test]
async fn what_is_no_valid_message_goes_no_further_and_is_answered() {
    let place = Place::new();
    let load = r#""params":{"sessionId":"hers","cwd":"/","mcpServers":[]}"#;
    let said = [
        format!(r#"{{"id":1,"method":"session/load",{load}}}"#),
        format!(r#"{{"jsonrpc":"1.0","id":2,"method":"session/load",{load}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"auth/status","method":"session/load",{load}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":4.5,"method":"session/load",{load}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"session/load",{load},"result":0}}"#),
        r#"{"jsonrpc":"2.0","id":6,"method":"session/list","params":{"a":NaN}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"a":"\ud800"}}"#.to_owned(),
        format!(r#"[{{"jsonrpc":"2.0","id":8,"method":"session/load",{load}}}]"#),
        format!(r#"x {{"jsonrpc":"2.0","id":9,"method":"session/load",{load}}}"#),
        // Responses are never answered.
        r#"{"id":10,"result":{}}"#.to_owned(),
    ];
    let (to_agent, to_client) = place.relayed(&said, &[]).await;
    assert_eq!(to_agent, [Value::Null; 0]);
    assert_eq!(to_client.len(), said.len() - 1, "{to_client:?}");
    assert!(to_client.iter().all(|answer| answer["error"].is_object()), "{to_client:?}");
    assert!(to_client.iter().any(|answer| answer["id"] == 3), "{to_client:?}");
}

#[tokio::test]
async fn what_is_passed_on_says_what_was_judged_and_no_more() {
    let place = Place::new();
    let (link, sub) = (place.path("link"), place.path("served/sub"));
    let said = [
        call(1, "session/new", json!({ "cwd": link, "additionalDirectories": [link], "mcpServers": [] })),
        format!(
            r#"{{"jsonrpc":"2.0","params":{{"cwd":"/","cwd":"{sub}"}},"id":2,"method":"session/list","extra":{{"method":"x"}}}}"#
        ),
        r#"  {"jsonrpc":"2.0","id":"q","result":{"a":1},"method2":"session/load"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no","odd":2}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":3,"method":"auth/status"}"#.to_owned(),
    ];
    let (to_agent, to_client) = place.relayed(&said, &[]).await;
    let params = json!({ "cwd": sub, "additionalDirectories": [sub], "mcpServers": [] });
    assert_eq!(
        to_agent,
        [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": { "cwd": sub } }),
            json!({ "jsonrpc": "2.0", "id": "q", "result": { "a": 1 } }),
            json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": 1, "message": "no" } }),
            json!({ "jsonrpc": "2.0", "id": 3, "method": "auth/status" }),
        ]
    );
    assert_eq!(to_client, [Value::Null; 0]);
}

#[tokio::test]
async fn an_answer_is_looked_through_as_what_was_asked_or_goes_no_further() {
    let place = Place::new();
    let all = r#"{"sessions":[{"sessionId":"hers"},{"sessionId":"his"},{}],"_meta":{"x":"hers"}}"#;
    // The second takes nothing off the first.
    let said = [
        call(7, "session/list", json!({})),
        call(7, "auth/status", json!({})),
        call(8, "auth/status", json!({})),
        call(8, "session/list", json!({})),
    ];
    let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{all}}}"#);
    let lenient = [
        format!(r#"{{"id":7,"result":{all}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"id":7,"result":{all}}}"#),
        format!("[{}]", answer("7")),
        format!("noise {}", answer("7")),
        answer("99"),
        answer("7"),
        answer("7"),
        r#"{"jsonrpc":"2.0","id":8,"result":{"a":1}}"#.to_owned(),
    ];
    let (to_agent, to_client) = place.relayed(&said, &lenient.each_ref().map(String::as_str)).await;
    assert_eq!(to_agent.len(), 2, "{to_agent:?}");
    assert!(to_client[..2].iter().all(|answer| answer["error"].is_object()), "{to_client:?}");
    assert_eq!(
        to_client[2..],
        [
            json!({ "jsonrpc": "2.0", "id": 7, "result": { "sessions": [{ "sessionId": "his" }] } }),
            json!({ "jsonrpc": "2.0", "id": 8, "result": { "a": 1 } }),
        ]
    );
}
