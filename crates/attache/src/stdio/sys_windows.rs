//! Takes the standard handles, and reads and writes with a thread each: pipes that others made can only be waited for so.

use std::{
    fs::File,
    io,
    os::windows::io::{BorrowedHandle, IntoRawHandle as _, RawHandle},
};

use windows_sys::Win32::{
    Foundation::{CloseHandle, INVALID_HANDLE_VALUE},
    System::Console::{GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle},
};

use super::{
    Reader, Writer,
    blocking::{ThreadReader, ThreadWriter},
};

pub(super) fn take() -> io::Result<(Reader, Writer)> {
    let (old_stdin, old_stdout) = (standard(STD_INPUT_HANDLE)?, standard(STD_OUTPUT_HANDLE)?);
    let (stdin, stdout) = (duplicate(old_stdin)?, duplicate(old_stdout)?);
    // What Rust's stdout still has in its buffer was not meant for the wire. It is not flushed here, so it will end up
    // in stderr. Without a stderr it is lost.
    let stderr = standard(STD_ERROR_HANDLE).ok();
    let new_stdout = match stderr {
        Some(stderr) => duplicate(stderr)?,
        None => File::options().write(true).open("NUL")?,
    };
    replace(STD_INPUT_HANDLE, File::open("NUL")?)?;
    replace(STD_OUTPUT_HANDLE, new_stdout)?;
    // The peer sees the end of our stdout when the last handle is closed. What stderr shares with it stays open.
    for old in [old_stdin, old_stdout] {
        if Some(old) != stderr {
            // SAFETY: nobody in the program owns it, and it is no longer the standard one.
            unsafe { CloseHandle(old) };
        }
    }
    Ok((Box::new(ThreadReader::new(stdin)?), Box::new(ThreadWriter::new(stdout)?)))
}

fn standard(which: STD_HANDLE) -> io::Result<RawHandle> {
    // SAFETY: asks for a handle.
    match unsafe { GetStdHandle(which) } {
        INVALID_HANDLE_VALUE => Err(io::Error::last_os_error()),
        handle if handle.is_null() => {
            Err(io::Error::new(io::ErrorKind::NotFound, "the program was started without stdin or stdout"))
        }
        handle => Ok(handle),
    }
}

/// Makes a copy that children do not inherit.
fn duplicate(handle: RawHandle) -> io::Result<File> {
    // SAFETY: the standard handles are open, and the borrow does not outlive this function.
    let borrowed = unsafe { BorrowedHandle::borrow_raw(handle) };
    Ok(borrowed.try_clone_to_owned()?.into())
}

/// Makes a standard handle mean what `by` means, for good.
fn replace(which: STD_HANDLE, by: File) -> io::Result<()> {
    // SAFETY: the handle is open, and nobody closes it any more.
    if unsafe { SetStdHandle(which, by.into_raw_handle()) } == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
