//! Connects to an MCP server, lists its tools, calls one and prints what comes of it, one line each.
//!
//!     cargo run -p attache-agent --example mcp_call -- TOOL ARGUMENTS stdio COMMAND [ARG…]
//!     cargo run -p attache-agent --example mcp_call -- TOOL ARGUMENTS http|sse URL
//!
//! TOOL is the server's name for it, and ARGUMENTS is a JSON object. The exit code is 1 when the call failed.
#![allow(clippy::print_stdout, reason = "what a person reads goes there")]

use std::process::ExitCode;

use attache::model::mcp::{McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use attache_agent::mcp::{Servers, Setup};
use attache_agent::model::Part;
use attache_agent::tools::{Live, Shown};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    attache::process::use_keeper();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((tool, arguments, server)) = parse(&args) else {
        eprintln!("usage: mcp_call TOOL ARGUMENTS (stdio COMMAND [ARG…] | http URL | sse URL)");
        return ExitCode::from(2);
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let servers = Servers::start(vec![server], Setup::new(cwd));
    servers.ready().await;
    for spec in servers.specs() {
        println!("tool: {}", spec.name);
    }
    let is_done = call(&servers, &tool, &arguments).await;
    for notice in servers.notices() {
        println!("notice: {}", notice.text);
    }
    servers.close().await;
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(args: &[String]) -> Option<(String, Value, McpServer)> {
    let (tool, arguments, how, address) = (args.first()?, args.get(1)?, args.get(2)?, args.get(3)?);
    let server = match how.as_str() {
        "stdio" => McpServer::Stdio(McpServerStdio::new("s", address).args(args[4..].to_vec())),
        "http" => McpServer::Http(McpServerHttp::new("s", address)),
        "sse" => McpServer::Sse(McpServerSse::new("s", address)),
        _ => return None,
    };
    Some((tool.clone(), serde_json::from_str(arguments).ok()?, server))
}

async fn call(servers: &Servers, tool: &str, arguments: &Value) -> bool {
    let prepared = match servers.prepare(&format!("s__{tool}"), arguments) {
        Some(Ok(prepared)) => prepared,
        Some(Err(refusal)) => {
            println!("refused: {refusal}");
            return false;
        }
        None => return false,
    };
    println!("call: {}", prepared.title);
    let (live, mut shown) = Live::channel();
    let showing = async {
        while let Some(shown) = shown.recv().await {
            if let Shown::Content(content) = shown {
                println!("shown: {}", serde_json::to_string(&content).unwrap_or_default());
            }
        }
    };
    let performing = async {
        let outcome = servers.perform(prepared.work, &live).await;
        drop(live);
        outcome
    };
    let (outcome, ()) = tokio::join!(performing, showing);
    for content in outcome.content.iter().flatten() {
        println!("content: {}", serde_json::to_string(content).unwrap_or_default());
    }
    for part in &outcome.parts {
        match part {
            Part::Text { text } => println!("text: {text}"),
            Part::Media { mime, data } => println!("media: {mime}, {} characters", data.len()),
        }
    }
    println!("failed: {}", outcome.is_error);
    !outcome.is_error
}
