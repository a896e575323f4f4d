//! MCP servers that clients pass on.

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::Call;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};
use crate::rules::walk;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "mcp/offered",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client passes on MCP servers only over transports that the agent offers; stdio needs no offer in version 1.",
        source: "v1/46 v2/19; S0 S1 DOC SCH",
        instead: "Check `mcpCapabilities` (version 2: `session.mcp`) and leave out the other servers.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "mcp/server-fields",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "`mcpServers` is an array whose entries have the fields of their transport.",
        source: "v1/46 v2/19; S0 S1 SCH",
        instead: "Send `name`, `command`, `args` and `env` for stdio; `type`, `name`, `url` and `headers` for HTTP and SSE.",
        implies: &["envelope/params"],
        judge: server_fields,
    },
    Rule {
        id: "mcp/stdio",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "An agent accepts MCP servers over stdio.",
        source: "v1/45; S0 S1 DOC",
        instead: "Start the server's command and speak MCP with it.",
        implies: &["sessions/own-sessions"],
        judge: stdio,
    },
    Rule {
        id: "mcp/http",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::V1,
        statement: "An agent offers MCP servers over HTTP.",
        source: "v1/45; S0 DOC",
        instead: "Support them, and offer `mcpCapabilities.http`.",
        implies: &[],
        judge: http,
    },
    Rule {
        id: "mcp/unsupported",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "An agent rejects MCP servers over transports that it does not support with -32602.",
        source: "v2/19; SCH",
        instead: "Answer the request with code -32602 instead of leaving the server out.",
        implies: &[],
        judge: unsupported,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/45", "An agent connects to all servers.", "Its connections to servers are not on this connection."),
    ("v1/47", "A client may add an MCP server of its own.", "The level is \"may\": there is nothing to break."),
    (
        "v2/19",
        "An agent does not restore MCP servers of earlier requests.",
        "Its connections to servers are not on this connection.",
    ),
];

const INVALID_PARAMS: i32 = -32602;

/// The calls that pass on servers.
fn calls<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    let is_setup = |call: &&Call| {
        matches!(call.method.as_str(), "session/new" | "session/load" | "session/resume" | "session/fork")
    };
    trial.calls_of(Side::Client).filter(is_setup)
}

fn servers(call: &Call) -> &[Value] {
    call.params["mcpServers"].as_array().map_or(&[], Vec::as_slice)
}

/// The transport of a server: `stdio` is not said in version 1, and need not be in what came before version 2.
fn transport(server: &Value) -> &str {
    server["type"].as_str().unwrap_or("stdio")
}

fn is_offered(trial: &Trial<'_>, transport: &str) -> bool {
    // Whoever extends the protocol says so in words of his own.
    if transport.starts_with('_') {
        return true;
    }
    match trial.dialect {
        Dialect::V1 => {
            transport == "stdio"
                || (["http", "sse", "acp"].contains(&transport)
                    && trial.offers(Side::Agent, &format!("mcpCapabilities.{transport}")))
        }
        _ => {
            ["stdio", "http", "acp"].contains(&transport)
                && trial.offers(Side::Agent, &format!("session.mcp.{transport}"))
        }
    }
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        for server in servers(call) {
            let transport = transport(server);
            verdict.check(is_offered(trial, transport), call.at, || {
                format!("a server over {}, which the agent does not offer", shown(transport))
            });
        }
    }
}

fn server_fields(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        let listed = &call.params["mcpServers"];
        let is_needed = trial.dialect != Dialect::V2 && matches!(call.method.as_str(), "session/new" | "session/load");
        match listed {
            Value::Array(servers) => match servers.iter().find_map(|server| wrong_field(trial.dialect, server)) {
                Some(seen) => verdict.broken(call.at, seen),
                None => verdict.kept(),
            },
            Value::Null if !is_needed => {}
            other => verdict.broken(call.at, format!("`mcpServers` is {}", shown(&other.to_string()))),
        }
    }
}

fn wrong_field(dialect: Dialect, server: &Value) -> Option<String> {
    let is_v2 = dialect == Dialect::V2;
    let (texts, lists): (&[&str], &[&str]) = match transport(server) {
        "stdio" => (&["name", "command"], &["args", "env"]),
        "http" | "sse" => (&["name", "url"], &["headers"]),
        _ => (&["name"], &[]),
    };
    let missing_type = is_v2 && !server["type"].is_string();
    let text = texts.iter().copied().find(|key| !server[*key].is_string());
    let list = lists.iter().copied().find(|key| !(server[*key].is_array() || (is_v2 && server.get(*key).is_none())));
    let wrong = missing_type.then_some("type").or(text).or(list)?;
    Some(match server.get(wrong) {
        None => format!("a server without `{wrong}`"),
        Some(value) => format!("a server whose `{wrong}` is {}", shown(&value.to_string())),
    })
}

fn stdio(trial: &Trial<'_>, verdict: &mut Verdict) {
    // A session of the same directory that opens without servers shows that nothing else is wrong.
    let opened: Vec<&Value> = calls(trial)
        .filter(|call| call.result().is_some() && servers(call).is_empty())
        .map(|call| &call.params["cwd"])
        .collect();
    for call in calls(trial).filter(|call| !servers(call).is_empty()) {
        let is_plain = |server: &Value| transport(server) == "stdio" && wrong_field(trial.dialect, server).is_none();
        if !servers(call).iter().all(is_plain) {
            continue;
        }
        match (call.result(), call.error(), call.answered_at()) {
            (Some(_), ..) => verdict.kept(),
            (_, Some(error), Some(at)) if error.code == INVALID_PARAMS && opened.contains(&&call.params["cwd"]) => {
                verdict.broken(at, "a server over stdio was rejected");
            }
            _ => {}
        }
    }
}

fn http(trial: &Trial<'_>, verdict: &mut Verdict) {
    if let Some(at) = trial.initialize.and_then(|index| trial.calls[index].answered_at())
        && trial.agent_hello().is_object()
    {
        verdict.check(trial.offers(Side::Agent, "mcpCapabilities.http"), at, || "no `mcpCapabilities.http`".to_owned());
    }
}

fn unsupported(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        let strange = servers(call).iter().map(transport).find(|transport| !is_offered(trial, transport));
        let (Some(strange), Some(at)) = (strange, call.answered_at()) else { continue };
        if walk::is_unrelated_refusal(trial.exchange, call) {
            continue;
        }
        verdict.check(call.error().is_some_and(|error| error.code == INVALID_PARAMS), at, || match call.error() {
            Some(error) => format!("error {} for a server over {}", error.code, shown(strange)),
            None => format!("a result for a server over {}", shown(strange)),
        });
    }
}
