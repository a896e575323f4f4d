//! Files beneath the roots: which paths lead where, what is read, and what a write leaves behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use attache::model::error::ErrorObject;
use attache_host::files::{FileError, Files, Place};
use tempfile::TempDir;

/// A directory with a project, something beside it, and a link to the project.
struct World {
    dir: TempDir,
    files: Files,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["proj/src", "proj/deep/er", "proj-evil", "other/sub"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("proj/src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(at("proj-evil/secret"), "secret").unwrap();
        fs::write(at("other/sub/note"), "note").unwrap();
        fs::write(at("secret"), "secret").unwrap();
        symlink(at("proj"), at("linked")).unwrap();
        let files = Files::open(&at("linked"), &[at("other")]).unwrap();
        Self { dir, files }
    }

    fn at(&self, path: &str) -> PathBuf {
        // Not `join`, which drops everything before a `/`.
        PathBuf::from(format!("{}/{path}", self.dir.path().display()))
    }

    fn read(&self, path: &str) -> Result<String, FileError> {
        self.files.read(&self.at(path))
    }

    fn write(&self, path: &str, content: &str) -> Result<(), FileError> {
        self.files.write(&self.at(path), content)
    }

    /// The error's name and the path in it, from the world's directory.
    fn describe<T>(&self, result: Result<T, FileError>) -> String {
        let error = result.map(drop).unwrap_err();
        let debug = format!("{error:?}").replace(&format!("{}/", self.dir.path().display()), "");
        debug.replace(" { path: \"", " ").replace("\" }", "")
    }

    fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.at(path))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn paths_lead_where_the_table_says() {
    let world = World::new();
    let at = |path: &str| world.at(path);
    symlink("../src/main.rs", at("proj/deep/inside")).unwrap();
    symlink(at("linked/src"), at("proj/absolute")).unwrap();
    symlink(at("other/sub"), at("proj/to-other")).unwrap();
    symlink("../secret", at("proj/out")).unwrap();
    symlink("/etc", at("proj/etc")).unwrap();
    symlink("../nowhere/x", at("proj/dangling-out")).unwrap();
    symlink("src/new.rs", at("proj/dangling-in")).unwrap();
    symlink("loop", at("proj/loop")).unwrap();
    symlink("/proc/self/root", at("proj/magic")).unwrap();
    symlink("../proj/src", at("proj/round")).unwrap();
    fs::hard_link(at("secret"), at("proj/hard")).unwrap();
    assert!(Command::new("mkfifo").arg(at("proj/fifo")).status().unwrap().success());

    for (path, expected) in [
        ("proj/src/main.rs", "fn main() {}\n"),
        ("linked/src/main.rs", "fn main() {}\n"),
        ("linked//src/./main.rs", "fn main() {}\n"),
        ("linked/deep/../src/main.rs", "fn main() {}\n"),
        ("linked/../proj/src/main.rs", "fn main() {}\n"),
        ("proj-evil/../linked/src/main.rs", "fn main() {}\n"),
        ("proj/deep/inside", "fn main() {}\n"),
        ("proj/absolute/main.rs", "fn main() {}\n"),
        ("proj/round/main.rs", "fn main() {}\n"),
        ("proj/to-other/note", "note"),
        ("other/sub/note", "note"),
        ("linked/../other/sub/note", "note"),
    ] {
        assert_eq!(world.read(path).unwrap(), expected, "{path}");
    }
    for (path, expected) in [
        ("linked/none", "NotFound proj/none"),
        ("linked/none/none", "NotFound proj/none/none"),
        ("linked/none/../src/main.rs", "NotFound proj/none"),
        ("proj/dangling-in", "NotFound proj/src/new.rs"),
        ("linked/src", "NotAFile proj/src"),
        ("linked", "NotAFile proj"),
        ("linked/src/main.rs/x", "NotAFile proj/src/main.rs"),
        ("linked/src/main.rs/..", "NotAFile proj/src/main.rs"),
        ("linked/fifo", "NotAFile proj/fifo"),
        ("linked/hard", "HardLink proj/hard"),
        ("linked/../secret", "Outside secret"),
        ("linked/out", "Outside secret"),
        ("linked/dangling-out", "Outside nowhere/x"),
        ("linked/etc/passwd", "Outside /etc/passwd"),
        ("proj-evil/secret", "Outside proj-evil/secret"),
        ("linked/../proj-evil/secret", "Outside proj-evil/secret"),
        ("linked-evil/secret", "Outside linked-evil/secret"),
        ("linked/../../../../../../../../etc/passwd", "Outside /etc/passwd"),
        ("../../../../../../dev/null", "Outside /dev/null"),
    ] {
        assert_eq!(world.describe(world.read(path)), expected, "{path}");
    }
    let long_way = world.describe(world.read("linked/loop"));
    assert!(long_way.starts_with("TooManyLinks"), "{long_way}");
    let magic = world.describe(world.read("linked/magic/etc/passwd"));
    assert_eq!(magic, "Outside /etc/passwd");
    // The link's text leads to the file by another way, which is inside after all.
    let own = format!("linked/magic{}/proj/src/main.rs", world.dir.path().display());
    assert_eq!(world.read(&own).unwrap(), "fn main() {}\n");

    let relative = world.files.read(Path::new("src/main.rs")).unwrap_err();
    assert!(matches!(relative, FileError::Relative { .. }));
    assert_eq!(world.read("secret\0").unwrap_err().to_peer().code, ErrorObject::INTERNAL_ERROR);
    assert!(matches!(world.read(&"x/".repeat(5000)), Err(FileError::TooLong)));
    assert!(world.read(&format!("linked/{}", "x".repeat(300))).is_err());
}

#[test]
fn a_place_is_told_for_what_does_not_exist_yet() {
    let world = World::new();
    let inside =
        |root, relative: &str, path: &str| Place::Inside { root, relative: relative.into(), path: world.at(path) };
    let check = |path: &str, place: Place| assert_eq!(world.files.place(&world.at(path)).unwrap(), place);
    check("linked", Place::Inside { root: 0, relative: PathBuf::new(), path: world.at("proj").components().collect() });
    check("linked/a/b", inside(0, "a/b", "proj/a/b"));
    check("proj/a/b", inside(0, "a/b", "proj/a/b"));
    check("linked/../other/new", inside(1, "new", "other/new"));
    check("new", Place::Outside { path: world.at("new") });
    assert_eq!(world.files.roots().collect::<Vec<_>>(), [world.at("proj"), world.at("other")]);
    assert!(!world.files.place(Path::new("/etc/passwd")).unwrap().is_inside());
    assert_eq!(world.files.place(Path::new("/etc/../etc/x")).unwrap().path(), Path::new("/etc/x"));
}

#[test]
fn a_root_within_a_root_and_the_whole_disk_are_roots_too() {
    let world = World::new();
    let nested = Files::open(&world.at("proj/src"), &[world.at("proj")]).unwrap();
    let read = |files: &Files, path: &str| files.read(&world.at(path));
    assert_eq!(read(&nested, "proj/src/main.rs").unwrap(), "fn main() {}\n");
    assert_eq!(read(&nested, "proj/src/../src/main.rs").unwrap(), "fn main() {}\n");
    assert!(matches!(nested.place(&world.at("proj/src/../x")).unwrap(), Place::Inside { root: 1, .. }));
    let all = Files::open(Path::new("/"), &[]).unwrap();
    assert_eq!(read(&all, "linked/src/main.rs").unwrap(), "fn main() {}\n");
    assert_eq!(read(&all, "linked/../secret").unwrap(), "secret");
    assert!(matches!(all.place(Path::new("/../x")).unwrap(), Place::Inside { root: 0, .. }));
}

#[test]
fn a_root_has_to_be_an_absolute_directory() {
    let world = World::new();
    let open = |path: PathBuf| world.describe(Files::open(&path, &[]));
    assert_eq!(open("proj".into()), "Relative proj");
    assert_eq!(open(world.at("none")), "NotFound none");
    assert_eq!(open(world.at("secret")), "NotADirectory secret");
}

#[test]
fn a_root_stays_the_directory_that_was_opened() {
    let world = World::new();
    fs::rename(world.at("proj"), world.at("moved")).unwrap();
    symlink(world.at("proj-evil"), world.at("proj")).unwrap();
    assert_eq!(world.read("linked/src/main.rs").unwrap(), "fn main() {}\n");
    assert_eq!(world.describe(world.read("linked/secret")), "NotFound proj/secret");
}

#[test]
fn what_the_user_allowed_is_served_and_nothing_else() {
    let world = World::new();
    symlink(world.at("secret"), world.at("proj/link")).unwrap();
    let link = world.at("linked/link");
    let secret = world.at("secret");
    let allowed = world.files.clone().allow(&secret);
    assert_eq!(allowed.read(&link).unwrap(), "secret");
    allowed.write(&link, "changed").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "changed");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    // The link leads elsewhere by the time of the answer: the question is asked anew.
    fs::remove_file(&link).unwrap();
    symlink(world.at("proj-evil/secret"), &link).unwrap();
    assert_eq!(world.describe(allowed.read(&link)), "Outside proj-evil/secret");
    assert_eq!(world.describe(allowed.write(&link, "changed")), "Outside proj-evil/secret");

    let check_refused = |path: &Path| {
        let allowed = world.files.clone().allow(path);
        assert!(matches!(allowed.read(path), Err(FileError::NotAFile { .. })));
        assert!(matches!(allowed.write(path, ""), Err(FileError::NotAFile { .. })));
    };
    assert!(Command::new("mkfifo").arg(world.at("fifo")).status().unwrap().success());
    check_refused(&world.at("fifo"));
    check_refused(Path::new("/dev/null"));
    check_refused(Path::new("/etc"));
}

#[test]
fn a_file_with_several_names_is_asked_for() {
    let world = World::new();
    fs::hard_link(world.at("secret"), world.at("proj/hard")).unwrap();
    assert_eq!(world.describe(world.write("linked/hard", "x")), "HardLink proj/hard");
    let path = world.at("proj/hard");
    let allowed = world.files.clone().allow(&path);
    assert_eq!(allowed.read(&path).unwrap(), "secret");
    allowed.write(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::read_to_string(world.at("secret")).unwrap(), "secret");
}

#[test]
fn a_write_creates_what_is_missing_with_the_usual_modes() {
    let world = World::new();
    world.write("linked/a/b/c.txt", "one\r\ntwo").unwrap();
    assert_eq!(fs::read(world.at("proj/a/b/c.txt")).unwrap(), b"one\r\ntwo");
    fs::write(world.at("usual"), "").unwrap();
    fs::create_dir(world.at("usual-dir")).unwrap();
    let mode = |path: &str| fs::metadata(world.at(path)).unwrap().mode();
    assert_eq!(mode("proj/a/b/c.txt"), mode("usual"));
    assert_eq!(mode("proj/a/b"), mode("usual-dir"));
    assert_eq!(world.names("proj/a/b"), ["c.txt"]);

    for (path, expected) in [
        ("linked", "NotAFile proj"),
        ("linked/src", "NotAFile proj/src"),
        ("linked/src/main.rs/x", "NotAFile proj/src/main.rs"),
        ("linked/../new", "Outside new"),
        ("proj-evil/new", "Outside proj-evil/new"),
    ] {
        assert_eq!(world.describe(world.write(path, "x")), expected, "{path}");
    }
    assert_eq!(world.names("proj-evil"), ["secret"]);
}

#[test]
fn a_write_replaces_the_file_in_one_step_and_keeps_its_mode() {
    let world = World::new();
    let path = world.at("proj/src/main.rs");
    for mode in [0o755, 0o600, 0o4751] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        world.write("linked/src/main.rs", "new").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(after.mode() & 0o7777, mode & 0o777);
        assert_ne!(after.ino(), before);
    }
    assert_eq!(world.names("proj/src"), ["main.rs"]);
}

#[test]
fn a_write_goes_through_links_that_stay_inside() {
    let world = World::new();
    symlink("src/main.rs", world.at("proj/link")).unwrap();
    symlink("deep/new/file", world.at("proj/dangling")).unwrap();
    symlink("../secret", world.at("proj/out")).unwrap();
    symlink("../created", world.at("proj/dangling-out")).unwrap();
    world.write("linked/link", "through").unwrap();
    world.write("linked/dangling", "made").unwrap();
    assert_eq!(fs::read_to_string(world.at("proj/src/main.rs")).unwrap(), "through");
    assert_eq!(fs::read_to_string(world.at("proj/deep/new/file")).unwrap(), "made");
    assert!(fs::symlink_metadata(world.at("proj/link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(world.at("proj/dangling")).unwrap().is_symlink());
    assert_eq!(world.describe(world.write("linked/out", "x")), "Outside secret");
    assert_eq!(world.describe(world.write("linked/dangling-out", "x")), "Outside created");
    assert!(!world.at("created").exists());
}

#[test]
fn a_missing_file_is_error_32002_and_answers_repeat_nothing() {
    let world = World::new();
    let missing = world.read("linked/missing-name").unwrap_err().to_peer();
    assert_eq!(missing.code, -32002);
    fs::write(world.at("proj/binary"), b"secret-bytes\xff").unwrap();
    let outside = world.read("proj-evil/secret").unwrap_err().to_peer();
    assert_eq!(outside.code, ErrorObject::PERMISSION_DENIED);
    let binary = world.read("proj/binary").unwrap_err().to_peer();
    for answer in [missing, outside, binary] {
        let shown = format!("{answer:?}");
        assert!(!["missing-name", "proj", "secret"].iter().any(|word| shown.contains(word)), "{shown}");
    }
}

#[test]
fn a_large_file_is_read_in_parts() {
    let world = World::new();
    let files = world.files.clone().read_limit(10);
    fs::write(world.at("proj/long"), "12345678\n".repeat(100)).unwrap();
    let path = world.at("linked/long");
    let error = files.read(&path).unwrap_err();
    assert!(error.to_string().contains("hint: use `line` and `limit`"), "{error}");
    assert!(error.to_peer().message.contains("`line` and `limit`"));
    assert_eq!(files.read_lines(&path, Some(100), Some(7)).unwrap(), "12345678\n");
}

/// Runs itself again, in a process that may not write much and on a disk that is small.
#[test]
fn a_full_disk_leaves_the_old_file_as_it_was() {
    if let Ok(dir) = std::env::var("ATTACHE_TEST_FULL_DISK") {
        let dir = Path::new(&dir);
        fs::write(dir.join("file"), "old").unwrap();
        let files = Files::open(dir, &[]).unwrap();
        let error = files.write(&dir.join("file"), &"x".repeat(1 << 20)).unwrap_err();
        assert!(matches!(error, FileError::NoSpace { .. }), "{error}");
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "old");
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "the draft is left behind");
        return;
    }
    let run = |script: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(std::env::current_exe().unwrap()).arg(dir.path());
        command.args(["--exact", "a_full_disk_leaves_the_old_file_as_it_was"]);
        command.env("ATTACHE_TEST_FULL_DISK", dir.path()).output().unwrap()
    };
    // Stands for a full disk everywhere: a process that may not write files of more than some blocks.
    let limited = run(r#"trap "" XFSZ; ulimit -f 100; program=$1; shift 2; exec "$program" "$@""#);
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stdout));
    // A disk that is really full, where we may mount one.
    let small = "mount -t tmpfs -o size=64k tmpfs \"$2\" || exit 77; program=$1; shift 2; exec \"$program\" \"$@\"";
    let full = run(&format!(
        "unshare -m sh -c '{small}' sh \"$@\" || {{ code=$?; test $code -eq 1 && exit 77; exit $code; }}"
    ));
    let code = full.status.code();
    assert!(matches!(code, Some(0 | 77 | 127)), "{code:?} {}", String::from_utf8_lossy(&full.stdout));
    for output in [&limited, &full].into_iter().filter(|output| output.status.success()) {
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
}
