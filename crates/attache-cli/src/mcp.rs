//! `attache mcp`: logging in to MCP servers, and out of them.

use std::io::IsTerminal as _;
use std::process::Stdio;

use attache::model::mcp::McpServer;
use attache_agent::mcp::oauth::{self, Login};
use attache_host::mcp::{self, name_of};

use crate::cli::McpCommand;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::project::Project;
use crate::visible::one_line;

pub(crate) async fn run(command: McpCommand) -> Result<(), Failure> {
    match command {
        McpCommand::Login { name, client_id, no_browser } => login(&name, client_id.as_deref(), !no_browser).await,
        McpCommand::Logout { name } => logout(&name).await,
    }
}

async fn login(name: &str, client_id: Option<&str>, opens_browser: bool) -> Result<(), Failure> {
    let (server, config) = (find(name)?, paths::config()?);
    let failed = |error: oauth::LoginError| Failure::new(Code::Agent, format!("cannot log in to `{name}`: {error}"));
    let login = Login::begin(&server, &config, client_id).await.map_err(failed)?;
    eprintln!(
        "Open this address in a browser of this machine to log in to `{name}`:\n\n{}\n",
        one_line(login.address())
    );
    // Where nobody is, nobody has a browser.
    if opens_browser && std::io::stderr().is_terminal() {
        open_browser(login.address());
    }
    login.finish().await.map_err(failed)?;
    eprintln!("You are logged in to `{name}`");
    Ok(())
}

async fn logout(name: &str) -> Result<(), Failure> {
    let (server, config) = (find(name)?, paths::config()?);
    match oauth::logout(&server, &config).await {
        Ok(true) => eprintln!("You are logged out of `{name}`"),
        Ok(false) => eprintln!("You were not logged in to `{name}`"),
        Err(error) => return Err(Failure::new(Code::Agent, format!("cannot log out of `{name}`: {error}"))),
    }
    Ok(())
}

/// The server of a name, as the built-in agent would find it here.
fn find(name: &str) -> Result<McpServer, Failure> {
    let path = paths::config()?.join("mcp.json");
    let wrong = |what: String| Failure::usage(format!("`{}`: {what}", path.display()));
    let own = match std::fs::read(&path) {
        Ok(content) => mcp::load(&content).map_err(wrong)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => mcp::Loaded::default(),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let beginning = format!("server `{name}`:");
    if let Some(problem) = own.problems.iter().find(|problem| problem.starts_with(&beginning)) {
        return Err(wrong(problem.clone()));
    }
    let servers = own.servers.into_iter().chain(Project::here()?.mcp_servers()?);
    servers.into_iter().find(|server| name_of(server) == name).ok_or_else(|| {
        let hint =
            "hint: it is listed in `mcp.json` beside your settings, or in `.attache` of a project which you trust";
        Failure::new(Code::NotFound, format!("there is no MCP server `{name}`\n{hint}"))
    })
}

/// Has the desktop open an address. It is no misfortune if it cannot: the address has been printed.
fn open_browser(address: &str) {
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    let _ = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
