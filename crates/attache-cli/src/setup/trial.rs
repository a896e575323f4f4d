//! The test prompt: the agent is run with the settings as they are now, as an editor would.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::process::Command;

use super::model::OFFLINE;
use crate::agent::{BASE_URL, MODEL};
use crate::agents::BUILT_IN;
use crate::agents::probe::EmptyDirectory;
use crate::exit::{Code, Failure};
use crate::visible::{one_line, visible};

/// What is asked. The rules of `offline` understand it, too.
const PROMPT: &str = "say ready";

/// How long the answer may take. A server of this machine may have to load its model first.
const TIME: &str = "120s";

/// The same for the program that asks.
const PATIENCE: Duration = Duration::from_secs(130);

/// How much of the answer is shown.
const SHOWN: usize = 200;

/// What came of it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) text: String,
    pub(super) time: Duration,
}

/// As much of the result of `attache run -o json` as is looked at.
#[derive(Deserialize)]
struct Ran {
    status: String,
    text: String,
    error: Option<RanError>,
}

#[derive(Deserialize)]
struct RanError {
    message: String,
}

/// Asks the model, in an empty directory and without permission to do anything.
pub(super) async fn ask(model: &str) -> Result<Answered, String> {
    let directory = EmptyDirectory::make().map_err(|failure| failure.message)?;
    let program = std::env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?;
    let prompt = if model == OFFLINE { PROMPT } else { "Reply with the single word: ready" };
    let mut command = Command::new(program);
    command.args(["run", "--agent", BUILT_IN, "--ephemeral", "--permissions", "none", "-o", "json", "--timeout", TIME]);
    command.args(["--cwd"]).arg(directory.path()).arg(prompt);
    // What is in the environment of this shell is not what an editor has.
    command.env_remove(MODEL).env_remove(BASE_URL).env_remove("ATTACHE_AGENT");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let begun = Instant::now();
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.map_err(|_| format!("timed out after {} s", PATIENCE.as_secs()))?;
    let output = output.map_err(|error| format!("cannot run the agent: {error}"))?;
    let time = begun.elapsed();
    let ran: Ran = serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        said.trim().trim_start_matches("error: ").to_owned()
    })?;
    match (ran.status.as_str(), ran.error) {
        ("done", _) if ran.text.trim().is_empty() => {
            Err("the model gave an empty answer\nhint: try another model".into())
        }
        ("done", _) => Ok(Answered { text: one_line(&ran.text).chars().take(SHOWN).collect(), time }),
        (_, Some(error)) => Err(error.message),
        (status, None) => Err(format!("the run ended with status `{status}`")),
    }
}

/// The failure of a test prompt, for a person who has set up everything else.
pub(super) fn failure(model: &str, why: &str) -> Failure {
    let (what, hints) = why.split_at(why.find('\n').unwrap_or(why.len()));
    let hints = match hints.contains("hint:") {
        true => hints.to_owned(),
        false => {
            format!("{hints}\nhint: `attache doctor` tells what is missing; `attache setup` chooses another model")
        }
    };
    Failure::new(Code::Agent, format!("the test prompt to `{}` failed: {what}{}", one_line(model), visible(&hints)))
}
