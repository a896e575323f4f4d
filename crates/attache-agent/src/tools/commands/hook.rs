//! Commands that a person has set up to run beside the agent's work: hooks.

use std::path::Path;
use std::time::Duration;

use super::Commands;
use super::Terms;
use super::own::invocation;
use crate::tools::Refusal;

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookEnd {
    /// By itself, with this code; with none if a signal ended it.
    Exit(Option<i64>, String),
    /// Its time was over.
    TimeOver,
}

impl Commands {
    /// Runs a hook, as commands of the agent run: with their environment, in their sandbox, and it ends with whoever waits
    /// for it. Of what it prints, the last `kept` bytes are given.
    pub(crate) async fn run_hook(
        &self,
        line: &str,
        cwd: &Path,
        input: Vec<u8>,
        limit: Duration,
        kept: usize,
    ) -> Result<HookEnd, Refusal> {
        let started = self.start_with(invocation(line, cwd).input(input), cwd, kept, &Terms::default(), false).await?;
        let Ok(status) = tokio::time::timeout(limit, started.run.wait()).await else {
            started.run.kill().await;
            return Ok(HookEnd::TimeOver);
        };
        Ok(HookEnd::Exit(status.exit_code, started.run.output().text))
    }
}
