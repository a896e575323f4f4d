//! What neither end of a bridge can do to the other, or to the bridge.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_proto::Dialect;
use attache_proto::bridge::Bridge;

/// A bridge and what it has said to both sides.
struct Played {
    bridge: Bridge,
    to_agent: Vec<u8>,
    to_client: Vec<u8>,
}

impl Played {
    fn new(agent: Dialect) -> Self {
        Played { bridge: Bridge::new(agent), to_agent: Vec::new(), to_client: Vec::new() }
    }

    /// A bridge between a client of version 1 and an agent of version 2, with an open session `s`.
    fn with_session() -> Self {
        let mut played = Played::new(Dialect::V2);
        played.play("
            client {'id':'i','method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'subagents':{}}}}
            agent {'id':0,'result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{'close':{}}}}}
            client {'id':'o','method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
            agent {'id':1,'result':{'sessionId':'s'}}
        ");
        played
    }

    fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (side, message) = line.split_once(' ').unwrap();
            let message = message.replace('\'', "\"").replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
            match side {
                "client" => self.bridge.handle_client(&message, &mut self.to_agent, &mut self.to_client),
                _ => self.bridge.handle_agent(&message, &mut self.to_agent, &mut self.to_client),
            }
        }
    }

    /// Plays an update of session `s`, and returns how long it was.
    fn update(&mut self, update: &str) -> usize {
        self.play(&format!("agent {{'method':'session/update','params':{{'sessionId':'s','update':{update}}}}}"));
        update.len()
    }

    fn said_to_client(&self) -> &str {
        std::str::from_utf8(&self.to_client).unwrap()
    }
}

/// A prompt is answered, also one of a subagent whose parent is closed.
#[test]
fn the_prompt_of_a_subagent_is_answered_when_its_parent_is_closed() {
    let mut played = Played::with_session();
    played.update("{'sessionUpdate':'subagent_update','sessionId':'child'}");
    played.play("
        client {'id':'p','method':'session/prompt','params':{'sessionId':'child','prompt':[{'type':'text','text':'hi'}]}}
        agent {'id':2,'result':{'messageId':'m'}}
        client {'id':'x','method':'session/close','params':{'sessionId':'s'}}
        agent {'id':3,'result':{}}
    ");
    let said = played.said_to_client();
    assert!(said.contains(r#""id":"p","result":{"stopReason":"cancelled""#), "{said}");
    assert!(said.contains(r#""id":"x","result""#), "{said}");
}

/// A bridge keeps an `initialize` until it is answered: one, not as many as a client sends.
#[test]
fn a_second_initialize_is_refused_while_one_is_open() {
    let mut played = Played::new(Dialect::V1);
    played.play(
        "
        client {'id':7,'method':'initialize','params':{'protocolVersion':1}}
        client {'id':8,'method':'initialize','params':{'protocolVersion':1}}
    ",
    );
    let said = played.said_to_client();
    assert!(said.contains(r#""id":8,"error":{"code":-32600"#) && !said.contains(r#""id":7"#), "{said}");
    played.play(
        "
        agent {'id':0,'result':{'protocolVersion':1}}
        client {'id':9,'method':'initialize','params':{'protocolVersion':1}}
        agent {'id':1,'result':{'protocolVersion':1}}
    ",
    );
    let said = played.said_to_client();
    assert!(said.contains(r#""id":7,"result""#) && said.contains(r#""id":9,"result""#), "{said}");
}

/// The output of a terminal is sent once, however often a tool call shows the terminal.
#[test]
fn a_terminal_that_is_shown_often_is_sent_once() {
    let mut played = Played::with_session();
    played.to_client.clear();
    let output = "YWFh".repeat(20_000);
    let shown = vec!["{'type':'terminal','terminalId':'t'}"; 1000].join(",");
    let came = played
        .update(&format!("{{'sessionUpdate':'terminal_output_chunk','terminalId':'t','data':'{output}'}}"))
        + played.update(&format!(
            "{{'sessionUpdate':'tool_call_update','toolCallId':'c','title':'T','content':[{shown}]}}"
        ));
    assert!(played.to_client.len() < 2 * came, "{came} bytes became {}", played.to_client.len());
}

/// A terminal that ends again and again does not bring its output along each time.
#[test]
fn a_terminal_that_ends_often_is_not_sent_each_time() {
    let mut played = Played::with_session();
    let output = "YWFh".repeat(20_000);
    let mut came =
        played.update(&format!("{{'sessionUpdate':'terminal_output_chunk','terminalId':'t','data':'{output}'}}"));
    came += played.update(
        "{'sessionUpdate':'tool_call_update','toolCallId':'c','title':'T','content':[{'type':'terminal','terminalId':'t'}]}",
    );
    for _ in 0..100 {
        for exit in ["null", "{'exitCode':0}"] {
            came +=
                played.update(&format!("{{'sessionUpdate':'terminal_update','terminalId':'t','exitStatus':{exit}}}"));
        }
    }
    let sent = played.to_client.len();
    assert!(sent < 5 * came, "{came} bytes became {sent}");
    played.update("{'sessionUpdate':'tool_call_update','toolCallId':'c','status':'completed'}");
    assert!(played.to_client.len() > sent + 60_000, "the end of the call brings all of it");
}

/// What is too long to be kept of a session is passed on, and not kept.
#[test]
fn a_title_or_a_directory_that_is_too_long_is_not_kept() {
    let mut played = Played::new(Dialect::V1);
    let long = "x".repeat(1 << 20);
    played.play(&format!(
        "
        client {{'id':'i','method':'initialize','params':{{'protocolVersion':2,'info':{{'name':'c','version':'1'}}}}}}
        agent {{'id':0,'result':{{'protocolVersion':1}}}}
        client {{'id':'s','method':'session/new','params':{{'cwd':'/p'}}}}
        agent {{'id':1,'result':{{'sessionId':'s'}}}}
        client {{'id':'t','method':'session/new','params':{{'cwd':'/{long}'}}}}
        agent {{'id':2,'result':{{'sessionId':'t'}}}}
        "
    ));
    played.update(&format!("{{'sessionUpdate':'session_info_update','title':'{long}'}}"));
    assert!(played.said_to_client().contains(&long), "the title is passed on");
    played.to_client.clear();
    played.play("client {'id':'l','method':'session/list','params':{}}");
    let said = played.said_to_client();
    assert!(said.contains(r#""sessions":[{"sessionId":"s","cwd":"/p"}]"#), "{} bytes", said.len());
}
