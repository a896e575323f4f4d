//! MCP servers of a file, in the form that other programs use too: `{"mcpServers": {"name": {…}}}`.
//!
//! `${NAME}` in what a server is given stands for a variable of the environment, `${NAME:-default}` for the default where
//! that is not set or empty.

mod variables;

use std::collections::BTreeMap;

use attache::model::Secret;
use attache::model::mcp::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use serde::Deserialize;
use serde_json::Value;

/// The servers of a file, with the values of variables in them.
#[derive(Default)]
pub struct Loaded {
    /// Those that can be used. What they are given may be secret: show their names alone.
    pub servers: Vec<McpServer>,
    /// Why others cannot, in sentences that name the server and the variable, never a value.
    pub problems: Vec<String>,
    /// The values that were put in, to keep them out of what is shown.
    pub values: Vec<Secret>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("servers", &names(&self.servers))
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// The servers of a file as they are written, without the values of variables.
#[derive(Default, Clone)]
pub struct Written {
    /// Those that make sense. What they are given may be secret: show their names alone.
    pub servers: Vec<McpServer>,
    /// What is wrong with others, in sentences that name the server and repeat nothing else: it may hold keys.
    pub problems: Vec<String>,
}

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Written").field("servers", &names(&self.servers)).field("problems", &self.problems).finish()
    }
}

fn names(servers: &[McpServer]) -> Vec<&str> {
    servers.iter().map(name_of).collect()
}

impl Loaded {
    /// Puts the values of variables into servers. `variable` tells the value of one, if it is set.
    pub fn new(written: Written, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut loaded = Loaded { problems: written.problems, ..Loaded::default() };
        for mut server in written.servers {
            let mut values = Vec::new();
            match variables::put_into(&mut server, &variable, &mut values) {
                Ok(()) => {
                    loaded.servers.push(server);
                    loaded.values.extend(values);
                }
                Err(missing) => loaded.problems.push(format!(
                    "server `{}`: environment variable `{missing}` is not set\nhint: set it, or write a default: \
                     `${{{missing}:-default}}`",
                    name_of(&server)
                )),
            }
        }
        loaded
    }
}

/// The name of a server.
pub fn name_of(server: &McpServer) -> &str {
    match server {
        McpServer::Stdio(server) => &server.name,
        McpServer::Http(server) => &server.name,
        McpServer::Sse(server) => &server.name,
        McpServer::Acp(server) => &server.name,
        _ => "",
    }
}

/// The names of the variables that a server is to be given, each once.
pub fn variables_of(server: &McpServer) -> Vec<String> {
    variables::names(server)
}

/// A variable of this process, if it is set and text.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads the servers of a file of the user's own, with the variables of this process.
///
/// ```
/// let file = br#"{"mcpServers": {"a": {"command": "${NO_SUCH_VARIABLE:-a}"}, "b": {"command": "${NO_SUCH_VARIABLE}"}}}"#;
/// let loaded = attache_host::mcp::load(file)?;
/// assert_eq!(loaded.servers.len(), 1);
/// assert!(loaded.problems[0].starts_with("server `b`: environment variable `NO_SUCH_VARIABLE` is not set"));
/// # Ok::<(), String>(())
/// ```
pub fn load(content: &[u8]) -> Result<Loaded, String> {
    Ok(Loaded::new(parse(content)?, environment))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    // Each is read on its own, so that a mistake in one does not hide the others.
    mcp_servers: BTreeMap<String, Value>,
}

/// Other clients write things here that do not concern us, so unknown keys are let pass.
#[derive(Deserialize)]
struct Server {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Reads the servers of a file's content as they are written, without the values of variables. An error is a sentence that does
/// not repeat the content: it may hold keys.
///
/// ```
/// let file = br#"{"mcpServers": {"time": {"command": "mcp-server-time"}, "odd": {"command": 7}}}"#;
/// let written = attache_host::mcp::parse(file)?;
/// assert_eq!(written.servers.len(), 1);
/// assert_eq!(written.problems, ["server `odd`: a field has a value of the wrong type"]);
/// # Ok::<(), String>(())
/// ```
pub fn parse(content: &[u8]) -> Result<Written, String> {
    let file: File = serde_json::from_slice(content).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        format!(
            "no list of MCP servers ({place})\nhint: it looks like {{\"mcpServers\": {{\"name\": {{\"command\": …}}}}}}"
        )
    })?;
    let mut written = Written::default();
    for (name, server) in file.mcp_servers {
        let server = serde_json::from_value::<Server>(server).map_err(|_| "a field has a value of the wrong type");
        match server.and_then(|server| server.into_model(&name)) {
            Ok(server) => written.servers.push(server),
            Err(what) => written.problems.push(format!("server `{name}`: {what}")),
        }
    }
    Ok(written)
}

impl Server {
    fn into_model(self, name: &str) -> Result<McpServer, &'static str> {
        let headers = || {
            let header = |(name, value): (&String, &String)| HttpHeader::new(name.as_str(), value.as_str());
            self.headers.iter().map(header).collect::<Vec<_>>()
        };
        let kind = self.kind.as_deref().unwrap_or(if self.url.is_some() { "http" } else { "stdio" });
        match (kind, &self.command, &self.url) {
            ("stdio", Some(command), None) => {
                let variable = |(name, value): (&String, &String)| EnvVariable::new(name.as_str(), value.as_str());
                let server = McpServerStdio::new(name, command.as_str()).args(self.args.clone());
                Ok(McpServer::Stdio(server.env(self.env.iter().map(variable))))
            }
            ("http" | "streamable-http", None, Some(url)) => {
                Ok(McpServer::Http(McpServerHttp::new(name, url.as_str()).headers(headers())))
            }
            ("sse", None, Some(url)) => Ok(McpServer::Sse(McpServerSse::new(name, url.as_str()).headers(headers()))),
            ("stdio" | "http" | "streamable-http" | "sse", ..) => {
                Err("it needs either a `command` or a `url` that fits its `type`")
            }
            _ => Err("invalid value for `type`; expected `stdio`, `http` or `sse`"),
        }
    }
}
