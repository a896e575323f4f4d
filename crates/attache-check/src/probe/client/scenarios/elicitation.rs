//! Questions for the person: forms and pages.

use serde_json::json;

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::scenario::Stop;

pub(in crate::probe::client) async fn form(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("elicitation.form") {
        return DONE;
    }
    let colours = json!([{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}]);
    let schema = json!({"type": "object", "title": "A form", "required": ["name", "colour"], "properties": {
        "name": {"type": "string", "title": "Name", "description": "Any name", "minLength": 1, "maxLength": 20},
        "mail": {"type": "string", "title": "Mail", "format": "email"},
        "colour": {"type": "string", "title": "Colour", "oneOf": colours, "default": "red"},
        "size": {"type": "string", "title": "Size", "enum": ["small", "large"]},
        "count": {"type": "integer", "title": "Count", "minimum": 1, "maximum": 9, "default": 3},
        "share": {"type": "number", "title": "Share", "minimum": 0, "maximum": 1},
        "sure": {"type": "boolean", "title": "Sure", "default": false},
        "days": {"type": "array", "title": "Days", "items": {"type": "string", "enum": ["Mo", "Tu"]}, "maxItems": 2},
    }});
    let params =
        json!({"sessionId": agent.session(), "mode": "form", "message": "A few questions.", "requestedSchema": schema});
    agent.state("requires_action").await;
    agent.ask("elicitation/create", params).await;
    let empty = json!({"type": "object", "properties": {}});
    let params = json!({"sessionId": agent.session(), "mode": "form", "message": "Go on?", "requestedSchema": empty});
    agent.ask("elicitation/create", params).await;
    agent.state("running").await;
    DONE
}

pub(in crate::probe::client) async fn url(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("elicitation.url") {
        return DONE;
    }
    let id = format!("page-{}", agent.mint());
    // Nobody listens there, and nothing leaves this machine.
    let url = "https://localhost:9/attache-check";
    let params = json!({"sessionId": agent.session(), "mode": "url", "elicitationId": id, "url": url, "message": "Open this page."});
    agent.state("requires_action").await;
    agent.ask("elicitation/create", params).await;
    for id in [&id, "page-never-opened", &id] {
        agent.notify("elicitation/complete", json!({"elicitationId": id})).await;
    }
    agent.state("running").await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn unknown(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("elicitation.form") && !agent.is_offered("elicitation.url") {
        return DONE;
    }
    let session = agent.session().to_owned();
    let message = "What would you like?";
    agent.ask("elicitation/create", json!({"sessionId": session, "mode": "_attache_voice", "message": message})).await;
    if agent.is_offered("elicitation.form") {
        let schema = json!({"type": "object", "properties": {"tune": {"type": "_attache_tune", "title": "Tune"}}});
        let params = json!({"sessionId": session, "mode": "form", "message": message, "requestedSchema": schema});
        agent.ask("elicitation/create", params).await;
    }
    agent.ping().await;
    DONE
}
