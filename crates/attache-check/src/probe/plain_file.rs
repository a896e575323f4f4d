//! Files in directories that a checked peer can change: only regular files are read and written, and only so much of them. A pipe or a
//! device in the place of one would hold up the check, or fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Opens a regular file, and nothing else; a link is not followed, and nothing is waited for.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Reads a text of at most `most` bytes.
pub(super) fn read(path: &Path, most: usize) -> io::Result<String> {
    let file = open(path, OpenOptions::new().read(true))?;
    let mut text = String::new();
    file.take(most as u64 + 1).read_to_string(&mut text)?;
    if text.len() > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// Writes a text, over what is there.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    // Emptied only when it is known to be a file.
    let mut file = open(path, OpenOptions::new().write(true).create(true))?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_neither_read_nor_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name is a string that ends in a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        for path in [pipe.as_path(), link.as_path(), Path::new("/dev/zero")] {
            assert!(read(path, 100).is_err() && write(path, "x").is_err(), "{path:?}");
        }
        let file = directory.path().join("file");
        write(&file, "longer").unwrap();
        write(&file, "short").unwrap();
        assert_eq!(read(&file, 5).unwrap(), "short");
        assert_eq!(read(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
