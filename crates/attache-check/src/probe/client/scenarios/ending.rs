//! How turns end, and how agents leave.

use serde_json::json;

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::scenario::Stop;

pub(in crate::probe::client) async fn max_tokens(_agent: &mut AgentDriver) -> Stop {
    "max_tokens"
}

pub(in crate::probe::client) async fn max_requests(_agent: &mut AgentDriver) -> Stop {
    "max_turn_requests"
}

pub(in crate::probe::client) async fn refusal(_agent: &mut AgentDriver) -> Stop {
    "refusal"
}

pub(in crate::probe::client) async fn unknown(_agent: &mut AgentDriver) -> Stop {
    "_attache_bored"
}

pub(in crate::probe::client) async fn error(_agent: &mut AgentDriver) -> Stop {
    "error"
}

pub(in crate::probe::client) async fn leave(agent: &mut AgentDriver) -> Stop {
    agent.tool("A call that nobody ends", json!({"status": "in_progress"})).await;
    agent.close().await;
    DONE
}

pub(in crate::probe::client) async fn leave_asking(agent: &mut AgentDriver) -> Stop {
    let call = agent.tool("A call that nobody ends", json!({"status": "pending"})).await;
    agent.ask_permission(&call, "A call that nobody ends", &[("no", "reject_once")]).await;
    agent.close().await;
    DONE
}

pub(in crate::probe::client) async fn leave_in_line(agent: &mut AgentDriver) -> Stop {
    agent.send_bytes(br#"{"jsonrpc":"2.0","method":"session/upd"#).await;
    agent.close().await;
    DONE
}
