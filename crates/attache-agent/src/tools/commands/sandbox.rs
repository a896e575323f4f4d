//! Whether commands are confined.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use attache_host::environment::{self, UNATTENDED};
use attache_host::sandbox::{Network, Policy, Sandbox};
use attache_host::terminals::{Limits, Terminals};

use super::{JOBS, OUTPUT, Setup};

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
    /// They run in terminals of the client, which are not ours to confine. Background jobs are confined.
    Client,
    /// They cannot be; this is why.
    Unavailable(String),
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxState::Off => f.write_str("commands are not confined"),
            SandboxState::On { offline: false } => f.write_str("commands run in a sandbox"),
            SandboxState::On { offline: true } => f.write_str("commands run in a sandbox without a network"),
            SandboxState::Client => f.write_str(
                "commands run in the client's terminals, which are not confined; background jobs run in a sandbox",
            ),
            SandboxState::Unavailable(why) => write!(f, "commands cannot be confined: {why}"),
        }
    }
}

/// What the next command is confined by.
pub(super) type Slot = Arc<Mutex<Option<Sandbox>>>;

/// Terminals whose commands get what is let through of our environment, and are confined by what is in the slot.
pub(super) fn confining(slot: Slot, pass_env: Vec<String>) -> Terminals {
    let limits = Limits { running: 4 * JOBS, kept: 8 * JOBS, output: OUTPUT, most_output: OUTPUT, ..Limits::default() };
    Terminals::new(limits).confine(move |command| {
        let command = environment::start_from(command, &pass_env);
        let command = UNATTENDED.iter().fold(command, |command, (name, value)| command.env(*name, *value));
        match &*crate::lock(&slot) {
            Some(sandbox) => sandbox.confine(command),
            None => command,
        }
    })
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
