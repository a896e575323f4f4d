//! Small files that several processes read and write: one at a time, and never half.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::private;

/// Larger files are not read: nobody writes so many rules.
const MAX_SIZE: u64 = 4 << 20;

/// Changes a file while no other process does: `change` gets its text, empty if there is none, and returns the new one.
/// Readers see the text before or after, never something in between.
pub(crate) fn change<E: From<io::Error>>(path: &Path, change: impl FnOnce(&str) -> Result<String, E>) -> Result<(), E> {
    // A file that is a link, as those who keep their configuration elsewhere have it, stays one.
    let path = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error.into()),
    };
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    private::create_directory(directory)?;
    let lock = lock(&path)?;
    let text = read(&path)?.unwrap_or_default();
    let text = change(&text)?;
    // Made readable for its owner only, whatever the umask.
    let mut file = tempfile::Builder::new().prefix(".attache-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    let mut file = Some(file);
    patiently(|| {
        let Some(made) = file.take() else { return Ok(()) };
        made.persist(&path).map(drop).map_err(|error| {
            file = Some(error.file);
            error.error
        })
    })?;
    drop(lock);
    Ok(())
}

/// The text of a file, or `None` if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match patiently(|| File::open(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 4 MiB"));
    }
    Ok(Some(text))
}

/// Tries again for a second where another process may stand in the way: on Windows what somebody reads is not replaced, and
/// what is being replaced is not opened.
fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut left = if cfg!(windows) { 100 } else { 0 };
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && left > 0 => {
                left -= 1;
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Holds other processes off until it is dropped. The file that is locked is not the one that is replaced.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = private::open_or_create(Path::new(&name))?;
    file.lock()?;
    Ok(file)
}
