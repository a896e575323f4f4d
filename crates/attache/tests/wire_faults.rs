//! What a peer can get wrong below the protocol, and what the other end makes of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache::{Error, Limits, Prompt, Stop, Turn};
use attache_testkit::RawPeer;

/// An agent that asks its client something in every turn, and says how that went.
fn serve(limits: Limits) -> RawPeer {
    let agent = attache::agent_fn("curious", "1", async |turn: Turn, _: Prompt| {
        let answer: Result<String, Error> = turn.call_extension("_test/ask", &["?"]).await;
        let told = match answer {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        turn.text(told).await?;
        Ok(Stop::EndTurn)
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).limits(limits).connect(reader, writer));
    RawPeer::new(near)
}

const OPEN: &str = "
    --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
    <-- {'id':0,'result':{'protocolVersion':1}}
    --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
    <-- {'id':1,'result':{'sessionId':'$session'}}
";

#[tokio::test]
async fn what_is_printed_before_the_first_message_does_not_hide_it() {
    let printed = [
        "Content-addressed store ready\n",
        "Content-Length: 99999999999999\n\n",
        "Content-Length: 5000\r\n\r\n",
        "[info] listening\n",
    ];
    for text in printed {
        let mut client = serve(Limits::default());
        client.send_bytes(text.as_bytes()).await;
        client.send("{'id':0,'method':'initialize','params':{'protocolVersion':1}}").await;
        client.expect("{'id':null,'error':{'code':-32700}}").await;
        client.expect("{'id':0,'result':{'protocolVersion':1}}").await;
    }
}

#[tokio::test]
async fn law_4_an_answer_that_is_too_long_fails_the_call_before_it_ends() {
    let mut client = serve(Limits::default().message(5000));
    client.play(OPEN).await;
    client
        .play(
            "--> {'id':2,'method':'session/prompt','params':{'sessionId':'$session','prompt':[]}}
             <-- {'id':'$ask','method':'_test/ask'}",
        )
        .await;
    let start = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"{}"#, client.name("ask"), "x".repeat(5000));
    client.send_bytes(start.as_bytes()).await;
    client
        .play(
            "<-- {'method':'session/update','params':{'update':{'content':{'text':'the answer could not be read: message is longer than the limit'}}}}
             <-- {'id':2,'result':{'stopReason':'end_turn'}}",
        )
        .await;
    // The rest of it is dropped, and the conversation goes on.
    client.send_bytes(b"xxx\"}\n").await;
    client.play("--> {'id':3,'method':'_no/such','params':{}}\n<-- {'id':3,'error':{'code':-32601}}").await;
}

#[tokio::test]
async fn law_7_a_request_that_is_too_long_or_has_bad_params_is_refused_under_its_id() {
    let mut client = serve(Limits::default().message(5000));
    client.play(OPEN).await;
    let start =
        format!(r#"{{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{{"x":"{}"#, "x".repeat(5000));
    client.send_bytes(start.as_bytes()).await;
    client.expect("{'id':'long','error':{'code':-32600}}").await;
    client.send_bytes(b"\"}}\n").await;
    client.send("{'id':7,'method':'session/prompt','params':'x'}").await;
    client.expect("{'id':7,'error':{'code':-32600}}").await;
}
