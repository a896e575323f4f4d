//! What is left of a tree whose keeper was killed.
//!
//! A program with keepers is a subreaper as they are: when a keeper is gone, the kernel makes this program the parent of
//! what it kept. Of our children, those are orphans of a keeper that are in another session than ours and are no keepers.
//! No process can enter our session from outside, and every program under a keeper begins outside of it, so whatever this
//! program started by other means is left alone, unless it gave that a session of its own.

use std::{
    collections::BTreeSet,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use libc::{c_ulong, pid_t};

use super::tree;

/// How long to wait between two rounds. What a killed process leaves behind is ours right after it.
const ROUND: Duration = Duration::from_millis(1);

/// After so many rounds nothing but a process of another user, or one that is stuck in the kernel, is left. Nobody waits
/// for those any longer.
const ROUNDS: u32 = 2000;

/// The keepers that live.
static KEEPERS: Mutex<BTreeSet<pid_t>> = Mutex::new(BTreeSet::new());

/// Makes this program the parent of every descendant that loses its own.
pub(super) fn adopt() {
    // SAFETY: sets a flag of this process. Where a sandbox forbids it, a killed keeper takes along its program only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong) };
}

/// Starts a keeper. Nothing is taken for an orphan meanwhile, because it is not known yet.
pub(super) fn start_keeper(
    start: impl FnOnce() -> io::Result<tokio::process::Child>,
) -> io::Result<tokio::process::Child> {
    let mut keepers = keepers();
    let keeper = start()?;
    keepers.extend(keeper.id().map(|id| id as pid_t));
    Ok(keeper)
}

/// Notes that a keeper has ended and was reaped.
pub(super) fn forget_keeper(keeper: pid_t) {
    keepers().remove(&keeper);
}

/// Kills what killed keepers left to us, until nothing is left.
pub(super) async fn end_all() {
    for _ in 0..ROUNDS {
        if !kill_and_reap() {
            return;
        }
        tokio::time::sleep(ROUND).await;
    }
}

/// One round; says whether there was anything.
fn kill_and_reap() -> bool {
    let keepers = keepers();
    // SAFETY: asks for a number.
    let session = unsafe { libc::getsid(0) };
    let is_orphan = |pid: pid_t, its_session: pid_t| its_session != session && !keepers.contains(&pid);
    let (orphans, descendants) = tree::orphans(std::process::id() as pid_t, is_orphan);
    for orphan in &orphans {
        // SAFETY: a child keeps its id until we reap it, which is the next step. No status is asked for.
        unsafe {
            libc::kill(*orphan, libc::SIGKILL);
            libc::waitpid(*orphan, std::ptr::null_mut(), libc::WNOHANG);
        }
    }
    for descendant in &descendants {
        descendant.signal(libc::SIGKILL);
    }
    !orphans.is_empty()
}

fn keepers() -> MutexGuard<'static, BTreeSet<pid_t>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
