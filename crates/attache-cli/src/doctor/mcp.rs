//! The rows about MCP servers: those of the user's `mcp.json`, and those of a project that is trusted.

use std::path::Path;

use attache::model::mcp::McpServer;
use attache_host::mcp::{self, Loaded, Written};
use url::Url;

use super::Row;
use crate::agents::catalog::on_path;
use crate::paths;
use crate::project::Project;

const CHECK: &str = "mcp.json";

pub(super) fn look() -> Vec<Row> {
    let mut rows = Vec::new();
    if let Ok(directory) = paths::config() {
        rows.extend(user(&directory.join("mcp.json")));
    }
    if let Ok(project) = Project::here() {
        match project.mcp_servers() {
            Ok(_) => rows.extend(about_all(project.written_mcp_servers())),
            Err(failure) => rows.push(wrong(&failure.message)),
        }
    }
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, "not there; no MCP servers"));
    }
    rows
}

fn user(path: &Path) -> Vec<Row> {
    let content = match std::fs::read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![Row::fail(CHECK, format!("{}: {error}", path.display()), "make it readable")],
    };
    match mcp::parse(&content) {
        Ok(written) => {
            let count = written.servers.len();
            let problems = about_all(written);
            if problems.is_empty() { vec![Row::ok(CHECK, format!("{count} servers"))] } else { problems }
        }
        Err(what) => vec![wrong(&format!("`{}`: {what}", path.display()))],
    }
}

/// What is wrong with servers: those that make no sense, those that lack a variable, and those that could not be used.
fn about_all(written: Written) -> Vec<Row> {
    let loaded = Loaded::new(written.clone(), mcp::environment);
    let mut rows: Vec<Row> = loaded.problems.iter().map(|problem| wrong(problem)).collect();
    for server in &loaded.servers {
        let written = written.servers.iter().find(|written| mcp::name_of(written) == mcp::name_of(server));
        rows.extend(written.and_then(|written| about(server, written)));
    }
    rows
}

fn wrong(message: &str) -> Row {
    let (what, hint) = message.split_once("\nhint: ").unwrap_or((message, "mend it: until then it is not started"));
    Row::fail(CHECK, what, hint)
}

/// What would keep a server from being used, as far as can be told without starting it. No value of a variable or a
/// header is told: they may be keys.
fn about(server: &McpServer, written: &McpServer) -> Option<Row> {
    match server {
        McpServer::Stdio(server) => match on_path(&server.command) {
            Some(_) => None,
            None => {
                let McpServer::Stdio(written) = written else { return None };
                let what = format!("server `{}`: program `{}` not found", server.name, written.command);
                Some(Row::fail(CHECK, what, "install it, add it to PATH, or give its full path"))
            }
        },
        McpServer::Http(server) => about_address(&server.name, &server.url),
        McpServer::Sse(server) => about_address(&server.name, &server.url),
        _ => Some(Row::warn(CHECK, "a server of a kind that is not known here", "it is not started")),
    }
}

fn about_address(name: &str, url: &str) -> Option<Row> {
    let is_whole = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match Url::parse(url).is_ok_and(is_whole) {
        true => None,
        false => {
            let what = format!("server `{name}`: its address is no URL of a web server");
            Some(Row::fail(CHECK, what, "write it as https://host/path"))
        }
    }
}
