//! Files that are read without a question: what a project brings along for a model, and what a person names.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use attache_host::files::{FileError, Files, open_named, read_named, resolve_named};
use tempfile::TempDir;

/// A home with two repositories and a directory that is none.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = World(tempfile::tempdir().unwrap());
        for directory in ["repo/.git", "repo/sub", "other/.git", "plain", ".ssh"] {
            fs::create_dir_all(world.at(directory)).unwrap();
        }
        for (name, text) in [
            ("repo/a.md", "a"),
            ("repo/.env", "secret"),
            ("repo/sub/b.md", "b"),
            (".ssh/id_rsa", "secret"),
            ("notes", "n"),
        ] {
            fs::write(world.at(name), text).unwrap();
        }
        for (link, target) in [
            ("repo/in", "sub/b.md"),
            ("repo/env", ".env"),
            ("repo/out", "../.ssh/id_rsa"),
            ("repo/up", ".."),
            ("repo/circle", "circle"),
            ("repo/nowhere", "nothing"),
            ("other/in_repo", "../repo/a.md"),
            ("plain/key", "../.ssh/id_rsa"),
            ("into_repo", "repo/out"),
            ("own", "notes"),
        ] {
            symlink(target, world.at(link)).unwrap();
        }
        fs::hard_link(world.at(".ssh/id_rsa"), world.at("repo/hard")).unwrap();
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }
}

/// The name of the error, or the text that was read.
fn told(read: Result<Vec<u8>, FileError>) -> String {
    match read {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap().to_owned(),
    }
}

#[test]
fn what_a_project_brings_along_is_its_own_and_no_secret() {
    let world = World::new();
    let files = Files::open(&world.at("repo"), &[]).unwrap();
    for (name, expected) in [
        ("a.md", "a"),
        ("in", "b"),
        ("sub/../a.md", "a"),
        (".env", "Secret"),
        ("env", "Secret"),
        ("out", "Outside"),
        ("up/.ssh/id_rsa", "Outside"),
        ("../notes", "Outside"),
        ("hard", "HardLink"),
        ("sub", "NotAFile"),
        ("circle", "TooManyLinks"),
        ("nowhere", "NotFound"),
    ] {
        assert_eq!(told(files.read_unasked(&world.at("repo").join(name), 100)), expected, "{name}");
    }
    assert_eq!(told(files.read_unasked(&world.at("repo/sub/b.md"), 0)), "", "no more than was asked for");
    let everything = Files::open(Path::new("/"), &[]).unwrap();
    for path in ["/proc/self/environ", "/proc/self/cmdline", "/dev/null"] {
        assert_eq!(told(everything.read_unasked(Path::new(path), 100)), "NotAFile", "{path}");
    }
}

#[test]
fn what_a_person_names_is_not_made_another_by_a_repository() {
    let world = World::new();
    let rows = [
        ("repo/a.md", "a"),
        ("repo/in", "b"),
        ("repo/.env", "secret"),
        ("repo/out", "LeadsOut"),
        ("repo/up/notes", "LeadsOut"),
        ("repo/up/repo/a.md", "a"),
        ("repo/hard", "HardLink"),
        ("other/in_repo", "LeadsOut"),
        ("into_repo", "LeadsOut"),
        ("own", "n"),
        (".ssh/id_rsa", "secret"),
        ("repo/sub", "NotAFile"),
        ("repo/a.md/x", "NotAFile"),
        ("repo/circle", "TooManyLinks"),
        ("repo/nowhere", "NotFound"),
    ];
    for (name, expected) in rows {
        assert_eq!(told(read_named(&world.at(name), Some(&world.at("repo")), 100)), expected, "{name}");
    }
    // The directory that is worked in counts as a repository; elsewhere a link is the person's own.
    let key = world.at("plain/key");
    assert_eq!(told(read_named(&key, Some(&world.at("plain")), 100)), "LeadsOut");
    assert_eq!(told(read_named(&key, None, 100)), "secret");
    assert_eq!(told(read_named(&world.at("notes"), None, 0)), "TooLarge");
    assert!(matches!(resolve_named(Path::new("a"), None), Err(FileError::Relative { .. })));
    let error = resolve_named(&world.at("repo/out"), None).unwrap_err().to_string();
    assert!(error.contains("/repo/out`") && error.contains("/.ssh/id_rsa`"), "{error}");
}

#[test]
fn a_race_gives_no_file_that_was_not_named() {
    let world = World::new();
    let (file, spare) = (world.at("repo/swapped"), world.at("repo/spare"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(&spare, "mine").unwrap();
                fs::rename(&spare, &file).unwrap();
                symlink("../.ssh/id_rsa", &spare).unwrap();
                fs::rename(&spare, &file).unwrap();
            }
        });
        let mut seen = [0; 2];
        for _ in 0..3000 {
            match open_named(&file, Some(&world.at("repo"))) {
                Ok((file, _)) => {
                    assert_ne!(std::io::read_to_string(file).unwrap(), "secret");
                    seen[0] += 1;
                }
                Err(_) => seen[1] += 1,
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(seen.iter().all(|count| *count > 0), "both were there: {seen:?}");
    });
}
