//! A child of either kind: with a keeper, or with its process group.

use std::{
    io,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

#[cfg(target_os = "linux")]
use super::kept;
use super::{ExitStatus, Hook, Pipes, group};

static USES_KEEPER: AtomicBool = AtomicBool::new(false);

/// Starts every process of this program under a keeper from now on, on Linux. Elsewhere it does nothing.
///
/// It is for programs and not for libraries: call it at the start of `main`. Each process that is launched then has a
/// small copy of this program as its parent, and ends with all its descendants, however this program ends. What is not
/// guaranteed without it is described in the [module documentation](crate::process).
///
/// This program also becomes a subreaper: if a keeper is killed, what it kept is this program's, and is ended.
///
/// Needs the feature `process`.
pub fn use_keeper() {
    #[cfg(target_os = "linux")]
    super::orphans::adopt();
    USES_KEEPER.store(true, Ordering::Relaxed);
}

/// A child and what it started.
pub(super) enum Child {
    Group(group::Child),
    #[cfg(target_os = "linux")]
    Kept(kept::Child),
}

macro_rules! either {
    ($self:ident, $child:ident => $call:expr) => {
        match $self {
            Child::Group($child) => $call,
            #[cfg(target_os = "linux")]
            Child::Kept($child) => $call,
        }
    };
}

impl Child {
    pub(super) fn spawn(command: Command, hook: Option<Hook>) -> io::Result<(Self, Pipes)> {
        #[cfg(target_os = "linux")]
        if USES_KEEPER.load(Ordering::Relaxed) {
            return kept::spawn(command, hook).map(|(child, pipes)| (Child::Kept(child), pipes));
        }
        group::spawn(command, hook).map(|(child, pipes)| (Child::Group(child), pipes))
    }

    /// The child's process id, as long as it is sure to mean this child.
    pub(super) fn id(&self) -> Option<u32> {
        either!(self, child => child.id())
    }

    /// How the child ended, as far as that is known.
    pub(super) fn status(&self) -> ExitStatus {
        either!(self, child => child.status())
    }

    /// Waits until the child has ended. Nothing is lost if it is dropped and made anew.
    pub(super) async fn wait(&mut self) -> ExitStatus {
        either!(self, child => child.wait().await)
    }

    /// Waits until the child and what it started have ended, as far as that is followed.
    pub(super) async fn wait_all(&mut self) {
        either!(self, child => child.wait_all().await)
    }

    /// Whether the child and what it started are known to have ended.
    pub(super) fn is_gone(&self) -> bool {
        either!(self, child => child.is_gone())
    }

    /// Asks them all to end.
    pub(super) fn terminate(&mut self) {
        either!(self, child => child.terminate())
    }

    /// Ends them all and waits until they are gone.
    pub(super) async fn finish(&mut self) {
        either!(self, child => child.finish().await)
    }
}
