//! An end for a process that a test would otherwise wait for without end.

use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Kills a child that runs for too long, so that a test which waits for it fails instead of hanging. It is over when it is
/// dropped: drop it before the child is waited for, or right after.
///
/// ```
/// use std::process::Command;
/// use std::time::Duration;
/// use attache_testkit::TimeLimit;
///
/// let mut child = Command::new("sleep").arg("60").spawn().unwrap();
/// let limit = TimeLimit::new(&child, Duration::from_millis(50));
/// assert!(!child.wait().unwrap().success());
/// # drop(limit);
/// ```
#[derive(Debug)]
#[must_use = "there is a limit as long as this lives"]
pub struct TimeLimit {
    _is_over: Sender<()>,
}

impl TimeLimit {
    /// Kills the child after this time.
    pub fn new(child: &Child, limit: Duration) -> Self {
        let (is_over, ended) = channel::<()>();
        let process = ProcessHandle::of(child);
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("killing a child that runs for more than {limit:?}");
                process.kill();
            }
        });
        TimeLimit { _is_over: is_over }
    }
}

/// A process by a handle of the kernel: its number may be another's by the time the limit is reached.
#[cfg(target_os = "linux")]
struct ProcessHandle(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl ProcessHandle {
    fn of(child: &Child) -> Self {
        use std::os::fd::FromRawFd;
        // SAFETY: takes two numbers, and returns a descriptor that is ours alone or a negative number.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        assert!(descriptor >= 0, "pidfd_open: {}", std::io::Error::last_os_error());
        let descriptor = i32::try_from(descriptor).expect("a descriptor is a small number");
        // SAFETY: it was opened just now, and nobody else has it.
        ProcessHandle(unsafe { std::os::fd::OwnedFd::from_raw_fd(descriptor) })
    }

    fn kill(&self) {
        use std::os::fd::AsRawFd;
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open; no information goes with the signal.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), libc::SIGKILL, nothing, 0) };
    }
}

/// The same on Windows.
#[cfg(windows)]
struct ProcessHandle(std::os::windows::io::OwnedHandle);

#[cfg(windows)]
impl ProcessHandle {
    fn of(child: &Child) -> Self {
        use std::os::windows::io::AsHandle;
        ProcessHandle(child.as_handle().try_clone_to_owned().expect("the handle of a child can be copied"))
    }

    fn kill(&self) {
        use std::os::windows::io::AsRawHandle;
        // SAFETY: the handle is open. One that has ended is not ended again.
        unsafe { windows_sys::Win32::System::Threading::TerminateProcess(self.0.as_raw_handle(), 1) };
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
struct ProcessHandle(u32);

#[cfg(not(any(target_os = "linux", windows)))]
impl ProcessHandle {
    fn of(child: &Child) -> Self {
        ProcessHandle(child.id())
    }

    fn kill(&self) {
        let _ = std::process::Command::new("kill").arg("-9").arg(self.0.to_string()).status();
    }
}
