//! Paths beneath the roots of a session, in trees of links that mean harm.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use attache_host::files::Files;

use crate::input::Input;

/// What is in every file outside.
const SECRET: &str = "outside";

/// In any tree of directories, files and links, nothing outside of the roots is read, written, moved or deleted.
pub fn paths(data: &[u8]) {
    let mut input = Input::new(data);
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let root = top.join("root");
    for name in ["root/a", "root/b", "outside/a"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    for name in ["outside/file", "outside/a/file"] {
        fs::write(top.join(name), SECRET).unwrap();
    }
    for name in ["root/file", "root/a/file"] {
        fs::write(top.join(name), "inside").unwrap();
    }
    for _ in 0..input.below(8) {
        let (at, target) = (root.join(relative(&mut input)), target(&mut input, &top));
        // Where something is already, or nothing to be in, there is no new link.
        let _ = symlink(target, at);
    }
    let before = outside(&top);
    let files = Files::open(&root, &[]).unwrap();
    for _ in 0..1 + input.below(8) {
        let path = path(&mut input, &top);
        match input.below(6) {
            0 => _ = files.write_bytes(&path, b"written"),
            1 => _ = files.create_parents(&path.join("new")),
            2 => {
                if let Ok(info) = files.stat_name(&path) {
                    let _ = files.remove(&path, &info);
                }
            }
            3 => {
                if let Ok(info) = files.stat_name(&path) {
                    let _ = files.rename(&path, &self::path(&mut input, &top), &info);
                }
            }
            4 => {
                if let Ok(place) = files.place(&path)
                    && place.is_inside()
                {
                    assert!(place.path().starts_with(&root), "{path:?} leads to {place:?}");
                }
            }
            _ => {
                if let Ok(bytes) = files.read_bytes(&path, 1024) {
                    assert_ne!(bytes, SECRET.as_bytes(), "{path:?} was read");
                }
            }
        }
        assert_eq!(outside(&top), before, "{path:?} changed something outside");
    }
}

/// Everything outside of the root, with its content.
fn outside(top: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    let mut waiting = vec![top.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path == top.join("root") {
                continue;
            }
            let is_directory = entry.file_type().unwrap().is_dir();
            found.push((path.clone(), if is_directory { None } else { fs::read_to_string(&path).ok() }));
            if is_directory {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

fn relative(input: &mut Input<'_>) -> String {
    let names = ["a", "b", "file", "link", "..", ".", "a", "link"];
    (0..1 + input.below(4)).map(|_| input.pick(&names)).collect::<Vec<_>>().join("/")
}

fn target(input: &mut Input<'_>, top: &Path) -> PathBuf {
    match input.below(5) {
        0 => top.join("outside"),
        1 => top.join("outside/file"),
        2 => PathBuf::from("../outside/a"),
        3 => top.join("root").join(relative(input)),
        _ => PathBuf::from(relative(input)),
    }
}

fn path(input: &mut Input<'_>, top: &Path) -> PathBuf {
    match input.below(4) {
        0 => top.join("outside").join(relative(input)),
        _ => top.join("root").join(relative(input)),
    }
}
