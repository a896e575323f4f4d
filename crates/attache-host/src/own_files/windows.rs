//! Locks and names as Windows has them.

use std::fs::{File, TryLockError};
use std::io;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_STANDARD_INFO, FileStandardInfo, GetFileInformationByHandleEx, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFile,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// Where the byte is that is locked: locks keep others from reading, too, so it is one that no file has.
const LOCKED_BYTE: u64 = 1 << 62;

pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    let mut place = place();
    // SAFETY: the handle is open, and the place lives through the call, which does not wait.
    let locked = unsafe {
        LockFileEx(file.as_raw_handle(), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &mut place)
    };
    if locked != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Err(TryLockError::WouldBlock),
        _ => Err(TryLockError::Error(error)),
    }
}

pub(super) fn unlock(file: &File) -> io::Result<()> {
    // SAFETY: the handle is open.
    let unlocked = unsafe { UnlockFile(file.as_raw_handle(), LOCKED_BYTE as u32, (LOCKED_BYTE >> 32) as u32, 1, 0) };
    if unlocked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn place() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = LOCKED_BYTE as u32;
    place.Anonymous.Anonymous.OffsetHigh = (LOCKED_BYTE >> 32) as u32;
    place
}

pub(super) fn is_deleted(file: &File) -> io::Result<bool> {
    let mut info = FILE_STANDARD_INFO::default();
    let size = size_of::<FILE_STANDARD_INFO>() as u32;
    // SAFETY: the handle is open, and as much is written as there is room for.
    let asked =
        unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), FileStandardInfo, (&raw mut info).cast(), size) };
    if asked == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(info.DeletePending || info.NumberOfLinks == 0)
}

pub(super) fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn hint_to_protect(path: &Path) -> String {
    format!("icacls \"{}\" /inheritance:r /grant:r \"%USERNAME%:F\"", path.display())
}
