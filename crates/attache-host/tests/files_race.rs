//! A directory is swapped for a link to outside, again and again, while files in it are read and written.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use attache_host::files::{FileError, Files};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Stops the other thread also when a check fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each a read and a write.
const ROUNDS: usize = 10_000;

#[test]
fn nothing_outside_is_read_or_written_while_directories_are_swapped_for_links() {
    // In memory where there is such a place, because each write waits for the disk.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir_all(at("proj/one/two")).unwrap();
    fs::create_dir_all(at("outside/two")).unwrap();
    fs::write(at("proj/one/two/file"), "inside").unwrap();
    fs::write(at("outside/two/file"), "secret").unwrap();
    symlink(at("outside"), at("proj/link")).unwrap();
    let files = Files::open(&at("proj"), &[]).unwrap();

    let is_done = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    let (mut served, mut asked) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                renameat_with(CWD, at("proj/one"), CWD, at("proj/link"), RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                // Both states last long enough for a walk to begin in one and to end in the other.
                for _ in 0..swaps.load(Ordering::Relaxed) % 64 * 100 {
                    std::hint::spin_loop();
                }
            }
        });
        let _done = Done(&is_done);
        let writes = [at("proj/one/two/file"), at("proj/one/new/file")];
        for round in 0..ROUNDS {
            let results = [files.read(&writes[0]), files.write(&writes[round % 2], "inside").map(|()| "inside".into())];
            for result in results {
                match result {
                    Ok(content) => {
                        assert_eq!(content, "inside");
                        served += 1;
                    }
                    Err(FileError::Outside { path }) => {
                        assert!(path.starts_with(at("outside")));
                        asked += 1;
                    }
                    Err(FileError::Changed { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    });

    assert_eq!(fs::read_to_string(at("outside/two/file")).unwrap(), "secret");
    let left: Vec<_> = fs::read_dir(at("outside")).unwrap().chain(fs::read_dir(at("outside/two")).unwrap()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // The race was one: both states were met often.
    let swaps = swaps.into_inner();
    assert!(served > 100 && asked > 100 && swaps > 100, "served {served}, asked {asked}, swaps {swaps}");
}
