//! A program that has the person's terminal for a while: the editor, the pager, a login.

#[cfg(unix)]
#[path = "foreground/unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "foreground/windows.rs"]
mod sys;

pub(crate) use sys::run;
