//! MCP servers of a file, in the form that other programs use too: `{"mcpServers": {"name": {…}}}`.

use std::collections::BTreeMap;

use attache::model::mcp::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mcp_servers: BTreeMap<String, Server>,
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

/// Reads the servers of a file's content. An error is a sentence that does not repeat the content: it may hold keys.
///
/// ```
/// let servers = attache_host::mcp::parse(br#"{"mcpServers": {"time": {"command": "mcp-server-time"}}}"#)?;
/// assert_eq!(servers.len(), 1);
/// # Ok::<(), String>(())
/// ```
pub fn parse(content: &[u8]) -> Result<Vec<McpServer>, String> {
    let file: File = serde_json::from_slice(content).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        format!(
            "no list of MCP servers ({place})\nhint: it looks like {{\"mcpServers\": {{\"name\": {{\"command\": …}}}}}}"
        )
    })?;
    file.mcp_servers.into_iter().map(|(name, server)| server.into_model(&name)).collect()
}

impl Server {
    fn into_model(self, name: &str) -> Result<McpServer, String> {
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
                Err(format!("server `{name}` needs either a `command` or a `url` that fits its `type`"))
            }
            _ => Err(format!("server `{name}` has a `type` that is neither stdio, http nor sse")),
        }
    }
}
