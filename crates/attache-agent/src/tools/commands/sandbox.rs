//! Whether commands are confined.

use std::fmt;
use std::path::PathBuf;

use attache_host::sandbox::{Network, Policy, Sandbox};

use super::Setup;

/// Whether commands are to be confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// They may do what the user may.
    Off,
    /// They can change files only beneath the roots and among the temporary ones, and cannot read the user's secrets.
    /// Where the machine cannot enforce that, they are not confined.
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
    },
    /// They cannot be; this is why.
    Unavailable(String),
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxState::Off => f.write_str("commands are not confined"),
            SandboxState::On { offline: false } => f.write_str("commands run in a sandbox"),
            SandboxState::On { offline: true } => f.write_str("commands run in a sandbox without a network"),
            SandboxState::Unavailable(why) => write!(f, "commands cannot be confined: {why}"),
        }
    }
}

/// The sandbox for a mode, none if it is off, or why there is none. Made for every command anew, because what is there
/// changes. What is to be hidden inside of something that commands may change cannot be, and is not.
pub(super) fn make(mode: SandboxMode, setup: &Setup) -> Result<Option<Sandbox>, String> {
    let network = match mode {
        SandboxMode::Off => return Ok(None),
        SandboxMode::On => Network::Open,
        SandboxMode::Offline => Network::Offline,
    };
    let mut policy = Policy { network, ..Policy::new(&setup.roots) };
    let can_hide = |path: &&PathBuf| !policy.writable.iter().any(|writable| path.starts_with(writable));
    let hidden: Vec<PathBuf> = setup.hidden.iter().filter(can_hide).cloned().collect();
    policy.hidden.extend(hidden);
    Sandbox::new(&policy).map(Some).map_err(|error| error.to_string())
}
