//! What a process has used so far: CPU time and memory.

use std::time::Duration;

/// The CPU time of a process, user and system; of this one for 0.
pub fn cpu(pid: u32) -> Duration {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both pointers are ours. A clock of a process that is gone is an error, which leaves the time at 0.
    unsafe {
        if libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) == 0 {
            libc::clock_gettime(clock, &mut time);
        }
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Keeps this process, and those that it starts, on the last of the cores that it may use.
#[allow(dead_code, reason = "the stores do not need it")]
pub fn stay_on_one_core() -> std::io::Result<()> {
    // SAFETY: all zero is an empty set, and both are of the size that is told. The numbers are in range.
    let failed = unsafe {
        let size = size_of::<libc::cpu_set_t>();
        let (mut allowed, mut one): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sched_getaffinity(0, size, &mut allowed);
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(|core| libc::CPU_ISSET(*core, &allowed)).unwrap_or(0);
        libc::CPU_SET(last, &mut one);
        libc::sched_setaffinity(0, size, &one)
    };
    if failed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Resident memory in KiB: now, and at its highest.
pub fn memory(pid: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim_start_matches(':').trim().split(' ').next()?.parse().ok()).unwrap_or(0.0)
    };
    (field("VmRSS"), field("VmHWM"))
}
