//! `attache agents probe`: what an agent says it can do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::client::Session;
use attache::model::auth::AuthMethod;
use attache::model::capability::Capability;
use attache::model::command::AvailableCommand;
use attache::model::config::{ConfigCategory, ConfigKind, ConfigOption};
use attache::model::error::ErrorObject;
use attache::model::update::SessionUpdate;
use attache::private;
use attache::{Connection, Error, Event};
use serde_json::{Value, json};

use super::commands::{print_lines, print_pairs};
use super::{AgentSpec, resolve};
use crate::auth;
use crate::cli::NamedAgent;
use crate::connect::{Opening, client};
use crate::exit::{Code, Failure};
use crate::project::Project;
use crate::visible::{self, one_line};

/// How long an agent may take to open a session.
const SESSION_PATIENCE: Duration = Duration::from_secs(60);

/// How long is waited for the commands of a session, which agents of version 1 tell after opening it, and for a session
/// to be taken down again.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// Starts an agent, opens a session in an empty directory, and prints what there is to see.
pub(crate) async fn probe(agent: &NamedAgent, json: bool) -> Result<(), Failure> {
    let mut spec = resolve(agent.name.as_deref(), &agent.command, &Project::here()?)?;
    spec.pass_env.extend_from_slice(&agent.env);
    spec.tell_download();
    let cwd = EmptyDirectory::make()?;
    let opening = Opening::new(&spec, &cwd.0, agent.protocol);
    let connection = auth::start(client(), &opening, agent.auth.as_deref()).await?;
    let tried = try_session(&connection, &cwd.0).await;
    let found = Found { spec: &spec, connection: &connection, session: tried };
    let printed = match json {
        true => print_lines([visible::json(&found.json())].into_iter()),
        false => print_pairs(&found.rows()),
    };
    let failed = match found.session {
        Tried::Failed(failure) => Err(failure),
        _ => Ok(()),
    };
    connection.shutdown().await;
    printed.and(failed)
}

/// What came of opening a session.
enum Tried {
    Opened {
        options: Vec<ConfigOption>,
        commands: Vec<AvailableCommand>,
    },
    /// It wants a login first.
    Login,
    Failed(Failure),
}

async fn try_session(connection: &Connection, cwd: &Path) -> Tried {
    let opened = tokio::time::timeout(SESSION_PATIENCE, connection.session(cwd).open()).await;
    let session = match opened {
        Ok(Ok(session)) => session,
        Ok(Err(Error::Refused(refusal))) if refusal.code == ErrorObject::AUTH_REQUIRED => return Tried::Login,
        Ok(Err(error)) => return Tried::Failed(error.into()),
        Err(_) => {
            let what = format!("no session within {} seconds", SESSION_PATIENCE.as_secs());
            return Tried::Failed(Failure::new(Code::Timeout, what));
        }
    };
    let mut commands = session.commands();
    if commands.is_empty() && !connection.dialect().opens_with_commands() {
        let told = tokio::time::timeout(SHORT_PATIENCE, told_commands(&session)).await;
        commands = told.ok().flatten().unwrap_or_default();
    }
    let options = session.options().to_vec();
    // The agent is not to remember a session that nobody will come back to.
    let id = session.id().clone();
    let take_down = async {
        let _ = session.close().await;
        connection.delete_session(id).await
    };
    let _ = tokio::time::timeout(SHORT_PATIENCE, take_down).await;
    Tried::Opened { options, commands }
}

/// The commands that the agent tells of after opening a session.
async fn told_commands(session: &Session) -> Option<Vec<AvailableCommand>> {
    loop {
        match session.next().await.ok()? {
            Event::Update(SessionUpdate::AvailableCommands(update)) => return Some(update.available_commands),
            Event::Update(_) => {}
            other => other.decline().await.ok()?,
        }
    }
}

struct Found<'a> {
    spec: &'a AgentSpec,
    connection: &'a Connection,
    session: Tried,
}

impl Found<'_> {
    fn protocol(&self) -> String {
        self.connection.dialect().to_string()
    }

    /// What is offered, by topic, in the words of the protocol.
    fn offers(&self) -> [(&'static str, Vec<&'static str>); 4] {
        let capabilities = self.connection.capabilities();
        let session = capabilities.session.clone().unwrap_or_default();
        let there = |offer: &Option<Capability>| offer.is_some();
        let pick = |rows: &[(&'static str, bool)]| {
            rows.iter().filter(|(_, offered)| *offered).map(|(word, _)| *word).collect::<Vec<_>>()
        };
        let login = !self.connection.auth_methods().is_empty();
        [
            (
                "prompt",
                pick(&[
                    ("text", true),
                    ("image", there(&session.prompt.image)),
                    ("audio", there(&session.prompt.audio)),
                    ("embedded_context", there(&session.prompt.embedded_context)),
                ]),
            ),
            (
                "mcp",
                pick(&[
                    ("stdio", there(&session.mcp.stdio)),
                    ("http", there(&session.mcp.http)),
                    ("sse", there(&session.mcp.sse)),
                    ("acp", there(&session.mcp.acp)),
                ]),
            ),
            (
                "session",
                pick(&[
                    ("load", there(&session.load)),
                    ("resume", there(&session.resume)),
                    ("list", there(&session.list)),
                    ("close", there(&session.close)),
                    ("delete", there(&session.delete)),
                    ("fork", there(&session.fork)),
                    ("archive", there(&session.archive)),
                    ("title", there(&session.title)),
                    ("system_prompt", session.system_prompt.is_some()),
                    ("additional_directories", there(&session.additional_directories)),
                ]),
            ),
            (
                "auth",
                pick(&[
                    ("login", login),
                    ("logout", there(&capabilities.auth.logout)),
                    ("status", there(&capabilities.auth.status)),
                ]),
            ),
        ]
    }

    fn json(&self) -> Value {
        let info = self.connection.info();
        let methods = self.connection.auth_methods().iter().map(|method| {
            let kind = match method {
                AuthMethod::Agent(_) => "agent",
                AuthMethod::Terminal(_) => "terminal",
                _ => "other",
            };
            json!({ "id": method.id().map(|id| id.as_str().to_owned()), "name": method.name(), "kind": kind })
        });
        let offers: serde_json::Map<String, Value> =
            self.offers().into_iter().map(|(topic, offers)| (topic.into(), json!(offers))).collect();
        let session = match &self.session {
            Tried::Opened { options, commands } => json!({
                "status": "opened",
                "options": options.iter().map(option_json).collect::<Vec<_>>(),
                "commands": commands.iter().filter_map(command_name).collect::<Vec<_>>(),
            }),
            Tried::Login => json!({ "status": "auth_required" }),
            Tried::Failed(why) => json!({ "status": "failed", "error": why.message }),
        };
        json!({
            "agent": self.spec.name,
            "name": info.map(|info| &info.name),
            "title": info.and_then(|info| info.title.as_ref()),
            "version": info.map(|info| &info.version),
            "protocol": self.protocol(),
            "capabilities": offers,
            "auth_methods": methods.collect::<Vec<_>>(),
            "session": session,
        })
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let words = |words: &[&str]| match words.is_empty() {
            true => "none".to_owned(),
            false => words.join(", ").replace('_', " "),
        };
        let name = self.connection.info().map(|info| {
            let title = info.title.as_ref().filter(|title| **title != info.name);
            let title = title.map(|title| format!(" ({})", one_line(title))).unwrap_or_default();
            format!("{} {}{title}", one_line(&info.name), one_line(&info.version))
        });
        let mut rows = vec![
            ("agent", name.unwrap_or_else(|| "does not say what it is".into())),
            ("protocol", format!("version {}", self.protocol().replace('-', ", "))),
        ];
        let topics = ["prompts", "mcp servers", "sessions", "auth"];
        rows.extend(topics.into_iter().zip(self.offers()).map(|(topic, (_, offers))| (topic, words(&offers))));
        rows.extend(self.connection.auth_methods().iter().map(|method| ("login", auth::described(method))));
        match &self.session {
            Tried::Login => rows.push(("session", "wants a login first".into())),
            Tried::Failed(why) => rows.push(("session", format!("could not be opened: {}", one_line(&why.message)))),
            Tried::Opened { options, commands } => {
                rows.push(("session", "opened".into()));
                rows.extend(options.iter().map(|option| (topic(option), option_words(option))));
                let commands: Vec<String> =
                    commands.iter().filter_map(command_name).map(|name| format!("/{}", one_line(name))).collect();
                if !commands.is_empty() {
                    rows.push(("commands", commands.join(" ")));
                }
            }
        }
        rows
    }
}

fn topic(option: &ConfigOption) -> &'static str {
    match option.category {
        Some(ConfigCategory::Mode) => "modes",
        Some(ConfigCategory::Model) => "models",
        _ => "option",
    }
}

/// An option on one line, with a star at the value it has.
fn option_words(option: &ConfigOption) -> String {
    let values = match &option.kind {
        ConfigKind::Select(select) => {
            let value = |id: &str| format!("{}{}", one_line(id), if id == select.current.as_str() { "*" } else { "" });
            select.options.iter().map(|option| value(option.value.as_str())).collect::<Vec<_>>().join(", ")
        }
        ConfigKind::Boolean(switch) => if switch.current { "true*, false" } else { "true, false*" }.into(),
        _ => "a kind that is not known here".into(),
    };
    format!("{} = {values}", one_line(option.id.as_str()))
}

fn option_json(option: &ConfigOption) -> Value {
    let (current, values) = match &option.kind {
        ConfigKind::Select(select) => {
            let value =
                |value: &attache::model::config::ConfigValue| json!({ "id": value.value.as_str(), "name": value.name });
            (json!(select.current.as_str()), select.options.iter().map(value).collect())
        }
        ConfigKind::Boolean(switch) => (json!(switch.current), vec![json!({ "id": true }), json!({ "id": false })]),
        _ => (Value::Null, Vec::new()),
    };
    let category = option.category.as_ref().map(|category| category.as_str());
    json!({ "id": option.id.as_str(), "name": option.name, "category": category, "current": current, "values": values })
}

fn command_name(command: &AvailableCommand) -> Option<&str> {
    match command {
        AvailableCommand::Command(command) => Some(&command.name),
        _ => None,
    }
}

/// A directory of our own that goes when it is dropped.
pub(crate) struct EmptyDirectory(PathBuf);

impl EmptyDirectory {
    pub(crate) fn make() -> Result<Self, Failure> {
        let base = std::env::temp_dir();
        // Something may be left of an earlier process that had our number.
        for attempt in 0..100 {
            let path = base.join(format!("attache-probe-{}-{attempt}", std::process::id()));
            match fs::create_dir(&path).and_then(|()| private::protect(&path)) {
                Ok(()) => return Ok(EmptyDirectory(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Failure::new(Code::Agent, format!("cannot make `{}`: {error}", path.display())));
                }
            }
        }
        Err(Failure::new(Code::Agent, format!("no room for a directory in `{}`", base.display())))
    }
}

impl EmptyDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for EmptyDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
