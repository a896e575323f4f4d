//! Random trees of directories, files and links, random paths: all lead where a simple resolver in memory says.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use attache_host::files::{FileError, Files, Place};
use attache_testkit::Dice;

const TREES: u64 = 400;
const PATHS: usize = 60;
/// Names that nothing outside of the test has, because `..` may lead there.
const NAMES: [&str; 4] = ["a~1", "b~1", "c~1", "d~1"];

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Dir,
    File(String),
    Link(String),
}

/// What there is, by its path.
type Tree = BTreeMap<String, Node>;

#[derive(Debug, PartialEq)]
enum Wrong {
    NotFound,
    NotAFile,
    TooManyLinks,
}

/// The path without links. Works on text, one name after the other, and starts anew at each link.
fn resolve(tree: &Tree, path: &str, links_left: usize) -> Result<String, Wrong> {
    let mut at = String::new();
    let mut rest = path.split('/').filter(|name| !name.is_empty() && *name != ".");
    while let Some(name) = rest.next() {
        match (at.is_empty(), tree.get(&at)) {
            (true, _) | (_, Some(Node::Dir)) => {}
            (_, None) if name == ".." => return Err(Wrong::NotFound),
            (_, None) => {}
            _ => return Err(Wrong::NotAFile),
        }
        if name == ".." {
            at.truncate(at.rfind('/').unwrap_or(0));
            continue;
        }
        let next = format!("{at}/{name}");
        let Some(Node::Link(target)) = tree.get(&next) else {
            at = next;
            continue;
        };
        if links_left == 0 {
            return Err(Wrong::TooManyLinks);
        }
        let rest = rest.collect::<Vec<_>>().join("/");
        let from = if target.starts_with('/') { "" } else { &at };
        return resolve(tree, &format!("{from}/{target}/{rest}"), links_left - 1);
    }
    Ok(at)
}

struct World {
    top: String,
    tree: Tree,
    dice: Dice,
}

impl World {
    fn names(&mut self, most: usize) -> String {
        let count = 1 + self.dice.below(most);
        let words = ["..", ".", "root1", "root2", NAMES[0], NAMES[1], NAMES[2], NAMES[3], NAMES[0], NAMES[1]];
        (0..count).map(|_| self.dice.pick(&words)).collect::<Vec<_>>().join("/")
    }

    fn path(&mut self) -> String {
        let begin = self.dice.pick(&["", "/root1", "/root2", "/linked", "/root1"]).to_owned();
        let names = self.names(6);
        format!("{}{begin}/{names}", self.top)
    }

    /// Adds something to a directory that there is, on disk and in the model.
    fn grow(&mut self) {
        let dirs: Vec<&String> =
            self.tree.iter().filter(|(_, node)| **node == Node::Dir).map(|(path, _)| path).collect();
        let dirs: Vec<&str> = dirs.into_iter().filter(|path| path.starts_with(&self.top)).map(String::as_str).collect();
        let dir = self.dice.pick(&dirs).to_owned();
        let path = format!("{dir}/{}", self.dice.pick(&NAMES));
        if self.tree.contains_key(&path) {
            return;
        }
        let node = match self.dice.below(5) {
            0 | 1 => Node::Dir,
            2 => Node::File(format!("content of {path}")),
            3 => Node::Link(self.names(4)),
            _ => Node::Link(self.path()),
        };
        match &node {
            Node::Dir => fs::create_dir(&path).unwrap(),
            Node::File(content) => fs::write(&path, content).unwrap(),
            Node::Link(target) => symlink(target, &path).unwrap(),
        }
        self.tree.insert(path, node);
    }

    fn add_dir(&mut self, path: &str) {
        let _ = fs::create_dir(path);
        self.tree.insert(path.to_owned(), Node::Dir);
    }

    /// What is on disk, to compare with the model.
    fn on_disk(&self, dir: &Path, found: &mut Tree) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let name = path.to_str().unwrap().to_owned();
            if kind.is_symlink() {
                found.insert(name, Node::Link(fs::read_link(&path).unwrap().to_str().unwrap().to_owned()));
            } else if kind.is_dir() {
                found.insert(name, Node::Dir);
                self.on_disk(&path, found);
            } else {
                found.insert(name, Node::File(fs::read_to_string(&path).unwrap()));
            }
        }
    }
}

fn check(seed: u64) {
    // In memory where there is such a place, because a write waits for the disk.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let top = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let mut world = World { top: top.clone(), tree: Tree::new(), dice: Dice::new(seed + 1) };
    for end in top.match_indices('/').map(|(end, _)| end).skip(1).chain([top.len()]) {
        world.add_dir(&top[..end]);
    }
    world.add_dir(&format!("{top}/root1"));
    world.add_dir(&format!("{top}/root2"));
    symlink("root1", format!("{top}/linked")).unwrap();
    world.tree.insert(format!("{top}/linked"), Node::Link("root1".into()));
    for _ in 0..25 {
        world.grow();
    }
    let files = Files::open(Path::new(&format!("{top}/linked")), &[PathBuf::from(format!("{top}/root2"))]).unwrap();
    for number in 0..PATHS {
        let path = world.path();
        let expected = resolve(&world.tree, &path, 40);
        let context = format!("seed {seed}, path {path}, expected {expected:?}");
        check_place(&files, &world, &path, &expected, &context);
        if world.dice.one_in(3) {
            check_write(&files, &mut world, &path, &expected, &format!("write {number}"), &context);
        } else {
            check_read(&files, &world, &path, &expected, &context);
        }
    }
    let mut found = Tree::new();
    world.on_disk(Path::new(&top), &mut found);
    world.tree.retain(|path, _| path.starts_with(&format!("{top}/")));
    assert_eq!(found, world.tree, "seed {seed}");
}

fn root_of(world: &World, path: &str) -> Option<usize> {
    let is_beneath = |root: &str| path == root || path.starts_with(&format!("{root}/"));
    (1..=2).find(|number| is_beneath(&format!("{}/root{number}", world.top))).map(|number| number - 1)
}

fn check_wrong(error: &FileError, expected: &Wrong, context: &str) {
    let is_right = match error {
        FileError::NotFound { .. } => *expected == Wrong::NotFound,
        FileError::NotAFile { .. } => *expected == Wrong::NotAFile,
        FileError::TooManyLinks { .. } => *expected == Wrong::TooManyLinks,
        _ => false,
    };
    assert!(is_right, "{error:?} {context}");
}

fn check_place(files: &Files, world: &World, path: &str, expected: &Result<String, Wrong>, context: &str) {
    match (files.place(Path::new(path)), expected) {
        (Err(error), Err(expected)) => check_wrong(&error, expected, context),
        (Ok(place), Ok(expected)) => {
            let expected_path = if expected.is_empty() { "/" } else { expected };
            assert_eq!(place.path(), Path::new(expected_path), "{context}");
            let root = match &place {
                Place::Inside { root, relative, path } => {
                    assert_eq!(files.roots().nth(*root).unwrap().join(relative).components().as_path(), path);
                    Some(*root)
                }
                Place::Outside { .. } => None,
            };
            assert_eq!(root, root_of(world, expected), "{context}");
            // The kernel is the second opinion, on what exists.
            if let Ok(real) = Path::new(path).canonicalize() {
                assert_eq!(place.path(), real, "{context}");
            }
        }
        (place, _) => panic!("{place:?} {context}"),
    }
}

fn check_read(files: &Files, world: &World, path: &str, expected: &Result<String, Wrong>, context: &str) {
    let result = files.read(path.as_ref());
    match (result, expected) {
        (Err(error), Err(expected)) => check_wrong(&error, expected, context),
        (Err(FileError::Outside { .. }), Ok(expected)) => assert_eq!(root_of(world, expected), None, "{context}"),
        (result, Ok(expected)) => {
            assert!(root_of(world, expected).is_some(), "{result:?} {context}");
            match (result, world.tree.get(expected)) {
                (Ok(content), Some(Node::File(text))) => assert_eq!(content, *text, "{context}"),
                (Err(error), Some(Node::Dir)) => check_wrong(&error, &Wrong::NotAFile, context),
                (Err(error), None) => check_wrong(&error, &Wrong::NotFound, context),
                (result, _) => panic!("{result:?} {context}"),
            }
        }
        (result, _) => panic!("{result:?} {context}"),
    }
}

fn check_write(
    files: &Files,
    world: &mut World,
    path: &str,
    expected: &Result<String, Wrong>,
    text: &str,
    context: &str,
) {
    let result = files.write(path.as_ref(), text);
    match (result, expected) {
        (Err(error), Err(expected)) => check_wrong(&error, expected, context),
        (Err(FileError::Outside { .. }), Ok(expected)) => assert_eq!(root_of(world, expected), None, "{context}"),
        (Err(error), Ok(expected)) => {
            assert_eq!(world.tree.get(expected), Some(&Node::Dir), "{context}");
            check_wrong(&error, &Wrong::NotAFile, context);
        }
        (Ok(_), Ok(expected)) => {
            assert!(root_of(world, expected).is_some(), "{context}");
            for (end, _) in expected.match_indices('/').skip(1) {
                world.tree.entry(expected[..end].to_owned()).or_insert(Node::Dir);
            }
            world.tree.insert(expected.clone(), Node::File(text.to_owned()));
        }
        (result, _) => panic!("{result:?} {context}"),
    }
}

#[test]
fn paths_lead_where_the_model_says() {
    for seed in 0..TREES {
        check(seed);
    }
}
