//! What a model wants of a command, from the arguments of its call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{CommandWork, DEFAULT_SECONDS, MOST_SECONDS, MOST_WAIT, Need, Terms};
use crate::tools::Refusal;

/// The longest line that is run. The kernel takes 128 KiB in one argument.
const LONGEST_LINE: usize = 100 << 10;

pub(super) fn run(arguments: &Value, session_cwd: &Path) -> Result<CommandWork, Refusal> {
    let line = text(arguments, "command")?;
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
    let line = line.to_owned();
    let cwd = directory(arguments, session_cwd)?;
    let terms = Terms { need: need(arguments)?, is_unasked: false };
    match arguments.get("background") {
        None | Some(Value::Null | Value::Bool(false)) => {
            let limit = seconds(arguments, "timeout_seconds")?.unwrap_or(Duration::from_secs(DEFAULT_SECONDS));
            Ok(CommandWork::Run {
                line,
                cwd,
                terms,
                limit: limit.clamp(Duration::from_secs(1), Duration::from_secs(MOST_SECONDS)),
            })
        }
        Some(Value::Bool(true)) => Ok(CommandWork::Start { line, cwd, terms }),
        Some(_) => Err(Refusal("`background` must be true or false".into())),
    }
}

pub(super) fn look(arguments: &Value) -> Result<CommandWork, Refusal> {
    let wait = seconds(arguments, "wait_seconds")?.unwrap_or_default().min(Duration::from_secs(MOST_WAIT));
    Ok(CommandWork::Look { job: text(arguments, "job")?.to_owned(), wait })
}

pub(super) fn stop(arguments: &Value) -> Result<CommandWork, Refusal> {
    Ok(CommandWork::Stop { job: text(arguments, "job")?.to_owned() })
}

/// What the sandbox must not withhold, and why. Outside of the sandbox there is a network, too.
fn need(arguments: &Value) -> Result<Option<Need>, Refusal> {
    let wrong = || Refusal("`needs` must be a list of `network` and `unsandboxed`".into());
    let named: Vec<&Value> = match arguments.get("needs") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().collect(),
        // Some models leave the brackets out.
        Some(one @ Value::String(text)) if !text.trim().is_empty() => vec![one],
        Some(Value::String(_)) => Vec::new(),
        Some(_) => return Err(wrong()),
    };
    let (mut network, mut unsandboxed) = (false, false);
    for name in named {
        match name.as_str().map(str::trim) {
            Some("network") => network = true,
            Some("unsandboxed") => unsandboxed = true,
            _ => return Err(wrong()),
        }
    }
    let make = match (network, unsandboxed) {
        (false, false) => return Ok(None),
        (true, false) => Need::Network,
        (_, true) => Need::Unsandboxed,
    };
    let reason = match arguments.get("reason") {
        Some(Value::String(reason)) if !reason.trim().is_empty() => reason.trim().to_owned(),
        None | Some(Value::Null | Value::String(_)) => {
            return Err(Refusal("`reason` is missing: tell the user why the command needs that".into()));
        }
        Some(_) => return Err(Refusal("`reason` must be a string".into())),
    };
    Ok(Some(make(reason)))
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Refusal(format!("`{name}` must be a string"))),
        None => Err(Refusal(format!("`{name}` is missing"))),
    }
}

fn seconds(arguments: &Value, name: &str) -> Result<Option<Duration>, Refusal> {
    let wrong = || Refusal(format!("`{name}` must be a number of seconds"));
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64().ok_or_else(wrong)?,
        // Some models put every value in quotes.
        Some(Value::String(text)) => text.trim().parse().map_err(|_| wrong())?,
        Some(_) => return Err(wrong()),
    };
    // No limit here is longer than this, and a duration cannot hold every number.
    let number = number.clamp(0.0, 3600.0);
    Duration::try_from_secs_f64(number).map(Some).map_err(|_| wrong())
}

/// Where the command runs. A directory that was named is resolved, so that what is allowed is where it really is.
fn directory(arguments: &Value, session_cwd: &Path) -> Result<PathBuf, Refusal> {
    let named = match arguments.get("cwd") {
        None | Some(Value::Null) => return Ok(session_cwd.to_owned()),
        Some(Value::String(named)) if named.trim().is_empty() => return Ok(session_cwd.to_owned()),
        Some(Value::String(named)) => named,
        Some(_) => return Err(Refusal("`cwd` must be a string".into())),
    };
    let is_it = |path: &Path| path.is_dir() && path.to_str().is_some();
    let resolved = session_cwd.join(named).canonicalize().ok().filter(|path| is_it(path));
    let resolved = resolved.ok_or_else(|| Refusal(format!("`{named}` is no directory")))?;
    match session_cwd.canonicalize() {
        Ok(own) if own == resolved => Ok(session_cwd.to_owned()),
        _ => Ok(resolved),
    }
}
