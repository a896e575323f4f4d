//! Files beneath roots on Windows: whatever a path is called there, it stays beneath its root or is refused.
#![cfg(windows)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::windows::fs::{symlink_dir, symlink_file},
    path::{Path, PathBuf},
};

use attache_host::{
    files::{EntryKind, FileError, Files, Place},
    paths, private,
};

/// A root with a file, beside something that must not be reached.
struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Scratch { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(scratch.root().join("src")).unwrap();
        fs::write(scratch.root().join("src").join("Main.rs"), "one\r\ntwo\r\n").unwrap();
        fs::write(scratch.top().join("secret.txt"), "secret").unwrap();
        scratch
    }

    fn top(&self) -> PathBuf {
        paths::canonicalize(self.directory.path()).unwrap()
    }

    fn root(&self) -> PathBuf {
        self.top().join("root")
    }

    fn path(&self, name: &str) -> PathBuf {
        // Not `join`, which would take what looks like another disk for one.
        format!(r"{}\{name}", self.root().display()).into()
    }

    fn files(&self) -> Files {
        Files::open(&self.root(), &[]).unwrap()
    }
}

#[test]
fn files_are_read_written_and_listed() {
    let scratch = Scratch::new();
    let files = scratch.files();
    assert_eq!(files.read(&scratch.path(r"src\Main.rs")).unwrap(), "one\r\ntwo\r\n");
    assert_eq!(files.read_lines(&scratch.path("src/Main.rs"), Some(2), Some(1)).unwrap(), "two\r\n");
    files.write(&scratch.path(r"new\deep\a.txt"), "1\r\n").unwrap();
    files.write(&scratch.path(r"new\deep\a.txt"), "2\n").unwrap();
    assert_eq!(fs::read(scratch.path(r"new\deep\a.txt")).unwrap(), b"2\n");
    let listing = files.list(&scratch.path("new"), 10).unwrap();
    assert_eq!((listing.entries.len(), listing.is_cut), (1, false));
    assert_eq!((listing.entries[0].name.to_str(), listing.entries[0].info.kind), (Some("deep"), EntryKind::Directory));
    // No draft is left behind.
    assert_eq!(fs::read_dir(scratch.path(r"new\deep")).unwrap().count(), 1);
    let listing = files.list(&scratch.root(), 1).unwrap();
    assert_eq!((listing.entries.len(), listing.is_cut), (1, true));
    for number in 0..500 {
        fs::write(scratch.path(&format!(r"new\a file with a name that is not short {number}")), "").unwrap();
    }
    assert_eq!(files.list(&scratch.path("new"), usize::MAX).unwrap().entries.len(), 501);
}

#[test]
fn files_are_looked_at_moved_and_removed() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let (one, two) = (scratch.path("one"), scratch.path(r"in\two"));
    files.write(&one, "text").unwrap();
    let info = files.stat(&one).unwrap();
    assert_eq!((info.kind, info.size, info.links, info.mode), (EntryKind::File, 4, 1, 0o666));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((now - info.modified.0).abs() < 3600, "{info:?}");
    files.rename(&one, &two, &info).unwrap();
    assert!(matches!(files.stat(&one), Err(FileError::NotFound { .. })));
    assert_eq!(files.stat(&two).unwrap().id, info.id);
    files.write(&one, "other").unwrap();
    let other = files.stat(&one).unwrap();
    assert!(matches!(files.rename(&one, &two, &other), Err(FileError::Exists { .. })));
    assert!(matches!(files.rename(&one, &scratch.path("three"), &info), Err(FileError::Replaced { .. })));
    assert!(matches!(files.remove(&one, &info), Err(FileError::Replaced { .. })));
    files.remove(&one, &other).unwrap();
    assert!(!one.exists());
    let directory = files.stat(&scratch.path("in")).unwrap();
    assert!(matches!(files.remove(&scratch.path("in"), &directory), Err(FileError::NotEmpty { .. })));
    files.remove(&two, &files.stat(&two).unwrap()).unwrap();
    files.remove(&scratch.path("in"), &directory).unwrap();
    assert!(!scratch.path("in").exists());
    let root = files.stat(&scratch.root()).unwrap();
    assert!(files.remove(&scratch.root(), &root).is_err());
    assert!(files.are_roots_in_place());
}

#[test]
fn a_file_that_may_only_be_read_is_not_replaced() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let path = scratch.path("kept");
    files.write(&path, "one").unwrap();
    files.set_mode(&path, 0o444).unwrap();
    assert_eq!(files.stat(&path).unwrap().mode, 0o444);
    assert!(matches!(files.write(&path, "two"), Err(FileError::Denied { .. })));
    assert_eq!(files.read(&path).unwrap(), "one");
    files.set_mode(&path, 0o644).unwrap();
    files.write(&path, "two").unwrap();
    assert_eq!(files.read(&path).unwrap(), "two");
}

#[test]
fn names_that_windows_reads_as_something_else_are_refused() {
    let scratch = Scratch::new();
    let files = scratch.files();
    for name in [
        "CON",
        "nul",
        "NUL.txt",
        "com1",
        "LPT9.log",
        "aux.rs",
        "src.",
        "src ",
        r"src.\Main.rs",
        r"src\Main.rs.",
        r"src\Main.rs ",
        r"src\Main.rs:stream",
        r"src\Main.rs::$DATA",
        "src::$INDEX_ALLOCATION",
        "a*",
        "a?b",
        "a|b",
        "CONIN$",
        r"nul\x",
        r"C:\x",
        "...",
    ] {
        let path = scratch.path(name);
        let bad = |result: Result<(), FileError>, what: &str| {
            assert!(matches!(result, Err(FileError::BadName { .. })), "{what} `{}`: {result:?}", path.display());
        };
        bad(files.read(&path).map(drop), "read");
        bad(files.write(&path, "x"), "write");
        bad(files.place(&path).map(drop), "place");
        bad(files.stat(&path).map(drop), "stat");
        bad(files.list(&path, 10).map(drop), "list");
        bad(files.place_of_name(&path).map(drop), "name");
    }
    assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 1, "nothing was made");
    assert_eq!(fs::read(scratch.path(r"src\Main.rs")).unwrap(), b"one\r\ntwo\r\n");
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let top = scratch.top();
    for (path, is_relative) in
        [("src", true), (r"C:src\Main.rs", true), (r"\Windows", true), ("/Windows", true), ("C:", true)]
    {
        let result = files.read(Path::new(path));
        assert_eq!(matches!(result, Err(FileError::Relative { .. })), is_relative, "{path}: {result:?}");
    }
    for path in [
        scratch.path(r"..\secret.txt"),
        scratch.path(r"src\..\..\secret.txt"),
        scratch.path("src/../../secret.txt"),
        top.join("secret.txt"),
        format!(r"\\?\{}\secret.txt", top.display()).into(),
        format!(r"{}\SECRET.TXT", top.display().to_string().to_uppercase()).into(),
    ] {
        let Err(FileError::Outside { path: told }) = files.read(&path) else { panic!("{}", path.display()) };
        assert_eq!(told, top.join("secret.txt"), "{}", path.display());
        assert_eq!(files.clone().allow(told).read(&path).unwrap(), "secret");
        assert!(matches!(files.write(&path, "x"), Err(FileError::Outside { .. })));
    }
    // Nothing is asked of another machine: this answers at once, and would not if it were.
    for path in
        [r"\\attache-test.invalid\share\x", r"//attache-test.invalid/share/x", r"\\?\UNC\attache-test.invalid\share\x"]
    {
        let Err(FileError::Outside { path }) = files.read(Path::new(path)) else { panic!("{path}") };
        assert_eq!(path, Path::new(r"\\attache-test.invalid\share\x"));
    }
    for path in
        [r"\\.\PhysicalDrive0", r"\\.\pipe\x", r"\\?\GLOBALROOT\Device\Null", r"\\.\C:\x", r"\\localhost\pipe:\x"]
    {
        let result = files.read(Path::new(path));
        assert!(matches!(result, Err(FileError::BadName { .. } | FileError::Relative { .. })), "{path}: {result:?}");
    }
}

#[test]
fn a_path_is_told_as_the_file_system_has_it() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let shouted: PathBuf = scratch.path(r"SRC\MAIN.RS").display().to_string().to_uppercase().into();
    let verbatim: PathBuf = format!(r"\\?\{}", scratch.path(r"src\main.rs").display()).into();
    for path in [scratch.path(r"SRC\main.RS"), scratch.path("src/MAIN.rs"), shouted, verbatim] {
        let Place::Inside { root: 0, relative, path: whole } = files.place(&path).unwrap() else { panic!("{path:?}") };
        assert_eq!(relative, Path::new(r"src\Main.rs"));
        assert_eq!(whole, scratch.root().join("src").join("Main.rs"));
        assert_eq!(files.read(&path).unwrap(), "one\r\ntwo\r\n");
    }
    // A root is found however it is written.
    let other: PathBuf = scratch.root().display().to_string().to_uppercase().replace('\\', "/").into();
    let files = Files::open(&other, &[]).unwrap();
    assert_eq!(files.roots().next().unwrap(), scratch.root());
    for path in [scratch.path(r"src\Main.rs"), other.join("src/Main.rs")] {
        assert!(files.place(&path).unwrap().is_inside(), "{}", path.display());
    }
    assert!(matches!(Files::open(Path::new("relative"), &[]), Err(FileError::Relative { .. })));
    assert!(matches!(Files::open(&scratch.path(r"src\Main.rs"), &[]), Err(FileError::NotADirectory { .. })));
    assert!(matches!(Files::open(Path::new(r"\\.\C:\"), &[]), Err(FileError::BadName { .. })));
}

#[test]
fn short_names_are_told_in_full() {
    let scratch = Scratch::new();
    let files = scratch.files();
    fs::write(scratch.path(".environment file"), "key").unwrap();
    // What the short name is depends on the file system, which may have none at all.
    for short in ["ENVIRO~1", "EN~1"] {
        match files.place(&scratch.path(short)) {
            Ok(place) if scratch.path(short).exists() => {
                assert!(place.path().ends_with(".environment file"), "{place:?}")
            }
            Ok(place) => assert!(place.path().ends_with(short), "{place:?}"),
            Err(error) => assert!(matches!(error, FileError::Denied { .. }), "{error}"),
        }
    }
}

#[test]
fn a_file_with_two_names_is_asked_about() {
    let scratch = Scratch::new();
    let files = scratch.files();
    fs::hard_link(scratch.top().join("secret.txt"), scratch.path("linked")).unwrap();
    assert_eq!(files.stat(&scratch.path("linked")).unwrap().links, 2);
    assert!(matches!(files.read(&scratch.path("linked")), Err(FileError::HardLink { .. })));
    assert!(matches!(files.write(&scratch.path("linked"), "x"), Err(FileError::HardLink { .. })));
    assert_eq!(fs::read(scratch.top().join("secret.txt")).unwrap(), b"secret");
}

#[test]
fn links_do_not_lead_out() {
    let scratch = Scratch::new();
    let files = scratch.files();
    // Making one takes a privilege, and what only looks like Windows may say that it did.
    let is_link = |name: &str| scratch.path(name).symlink_metadata().is_ok_and(|found| found.is_symlink());
    let made = [
        symlink_file(scratch.top().join("secret.txt"), scratch.path("file")).is_ok() && is_link("file"),
        symlink_dir(scratch.top(), scratch.path("up")).is_ok() && is_link("up"),
        symlink_dir("..", scratch.path("relative")).is_ok() && is_link("relative"),
        junction(&scratch.top(), &scratch.path("junction")) && is_link("junction"),
        symlink_dir("src", scratch.path("inside")).is_ok() && is_link("inside"),
    ];
    for (is_made, name) in
        made.into_iter().zip(["file", r"up\secret.txt", r"relative\secret.txt", r"junction\secret.txt"])
    {
        if !is_made {
            eprintln!("`{name}` could not be made here, so nothing is tested with it");
            continue;
        }
        let Err(FileError::Outside { path }) = files.read(&scratch.path(name)) else { panic!("{name}") };
        assert_eq!(path, scratch.top().join("secret.txt"));
        assert!(matches!(files.write(&scratch.path(name), "x"), Err(FileError::Outside { .. })), "{name}");
        assert!(matches!(files.clone().without_links().read(&scratch.path(name)), Err(FileError::Changed { .. })));
    }
    if made[3] {
        let link = scratch.path("junction");
        let info = files.stat_name(&link).unwrap();
        assert_eq!(info.kind, EntryKind::Link);
        assert_eq!(files.read_link(&link).unwrap(), scratch.top());
        files.remove(&link, &info).unwrap();
        assert!(scratch.top().join("secret.txt").exists(), "the link alone is removed");
    }
    if made[4] {
        assert_eq!(files.read(&scratch.path(r"inside\Main.rs")).unwrap(), "one\r\ntwo\r\n");
    }
}

/// Makes a junction, with a command of the system's: the standard library cannot yet.
fn junction(target: &Path, link: &Path) -> bool {
    let made = std::process::Command::new("cmd").args(["/c", "mklink", "/J"]).args([link, target]).output();
    made.is_ok_and(|output| output.status.success())
}

#[test]
fn a_file_that_somebody_reads_is_replaced_or_left_as_it_is() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let path = scratch.path("open");
    files.write(&path, "one").unwrap();
    let reader = fs::File::open(&path).unwrap();
    let result = files.write(&path, "two");
    drop(reader);
    // Before Windows 10 1809, and on what only looks like Windows, what is open cannot be replaced.
    assert!(matches!(result, Ok(()) | Err(FileError::Denied { .. })), "{result:?}");
    assert_eq!(files.read(&path).unwrap(), if result.is_ok() { "two" } else { "one" });
    assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 2, "no draft is left behind");
}

#[test]
fn a_private_file_stays_private() {
    let scratch = Scratch::new();
    let files = scratch.files();
    let path = scratch.path("key");
    drop(private::create_new(&path).unwrap());
    files.write(&path, "one").unwrap();
    assert!(private::is_private(&path).unwrap());
    assert_eq!(files.read(&path).unwrap(), "one");
}

#[test]
fn what_is_read_unasked_is_not_secret_whatever_it_is_called() {
    let scratch = Scratch::new();
    let files = scratch.files();
    fs::write(scratch.path(".env"), "KEY=1").unwrap();
    for name in [".env", ".ENV"] {
        let result = files.read_unasked(&scratch.path(name), 100);
        assert!(matches!(result, Err(FileError::Secret { .. })), "{name}: {result:?}");
    }
    for name in [".env.", ".env ", ".env::$DATA"] {
        let result = files.read_unasked(&scratch.path(name), 100);
        assert!(matches!(result, Err(FileError::BadName { .. })), "{name}: {result:?}");
    }
    assert_eq!(files.read_unasked(&scratch.path(r"src\Main.rs"), 3).unwrap(), b"one");
    let named = attache_host::files::read_named(&scratch.top().join("secret.txt"), Some(&scratch.root()), 100).unwrap();
    assert_eq!(named, b"secret");
}
