//! `attache sandbox`: what commands are confined by, in words, and for any command.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use attache_agent::{Config, SandboxMode};
use attache_host::environment;
use attache_host::sandbox::{
    Explanation, LayerLimits, Network, Policy, ProjectLayers, Sandbox, clear_layers, look_after_layers,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{SandboxCommand, SandboxOptions};
use crate::connect;
use crate::exit::{Code, Failure};
use crate::visible::visible;

/// Said to a person whose command failed, perhaps because of the sandbox.
const HINT: &str = "hint: if the sandbox was in the way, `--add-dir DIR`, or `[commands] writable` in agent.toml, makes more \
                    writable; `attache sandbox explain` tells what is";

/// Does what the command line says. `run` does not return: its exit code is the command's.
pub(crate) async fn run(command: SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Explain { options, json, command } => explain(&options, json, &command),
        SandboxCommand::Run { options, command } => {
            let code = start(&options, &command).await?;
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
    let path =
        if program.contains('/') { Some(PathBuf::from(program)) } else { crate::agents::catalog::on_path(program) };
    path.and_then(|path| path.canonicalize().ok())
}

/// Runs a command at the person's terminal to its end, and ends what it left behind. Gives the exit code.
async fn start(options: &SandboxOptions, command: &[String]) -> Result<i32, Failure> {
    let Named { cwd, policy, pass_env, _layers, .. } = named(options)?;
    let cannot = |error| Failure::usage(format!("cannot confine the command: {error}"));
    let sandbox = Sandbox::new(&policy).map_err(cannot)?;
    let [program, args @ ..] = command else {
        return Err(Failure::usage("missing command\nhint: `attache sandbox run -- make test`"));
    };
    for gap in sandbox.gaps() {
        eprintln!("warning: not enforced here: {}", visible(gap));
    }
    let listen = |kind| signal(kind).map_err(|error| Failure::usage(format!("cannot wait for signals: {error}")));
    // The terminal sends the first two to the command as well, which decides what comes of them.
    let (mut interrupt, mut quit) = (listen(SignalKind::interrupt())?, listen(SignalKind::quit())?);
    let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    let mut child = tokio::process::Command::new(program);
    child.env_clear().envs(policy.variables.iter().map(|(name, value)| (name, value)));
    child.envs(environment::inherited(&pass_env)).args(args).current_dir(&cwd);
    child.envs(policy.private_variables.iter().map(|(name, value)| (name, value)));
    child.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    tree::keep(&mut child, sandbox);
    let mut child = match child.spawn() {
        Ok(child) => child,
        Err(error) => {
            let (code, what) = match error.kind() {
                io::ErrorKind::NotFound
                    if !program.contains('/') && crate::agents::catalog::on_path(program).is_none() =>
                {
                    (127, "not found on PATH".into())
                }
                io::ErrorKind::NotFound => {
                    (127, "not found\nhint: it may be hidden, see `attache sandbox explain`".into())
                }
                io::ErrorKind::PermissionDenied => (126, "not executable in the sandbox".to_owned()),
                _ => (126, error.to_string()),
            };
            eprintln!("error: `{}`: {what}", visible(program));
            return Ok(code);
        }
    };
    let code = loop {
        tokio::select! {
            status = child.wait() => break match status {
                Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
                Err(error) => return Err(Failure::new(Code::Died, format!("the command was lost: {error}"))),
            },
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
            _ = terminate.recv() => break i32::from(Code::Terminated as u8),
            _ = hangup.recv() => break 129,
        }
    };
    tree::end_the_rest().await;
    if (1..126).contains(&code) && io::stderr().is_terminal() {
        eprintln!("{HINT}");
    }
    Ok(code)
}

/// The command with all that it starts.
#[cfg(target_os = "linux")]
mod tree {
    use std::io;
    use std::time::{Duration, Instant};

    use attache_host::sandbox::Sandbox;

    /// How long what a command left behind may take to be gone.
    const END: Duration = Duration::from_secs(5);

    /// Confines the command, and makes us the parent of whatever it leaves behind. It has the terminal, so it has no
    /// keeper: if we are killed, the command ends, and what it started in the background may not.
    pub(super) fn keep(command: &mut tokio::process::Command, sandbox: Sandbox) {
        let us = std::process::id();
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        let hook = move || {
            // SAFETY: system calls on numbers, which may be made between fork and exec.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // If we ended before that call, no signal will come.
                if libc::getppid() as u32 != us {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            sandbox.enter()
        };
        // SAFETY: the hook only makes system calls.
        unsafe { command.pre_exec(hook) };
    }

    /// Ends all that is left of the command: its orphans are our children.
    pub(super) async fn end_the_rest() {
        let began = Instant::now();
        while began.elapsed() < END {
            for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
                let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
                for child in children.split_whitespace().filter_map(|pid| pid.parse::<libc::pid_t>().ok()) {
                    // SAFETY: sends a signal to a child of ours, whose id is its own until we have waited for it.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                }
            }
            // SAFETY: asks whether anybody has ended, without waiting.
            let reap = || unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
            let left = loop {
                match reap() {
                    1.. => {}
                    left => break left,
                }
            };
            // Nobody is left, or somebody is who has not ended yet.
            if left == -1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// There is no sandbox, so nothing ever runs in one.
#[cfg(not(target_os = "linux"))]
mod tree {
    pub(super) fn keep(_: &mut tokio::process::Command, _: attache_host::sandbox::Sandbox) {}

    pub(super) async fn end_the_rest() {}
}
