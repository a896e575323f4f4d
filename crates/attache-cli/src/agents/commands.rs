//! The commands of `attache agents`.

use attache_host::visible::visible as visible_strictly;
use serde::Serialize;

use super::catalog::{self, Installed, ROWS};
use super::config::{self, Config, Entry, NAME_RULE};
use super::registry::Registry;
use super::{BUILT_IN, built_in, find, from_anywhere, is_known, probe, resolve};
use crate::cli::{Agents, NamedAgent};
use crate::connect::{Opening, here, until_interrupted};
use crate::exit::{Code, Failure};
use crate::project::Project;
use crate::visible::{self, one_line};
use crate::{auth, connect, remote, tty};

/// Does what one of the commands asks for.
pub(crate) async fn run(command: Agents) -> Result<(), Failure> {
    match command {
        Agents::List { json, registry: Some(place) } => list_registry(&place, json).await,
        Agents::List { json, registry: None } => list(json),
        Agents::Refresh { registry } => refresh(registry.as_deref()).await,
        Agents::Add { name, command, env, registry, url, fingerprint, dir, default, yes } => {
            let command = match url {
                Some(url) => remote::command(&url, fingerprint.as_deref(), dir.as_deref())?,
                None => command,
            };
            let entry = entry(&name, command, registry.as_deref(), default && env.is_empty()).await?;
            if let Some(entry) = entry.as_ref().filter(|_| registry.is_some()) {
                until_interrupted(approve(&name, entry, yes)).await?;
            }
            add(&name, entry, env, default)
        }
        Agents::Remove { name } => remove(&name),
        Agents::Show { name, json } => show(&name, json),
        Agents::Login { agent } => until_interrupted(login(&agent)).await,
        Agents::Logout { agent } => until_interrupted(logout(&agent)).await,
        Agents::Probe { agent, json } => until_interrupted(probe::probe(&agent, json)).await,
    }
}

/// An agent that can be named.
#[derive(Serialize)]
struct Known<'a> {
    name: &'a str,
    source: &'static str,
    default: bool,
    installed: Installed,
    command: Vec<String>,
    /// Names only: the values are often secrets.
    env: Vec<&'a str>,
    description: Option<&'a str>,
}

fn known(config: &Config) -> Vec<Known<'_>> {
    let is_default = |name: &str| config.default.as_deref().unwrap_or(BUILT_IN) == name;
    let ourselves = built_in().ok().filter(|_| !config.agents.contains_key(BUILT_IN)).map(|spec| Known {
        name: BUILT_IN,
        source: "built_in",
        default: is_default(BUILT_IN),
        installed: Installed::Yes,
        command: spec.words,
        env: Vec::new(),
        description: Some("The coding agent of this program"),
    });
    let own = config.agents.iter().map(|(name, entry)| Known {
        name,
        source: "own",
        default: is_default(name),
        installed: catalog::installed(&entry.command),
        command: entry.command.clone(),
        env: entry.env.keys().map(String::as_str).collect(),
        description: entry.description.as_deref(),
    });
    let known = ROWS.iter().filter(|row| !config.agents.contains_key(row.name)).map(|row| {
        let (command, installed) = row.command();
        let (name, description) = (row.name, Some(row.title));
        Known { name, source: "built_in", default: is_default(name), installed, command, env: Vec::new(), description }
    });
    ourselves.into_iter().chain(own).chain(known).collect()
}

fn list(json: bool) -> Result<(), Failure> {
    let config = Config::read()?;
    let known = known(&config);
    if json {
        return print_lines(known.iter().map(visible::json));
    }
    let rows = known.iter().map(|agent| {
        let mark = if agent.default { "*" } else { "" };
        let command = attache::process::Command::from(agent.command.clone()).to_string();
        [format!("{}{mark}", agent.name), installed_word(agent.installed).into(), command]
    });
    print_table(&["NAME", "INSTALLED", "COMMAND"], &rows.collect::<Vec<_>>())
}

fn installed_word(installed: Installed) -> &'static str {
    match installed {
        Installed::Yes => "yes",
        Installed::OnDemand => "on demand",
        Installed::No => "no",
    }
}

async fn list_registry(place: &str, json: bool) -> Result<(), Failure> {
    let registry = Registry::read(place).await?;
    if registry.skipped > 0 {
        eprintln!("note: skipped {} invalid registry entries", registry.skipped);
    }
    if json {
        return print_lines(registry.agents.iter().map(|agent| {
            visible::json(&serde_json::json!({
                "id": agent.id, "name": agent.name, "version": agent.version,
                "description": agent.description, "ways": agent.ways(),
            }))
        }));
    }
    let rows = registry.agents.iter().map(|agent| {
        let ways = agent.ways().join(", ");
        [agent.id.clone(), one_line(&agent.version), ways, one_line(&agent.name), one_line(&agent.description)]
    });
    print_table(&["NAME", "VERSION", "BY", "TITLE", "DESCRIPTION"], &rows.collect::<Vec<_>>())
}

/// Fetches a registry on purpose, keeps a copy, and tells which agents of agents.toml it has in another version.
async fn refresh(place: Option<&str>) -> Result<(), Failure> {
    let (registry, from) = Registry::refresh(place).await?;
    eprintln!("kept a copy of {}: {} agents", one_line(&from), registry.agents.len());
    for (name, entry) in Config::read()?.agents {
        let Some(listed) = registry.agents.iter().find(|agent| agent.id == name) else { continue };
        let newer = listed.entry().ok().filter(|listed| catalog::is_other_version(&entry.command, &listed.command));
        if newer.is_some() {
            let version = one_line(&listed.version);
            eprintln!("`{name}` is in agents.toml in another version than {version}");
            eprintln!("hint: `attache agents add {name} --registry` takes that one");
        }
    }
    Ok(())
}

/// How the agent that is to be added is started; nothing if only one that is known is to become the default.
async fn entry(
    name: &str,
    command: Vec<String>,
    registry: Option<&str>,
    only_default: bool,
) -> Result<Option<Entry>, Failure> {
    if !config::is_name(name) {
        return Err(Failure::usage(format!("`{}`: {NAME_RULE}", one_line(name))));
    }
    match (registry, command.is_empty()) {
        (Some(place), _) => Ok(Some(Registry::read(place).await?.find(name)?.entry()?)),
        (None, false) => Ok(Some(Entry { command: from_anywhere(&command)?, ..Entry::default() })),
        (None, true) if only_default => Ok(None),
        (None, true) => {
            let hint = format!("`attache agents add {name} -- COMMAND`, or take it from a registry with `--registry`");
            Err(Failure::usage(format!("missing command for agent `{name}`\nhint: {hint}")))
        }
    }
}

/// Shows what a registry would have us start, to the last word and variable, and asks whether to keep it. It is somebody
/// else's, and will run with all that the person may do.
async fn approve(name: &str, entry: &Entry, yes: bool) -> Result<(), Failure> {
    eprintln!("the registry would start `{name}` like this:");
    for (index, word) in entry.command.iter().enumerate() {
        eprintln!("  {:<10}{}", if index == 0 { "program" } else { "argument" }, visible_strictly(word));
    }
    for (variable, value) in &entry.env {
        eprintln!("  {:<10}{}={}", "variable", visible_strictly(variable), visible_strictly(value));
    }
    match tty::confirm("Keep it in agents.toml? [y] yes   [N] no: ", yes).await? {
        true => Ok(()),
        false => Err(Failure::new(Code::Denied, format!("`{name}` is not added"))),
    }
}

fn add(name: &str, mut entry: Option<Entry>, env: Vec<(String, String)>, default: bool) -> Result<(), Failure> {
    if let Some(entry) = &mut entry {
        entry.env.extend(env);
    } else {
        find(name, &Config::read()?)?;
    }
    let replaced = config::edit(|document| {
        if default {
            document["default"] = toml_edit::value(name);
        }
        entry.as_ref().map(|entry| config::put(document, name, entry)).transpose()
    })?;
    let path = config::path()?;
    match (&entry, replaced) {
        (Some(entry), Some(replaced)) => {
            let verb = if replaced { "replaced" } else { "added" };
            let command = attache::process::Command::from(entry.command.clone());
            eprintln!("{verb} `{name}` in {}: {command}", path.display());
            if replaced {
                eprintln!("note: rules for the agent `{name}` apply to this command from now on");
            }
            if catalog::installed(&entry.command) == Installed::No {
                eprintln!("note: its program is not there yet");
            }
        }
        _ => eprintln!("`{name}` is the default now, in {}", path.display()),
    }
    Ok(())
}

fn remove(name: &str) -> Result<(), Failure> {
    // Looked at first, so that nothing is written when there is nothing to remove.
    if !Config::read()?.agents.contains_key(name) {
        let why = if is_known(name) { "it is built in" } else { "`attache agents list` has all of them" };
        return Err(Failure::new(Code::NotFound, format!("no agent `{}` in agents.toml\nhint: {why}", one_line(name))));
    }
    let stays = is_known(name);
    let was_default = config::edit(|document| {
        config::take(document, name);
        let is_default = document.get("default").and_then(|value| value.as_str()) == Some(name);
        if is_default && !stays {
            document.remove("default");
        }
        Ok(is_default)
    })?;
    eprintln!("removed `{name}`");
    match (stays, was_default) {
        (true, _) => eprintln!("note: the built-in agent of that name is used from now on"),
        (false, true) => eprintln!("note: it was the default; `{BUILT_IN}` is now"),
        (false, false) => {}
    }
    Ok(())
}

fn show(name: &str, json: bool) -> Result<(), Failure> {
    let config = Config::read()?;
    let spec = find(name, &config)?;
    let known = known(&config).into_iter().find(|agent| agent.name == name);
    let known = known.ok_or_else(|| Failure::new(Code::NotFound, format!("no agent `{name}`")))?;
    let state: Vec<String> = spec.state.iter().map(|path| path.display().to_string()).collect();
    if json {
        let mut object = serde_json::to_value(&known).unwrap_or_default();
        object["state"] = state.into();
        object["login"] = spec.login_hint.into();
        object["install"] = spec.install_hint.into();
        return print_lines([visible::json(&object)].into_iter());
    }
    let source = if known.source == "own" { "agents.toml" } else { "built in" };
    let mut rows = vec![
        ("name", format!("{name}{}", if known.default { " (default)" } else { "" })),
        ("from", source.into()),
        ("command", spec.command().to_string()),
        ("installed", installed_word(known.installed).into()),
    ];
    rows.extend(known.description.map(|text| ("what", one_line(text))));
    rows.extend(known.env.iter().map(|variable| ("env", format!("{}=…", one_line(variable)))));
    rows.extend(state.iter().map(|path| ("state", one_line(path))));
    rows.extend(spec.login_hint.map(|text| ("login", text.into())));
    rows.extend(spec.install_hint.map(|text| ("install", text.into())));
    print_pairs(&rows)
}

/// Logs in to an agent.
pub(crate) async fn login(agent: &NamedAgent) -> Result<(), Failure> {
    let mut spec = resolve(agent.name.as_deref(), &agent.command, &Project::here()?)?;
    if let (Some(url), None) = (remote::url_of(&spec.words), &agent.auth) {
        return remote::login(url).await;
    }
    spec.pass_env.extend_from_slice(&agent.env);
    spec.tell_download();
    let cwd = here()?;
    let opening = Opening::new(&spec, &cwd, agent.protocol);
    let connection = connect::start_patiently(connect::client(), &opening).await?;
    let method = auth::choose(&connection, &spec, agent.auth.as_deref()).await?;
    if let Some(connection) = auth::authenticate(connection, &opening, &method).await? {
        connection.shutdown().await;
    }
    eprintln!("logged in to `{}`", spec.name);
    Ok(())
}

/// Logs out of an agent.
pub(crate) async fn logout(agent: &NamedAgent) -> Result<(), Failure> {
    let mut spec = resolve(agent.name.as_deref(), &agent.command, &Project::here()?)?;
    if let Some(url) = remote::url_of(&spec.words) {
        return remote::logout(url);
    }
    spec.pass_env.extend_from_slice(&agent.env);
    spec.tell_download();
    let cwd = here()?;
    let opening = Opening::new(&spec, &cwd, agent.protocol);
    let connection = connect::start_patiently(connect::client(), &opening).await?;
    let done = auth::logout(&connection, &spec).await;
    connection.shutdown().await;
    done?;
    eprintln!("logged out of `{}`", spec.name);
    Ok(())
}

/// Prints lines of data. A reader who has seen enough is no failure.
pub(crate) fn print_lines(lines: impl Iterator<Item = String>) -> Result<(), Failure> {
    crate::print(&lines.map(|line| line + "\n").collect::<String>())
}

/// Prints what belongs together on a line each, with a word before it.
pub(crate) fn print_pairs(rows: &[(&str, String)]) -> Result<(), Failure> {
    print_lines(rows.iter().map(|(word, text)| format!("{word:<12}{text}")))
}

fn print_table<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> Result<(), Failure> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        padded.collect::<String>().trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    print_lines([line(*head)].into_iter().chain(rows))
}
