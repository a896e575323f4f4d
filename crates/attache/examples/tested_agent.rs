//! An agent that is tested with the testkit: as a client of any version sees it, message by message.
//!
//!     cargo test --example tested_agent

use attache::agent::HandlerError;
use attache::{Error, Prompt, Stop, Turn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    attache::serve(attache::agent_fn("shout", "1.0", shout)).stdio().await
}

async fn shout(turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
    if prompt.text().is_empty() {
        return Ok(Stop::Refusal);
    }
    turn.text(prompt.text().to_uppercase()).await?;
    Ok(Stop::EndTurn)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use attache::{Client, Protocol};
    use attache_testkit::RawPeer;

    use super::*;

    /// Through a client of ours, in every version: what the person gets.
    #[tokio::test]
    async fn it_shouts_in_every_version() {
        for protocol in [Protocol::V1, Protocol::V2Draft, Protocol::V2] {
            let (near, far) = attache::pair();
            tokio::spawn(attache::serve(attache::agent_fn("shout", "1.0", shout)).over(far));
            let agent = Client::new("test", "1.0").protocol(protocol).over(near).await.unwrap();
            let session = agent.session("/project").open().await.unwrap();
            assert_eq!(session.prompt("hello").await.unwrap().text().await.unwrap(), "HELLO");
        }
    }

    /// Message by message, in version 1: what goes over the wire. `$s` is the same in every line.
    #[tokio::test]
    async fn it_refuses_to_shout_nothing() {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(attache::serve(attache::agent_fn("shout", "1.0", shout)).connect(reader, writer));
        let script = "
            --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
            <-- {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'shout'}}}
            --> {'id':1,'method':'session/new','params':{'cwd':'/project','mcpServers':[]}}
            <-- {'id':1,'result':{'sessionId':'$s'}}
            --> {'id':2,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':''}]}}
            <-- {'id':2,'result':{'stopReason':'refusal'}}";
        RawPeer::new(near).play(script).await;
    }
}
