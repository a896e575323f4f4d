//! A child process, and what it has used so far.

use std::io;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A process under test. It ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    pub child: Child,
    clock: libc::clockid_t,
}

impl Process {
    /// Starts a command.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let mut clock = 0;
        // SAFETY: the pid is that of a child that was not waited for, and `clock` is ours.
        let failed = unsafe { libc::clock_getcpuclockid(child.id() as libc::pid_t, &mut clock) };
        match failed {
            0 => Ok(Process { child, clock }),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// The CPU time of the process itself, user and system. Children that it waited for are not part of it.
    pub fn cpu(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours; the clock is that of a process that was not reaped.
        unsafe { libc::clock_gettime(self.clock, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Memory in KiB, 0 once the process has ended.
    pub fn memory(&self) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim_start_matches(':').trim().split(' ').next()?.parse().ok()).unwrap_or(0)
        };
        Memory { now: field("VmRSS"), peak: field("VmHWM") }
    }

    /// Waits until the process has ended, without reaping it: its clock can still be read. The highest peak of memory
    /// that was seen on the way comes back.
    pub fn watch_to_end(&self, limit: Duration) -> io::Result<u64> {
        let until = Instant::now() + limit;
        let mut peak = 0;
        loop {
            peak = peak.max(self.memory().peak);
            // SAFETY: all zero is a valid siginfo; the pid is that of our child; WNOWAIT leaves it to be reaped by `Child`.
            let pid = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
                libc::waitid(libc::P_PID, self.child.id(), &mut info, flags);
                info.si_pid()
            };
            if pid != 0 {
                return Ok(peak);
            }
            if Instant::now() > until {
                return Err(io::Error::other("it did not end in time"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Resident memory in KiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
