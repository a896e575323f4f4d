//! How each dialect says what a client has to say.

use attache_proto::Dialect;
use serde_json::{Value, json};

use crate::exchange::at;

/// Something that an agent may offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    /// Opening a session again, with its history.
    Load,
    /// Opening a session again, without.
    Resume,
    List,
    Close,
    Delete,
    Audio,
    Embedded,
    Directories,
    Logout,
}

/// Whether an agent that answered `initialize` with this offers something.
pub(super) fn offers(dialect: Dialect, hello: &Value, feature: Feature) -> bool {
    let (old, new) = match feature {
        Feature::Load => ("loadSession", "session.load"),
        Feature::Resume => ("sessionCapabilities.resume", "session.resume"),
        Feature::List => ("sessionCapabilities.list", "session.list"),
        Feature::Close => ("sessionCapabilities.close", "session.close"),
        Feature::Delete => ("sessionCapabilities.delete", "session.delete"),
        Feature::Audio => ("promptCapabilities.audio", "session.prompt.audio"),
        Feature::Embedded => ("promptCapabilities.embeddedContext", "session.prompt.embeddedContext"),
        Feature::Directories => ("sessionCapabilities.additionalDirectories", "session.additionalDirectories"),
        Feature::Logout => ("auth.logout", "auth.logout"),
    };
    let capabilities = &hello["capabilities"];
    let value = match dialect {
        Dialect::V1 => at(&hello["agentCapabilities"], old),
        Dialect::V2Draft => at(capabilities, new),
        Dialect::V2 => match feature {
            Feature::Load | Feature::Resume | Feature::List | Feature::Close => &capabilities["session"],
            Feature::Logout => return hello["authMethods"].as_array().is_some_and(|methods| !methods.is_empty()),
            _ => at(capabilities, new),
        },
    };
    value.as_bool() == Some(true) || value.is_object()
}

/// All that a client can offer.
pub(super) fn everything(dialect: Dialect) -> Value {
    match dialect {
        Dialect::V1 => json!({
            "fs": { "readTextFile": true, "writeTextFile": true },
            "terminal": true,
            "auth": { "terminal": true },
            "elicitation": { "form": {}, "url": {} },
            "session": { "configOptions": { "boolean": {} }, "compaction": {}, "notices": {} },
        }),
        Dialect::V2Draft => json!({}),
        Dialect::V2 => json!({ "auth": { "terminal": {} }, "elicitation": { "form": {}, "url": {} } }),
    }
}

/// The params of `initialize`.
pub(super) fn hello(dialect: Dialect, offered: &Value) -> Value {
    let info = json!({ "name": "attache-check", "title": "Attaché", "version": env!("CARGO_PKG_VERSION") });
    match dialect {
        Dialect::V1 => json!({ "protocolVersion": 1, "clientInfo": info, "clientCapabilities": offered }),
        Dialect::V2Draft => json!({ "protocolVersion": 2, "clientInfo": info, "capabilities": offered }),
        Dialect::V2 => json!({ "protocolVersion": 2, "info": info, "capabilities": offered }),
    }
}

/// The params that open a session.
pub(super) fn opening(dialect: Dialect, cwd: &str) -> Value {
    match dialect {
        Dialect::V1 | Dialect::V2Draft => json!({ "cwd": cwd, "mcpServers": [] }),
        Dialect::V2 => json!({ "cwd": cwd }),
    }
}

/// The method and the params that open a session again, with its history or without.
pub(super) fn reopening(dialect: Dialect, cwd: &str, session: &str, replay: bool) -> (&'static str, Value) {
    let mut params = opening(dialect, cwd);
    params["sessionId"] = session.into();
    match (dialect, replay) {
        (Dialect::V1 | Dialect::V2Draft, true) => ("session/load", params),
        (Dialect::V2, true) => {
            params["replayFrom"] = json!({ "type": "start" });
            ("session/resume", params)
        }
        (_, false) => ("session/resume", params),
    }
}

/// The method by which to authenticate.
pub(super) fn login(dialect: Dialect) -> &'static str {
    if dialect == Dialect::V2 { "auth/login" } else { "authenticate" }
}

/// The method that ends the authentication.
pub(super) fn logout(dialect: Dialect) -> &'static str {
    if dialect == Dialect::V2 { "auth/logout" } else { "logout" }
}

/// The id of a configuration option.
pub(super) fn option_id(dialect: Dialect, option: &Value) -> Option<&str> {
    option[if dialect == Dialect::V2 { "configId" } else { "id" }].as_str()
}

/// The params that set an option to one of its values.
pub(super) fn setting(dialect: Dialect, session: &str, option: &str, value: &Value) -> Value {
    let mut params = json!({ "sessionId": session, "configId": option, "value": value });
    match (dialect, value.is_boolean()) {
        (_, true) => params["type"] = "boolean".into(),
        (Dialect::V2, false) => params["type"] = "id".into(),
        _ => {}
    }
    params
}

/// A text as a content block.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The session and the kind of an update.
pub(super) fn update_kind(message: &Value) -> Option<(&str, &str)> {
    let is_update = message["method"] == "session/update" && message.get("id").is_none();
    let params = &message["params"];
    is_update.then(|| Some((params["sessionId"].as_str()?, params["update"]["sessionUpdate"].as_str()?))).flatten()
}
