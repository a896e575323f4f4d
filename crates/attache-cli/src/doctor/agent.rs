//! The rows about the agent that is built in: its settings, its model, its keys, its sandbox, its sessions.

use attache_agent::tools::commands::SandboxState;
use attache_agent::{Config, Keys, ModelList};

use super::{Row, directory};
use crate::agent::{self, Chosen};
use crate::paths;

pub(super) async fn look() -> Vec<Row> {
    let (Ok(config_dir), Ok(_)) = (paths::config(), paths::state()) else {
        return vec![Row::warn(SETTINGS, "cannot determine the settings directory", "set HOME")];
    };
    let mut rows = Vec::new();
    match agent::settings(None) {
        Ok((config, chosen)) => {
            rows.push(settings(&config));
            rows.push(model(&config, chosen).await);
            rows.push(keys(&Keys::new(&config_dir)));
            rows.push(commands(&config));
            rows.extend(writable(&config));
            rows.push(directory("sessions", Ok(config.sessions_dir())));
        }
        Err(failure) => {
            let (what, hint) = in_two(&failure.message);
            rows.push(Row::fail(SETTINGS, what, hint));
            rows.push(keys(&Keys::new(&config_dir)));
        }
    }
    rows
}

const SETTINGS: &str = "agent.toml";

fn settings(config: &Config) -> Row {
    match config.config_dir.join(SETTINGS).exists() {
        true => Row::ok(SETTINGS, "in order"),
        false => Row::ok(SETTINGS, "not there; the agent works without it"),
    }
}

/// The model that the agent would use now, and why.
async fn model(config: &Config, chosen: Option<Chosen>) -> Row {
    const CHECK: &str = "model";
    let models = match ModelList::find(config).await {
        Ok(models) => models,
        Err(error) => {
            let (what, hint) = in_two(&error.message);
            return Row::fail(CHECK, what, hint);
        }
    };
    let why = chosen.map_or_else(|| models.why().to_owned(), |chosen| chosen.to_string());
    let found = format!("{} ({why})", models.first());
    match models.check_key() {
        Ok(()) if chosen.is_none() && config.model_id("offline").is_ok_and(|id| id == models.first()) => {
            Row { hint: Some("`attache setup` gives it a language model".into()), ..Row::ok(CHECK, found) }
        }
        Ok(()) => Row::ok(CHECK, found),
        Err(error) => {
            let (what, hint) = in_two(&error.message);
            Row::fail(CHECK, format!("{found}: {what}"), hint)
        }
    }
}

fn keys(keys: &Keys) -> Row {
    const CHECK: &str = "keys";
    match keys.kept() {
        Ok(kept) if kept.is_empty() => Row::ok(CHECK, "none is kept"),
        Ok(kept) => Row::ok(CHECK, format!("{}, in a file that only you can read", kept.join(", "))),
        Err(error) => {
            let message = error.to_string();
            let (what, hint) = in_two(&message);
            Row::fail(CHECK, what, hint)
        }
    }
}

/// How the agent's commands would be confined in this directory.
fn commands(config: &Config) -> Row {
    const CHECK: &str = "commands";
    let roots: Vec<_> = std::env::current_dir().into_iter().collect();
    let hidden = [config.config_dir.clone(), config.state_dir.clone()];
    let state = SandboxState::of(config.sandbox, &roots, &hidden);
    let found = format!("of the agent: {}", state.to_string().split("\nhint: ").next().unwrap_or_default());
    match state {
        SandboxState::Off => {
            Row::warn(CHECK, "the agent's commands are not confined", "`sandbox = \"on\"` in agent.toml")
        }
        SandboxState::On { offline: false, .. } => Row::ok(CHECK, "those of the agent run in a sandbox"),
        SandboxState::On { offline: true, .. } => {
            Row::ok(CHECK, "those of the agent run in a sandbox without a network")
        }
        SandboxState::Unavailable(_) => {
            Row::warn(CHECK, "the agent's commands run without a sandbox", "a kernel that can enforce one")
        }
        SandboxState::Refused(_) => {
            Row::fail(CHECK, found, "a kernel that can enforce a sandbox, or another `sandbox` in agent.toml")
        }
    }
}

/// What commands may change besides the project, by `[commands] writable`. What is wrong with it in itself is told when
/// agent.toml is read; here are those that open more than they seem to.
fn writable(config: &Config) -> Option<Row> {
    const CHECK: &str = "writable";
    let home = paths::home().and_then(|home| paths::real(&home).ok());
    let is_too_wide = |path: &&std::path::PathBuf| home.as_ref().is_some_and(|home| home.starts_with(path.as_path()));
    let names = |paths: Vec<&std::path::PathBuf>| {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<_> = config.writable.iter().collect();
    match (all.is_empty(), config.writable.iter().filter(is_too_wide).collect::<Vec<_>>()) {
        (true, _) => None,
        (false, wide) if !wide.is_empty() => {
            let what = format!("commands may change {}, and so your whole home directory", names(wide));
            Some(Row::warn(CHECK, what, "name the directories that they need in `[commands] writable`"))
        }
        (false, _) => Some(Row::ok(CHECK, format!("commands may change {} as well", names(all)))),
    }
}

/// A message and its hint.
fn in_two(message: &str) -> (&str, &str) {
    message.split_once("\nhint: ").unwrap_or((message, "until then the agent does not start"))
}
