//! Jobs of Windows: a child with everything it starts, ended as a whole.
//!
//! A job ends with its last handle, and we hold the only one. When our program ends, however it ends, the system closes it.
//! Nothing in the job may leave it. Jobs are nested: a child of ours may have jobs of its own, and may end with one of its
//! parent's before.

use std::{
    ffi::c_void,
    io,
    os::windows::{
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle},
        process::CommandExt as _,
    },
    process::Command,
    ptr,
    sync::Once,
};

use windows_sys::Win32::{
    Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation},
    System::{
        Console::{GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE},
        JobObjects::{
            AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
            JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation, QueryInformationJobObject,
            SetInformationJobObject, TerminateJobObject,
        },
        Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED},
    },
};

#[link(name = "ntdll", kind = "raw-dylib")]
unsafe extern "system" {
    /// Lets all threads of a process run. The only way to do it without the handle of a thread, which is not ours to have.
    fn NtResumeProcess(process: HANDLE) -> i32;
}

/// A child with everything it starts. Dropping it ends them all.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

/// The command, to be started without a window and held before its first instruction, until [`Job::with`] has it.
pub(super) fn suspended(mut command: Command) -> Command {
    keep_our_streams();
    command.creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW);
    command
}

impl Job {
    /// Puts a suspended child into a job of its own, and lets it run.
    pub(super) fn with(child: &tokio::process::Child) -> io::Result<Self> {
        let job = Self::new()?;
        let process = child.raw_handle().ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(job.raw(), process) })?;
        // SAFETY: the handle is open, and std gave it all rights.
        match unsafe { NtResumeProcess(process) } {
            0.. => Ok(job),
            status => Err(io::Error::other(format!("the program could not be resumed (status {status:#x})"))),
        }
    }

    fn new() -> io::Result<Self> {
        // SAFETY: without a name and with the usual rights; no pointer is followed.
        let handle = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system just gave us this handle, and nobody else has it.
        let job = Job(unsafe { OwnedHandle::from_raw_handle(handle) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let (at, size) = ((&raw const limits).cast::<c_void>(), size_of_val(&limits) as u32);
        // SAFETY: the limits have as many bytes as we say.
        check(unsafe { SetInformationJobObject(job.raw(), JobObjectExtendedLimitInformation, at, size) })?;
        Ok(job)
    }

    /// Whether nobody is left. What cannot be found out counts as somebody.
    pub(super) fn is_empty(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let (at, size) = ((&raw mut counts).cast::<c_void>(), size_of_val(&counts) as u32);
        let what = JobObjectBasicAccountingInformation;
        // SAFETY: the structure has as many bytes as we say.
        let known = unsafe { QueryInformationJobObject(self.raw(), what, at, size, ptr::null_mut()) };
        known != 0 && counts.ActiveProcesses == 0
    }

    /// Ends them all.
    pub(super) fn end(&self) {
        /// What a process that was ended by others has for an exit code, by custom.
        const ENDED: u32 = 1;
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(self.raw(), ENDED) };
    }

    fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

/// Keeps our own stdin, stdout and stderr from being inherited by children that have others: one of them may be the wire.
fn keep_our_streams() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for which in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
            // SAFETY: asks for a handle and changes whether it is inherited. One that is not there makes the call fail.
            unsafe { SetHandleInformation(GetStdHandle(which), HANDLE_FLAG_INHERIT, 0) };
        }
    });
}

fn check(done: i32) -> io::Result<()> {
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
