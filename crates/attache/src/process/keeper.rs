//! The keeper: a process between us and a program, which ends everything that the program started.
//!
//! It is forked between `fork` and `exec` of the program and becomes its parent. As a subreaper it also becomes the
//! parent of every descendant that loses its own, whatever session or group that went to, so nothing gets out of its
//! reach. It is tied to us by one socket. When our end closes, because we dropped it, ended or were killed, the keeper
//! kills what is left, and ends when nothing is.
//!
//! It never execs, so it is a copy of our program in which only this file runs. Other threads may have held any lock
//! at the moment of the fork: nothing here may allocate, lock or panic. All it does is make system calls.
//!
//! A signal is only sent to its own children, which keep their ids until it reaps them, or through a pidfd.
//!
//! # Against programs that mean harm
//!
//! The tree runs as the same user, so it can do to the keeper what users can do to their processes:
//!
//! - Read its memory, a copy of ours: it is not dumpable, so only root can.
//! - Take its descriptors away (`prlimit`): what it needs is opened before the program is there, and `epoll` waits where
//!   `poll` would refuse. It kills its children then, again and again, without looking at the rest of the machine.
//! - Stop it: our program lets it go on when the tree is to end, and the kernel does when our program is gone.
//! - Kill it, or have the kernel do so (`RLIMIT_CPU`): the program ends at once (`PR_SET_PDEATHSIG`), and the rest of the
//!   tree is our program's, which ends it; see `orphans.rs`.
//!
//! If both our program and the keeper are killed, the program ends, and what it has started may live on. A sandbox keeps a
//! tree from all of this.

use std::{
    io, mem,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    os::unix::net::UnixStream,
    ptr,
};

use libc::{c_int, c_long, c_ulong, pid_t};

use super::{
    detach,
    keeper_proc::{ProcessTable, close_all_but, forget_memory, is_descendant},
};

/// How the program ended, as `waitpid` tells it, and whether any descendant was left then.
pub(super) struct Report {
    pub(super) status: c_int,
    pub(super) is_anything_left: bool,
}

impl Report {
    pub(super) const LENGTH: usize = 5;

    fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = self.status.to_ne_bytes();
        [a, b, c, d, self.is_anything_left.into()]
    }

    pub(super) fn from_bytes([a, b, c, d, left]: [u8; Self::LENGTH]) -> Self {
        Self { status: c_int::from_ne_bytes([a, b, c, d]), is_anything_left: left != 0 }
    }
}

/// Space for one control message with one file descriptor in it, aligned as the kernel wants it.
type ControlBuffer = [u64; 4];

/// Splits the process that was forked to become the program: it stays behind as the keeper, and the call returns in a
/// new child, which is to exec the program.
///
/// # Safety
///
/// Only between `fork` and `exec`. `link` is the keeper's end of a stream socket, and not 0, 1 or 2. With `forgets`, all
/// private memory of this process is our program's.
pub(super) unsafe fn fork_program(link: c_int, forgets: bool) -> io::Result<()> {
    // SAFETY: system calls on local variables; all zeroes are valid values of these types.
    unsafe {
        let keeper = libc::getpid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong) == -1 {
            return Err(io::Error::last_os_error());
        }
        // In case that it is stopped when our program ends: then nobody else would wake it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT as c_ulong);
        // Before the program is there, which could leave it without a descriptor.
        let eyes = Eyes::open(link);
        // Our program's signal handlers must not run in the keeper, and where it ignores SIGCHLD the kernel would not
        // tell the keeper how the program ended. The program itself gets everything back as it was.
        let (mut every_signal, mut old_mask): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut every_signal);
        libc::sigprocmask(libc::SIG_SETMASK, &every_signal, &mut old_mask);
        let (default, mut old_action): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
        libc::sigaction(libc::SIGCHLD, &default, &mut old_action);
        match fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                detach::leave_session()?;
                // In case that the keeper is killed. Where a sandbox forbids this, the program is started without it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
                // If it ended before that call, no signal will come.
                if libc::getppid() != keeper {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                send_pid(link)?;
                libc::sigaction(libc::SIGCHLD, &old_action, ptr::null_mut());
                libc::sigprocmask(libc::SIG_SETMASK, &old_mask, ptr::null_mut());
                detach::close_descriptors_on_exec();
                Ok(())
            }
            program => keep(program, eyes, forgets),
        }
    }
}

/// The system call, without what the C library does around it: handlers of other libraries that may take locks.
unsafe fn fork() -> pid_t {
    let flags = libc::SIGCHLD as c_long;
    // SAFETY: without CLONE_VM or a stack this is a plain fork. The first two arguments are swapped on s390x.
    let pid = unsafe {
        if cfg!(target_arch = "s390x") {
            libc::syscall(libc::SYS_clone, 0 as c_long, flags, 0 as c_long, 0 as c_long, 0 as c_long)
        } else {
            libc::syscall(libc::SYS_clone, flags, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long)
        }
    };
    pid as pid_t
}

/// Sends the caller's process id to our program, with a pidfd where the kernel has them.
///
/// This is done by the program-to-be itself, because later nobody but the keeper could be sure that the id is its own.
unsafe fn send_pid(link: c_int) -> io::Result<()> {
    // SAFETY: system calls on local variables that outlive them; the control buffer is large enough and aligned.
    unsafe {
        let mut pid = libc::getpid();
        let mut part = libc::iovec { iov_base: (&raw mut pid).cast(), iov_len: size_of::<pid_t>() };
        let mut control: ControlBuffer = mem::zeroed();
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0) as c_int;
        if pidfd != -1 {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
            libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(pidfd);
        }
        match libc::sendmsg(link, &message, libc::MSG_NOSIGNAL) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Our side of `send_pid`: the program's process id and pidfd.
pub(super) fn receive_pid(link: &UnixStream) -> io::Result<(pid_t, Option<OwnedFd>)> {
    // SAFETY: system calls on local variables that outlive them; a descriptor that was received is nobody else's.
    unsafe {
        let mut pid: pid_t = 0;
        let mut part = libc::iovec { iov_base: (&raw mut pid).cast(), iov_len: size_of::<pid_t>() };
        let mut control: ControlBuffer = mem::zeroed();
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<ControlBuffer>() as _;
        let length = loop {
            match libc::recvmsg(link.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => return Err(io::Error::last_os_error()),
                length => break length as usize,
            }
        };
        let header = libc::CMSG_FIRSTHDR(&message);
        // Without one we have no descriptor left, or the kernel has no pidfd.
        let pidfd = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<c_int>().read_unaligned()));
        if length != size_of::<pid_t>() {
            return Err(io::Error::other("the keeper process exited"));
        }
        Ok((pid, pidfd))
    }
}

/// What the keeper sees with, opened once.
struct Eyes {
    /// Our program's end of it closes when the tree is to end.
    link: c_int,
    /// Waits for that: `poll` refuses when the limit of descriptors has been lowered. -1 where there is none.
    epoll: c_int,
    processes: ProcessTable,
}

impl Eyes {
    fn open(link: c_int) -> Self {
        // SAFETY: system calls on numbers and on a local variable that outlives them.
        let epoll = unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let mut event = libc::epoll_event { events: libc::EPOLLRDHUP as u32, u64: 0 };
            if epoll != -1 && libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, link, &mut event) == -1 {
                libc::close(epoll);
                -1
            } else {
                epoll
            }
        };
        Self { link, epoll, processes: ProcessTable::open() }
    }

    fn descriptors(&self) -> [c_int; 4] {
        let [children, all] = self.processes.descriptors();
        [self.link, self.epoll, children, all]
    }

    /// Sleeps until a child ends or our program's end of the link closes; says whether it was the latter.
    fn wait_for_end(&self, blocked: &libc::sigset_t) -> bool {
        // SAFETY: system calls on local variables that outlive them. Errors are EINTR, and ENOMEM, which passes.
        unsafe {
            if self.epoll != -1 {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                return libc::epoll_pwait(self.epoll, &mut event, 1, -1, blocked) == 1;
            }
            let mut poll = libc::pollfd { fd: self.link, events: libc::POLLRDHUP, revents: 0 };
            libc::ppoll(&mut poll, 1, ptr::null(), blocked) == 1
        }
    }

    /// Whether another descriptor could be opened.
    fn can_open(&self) -> bool {
        // SAFETY: makes a descriptor and closes it.
        unsafe {
            let copy = libc::fcntl(self.link, libc::F_DUPFD_CLOEXEC, 0);
            copy != -1 && libc::close(copy) == 0
        }
    }
}

/// The life of the keeper.
struct Keeper {
    program: pid_t,
    eyes: Eyes,
    /// The program's end has been seen.
    reported: bool,
    /// The signals that are blocked while it sleeps: all but SIGCHLD.
    asleep: libc::sigset_t,
}

unsafe fn keep(program: pid_t, eyes: Eyes, forgets: bool) -> ! {
    // SAFETY: system calls on constants and local variables.
    unsafe {
        // Its memory is our program's, with keys in it.
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as c_ulong);
        // Away from the terminal and its signals, from the working directory, and from every file that our program or
        // the program has open: a pipe ends when its last copy is closed.
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"attache-keeper".as_ptr());
        // Where our program had no descriptor left to open them with, there are some now.
        let eyes = if eyes.descriptors().contains(&-1) {
            close_all_but([eyes.link, -1, -1, -1]);
            Eyes::open(eyes.link)
        } else {
            close_all_but(eyes.descriptors());
            eyes
        };
        if forgets {
            forget_memory();
        }
        // A handler is needed for the signal to end a sleep.
        let mut wake: libc::sigaction = mem::zeroed();
        wake.sa_sigaction = wake_up as *const () as usize;
        libc::sigaction(libc::SIGCHLD, &wake, ptr::null_mut());
        let mut asleep: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut asleep);
        libc::sigdelset(&mut asleep, libc::SIGCHLD);
        let mut keeper = Keeper { program, eyes, reported: false, asleep };
        loop {
            keeper.reap();
            if keeper.eyes.wait_for_end(&keeper.asleep) {
                keeper.end_all();
            }
        }
    }
}

extern "C" fn wake_up(_: c_int) {}

impl Keeper {
    /// Reaps whatever has ended, reports the program's end, and ends the keeper when nothing is left.
    fn reap(&mut self) {
        let mut end = None;
        let is_anything_left = loop {
            let mut status = 0;
            // SAFETY: `status` is valid for writing.
            match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
                0 => break true,
                // No signal interrupts it, because all are blocked: there is no child.
                -1 => break false,
                // A descendant may get the program's id once that has been reaped.
                pid if pid == self.program && !self.reported => {
                    self.reported = true;
                    end = Some(status);
                }
                _ => {}
            }
        };
        if let Some(status) = end {
            let report = Report { status, is_anything_left }.to_bytes();
            // SAFETY: sends from a local variable. If nobody listens any more, nobody wants to know.
            unsafe {
                libc::send(
                    self.eyes.link,
                    report.as_ptr().cast(),
                    report.len(),
                    libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                )
            };
        }
        if !is_anything_left {
            // SAFETY: ends this process, without running anything of the program that it is a copy of.
            unsafe { libc::_exit(0) };
        }
    }

    /// Kills until nothing is left. It does not give up: what cannot be killed (a program that runs as another user, or
    /// is stuck in the kernel) is waited for.
    fn end_all(&mut self) -> ! {
        let mut round = 0u32;
        loop {
            // All that can be found where `/proc` is not mounted.
            if !self.reported {
                kill_child(self.program);
            }
            // What a child leaves behind becomes a child, so that a few rounds go through an ordinary tree. One that
            // grows at its far end is ended by rounds that look at every process of the machine.
            if round % 8 == 7 || !self.eyes.processes.for_each_child(kill_child) {
                self.eyes.processes.for_each_process(kill_descendant);
            }
            self.reap();
            let pause = match round {
                // Whoever cannot look at the rest of the machine has to be faster than what grows there.
                0..100_000 if !self.eyes.can_open() => 0,
                0..2000 => 1_000_000,
                _ => 100_000_000,
            };
            let pause = libc::timespec { tv_sec: 0, tv_nsec: pause };
            // SAFETY: sleeps until a child ends or the time is up.
            unsafe { libc::ppoll(ptr::null_mut(), 0, &pause, &self.asleep) };
            round = round.wrapping_add(1);
        }
    }
}

/// Kills a child. It has not been reaped, so its id is its own, and so is its group's if it leads one.
fn kill_child(child: pid_t) {
    // SAFETY: asks about a child and sends signals. All zeroes are a valid siginfo_t.
    unsafe {
        // `/proc` may be that of another namespace, with other ids. The kernel knows best whether it is a child.
        let mut info: libc::siginfo_t = mem::zeroed();
        let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if child <= 0 || libc::waitid(libc::P_PID, child as libc::id_t, &mut info, look) == -1 {
            return;
        }
        if libc::getpgid(child) == child {
            libc::kill(-child, libc::SIGKILL);
        }
        libc::kill(child, libc::SIGKILL);
    }
}

/// Kills a process if it descends from us. A child is sure to keep its id; others are held by a pidfd.
fn kill_descendant(pid: pid_t) {
    match is_descendant(pid) {
        Some(1) => kill_child(pid),
        Some(_) => {
            // SAFETY: takes two integers, gives a descriptor or -1.
            let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as c_int;
            // Looked at again, because the id may have passed to another process before it was held.
            if pidfd != -1 && is_descendant(pid).is_some() {
                // SAFETY: sends a signal to the process behind the descriptor; no siginfo is passed.
                unsafe {
                    libc::syscall(libc::SYS_pidfd_send_signal, pidfd, libc::SIGKILL, ptr::null::<libc::siginfo_t>(), 0);
                }
            }
            if pidfd != -1 {
                // SAFETY: closes the descriptor from above.
                unsafe { libc::close(pidfd) };
            }
        }
        None => {}
    }
}
