//! Access lists that name the current user and nobody else.

use std::{
    ffi::c_void,
    fs::{self, File},
    io,
    os::windows::{
        ffi::OsStrExt as _,
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    },
    path::Path,
    ptr, slice,
    sync::OnceLock,
};

use windows_sys::Win32::{
    Foundation::{GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE, LocalFree},
    Security::{
        ACCESS_ALLOWED_ACE, ACE_HEADER, ACL,
        Authorization::{
            ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetNamedSecurityInfoW,
            SDDL_REVISION_1, SE_FILE_OBJECT,
        },
        DACL_SECURITY_INFORMATION, GetAce, GetTokenInformation, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
        SetFileSecurityW, TOKEN_QUERY, TOKEN_USER, TokenUser,
    },
    Storage::FileSystem::{
        CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_APPEND_DATA, FILE_ATTRIBUTE_NORMAL, FILE_SHARE_DELETE,
        FILE_SHARE_READ, FILE_SHARE_WRITE, OPEN_ALWAYS, SYNCHRONIZE,
    },
    System::Threading::{GetCurrentProcess, OpenProcessToken},
};

use super::Opening;

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_directory(above)?;
    }
    let descriptor = Descriptor::for_us(true)?;
    let (name, attributes) = (wide(path)?, descriptor.attributes());
    // SAFETY: the name ends with a zero, and it and the attributes live during the call.
    match unsafe { CreateDirectoryW(name.as_ptr(), &attributes) } {
        0 => match io::Error::last_os_error() {
            // Somebody else was faster.
            error if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

pub(super) fn open(path: &Path, how: Opening) -> io::Result<File> {
    let (access, disposition) = match how {
        Opening::New => (GENERIC_WRITE, CREATE_NEW),
        Opening::Keep => (GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS),
        Opening::Append => (FILE_APPEND_DATA | SYNCHRONIZE, OPEN_ALWAYS),
        Opening::ReadAndAppend => (GENERIC_READ | FILE_APPEND_DATA, OPEN_ALWAYS),
    };
    let descriptor = Descriptor::for_us(false)?;
    let (name, attributes) = (wide(path)?, descriptor.attributes());
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: the name ends with a zero, and it and the attributes live during the call.
    let handle = unsafe {
        CreateFileW(name.as_ptr(), access, share, &attributes, disposition, FILE_ATTRIBUTE_NORMAL, ptr::null_mut())
    };
    match handle {
        INVALID_HANDLE_VALUE => Err(io::Error::last_os_error()),
        // SAFETY: the system just gave us this handle, and nobody else has it.
        handle => Ok(unsafe { File::from_raw_handle(handle) }),
    }
}

pub(super) fn is_private(path: &Path) -> io::Result<bool> {
    let name = wide(path)?;
    let (mut list, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the name ends with a zero, and all pointers are to variables that live during the call.
    let error = unsafe {
        GetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            ptr::null_mut(),
            ptr::null_mut(),
            &mut list,
            ptr::null_mut(),
            &mut descriptor,
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error.cast_signed()));
    }
    let _descriptor = Descriptor(descriptor);
    // No list at all lets everybody do everything.
    if list.is_null() {
        return Ok(false);
    }
    // SAFETY: the system gave us the list, and it lives as long as the descriptor.
    let count = unsafe { (*list).AceCount };
    for index in 0..u32::from(count) {
        if !is_harmless(list, index)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an entry of an access list gives nothing to anybody but the current user, administrators and the system.
fn is_harmless(list: *const ACL, index: u32) -> io::Result<bool> {
    /// Kinds of entries: the only one that gives rights which we understand, and one that only takes.
    const ALLOWED: u8 = 0;
    const DENIED: u8 = 1;
    /// The system, administrators, and the owner under two names.
    const TRUSTED: [&str; 4] = ["S-1-5-18", "S-1-5-32-544", "S-1-3-4", "S-1-3-0"];
    let mut entry: *mut c_void = ptr::null_mut();
    // SAFETY: the list is valid, and the index one of its entries.
    if unsafe { GetAce(list, index, &mut entry) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every entry begins with this header.
    let kind = unsafe { (*entry.cast::<ACE_HEADER>()).AceType };
    if kind != ALLOWED {
        return Ok(kind == DENIED);
    }
    let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
    // SAFETY: an entry of this kind has a mask, and a SID from here on.
    let (mask, sid) = unsafe { ((*entry).Mask, sid_text((&raw mut (*entry).SidStart).cast())?) };
    Ok(mask == 0 || TRUSTED.contains(&sid.as_str()) || sid == own_sid()?)
}

pub(super) fn protect(path: &Path) -> io::Result<()> {
    let descriptor = Descriptor::for_us(fs::metadata(path)?.is_dir())?;
    let name = wide(path)?;
    // SAFETY: the name ends with a zero, and it and the descriptor live during the call.
    match unsafe { SetFileSecurityW(name.as_ptr(), DACL_SECURITY_INFORMATION, descriptor.0) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What the system gave us to free.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    /// Lets the current user do everything and nobody else anything; what is made in a directory is the same.
    fn for_us(is_directory: bool) -> io::Result<Self> {
        let inherited = if is_directory { "OICI" } else { "" };
        let text = format!("D:P(A;{inherited};FA;;;{})\0", own_sid()?);
        let text: Vec<u16> = text.encode_utf16().collect();
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text ends with a zero, and the descriptor is a variable that lives during the call.
        let done = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                ptr::null_mut(),
            )
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(Descriptor(descriptor)) }
    }

    /// Good for as long as the descriptor lives. What is made with them is not inherited by children.
    fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0,
            bInheritHandle: 0,
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it was allocated by the system for us, and is freed once.
        unsafe { LocalFree(self.0) };
    }
}

/// Who we are, as access lists have it. It does not change.
fn own_sid() -> io::Result<String> {
    static SID: OnceLock<String> = OnceLock::new();
    if let Some(sid) = SID.get() {
        return Ok(sid.clone());
    }
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: the token is a variable that lives during the call.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system just gave us this handle, and nobody else has it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // Aligned for the structure at its beginning; a SID has 68 bytes at most.
    let mut buffer = [0u64; 32];
    let mut length = 0;
    // SAFETY: the buffer has as many bytes as we say.
    let done = unsafe {
        let (at, size) = (buffer.as_mut_ptr().cast(), size_of_val(&buffer) as u32);
        GetTokenInformation(token.as_raw_handle(), TokenUser, at, size, &mut length)
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system wrote this structure, whose SID is in the same buffer.
    let sid = unsafe { sid_text((*buffer.as_ptr().cast::<TOKEN_USER>()).User.Sid)? };
    Ok(SID.get_or_init(|| sid).clone())
}

/// A SID as `S-1-5-18`.
///
/// # Safety
///
/// It has to be a valid one.
unsafe fn sid_text(sid: PSID) -> io::Result<String> {
    let mut text = ptr::null_mut();
    // SAFETY: the SID is valid, and the text a variable that lives during the call.
    if unsafe { ConvertSidToStringSidW(sid, &mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let length = (0..).take_while(|index| {
        // SAFETY: the text ends with a zero, and no index after that is looked at.
        unsafe { *text.add(*index) != 0 }
    });
    // SAFETY: so many characters are there.
    let sid = String::from_utf16_lossy(unsafe { slice::from_raw_parts(text, length.count()) });
    // SAFETY: it was allocated by the system for us, and is freed once.
    unsafe { LocalFree(text.cast()) };
    Ok(sid)
}

fn wide(path: &Path) -> io::Result<Vec<u16>> {
    let mut name: Vec<u16> = path.as_os_str().encode_wide().collect();
    if name.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has a zero in it"));
    }
    name.push(0);
    Ok(name)
}
