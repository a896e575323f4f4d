//! How much room private layers may take. What a project's commands wrote into caches can be had again, so the layers of
//! whoever has not used theirs for longest go first; those in use stay.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use super::{
    layers::{self, Cleared},
    removal,
};

/// How often it is looked at what layers take: to add up large ones takes seconds.
const OFTEN: Duration = Duration::from_secs(10 * 60);

/// How much room private layers may take, in bytes. It is looked at every ten minutes while commands run, so it can be more
/// for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerLimits {
    /// Those of one project.
    pub project: u64,
    /// All of them.
    pub all: u64,
}

impl Default for LayerLimits {
    /// A large build has a few GiB of packages.
    fn default() -> Self {
        LayerLimits { project: 5 << 30, all: 20 << 30 }
    }
}

/// What private layers take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerUse {
    /// How many projects have layers.
    pub projects: usize,
    /// How many bytes they take on disk.
    pub bytes: u64,
}

/// Adds up what private layers take. May take a while.
pub fn layer_use(state_dir: &Path) -> LayerUse {
    let projects = projects(state_dir);
    LayerUse { projects: projects.len(), bytes: projects.iter().map(|project| project.bytes).sum() }
}

/// Looks after layers while commands run: removes old temporary files and what is more than the limits, in the background
/// and not too often.
pub fn look_after_layers(state_dir: &Path, temporary: PathBuf, limits: LayerLimits) {
    static LOOKED: Mutex<Option<Instant>> = Mutex::new(None);
    let mut looked = LOOKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if looked.is_some_and(|looked| looked.elapsed() < OFTEN) {
        return;
    }
    *looked = Some(Instant::now());
    let state_dir = state_dir.to_owned();
    std::thread::spawn(move || {
        layers::remove_old_files(&temporary);
        // What cannot be removed now is tried again.
        let _ = limit_layers(&state_dir, limits);
    });
}

/// Removes layers until they take no more than the limits: those of projects that have too much, and then the ones that
/// were not used for longest. Those that are in use are left alone, and removed when the next command starts there. May take
/// a while.
pub fn limit_layers(state_dir: &Path, limits: LayerLimits) -> io::Result<Cleared> {
    let mut cleared = Cleared::default();
    // What somebody was about to remove, who may be at it still.
    for gone in layers::retired(state_dir) {
        let _ = removal::remove(&gone, &mut 0);
    }
    let mut projects = projects(state_dir);
    projects.sort_by_key(|project| project.used);
    let mut left: u64 = projects.iter().map(|project| project.bytes).sum();
    let (large, others): (Vec<_>, Vec<_>) = projects.into_iter().partition(|project| project.bytes > limits.project);
    let is_large = large.len();
    // What goes wrong with one is no reason to leave the others.
    let mut trouble = Ok(());
    for (number, project) in large.into_iter().chain(others).enumerate() {
        if number >= is_large && left <= limits.all {
            break;
        }
        match layers::retire(&project.top) {
            Ok(Some(gone)) => match removal::remove(&gone, &mut cleared.bytes) {
                Ok(()) => {
                    left = left.saturating_sub(project.bytes);
                    cleared.projects += 1;
                }
                Err(error) => trouble = Err(error),
            },
            Ok(None) => {
                cleared.busy += 1;
                if number < is_large {
                    trouble = layers::mark_full(&project.top).and(trouble);
                }
            }
            Err(error) => trouble = Err(error),
        }
    }
    trouble.map(|()| cleared)
}

struct Project {
    top: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn projects(state_dir: &Path) -> Vec<Project> {
    let tops = layers::tops(state_dir).into_iter();
    tops.map(|top| Project { bytes: size(&top), used: layers::last_use(&top), top }).collect()
}

/// What a tree takes on disk, as far as it can be read. Links are not followed.
fn size(top: &Path) -> u64 {
    let mut bytes: u64 = 0;
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(on_disk(&found));
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(unix)]
fn on_disk(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(found).saturating_mul(512)
}

#[cfg(not(unix))]
fn on_disk(found: &fs::Metadata) -> u64 {
    found.len()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::ProjectLayers;
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Layers of a project with so many MiB in them, used so many hours ago.
    fn make(state: &Path, project: &str, mib: usize, hours: u64) -> PathBuf {
        let layers = ProjectLayers::take(state, Path::new(project), false).unwrap();
        let top = layers.temporary().parent().unwrap().to_owned();
        fs::write(layers.temporary().join("file"), vec![1; mib << 20]).unwrap();
        drop(layers);
        let lock = fs::OpenOptions::new().append(true).open(top.join("1.lock")).unwrap();
        lock.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        top
    }

    #[test]
    fn the_large_and_then_the_oldest_go_until_there_is_room() {
        let state = tempfile::tempdir().unwrap();
        let limits = LayerLimits { project: 4 * MIB, all: 5 * MIB };
        assert_eq!(limit_layers(state.path(), limits).unwrap(), Cleared::default());
        let large = make(state.path(), "/large", 6, 1);
        let (old, middle, new) =
            (make(state.path(), "/old", 2, 9), make(state.path(), "/middle", 2, 5), make(state.path(), "/new", 2, 0));
        let used = layer_use(state.path());
        assert!(used.projects == 4 && (12 * MIB..13 * MIB).contains(&used.bytes), "{used:?}");
        let cleared = limit_layers(state.path(), limits).unwrap();
        assert_eq!((cleared.projects, cleared.busy), (2, 0), "{cleared:?}");
        assert_eq!([&large, &old, &middle, &new].map(|top| top.exists()), [false, false, true, true]);
        // Nothing is left of them, and there is room now.
        assert_eq!(fs::read_dir(state.path().join("layers")).unwrap().count(), 2);
        assert_eq!(limit_layers(state.path(), limits).unwrap(), Cleared::default());
    }

    #[test]
    fn what_is_in_use_stays_until_the_next_command() {
        let state = tempfile::tempdir().unwrap();
        let top = make(state.path(), "/large", 2, 9);
        let limits = LayerLimits { project: MIB, all: MIB };
        let held = ProjectLayers::take(state.path(), Path::new("/large"), false).unwrap();
        let cleared = limit_layers(state.path(), limits).unwrap();
        assert_eq!((cleared.projects, cleared.busy), (0, 1), "{cleared:?}");
        // A second command beside it sees what is there.
        let second = ProjectLayers::take(state.path(), Path::new("/large"), false).unwrap();
        assert!(top.join("tmp/file").exists());
        drop((held, second));
        let next = ProjectLayers::take(state.path(), Path::new("/large"), false).unwrap();
        assert!(!top.join("tmp/file").exists() && top.join("tmp").exists());
        drop(next);
        let cleared = limit_layers(state.path(), limits).unwrap();
        assert_eq!((cleared.projects, cleared.busy), (0, 0), "it is small now");
        // Whoever began to remove it may be at it still.
        let is_empty = || layers::retired(state.path()).is_empty();
        assert!((0..1000).any(|_| is_empty() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
    }

    #[test]
    fn what_was_about_to_be_removed_is_removed_and_no_link_is_followed() {
        let state = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), vec![1; 2 << 20]).unwrap();
        let top = make(state.path(), "/one", 0, 0);
        std::os::unix::fs::symlink(outside.path(), top.join("tmp/link")).unwrap();
        assert!(layer_use(state.path()).bytes < MIB);
        let gone = layers::retire(&top).unwrap().unwrap();
        assert!(gone.exists() && !top.exists());
        limit_layers(state.path(), LayerLimits::default()).unwrap();
        assert!(!gone.exists() && outside.path().join("file").exists());
    }
}
