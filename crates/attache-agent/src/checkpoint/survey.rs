//! The project's files before and after a program ran, which may have changed any of them.
//!
//! Every file that git does not ignore is looked at, and its content is held in one file without a name, which is gone when
//! this process is. What has the time, the size and the number that it had is not read again, so only the first look is
//! long. What is beyond the limits is only looked at: that it has changed is known, what it was is not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache::private;
use attache_host::files::{EntryKind, FileError, Files, Info};
use attache_host::permission::is_secret;

use super::contents::Address;
#[cfg(unix)]
use super::contents::private_file;
use super::state::State;
use crate::workspace::{Stop, Walk};

/// How many names are looked at.
const MOST_NAMES: usize = 20_000;
/// How many bytes are held of all files together, and of one.
const MOST_BYTES: u64 = 64 << 20;
const LARGEST_FILE: usize = 2 << 20;
/// How large the file that holds them may become before it is begun anew.
const LARGEST_HOLD: u64 = 2 * MOST_BYTES;
/// How long a look may take. A command waits for it.
const LONGEST: Duration = Duration::from_secs(10);
/// A file that was changed so shortly before it was read may change again without another time.
const RACE: Duration = Duration::from_millis(50);

/// What the project's files were like at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Survey {
    entries: BTreeMap<PathBuf, Seen>,
    /// There is more than was looked at.
    pub(super) is_cut: bool,
    /// What was changed after this was changed after the look. A little early, as the clock of file systems is coarse.
    begun: Duration,
}

#[derive(Debug, Clone)]
struct Seen {
    info: Info,
    is: Is,
    /// It may have changed since without a trace.
    is_doubtful: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Is {
    File {
        content: Address,
        offset: u64,
    },
    Link(PathBuf),
    Directory,
    /// Only looked at.
    Unread(&'static str),
}

impl Survey {
    /// Takes into this look that the agent itself has moved a directory since.
    pub(super) fn note_move(&mut self, from: &Path, to: &Path) {
        let is_moved = |path: &&PathBuf| path.starts_with(from);
        let moved: Vec<PathBuf> = self.entries.keys().filter(is_moved).cloned().collect();
        for path in moved {
            if let (Some(seen), Ok(rest)) = (self.entries.remove(&path), path.strip_prefix(from)) {
                self.entries.insert(if rest == Path::new("") { to.to_owned() } else { to.join(rest) }, seen);
            }
        }
    }
}

/// Something that has changed between two looks.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) before: State,
    pub(super) after: State,
    /// The contents that belong to them.
    pub(super) contents: Vec<(Address, Vec<u8>)>,
}

/// Looks at the project, and holds what it sees.
#[derive(Debug, Default)]
pub(super) struct Surveyor {
    last: Survey,
    hold: Option<(File, u64)>,
}

impl Surveyor {
    /// Looks at everything beneath the roots for the first time, or as if it were: earlier looks may be forgotten.
    pub(super) fn look_anew(&mut self, files: &Files, directory: &Path) -> io::Result<Survey> {
        if self.hold.as_ref().is_none_or(|(_, size)| *size > LARGEST_HOLD) {
            self.last = Survey::default();
            self.hold = Some((nameless_file(directory)?, 0));
        }
        self.look(files)
    }

    /// Looks at everything beneath the roots.
    pub(super) fn look(&mut self, files: &Files) -> io::Result<Survey> {
        let stop = Stop::after(LONGEST);
        let begun = SystemTime::now().checked_sub(RACE).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let begun = begun.unwrap_or_default();
        let mut survey = Survey { begun, ..Survey::default() };
        let mut held = 0;
        let roots: Vec<PathBuf> = files.roots().map(Path::to_owned).collect();
        for root in roots {
            let Ok(walk) = Walk::new(files, &root, &stop) else {
                survey.is_cut = true;
                continue;
            };
            let mut walk = walk.with_links_and_directories();
            for found in walk.by_ref() {
                if survey.entries.len() >= MOST_NAMES {
                    survey.is_cut = true;
                    break;
                }
                let is = match self.last.entries.get(&found.path) {
                    Some(seen) if seen.info == found.info && !seen.is_doubtful => seen.is.clone(),
                    _ => self.read(files, &found.path, &found.relative, &found.info, held)?,
                };
                if matches!(is, Is::File { .. }) {
                    held += found.info.size;
                }
                let seen = Seen { info: found.info, is, is_doubtful: changed(&found.info) >= begun };
                survey.entries.insert(found.path, seen);
            }
            survey.is_cut |= walk.is_cut || walk.unreadable > 0;
        }
        self.last = survey.clone();
        Ok(survey)
    }

    /// Looks at one path. `None` if nothing is there.
    fn look_at(&mut self, files: &Files, path: &Path) -> io::Result<Option<Seen>> {
        let info = match files.stat_name(path) {
            Ok(info) => info,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(io::Error::other(error)),
        };
        let relative = files.roots().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let is = self.read(files, path, relative, &info, 0)?;
        Ok(Some(Seen { info, is, is_doubtful: true }))
    }

    /// Takes into an earlier look that the agent itself has changed a path since, so that comparing does not find that.
    pub(super) fn note_change(&mut self, files: &Files, survey: &mut Survey, path: &Path) {
        match self.look_at(files, path) {
            Ok(Some(seen)) => drop(survey.entries.insert(path.to_owned(), seen)),
            Ok(None) => drop(survey.entries.remove(path)),
            // It is outside of the roots, so it is not looked at.
            Err(_) => {}
        }
    }

    /// What has become of a path since an earlier look. `None` if it was not seen then: git may have ignored it.
    pub(super) fn change_of(&mut self, files: &Files, before: &Survey, path: &Path) -> Option<Changed> {
        let old = before.entries.get(path)?;
        let new = self.look_at(files, path).ok()?;
        self.change(Some(old), new.as_ref(), path)
    }

    fn read(&mut self, files: &Files, path: &Path, relative: &Path, info: &Info, held: u64) -> io::Result<Is> {
        Ok(match info.kind {
            EntryKind::Directory => Is::Directory,
            EntryKind::Link => match files.read_link(path) {
                Ok(to) if to.to_str().is_some() => Is::Link(to),
                _ => Is::Unread("it leads to a name that is not UTF-8"),
            },
            EntryKind::Other => Is::Unread("it is a FIFO, a socket or a device"),
            EntryKind::File if is_secret(relative) => Is::Unread("it may hold secrets, so no copy is kept"),
            EntryKind::File if info.size > LARGEST_FILE as u64 => Is::Unread(LARGE),
            EntryKind::File if held + info.size > MOST_BYTES => Is::Unread("the project has more than 64 MiB"),
            EntryKind::File => match files.read_bytes(path, LARGEST_FILE) {
                Ok(bytes) => Is::File { content: Address::of(&bytes), offset: self.hold(&bytes)? },
                Err(FileError::HardLink { .. }) => Is::Unread("it has more than one hard link"),
                Err(FileError::TooLarge { .. }) => Is::Unread(LARGE),
                Err(_) => Is::Unread("it could not be read"),
            },
        })
    }

    fn hold(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let Some((file, size)) = &mut self.hold else { return Err(io::ErrorKind::NotFound.into()) };
        let offset = *size;
        write_at(file, bytes, offset)?;
        *size += bytes.len() as u64;
        Ok(offset)
    }

    fn held(&self, seen: &Seen) -> Option<(Address, Vec<u8>)> {
        let (Is::File { content, offset }, Some((file, _))) = (&seen.is, &self.hold) else { return None };
        let mut bytes = vec![0; usize::try_from(seen.info.size).ok().filter(|size| *size <= LARGEST_FILE)?];
        read_at(file, &mut bytes, *offset).ok()?;
        (Address::of(&bytes) == *content).then(|| (content.clone(), bytes))
    }

    /// What has changed from one look to the next, in the order of paths.
    ///
    /// A path that is only in one of them may have been ignored at the time of the other, or not looked at. So what is new
    /// has to have come since the first look, and what is gone has to be gone; and where there was more than was looked at,
    /// neither is believed.
    pub(super) fn changes(&self, files: &Files, before: &Survey, after: &Survey) -> Vec<Changed> {
        let is_whole = !before.is_cut && !after.is_cut;
        let is_gone = |path: &Path| matches!(files.stat_name(path), Err(FileError::NotFound { .. }));
        let gone = before.entries.iter().filter(|(path, _)| !after.entries.contains_key(*path));
        let gone = gone.filter(|(path, _)| is_whole && is_gone(path)).map(|(path, seen)| (path, Some(seen), None));
        let there = after.entries.iter().map(|(path, seen)| (path, before.entries.get(path), Some(seen)));
        let there = there.filter(|(_, old, new)| {
            old.is_some() || (is_whole && new.is_some_and(|seen| changed(&seen.info) >= before.begun))
        });
        let mut rows: Vec<_> = gone.chain(there).collect();
        rows.sort_unstable_by_key(|(path, ..)| *path);
        rows.into_iter().filter_map(|(path, old, new)| self.change(old, new, path)).collect()
    }

    fn change(&self, before: Option<&Seen>, after: Option<&Seen>, path: &Path) -> Option<Changed> {
        let is_same = match (before, after) {
            (Some(before), Some(after)) => {
                let is_same_mode = before.info.mode & 0o777 == after.info.mode & 0o777;
                match (&before.is, &after.is) {
                    (Is::Directory, Is::Directory) => true,
                    (Is::Unread(_), _) | (_, Is::Unread(_)) => before.info == after.info,
                    (Is::File { content: one, .. }, Is::File { content: two, .. }) => one == two && is_same_mode,
                    (one, two) => one == two,
                }
            }
            _ => false,
        };
        if is_same {
            return None;
        }
        let mut contents = Vec::new();
        let mut state = |seen: Option<&Seen>| {
            let Some(seen) = seen else { return State::Nothing };
            match &seen.is {
                Is::Directory => State::Directory,
                Is::Link(to) => State::Link { to: to.clone() },
                Is::Unread(why) => State::unkept(why),
                Is::File { content, .. } => {
                    contents.extend(self.held(seen));
                    State::File { content: content.clone(), size: seen.info.size, mode: seen.info.mode & 0o777 }
                }
            }
        };
        let (before, after) = (state(before), state(after));
        Some(Changed { path: path.to_owned(), before, after, contents })
    }
}

/// When anything about a file was last changed.
fn changed(info: &Info) -> Duration {
    let (seconds, nanoseconds) = info.changed;
    Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanoseconds).unwrap_or_default())
}

const LARGE: &str = "it has more than 2 MiB";
const _: () = assert!(LARGEST_FILE == 2 << 20 && MOST_BYTES == 64 << 20, "the texts above name these limits");

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

// Nobody else has the file, so it does not matter that there is one place only that reading and writing goes on at.
#[cfg(windows)]
fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use io::{Seek as _, Write as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

#[cfg(windows)]
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

/// A file for our own use that nobody else can open, and that is gone with us.
#[cfg(windows)]
fn nameless_file(directory: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// The system removes the file when its last handle is closed, whoever closes it.
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    private::create_directory(directory)?;
    let path = directory.join(format!("held-{}", crate::random_word()));
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true).share_mode(0).custom_flags(DELETE_ON_CLOSE).open(path)
}

/// A file for our own use that nobody else can open, and that is gone with us.
#[cfg(unix)]
fn nameless_file(directory: &Path) -> io::Result<File> {
    private::create_directory(directory)?;
    let path = directory.join("held");
    // What is left of one that was killed between these two.
    let _ = std::fs::remove_file(&path);
    let file = private_file(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

// On Unix, because they compare modes and links.
#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_a_program_changes_is_seen_and_known_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let project = top.join("project");
        fs::create_dir_all(project.join("gone/dir")).unwrap();
        for (path, content) in [
            (".gitignore", "ignored\n"),
            ("ignored", "x"),
            ("same", "same"),
            ("edited", "before"),
            ("gone/file", "gone"),
            ("script", "run"),
            (".env", "KEY=1"),
        ] {
            fs::write(project.join(path), content).unwrap();
        }
        symlink("/etc/passwd", project.join("link")).unwrap();
        let files = Files::open(&project, &[]).unwrap().without_links();
        let mut surveyor = Surveyor::default();
        let before = surveyor.look_anew(&files, &top).unwrap();
        assert_eq!(surveyor.look(&files).map(|after| surveyor.changes(&files, &before, &after).len()).unwrap(), 0);

        fs::write(project.join("edited"), "after!").unwrap();
        fs::write(project.join("ignored"), "y").unwrap();
        fs::write(project.join(".env"), "KEY=22").unwrap();
        fs::remove_dir_all(project.join("gone")).unwrap();
        fs::create_dir(project.join("new")).unwrap();
        fs::write(project.join("new/file"), "new").unwrap();
        fs::set_permissions(project.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(project.join("link")).unwrap();
        symlink("same", project.join("link")).unwrap();
        let after = surveyor.look(&files).unwrap();
        let word = |state: &State| match state {
            State::Nothing => "nothing".to_owned(),
            State::File { mode, size, .. } => format!("file {size} {mode:o}"),
            State::Link { to } => format!("link {}", to.display()),
            State::Directory => "directory".into(),
            State::Unkept { why } => why.clone(),
        };
        let file = |size: u64| {
            let mode = fs::metadata(project.join("same")).unwrap().permissions().mode() & 0o777;
            format!("file {size} {mode:o}")
        };
        let changes: Vec<(String, String, String)> = surveyor
            .changes(&files, &before, &after)
            .iter()
            .map(|change| {
                let path = change.path.strip_prefix(&project).unwrap().to_str().unwrap().to_owned();
                (path, word(&change.before), word(&change.after))
            })
            .collect();
        let secret = "it may hold secrets, so no copy is kept".to_owned();
        let row = |path: &str, before: &str, after: &str| (path.to_owned(), before.to_owned(), after.to_owned());
        assert_eq!(
            changes,
            [
                row(".env", &secret, &secret),
                row("edited", &file(6), &file(6)),
                row("gone", "directory", "nothing"),
                row("gone/dir", "directory", "nothing"),
                row("gone/file", &file(4), "nothing"),
                row("link", "link /etc/passwd", "link same"),
                row("new", "nothing", "directory"),
                row("new/file", "nothing", &file(3)),
                row("script", &file(3), "file 3 755"),
            ]
        );
        let edited = &surveyor.changes(&files, &before, &after)[1];
        assert_eq!(
            edited.contents.iter().map(|(_, bytes)| bytes.as_slice()).collect::<Vec<_>>(),
            [b"before", b"after!"]
        );
        assert!(!top.join("held").exists(), "it has no name");
    }

    #[test]
    fn what_is_ignored_no_more_is_not_new_and_what_is_ignored_now_is_not_gone() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let project = top.join("project");
        fs::create_dir_all(project.join("data")).unwrap();
        fs::write(project.join(".gitignore"), "data\n").unwrap();
        fs::write(project.join("data/precious"), "x").unwrap();
        fs::write(project.join("plain"), "x").unwrap();
        let files = Files::open(&project, &[]).unwrap().without_links();
        // The clock of file systems is coarse.
        std::thread::sleep(2 * RACE);
        let mut surveyor = Surveyor::default();
        let before = surveyor.look_anew(&files, &top).unwrap();
        fs::write(project.join(".gitignore"), "plain\n").unwrap();
        let after = surveyor.look(&files).unwrap();
        let changes = surveyor.changes(&files, &before, &after);
        let names: Vec<&str> =
            changes.iter().map(|change| change.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, [".gitignore"]);
    }

    #[test]
    fn where_not_all_was_looked_at_nothing_is_new_or_gone() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let project = top.join("project");
        fs::create_dir(&project).unwrap();
        for number in 0..MOST_NAMES + 10 {
            fs::write(project.join(format!("f{number:06}")), "").unwrap();
        }
        let files = Files::open(&project, &[]).unwrap().without_links();
        let mut surveyor = Surveyor::default();
        let before = surveyor.look_anew(&files, &top).unwrap();
        assert!(before.is_cut);
        fs::remove_file(project.join("f000001")).unwrap();
        fs::write(project.join("f000002"), "other").unwrap();
        fs::write(project.join("a"), "new").unwrap();
        let after = surveyor.look(&files).unwrap();
        let changes = surveyor.changes(&files, &before, &after);
        assert_eq!(changes.len(), 1, "{changes:?}");
    }
}
