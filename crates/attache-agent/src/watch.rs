//! Tells sessions that something has changed in a few directories.
//!
//! All sessions of an agent share one watcher, because a user has few of them. Only single directories are watched, never
//! what is beneath them: a project may have a hundred thousand files.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::lock;

/// Watches directories for all sessions of an agent.
#[derive(Clone, Default)]
pub(crate) struct Watches(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Locked while the system is asked, which may take long, so never on the runtime's thread.
    watcher: Mutex<Option<Watcher>>,
    /// Those who are told. Locked for a moment only.
    listeners: Arc<Mutex<HashMap<u64, Listener>>>,
    /// Nothing is watched, as where the system has no more watches to give.
    is_off: bool,
}

struct Watcher {
    system: RecommendedWatcher,
    /// How many watch a directory.
    counts: HashMap<PathBuf, usize>,
}

struct Listener {
    paths: Vec<PathBuf>,
    changed: Arc<Notify>,
}

/// One who wants to know when something changes in directories. They are let go when it is dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    number: u64,
    paths: Vec<PathBuf>,
    /// The directories that are watched for it.
    watched: BTreeSet<PathBuf>,
    changed: Arc<Notify>,
}

impl Watches {
    /// Watches, or not.
    pub(crate) fn new(is_on: bool) -> Self {
        Watches(Arc::new(Shared { is_off: !is_on, ..Shared::default() }))
    }

    /// Prepares to watch directories, and what is in them. They need not exist. Nothing is noticed before [`Watch::arm`].
    pub(crate) fn watch(&self, paths: Vec<PathBuf>) -> Watch {
        let changed = Arc::new(Notify::new());
        let mut listeners = lock(&self.0.listeners);
        let number = listeners.keys().max().map_or(0, |last| last + 1);
        listeners.insert(number, Listener { paths: paths.clone(), changed: changed.clone() });
        Watch { shared: self.0.clone(), number, paths, watched: BTreeSet::new(), changed }
    }
}

impl Watch {
    /// Waits until something may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Watches what is there now: each directory, or the one above it that is to hold it. To be called again after every
    /// change. Says whether every change will be noticed. Blocks.
    pub(crate) fn arm(&mut self) -> bool {
        if self.shared.is_off {
            return false;
        }
        let nearest = |path: &PathBuf| path.ancestors().find(|path| path.is_dir()).map(Path::to_owned);
        let wanted: BTreeSet<PathBuf> = self.paths.iter().filter_map(nearest).collect();
        let mut watcher = lock(&self.shared.watcher);
        let Ok(watcher) = running(&mut watcher, &self.shared.listeners) else { return false };
        for path in self.watched.difference(&wanted) {
            watcher.release(path);
        }
        self.watched.retain(|path| wanted.contains(path));
        let mut is_complete = true;
        for path in wanted {
            // Also what is watched: it may have been removed, and made again.
            match watcher.system.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    is_complete &= !is_remote(&path);
                    if !self.watched.contains(&path) {
                        *watcher.counts.entry(path.clone()).or_default() += 1;
                        self.watched.insert(path);
                    }
                }
                Err(_) => is_complete = false,
            }
        }
        is_complete
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.shared.listeners).remove(&self.number);
        let (shared, watched) = (self.shared.clone(), std::mem::take(&mut self.watched));
        let release = move || {
            if let Some(watcher) = lock(&shared.watcher).as_mut() {
                watched.iter().for_each(|path| watcher.release(path));
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(release)),
            Err(_) => release(),
        }
    }
}

impl Watcher {
    /// One less watches a directory.
    fn release(&mut self, path: &Path) {
        let Some(count) = self.counts.get_mut(path) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(path);
            // A directory that is gone is not watched any more.
            let _ = self.system.unwatch(path);
        }
    }
}

/// The watcher, made when it is first wanted.
fn running<'a>(
    watcher: &'a mut Option<Watcher>,
    listeners: &Arc<Mutex<HashMap<u64, Listener>>>,
) -> notify::Result<&'a mut Watcher> {
    match watcher {
        Some(watcher) => Ok(watcher),
        none => {
            let listeners = listeners.clone();
            let system = notify::recommended_watcher(move |event| tell(&listeners, event))?;
            Ok(none.insert(Watcher { system, counts: HashMap::new() }))
        }
    }
}

/// Tells those whom a change may concern.
fn tell(listeners: &Mutex<HashMap<u64, Listener>>, event: notify::Result<Event>) {
    let paths = match event {
        // Who only looks changes nothing.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
        Ok(event) if !event.need_rescan() => event.paths,
        // Something was missed.
        _ => Vec::new(),
    };
    for listener in lock(listeners).values() {
        let concerns =
            |path: &PathBuf| listener.paths.iter().any(|wanted| path.starts_with(wanted) || wanted.starts_with(path));
        if paths.is_empty() || paths.iter().any(concerns) {
            listener.changed.notify_one();
        }
    }
}

/// Whether a directory may be changed by another machine, or by a program that tells nobody.
#[cfg(target_os = "linux")]
fn is_remote(path: &Path) -> bool {
    /// NFS, SMB in three ages, 9P, Ceph, AFS, FUSE.
    const REMOTE: [u32; 8] =
        [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x00C3_6400, 0x5346_414F, 0x6573_5546];
    rustix::fs::statfs(path).is_ok_and(|system| REMOTE.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Whether something is noticed soon.
    async fn is_told(watch: &Watch) -> bool {
        tokio::time::timeout(Duration::from_secs(10), watch.changed()).await.is_ok()
    }

    #[cfg(target_os = "linux")]
    fn watched(watches: &Watches) -> Vec<PathBuf> {
        let watcher = lock(&watches.0.watcher);
        let mut paths: Vec<PathBuf> = watcher.iter().flat_map(|watcher| watcher.counts.keys().cloned()).collect();
        paths.sort();
        paths
    }

    /// How many watches this process has, as the kernel counts them for the directories of a test.
    #[cfg(target_os = "linux")]
    fn in_kernel(directories: &[&Path]) -> usize {
        use std::os::unix::fs::MetadataExt as _;
        let numbers: Vec<String> =
            directories.iter().map(|path| format!("ino:{:x} ", fs::metadata(path).unwrap().ino())).collect();
        let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        let lines: String = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
        lines.lines().filter(|line| line.starts_with("inotify") && numbers.iter().any(|ino| line.contains(ino))).count()
    }

    #[tokio::test]
    async fn a_directory_is_watched_from_before_it_is_there() {
        let top = tempfile::tempdir().unwrap();
        let wanted = top.path().join("a/commands");
        let watches = Watches::default();
        let mut watch = watches.watch(vec![wanted.clone()]);
        assert!(watch.arm());
        for step in ["a", "a/commands"] {
            fs::create_dir(top.path().join(step)).unwrap();
            assert!(is_told(&watch).await, "{step}");
            assert!(watch.arm());
        }
        fs::write(wanted.join("new.md"), "text").unwrap();
        assert!(is_told(&watch).await);
        // Removed and made again, also if nobody looked meanwhile.
        fs::remove_dir_all(&wanted).unwrap();
        fs::create_dir(&wanted).unwrap();
        assert!(is_told(&watch).await);
        assert!(watch.arm());
        fs::write(wanted.join("other.md"), "text").unwrap();
        assert!(is_told(&watch).await);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_watched_that_nobody_wants() {
        let top = tempfile::tempdir().unwrap();
        let (shared, own) = (top.path().join("shared"), top.path().join("own"));
        for number in 0..100 {
            fs::create_dir_all(shared.join(format!("{number}/beneath"))).unwrap();
        }
        fs::create_dir(&own).unwrap();
        let watches = Watches::default();
        let mut one = watches.watch(vec![shared.clone(), own.clone()]);
        let mut other = watches.watch(vec![shared.clone()]);
        assert!(one.arm() && other.arm() && one.arm());
        assert_eq!(watched(&watches), [own.clone(), shared.clone()]);
        assert_eq!(in_kernel(&[&shared, &own]), 2);
        assert_eq!(in_kernel(&[&shared.join("7"), &shared.join("7/beneath")]), 0, "nothing beneath them");
        drop(one);
        assert_eq!((watched(&watches), in_kernel(&[&shared, &own])), (vec![shared.clone()], 1));
        drop(other);
        assert_eq!((watched(&watches).len(), in_kernel(&[&shared, &own])), (0, 0));
        assert!(lock(&watches.0.listeners).is_empty());
    }

    #[tokio::test]
    async fn what_happens_beside_it_concerns_nobody() {
        let top = tempfile::tempdir().unwrap();
        let watches = Watches::default();
        let mut watch = watches.watch(vec![top.path().join("commands")]);
        assert!(watch.arm());
        fs::write(top.path().join("beside"), "text").unwrap();
        fs::create_dir(top.path().join("commands")).unwrap();
        assert!(is_told(&watch).await);
        // Both were noticed by now, and only one was told.
        let again = tokio::time::timeout(Duration::from_millis(50), watch.changed()).await;
        assert!(again.is_err());
    }
}
