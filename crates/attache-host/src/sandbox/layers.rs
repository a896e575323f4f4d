//! Where confined commands write what is not part of their project: a layer over each shared cache, and temporary files of
//! their own. They belong to one project and are kept among our records, so that nobody finds them but whoever runs there.
//!
//! An overlay may be used once at a time, so whoever uses layers holds a slot. What was written in other slots can be seen
//! through it: in those before it, and in those after it that nobody uses.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use super::removal::remove;

/// As many commands as run in one project at a time. Whoever comes when all slots are held does without layers.
const SLOTS: usize = 16;
/// How often it is tried to take a slot while others remove layers.
const MOST_TRIES: usize = 4;
/// A file that marks layers which take too much, and go when nobody uses them.
const FULL: &str = "full";
/// What the names of directories begin with that are to be removed.
const GONE: &str = "gone-";
/// How long a temporary file is kept that nobody changes.
const TEMPORARY: Duration = Duration::from_secs(24 * 60 * 60);

/// A directory that a confined process changes in a layer: it sees what is there, and what it writes goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The directory, as programs know it, without links.
    pub at: PathBuf,
    /// What stays in it as it is.
    pub kept: Vec<PathBuf>,
    /// Other layers that can be seen through this one, the uppermost first.
    pub beneath: Vec<PathBuf>,
    /// Where the layer is: `upper` in it has what is written, `work` is the kernel's.
    pub directory: PathBuf,
}

/// A slot among the layers of a project, held as long as this value lives. Whoever runs something in it keeps it until that
/// has ended.
#[derive(Debug)]
pub struct ProjectLayers {
    top: PathBuf,
    slot: usize,
    _lock: fs::File,
}

impl ProjectLayers {
    /// Takes the first slot that is free of a project's layers; they are made beneath `state_dir`. What runs for long
    /// leaves the first slot to others.
    pub fn take(state_dir: &Path, project: &Path, runs_long: bool) -> io::Result<Self> {
        let top = directory_of(state_dir, project);
        if top.join(FULL).exists()
            && let Ok(Some(gone)) = retire(&top)
        {
            // Nobody waits for that. What is left of it when we end, somebody else removes.
            std::thread::spawn(move || remove(&gone, &mut 0));
        }
        for _ in 1..MOST_TRIES {
            match Self::take_in(top.clone(), project, runs_long) {
                // Somebody removed it all meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                taken => return taken,
            }
        }
        Self::take_in(top, project, runs_long)
    }

    fn take_in(top: PathBuf, project: &Path, runs_long: bool) -> io::Result<Self> {
        make_private(&top)?;
        let name = top.join("project");
        if !name.exists() {
            fs::write(name, project.as_os_str().as_encoded_bytes())?;
        }
        for slot in usize::from(runs_long) + 1..=SLOTS {
            if let Some(lock) = lock(&top, slot)? {
                make_private(&top.join(slot.to_string()))?;
                make_private(&top.join("tmp"))?;
                // Layers go in the order of their last use.
                lock.set_modified(SystemTime::now())?;
                return Ok(ProjectLayers { top, slot, _lock: lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Temporary files, of all commands in this project.
    pub fn temporary(&self) -> PathBuf {
        self.top.join("tmp")
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.top.join(self.slot.to_string())
    }

    /// The slots whose layers can be seen through this one, the uppermost first. Of those after it the ones that nobody uses:
    /// a job may change its own for hours.
    pub(super) fn beneath(&self) -> impl Iterator<Item = PathBuf> {
        let is_left =
            |slot: &usize| self.top.join(slot.to_string()).is_dir() && matches!(lock(&self.top, *slot), Ok(Some(_)));
        let after = (self.slot + 1..=SLOTS).filter(is_left);
        (1..self.slot).rev().chain(after).map(|slot| self.top.join(slot.to_string()))
    }

    /// What is written by programs that are told by a variable where to.
    pub(super) fn private_directory(&self) -> PathBuf {
        self.top.join("private")
    }

    pub(super) fn private(&self, name: &str) -> io::Result<PathBuf> {
        let directory = self.private_directory().join(name);
        make_private(&directory)?;
        Ok(directory)
    }

    /// A private directory in which `part` leads to what is shared. Commands change it as they like, so it is made where they
    /// cannot, and left alone from then on.
    pub(super) fn private_around(&self, name: &str, part: &str, shared: &Path) -> io::Result<PathBuf> {
        let directory = self.private_directory().join(format!("{name}-around"));
        if fs::symlink_metadata(&directory).is_err() {
            let made = tempfile::tempdir_in(self.directory())?;
            link(shared, &made.path().join(part))?;
            make_private(&self.private_directory())?;
            match fs::rename(made.path(), &directory) {
                // Another command was first.
                Err(_) if directory.is_dir() => {}
                renamed => renamed?,
            }
        }
        Ok(directory)
    }
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Removes what nobody has changed for a day at the top of a directory for [temporary files](ProjectLayers::temporary), and
/// not since the first of the commands began that still run. May take a while.
pub(super) fn remove_old_files(temporary: &Path) {
    let Some(top) = temporary.parent() else { return };
    let before = first_in_use(top, SystemTime::now());
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|found| found.modified());
        if changed.is_ok_and(|changed| changed < before) {
            // Commands may be at work there, so nothing is done by path to what is inside of a directory.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_directory { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
}

/// From when on temporary files are kept: a day ago, or since before the first of those began that hold a slot. What is deep
/// in a directory of theirs may be new, however old the directory is.
fn first_in_use(top: &Path, now: SystemTime) -> SystemTime {
    let is_held = |slot: &usize| lock_file(top, *slot).exists() && matches!(lock(top, *slot), Ok(None));
    let began = (1..=SLOTS).filter(is_held).filter_map(|slot| fs::metadata(lock_file(top, slot)).ok()?.modified().ok());
    // The clock of files is not as fine as ours.
    let began = began.min().map(|began| began - Duration::from_secs(1));
    began.unwrap_or(now).min(now - TEMPORARY)
}

/// What [`clear_layers`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleared {
    /// How many projects had layers that are gone now.
    pub projects: usize,
    /// How many bytes their files had.
    pub bytes: u64,
    /// How many projects were left alone, because something runs there.
    pub busy: usize,
}

/// Removes the layers of one project, or of all. Those that are in use are left alone.
pub fn clear_layers(state_dir: &Path, project: Option<&Path>) -> io::Result<Cleared> {
    let tops: Vec<PathBuf> = match project {
        Some(project) => vec![directory_of(state_dir, project)],
        None => match fs::read_dir(all(state_dir)) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(|path| !is_retired(path)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        },
    };
    let mut cleared = Cleared::default();
    // Somebody else may be at it as well.
    for gone in retired(state_dir).into_iter().filter(|_| project.is_none()) {
        let _ = remove(&gone, &mut cleared.bytes);
    }
    for top in tops.into_iter().filter(|top| top.is_dir()) {
        match retire(&top)? {
            None => cleared.busy += 1,
            Some(gone) => {
                remove(&gone, &mut cleared.bytes)?;
                cleared.projects += 1;
            }
        }
    }
    Ok(cleared)
}

/// The directories with the layers of projects.
pub(super) fn tops(state_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(all(state_dir)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !is_retired(path)).collect()
}

/// The directories that somebody was about to remove.
pub(super) fn retired(state_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(all(state_dir)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_retired(path)).collect()
}

fn is_retired(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GONE))
}

/// When the layers of a project were used last.
pub(super) fn last_use(top: &Path) -> SystemTime {
    let used = (1..=SLOTS).filter_map(|slot| fs::metadata(lock_file(top, slot)).ok()?.modified().ok());
    used.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Marks layers that are in use, so that they go when the next command starts and nobody uses them.
pub(super) fn mark_full(top: &Path) -> io::Result<()> {
    fs::write(top.join(FULL), "")
}

/// Takes the layers of a project out of use, all at once, and says where they are now. `None` if somebody uses them.
pub(super) fn retire(top: &Path) -> io::Result<Option<PathBuf>> {
    let Some(_locks) = (1..=SLOTS).map(|slot| lock(top, slot)).collect::<io::Result<Option<Vec<_>>>>()? else {
        return Ok(None);
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = top.file_name().unwrap_or_default().to_string_lossy();
    let gone = top.with_file_name(format!("{GONE}{name}-{}-{now}", std::process::id()));
    fs::rename(top, &gone)?;
    Ok(Some(gone))
}

fn all(state_dir: &Path) -> PathBuf {
    state_dir.join("layers")
}

fn directory_of(state_dir: &Path, project: &Path) -> PathBuf {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let name = Sha256::digest(project.as_os_str().as_encoded_bytes());
    let name: String = name.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    all(state_dir).join(name)
}

fn lock_file(top: &Path, slot: usize) -> PathBuf {
    top.join(format!("{slot}.lock"))
}

/// Holds a slot, if nobody else does. Fails with "not found" if the layers are removed meanwhile.
fn lock(top: &Path, slot: usize) -> io::Result<Option<fs::File>> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let path = lock_file(top, slot);
    let file = options.open(&path)?;
    match file.try_lock() {
        // A lock in a directory that was moved away is nobody's.
        Ok(()) if !is_same(&file.metadata()?, &fs::metadata(&path)?) => Err(io::ErrorKind::NotFound.into()),
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, two: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (two.dev(), two.ino())
}

#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// Makes a directory that is nobody else's, with those above it.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_slot_is_held_by_one_and_the_first_is_left_to_short_commands() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let take = |runs_long| ProjectLayers::take(state.path(), project.path(), runs_long).unwrap();
        let job = take(true);
        let (first, second) = (take(false), take(false));
        assert_eq!((job.slot, first.slot, second.slot), (2, 1, 3));
        assert_eq!(second.beneath().count(), 2);
        assert_eq!(first.beneath().count(), 0, "they are in use");
        assert_eq!(clear_layers(state.path(), None).unwrap().busy, 1);
        drop(first);
        assert_eq!(take(false).slot, 1);
        let mode = fs::metadata(job.directory()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let held: Vec<_> = (0..SLOTS - 2).map(|_| take(false)).collect();
        assert!(ProjectLayers::take(state.path(), project.path(), false).is_err(), "{}", held.len());
    }

    #[test]
    fn what_a_job_left_behind_is_seen_by_the_commands_after_it() {
        let state = tempfile::tempdir().unwrap();
        let take = |runs_long| ProjectLayers::take(state.path(), Path::new("/project"), runs_long).unwrap();
        let (job, other) = (take(true), take(true));
        let (left, in_use) = (job.directory(), other.directory());
        drop(job);
        let seen = |layers: &ProjectLayers| layers.beneath().collect::<Vec<_>>();
        let first = take(false);
        assert_eq!((first.slot, seen(&first)), (1, vec![left.clone()]));
        drop(other);
        assert_eq!(seen(&first), [left.clone(), in_use]);
        // The one that is asked is free again.
        assert_eq!(take(true).directory(), left);
    }

    #[test]
    fn temporary_files_are_kept_while_somebody_runs_who_may_have_made_them() {
        let state = tempfile::tempdir().unwrap();
        let take = |runs_long| ProjectLayers::take(state.path(), Path::new("/project"), runs_long).unwrap();
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let now = SystemTime::now();
        let make = |layers: &ProjectLayers, name: &str, age: Duration| {
            let directory = layers.temporary().join(name);
            fs::create_dir(&directory).unwrap();
            fs::File::open(&directory).unwrap().set_modified(now - age).unwrap();
        };
        let job = take(true);
        let temporary = job.temporary();
        for (name, age) in [("before-it", hours(60)), ("of-the-job", hours(47)), ("new", hours(1))] {
            make(&job, name, age);
        }
        job._lock.set_modified(now - hours(48)).unwrap();
        let left = || {
            let entries = fs::read_dir(&temporary).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        // Whoever looks has a slot as well.
        let short = take(false);
        remove_old_files(&short.temporary());
        assert_eq!(left(), ["new", "of-the-job"]);
        drop(job);
        remove_old_files(&short.temporary());
        assert_eq!(left(), ["new"]);
    }

    #[test]
    fn layers_are_removed_with_what_is_closed_in_them_and_no_link_is_followed() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "x").unwrap();
        let layers = ProjectLayers::take(state.path(), project.path(), false).unwrap();
        let closed = layers.directory().join("closed/inner");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "12345").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
        std::os::unix::fs::symlink(outside.path(), layers.temporary().join("link")).unwrap();
        drop(layers);
        let other = clear_layers(state.path(), Some(outside.path())).unwrap();
        assert_eq!(other, Cleared::default());
        let cleared = clear_layers(state.path(), Some(project.path())).unwrap();
        assert!(cleared.projects == 1 && cleared.bytes >= 5, "{cleared:?}");
        assert_eq!(fs::read_dir(state.path().join("layers")).unwrap().count(), 0);
        assert!(outside.path().join("file").exists());
        assert_eq!(clear_layers(state.path(), None).unwrap(), Cleared::default());
    }
}
