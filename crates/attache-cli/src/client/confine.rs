//! What confines an agent and the commands that we run for it.

use std::path::{Path, PathBuf};

use attache_agent::SandboxMode;
use attache_host::sandbox::{self, Sandbox};

use crate::agents::AgentSpec;
use crate::cli::SandboxKind;
use crate::event::{self, Level};
use crate::exit::Failure;

/// What confines the agent, and what confines the commands that we run for it.
pub(crate) struct Confinement {
    pub(crate) agent: Option<Sandbox>,
    pub(crate) commands: Option<Sandbox>,
    /// Our own agent confines its commands as well, and tells what is not enforced.
    tells_itself: bool,
    /// For the result of the run.
    pub(crate) state: event::Sandbox,
}

/// Makes what is to confine the agent and its commands.
fn sandbox(kind: SandboxKind, spec: &AgentSpec, cwd: &Path, directories: &[PathBuf]) -> Result<Confinement, Failure> {
    let network = match kind {
        SandboxKind::Offline => sandbox::Network::Offline,
        SandboxKind::On | SandboxKind::Off => sandbox::Network::Open,
    };
    let make = |policy: &sandbox::Policy| {
        Sandbox::new(policy).map_err(|error| Failure::usage(format!("cannot confine the agent: {error}")))
    };
    let mut commands = crate::sandbox::policy(cwd, directories, network)?;
    let mut policy = sandbox::Policy { ..commands.clone() };
    for path in &spec.state {
        // A sandbox holds what is there, and where an agent never ran nothing is. A file is its own to make.
        let is_file = path.extension().is_some_and(|extension| extension == "json");
        if path.exists() || !is_file {
            let made = if path.exists() { Ok(()) } else { crate::paths::private_directory(path) };
            made.map_err(|error| Failure::usage(format!("cannot make `{}`: {error}", path.display())))?;
            policy.writable.push(path.clone());
        }
    }
    let is_ours = spec.is_built_in || spec.is_own;
    if is_ours {
        let (config, _) = crate::agent::settings(spec.env.get(crate::agent::MODEL))?;
        for path in &config.writable {
            commands.allow_writing(path);
            policy.allow_writing(path);
        }
        // It reads its settings, rules and trust, and writes its sessions. Records of runs and other agents' keys are
        // none of its business.
        let own = [crate::paths::config()?, crate::paths::state()?];
        policy.hidden.retain(|hidden| !own.contains(hidden));
        let others = [own[0].join("agents.toml"), own[0].join("remote"), own[0].join("serve")];
        policy.hidden.extend(others.into_iter().chain([own[1].join("runs"), own[1].join("serve")]));
        policy.protected.extend(own);
    }
    let agent = make(&policy)?;
    // What the agent keeps is its own: a command must not write the rules that the next one is judged by.
    let commands = if is_ours { make(&commands)? } else { agent.clone() };
    let state = match kind {
        SandboxKind::Offline => event::SandboxState::Offline,
        SandboxKind::On | SandboxKind::Off => event::SandboxState::On,
    };
    let state = event::Sandbox { state, gaps: agent.gaps().to_vec() };
    Ok(Confinement { agent: Some(agent), commands: Some(commands), tells_itself: false, state })
}

/// How our own agent confines its commands: as it is told, else by its settings.
fn own_mode(set: Option<&str>, spec: &AgentSpec) -> Result<SandboxMode, Failure> {
    match set {
        Some("off") => Ok(SandboxMode::Off),
        Some("offline") => Ok(SandboxMode::Offline),
        Some(_) => Ok(SandboxMode::On),
        None => Ok(crate::agent::settings(spec.env.get(crate::agent::MODEL))?.0.sandbox),
    }
}

/// What our own agent confines its commands by, for those that it runs in our terminals.
fn own_commands(
    set: Option<&str>,
    spec: &AgentSpec,
    cwd: &Path,
    directories: &[PathBuf],
) -> Result<Confinement, Failure> {
    let (config, _) = crate::agent::settings(spec.env.get(crate::agent::MODEL))?;
    let (network, state) = match own_mode(set, spec)? {
        SandboxMode::Off => return Ok(Confinement::none()),
        SandboxMode::Offline => (sandbox::Network::Offline, event::SandboxState::Offline),
        SandboxMode::On => (sandbox::Network::Open, event::SandboxState::On),
    };
    if let Err(error) = Sandbox::check() {
        // The agent says so at the beginning of its turn.
        let state = event::Sandbox { state: event::SandboxState::Unavailable, gaps: vec![error.to_string()] };
        return Ok(Confinement { state, ..Confinement::none() });
    }
    let mut policy = crate::sandbox::policy(cwd, directories, network)?;
    for path in &config.writable {
        policy.allow_writing(path);
    }
    let commands = Sandbox::best_effort(&policy);
    let commands = commands.map_err(|error| Failure::usage(format!("cannot confine the agent's commands: {error}")))?;
    let state = event::Sandbox { state, gaps: commands.gaps().to_vec() };
    Ok(Confinement { agent: None, commands: Some(commands), tells_itself: true, state })
}

impl Confinement {
    /// Makes it. Never a weaker one than was asked for by `--sandbox`. `set` is what the built-in agent is told about its
    /// commands, in place of its settings.
    pub(crate) fn new(
        kind: Option<SandboxKind>,
        set: Option<&str>,
        spec: &AgentSpec,
        cwd: &Path,
        directories: &[PathBuf],
    ) -> Result<Self, Failure> {
        match kind.filter(|kind| *kind != SandboxKind::Off) {
            Some(kind) => {
                let confinement = sandbox(kind, spec, cwd, directories)?;
                let tells_itself = spec.is_built_in && own_mode(set, spec)? != SandboxMode::Off;
                Ok(Confinement { tells_itself, ..confinement })
            }
            None if spec.is_built_in => own_commands(set, spec, cwd, directories),
            None => Ok(Confinement::none()),
        }
    }

    fn none() -> Self {
        let state = event::Sandbox { state: event::SandboxState::Off, gaps: Vec::new() };
        Confinement { agent: None, commands: None, tells_itself: false, state }
    }

    /// What a person should know before anything runs.
    pub(crate) fn notice(&self) -> Option<event::Event> {
        let is_to_be_told = self.agent.is_some() && !self.tells_itself && !self.state.gaps.is_empty();
        let text =
            "the sandbox does not enforce all of its rules here: `attache sandbox explain` lists what is missing";
        is_to_be_told.then(|| event::Event::notice(Level::Warning, text))
    }
}
