//! Whether commands are confined.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use attache_host::sandbox::{Network, Policy, ProjectLayers, Sandbox, SandboxError, look_after_layers};

use super::Setup;

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
        Self::from_made(mode, make(mode, roots, &[], hidden, None, None))
    }

    /// How commands of a session are confined.
    pub(super) fn with(mode: SandboxMode, setup: &Setup) -> Self {
        Self::from_made(mode, make(mode, &setup.roots, &setup.writable, &setup.hidden, None, None))
    }

    fn from_made(mode: SandboxMode, made: Result<Option<Made>, Impossible>) -> Self {
        match made {
            Ok(None) => SandboxState::Off,
            Ok(Some(made)) => {
                SandboxState::On { offline: mode == SandboxMode::Offline, gaps: made.sandbox.gaps().to_vec() }
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

/// A sandbox, with the layers that are in use as long as something runs in it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) sandbox: Sandbox,
    pub(super) _layers: Option<ProjectLayers>,
}

/// The layers of a session's project. A job leaves the first ones to other commands.
fn layers(setup: &Setup, runs_long: bool) -> Result<ProjectLayers, String> {
    let state_dir = setup.state_dir.as_ref().ok_or("there is no directory for what is written in layers")?;
    let taken = ProjectLayers::take(state_dir, &setup.cwd, runs_long);
    let layers = taken.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; `attache sandbox clear --all` removes what commands wrote into private layers"
            }
            _ => "",
        };
        format!("the layers of the project cannot be used: {error}{hint}")
    })?;
    look_after_layers(state_dir, layers.temporary(), setup.layer_limits);
    Ok(layers)
}

/// The sandbox as the setting says, none if it is off, or why there is none.
pub(super) fn as_set(mode: SandboxMode, setup: &Setup, runs_long: bool) -> Result<Option<Made>, Impossible> {
    let layers = if mode == SandboxMode::Off { None } else { layers(setup, runs_long).ok() };
    make(mode, &setup.roots, &setup.writable, &setup.hidden, Some(setup.spill.directory()), layers)
}

/// The sandbox for a command that nobody was asked about, or why there can be none. It has no gaps.
pub(super) fn unasked(setup: &Setup, runs_long: bool) -> Result<Made, String> {
    let support = Sandbox::check().map_err(|error| error.to_string())?;
    if let Some(gap) = support.gaps().into_iter().next() {
        return Err(gap);
    }
    let layers = layers(setup, runs_long)?;
    let policy = Policy::unasked(&setup.roots, &setup.writable, &setup.hidden, &layers);
    let mut policy = policy.map_err(|error| error.to_string())?;
    policy.shown.push(setup.spill.directory().to_owned());
    let sandbox = Sandbox::new(&policy).map_err(|error| error.to_string())?;
    match sandbox.is_whole() {
        true => Ok(Made { sandbox, _layers: Some(layers) }),
        false => {
            Err(sandbox.gaps().first().cloned().unwrap_or_else(|| "this machine gives it no view of its own".into()))
        }
    }
}

/// The sandbox for a mode, none if it is off, or why there is none. Made for every command anew, because what is there
/// changes. What cannot be hidden inside of something that commands may change is a gap of it.
fn make(
    mode: SandboxMode,
    roots: &[PathBuf],
    writable: &[PathBuf],
    hidden: &[PathBuf],
    spill: Option<&Path>,
    layers: Option<ProjectLayers>,
) -> Result<Option<Made>, Impossible> {
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
    policy.hide_own(hidden);
    // What the model was told to look at, and nothing else of our records.
    policy.shown.extend(spill.map(Path::to_owned));
    if let Some(layers) = &layers {
        policy.use_layers(layers);
    }
    let made = Sandbox::best_effort(&policy).map(|sandbox| Made { sandbox, _layers: layers });
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
