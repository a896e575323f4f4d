//! Removing trees that commands have made: they may be deeper than paths reach, and closed even to their owner.

use std::{fs, io, path::Path};

/// How deep a tree is gone into, and how long a path may become on the way. What lies deeper is moved up first: a command can
/// make trees that are deeper than stacks, descriptors and paths reach.
const DEEPEST: usize = 32;
const LONGEST_PATH: usize = 2048;

/// Removes a tree in which nobody is at work, without following links. Directories in it may be closed even to their owner: commands make such, and
/// so does the kernel.
pub(super) fn remove(path: &Path, bytes: &mut u64) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return remove_file(path, bytes);
    }
    // What is moved up comes to lie in the top, so that is gone through until nothing comes any more.
    let mut moved = 0;
    loop {
        let before = moved;
        remove_below(path, path, 0, &mut moved, bytes)?;
        if moved == before {
            return fs::remove_dir(path);
        }
    }
}

fn remove_file(path: &Path, bytes: &mut u64) -> io::Result<()> {
    *bytes += fs::symlink_metadata(path)?.len();
    fs::remove_file(path)
}

/// Removes what is in a directory, or moves it up.
fn remove_below(top: &Path, path: &Path, depth: usize, moved: &mut u64, bytes: &mut u64) -> io::Result<()> {
    open_up(path)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let child = entry.path();
        if !entry.file_type()?.is_dir() {
            remove_file(&child, bytes)?;
        } else if depth + 1 < DEEPEST && child.as_os_str().len() < LONGEST_PATH {
            remove_below(top, &child, depth + 1, moved, bytes)?;
            fs::remove_dir(&child)?;
        } else {
            open_up(&child)?;
            let place = loop {
                *moved += 1;
                let place = top.join(format!(".moved-{moved}"));
                if fs::symlink_metadata(&place).is_err() {
                    break place;
                }
            };
            fs::rename(&child, place)?;
        }
    }
    Ok(())
}

fn open_up(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_deeper_than_paths_reach_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let top = state.path().join("gone");
        fs::create_dir(&top).unwrap();
        // Each hundred levels are made at the top and then get the ones before into them.
        for round in 0..50 {
            let chain = state.path().join("chain");
            let deepest = chain.join("d/".repeat(100));
            fs::create_dir_all(&deepest).unwrap();
            fs::write(deepest.join("file"), "x").unwrap();
            if round > 0 {
                fs::rename(top.join("tree"), deepest.join("tree")).unwrap();
            }
            fs::rename(&chain, top.join("tree")).unwrap();
        }
        let mut bytes = 0;
        remove(&top, &mut bytes).unwrap();
        assert_eq!(bytes, 50);
        assert!(!top.exists());
    }
}
