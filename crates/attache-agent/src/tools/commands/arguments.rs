//! What a model wants of a command, from the arguments of its call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_host::paths::canonicalize;

use super::{CommandWork, DEFAULT_SECONDS, MOST_SECONDS, MOST_WAIT, Need, Terms};
use crate::tools::Refusal;
use crate::tools::arguments::Arguments;
use crate::tools::files::FOR_SMALL;

/// The longest line that is run. The kernel takes 128 KiB in one argument.
const LONGEST_LINE: usize = 100 << 10;

pub(super) fn run(arguments: Arguments<'_>, session_cwd: &Path) -> Result<CommandWork, Refusal> {
    let line = arguments.text("command")?.into_owned();
    if line.trim().is_empty() {
        return Err(Refusal("`command` is empty".into()));
    }
    if line.contains('\0') {
        return Err(Refusal("`command` has a zero character in it".into()));
    }
    if line.len() > LONGEST_LINE {
        return Err(Refusal(format!(
            "`command` is {} bytes long; at most {LONGEST_LINE} can be run\nhint: write a script to a file and run that",
            line.len()
        )));
    }
    let cwd = directory(arguments, session_cwd)?;
    let terms = Terms { need: need(arguments)?, is_unasked: false, for_small: arguments.flag(FOR_SMALL)? };
    if arguments.flag("background")? {
        return Ok(CommandWork::Start { line, cwd, terms });
    }
    let limit = seconds(arguments, "timeout_seconds")?.unwrap_or(Duration::from_secs(DEFAULT_SECONDS));
    let limit = limit.clamp(Duration::from_secs(1), Duration::from_secs(MOST_SECONDS));
    Ok(CommandWork::Run { line, cwd, terms, limit })
}

pub(super) fn look(arguments: Arguments<'_>) -> Result<CommandWork, Refusal> {
    let wait = seconds(arguments, "wait_seconds")?.unwrap_or_default().min(Duration::from_secs(MOST_WAIT));
    Ok(CommandWork::Look { job: arguments.text("job")?.into_owned(), wait })
}

pub(super) fn stop(arguments: Arguments<'_>) -> Result<CommandWork, Refusal> {
    Ok(CommandWork::Stop { job: arguments.text("job")?.into_owned() })
}

/// What the sandbox must not withhold, and why. Outside of the sandbox there is a network, too.
fn need(arguments: Arguments<'_>) -> Result<Option<Need>, Refusal> {
    let (mut network, mut unsandboxed) = (false, false);
    for name in &*arguments.list("needs")? {
        match name.as_str().map(str::trim) {
            Some("network") => network = true,
            Some("unsandboxed") => unsandboxed = true,
            _ => return Err(Refusal("`needs` must be a list of `network` and `unsandboxed`".into())),
        }
    }
    let make = match (network, unsandboxed) {
        (false, false) => return Ok(None),
        (true, false) => Need::Network,
        (_, true) => Need::Unsandboxed,
    };
    let reason = arguments.optional_text("reason")?.unwrap_or_default();
    match reason.trim() {
        "" => Err(Refusal("`reason` is missing: tell the user why the command needs that".into())),
        reason => Ok(Some(make(reason.to_owned()))),
    }
}

fn seconds(arguments: Arguments<'_>, name: &str) -> Result<Option<Duration>, Refusal> {
    let Some(number) = arguments.decimal(name)? else { return Ok(None) };
    // No limit here is longer than this, and a duration cannot hold every number.
    let number = number.as_f64().unwrap_or_default().clamp(0.0, 3600.0);
    let wrong = |_| Refusal(format!("`{name}` must be a number of seconds"));
    Duration::try_from_secs_f64(number).map(Some).map_err(wrong)
}

/// Where the command runs. A directory that was named is resolved, so that what is allowed is where it really is.
fn directory(arguments: Arguments<'_>, session_cwd: &Path) -> Result<PathBuf, Refusal> {
    let named = match arguments.optional_text("cwd")? {
        Some(named) if !named.trim().is_empty() => named,
        _ => return Ok(session_cwd.to_owned()),
    };
    let is_it = |path: &Path| path.is_dir() && path.to_str().is_some();
    let resolved = canonicalize(&session_cwd.join(&*named)).ok().filter(|path| is_it(path));
    let resolved = resolved.ok_or_else(|| Refusal(format!("`{named}` is no directory")))?;
    match canonicalize(session_cwd) {
        Ok(own) if own == resolved => Ok(session_cwd.to_owned()),
        _ => Ok(resolved),
    }
}
