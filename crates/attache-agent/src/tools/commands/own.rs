//! Commands that are processes of our own.

use std::path::Path;
use std::time::Duration;

use attache::model::session::SessionId;
use attache::model::terminal::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId, WaitForTerminalExitRequest,
};
use attache_host::terminals::{TerminalView, Terminals};

use super::report::{self, Ending, Written};
use super::screen::{Screen, ended};
use super::{Commands, SandboxMode, sandbox};
use crate::tools::{Live, Outcome, Refusal, Shown};

/// Whose terminals they are. There is one session here, and no other can ask for them.
pub(super) fn session() -> SessionId {
    SessionId::from("own")
}

/// A command that was started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) id: TerminalId,
    pub(super) view: TerminalView,
    /// What is to be known when it fails: that it was confined.
    pub(super) note: Option<&'static str>,
}

impl Commands {
    /// Starts a command.
    pub(super) fn start(&self, line: &str, cwd: &Path) -> Result<Started, Refusal> {
        self.check_directory(cwd)?;
        let _one = crate::lock(&self.starting);
        let mode = self.mode();
        let sandbox = match sandbox::make(mode, &self.setup.roots, &self.setup.hidden) {
            Ok(sandbox) => sandbox,
            Err(impossible) if impossible.runs_without => None,
            Err(impossible) if mode == SandboxMode::Offline => {
                let why = impossible.why;
                return Err(Refusal(format!("commands are to run without a network, which cannot be enforced: {why}")));
            }
            Err(impossible) => {
                let why = impossible.why;
                return Err(Refusal(format!("commands are to run in a sandbox, which cannot be made: {why}")));
            }
        };
        let note = sandbox.as_ref().map(|_| match mode {
            SandboxMode::Offline => {
                "(it ran in a sandbox: no network, and files can be changed only beneath the session's directories)"
            }
            _ => "(it ran in a sandbox: files can be changed only beneath the session's directories)",
        });
        let args = vec!["-c".into(), line.to_owned()];
        let request = CreateTerminalRequest::new(session(), "sh").args(args);
        *crate::lock(&self.slot) = sandbox;
        let refuse = |error: attache_host::terminals::TerminalError| Refusal(error.to_string());
        let id = self.terminals.create(&request, cwd).map_err(refuse)?.terminal_id;
        let view = self.terminals.view(&session(), &id).map_err(refuse)?;
        Ok(Started { id, view, note })
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, line: String, cwd: &Path, limit: Duration, live: &Live) -> Result<Outcome, Refusal> {
        let Started { id, mut view, note } = self.start(&line, cwd)?;
        let mut screen = Screen::new(self.shows_terminals().then(|| self.terminal_id()));
        let mut held = Held {
            terminals: &self.terminals,
            id: id.clone(),
            view: view.clone(),
            shown: screen.terminal().cloned(),
            live,
        };
        let exit = self.terminals.wait_for_exit(&WaitForTerminalExitRequest::new(session(), id.clone()));
        let in_time = {
            let showing = async {
                screen.begin(live, &line, cwd).await;
                screen.follow(live, &mut view).await
            };
            tokio::select! {
                biased;
                exit = tokio::time::timeout(limit, exit) => exit,
                never = showing => match never {},
            }
        };
        let ending = match in_time {
            Ok(Ok(status)) => Ending::Exit(status),
            Ok(Err(error)) => return Err(Refusal(error.to_string())),
            Err(_) => {
                let _ = self.terminals.kill(&KillTerminalRequest::new(session(), id)).await;
                Ending::TimeOver(limit.as_secs())
            }
        };
        screen.end(live, &view, &view.exit_status().unwrap_or_default()).await;
        held.shown = None;

        let output = view.output_since(0);
        let written = Written { is_truncated: output.start > 0, text: output.text };
        let mut outcome = report::outcome(&ending, &written, note, &self.setup.spill);
        if screen.terminal().is_none() {
            outcome.content = Some(report::as_content(&outcome));
        }
        Ok(outcome)
    }
}

/// Ends a command when it is dropped, and says so where it is shown.
struct Held<'a> {
    terminals: &'a Terminals,
    id: TerminalId,
    view: TerminalView,
    /// The terminal that is shown as running.
    shown: Option<TerminalId>,
    live: &'a Live,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = self.terminals.release(&ReleaseTerminalRequest::new(session(), self.id.clone()));
        if let (Some(shown), Ok(runtime)) = (self.shown.take(), tokio::runtime::Handle::try_current()) {
            let (live, mut view) = (self.live.clone(), self.view.clone());
            runtime.spawn(async move {
                while view.exit_status().is_none() && view.changed().await {}
                live.show(Shown::Update(ended(&shown, &view.exit_status().unwrap_or_default()))).await;
            });
        }
    }
}
