//! Private files by their access list.

use std::ffi::c_void;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_INSUFFICIENT_BUFFER, ERROR_LOCK_VIOLATION, ERROR_SUCCESS, HANDLE, LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetNamedSecurityInfoW,
    SDDL_REVISION_1, SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce, GetSecurityDescriptorDacl,
    GetTokenInformation, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
    TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_STANDARD_INFO, FileStandardInfo, GetFileInformationByHandleEx, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFile,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Who has a file beside its owner: the system, those who administer the machine, and "whoever owns it".
const HARMLESS: [&str; 3] = ["S-1-5-18", "S-1-5-32-544", "S-1-3-4"];

/// The kind of an entry that allows something.
const ALLOWED: u8 = 0;
/// An entry that is only handed down to what is made beneath.
const INHERIT_ONLY: u8 = 8;

/// Where the byte is that is locked: locks keep others from reading, too, so it is one that no file has.
const LOCKED_BYTE: u64 = 1 << 62;

pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let is_new = path.symlink_metadata().is_err();
    let file = options.open(path)?;
    if is_new {
        // What lies in a directory of ours has its list from there. Elsewhere it is private from now on, before anything is
        // written to it.
        close_off(path)?;
    }
    Ok(file)
}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_directory(above)?;
    }
    match create_new_directory(path) {
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

pub(super) fn create_new_directory(path: &Path) -> io::Result<()> {
    let descriptor = own_descriptor()?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    let name = wide(path)?;
    // SAFETY: the name ends with a zero, and what is pointed to lives through the call.
    match unsafe { CreateDirectoryW(name.as_ptr(), &attributes) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

pub(super) fn close_off(path: &Path) -> io::Result<()> {
    let descriptor = own_descriptor()?;
    let (mut is_there, mut is_default, mut list) = (0, 0, ptr::null_mut());
    // SAFETY: the descriptor is one that the system made; the list lies in it and lives as long.
    let found = unsafe { GetSecurityDescriptorDacl(descriptor.0, &mut is_there, &mut list, &mut is_default) };
    if found == 0 || is_there == 0 {
        return Err(io::Error::last_os_error());
    }
    let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    let name = wide(path)?;
    // SAFETY: the name ends with a zero, and the list lives through the call.
    let code = unsafe {
        SetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            what,
            ptr::null_mut(),
            ptr::null_mut(),
            list,
            ptr::null_mut(),
        )
    };
    checked(code)
}

pub(super) fn is_private(path: &Path) -> io::Result<bool> {
    let name = wide(path)?;
    let mut list: *mut ACL = ptr::null_mut();
    let mut descriptor = Local(ptr::null_mut());
    // SAFETY: the name ends with a zero; the system makes a descriptor that is ours to free, and the list lies in it.
    let code = unsafe {
        GetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            ptr::null_mut(),
            ptr::null_mut(),
            &mut list,
            ptr::null_mut(),
            &mut descriptor.0,
        )
    };
    checked(code)?;
    if list.is_null() {
        // Without a list everybody may do everything; so it is on file systems that have none.
        return Ok(false);
    }
    let person = person()?;
    // SAFETY: the list is whole, as the system made it.
    let count = unsafe { (*list).AceCount };
    for number in 0..u32::from(count) {
        let mut entry: *mut c_void = ptr::null_mut();
        // SAFETY: the number is one that the list has.
        if unsafe { GetAce(list, number, &mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every entry begins with a header.
        let header = unsafe { *entry.cast::<ACE_HEADER>() };
        if header.AceFlags & INHERIT_ONLY != 0 {
            continue;
        }
        match header.AceType {
            ALLOWED => {
                // SAFETY: an entry of this kind ends with an identity, which begins where the field is.
                let id = unsafe { &raw const (*entry.cast::<ACCESS_ALLOWED_ACE>()).SidStart };
                let id = text_of(id.cast_mut().cast())?;
                if id != person && !HARMLESS.contains(&id.as_str()) {
                    return Ok(false);
                }
            }
            // Entries that forbid or audit take nothing from it; those of other kinds may allow under a condition.
            1 | 2 => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

pub(super) fn way_to_close_off(path: &Path) -> String {
    format!("icacls \"{}\" /inheritance:r /grant:r \"%USERNAME%:F\"", path.display())
}

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
        Some(ERROR_LOCK_VIOLATION) => Err(TryLockError::WouldBlock),
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

/// What the system gave us and wants back.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the system made it for us to free, once.
        unsafe { LocalFree(self.0) };
    }
}

/// A descriptor with nobody but the person and the system in it, for what is made beneath, too.
fn own_descriptor() -> io::Result<Local> {
    let text = format!("D:P(A;OICI;FA;;;{})(A;OICI;FA;;;SY)", person()?);
    let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    // SAFETY: the text ends with a zero; the system makes a descriptor that is ours to free.
    let made = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            SDDL_REVISION_1,
            &mut descriptor,
            ptr::null_mut(),
        )
    };
    if made == 0 { Err(io::Error::last_os_error()) } else { Ok(Local(descriptor)) }
}

/// Who we are, as the text of an identity.
fn person() -> io::Result<String> {
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: the handle of our own process needs no closing; the token is closed below.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let read = || {
        let mut length = 0;
        // SAFETY: asks how much room there has to be.
        unsafe { GetTokenInformation(token, TokenUser, ptr::null_mut(), 0, &mut length) };
        let error = io::Error::last_os_error();
        if error.raw_os_error().map(i32::cast_unsigned) != Some(ERROR_INSUFFICIENT_BUFFER) {
            return Err(error);
        }
        // Whole words, so that it is aligned for what is in it.
        let mut room = vec![0_u64; (length as usize).div_ceil(8)];
        // SAFETY: there is as much room as was asked for.
        if unsafe { GetTokenInformation(token, TokenUser, room.as_mut_ptr().cast(), length, &mut length) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was filled with this, whose identity lies behind it in the same room.
        text_of(unsafe { (*room.as_ptr().cast::<TOKEN_USER>()).User.Sid })
    };
    let read = read();
    // SAFETY: the token was opened above.
    unsafe { CloseHandle(token) };
    read
}

fn text_of(id: PSID) -> io::Result<String> {
    let mut text: *mut u16 = ptr::null_mut();
    // SAFETY: whoever calls this has a whole identity; the system makes a text that is ours to free.
    if unsafe { ConvertSidToStringSidW(id, &mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let _owned = Local(text.cast());
    // SAFETY: the text ends with a zero.
    let length = (0..).take_while(|at| unsafe { *text.add(*at) } != 0).count();
    // SAFETY: as long as was just counted.
    Ok(String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(text, length) }))
}

fn wide(path: &Path) -> io::Result<Vec<u16>> {
    let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    match name[..name.len() - 1].contains(&0) {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "a path has a zero in it")),
        false => Ok(name),
    }
}

fn checked(code: u32) -> io::Result<()> {
    match code {
        ERROR_SUCCESS => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.cast_signed())),
    }
}
