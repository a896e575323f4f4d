//! Trust is bound to contents.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use attache_host::trust::{Status, Trust, TrustError};
use tempfile::TempDir;

struct Desk {
    directory: TempDir,
    trust: Trust,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let trust = Trust::new(directory.path().join("state/trust.toml"));
        fs::create_dir_all(directory.path().join("project/.attache/deep")).unwrap();
        Desk { directory, trust }
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.project().join(".attache").join(name), text).unwrap();
    }

    fn status(&self) -> Status {
        self.trust.check(&self.project()).unwrap().0
    }

    fn accept(&self) {
        self.trust.trust(&self.trust.check(&self.project()).unwrap().1).unwrap();
        assert_eq!(self.status(), Status::Trusted);
    }
}

#[test]
fn any_change_asks_again() {
    let desk = Desk::new();
    assert_eq!(desk.status(), Status::NothingToTrust);
    desk.write("permissions.toml", "# one");
    desk.write("deep/agents.toml", "two");
    assert_eq!(desk.status(), Status::Unknown);
    desk.accept();
    let changes: [(&str, &dyn Fn()); 6] = [
        ("one byte", &|| desk.write("permissions.toml", "# onf")),
        ("one byte in a folder", &|| desk.write("deep/agents.toml", "twp")),
        ("a new file", &|| desk.write("new", "")),
        ("a file is gone", &|| fs::remove_file(desk.project().join(".attache/deep/agents.toml")).unwrap()),
        ("the same bytes under another name", &|| {
            fs::rename(
                desk.project().join(".attache/permissions.toml"),
                desk.project().join(".attache/permissions.tomm"),
            )
            .unwrap();
        }),
        ("a byte moved from the name to the contents", &|| {
            fs::remove_dir_all(desk.project().join(".attache")).unwrap();
            fs::create_dir(desk.project().join(".attache")).unwrap();
            desk.write("permissions.tom", "l# one");
        }),
    ];
    for (name, change) in changes {
        desk.write("permissions.toml", "# one");
        let deep = desk.project().join(".attache/deep");
        fs::create_dir_all(&deep).unwrap();
        desk.write("deep/agents.toml", "two");
        let _ = fs::remove_file(desk.project().join(".attache/new"));
        desk.accept();
        change();
        assert_eq!(desk.status(), Status::Changed, "{name}");
    }
    desk.accept();
    desk.trust.revoke(&desk.project()).unwrap();
    assert_eq!(desk.status(), Status::Unknown);
    // What is elsewhere in the project is not what takes effect.
    desk.accept();
    fs::write(desk.project().join("README.md"), "x").unwrap();
    assert_eq!(desk.status(), Status::Trusted);
}

#[test]
fn what_was_compared_is_what_is_used() {
    let desk = Desk::new();
    desk.write("permissions.toml", "good");
    desk.accept();
    let (status, contents) = desk.trust.check(&desk.project()).unwrap();
    // Whoever changes the file after the check changes nothing about what was read.
    desk.write("permissions.toml", "evil");
    assert_eq!(status, Status::Trusted);
    assert_eq!(contents.file("permissions.toml"), Some(&b"good"[..]));
    assert_eq!(contents.files().len(), 1);

    // And whoever changes it while the user looks does not get that trusted.
    let (_, shown) = desk.trust.check(&desk.project()).unwrap();
    desk.write("permissions.toml", "worse");
    desk.trust.trust(&shown).unwrap();
    assert_eq!(desk.status(), Status::Changed);
}

#[test]
fn while_a_file_changes_only_the_trusted_bytes_are_trusted() {
    let desk = Desk::new();
    desk.write("permissions.toml", "good");
    desk.accept();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                desk.write("permissions.toml", "evil");
                desk.write("permissions.toml", "good");
            }
        });
        // Where files are opened in a millisecond and not in a microsecond, so many are enough.
        for _ in 0..if cfg!(windows) { 50 } else { 2000 } {
            let (status, contents) = desk.trust.check(&desk.project()).unwrap();
            let is_good = contents.file("permissions.toml") == Some(b"good");
            assert_eq!(status == Status::Trusted, is_good);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_refused() {
    use std::os::unix::fs::symlink;

    let link = |make: &dyn Fn(&Desk)| {
        let desk = Desk::new();
        desk.write("permissions.toml", "x");
        make(&desk);
        let error = desk.trust.check(&desk.project()).unwrap_err();
        assert!(matches!(error, TrustError::NotAFile(_)), "{error}");
    };
    link(&|desk| symlink("/etc/passwd", desk.project().join(".attache/link")).unwrap());
    link(&|desk| symlink("nowhere", desk.project().join(".attache/link")).unwrap());
    link(&|desk| symlink("/etc", desk.project().join(".attache/deep/link")).unwrap());
    link(&|desk| {
        fs::rename(desk.project().join(".attache"), desk.project().join("other")).unwrap();
        symlink("other", desk.project().join(".attache")).unwrap();
    });
    link(&|desk| {
        fs::remove_dir_all(desk.project().join(".attache")).unwrap();
        fs::write(desk.project().join(".attache"), "x").unwrap();
    });
    link(&|desk| drop(std::os::unix::net::UnixListener::bind(desk.project().join(".attache/socket")).unwrap()));

    // The directory itself may be reached by a link: it is the same directory.
    let desk = Desk::new();
    desk.write("permissions.toml", "x");
    desk.accept();
    let link = desk.directory.path().join("link");
    symlink(desk.project(), &link).unwrap();
    assert_eq!(desk.trust.check(&link).unwrap().0, Status::Trusted);
}

#[test]
fn too_much_is_refused() {
    let large = Desk::new();
    large.write("large", &"x".repeat((4 << 20) + 1));
    let many = Desk::new();
    for number in 0..257 {
        many.write(&number.to_string(), "");
    }
    let deep = Desk::new();
    fs::create_dir_all(deep.project().join(".attache/a/b/c/d/e/f/g/h/i")).unwrap();
    for desk in [large, many, deep] {
        let error = desk.trust.check(&desk.project()).unwrap_err();
        assert!(matches!(error, TrustError::TooLarge(_)), "{error}");
    }
}

#[test]
fn a_list_that_is_not_one_trusts_nothing_and_is_not_overwritten() {
    let desk = Desk::new();
    desk.write("permissions.toml", "x");
    desk.accept();
    let list = desk.directory.path().join("state/trust.toml");
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&list).unwrap().permissions()) & 0o777, 0o600);
    for text in ["trusted = 1", "other = 1", "[trusted]\nx = 1", "= ="] {
        fs::write(&list, text).unwrap();
        assert!(matches!(desk.trust.check(&desk.project()), Err(TrustError::BadList(_))), "{text}");
        assert!(matches!(desk.trust.revoke(&desk.project()), Err(TrustError::BadList(_))), "{text}");
        assert_eq!(fs::read_to_string(&list).unwrap(), text);
    }
}

#[test]
fn many_at_once_lose_nothing() {
    let desk = Desk::new();
    let projects: Vec<PathBuf> = (0..24)
        .map(|number| {
            let project = desk.directory.path().join(format!("project-{number}"));
            fs::create_dir_all(project.join(".attache")).unwrap();
            fs::write(project.join(".attache/x"), "x").unwrap();
            project
        })
        .collect();
    std::thread::scope(|scope| {
        for project in &projects {
            scope.spawn(|| desk.trust.trust(&desk.trust.check(project).unwrap().1).unwrap());
        }
    });
    for project in &projects {
        assert_eq!(desk.trust.check(project).unwrap().0, Status::Trusted);
    }
}

#[test]
fn a_program_of_the_project_is_part_of_what_is_trusted() {
    let desk = Desk::new();
    let put = |name: &str, text: &str| {
        let path = desk.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        fs::write(path, text).unwrap();
    };
    put("tools/server.py", "print(1)");
    put("agent.sh", "exit 0");
    put("sub/tools/server.py", "print('evil')");
    desk.write("mcp.json", r#"{"mcpServers": {"tools": {"command": "python3", "args": ["tools/server.py", "--x"]}}}"#);
    let agent = desk.project().join("agent.sh");
    desk.write("agents.toml", &format!("[agents.a]\ncommand = ['/bin/sh', '{}']\n", agent.display()));
    let contents = desk.trust.check(&desk.project()).unwrap().1;
    let started: Vec<_> = contents
        .starts()
        .iter()
        .flat_map(|started| started.files.iter().map(|file| (started.name.as_str(), file.is_covered)))
        .collect();
    let mut expected = vec![("MCP server `tools`", true), ("agent `a`", false), ("agent `a`", true)];
    if cfg!(windows) {
        // There is no `/bin/sh`.
        expected.remove(1);
    }
    assert_eq!(started, expected);
    // The file that is started is the one that was looked at, from every directory.
    let attache::model::mcp::McpServer::Stdio(server) = contents.mcp_servers().unwrap().servers.remove(0) else {
        panic!()
    };
    let real = attache_host::paths::canonicalize(&desk.project()).unwrap();
    assert_eq!(server.args, [real.join("tools/server.py").to_str().unwrap(), "--x"]);

    desk.accept();
    put("tools/server.py", "print(2)");
    assert_eq!(desk.status(), Status::Changed);
    put("tools/server.py", "print(1)");
    assert_eq!(desk.status(), Status::Trusted);
    fs::remove_file(desk.project().join("tools/server.py")).unwrap();
    assert_eq!(desk.status(), Status::Changed, "it is gone");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/bin/true", desk.project().join("tools/server.py")).unwrap();
        assert_eq!(desk.status(), Status::Changed, "it is another by a link");
    }
}

#[test]
fn what_a_hook_writes_is_its_own_matter_and_what_it_runs_is_not() {
    let desk = Desk::new();
    let project = desk.project();
    let hook = |line: &str| desk.write("hooks.toml", &format!("[[hooks]]\nevent = 'after_tool'\ncommand = {line:?}"));
    // The line, what comes to be after it was trusted, and what that means.
    let rows = [
        ("./check.sh > out.log", "out.log", Status::Trusted),
        ("./check.sh >>out.log 2>err.log", "err.log", Status::Trusted),
        ("./check.sh &>\"out.log\"", "out.log", Status::Trusted),
        ("./check.sh >|out.log", "out.log", Status::Trusted),
        // What may be run, or read, is part of what is trusted, also where it is written by the same line.
        ("cat x > run.sh; sh run.sh", "run.sh", Status::Changed),
        ("./check.sh > run.sh; sh ./run.sh", "run.sh", Status::Changed),
        ("sh run.sh > out.log", "run.sh", Status::Changed),
        ("grep '>' run.sh", "run.sh", Status::Changed),
        ("node -e 'x=>run.sh'", "run.sh", Status::Changed),
        ("grep \\> run.sh", "run.sh", Status::Changed),
        ("sh <> run.sh", "run.sh", Status::Changed),
        ("tee out.log", "out.log", Status::Changed),
        ("sh 2>&1 run.sh", "run.sh", Status::Changed),
    ];
    for (line, new, expected) in rows {
        hook(line);
        desk.accept();
        fs::write(project.join(new), "one").unwrap();
        assert_eq!(desk.status() == Status::Trusted, expected == Status::Trusted, "{line}");
        let (contents, notice) = desk.trust.contents(&project);
        assert_eq!(contents.is_some(), expected == Status::Trusted, "{line}");
        if expected == Status::Changed {
            let (notice, file) = (notice.unwrap(), attache_host::paths::canonicalize(&project).unwrap().join(new));
            assert!(notice.contains(&format!("names `{}`, which was not there", file.display())), "{notice}");
        }
        desk.accept();
        fs::write(project.join(new), "two").unwrap();
        assert_eq!(desk.status(), expected, "{line}, changed");
        fs::remove_file(project.join(new)).unwrap();
    }
    // A link would have the hook write elsewhere.
    #[cfg(unix)]
    {
        hook("./check.sh > out.log");
        desk.accept();
        for target in ["/etc/passwd", "nowhere"] {
            std::os::unix::fs::symlink(target, project.join("out.log")).unwrap();
            assert_ne!(desk.status(), Status::Trusted, "{target}");
            fs::remove_file(project.join("out.log")).unwrap();
        }
    }
}

#[test]
fn an_old_list_is_valid_where_nothing_is_started_and_says_so_where_something_is() {
    let desk = Desk::new();
    desk.write("permissions.toml", "# one");
    desk.accept();
    let list = desk.directory.path().join("state/trust.toml");
    let old = fs::read_to_string(&list).unwrap();
    fs::write(desk.project().join("server"), "").unwrap();
    desk.write("mcp.json", r#"{"mcpServers": {"tools": {"command": "./server"}}}"#);
    assert_eq!(desk.status(), Status::Changed);
    let uncover = || {
        fs::write(&list, old_entry(&desk, &old)).unwrap();
        assert_eq!(desk.status(), Status::Uncovered);
        let (contents, notice) = desk.trust.contents(&desk.project());
        assert!(contents.is_none() && notice.unwrap().contains("without the programs that it starts or the variables"));
    };
    uncover();
    // Variables meant nothing to the first version.
    desk.write("mcp.json", r#"{"mcpServers": {"tools": {"url": "https://host", "headers": {"A": "${TOKEN}"}}}}"#);
    uncover();
    desk.accept();
    assert_eq!(desk.status(), Status::Trusted);
    let contents = desk.trust.contents(&desk.project()).0.unwrap();
    assert_eq!(contents.variables(), [("tools".to_owned(), vec!["TOKEN".to_owned()])]);
}

/// What the first version wrote for the files that are there.
fn old_entry(desk: &Desk, old: &str) -> String {
    let mut hash = <sha2::Sha256 as sha2::Digest>::new();
    for (name, bytes) in desk.trust.check(&desk.project()).unwrap().1.files() {
        for part in
            [&(name.len() as u64).to_le_bytes()[..], name.as_bytes(), &(bytes.len() as u64).to_le_bytes(), bytes]
        {
            sha2::Digest::update(&mut hash, part);
        }
    }
    let digest: String = sha2::Digest::finalize(hash).iter().map(|byte| format!("{byte:02x}")).collect();
    let (start, _) = old.rsplit_once(" = ").unwrap();
    format!("{start} = \"{digest}\"\n")
}

#[test]
fn a_file_with_several_names_is_refused() {
    let desk = Desk::new();
    fs::write(desk.directory.path().join("elsewhere"), "secret").unwrap();
    fs::create_dir_all(desk.project().join(".attache/commands")).unwrap();
    fs::hard_link(desk.directory.path().join("elsewhere"), desk.project().join(".attache/commands/go.md")).unwrap();
    let error = desk.trust.check(&desk.project()).unwrap_err();
    assert!(matches!(error, TrustError::HardLink(_)), "{error}");
}
