//! The descendants of a process on Linux, found by their parents in `/proc` and held by pidfds.

use std::{
    collections::HashMap,
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    ptr,
};

use libc::{c_int, c_uint, pid_t};

/// The living descendants of a process, parents before their children, without that process itself.
///
/// The caller makes sure that `root` still means the same process after this has returned, before it signals anybody.
pub(super) fn descendants(root: pid_t) -> Vec<Descendant> {
    let mut children = by_parent();
    let generation = children.remove(&root).unwrap_or_default();
    with_descendants(generation, &mut children)
}

/// The children of a process for which `is_orphan` holds of their id and session, zombies included, and the living
/// descendants of those.
pub(super) fn orphans(root: pid_t, is_orphan: impl Fn(pid_t, pid_t) -> bool) -> (Vec<pid_t>, Vec<Descendant>) {
    let mut children = by_parent();
    let mut orphans = children.remove(&root).unwrap_or_default();
    orphans.retain(|entry| is_orphan(entry.pid, entry.session));
    let pids: Vec<pid_t> = orphans.iter().map(|entry| entry.pid).collect();
    let next = pids.iter().filter_map(|pid| children.remove(pid)).flatten().collect();
    (pids, with_descendants(next, &mut children))
}

fn by_parent() -> HashMap<pid_t, Vec<Entry>> {
    let mut children: HashMap<pid_t, Vec<Entry>> = HashMap::new();
    for entry in process_table() {
        children.entry(entry.parent).or_default().push(entry);
    }
    children
}

/// Holds these processes and all their descendants, as far as they live.
fn with_descendants(mut generation: Vec<Entry>, children: &mut HashMap<pid_t, Vec<Entry>>) -> Vec<Descendant> {
    let mut found = Vec::new();
    while !generation.is_empty() {
        let next = generation.iter().filter_map(|entry| children.remove(&entry.pid)).flatten().collect();
        found.extend(generation.into_iter().filter(|entry| !entry.is_zombie).filter_map(Descendant::open));
        generation = next;
    }
    found
}

/// Whether a process of this group lives, or that cannot be seen.
pub(super) fn is_group_alive(group: pid_t) -> bool {
    let table = process_table();
    table.is_empty() || table.iter().any(|entry| entry.group == group && !entry.is_zombie)
}

/// A descendant, held in a way that never means another process with a recycled id.
pub(super) struct Descendant {
    entry: Entry,
    /// `None` where the kernel or a sandbox has no pidfd, or we have no file descriptor left; then the start time has
    /// to do.
    pidfd: Option<OwnedFd>,
}

impl Descendant {
    fn open(entry: Entry) -> Option<Self> {
        let pidfd = match open_pidfd(entry.pid) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return None,
            pidfd => pidfd.ok(),
        };
        // The process, or the parent that it was found by, may have ended between the look at the table and the opening.
        let is_same = |now: Entry| now.start_time == entry.start_time && now.parent == entry.parent;
        read_entry(entry.pid).is_some_and(is_same).then_some(Self { entry, pidfd })
    }

    /// Its process group when it was found.
    pub(super) fn group(&self) -> pid_t {
        self.entry.group
    }

    pub(super) fn signal(&self, signal: c_int) {
        match &self.pidfd {
            Some(pidfd) => {
                let _ = signal_process(pidfd, signal);
            }
            None if read_entry(self.entry.pid).is_some_and(|now| now.start_time == self.entry.start_time) => {
                // SAFETY: sends a signal, touches no memory.
                unsafe { libc::kill(self.entry.pid, signal) };
            }
            None => {}
        }
    }
}

/// Holds a process, so that it is never taken for another with a recycled id.
pub(super) fn open_pidfd(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers, gives a new file descriptor or -1.
    match unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel just gave us this descriptor (always close-on-exec), and nobody else has it.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) }),
    }
}

/// Sends a signal to the process behind a pidfd.
pub(super) fn signal_process(pidfd: &OwnedFd, signal: c_int) -> io::Result<()> {
    send_signal(pidfd, signal, 0)
}

/// Sends a signal to the process group that the process behind a pidfd leads, or led. In kernels since 6.9.
pub(super) fn signal_group(pidfd: &OwnedFd, signal: c_int) -> io::Result<()> {
    const PIDFD_SIGNAL_PROCESS_GROUP: c_uint = 1 << 2;
    send_signal(pidfd, signal, PIDFD_SIGNAL_PROCESS_GROUP)
}

fn send_signal(pidfd: &OwnedFd, signal: c_int, flags: c_uint) -> io::Result<()> {
    let no_info = ptr::null::<libc::siginfo_t>();
    // SAFETY: no siginfo is passed, the rest are numbers.
    match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, no_info, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// One line of the process table.
#[derive(Debug, PartialEq)]
struct Entry {
    pid: pid_t,
    is_zombie: bool,
    parent: pid_t,
    group: pid_t,
    session: pid_t,
    /// In clock ticks since boot. With the id it names a process for good.
    start_time: u64,
}

/// Whether a process is stopped, as by SIGSTOP.
pub(super) fn is_stopped(pid: pid_t) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.iter().rposition(|byte| *byte == b')').unwrap_or_default();
    stat.get(after_name + 2) == Some(&b'T')
}

/// All processes that we can see; none where `/proc` is not mounted, or is that of a namespace with other ids.
fn process_table() -> Vec<Entry> {
    if fs::read_link("/proc/self").ok() != Some(std::process::id().to_string().into()) {
        return Vec::new();
    }
    let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
    directory.flatten().filter_map(|entry| read_entry(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read_entry(pid: pid_t) -> Option<Entry> {
    // Bytes and not text, because a program may give itself any name.
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line like `42 (name) S 1 42 42 ...`. The name may contain anything, also a bracket; the rest may not.
fn parse_stat(pid: pid_t, line: &[u8]) -> Option<Entry> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&line[after_name..]).ok()?.split_ascii_whitespace();
    Some(Entry {
        pid,
        is_zombie: matches!(fields.next()?, "Z" | "X"),
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        start_time: fields.nth(15)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_process_table_is_read_past_odd_names() {
        let line = b"42 (a) S (\xff b) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 200";
        let entry = Entry { pid: 42, is_zombie: true, parent: 7, group: 8, session: 9, start_time: 12345 };
        assert_eq!(parse_stat(42, line), Some(entry));
        assert_eq!(parse_stat(42, b"42 (torn) S 1 2"), None);
    }

    #[test]
    fn our_own_process_is_in_the_table() {
        let own = std::process::id() as pid_t;
        assert!(process_table().iter().any(|entry| entry.pid == own && !entry.is_zombie));
    }
}
