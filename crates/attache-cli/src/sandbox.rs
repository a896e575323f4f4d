//! `attache sandbox`: what commands are confined by, in words, and for any command.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use attache_host::sandbox::{Explanation, Network, Policy, Sandbox};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{SandboxCommand, SandboxOptions};
use crate::connect;
use crate::exit::{Code, Failure};
use crate::visible::visible;

/// Does what the command line says. `run` does not return: its exit code is the command's.
pub(crate) async fn run(command: SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Explain { options, json, command } => explain(&options, json, &command),
        SandboxCommand::Run { options, command } => {
            let code = start(&options, &command).await?;
            std::process::exit(code)
        }
    }
}

/// The value that the commands of an agent in this directory are confined by.
pub(crate) fn policy(cwd: &Path, directories: &[PathBuf], network: Network) -> Result<Policy, Failure> {
    let own = [crate::paths::config()?, crate::paths::state()?];
    let mut policy = Policy::new(std::iter::once(cwd).chain(directories.iter().map(PathBuf::as_path)));
    for path in own {
        // What does not exist cannot be kept from being made, if the project is the home.
        if policy.writable.iter().any(|writable| path.starts_with(writable)) {
            let _ = crate::paths::private_directory(&path);
        }
        if !policy.hidden.contains(&path) {
            policy.hidden.push(path);
        }
    }
    policy.network = network;
    Ok(policy)
}

fn named(options: &SandboxOptions) -> Result<(PathBuf, Policy), Failure> {
    let cwd = connect::directory(options.cwd.as_deref())?;
    let directories = options.add_dir.iter().map(|path| connect::directory(Some(path)));
    let directories = directories.collect::<Result<Vec<_>, _>>()?;
    let network = if options.offline { Network::Offline } else { Network::Open };
    let mut policy = policy(&cwd, &directories, network)?;
    for socket in &options.socket {
        let found = socket.canonicalize();
        let unusable = |error| Failure::usage(format!("`{}` cannot be used: {error}", socket.display()));
        policy.sockets.push(found.map_err(unusable)?);
    }
    Ok((cwd, policy))
}

fn explain(options: &SandboxOptions, json: bool, command: &[String]) -> Result<(), Failure> {
    let (_, policy) = named(options)?;
    let made = Sandbox::new(&policy);
    let explanation = Explanation::new(&policy, made.as_ref());
    let program = command.first().map(|program| (program, find(program)));
    let text = if json {
        let mut value = serde_json::to_value(&explanation).unwrap_or_default();
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
        format!("{}{}", visible(&about), visible(&explanation.to_string()))
    };
    crate::print(&text)
}

fn find(program: &str) -> Option<PathBuf> {
    let path =
        if program.contains('/') { Some(PathBuf::from(program)) } else { crate::agents::catalog::on_path(program) };
    path.and_then(|path| path.canonicalize().ok())
}

/// Runs a command at the person's terminal to its end, and ends what it left behind. Gives the exit code.
async fn start(options: &SandboxOptions, command: &[String]) -> Result<i32, Failure> {
    let (cwd, policy) = named(options)?;
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
    child.args(args).current_dir(&cwd).stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
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
