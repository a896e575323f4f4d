//! `attache sandbox`: what commands are confined by, in words, and for any command.

#[cfg_attr(not(unix), path = "sandbox/command_windows.rs")]
mod command;

use std::path::{Path, PathBuf};

use attache_agent::{Config, SandboxMode};
use attache_host::environment;
use attache_host::sandbox::{
    Explanation, LayerLimits, Network, Policy, ProjectLayers, Sandbox, clear_layers, look_after_layers,
};

use crate::cli::{SandboxCommand, SandboxOptions};
use crate::connect;
use crate::exit::{Code, Failure};
use crate::visible::visible;

/// Does what the command line says. `run` does not return: its exit code is the command's.
pub(crate) async fn run(command: SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Explain { options, json, command } => explain(&options, json, &command),
        SandboxCommand::Run { options, command } => {
            let code = command::start(&options, &command).await?;
            std::process::exit(code)
        }
        SandboxCommand::Clear { cwd, all } => clear(cwd.as_deref(), all),
    }
}

/// Removes private layers.
fn clear(cwd: Option<&Path>, all: bool) -> Result<(), Failure> {
    let project = if all { None } else { Some(connect::directory(cwd)?) };
    let cleared = clear_layers(&crate::paths::state()?, project.as_deref());
    let cleared = cleared.map_err(|error| Failure::usage(format!("cannot remove the layers: {error}")))?;
    let mib = cleared.bytes.div_ceil(1 << 20);
    crate::print(&match cleared.projects {
        0 if cleared.busy == 0 => "nothing to remove\n".to_owned(),
        0 => String::new(),
        1 => format!("removed the layers of 1 project, {mib} MiB\n"),
        projects => format!("removed the layers of {projects} projects, {mib} MiB\n"),
    })?;
    match cleared.busy {
        0 => Ok(()),
        busy => Err(Failure::new(Code::Agent, format!("left alone: layers of {busy} projects are in use"))),
    }
}

/// The value that the commands of an agent in this directory are confined by.
pub(crate) fn policy(cwd: &Path, directories: &[PathBuf], network: Network) -> Result<Policy, Failure> {
    let own = [crate::paths::config()?, crate::paths::state()?];
    let mut policy = Policy::new(std::iter::once(cwd).chain(directories.iter().map(PathBuf::as_path)));
    policy.hide_own(&own);
    policy.network = network;
    Ok(policy)
}

/// A sandbox as it was asked for, with what the settings of the built-in agent say about its commands.
struct Named {
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing runs in a sandbox there"))]
    cwd: PathBuf,
    policy: Policy,
    /// Variables that are passed besides the usual ones, by name.
    pass_env: Vec<String>,
    /// Whether the built-in agent would confine its commands.
    is_on: bool,
    /// Why a command of the agent is not confined as strictly as one that runs unasked has to be.
    why_asked: Option<String>,
    /// How much room private layers may take.
    layer_limits: LayerLimits,
    /// Held as long as something runs.
    _layers: Option<ProjectLayers>,
}

fn named(options: &SandboxOptions) -> Result<Named, Failure> {
    let cwd = connect::directory(options.cwd.as_deref())?;
    let directories = options.add_dir.iter().map(|path| connect::directory(Some(path)));
    let directories = directories.collect::<Result<Vec<_>, _>>()?;
    let config = match crate::agent::settings(None) {
        Ok((config, _)) => config,
        // Inside of a sandbox they are hidden, and cannot make this one any wider than that.
        Err(_) if Sandbox::is_around_us() => Config::new(crate::paths::config()?, crate::paths::state()?),
        Err(failure) => return Err(failure),
    };
    let is_offline = options.offline || config.sandbox == SandboxMode::Offline;
    let network = if is_offline { Network::Offline } else { Network::Open };
    let own = [crate::paths::config()?, crate::paths::state()?];
    let layers = ProjectLayers::take(&own[1], &cwd, false);
    if let Ok(layers) = &layers {
        look_after_layers(&own[1], layers.temporary(), config.layer_limits);
    }
    let roots: Vec<PathBuf> = std::iter::once(&cwd).chain(&directories).cloned().collect();
    let unasked = match &layers {
        Ok(layers) => Policy::unasked(&roots, &config.writable, &own, layers).map_err(|error| error.to_string()),
        Err(error) => Err(format!("the layers of the project cannot be used: {error}")),
    };
    let why_asked = match &unasked {
        _ if config.sandbox == SandboxMode::Off => Some("the sandbox is off".to_owned()),
        Err(why) => Some(why.clone()),
        Ok(policy) => match Sandbox::new(policy) {
            Err(error) => Some(error.to_string()),
            Ok(sandbox) if sandbox.is_whole() => None,
            Ok(sandbox) => Some(sandbox.gaps().first().cloned().unwrap_or_else(|| "there are no namespaces".into())),
        },
    };
    let mut policy = match (options.unasked, unasked) {
        (true, Ok(unasked)) => unasked,
        (true, Err(why)) => return Err(Failure::usage(why)),
        (false, _) => {
            let mut policy = policy(&cwd, &directories, network)?;
            for path in &config.writable {
                policy.allow_writing(path);
            }
            if let Ok(layers) = &layers {
                policy.use_layers(layers);
            }
            policy
        }
    };
    for socket in &options.socket {
        let found = socket.canonicalize();
        let unusable = |error| Failure::usage(format!("`{}` cannot be used: {error}", socket.display()));
        policy.sockets.push(found.map_err(unusable)?);
    }
    let pass_env = [&config.pass_env[..], &options.env].concat();
    let is_on = config.sandbox != SandboxMode::Off;
    let layer_limits = config.layer_limits;
    Ok(Named { cwd, policy, pass_env, is_on, why_asked, layer_limits, _layers: layers.ok() })
}

fn explain(options: &SandboxOptions, json: bool, command: &[String]) -> Result<(), Failure> {
    let Named { policy, pass_env, is_on, why_asked, layer_limits, .. } = named(options)?;
    let made = Sandbox::new(&policy);
    let mut explanation = Explanation::new(&policy, made.as_ref());
    let set = std::mem::take(&mut explanation.variables);
    explanation.variables =
        environment::inherited(&pass_env).into_iter().filter_map(|(name, _)| name.into_string().ok()).collect();
    explanation.variables.sort();
    explanation.variables.extend(set.into_iter().filter(|set| {
        let name = set.split('=').next().unwrap_or_default();
        !environment::is_passed(name, &pass_env) || std::env::var_os(name).is_none()
    }));
    let program = command.first().map(|program| (program, find(program)));
    let text = if json {
        let mut value = serde_json::to_value(&explanation).unwrap_or_default();
        value["unasked"] = why_asked.is_none().into();
        value["why_asked"] = why_asked.into();
        if let Some((program, found)) = &program {
            value["program"] = program.as_str().into();
            value["found"] = found.as_ref().map(|path| path.display().to_string()).into();
            value["can_start"] = found.as_ref().is_some_and(|path| policy.may_read(path)).into();
        }
        format!("{}\n", crate::visible::json(&value))
    } else {
        let about = match &program {
            None => String::new(),
            Some((program, None)) => format!("`{program}` is not found.\n\n"),
            Some((program, Some(path))) => {
                let is =
                    if policy.may_read(path) { "and can be started" } else { "which is hidden: it cannot be started" };
                format!("`{program}` is `{}`, {is}.\n\n", path.display())
            }
        };
        let off = match is_on {
            true => "",
            false => {
                "`sandbox = \"off\"` in agent.toml: the built-in agent does not confine its commands. With `on` they would \
                 have this.\n\n"
            }
        };
        let asking = match &why_asked {
            None if options.unasked => "Commands that run unasked in mode `code` have this.\n\n".to_owned(),
            None => {
                "In mode `code`, commands run unasked in a stricter one: `attache sandbox explain --unasked`. Those \
                     that a rule or you allow have this.\n\n"
                    .to_owned()
            }
            Some(why) => format!("Every command is asked about, also in mode `code`: {why}\n\n"),
        };
        let limits = match policy.layers.is_empty() {
            true => String::new(),
            false => format!("\nPrivate layers are removed when they take more than {}.\n", layer_words(layer_limits)),
        };
        format!("{off}{}{}{}{limits}", visible(&asking), visible(&about), visible(&explanation.to_string()))
    };
    crate::print(&text)
}

/// Limits of layers, for people.
pub(crate) fn layer_words(limits: LayerLimits) -> String {
    format!("{} MiB in one project, or {} MiB in all", limits.project >> 20, limits.all >> 20)
}

fn find(program: &str) -> Option<PathBuf> {
    let path = if crate::paths::has_directory(program) {
        Some(PathBuf::from(program))
    } else {
        crate::agents::catalog::on_path(program)
    };
    path.and_then(|path| path.canonicalize().ok())
}
