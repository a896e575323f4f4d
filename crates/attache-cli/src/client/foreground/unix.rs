//! A program in the foreground of the terminal, as job control has it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

/// Runs a program in the foreground of the terminal, as a shell does: what is typed there, Ctrl-C and Ctrl-Z included, is
/// for it alone. If it is stopped, so are we, and both go on together. It ends when this is dropped, or when we do.
pub(crate) async fn run(mut command: Command, input: Option<String>) -> io::Result<ExitStatus> {
    let terminal = Arc::new(File::options().read(true).write(true).open("/dev/tty")?);
    let descriptor = terminal.as_raw_fd();
    // SAFETY: plain system calls, which may be made between fork and exec; the descriptor is open until then.
    unsafe {
        command.pre_exec(move || {
            libc::setpgid(0, 0);
            give_terminal_to(descriptor, libc::getpid());
            #[cfg(target_os = "linux")]
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGHUP);
            Ok(())
        });
    }
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().inspect_err(|_| {
        // It had the terminal already when it was found that there is no such program.
        // SAFETY: as above.
        unsafe { give_terminal_to(descriptor, libc::getpgrp()) };
    })?;
    let group = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut foreground = Foreground { terminal: terminal.clone(), group: Some(group) };
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // Who leaves before the end has seen enough.
        thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    let (sender, ended) = oneshot::channel();
    thread::spawn(move || drop(sender.send(wait(&child, &terminal))));
    let status = ended.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
    // It was waited for, so its number may be another's from now on.
    foreground.group = None;
    status
}

/// Waits for the end of a child. While it is stopped, we are.
fn wait(child: &Child, terminal: &File) -> io::Result<ExitStatus> {
    let group = i32::try_from(child.id()).map_err(io::Error::other)?;
    loop {
        let mut status = 0;
        // SAFETY: a number is written. Nobody else waits for this child.
        if unsafe { libc::waitpid(group, &mut status, libc::WUNTRACED) } < 0 {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => continue,
                _ => return Err(error),
            }
        }
        if !libc::WIFSTOPPED(status) {
            return Ok(ExitStatus::from_raw(status));
        }
        // SAFETY: numbers in, numbers out. We stop here until the shell lets us go on.
        unsafe {
            give_terminal_to(terminal.as_raw_fd(), libc::getpgrp());
            libc::kill(libc::getpid(), libc::SIGSTOP);
            give_terminal_to(terminal.as_raw_fd(), group);
            libc::kill(-group, libc::SIGCONT);
        }
    }
}

/// A program in the foreground, until this is dropped.
struct Foreground {
    terminal: Arc<File>,
    /// The program's process group, as long as it runs.
    group: Option<i32>,
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // SAFETY: numbers in. A group that was not waited for is still the program's.
        unsafe {
            if let Some(group) = self.group {
                libc::kill(-group, libc::SIGHUP);
                libc::kill(-group, libc::SIGCONT);
            }
            give_terminal_to(self.terminal.as_raw_fd(), libc::getpgrp());
        }
    }
}

/// Makes a process group the one that the terminal listens to.
///
/// # Safety
///
/// None beyond that of the system calls, which take numbers. May be called between fork and exec.
unsafe fn give_terminal_to(terminal: i32, group: i32) {
    // SAFETY: all zeros is a valid set of signals; what is pointed to lives through the calls.
    unsafe {
        // Who is in the background is stopped by this call, unless it does not want to hear of it.
        let mut output: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut output);
        libc::sigaddset(&mut output, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &output, &mut before);
        libc::tcsetpgrp(terminal, group);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}
