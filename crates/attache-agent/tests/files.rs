//! The tools for files, on a real file system: what the model is told, what people are shown, and what is on the disk.
#![cfg(any(target_os = "linux", windows))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt as _;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use attache::model::diff::Diff;
use attache::model::tool::{ToolCallContent, ToolKind};
use attache_agent::model::Part;
use attache_agent::tools::files::{self, FileWork};
use attache_agent::tools::{Outcome, Prepared, Refusal};
use attache_agent::workspace::Workspace;
use attache_host::permission::Action;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A project, and something beside it.
struct World {
    // First to go: it has the project open, and on Windows the directory goes only when nobody has.
    workspace: Workspace,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proj")).unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret"), "secret\n").unwrap();
        let workspace = Workspace::open(&dir.path().join("proj"), &[], None).unwrap();
        let world = World { workspace, dir };
        for (path, content) in files {
            world.put(path, content);
        }
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("proj").join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.at(path)).unwrap()
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    async fn prepare(&self, tool: &str, arguments: Value) -> Result<Prepared<FileWork>, Refusal> {
        files::prepare(&self.workspace, tool, &arguments).await.unwrap()
    }

    async fn outcome(&self, tool: &str, arguments: Value) -> Outcome {
        match self.prepare(tool, arguments).await {
            Ok(prepared) => files::perform(&self.workspace, prepared.work).await,
            Err(Refusal(reason)) => Outcome::failed(reason),
        }
    }

    /// What the model is told, with `!` before a failure, and without the directory of this run.
    async fn call(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.outcome(tool, arguments).await;
        let text: Vec<&str> = outcome
            .parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.as_str(),
                Part::Media { mime, .. } => mime.as_str(),
            })
            .collect();
        let text = text.join("\n").replace(self.dir.path().to_str().unwrap(), "/TOP");
        // As if everything were written with slashes.
        let text = if cfg!(windows) { text.replace('\\', "/") } else { text };
        format!("{}{text}", if outcome.is_error { "!" } else { "" })
    }

    async fn read(&self, path: &str) -> String {
        self.call("read_file", json!({ "path": path })).await
    }
}

#[tokio::test]
async fn a_file_is_read_by_lines() {
    let world =
        World::with(&[("a.txt", "one\ntwo\nthree\n"), ("win.txt", "a\r\nb"), ("empty", ""), ("src/main.rs", "x")]);
    world.put("utf16", b"\xff\xfeh\0i\0");
    world.put("bom", "\u{feff}hi\n");
    world.put("long", "x".repeat(5_000));
    world.put("many", "line\n".repeat(3_000));
    for (arguments, expected) in [
        (json!({"path": "a.txt"}), "`a.txt`, lines 1-3 (of 3):\n1\tone\n2\ttwo\n3\tthree\n"),
        (
            json!({"path": "./src/../a.txt", "line": 2, "limit": 1}),
            "`a.txt`, lines 2-2 (of 3, read on with line 3):\n2\ttwo\n",
        ),
        (json!({"path": "a.txt", "line": "3"}), "`a.txt`, lines 3-3 (of 3):\n3\tthree\n"),
        (json!({"path": "a.txt", "line": 4}), "!`a.txt` has only 3 lines"),
        (
            json!({"path": "win.txt"}),
            "`win.txt`, lines 1-2 (of 2, lines end with CRLF, no newline at the end):\n1\ta\n2\tb\n",
        ),
        (json!({"path": "empty"}), "`empty` is empty"),
        (json!({"path": "utf16"}), "`utf16`, lines 1-1 (of 1, no newline at the end):\n1\thi\n"),
        (json!({"path": "bom"}), "`bom`, lines 1-1 (of 1):\n1\thi\n"),
        (json!({"path": "src"}), "!`src` is a directory\nhint: use list_directory"),
        (json!({"path": "src/mian.rs"}), "!there is no file `src/mian.rs`\nhint: there is `main.rs` in that directory"),
        (json!({"path": "b.txt"}), "!there is no file `b.txt`\nhint: there is `a.txt`, `win.txt` in that directory"),
        (json!({"path": "none/none"}), "!there is no file `none/none`"),
        (json!({"path": "a.txt/x"}), "!`/TOP/proj/a.txt` is not a regular file"),
        (json!({"path": ""}), "!the path is empty or has a zero byte in it"),
        (json!({"path": "a\0b"}), "!the path is empty or has a zero byte in it"),
        (json!({}), "!the argument `path` is missing"),
        (json!("a.txt"), "!the arguments have to be a JSON object"),
    ] {
        assert_eq!(world.call("read_file", arguments.clone()).await, expected, "{arguments}");
    }
    let long = world.read("long").await;
    assert!(long.len() < 2_200 && long.ends_with(" […3000 more bytes in this line]\n"), "{long}");
    let many = world.read("many").await;
    assert!(many.starts_with("`many`, lines 1-2000 (of 3000, read on with line 2001):\n"));
    assert!(files::prepare(&world.workspace, "run_command", &json!({})).await.is_none());
}

#[tokio::test]
async fn images_are_shown_and_other_binary_files_are_refused() {
    let world = World::new();
    world.put("a.png", b"\x89PNG\r\n\x1a\n....");
    world.put("photo", b"\xff\xd8\xff\xe0....");
    world.put("a.gif", b"GIF89a....");
    world.put("a.webp", b"RIFF....WEBPVP8 ");
    world.put("program", b"\x7fELF\0\0\0");
    world.put("latin1.txt", b"caf\xe9\n");
    let mut large = b"\x89PNG".to_vec();
    large.resize(6 << 20, 1);
    world.put("large.png", large);
    for (path, expected) in [
        ("a.png", "`a.png`, an image (image/png):\nimage/png"),
        ("photo", "`photo`, an image (image/jpeg):\nimage/jpeg"),
        ("a.gif", "`a.gif`, an image (image/gif):\nimage/gif"),
        ("a.webp", "`a.webp`, an image (image/webp):\nimage/webp"),
        ("large.png", "!the image `large.png` has more than 5 MiB"),
        ("program", "!`program` is a binary file, not text"),
        ("latin1.txt", "`latin1.txt`, lines 1-1 (of 1, read as Latin-1):\n1\tcafé\n"),
    ] {
        assert_eq!(world.read(path).await, expected);
    }
    let outcome = world.outcome("read_file", json!({"path": "a.gif"})).await;
    assert_eq!(outcome.parts[1], Part::Media { mime: "image/gif".into(), data: "R0lGODlhLi4uLg==".into() });
}

// On Unix: it makes FIFOs and sparse files.
#[cfg(unix)]
#[tokio::test]
async fn nothing_that_is_no_file_is_waited_for_and_large_files_cost_no_memory() {
    let world = World::new();
    let mkfifo = std::process::Command::new("mkfifo").arg(world.at("fifo")).status().unwrap();
    assert!(mkfifo.success());
    symlink("loop", world.at("loop")).unwrap();
    // Sparse: 8 GiB that take no place, of zeros and of text.
    fs::File::create(world.at("zeros")).unwrap().set_len(8 << 30).unwrap();
    let text = fs::File::create(world.at("huge.txt")).unwrap();
    std::io::Write::write_all(&mut &text, "first\nsecond\n".repeat(2_000).as_bytes()).unwrap();
    text.set_len(8 << 30).unwrap();
    let fifo = "!`fifo` is a FIFO, a socket or a device, not a file";
    assert_eq!(world.read("fifo").await, fifo);
    assert_eq!(world.call("write_file", json!({"path": "fifo", "content": ""})).await, fifo);
    assert_eq!(
        world.call("search_files", json!({"path": "fifo", "pattern": "x"})).await,
        "!`fifo` is neither a file nor a directory"
    );
    assert!(world.read("loop").await.contains("too many symbolic links"));
    assert_eq!(world.read("zeros").await, "!`zeros` is a binary file, not text");
    let lines = world.call("read_file", json!({"path": "huge.txt", "line": 2, "limit": 1})).await;
    assert_eq!(lines, "`huge.txt`, lines 2-2 (read on with line 3):\n2\tsecond\n");
    assert!(
        world
            .call("edit_file", json!({"path": "huge.txt", "old_text": "first", "new_text": "x"}))
            .await
            .contains("has more than 4 MiB")
    );
    let found = world.call("search_files", json!({"pattern": "second", "glob": "{zeros,fifo}"})).await;
    assert_eq!(found, "nothing found in `.`");
}

#[tokio::test]
async fn a_new_file_is_created_with_its_directories_and_shown_as_a_diff() {
    let world = World::new();
    let prepared = world.prepare("write_file", json!({"path": "a/b/new.txt", "content": "one\ntwo\n"})).await.unwrap();
    let path = world.at("a").join("b").join("new.txt");
    let path = path.to_str().unwrap();
    let title = prepared.title.replace(std::path::MAIN_SEPARATOR, "/");
    assert_eq!((title.as_str(), &prepared.kind), ("Create `a/b/new.txt`", &ToolKind::Edit));
    assert_eq!(prepared.content, [ToolCallContent::Diff(Diff::text(path, None, "one\ntwo\n").into())]);
    assert_eq!(prepared.actions, [Action::Files { kind: ToolKind::Edit, paths: vec![path.into()] }]);
    assert!(!world.at("a").exists(), "nothing is done before it is allowed");
    let outcome = files::perform(&world.workspace, prepared.work).await;
    let name = Path::new("a").join("b").join("new.txt");
    assert_eq!(outcome, Outcome::done(format!("`{}` is created with 2 lines", name.display())));
    assert_eq!(world.text("a/b/new.txt"), "one\ntwo\n");
    // What the model has written it knows.
    let edit = json!({"path": "a/b/new.txt", "old_text": "two", "new_text": "2"});
    assert_eq!(world.call("edit_file", edit).await, "`a/b/new.txt` is edited: replaced line 2");
    assert_eq!(world.text("a/b/new.txt"), "one\n2\n");
}

#[tokio::test]
async fn changes_keep_encoding_line_ends_and_mode() {
    let world = World::new();
    let edit = |path: &str| json!({"path": path, "old_text": "b", "new_text": "é\nc"});
    let write = |path: &str| json!({"path": path, "content": "x\ny\n"});
    for (name, before, edited, written) in [
        ("plain", &b"a\nb"[..], &b"a\n\xc3\xa9\nc"[..], &b"x\ny\n"[..]),
        ("crlf", b"a\r\nb\r\n", b"a\r\n\xc3\xa9\r\nc\r\n", b"x\r\ny\r\n"),
        ("bom", b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\n\xc3\xa9\nc\n", b"\xef\xbb\xbfx\ny\n"),
        ("bom-crlf", b"\xef\xbb\xbfa\r\nb", b"\xef\xbb\xbfa\r\n\xc3\xa9\r\nc", b"\xef\xbb\xbfx\r\ny\r\n"),
        ("utf16", b"\xff\xfea\0\n\0b\0", b"\xff\xfea\0\n\0\xe9\0\n\0c\0", b"\xff\xfex\0\n\0y\0\n\0"),
    ] {
        world.put(name, before);
        #[cfg(unix)]
        fs::set_permissions(world.at(name), fs::Permissions::from_mode(0o751)).unwrap();
        world.read(name).await;
        assert_eq!(world.call("edit_file", edit(name)).await, format!("`{name}` is edited: replaced line 2"));
        assert_eq!(world.bytes(name), edited, "{name}");
        assert_eq!(world.call("write_file", write(name)).await, format!("`{name}` is written"));
        assert_eq!(world.bytes(name), written, "{name}");
        #[cfg(unix)]
        assert_eq!(fs::metadata(world.at(name)).unwrap().permissions().mode() & 0o777, 0o751);
    }
}

#[tokio::test]
async fn a_file_has_to_be_read_and_unchanged_to_be_changed() {
    let world = World::with(&[("a", "one\n")]);
    let edit = || json!({"path": "a", "old_text": "one", "new_text": "1"});
    let write = || json!({"path": "a", "content": "1\n"});
    let unread = "!`a` exists and has not been read in this session: read it before changing it";
    assert_eq!(world.call("edit_file", edit()).await, unread);
    assert_eq!(world.call("write_file", write()).await, unread);
    world.read("a").await;
    world.put("a", "one\nof somebody else\n");
    let changed = "!`a` has changed since it was read: read it again, then make the change";
    assert_eq!(world.call("edit_file", edit()).await, changed);
    assert_eq!(world.call("write_file", write()).await, changed);
    world.read("a").await;

    // While the person is asked.
    for (tool, arguments) in [("edit_file", edit()), ("write_file", write())] {
        let prepared = world.prepare(tool, arguments).await.unwrap();
        world.put("a", format!("one\nchanged before {tool}\n"));
        let outcome = files::perform(&world.workspace, prepared.work).await;
        assert_eq!(outcome, Outcome::failed(&changed[1..]));
        world.read("a").await;
    }
    let prepared = world.prepare("edit_file", edit()).await.unwrap();
    fs::remove_file(world.at("a")).unwrap();
    assert_eq!(
        files::perform(&world.workspace, prepared.work).await,
        Outcome::failed("`a` has been removed meanwhile")
    );
    let prepared = world.prepare("write_file", json!({"path": "b", "content": "new"})).await.unwrap();
    world.put("b", "theirs");
    assert!(files::perform(&world.workspace, prepared.work).await.is_error);
    assert_eq!(world.text("b"), "theirs");
    let nothing = json!({"path": "c", "old_text": "x", "new_text": "y"});
    assert_eq!(world.call("edit_file", nothing).await, "!there is no file `c`\nhint: use write_file to create it");
}

#[tokio::test]
async fn what_was_not_shown_is_not_overwritten() {
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(9_000));
    let world = World::with(&[("long.json", &long), ("a", "one\ntwo\nthree\n")]);
    let part = |path: &str| {
        format!("!only a part of `{path}` has been read: read all of it before writing it anew, or use edit_file")
    };
    // A line that was cut.
    assert!(world.read("long.json").await.contains("more bytes in this line]"));
    let write = json!({"path": "long.json", "content": "{}"});
    assert_eq!(world.call("write_file", write).await, part("long.json"));
    let edit = json!({"path": "long.json", "old_text": "{\"a\"", "new_text": "{\"b\""});
    assert_eq!(world.call("edit_file", edit).await, "`long.json` is edited: replaced line 1");
    assert_eq!(world.text("long.json"), long.replace("\"a\"", "\"b\""));
    // Lines that were left out; all of them together are the whole.
    world.call("read_file", json!({"path": "a", "line": 1, "limit": 1})).await;
    let write = || json!({"path": "a", "content": "1\n"});
    assert_eq!(world.call("write_file", write()).await, part("a"));
    world.call("read_file", json!({"path": "a", "line": 2})).await;
    assert_eq!(world.call("write_file", write()).await, "`a` is written");
}

#[tokio::test]
async fn an_edit_points_at_the_first_line_that_it_changes() {
    let world = World::with(&[("a", "one\ntwo\nthree\n")]);
    world.read("a").await;
    let edit = json!({"path": "a", "old_text": "two\nthree", "new_text": "two\n3"});
    let prepared = world.prepare("edit_file", edit).await.unwrap();
    assert_eq!(prepared.locations[0].line, Some(3));
    let ToolCallContent::Diff(diff) = &prepared.content[0] else { panic!() };
    let path = world.at("a");
    assert_eq!(**diff, Diff::text(path.to_str().unwrap(), Some("one\ntwo\nthree\n".into()), "one\ntwo\n3\n"));
}

// On Unix: it makes links.
#[cfg(unix)]
#[tokio::test]
async fn what_is_outside_is_named_and_only_touched_when_it_is_performed() {
    let world = World::new();
    symlink(world.dir.path().join("outside"), world.at("link")).unwrap();
    let secret = world.dir.path().join("outside/secret");
    let named = |kind: ToolKind, path: &Path| vec![Action::Files { kind, paths: vec![path.to_str().unwrap().into()] }];
    let prepared = world.prepare("read_file", json!({"path": "link/secret"})).await.unwrap();
    assert_eq!(prepared.actions, named(ToolKind::Read, &secret), "the link is followed before it is asked");
    let outcome = files::perform(&world.workspace, prepared.work).await;
    assert!(!outcome.is_error);
    let edit = json!({"path": "../outside/secret", "old_text": "secret", "new_text": "known"});
    let prepared = world.prepare("edit_file", edit).await.unwrap();
    assert_eq!(prepared.actions, named(ToolKind::Edit, &secret));
    files::perform(&world.workspace, prepared.work).await;
    assert_eq!(fs::read_to_string(&secret).unwrap(), "known\n");
    // What was never read is not read to prepare a change of it.
    fs::write(world.dir.path().join("outside/other"), "x").unwrap();
    let unread = json!({"path": "../outside/other", "old_text": "y", "new_text": "z"});
    assert!(world.call("edit_file", unread).await.contains("has not been read"));
    let new = world.dir.path().join("outside/new");
    let prepared = world.prepare("write_file", json!({"path": new, "content": "x"})).await.unwrap();
    assert_eq!(prepared.actions, named(ToolKind::Edit, &new));
    for (tool, kind) in
        [("list_directory", ToolKind::Read), ("find_files", ToolKind::Search), ("search_files", ToolKind::Search)]
    {
        let prepared = world.prepare(tool, json!({"path": "link", "pattern": "known"})).await.unwrap();
        assert_eq!(prepared.actions, named(kind, &world.dir.path().join("outside")), "{tool}");
        assert!(!files::perform(&world.workspace, prepared.work).await.is_error, "{tool}");
    }
    let found = world.call("search_files", json!({"path": "../outside", "pattern": "known"})).await;
    assert_eq!(found, "/TOP/outside/secret:1: known");
    // A hint would tell what is there before anybody was asked.
    assert_eq!(
        world.call("read_file", json!({"path": "../outside/secre"})).await,
        "!there is no file `/TOP/outside/secre`"
    );
}

// On Unix: it makes links.
#[cfg(unix)]
#[tokio::test]
async fn what_was_allowed_is_done_to_just_that() {
    let world = World::with(&[("a/file", "mine\n"), ("b/file", "mine\n")]);
    world.read("a/file").await;
    let edit = json!({"path": "a/file", "old_text": "mine", "new_text": "changed"});
    let works = [
        world.prepare("edit_file", edit).await.unwrap().work,
        world.prepare("read_file", json!({"path": "a/file"})).await.unwrap().work,
        world.prepare("write_file", json!({"path": "a/new", "content": "x"})).await.unwrap().work,
        world.prepare("delete_file", json!({"path": "a/file"})).await.unwrap().work,
        world.prepare("move_file", json!({"from": "a/file", "to": "moved"})).await.unwrap().work,
        world.prepare("search_files", json!({"path": "a", "pattern": "mine"})).await.unwrap().work,
        world.prepare("list_directory", json!({"path": "a"})).await.unwrap().work,
    ];
    // Meanwhile the directory becomes a link: to outside, and to another directory inside.
    fs::rename(world.at("a"), world.at("was-a")).unwrap();
    fs::write(world.dir.path().join("outside/file"), "mine\n").unwrap();
    for target in [world.dir.path().join("outside"), world.at("b")] {
        symlink(&target, world.at("a")).unwrap();
        for work in works.clone() {
            let outcome = files::perform(&world.workspace, work.clone()).await;
            assert!(outcome.is_error, "{work:?} {outcome:?}");
        }
        assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "mine\n");
        assert!(!target.join("new").exists());
        fs::remove_file(world.at("a")).unwrap();
    }
}

#[tokio::test]
async fn a_file_with_several_names_is_asked_about() {
    let world = World::new();
    fs::hard_link(world.dir.path().join("outside/secret"), world.at("hard")).unwrap();
    let prepared = world.prepare("read_file", json!({"path": "hard"})).await.unwrap();
    assert!(matches!(&prepared.actions[..], [Action::Files { .. }, Action::Unclear { .. }]), "{:?}", prepared.actions);
    assert!(!files::perform(&world.workspace, prepared.work).await.is_error);
    let found = world.call("search_files", json!({"pattern": "secret"})).await;
    assert_eq!(
        found,
        "nothing found in `.`\n[left out because of several hard links: 1 file; name one as `path` to search it]"
    );
    // It got its second name after it was looked at.
    world.put("a", "x");
    let prepared = world.prepare("read_file", json!({"path": "a"})).await.unwrap();
    fs::hard_link(world.at("a"), world.at("second")).unwrap();
    assert!(files::perform(&world.workspace, prepared.work).await.is_error);
}

// On Unix: it makes links.
#[cfg(unix)]
#[tokio::test]
async fn files_and_empty_directories_are_deleted_and_nothing_else() {
    let world = World::with(&[("a", "x"), ("full/b", "x"), ("changed", "x")]);
    fs::create_dir(world.at("empty")).unwrap();
    symlink(world.dir.path().join("outside/secret"), world.at("link")).unwrap();
    for (path, expected) in [
        ("a", "`a` is deleted"),
        ("empty", "`empty` is deleted"),
        ("link", "`link` is deleted"),
        ("full", "!the directory `full` is not empty: delete what is in it first"),
        ("none", "!there is no `none`"),
        (".", "!`/TOP/proj` is not a regular file"),
        ("full/..", "!`/TOP/proj/full/..` is not a regular file"),
    ] {
        assert_eq!(world.call("delete_file", json!({"path": path})).await, expected);
    }
    assert_eq!(fs::read_to_string(world.dir.path().join("outside/secret")).unwrap(), "secret\n");
    let prepared = world.prepare("delete_file", json!({"path": "changed"})).await.unwrap();
    assert_eq!(prepared.kind, ToolKind::Delete);
    world.put("changed", "this is new and wanted");
    let outcome = files::perform(&world.workspace, prepared.work).await;
    assert!(outcome.is_error && world.at("changed").exists(), "{outcome:?}");
}

#[tokio::test]
async fn moving_overwrites_nothing_and_what_was_read_stays_read() {
    let world = World::with(&[("a", "one\n"), ("dir/b", "two\n"), ("taken", "x")]);
    world.read("a").await;
    world.read("dir/b").await;
    for (from, to, expected) in [
        ("a", "taken", "!there is already a `taken`, and it is not replaced"),
        ("dir", "dir/sub/dir", "!`dir` cannot be moved into itself"),
        ("none", "x", "!there is no `none`"),
        ("a", "new/deep/a", "`a` is moved to `new/deep/a`"),
        ("dir", "new/dir", "`dir` is moved to `new/dir`"),
    ] {
        assert_eq!(world.call("move_file", json!({"from": from, "to": to})).await, expected);
    }
    for (path, old) in [("new/deep/a", "one"), ("new/dir/b", "two")] {
        let edit = json!({"path": path, "old_text": old, "new_text": "x"});
        assert!(world.call("edit_file", edit).await.contains("is edited"), "{path}");
    }
    // Somebody puts something there while the person is asked.
    let prepared = world.prepare("move_file", json!({"from": "taken", "to": "free"})).await.unwrap();
    assert_eq!((prepared.kind.clone(), prepared.locations.len()), (ToolKind::Move, 2));
    world.put("free", "theirs");
    assert!(files::perform(&world.workspace, prepared.work).await.is_error);
    assert_eq!((world.text("free"), world.text("taken")), ("theirs".into(), "x".into()));
    // A file of the old name is another file now.
    world.put("a", "one\n");
    let edit = json!({"path": "a", "old_text": "one", "new_text": "x"});
    assert!(world.call("edit_file", edit).await.contains("has not been read"));
}

// On Unix: names there are no bytes.
#[cfg(unix)]
#[tokio::test]
async fn a_directory_is_listed_with_names_of_any_bytes() {
    let world = World::with(&[(".gitignore", "target\n"), ("src/a.rs", ""), ("target/x", ""), ("b.txt", "12345")]);
    symlink("/etc", world.at("link")).unwrap();
    fs::write(world.at("").join(std::ffi::OsStr::from_bytes(b"bad\xff\n\x1b[2J")), "").unwrap();
    let expected = "`.`:\n.gitignore (7 bytes)\nb.txt (5 bytes)\nbad\\u{fffd}\\x0a\\x1b[2J (0 bytes)\nlink (link)\nsrc/\ntarget/ (ignored by git)";
    // The sign for bytes that are no text may be shown as it is.
    let listed = world.call("list_directory", json!({})).await.replace('\u{fffd}', "\\u{fffd}");
    assert_eq!(listed, expected);
    assert_eq!(world.call("list_directory", json!({"path": "src"})).await, "`src`:\na.rs (0 bytes)");
    assert_eq!(world.call("list_directory", json!({"path": "b.txt"})).await, "!`b.txt` is not a directory");
    assert_eq!(world.call("list_directory", json!({"path": "none"})).await, "!there is no directory `none`");
    fs::create_dir(world.at("empty")).unwrap();
    assert_eq!(world.call("list_directory", json!({"path": "empty"})).await, "`empty` is empty");
    for number in 0..1_100 {
        world.put(&format!("empty/{number:04}"), "");
    }
    let listed = world.call("list_directory", json!({"path": "empty"})).await;
    assert!(listed.ends_with("0999 (0 bytes)\n[1000 of 1100 names are shown]"), "{listed}");
}

// On Unix: it makes links.
#[cfg(unix)]
#[tokio::test]
async fn files_are_found_by_their_names() {
    let world = World::with(&[
        (".gitignore", "target\n"),
        (".git/x.rs", ""),
        (".github/x.rs", ""),
        ("src/a.rs", ""),
        ("src/deep/b.rs", ""),
        ("target/c.rs", ""),
        ("d.txt", ""),
    ]);
    symlink(world.dir.path().join("outside"), world.at("out")).unwrap();
    for (arguments, expected) in [
        (json!({"pattern": "*.rs"}), ".github/x.rs\nsrc/a.rs\nsrc/deep/b.rs"),
        (json!({"pattern": "src/*.rs"}), "src/a.rs"),
        (json!({"pattern": "*.rs", "path": "src"}), "src/a.rs\nsrc/deep/b.rs"),
        (json!({"pattern": "deep/*", "path": "src"}), "src/deep/b.rs"),
        (json!({"pattern": "*.rs", "path": "target"}), "target/c.rs"),
        (json!({"pattern": "secret"}), "no file beneath `.` fits the pattern"),
        (json!({"pattern": "["}), "!the pattern `[` is not understood: unclosed character class; missing ']'"),
        (
            json!({"pattern": "../*"}),
            "!the pattern `../*` leads out of the directory\nhint: give the directory as `path`",
        ),
        (json!({"pattern": "*", "path": "d.txt"}), "!`d.txt` is not a directory"),
    ] {
        assert_eq!(world.call("find_files", arguments.clone()).await, expected, "{arguments}");
    }
    for number in 0..1_001 {
        world.put(&format!("many/{number:04}"), "");
    }
    let found = world.call("find_files", json!({"pattern": "many/*"})).await;
    assert_eq!(found.lines().count(), 1_001);
    assert!(found.ends_with("0999\n[there are more than these 1000 files: use a narrower pattern or path]"), "{found}");
}

#[tokio::test]
async fn the_content_of_files_is_searched() {
    let world = World::with(&[
        (".gitignore", "target\n"),
        ("src/a.rs", "fn main() {\n    hello();\n}\n"),
        ("src/win.rs", "Hello\r\nend\r\n"),
        ("target/c.rs", "hello\n"),
        (".env", "hello=secret\n"),
        ("keys/server.pem", "hello\n"),
        ("notes", "say hello\n"),
    ]);
    world.put("binary", b"hello\0hello\n");
    world.put("utf16", b"\xff\xfeh\0e\0l\0l\0o\0\n\0");
    let secrets = "[left out because it may hold secrets: 2 files; name one as `path` to search it]";
    for (arguments, expected) in [
        (
            json!({"pattern": "hello"}),
            format!("notes:1: say hello\nsrc/a.rs:2:     hello();\nutf16:1: hello\n{secrets}"),
        ),
        (
            json!({"pattern": "hello", "path": "src", "ignore_case": true}),
            "src/a.rs:2:     hello();\nsrc/win.rs:1: Hello".into(),
        ),
        (json!({"pattern": "^end$"}), format!("src/win.rs:2: end\n{secrets}")),
        (json!({"pattern": "hello", "glob": "*.rs"}), "src/a.rs:2:     hello();".into()),
        (json!({"pattern": "hello", "path": "notes"}), "notes:1: say hello".into()),
        (json!({"pattern": "hello", "path": ".env"}), ".env:1: hello=secret".into()),
        (json!({"pattern": "absent", "glob": "notes"}), "nothing found in `.`".into()),
    ] {
        assert_eq!(world.call("search_files", arguments.clone()).await, expected, "{arguments}");
    }
    for pattern in ["(", "a\nb", "(?:(?:\\w{100}){100}){100}"] {
        let refused = world.call("search_files", json!({"pattern": pattern})).await;
        assert!(refused.starts_with("!the regular expression is not understood"), "{refused}");
    }
    let outcome = world.outcome("search_files", json!({"pattern": "hello", "path": "src"})).await;
    let locations = outcome.locations.unwrap();
    assert_eq!((locations[0].path.as_str(), locations[0].line), (world.at("src/a.rs").to_str().unwrap(), Some(2)));
    let found = ToolCallContent::text("```\nsrc/a.rs:2:     hello();\n```");
    assert_eq!(outcome.content, Some(vec![ToolCallContent::text("1 line"), found]));
    let first = json!([{"path": world.at("src/a.rs"), "line": 2}]);
    let raw = json!({"path": world.at("src"), "pattern": "hello", "matches": 1, "files": 1, "first": first, "truncated": false});
    assert_eq!(outcome.raw, Some(raw));
    let prepared = world.prepare("search_files", json!({"pattern": "hello", "path": ".env"})).await.unwrap();
    let path = world.at(".env").to_str().unwrap().to_owned();
    assert_eq!(prepared.actions, [Action::Files { kind: ToolKind::Search, paths: vec![path] }]);
    world.put("many", "hello\n".repeat(1_000));
    world.put("wide", format!("{} hello\n", "é".repeat(10_000)));
    let found = world.call("search_files", json!({"pattern": "hello", "path": "many"})).await;
    assert!(found.ends_with("many:500: hello\n[there is more: use a narrower pattern, path or glob]"), "{found}");
    let found = world.call("search_files", json!({"pattern": "hello", "path": "wide"})).await;
    assert_eq!(found, format!("wide:1: {}…", "é".repeat(300)));
}

// On Unix: names there are no bytes.
#[cfg(unix)]
#[tokio::test]
async fn names_that_cannot_be_told_are_refused() {
    let world = World::new();
    let bad = world.at("").join(std::ffi::OsStr::from_bytes(b"bad\xff"));
    fs::create_dir(&bad).unwrap();
    fs::write(bad.join("file"), "x").unwrap();
    symlink(&bad, world.at("link")).unwrap();
    let refused = world.read("link/file").await;
    assert!(refused.starts_with('!') && refused.contains("not valid UTF-8"), "{refused}");
}

/// Runs itself again, in a process that may not write much.
// On Unix: it has itself run with a limit on what it writes.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_old_file_stays() {
    if let Ok(dir) = std::env::var("ATTACHE_TEST_FULL_DISK") {
        let dir = Path::new(&dir);
        fs::write(dir.join("file"), "old\n").unwrap();
        let workspace = Workspace::open(dir, &[], None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let call = async |tool: &str, arguments: Value| {
                let prepared = files::prepare(&workspace, tool, &arguments).await.unwrap().unwrap();
                files::perform(&workspace, prepared.work).await
            };
            call("read_file", json!({"path": "file"})).await;
            let large = "x".repeat(1 << 20);
            for arguments in [json!({"path": "file", "content": large}), json!({"path": "new", "content": large})] {
                let outcome = call("write_file", arguments).await;
                assert!(outcome.is_error && format!("{outcome:?}").contains("no space left"), "{outcome:?}");
            }
            // It is as it was, and the model knows it still.
            let edit = json!({"path": "file", "old_text": "old", "new_text": "new"});
            assert!(!call("edit_file", edit).await.is_error);
        });
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "new\n");
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "a draft is left behind");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = r#"trap "" XFSZ; ulimit -f 100; exec "$@""#;
    let output = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_full_disk_is_told_and_the_old_file_stays"])
        .env("ATTACHE_TEST_FULL_DISK", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
