//! A process and its descendants on Linux, also those that left its process group.
//!
//! Descendants are found by their parents in `/proc`, so a daemon whose parent ended before anyone looked is missed.
//! Stronger means (a subreaper, PID namespaces) come with a later change.

use std::{
    collections::HashSet,
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    time::Duration,
};

use libc::{c_int, pid_t};

/// How often a tree is looked through for processes that were not there a moment ago. Each round can only find what
/// was started during the one before, so two are the rule; the limit is for those who start processes to stay alive.
const ROUNDS: usize = 10;

/// A process that leads its own group, and what is known of its descendants.
pub(super) struct Tree {
    root: pid_t,
    /// The root is a child of ours that has not been reaped, so its id cannot mean another process or group.
    pub(super) root_is_pinned: bool,
    known: Vec<Descendant>,
}

impl Tree {
    pub(super) fn new(root: pid_t) -> Self {
        Self { root, root_is_pinned: true, known: Vec::new() }
    }

    pub(super) fn root(&self) -> pid_t {
        self.root
    }

    /// Looks for living descendants that are not known yet, and says how many there were.
    pub(super) fn note_descendants(&mut self) -> usize {
        self.known.retain(Descendant::is_alive);
        let known: HashSet<pid_t> = self.known.iter().map(|descendant| descendant.entry.pid).collect();
        let mut ours = known.clone();
        if self.root_is_pinned {
            ours.insert(self.root);
        }
        let table = process_table();
        loop {
            let is_more = |entry: &&Entry| !ours.contains(&entry.pid) && self.belongs(entry, &ours);
            let more: Vec<pid_t> = table.iter().filter(is_more).map(|entry| entry.pid).collect();
            if more.is_empty() {
                break;
            }
            ours.extend(more);
        }
        let is_new = |entry: &Entry| entry.pid != self.root && ours.contains(&entry.pid) && !known.contains(&entry.pid);
        let found: Vec<_> =
            table.into_iter().filter(is_new).filter_map(Descendant::open).filter(Descendant::is_alive).collect();
        let count = found.len();
        self.known.extend(found);
        count
    }

    fn belongs(&self, entry: &Entry, ours: &HashSet<pid_t>) -> bool {
        let in_group = self.root_is_pinned && entry.group == self.root;
        in_group || ours.contains(&entry.parent) || ours.contains(&entry.session)
    }

    /// Whether a known descendant lives.
    pub(super) fn has_descendants(&self) -> bool {
        self.known.iter().any(Descendant::is_alive)
    }

    /// Asks the group and every known descendant outside of it to end.
    pub(super) fn terminate(&self) {
        self.signal_group(libc::SIGTERM);
        // Nobody is asked twice, because many programs take a second SIGTERM as "leave at once".
        let was_asked = |pid| self.root_is_pinned && read_entry(pid).is_some_and(|now| now.group == self.root);
        for descendant in self.known.iter().filter(|descendant| !was_asked(descendant.entry.pid)) {
            descendant.signal(libc::SIGTERM);
        }
    }

    fn signal_all(&self, signal: c_int) {
        self.signal_group(signal);
        for descendant in &self.known {
            descendant.signal(signal);
        }
    }

    fn signal_group(&self, signal: c_int) {
        if self.root_is_pinned {
            // SAFETY: sends a signal, touches no memory. The group is ours as long as the root is pinned.
            unsafe { libc::kill(-self.root, signal) };
        }
    }

    /// Ends every process of the tree.
    ///
    /// They are stopped first: a stopped process cannot start another one, so once all that were found are stopped
    /// and no more are found, none is missed.
    pub(super) fn kill(&mut self) {
        for _ in 0..ROUNDS {
            self.signal_all(libc::SIGSTOP);
            if self.note_descendants() == 0 {
                break;
            }
        }
        self.signal_all(libc::SIGKILL);
    }

    /// Waits until the descendants that were killed are gone, and ends those that turn up late. Blocks.
    pub(super) fn wait_until_dead(&mut self) {
        for _ in 0..ROUNDS {
            self.note_descendants();
            if self.known.is_empty() {
                break;
            }
            self.signal_all(libc::SIGKILL);
            for descendant in &self.known {
                // The kernel needs microseconds for most, more for those with a lot of memory to give back.
                descendant.wait(Duration::from_millis(50));
            }
        }
    }
}

/// A descendant, held in a way that never means another process with a recycled id.
struct Descendant {
    entry: Entry,
    /// `None` where the kernel or a sandbox has no pidfd, or we have no file descriptor left; then the start time has
    /// to do.
    pidfd: Option<OwnedFd>,
}

impl Descendant {
    fn open(entry: Entry) -> Option<Self> {
        // SAFETY: takes two integers, gives a new file descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, entry.pid, 0) };
        let pidfd = match fd {
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => return None,
            -1 => None,
            // SAFETY: the kernel just gave us this descriptor (always close-on-exec), and nobody else has it.
            fd => Some(unsafe { OwnedFd::from_raw_fd(fd as c_int) }),
        };
        // The process may have ended between the look at the table and the opening.
        read_entry(entry.pid).is_some_and(|now| now.start_time == entry.start_time).then_some(Self { entry, pidfd })
    }

    fn is_alive(&self) -> bool {
        !self.wait(Duration::ZERO)
    }

    /// Waits until it has ended, and says whether it has.
    fn wait(&self, at_most: Duration) -> bool {
        if let Some(pidfd) = &self.pidfd {
            let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `poll` is one valid pollfd, and lives during the call.
            return unsafe { libc::poll(&mut poll, 1, at_most.as_millis() as c_int) } == 1;
        }
        let has_ended =
            || read_entry(self.entry.pid).is_none_or(|now| now.is_zombie || now.start_time != self.entry.start_time);
        if !has_ended() && !at_most.is_zero() {
            std::thread::sleep(at_most);
        }
        has_ended()
    }

    fn signal(&self, signal: c_int) {
        match &self.pidfd {
            // SAFETY: sends a signal to the process behind the descriptor; no siginfo is passed.
            Some(pidfd) => unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    pidfd.as_raw_fd(),
                    signal,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                );
            },
            None if self.is_alive() => {
                // SAFETY: sends a signal, touches no memory.
                unsafe { libc::kill(self.entry.pid, signal) };
            }
            None => {}
        }
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

/// All processes that we can see; none where `/proc` is not mounted.
fn process_table() -> Vec<Entry> {
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
