//! What cuts a child off from us between `fork` and `exec`: a session of its own, and none of our descriptors.
//!
//! A child that shares our session can open `/dev/tty`, write there behind a question, and type the answer to it
//! (`TIOCSTI`). One that has a session of its own has no terminal. It also leads a process group of its own.
//!
//! As in `keeper.rs`, nothing here may allocate, lock or panic.

use std::io;

use libc::c_int;

/// Gives the calling process a session of its own, without a terminal. It must not lead a process group yet, which a
/// process that was just forked never does.
pub(super) fn leave_session() -> io::Result<()> {
    // SAFETY: takes nothing, touches no memory.
    match unsafe { libc::setsid() } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Has all descriptors but the first three closed when the program is executed: those that a library opened without
/// close-on-exec, and those that we were started with ourselves. Until then they stay open, because there is one among
/// them that tells our program if the other one cannot be executed.
pub(super) fn close_descriptors_on_exec() {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_RANGE_CLOEXEC: libc::c_uint = 1 << 2;
        let (first, last): (libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX);
        // SAFETY: marks descriptors, touches no memory.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) } == 0 {
            return;
        }
        // Kernels before 5.11 cannot. They are all listed here, unless no descriptor is left to read the list with.
        if super::keeper_proc::for_each_descriptor(close_on_exec) {
            return;
        }
    }
    // SAFETY: asks for a number.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    // The limit can be in the millions, and a child is not to be late for that. Numbers are given out from below.
    (3..most.clamp(256, 65_536) as c_int).for_each(close_on_exec);
}

fn close_on_exec(descriptor: c_int) {
    if descriptor > 2 {
        // SAFETY: marks a descriptor, if there is one of this number.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
