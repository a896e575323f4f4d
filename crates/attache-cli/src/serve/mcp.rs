//! Which MCP servers a client on another machine may name: those that whoever runs the server has allowed.

use serde_json::{Map, Value};
use url::{Origin, Url};

/// What is allowed of MCP servers. A program of the client's choice is any program, and an address of the client's choice is any
/// that this machine reaches and the client does not.
#[derive(Debug, Clone, Default)]
pub(super) struct McpRules {
    /// Anything goes: programs, and what programs could fetch anyway.
    pub(super) allows_commands: bool,
    /// Where servers may be that are reached by HTTP.
    pub(super) origins: Vec<Origin>,
}

const NO_COMMAND: &str = "mcpServers: programs of clients are not started here (--allow-mcp-commands)";
const NO_URL: &str = "mcpServers: servers at this address are not used here (`attache serve --allow-mcp-url ORIGIN` allows those of an origin)";

/// What a server has that is reached by HTTP. Whatever else is said of it is not passed on.
const OF_HTTP: [&str; 4] = ["type", "name", "url", "headers"];

/// What one has that is the client's own, likewise.
const OF_ACP: [&str; 3] = ["type", "name", "id"];

impl McpRules {
    /// Leaves the params of a message as the agent may have them, or says why it may not.
    pub(super) fn judge(&self, params: &mut Map<String, Value>) -> Result<(), &'static str> {
        let servers = match params.get_mut("mcpServers") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(servers)) => servers,
            Some(_) => return Err("mcpServers has to be a list"),
        };
        match self.allows_commands {
            true => Ok(()),
            false => servers.iter_mut().try_for_each(|server| self.judge_server(server)),
        }
    }

    fn judge_server(&self, server: &mut Value) -> Result<(), &'static str> {
        let Some(server) = server.as_object_mut() else { return Err(NO_COMMAND) };
        if server.contains_key("command") {
            return Err(NO_COMMAND);
        }
        match server.get("type").and_then(Value::as_str) {
            // Its messages go through the client.
            Some("acp") if !server.contains_key("url") => {
                server.retain(|key, _| OF_ACP.contains(&key.as_str()));
                Ok(())
            }
            Some("http" | "sse") => {
                let url = server.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url).ok());
                let url = url.filter(|url| is_plain(url) && self.origins.contains(&url.origin())).ok_or(NO_URL)?;
                server.retain(|key, _| OF_HTTP.contains(&key.as_str()));
                // What was judged is what the agent gets: other parsers may read another host in the client's words.
                server.insert("url".to_owned(), url.as_str().into());
                Ok(())
            }
            _ => Err(NO_COMMAND),
        }
    }
}

/// Whether an address is one of a web server, without a name or a password in it.
fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none()
}

/// Reads an origin of the command line, such as `https://mcp.example.com`.
pub(super) fn read_origin(text: &str) -> Result<Origin, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_whole = is_plain(&url) && url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    match is_whole {
        true => Ok(url.origin()),
        false => Err("expected an origin, such as `https://mcp.example.com`, without a path".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(origins: &[&str], server: Value) -> Result<Value, &'static str> {
        let origins = origins.iter().map(|origin| read_origin(origin).unwrap()).collect();
        let rules = McpRules { allows_commands: false, origins };
        let mut params = json!({ "mcpServers": [server] });
        rules.judge(params.as_object_mut().unwrap())?;
        Ok(params["mcpServers"][0].take())
    }

    #[test]
    fn only_addresses_of_allowed_origins_are_passed_on() {
        let allowed = ["https://mcp.example.com", "http://localhost:9000"];
        let server = |url: &str| json!({ "type": "http", "name": "x", "url": url, "headers": [] });
        for url in ["https://mcp.example.com/mcp?a=b", "https://mcp.example.com:443/", "http://localhost:9000/sse"] {
            assert!(judge(&allowed, server(url)).is_ok(), "{url}");
        }
        for url in [
            "http://mcp.example.com/mcp",
            "https://mcp.example.com:8443/",
            "https://mcp.example.com.evil.example/",
            "https://mcp.example.com@evil.example/",
            "https://user:word@mcp.example.com/",
            "https://evil.example\\@mcp.example.com/",
            "http://127.0.0.1:9000/",
            "http://[::1]:9000/",
            "http://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "//mcp.example.com/",
            "",
        ] {
            assert_eq!(judge(&allowed, server(url)), Err(NO_URL), "{url}");
            assert_eq!(judge(&[], server(url)), Err(NO_URL), "{url}");
        }
        let mut sse = server("https://MCP.example.com\\a\\..\\b");
        sse["type"] = "sse".into();
        sse["URL"] = "http://127.0.0.1/".into();
        let passed = judge(&allowed, sse).unwrap();
        assert_eq!(passed, json!({ "type": "sse", "name": "x", "url": "https://mcp.example.com/b", "headers": [] }));
    }

    #[test]
    fn what_is_not_known_to_be_harmless_is_refused() {
        let url = "https://mcp.example.com/";
        for server in [
            json!({ "name": "x", "command": "/bin/sh" }),
            json!({ "type": "stdio", "name": "x", "command": "/bin/sh" }),
            json!({ "type": "http", "name": "x", "url": url, "command": "/bin/sh" }),
            json!({ "name": "x", "url": url }),
            json!({ "type": "HTTP", "name": "x", "url": url }),
            json!({ "type": "acp", "name": "x", "url": url }),
            json!("x"),
        ] {
            assert_eq!(judge(&[url], server.clone()), Err(NO_COMMAND), "{server}");
        }
        // Another spelling may be another agent's word for a program.
        let acp =
            json!({ "type": "acp", "name": "x", "id": "1", "Type": "stdio", "Command": "/bin/sh", "args": ["-c"] });
        assert_eq!(judge(&[], acp), Ok(json!({ "type": "acp", "name": "x", "id": "1" })));
        for wrong in ["mcp.example.com", "https://mcp.example.com/mcp", "https://a@b", "ftp://a", "https://a?b"] {
            assert!(read_origin(wrong).is_err(), "{wrong}");
        }
    }
}
