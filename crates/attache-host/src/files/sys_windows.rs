//! Directories as handles, and what is opened beneath them without following a link, on Windows.
//!
//! Every name is opened on its own, relative to the handle of the directory that it is in (`NtCreateFile`), and as the link
//! that it may be: symbolic links, junctions, mount points and whatever else leads elsewhere are refused at every step. No name
//! goes through the rewriting of `\\?\`, `..`, `a.` and `NUL` that other functions of Windows do.

use std::{
    ffi::{OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    io,
    mem::offset_of,
    os::windows::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::OpenOptionsExt as _,
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    },
    path::{Path, PathBuf},
    ptr,
};

use windows_sys::{
    Wdk::{
        Foundation::OBJECT_ATTRIBUTES,
        Storage::FileSystem::{
            FILE_CREATE, FILE_DIRECTORY_FILE, FILE_DISPOSITION_INFORMATION, FILE_DISPOSITION_INFORMATION_EX,
            FILE_ID_BOTH_DIR_INFORMATION, FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_OPEN_FOR_BACKUP_INTENT,
            FILE_OPEN_REPARSE_POINT, FILE_RENAME_INFORMATION, FILE_SYNCHRONOUS_IO_NONALERT, FileDispositionInformation,
            FileDispositionInformationEx, FileIdBothDirectoryInformation, FileRenameInformation,
            FileRenameInformationEx, NtCreateFile, NtQueryDirectoryFile, NtSetInformationFile,
        },
    },
    Win32::{
        Foundation::{
            ERROR_ALREADY_EXISTS, ERROR_CANT_RESOLVE_FILENAME, ERROR_DIRECTORY, ERROR_FILE_EXISTS,
            ERROR_FILE_NOT_FOUND, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NO_MORE_FILES,
            ERROR_NOT_SUPPORTED, ERROR_PATH_NOT_FOUND, ERROR_REPARSE_POINT_ENCOUNTERED, GENERIC_READ, GENERIC_WRITE,
            HANDLE, LocalFree, NTSTATUS, OBJ_CASE_INSENSITIVE, RtlNtStatusToDosError, UNICODE_STRING,
        },
        Security::{
            Authorization::{GetSecurityInfo, SE_FILE_OBJECT},
            DACL_SECURITY_INFORMATION, SetKernelObjectSecurity,
        },
        Storage::FileSystem::{
            BY_HANDLE_FILE_INFORMATION, DELETE, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_NORMAL,
            FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_SYSTEM, FILE_ATTRIBUTE_TAG_INFO,
            FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_ID_INFO, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES,
            FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TRAVERSE, FILE_TYPE_DISK, FILE_WRITE_ATTRIBUTES,
            FileAttributeTagInfo, FileBasicInfo, FileIdInfo, GetFileInformationByHandle, GetFileInformationByHandleEx,
            GetFileType, READ_CONTROL, SYNCHRONIZE, SetFileInformationByHandle, WRITE_DAC,
        },
        System::{
            IO::{DeviceIoControl, IO_STATUS_BLOCK},
            Ioctl::FSCTL_GET_REPARSE_POINT,
        },
    },
};

use super::entry::{Entry, EntryKind, Info, Listing};

/// An open directory.
#[derive(Debug)]
pub(super) struct Dir(OwnedHandle);

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    Link(PathBuf),
    /// A device, or something behind a link of an unknown kind.
    Other,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    Read,
    Write,
    /// To change who may write it.
    Mode,
}

const SHARED: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
const LOOK: u32 = FILE_READ_ATTRIBUTES | SYNCHRONIZE;
const DIRECTORY: u32 = FILE_TRAVERSE | LOOK;

/// How to open what a name stands for.
#[derive(Clone, Copy)]
struct How {
    access: u32,
    share: u32,
    disposition: u32,
    options: u32,
}

impl How {
    const fn open(access: u32, options: u32) -> Self {
        How { access, share: SHARED, disposition: FILE_OPEN, options }
    }
}

const OPEN_DIRECTORY: How = How::open(DIRECTORY, FILE_DIRECTORY_FILE);
/// Whatever it is, without being let in.
const OPEN_TO_LOOK: How = How::open(LOOK, FILE_OPEN_REPARSE_POINT);

impl Dir {
    /// Opens a directory wherever the path leads.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.access_mode(DIRECTORY).share_mode(SHARED).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        let file = options.open(path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(file.into()))
    }

    pub(super) fn is_same(&self, other: &Self) -> io::Result<bool> {
        Ok(id(&self.0)? == id(&other.0)?)
    }

    /// Opens a directory beneath this one; an empty path is this one.
    pub(super) fn open_dir(&self, path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self(self.0.try_clone()?));
        }
        Ok(Self(self.open_beneath(path, OPEN_DIRECTORY)?))
    }

    /// Opens a file, and nothing that has to be waited for.
    pub(super) fn open_file(&self, path: &Path, access: Access) -> io::Result<File> {
        let rights = match access {
            Access::Read => GENERIC_READ | SYNCHRONIZE,
            Access::Write => GENERIC_WRITE | LOOK | READ_CONTROL,
            Access::Mode => FILE_WRITE_ATTRIBUTES | LOOK,
        };
        let file = self.open_beneath(path, How::open(rights, FILE_NON_DIRECTORY_FILE))?;
        // Somebody with a privilege for backups could write it all the same.
        if matches!(access, Access::Write) && attributes(&file)?.FileAttributes & FILE_ATTRIBUTE_READONLY != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // SAFETY: the handle is open.
        if unsafe { GetFileType(file.as_raw_handle()) } != FILE_TYPE_DISK {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(file.into())
    }

    /// Creates a file that is not there yet, with the rights that this directory hands down. Until it is closed nobody else can
    /// open it, so one that is to be private has time to become so.
    pub(super) fn create_file(&self, name: &OsStr, _is_private: bool) -> io::Result<File> {
        let access = GENERIC_WRITE | LOOK | READ_CONTROL | WRITE_DAC;
        let options = FILE_NON_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT;
        let how = How { access, share: FILE_SHARE_DELETE, disposition: FILE_CREATE, options };
        Ok(open_name(&self.0, name, how)?.into())
    }

    pub(super) fn create_dir(&self, name: &OsStr) -> io::Result<()> {
        let options = FILE_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT;
        let how = How { access: LOOK, share: SHARED, disposition: FILE_CREATE, options };
        open_name(&self.0, name, how).map(drop)
    }

    /// Renames within this directory. What has the new name is replaced, a link too.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.rename_as(from, self, to, true)
    }

    /// Renames into another directory. Nothing is ever replaced: what has the new name makes it fail.
    pub(super) fn rename_into(&self, from: &OsStr, other: &Self, to: &OsStr) -> io::Result<()> {
        self.rename_as(from, other, to, false)
    }

    fn rename_as(&self, from: &OsStr, other: &Self, to: &OsStr, replaces: bool) -> io::Result<()> {
        /// Flags of the newer call: what is replaced may be open, and goes when it is closed.
        const REPLACE: u32 = 1;
        const POSIX_SEMANTICS: u32 = 2;
        let file = open_name(&self.0, from, How::open(DELETE | LOOK, FILE_OPEN_REPARSE_POINT))?;
        let name: Vec<u16> = to.encode_wide().collect();
        let name_at = offset_of!(FILE_RENAME_INFORMATION, FileName);
        let size = (name_at + size_of_val(&name[..])).max(size_of::<FILE_RENAME_INFORMATION>());
        // Of words, so that it is aligned for the structure.
        let mut buffer = vec![0u64; size.div_ceil(8)];
        let at = buffer.as_mut_ptr().cast::<FILE_RENAME_INFORMATION>();
        // SAFETY: the buffer is aligned, and has room for the structure with the name at its end.
        unsafe {
            (*at).RootDirectory = other.0.as_raw_handle();
            (*at).FileNameLength = size_of_val(&name[..]) as u32;
            ptr::copy_nonoverlapping(name.as_ptr(), (&raw mut (*at).FileName).cast(), name.len());
        }
        let set = |flags: u32, class: i32| {
            // SAFETY: as above. The flags are where older systems have a truth value in the first byte.
            unsafe { at.cast::<u32>().write(flags) };
            let mut status = IO_STATUS_BLOCK::default();
            // SAFETY: the handle is open, and the buffer has as many bytes as we say.
            check(unsafe { NtSetInformationFile(file.as_raw_handle(), &mut status, at.cast(), size as u32, class) })
        };
        let newer = if replaces { REPLACE | POSIX_SEMANTICS } else { POSIX_SEMANTICS };
        match set(newer, FileRenameInformationEx) {
            Err(error) if is_unsupported(&error) => set(replaces.into(), FileRenameInformation),
            result => result,
        }
    }

    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        let file = open_name(&self.0, name, How::open(DELETE | LOOK, FILE_OPEN_REPARSE_POINT))?;
        // A link to a directory is a directory to the file system.
        let found = attributes(&file)?;
        if found.FileAttributes & FILE_ATTRIBUTE_DIRECTORY != 0 && !is_reparse_point(&found) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        remove(&file)
    }

    pub(super) fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        let options = FILE_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT;
        let directory = open_name(&self.0, name, How::open(DELETE | LOOK, options))?;
        match is_reparse_point(&attributes(&directory)?) {
            true => Err(io::ErrorKind::NotADirectory.into()),
            false => remove(&directory),
        }
    }

    /// Where a link in this directory leads, as it is written in it.
    pub(super) fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        target(&open_name(&self.0, name, OPEN_TO_LOOK)?)
    }

    /// Links take a privilege that few have, and no handle of a directory can be given for them.
    pub(super) fn create_link(&self, _: &OsStr, _: &Path) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "links are not made on Windows"))
    }

    /// What is known of the end of a path, links not followed; an empty path is this directory.
    pub(super) fn stat(&self, path: &Path) -> io::Result<Info> {
        let Some(name) = path.file_name() else { return info(&self.open_dir(path)?.0) };
        let parent = self.open_dir(path.parent().unwrap_or(Path::new("")))?;
        info(&open_name(&parent.0, name, OPEN_TO_LOOK)?)
    }

    /// What is in a directory, `most` names of it.
    pub(super) fn list(&self, path: &Path, most: usize) -> io::Result<Listing> {
        // A handle of its own, because it remembers how far it was read. Without a name it is the same directory again.
        let how = How::open(FILE_LIST_DIRECTORY | DIRECTORY, FILE_DIRECTORY_FILE);
        let dir = open_name(&self.open_dir(path)?.0, OsStr::new(""), how)?;
        let mut listing = Listing { entries: Vec::new(), is_cut: false };
        let mut is_first = true;
        loop {
            let mut found = Vec::new();
            match next_entries(&dir, None, is_first, &mut |entry| found.push(entry)) {
                Err(error) if is_no_more(&error) => return Ok(listing),
                result => result?,
            }
            is_first = false;
            for Found { name, .. } in found {
                if name == "." || name == ".." {
                    continue;
                }
                if listing.entries.len() == most {
                    listing.is_cut = true;
                    return Ok(listing);
                }
                match open_name(&dir, &name, OPEN_TO_LOOK).and_then(|file| info(&file)) {
                    Ok(info) => listing.entries.push(Entry { name, info }),
                    // Gone since, or a file of the system's that not even its attributes can be read of.
                    Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// What is at the end of a path, links not followed, and its name as the file system has it: capitals as they are there, and
    /// in full where a short form was given (`PROGRA~1`).
    pub(super) fn look(&self, path: &Path) -> io::Result<(Kind, Option<OsString>)> {
        let parent = self.open_dir(path.parent().unwrap_or(Path::new("")))?.0;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let file = open_name(&parent, name, OPEN_TO_LOOK)?;
        let found = attributes(&file)?;
        let kind = match classify(&found) {
            EntryKind::Directory => Kind::Directory,
            EntryKind::File => Kind::File,
            EntryKind::Link => Kind::Link(target(&file)?),
            EntryKind::Other => Kind::Other,
        };
        Ok((kind, Some(real_name(&parent, name, &file)?)))
    }

    /// Opens a path of names beneath this directory; a link on it, also as the last name, is an error.
    fn open_beneath(&self, path: &Path, how: How) -> io::Result<OwnedHandle> {
        let mut at: Option<OwnedHandle> = None;
        for name in path.parent().into_iter().flat_map(Path::iter) {
            at = Some(open_without_link(at.as_ref().unwrap_or(&self.0), name, OPEN_DIRECTORY)?);
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        open_without_link(at.as_ref().unwrap_or(&self.0), name, how)
    }
}

/// Opens one name in a directory, if it is no link.
fn open_without_link(dir: &OwnedHandle, name: &OsStr, how: How) -> io::Result<OwnedHandle> {
    let itself =
        How { access: how.access | FILE_READ_ATTRIBUTES, options: how.options | FILE_OPEN_REPARSE_POINT, ..how };
    let file = open_name(dir, name, itself)?;
    let found = attributes(&file)?;
    if !is_reparse_point(&found) {
        return Ok(file);
    }
    if !is_placeholder(found.ReparseTag) {
        return Err(link_met());
    }
    // Its content comes from a driver, which has to be asked. Nothing may have taken its place meanwhile.
    let through = open_name(dir, name, How { access: itself.access, ..how })?;
    if id(&through)? == id(&file)? { Ok(through) } else { Err(link_met()) }
}

/// Opens one name in a directory. The name goes to the file system as it is.
fn open_name(dir: &OwnedHandle, name: &OsStr, how: How) -> io::Result<OwnedHandle> {
    let mut name: Vec<u16> = name.encode_wide().collect();
    // Only one name, whatever was to be opened: the caller has taken the path apart.
    if name.iter().any(|unit| [b'\\', b'/', b':', 0].map(u16::from).contains(unit)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let length = u16::try_from(size_of_val(&name[..])).map_err(|_| io::ErrorKind::InvalidFilename)?;
    let name = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: name.as_mut_ptr() };
    let object = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: dir.as_raw_handle(),
        ObjectName: &raw const name,
        Attributes: OBJ_CASE_INSENSITIVE,
        SecurityDescriptor: ptr::null(),
        SecurityQualityOfService: ptr::null(),
    };
    let mut handle: HANDLE = ptr::null_mut();
    let mut status = IO_STATUS_BLOCK::default();
    let options = how.options | FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_FOR_BACKUP_INTENT;
    // SAFETY: the handle of the directory is open, and all pointers are to values that live during the call.
    check(unsafe {
        NtCreateFile(
            &mut handle,
            how.access | SYNCHRONIZE,
            &object,
            &mut status,
            ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            how.share,
            how.disposition,
            options,
            ptr::null(),
            0,
        )
    })?;
    // SAFETY: the system just gave us this handle, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// An entry of a directory.
struct Found {
    name: OsString,
    short_name: OsString,
    id: u64,
}

/// Reads some more entries of a directory, of those that are like `filter` where there is one.
fn next_entries(
    dir: &OwnedHandle,
    filter: Option<&OsStr>,
    restarts: bool,
    found: &mut dyn FnMut(Found),
) -> io::Result<()> {
    let mut filter: Vec<u16> = filter.into_iter().flat_map(OsStr::encode_wide).collect();
    let length = u16::try_from(size_of_val(&filter[..])).map_err(|_| io::ErrorKind::InvalidFilename)?;
    let name = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: filter.as_mut_ptr() };
    let name = if filter.is_empty() { ptr::null() } else { &raw const name };
    // Of words, so that it is aligned for the structures.
    let mut buffer = vec![0u64; 8 << 10];
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: the handle is open, all pointers are to values that live during the call, and the buffer has as many bytes as
    // we say.
    check(unsafe {
        NtQueryDirectoryFile(
            dir.as_raw_handle(),
            ptr::null_mut(),
            None,
            ptr::null(),
            &mut status,
            buffer.as_mut_ptr().cast(),
            size_of_val(&buffer[..]) as u32,
            FileIdBothDirectoryInformation,
            false,
            name,
            restarts,
        )
    })?;
    let bytes = status.Information.min(size_of_val(&buffer[..]));
    let (name_at, mut at) = (offset_of!(FILE_ID_BOTH_DIR_INFORMATION, FileName), 0);
    while at + name_at <= bytes {
        // SAFETY: the system wrote a structure here, aligned, and names of the lengths that it says.
        let entry = unsafe { &*buffer.as_ptr().byte_add(at).cast::<FILE_ID_BOTH_DIR_INFORMATION>() };
        let length = entry.FileNameLength as usize;
        if at + name_at + length > bytes {
            break;
        }
        // SAFETY: as above, and it was looked at that the name ends within the buffer.
        let name = unsafe { std::slice::from_raw_parts((&raw const entry.FileName).cast::<u16>(), length / 2) };
        let short = usize::try_from(entry.ShortNameLength).unwrap_or_default() / 2;
        found(Found {
            name: OsString::from_wide(name),
            short_name: OsString::from_wide(&entry.ShortName[..short.min(entry.ShortName.len())]),
            id: entry.FileId.cast_unsigned(),
        });
        if entry.NextEntryOffset == 0 {
            break;
        }
        at += entry.NextEntryOffset as usize;
    }
    Ok(())
}

/// A name as its directory has it. Where that cannot be found out, a name that may be the short form of another is refused.
fn real_name(dir: &OwnedHandle, name: &OsStr, file: &OwnedHandle) -> io::Result<OsString> {
    let how = How::open(FILE_LIST_DIRECTORY | DIRECTORY, FILE_DIRECTORY_FILE);
    let wanted = basic(file).map(|basic| (u64::from(basic.nFileIndexHigh) << 32) | u64::from(basic.nFileIndexLow))?;
    let mut real = None;
    let is_like = |one: &OsStr, other: &OsStr| crate::paths::is_same(one.as_ref(), other.as_ref());
    let read = open_name(dir, OsStr::new(""), how).and_then(|dir| {
        next_entries(&dir, Some(name), true, &mut |entry| {
            let is_it = is_like(&entry.name, name) || is_like(&entry.short_name, name);
            if is_it && (entry.id == wanted || entry.name == name) {
                real = Some(entry.name);
            }
        })
    });
    match (real, read) {
        (Some(real), _) => Ok(real),
        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound || is_no_more(&error) => Err(link_met()),
        _ if name.to_string_lossy().contains('~') => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(name.to_owned()),
    }
}

fn remove(file: &OwnedHandle) -> io::Result<()> {
    /// Flags of the newer call: the name goes at once, also of a file that is open or can only be read.
    const DELETE_POSIX_ANY: u32 = 1 | 2 | 16;
    let set = |at: *const c_void, size: usize, class: i32| {
        let mut status = IO_STATUS_BLOCK::default();
        // SAFETY: the handle is open, and the structure has as many bytes as we say.
        check(unsafe { NtSetInformationFile(file.as_raw_handle(), &mut status, at, size as u32, class) })
    };
    let newer = FILE_DISPOSITION_INFORMATION_EX { Flags: DELETE_POSIX_ANY };
    match set((&raw const newer).cast(), size_of_val(&newer), FileDispositionInformationEx) {
        Err(error) if is_unsupported(&error) => {
            let older = FILE_DISPOSITION_INFORMATION { DeleteFile: true };
            set((&raw const older).cast(), size_of_val(&older), FileDispositionInformation)
        }
        result => result,
    }
}

/// Where a link leads, as it is written in it: its target, not the text that is to be shown for it.
fn target(link: &OwnedHandle) -> io::Result<PathBuf> {
    /// Kinds of links, and as large as any can be.
    const SYMBOLIC_LINK: u32 = 0xA000_000C;
    const MOUNT_POINT: u32 = 0xA000_0003;
    const LARGEST: usize = 16 << 10;
    let mut buffer = vec![0u8; LARGEST];
    let mut length = 0;
    // SAFETY: the handle is open, and the buffer has as many bytes as we say.
    let done = unsafe {
        let (at, none) = (buffer.as_mut_ptr().cast(), ptr::null_mut());
        let (input, size) = (ptr::null(), LARGEST as u32);
        DeviceIoControl(link.as_raw_handle(), FSCTL_GET_REPARSE_POINT, input, 0, at, size, &mut length, none)
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    buffer.truncate(length as usize);
    let word = |at: usize| Some(u16::from_le_bytes(buffer.get(at..at + 2)?.try_into().ok()?));
    let tag = buffer.first_chunk().copied().map_or(0, u32::from_le_bytes);
    // After the tag and two lengths: where the target and the text to be shown are, the flags of a symbolic link, then both.
    let (names_at, is_relative) = match tag {
        SYMBOLIC_LINK => (20, word(16).unwrap_or_default() & 1 != 0),
        MOUNT_POINT => (16, false),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let from = names_at + usize::from(word(8).unwrap_or_default());
    let name = buffer.get(from..from + usize::from(word(10).unwrap_or_default())).ok_or(io::ErrorKind::InvalidData)?;
    let name: Vec<u16> = name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    let name = OsString::from_wide(&name);
    let text = name.to_str().ok_or(io::ErrorKind::InvalidData)?;
    match text.strip_prefix(r"\??\") {
        Some(rest) if !is_relative => Ok(crate::paths::without_verbatim(format!(r"\\?\{rest}").into())),
        None if is_relative => Ok(name.into()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Whether something is behind a driver but is itself what it looks like: files in the cloud, deduplicated, compressed.
fn is_placeholder(tag: u32) -> bool {
    const CLOUD: u32 = 0x9000_001A;
    const DEDUPLICATED: u32 = 0x8000_0013;
    const COMPRESSED: u32 = 0x8000_0017;
    // The cloud has sixteen, which differ in one digit.
    tag & !0xF000 == CLOUD || tag == DEDUPLICATED || tag == COMPRESSED
}

fn is_reparse_point(found: &FILE_ATTRIBUTE_TAG_INFO) -> bool {
    found.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

fn classify(found: &FILE_ATTRIBUTE_TAG_INFO) -> EntryKind {
    /// The bit of a tag that says: this stands for something else.
    const NAME_SURROGATE: u32 = 0x2000_0000;
    match is_reparse_point(found) {
        true if found.ReparseTag & NAME_SURROGATE != 0 => EntryKind::Link,
        true if !is_placeholder(found.ReparseTag) => EntryKind::Other,
        _ if found.FileAttributes & FILE_ATTRIBUTE_DIRECTORY != 0 => EntryKind::Directory,
        _ => EntryKind::File,
    }
}

fn attributes(file: &OwnedHandle) -> io::Result<FILE_ATTRIBUTE_TAG_INFO> {
    // SAFETY: numbers only, for which zeros are values.
    unsafe { query(file, FileAttributeTagInfo) }
}

/// Asks for a structure of the size that goes with the class.
///
/// # Safety
///
/// `T` has to be the structure that goes with the class, and all zeros a value of it.
unsafe fn query<T>(file: &OwnedHandle, class: i32) -> io::Result<T> {
    // SAFETY: promised by the caller.
    let mut found: T = unsafe { std::mem::zeroed() };
    let (at, size) = ((&raw mut found).cast(), size_of::<T>() as u32);
    // SAFETY: the handle is open, and the structure has as many bytes as we say.
    match unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, at, size) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(found),
    }
}

fn basic(file: &OwnedHandle) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the structure lives during the call.
    match unsafe { GetFileInformationByHandle(file.as_raw_handle(), &mut found) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(found),
    }
}

/// Which file it is on this machine.
fn id(file: &OwnedHandle) -> io::Result<(u64, u64)> {
    // SAFETY: numbers only, for which zeros are values.
    match unsafe { query::<FILE_ID_INFO>(file, FileIdInfo) } {
        Ok(found) => {
            let number = u128::from_le_bytes(found.FileId.Identifier);
            // Only one file system has numbers of more than 64 bits, and uses few bits of either half.
            Ok((found.VolumeSerialNumber, (number as u64) ^ ((number >> 64) as u64).rotate_left(32)))
        }
        Err(error) if is_unsupported(&error) => {
            let found = basic(file)?;
            let number = (u64::from(found.nFileIndexHigh) << 32) | u64::from(found.nFileIndexLow);
            Ok((found.dwVolumeSerialNumber.into(), number))
        }
        Err(error) => Err(error),
    }
}

fn info(file: &OwnedHandle) -> io::Result<Info> {
    let found = basic(file)?;
    // SAFETY: numbers only, for which zeros are values.
    let times: FILE_BASIC_INFO = unsafe { query(file, FileBasicInfo)? };
    let kind = classify(&attributes(file)?);
    let is_read_only = found.dwFileAttributes & FILE_ATTRIBUTE_READONLY != 0 && kind != EntryKind::Directory;
    Ok(Info {
        kind,
        size: (u64::from(found.nFileSizeHigh) << 32) | u64::from(found.nFileSizeLow),
        modified: since_1970(times.LastWriteTime),
        changed: since_1970(times.ChangeTime),
        // As on other systems, as far as there is such a thing.
        mode: match (kind, is_read_only) {
            (EntryKind::Directory, _) => 0o777,
            (_, true) => 0o444,
            (_, false) => 0o666,
        },
        links: found.nNumberOfLinks.into(),
        id: id(file)?,
    })
}

/// A time of Windows, which counts from 1601 in steps of 100 nanoseconds.
fn since_1970(time: i64) -> (i64, i64) {
    const SECOND: i64 = 10_000_000;
    const FROM_1601: i64 = 11_644_473_600;
    (time.div_euclid(SECOND) - FROM_1601, time.rem_euclid(SECOND) * 100)
}

/// Nothing else is needed here: names are opened one by one.
pub(super) fn can_open_beneath(_: &Dir) -> io::Result<bool> {
    Ok(true)
}

/// Whether opening a path failed because it is no longer what it was.
pub(super) fn is_changed(error: &io::Error) -> bool {
    let changed = [
        ERROR_ALREADY_EXISTS,
        ERROR_CANT_RESOLVE_FILENAME,
        ERROR_DIRECTORY,
        ERROR_FILE_EXISTS,
        ERROR_FILE_NOT_FOUND,
        ERROR_PATH_NOT_FOUND,
        ERROR_REPARSE_POINT_ENCOUNTERED,
    ];
    error.raw_os_error().is_some_and(|code| changed.contains(&code.cast_unsigned()))
}

fn link_met() -> io::Error {
    io::Error::from_raw_os_error(ERROR_REPARSE_POINT_ENCOUNTERED.cast_signed())
}

fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED];
    error.raw_os_error().is_some_and(|code| unsupported.contains(&code.cast_unsigned()))
}

fn is_no_more(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_NO_MORE_FILES.cast_signed())
}

fn check(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        // SAFETY: gives a number for a number.
        status => Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(status) }.cast_signed())),
    }
}

/// How many names a file has.
pub(crate) fn links(file: &File) -> io::Result<u64> {
    Ok(basic(&file.try_clone()?.into())?.nNumberOfLinks.into())
}

/// Lets a file be written, or only be read: that is all there is of a mode.
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(mode & 0o222 == 0);
    file.set_permissions(permissions)
}

/// Gives a new file the access list of the old one, and whether it is hidden.
pub(super) fn copy_owner_and_mode(old: &File, new: &File) -> io::Result<()> {
    copy_access_list(old, new)?;
    let (old, new) = (old.try_clone()?.into(), new.try_clone()?.into());
    let kept = attributes(&old)?.FileAttributes & (FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM);
    if kept == 0 {
        return Ok(());
    }
    // SAFETY: numbers only, for which zeros are values; as times they mean that nothing is changed.
    let mut basic: FILE_BASIC_INFO = unsafe { std::mem::zeroed() };
    basic.FileAttributes = kept;
    let (at, size) = ((&raw const basic).cast(), size_of_val(&basic) as u32);
    // SAFETY: the handle is open, and the structure has as many bytes as we say.
    match unsafe { SetFileInformationByHandle(OwnedHandle::as_raw_handle(&new), FileBasicInfo, at, size) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn copy_access_list(old: &File, new: &File) -> io::Result<()> {
    let mut descriptor = ptr::null_mut();
    // SAFETY: the handle is open, and the pointer is to a variable that lives during the call.
    let error = unsafe {
        let none = ptr::null_mut();
        let what = DACL_SECURITY_INFORMATION;
        let handle = old.as_raw_handle();
        GetSecurityInfo(handle, SE_FILE_OBJECT, what, none, none, ptr::null_mut(), ptr::null_mut(), &mut descriptor)
    };
    if error != 0 {
        let error = io::Error::from_raw_os_error(error.cast_signed());
        // Not every file system has such lists.
        return if is_unsupported(&error) { Ok(()) } else { Err(error) };
    }
    // SAFETY: the handle is open, and the descriptor valid; it is freed once, after its use.
    unsafe {
        let is_set = SetKernelObjectSecurity(new.as_raw_handle(), DACL_SECURITY_INFORMATION, descriptor) != 0;
        let error = io::Error::last_os_error();
        LocalFree(descriptor);
        if is_set { Ok(()) } else { Err(error) }
    }
}
