//! Commands that are processes of our own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::model::terminal::TerminalId;
use attache_host::commands::{Command, Invocation, Run};
use attache_host::environment::{self, UNATTENDED};
use attache_host::paths::canonicalize;
use attache_host::sandbox::Sandbox;

use super::report::{self, Ending, Note, Written};
use super::screen::{Screen, ended};
use super::{Commands, Need, OUTPUT, SandboxMode, Setup, Terms, sandbox};
use crate::tools::{Live, Outcome, Refusal, Shown};

/// A command that was started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) run: Run,
    /// What is to be known when it fails: that it was confined.
    pub(super) note: Option<Note>,
    /// What it runs in, with its layers.
    _sandbox: Option<sandbox::Made>,
}

/// Starts commands, where nobody waits for the runtime: it looks at directories, makes sandboxes and waits for the kernel.
#[derive(Debug)]
pub(super) struct Starter {
    pub(super) setup: Setup,
    pub(super) mode: SandboxMode,
}

impl Starter {
    /// What a command is to run in, and what is said when it fails there.
    fn sandbox(&self, terms: &Terms, runs_long: bool) -> Result<(Option<sandbox::Made>, Option<Note>), Refusal> {
        if terms.is_unasked {
            let made = sandbox::unasked(&self.setup, runs_long).map_err(|why| {
                Refusal(format!(
                    "the command did not run: nobody was asked about it, and it cannot be confined any more: {why}\nhint: \
                     call it again, and the user is asked"
                ))
            })?;
            return Ok((Some(made), Some(if terms.for_small { Note::SMALL_UNASKED } else { Note::UNASKED })));
        }
        let is_free = matches!(terms.need, Some(Need::Unsandboxed(_))) && self.mode != SandboxMode::Offline;
        let mode = if is_free { SandboxMode::Off } else { self.mode };
        let sandbox = match sandbox::as_set(mode, &self.setup, runs_long) {
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
            SandboxMode::Offline => Note::OFFLINE,
            _ if terms.for_small => Note::SMALL_ON,
            _ => Note::ON,
        });
        Ok((sandbox, note))
    }

    /// Starts a command, of whose output so much is kept.
    fn start(
        &self,
        invocation: &Invocation,
        cwd: &Path,
        kept: usize,
        terms: &Terms,
        runs_long: bool,
    ) -> Result<Started, Refusal> {
        self.check_directory(cwd)?;
        let (made, note) = self.sandbox(terms, runs_long)?;
        self.check_sandbox(made.as_ref())?;
        let run = self.launch(invocation, kept, made.as_ref().map(|made| &made.sandbox))?;
        Ok(Started { run, note, _sandbox: made })
    }

    /// Whether the directory is still the one that was allowed.
    pub(super) fn check_directory(&self, cwd: &Path) -> Result<(), Refusal> {
        let is_fixed = self.setup.fixed.is_some();
        let is_same = || !is_fixed && cwd == self.setup.cwd || canonicalize(cwd).is_ok_and(|now| now == cwd);
        if cwd.is_dir() && is_same() {
            return Ok(());
        }
        Err(Refusal(format!("directory `{}` has changed since it was approved", cwd.display())))
    }

    /// Whether a sandbox lets just those directories be changed that were opened with the session. It follows links when it is
    /// made, and whoever may answer questions may not choose where they lead.
    fn check_sandbox(&self, made: Option<&sandbox::Made>) -> Result<(), Refusal> {
        let Some(files) = &self.setup.fixed else { return Ok(()) };
        let is_writable = |root: &PathBuf| made.is_none_or(|made| made.sandbox.has_writable(root));
        if files.are_roots_in_place() && self.setup.roots.iter().all(is_writable) {
            return Ok(());
        }
        Err(Refusal(
            "a directory of the session is not where it was when the session was opened; nothing runs there".into(),
        ))
    }

    /// Starts a command with the environment of commands, in a sandbox if there is one.
    pub(super) fn launch(
        &self,
        invocation: &Invocation,
        kept: usize,
        sandbox: Option<&Sandbox>,
    ) -> Result<Run, Refusal> {
        let run = invocation.start(kept, |command| {
            let command = environment::start_from(command, &self.setup.pass_env);
            let command = UNATTENDED.iter().fold(command, |command, (name, value)| command.env(*name, *value));
            let Some(sandbox) = sandbox else { return command };
            let told = &sandbox.policy().variables;
            let told = told.iter().filter(|(name, _)| !environment::is_passed(name, &self.setup.pass_env));
            sandbox.confine(told.fold(command, |command, (name, value)| command.env(name, value)))
        });
        run.map_err(|error| Refusal(error.to_string()))
    }
}

impl Commands {
    pub(super) fn starter(&self) -> Starter {
        Starter { setup: self.setup.clone(), mode: self.mode() }
    }

    /// Starts a command. Whoever drops the future meanwhile ends it.
    pub(super) async fn start(
        &self,
        line: &str,
        cwd: &Path,
        terms: &Terms,
        runs_long: bool,
    ) -> Result<Started, Refusal> {
        self.start_with(invocation(line, cwd), cwd, OUTPUT, terms, runs_long).await
    }

    /// Starts a command that is made already, of whose output so much is kept.
    pub(super) async fn start_with(
        &self,
        invocation: Invocation,
        cwd: &Path,
        kept: usize,
        terms: &Terms,
        runs_long: bool,
    ) -> Result<Started, Refusal> {
        let (starter, cwd, terms) = (self.starter(), cwd.to_owned(), terms.clone());
        crate::off_thread(move || starter.start(&invocation, &cwd, kept, &terms, runs_long)).await
    }

    /// Runs a command to its end.
    pub(super) async fn run(
        &self,
        line: String,
        cwd: &Path,
        terms: &Terms,
        limit: Duration,
        live: &Live,
    ) -> Result<Outcome, Refusal> {
        let Started { run, note, _sandbox } = self.start(&line, cwd, terms, false).await?;
        let mut view = run.view();
        let mut screen = Screen::new(self.shows_terminals().then(|| self.terminal_id()));
        let mut held = Held { run, shown: screen.terminal().cloned(), live };
        let exit = held.run.wait();
        let in_time = {
            // First of all: it may have ended already.
            screen.begin(live, &line, cwd).await;
            tokio::select! {
                biased;
                exit = tokio::time::timeout(limit, exit) => exit,
                never = screen.follow(live, &mut view) => match never {},
            }
        };
        let ending = match in_time {
            Ok(status) => Ending::Exit(status),
            Err(_) => {
                held.run.kill().await;
                Ending::TimeOver(limit.as_secs())
            }
        };
        screen.end(live, &view, &view.exit_status().unwrap_or_default()).await;
        held.shown = None;

        let output = view.output_since(0);
        let written = Written { is_truncated: output.start > 0, text: output.text };
        let mut outcome = report::outcome(&ending, &written, note, &self.setup.spill).await;
        if screen.terminal().is_none() {
            outcome.content = Some(report::as_content(&outcome));
        }
        Ok(outcome)
    }
}

/// What is judged and what is executed.
pub(super) fn invocation(line: &str, cwd: &Path) -> Invocation {
    Invocation::new(Command::Line(line.to_owned()), cwd)
}

/// Ends a command when it is dropped, and says so where it is shown.
struct Held<'a> {
    run: Run,
    /// The terminal that is shown as running.
    shown: Option<TerminalId>,
    live: &'a Live,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let end = self.run.kill();
        if let (Some(shown), Ok(runtime)) = (self.shown.take(), tokio::runtime::Handle::try_current()) {
            let live = self.live.clone();
            runtime.spawn(async move { live.show(Shown::Update(ended(&shown, &end.await))).await });
        }
    }
}
