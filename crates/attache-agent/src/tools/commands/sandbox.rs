//! Whether commands are confined.

use std::fmt;
use std::path::{Path, PathBuf};

use attache_host::sandbox::{Network, Policy, Sandbox, SandboxError};

/// Whether commands are to be confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// They may do what the user may.
    Off,
    /// They can change files only beneath the roots and among the temporary ones, cannot read the user's secrets, and
    /// reach no other program. Where the machine cannot enforce any of it, they are not confined, which the person is told.
    #[default]
    On,
    /// The same, and without a network. Where the machine cannot enforce that, they do not run.
    Offline,
}

/// Whether commands are confined. Shown as a line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxState {
    /// They are not, as it was asked for.
    Off,
    /// They are.
    On {
        /// And have no network.
        offline: bool,
        /// What this machine does not enforce of it.
        gaps: Vec<String>,
    },
    /// The machine cannot confine them; this is why. They run all the same, unless they are to have no network.
    Unavailable(String),
    /// The machine could, but this sandbox cannot be made; this is why. They do not run.
    Refused(String),
}

impl SandboxState {
    /// How commands of a session with these roots are confined when they are our own processes. `hidden` are our settings
    /// and records.
    pub fn of(mode: SandboxMode, roots: &[PathBuf], hidden: &[PathBuf]) -> Self {
        Self::with(mode, roots, &[], hidden)
    }

    /// The same where commands may change more than the roots.
    pub(super) fn with(mode: SandboxMode, roots: &[PathBuf], writable: &[PathBuf], hidden: &[PathBuf]) -> Self {
        match make(mode, roots, writable, hidden) {
            Ok(None) => SandboxState::Off,
            Ok(Some(sandbox)) => {
                SandboxState::On { offline: mode == SandboxMode::Offline, gaps: sandbox.gaps().to_vec() }
            }
            Err(impossible) if impossible.runs_without => SandboxState::Unavailable(impossible.why),
            Err(impossible) => SandboxState::Refused(impossible.why),
        }
    }

    /// What a person should know before anything runs: a boundary that they expect, and that is not there.
    pub fn warning(&self) -> Option<String> {
        match self {
            SandboxState::Off => None,
            SandboxState::On { gaps, .. } if gaps.is_empty() => None,
            // The whole list is long, and the same every time.
            SandboxState::On { .. } => Some(
                "the sandbox does not enforce all of its rules here: `attache sandbox explain` lists what is missing"
                    .into(),
            ),
            SandboxState::Unavailable(_) | SandboxState::Refused(_) => Some(self.to_string()),
        }
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxState::Off => f.write_str("commands are not confined"),
            SandboxState::On { offline, gaps } => {
                let network = if *offline { " without a network" } else { "" };
                write!(f, "commands run in a sandbox{network}")?;
                if gaps.is_empty() { Ok(()) } else { write!(f, "; not enforced here: {}", gaps.join("; ")) }
            }
            SandboxState::Unavailable(why) => write!(f, "commands cannot be confined: {why}"),
            SandboxState::Refused(why) => write!(f, "commands do not run, because they cannot be confined: {why}"),
        }
    }
}

/// Why there is no sandbox.
#[derive(Debug)]
pub(super) struct Impossible {
    pub(super) why: String,
    /// Whether commands run without it. Only where the machine cannot confine anything: what a command can bring about
    /// by what it leaves behind must not free the next one.
    pub(super) runs_without: bool,
}

/// The sandbox for a mode, none if it is off, or why there is none. Made for every command anew, because what is there
/// changes. What cannot be hidden inside of something that commands may change is a gap of it.
pub(super) fn make(
    mode: SandboxMode,
    roots: &[PathBuf],
    writable: &[PathBuf],
    hidden: &[PathBuf],
) -> Result<Option<Sandbox>, Impossible> {
    let network = match mode {
        SandboxMode::Off => return Ok(None),
        SandboxMode::On => Network::Open,
        SandboxMode::Offline => Network::Offline,
    };
    let runs_without = |error: &SandboxError| mode == SandboxMode::On && is_machine(error);
    let mut policy = Policy { network, ..Policy::new(roots) };
    for path in writable {
        policy.allow_writing(path);
    }
    for path in hidden {
        // What does not exist cannot be kept from being made, if it is inside of something writable.
        if policy.writable.iter().any(|writable| path.starts_with(writable)) {
            make_private(path);
        }
        if !policy.hidden.contains(path) {
            policy.hidden.push(path.clone());
        }
    }
    let made = Sandbox::best_effort(&policy);
    made.map(Some).map_err(|error| Impossible { runs_without: runs_without(&error), why: error.to_string() })
}

fn is_machine(error: &SandboxError) -> bool {
    matches!(
        error,
        SandboxError::OtherSystem
            | SandboxError::NoLandlock
            | SandboxError::LandlockOff
            | SandboxError::OldLandlock { .. }
            | SandboxError::NoSeccomp
    )
}

fn make_private(path: &Path) {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let _ = builder.recursive(true).create(path);
}
