//! `attache agent`: the coding agent that is built in, its keys, its models and its sessions.

use std::io::{IsTerminal, Read};
use std::path::Path;

use attache::model::{ContentBlock, MessageUpdate, Patch, SessionUpdate};
use attache::proto::view::{self, MessageRole, SessionView};
use attache_agent::model::catalog::{self, PROVIDERS, Provider};
use attache_agent::store::{Entry, Query, Store, StoreError};
use attache_agent::{CodingAgent, Config, Keys, Mode, Models, SandboxMode};
use serde::Serialize;

use crate::agents::print_lines;
use crate::cli::{AgentCommand, AgentMode, AgentOptions, AgentSessions, CommandSandbox, ExportFormat, ModelChoice};
use crate::exit::{Code, Failure};
use crate::tty::Tty;
use crate::visible::{self, one_line};
use crate::{connect, paths};

/// Does what the command line says.
pub(crate) async fn run(options: AgentOptions) -> Result<(), Failure> {
    match options.command {
        None => serve(options).await,
        Some(AgentCommand::Login { provider }) => login(provider_of(&provider)?).await,
        Some(AgentCommand::Logout { provider }) => logout(provider_of(&provider)?),
        Some(AgentCommand::Models { choice, json }) => models(&choice, json).await,
        Some(AgentCommand::Sessions(command)) => sessions(command),
    }
}

/// Serves on stdin and stdout until the client closes them.
async fn serve(options: AgentOptions) -> Result<(), Failure> {
    let mut config = config(&options.choice)?;
    if let Some(mode) = options.mode {
        config.mode = match mode {
            AgentMode::Ask => Mode::Ask,
            AgentMode::Architect => Mode::Architect,
            AgentMode::Code => Mode::Code,
        };
    }
    if let Some(sandbox) = options.sandbox {
        config.sandbox = match sandbox {
            CommandSandbox::On => SandboxMode::On,
            CommandSandbox::Offline => SandboxMode::Offline,
            CommandSandbox::Off => SandboxMode::Off,
        };
    }
    if let Some(requests) = options.max_turn_requests {
        config.limits.requests = requests;
    }
    if std::io::stdin().is_terminal() {
        eprintln!("attache agent speaks the Agent Client Protocol on stdin and stdout; an editor starts it.");
        eprintln!("hint: to use it from this terminal, type `attache run help`");
    }
    let agent = CodingAgent::new(config).await.map_err(|error| Failure::usage(error.to_string()))?;
    match agent.server().stdio().await {
        Ok(()) | Err(attache::Error::Closed(_)) => Ok(()),
        Err(error) => Err(Failure::new(Code::Agent, error.to_string())),
    }
}

/// The settings, with what the command line and the environment say instead.
fn config(choice: &ModelChoice) -> Result<Config, Failure> {
    let loaded = Config::load(paths::config()?, paths::state()?);
    let mut config = loaded.map_err(|error| Failure::usage(error.to_string()))?;
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let model = choice.model.clone().or_else(|| variable("ATTACHE_MODEL"));
    let base_url = choice.base_url.clone().or_else(|| variable("ATTACHE_BASE_URL"));
    // An address in the file belongs to the model in the file.
    if model.is_some() && base_url.is_none() {
        config.base_url = None;
    }
    config.model = model.or(config.model);
    config.base_url = base_url.or(config.base_url);
    Ok(config)
}

fn provider_of(name: &str) -> Result<&'static Provider, Failure> {
    catalog::provider(name).ok_or_else(|| {
        let names = catalog::names();
        Failure::usage(format!("there is no provider `{}`\nhint: the providers are {names}", one_line(name)))
    })
}

/// Asks for a key and keeps it.
async fn login(provider: &'static Provider) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(Code::Usage, format!("no key was read: {error}"));
    let key = if std::io::stdin().is_terminal() {
        let tty = Tty::open().map_err(failed)?;
        let typed = tty.ask_hidden(&format!("Key for {} (not shown): ", provider.name)).await.map_err(failed)?;
        typed.ok_or_else(|| Failure::usage("no key was typed"))?
    } else {
        let mut text = String::new();
        std::io::stdin().take(64 * 1024).read_to_string(&mut text).map_err(failed)?;
        text.lines().next().unwrap_or_default().to_owned()
    };
    keys()?.keep(provider, &key).map_err(|error| Failure::usage(error.to_string()))?;
    eprintln!("the key for {} is kept in a file that only you can read", provider.name);
    Ok(())
}

fn logout(provider: &'static Provider) -> Result<(), Failure> {
    match keys()?.forget(provider).map_err(|error| Failure::usage(error.to_string()))? {
        true => eprintln!("the key for {} is forgotten", provider.name),
        false => eprintln!("there was no key for {}", provider.name),
    }
    Ok(())
}

fn keys() -> Result<Keys, Failure> {
    Ok(Keys::new(&paths::config()?))
}

#[derive(Serialize)]
struct ProviderRow {
    provider: &'static str,
    /// `yes`, `no`, or `not needed`.
    key: &'static str,
    variable: Option<&'static str>,
    default_model: Option<&'static str>,
}

async fn models(choice: &ModelChoice, json: bool) -> Result<(), Failure> {
    let config = config(choice)?;
    let keys = keys()?;
    let row = |provider: &'static Provider| ProviderRow {
        provider: provider.name,
        key: match keys.find(provider) {
            Ok(Some(_)) => "yes",
            _ if provider.needs_key => "no",
            _ => "not needed",
        },
        variable: provider.key_variables.first().copied(),
        default_model: provider.default_model,
    };
    let rows: Vec<ProviderRow> = PROVIDERS.iter().map(row).collect();
    if json {
        return print_lines(rows.iter().map(visible::json));
    }
    let models = Models::find(&config).await.map_err(|error| Failure::usage(error.to_string()))?;
    let lines = rows.iter().map(|row| {
        let model = row.default_model.map(|model| format!("  {}:{model}", row.provider)).unwrap_or_default();
        format!("{:<12} key: {:<10} {:<20}{model}", row.provider, row.key, row.variable.unwrap_or_default())
    });
    print_lines(lines.map(|line| line.trim_end().to_owned()))?;
    eprintln!("would use: {}", one_line(models.first()));
    Ok(())
}

#[derive(Serialize)]
struct SessionRow<'a> {
    id: &'a str,
    cwd: &'a str,
    title: Option<&'a str>,
    updated: &'a str,
    prompts: u64,
}

fn sessions(command: AgentSessions) -> Result<(), Failure> {
    let config = Config::new(paths::config()?, paths::state()?);
    let store = Store::open(config.sessions_dir()).map_err(failed)?;
    match command {
        AgentSessions::List { cwd, limit, json } => list(&store, cwd.as_deref(), limit, json),
        AgentSessions::Export { id, format } => export(&store, &id, format),
        AgentSessions::Delete { id } => {
            if store.read(&id).is_err_and(|error| matches!(error, StoreError::NotFound(_))) {
                return Err(failed(StoreError::NotFound(id)));
            }
            store.delete(&id).map_err(failed)
        }
    }
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::NotFound(_) => {
            Failure::new(Code::NotFound, "no such session\nhint: `attache agent sessions list` has them")
        }
        error => Failure::usage(error.to_string()),
    }
}

fn list(store: &Store, cwd: Option<&Path>, limit: usize, json: bool) -> Result<(), Failure> {
    let cwd = match cwd {
        Some(cwd) => Some(connect::directory(Some(cwd))?.to_string_lossy().into_owned()),
        None => None,
    };
    let page = store.list(&Query { cwd, cursor: None, limit }).map_err(failed)?;
    let row = |summary: &attache_agent::store::Summary| match json {
        true => visible::json(&SessionRow {
            id: &summary.id,
            cwd: &summary.cwd,
            title: summary.title.as_deref(),
            updated: &summary.updated,
            prompts: summary.prompts,
        }),
        false => {
            let title = summary.title.as_deref().unwrap_or("(no prompt)");
            format!("{}  {}  {}  {}", summary.id, summary.updated, one_line(title), one_line(&summary.cwd))
        }
    };
    print_lines(page.sessions.iter().map(row))
}

/// The one session whose id begins like this.
fn meant(store: &Store, start: &str) -> Result<String, Failure> {
    let mut cursor = None;
    let mut found: Vec<String> = Vec::new();
    loop {
        let page = store.list(&Query { cwd: None, cursor, limit: 500 }).map_err(failed)?;
        found.extend(page.sessions.into_iter().map(|summary| summary.id).filter(|id| id.starts_with(start)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(failed(StoreError::NotFound(start.into()))),
        several if several.iter().any(|id| id == start) => Ok(start.into()),
        _ => Err(Failure::usage("several sessions begin like this\nhint: give more of the id")),
    }
}

fn export(store: &Store, id: &str, format: ExportFormat) -> Result<(), Failure> {
    let id = meant(store, id)?;
    let entries = store.read(&id).map_err(failed)?;
    match format {
        ExportFormat::Json => {
            print_lines(entries.iter().filter_map(|entry| Some(entry.to_json().ok()?.as_str().to_owned())))
        }
        ExportFormat::Markdown => crate::print(&markdown(&id, &entries)),
    }
}

/// A session as a document for people.
fn markdown(id: &str, entries: &[Entry]) -> String {
    let mut view = SessionView::new();
    let mut title = None;
    for entry in entries {
        match entry {
            Entry::Prompt { id, content } => {
                let content = Patch::Set(content.clone());
                view.apply(&SessionUpdate::UserMessage(MessageUpdate { content, ..MessageUpdate::new(id.as_str()) }));
            }
            Entry::Update { update } => drop(view.apply(update)),
            Entry::Title { title: set } => title = Some(set.clone()),
            _ => {}
        }
    }
    let mut text = format!("# {}\n\n- session: `{id}`\n", one_line(&title.unwrap_or_else(|| "Session".into())));
    for shown in view.timeline() {
        match shown {
            view::Entry::Message(message) => {
                let heading = match message.role {
                    MessageRole::User => "Prompt",
                    MessageRole::Agent => "Agent",
                    MessageRole::Thought => "Thought",
                };
                let said: Vec<&str> = message.content.iter().filter_map(ContentBlock::as_text).collect();
                text.push_str(&format!("\n## {heading}\n\n{}\n", said.concat().trim_end()));
            }
            view::Entry::ToolCall(call) => {
                text.push_str(&format!("\n- {} ({})\n", one_line(&call.title), call.status.as_str()));
            }
            _ => {}
        }
    }
    text
}
