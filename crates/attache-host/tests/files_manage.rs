//! Looking at, listing, removing and moving beneath the roots: what is done, what is not, and what stays untouched.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use attache_host::files::{EntryKind, FileError, Files, Place};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

struct World {
    dir: TempDir,
    files: Files,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["proj/src", "proj/empty", "other", "outside"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("proj/src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(at("outside/secret"), "secret").unwrap();
        symlink(at("outside"), at("proj/out")).unwrap();
        symlink(at("outside/secret"), at("proj/secret")).unwrap();
        assert!(Command::new("mkfifo").arg(at("proj/fifo")).status().unwrap().success());
        let files = Files::open(&at("proj"), &[at("other")]).unwrap();
        Self { dir, files }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn remove(&self, path: &str) -> Result<(), FileError> {
        let path = self.at(path);
        self.files.remove(&path, &self.files.stat_name(&path)?)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        let from = self.at(from);
        self.files.rename(&from, &self.at(to), &self.files.stat_name(&from)?)
    }

    fn describe<T: std::fmt::Debug>(&self, result: Result<T, FileError>) -> String {
        let debug = format!("{result:?}").replace(&format!("{}/", self.dir.path().display()), "");
        debug.replace(" { path: \"", " ").replace("\" })", ")")
    }
}

#[test]
fn files_links_and_empty_directories_are_removed_and_nothing_else() {
    let world = World::new();
    for (path, expected) in [
        ("proj/src", "Err(NotEmpty proj/src)"),
        ("proj/none", "Err(NotFound proj/none)"),
        ("proj/none/none", "Err(NotFound proj/none/none)"),
        ("proj/src/main.rs/x", "Err(NotAFile proj/src/main.rs)"),
        ("proj", "Err(NotAFile proj)"),
        ("other", "Err(NotAFile other)"),
        ("proj/src/..", "Err(NotAFile proj/src/..)"),
        ("outside/secret", "Err(Outside outside/secret)"),
        ("proj/out/secret", "Err(Outside outside/secret)"),
        ("proj/out", "Ok(())"),
        ("proj/secret", "Ok(())"),
        ("proj/fifo", "Ok(())"),
        ("proj/empty", "Ok(())"),
        ("proj/src/main.rs", "Ok(())"),
        ("proj/src/", "Ok(())"),
    ] {
        assert_eq!(world.describe(world.remove(path)), expected, "{path}");
    }
    assert_eq!(fs::read_dir(world.at("proj")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(world.at("outside/secret")).unwrap(), "secret");
}

#[test]
fn moving_replaces_nothing_and_stays_inside() {
    let world = World::new();
    fs::write(world.at("other/taken"), "old").unwrap();
    for (from, to, expected) in [
        ("proj/src/main.rs", "other/taken", "Err(Exists other/taken)"),
        ("proj/src/main.rs", "proj/fifo", "Err(Exists proj/fifo)"),
        ("proj/src/main.rs", "proj/secret", "Err(Exists proj/secret)"),
        ("proj/src", "proj/empty", "Err(Exists proj/empty)"),
        ("proj/src/main.rs", "outside/new", "Err(Outside outside/new)"),
        ("proj/src/main.rs", "proj/out/new", "Err(Outside outside/new)"),
        ("proj/src/main.rs", "proj/fifo/new", "Err(NotAFile proj/fifo)"),
        ("outside/secret", "proj/stolen", "Err(Outside outside/secret)"),
        ("proj/none", "proj/new", "Err(NotFound proj/none)"),
        ("proj", "other/proj", "Err(NotAFile proj)"),
        ("proj/src/main.rs", "other/a/b/main.rs", "Ok(())"),
        ("proj/secret", "other/link", "Ok(())"),
        ("other/a", "proj/src/a", "Ok(())"),
    ] {
        assert_eq!(world.describe(world.rename(from, to)), expected, "{from} {to}");
    }
    assert_eq!(fs::read_to_string(world.at("proj/src/a/b/main.rs")).unwrap(), "fn main() {}\n");
    assert!(fs::symlink_metadata(world.at("other/link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(world.at("other/taken")).unwrap(), "old");
}

#[test]
fn what_has_changed_since_it_was_looked_at_is_left_alone() {
    let world = World::new();
    let path = world.at("proj/src/main.rs");
    let before = world.files.stat_name(&path).unwrap();
    fs::write(&path, "something else, which nobody has seen").unwrap();
    let target = world.at("proj/new");
    assert!(matches!(world.files.remove(&path, &before), Err(FileError::Replaced { .. })));
    assert!(matches!(world.files.rename(&path, &target, &before), Err(FileError::Replaced { .. })));
    assert!(path.exists() && !target.exists());
}

#[test]
fn what_is_known_of_a_file_is_told_without_opening_it() {
    let world = World::new();
    let info = |path: &str| world.files.stat(&world.at(path)).unwrap();
    assert_eq!((info("proj/src/main.rs").kind, info("proj/src/main.rs").size), (EntryKind::File, 13));
    assert_eq!(info("proj").kind, EntryKind::Directory);
    assert_eq!(info("proj/fifo").kind, EntryKind::Other);
    assert_eq!(world.files.stat_name(&world.at("proj/secret")).unwrap().kind, EntryKind::Link);
    let described = |path: &str| world.describe(world.files.stat(&world.at(path)));
    assert_eq!(described("proj/secret"), "Err(Outside outside/secret)");
    assert_eq!(described("proj/none"), "Err(NotFound proj/none)");
    let place = world.files.place_of_name(&world.at("proj/secret")).unwrap();
    assert_eq!(place, Place::Inside { root: 0, relative: "secret".into(), path: world.at("proj/secret") });
}

#[test]
fn links_are_read_and_made_without_following_them_and_modes_are_set() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    assert_eq!(world.files.read_link(&world.at("proj/secret")).unwrap(), world.at("outside/secret"));
    world.files.create_link(&world.at("proj/new/deep/link"), Path::new("../../../outside/secret")).unwrap();
    assert_eq!(world.files.read_link(&world.at("proj/new/deep/link")).unwrap(), Path::new("../../../outside/secret"));
    let made = |path: &str| world.describe(world.files.create_link(&world.at(path), Path::new("x")));
    assert_eq!(made("proj/secret"), "Err(Exists proj/secret)");
    assert_eq!(made("proj/out/link"), "Err(Outside outside/link)");
    assert!(world.files.read_link(&world.at("proj/src/main.rs")).is_err(), "no link");
    world.files.set_mode(&world.at("proj/src/main.rs"), 0o4755).unwrap();
    assert_eq!(fs::metadata(world.at("proj/src/main.rs")).unwrap().permissions().mode() & 0o7777, 0o755);
    let set = |path: &str| world.describe(world.files.clone().without_links().set_mode(&world.at(path), 0o777));
    assert_eq!(set("proj/secret"), "Err(Changed proj/secret)");
    assert_eq!(fs::read_dir(world.at("outside")).unwrap().count(), 1);
}

#[test]
fn a_directory_is_listed_in_order_with_names_of_any_bytes() {
    let world = World::new();
    fs::write(world.at("proj").join(std::ffi::OsStr::from_bytes(b"\xff\n")), "").unwrap();
    let listing = world.files.list(&world.at("proj"), 100).unwrap();
    let names: Vec<&[u8]> = listing.entries.iter().map(|entry| entry.name.as_bytes()).collect();
    assert_eq!(names, [&b"empty"[..], b"fifo", b"out", b"secret", b"src", b"\xff\n"]);
    let cut = world.files.list(&world.at("proj"), 2).unwrap();
    assert!(cut.is_cut && cut.entries.len() == 2 && !listing.is_cut);
    let described = |path: &str| world.describe(world.files.list(&world.at(path), 9));
    assert_eq!(described("proj/out"), "Err(Outside outside)");
    assert_eq!(described("proj/fifo"), "Err(NotADirectory proj/fifo)");
    assert_eq!(described("proj/none"), "Err(NotFound proj/none)");
}

#[test]
fn bytes_are_read_up_to_a_limit_and_written_as_they_are() {
    let world = World::new();
    let path = world.at("proj/binary");
    world.files.write_bytes(&path, b"\0\xff").unwrap();
    assert_eq!(world.files.read_bytes(&path, 2).unwrap(), b"\0\xff");
    assert!(matches!(world.files.read_bytes(&path, 1), Err(FileError::TooLarge { limit: 1, .. })));
    assert!(matches!(world.files.read_bytes(&world.at("proj/fifo"), 1), Err(FileError::NotAFile { .. })));
    // A file that says it is empty and is not.
    let maps = PathBuf::from(format!("/proc/{}/maps", std::process::id()));
    let files = world.files.clone().allow(&maps);
    assert!(matches!(files.read_bytes(&maps, 9), Err(FileError::TooLarge { limit: 9, .. })));
}

#[test]
fn what_is_allowed_is_served_and_a_link_that_came_in_since_is_seen() {
    let world = World::new();
    let secret = world.at("outside/secret");
    let allowed = world.files.clone().allow(&secret);
    assert_eq!(allowed.read_bytes(&world.at("proj/secret"), 9).unwrap(), b"secret");
    let strict = allowed.clone().without_links();
    assert_eq!(strict.read_bytes(&secret, 9).unwrap(), b"secret");
    assert!(matches!(strict.read_bytes(&world.at("proj/secret"), 9), Err(FileError::Changed { .. })));
    let info = allowed.stat_name(&secret).unwrap();
    allowed.rename(&secret, &world.at("proj/brought"), &info).unwrap();
    assert!(!secret.exists());
}

#[test]
fn nothing_outside_is_removed_or_moved_while_directories_are_swapped_for_links() {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let at = |path: &str| dir.path().join(path);
    for path in ["proj/one", "outside"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    fs::write(at("outside/file"), "secret").unwrap();
    symlink(at("outside"), at("proj/link")).unwrap();
    let files = Files::open(&at("proj"), &[]).unwrap();
    let is_done = AtomicBool::new(false);
    let mut counts = [0usize; 3];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0u32;
            while !is_done.load(Ordering::Relaxed) {
                renameat_with(CWD, at("proj/one"), CWD, at("proj/link"), RenameFlags::EXCHANGE).unwrap();
                round = round.wrapping_add(1);
                for _ in 0..round % 64 * 100 {
                    std::hint::spin_loop();
                }
            }
        });
        let file = at("proj/one/file");
        for round in 0..5_000 {
            let _ = files.write_bytes(&file, b"inside");
            let result = files.stat_name(&file).and_then(|info| match round % 2 {
                0 => files.remove(&file, &info),
                _ => files.rename(&file, &at("proj/one/moved"), &info),
            });
            let moved = at("proj/one/moved");
            let _ = files.stat_name(&moved).and_then(|info| files.remove(&moved, &info));
            match result {
                Ok(()) => counts[0] += 1,
                Err(FileError::Outside { .. }) => counts[1] += 1,
                Err(_) => counts[2] += 1,
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(at("outside/file")).unwrap(), "secret");
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 1);
    assert!(counts[0] > 50 && counts[1] > 50, "{counts:?}");
}
