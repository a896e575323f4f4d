//! `attache sandbox run`: a command at the person's terminal, confined.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use attache_host::environment;
use attache_host::sandbox::Sandbox;
use tokio::signal::unix::{SignalKind, signal};

use super::{Named, named};
use crate::cli::SandboxOptions;
use crate::exit::{Code, Failure};
use crate::visible::visible;

/// Said to a person whose command failed, perhaps because of the sandbox.
const HINT: &str = "hint: if the sandbox was in the way, `--add-dir DIR`, or `[commands] writable` in agent.toml, makes more \
                    writable; `attache sandbox explain` tells what is";

/// Runs a command at the person's terminal to its end, and ends what it left behind. Gives the exit code.
pub(super) async fn start(options: &SandboxOptions, command: &[String]) -> Result<i32, Failure> {
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
