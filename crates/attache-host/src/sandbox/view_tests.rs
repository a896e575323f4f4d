//! Tables, and what Landlock and whoever asks make of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::sandbox::{Network, git};

fn nothing() -> Policy {
    Policy {
        writable: Vec::new(),
        readable: Vec::new(),
        hidden: Vec::new(),
        shown: Vec::new(),
        protected: Vec::new(),
        sockets: Vec::new(),
        network: Network::Open,
        variables: Vec::new(),
        layers: Vec::new(),
        temporary: None,
        private_variables: Vec::new(),
    }
}

/// A home with the given files, and what of it can be read or written under a policy.
fn check(files: &[&str], links: &[(&str, &str)], readable: &str, hidden: &[&str], writable: &[&str], allowed: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    for file in files {
        fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        fs::write(home.join(file), "").unwrap();
    }
    for (link, target) in links {
        std::os::unix::fs::symlink(home.join(target), home.join(link)).unwrap();
    }
    let in_home = |paths: &[&str]| paths.iter().map(|path| home.join(path)).collect::<Vec<_>>();
    let policy = Policy {
        writable: in_home(writable),
        readable: vec![home.join(readable)],
        hidden: in_home(hidden),
        ..nothing()
    };
    let rules = rules(&rows(&policy)).unwrap();
    let shown = rules.iter().filter_map(|rule| {
        let path = rule.path.strip_prefix(&home).ok()?.display();
        Some(format!("{} {path}", if rule.access == Access::Write { "w" } else { "r" }))
    });
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    assert_eq!(shown, allowed, "{hidden:?}");
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn what_is_shown_can_be_read_inside_of_what_is_hidden() {
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    for directory in ["state/outputs/mine", "state/outputs/other", "state/rules"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    std::os::unix::fs::symlink(home.join("state/rules"), home.join("state/outputs/link")).unwrap();
    let of = |path: &str| home.join(path);
    let policy = Policy {
        readable: vec![home.clone()],
        hidden: vec![of("state")],
        shown: vec![of("state/outputs/mine"), of("state/outputs/link"), of("state/outputs/missing")],
        ..nothing()
    };
    assert!(policy.may_read(&of("state/outputs/mine/output-1.txt")) && !policy.may_write(&of("state/outputs/mine/x")));
    for path in ["state", "state/outputs", "state/outputs/other/x", "state/rules", "state/outputs/missing"] {
        assert!(!policy.may_read(&of(path)), "{path}");
    }
    let allowed: Vec<PathBuf> = rules(&rows(&policy)).unwrap().into_iter().map(|rule| rule.path).collect();
    assert!(allowed.contains(&of("state/outputs/mine")) && !allowed.contains(&of("state/outputs")), "{allowed:?}");
}

#[test]
fn what_is_hidden_is_left_out_and_its_neighbours_are_listed() {
    let files = ["a", ".ssh/key", ".config/app/x", ".config/secret/y", "work/.env"];
    check(&files, &[], "", &[], &[], &["r "]);
    check(&files, &[], "", &[".ssh"], &[], &["r .config", "r a", "r work"]);
    check(&files, &[], "", &[".config/secret", ".ssh"], &[], &["r .config/app", "r a", "r work"]);
    check(&files, &[], "", &["work/.env"], &[], &["r .config", "r .ssh", "r a"]);
    check(&files, &[], "work", &[".ssh"], &[], &["r work"]);
    // Above, at and below what is hidden.
    check(&files, &[], ".config/secret", &[".config"], &[], &[]);
    check(&files, &[], ".config", &[".config"], &[], &[]);
    check(&files, &[], "", &[""], &[], &[]);
    // It may come into being later.
    check(&files, &[], ".config", &[".config/later/z"], &[], &["r .config/app", "r .config/secret"]);
}

#[test]
fn links_lead_to_nothing_hidden() {
    let files = ["data/keys/key", "data/x"];
    check(&files, &[(".ssh", "data/keys"), ("also", "data/keys")], "", &[".ssh"], &[], &["r data/x"]);
}

#[test]
fn what_cannot_be_listed_is_guessed() {
    let variables = ["/home/me/.pyenv/bin:/usr/bin:relative", "/home/me/go", "/home", "no path"].map(OsString::from);
    let found = guesses(Path::new("/home/me"), variables.into_iter());
    assert_eq!(found.iter().filter(|path| path.ends_with(".pyenv") || path.ends_with("go")).count(), 2);
    assert!(found.contains(&PathBuf::from("/home/me/.cargo")));
    assert!(found.iter().all(|path| path.parent() == Some(Path::new("/home/me"))), "{found:?}");
}

#[test]
fn what_is_writable_stays_so_inside_of_what_is_hidden() {
    check(&[".config/agent/x", "a"], &[], "", &[".config"], &[".config/agent"], &["r a", "w .config/agent"]);
}

#[test]
fn what_landlock_cannot_hide_is_known() {
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    let check = |writable: &str, hidden: &[&str], expected: &[&str]| {
        let hidden = hidden.iter().map(|path| home.join(path)).collect();
        let rows = rows(&Policy { writable: vec![home.join(writable)], hidden, ..nothing() });
        let found: Vec<&Path> = hidden_in_writable(&rows).map(|(row, _)| row.path.as_path()).collect();
        assert_eq!(found, expected.iter().map(|path| home.join(path)).collect::<Vec<_>>(), "{writable}");
    };
    check("", &[".ssh", "a/b"], &[".ssh", "a/b"]);
    check("project", &[".ssh"], &[]);
    check("state/agent", &["state"], &[]);
    let policy = Policy { writable: vec![home.join("gone")], ..nothing() };
    let message = check_writable(&policy).unwrap_err().to_string().replace(home.to_str().unwrap(), "HOME");
    assert_eq!(message, "cannot make `HOME/gone` writable in the sandbox: No such file or directory (os error 2)");
}

#[test]
fn devices_and_services_are_not_readable_with_the_rest() {
    let rules = rules(&rows(&Policy { readable: vec!["/".into()], ..nothing() })).unwrap();
    let read: Vec<_> = rules.iter().filter(|rule| rule.access == Access::Read).map(|rule| &rule.path).collect();
    assert!(read.iter().all(|path| !Path::new("/dev").starts_with(path)), "{read:?}");
    assert!(read.iter().all(|path| !Path::new("/run").starts_with(path)), "{read:?}");
    assert!(read.contains(&&PathBuf::from("/usr")), "{read:?}");
}

#[test]
fn a_policy_answers_as_the_kernel_would() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    for directory in ["project/.git/hooks", ".ssh", "state/agent", "other"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    for file in ["project/.git/HEAD", "project/.git/config", ".ssh/id", "other/file"] {
        fs::write(home.join(file), "").unwrap();
    }
    let links = [("project/out", "../.ssh/id"), ("project/dangling", "../other/new"), ("project/round", "round")];
    for (link, target) in links {
        std::os::unix::fs::symlink(target, home.join(link)).unwrap();
    }
    let policy = Policy {
        writable: vec![home.join("project"), home.join("state/agent")],
        readable: vec!["/".into()],
        hidden: vec![home.join(".ssh"), home.join("state")],
        protected: git::repository_of(&home.join("project")).protected,
        ..nothing()
    };
    let rows = [
        ("project/new", "rw"),
        ("project/sub/../new", ""),
        ("project/../other/file", "r"),
        ("project/.git/index", "rw"),
        ("project/.git/config", "r"),
        ("project/.git/hooks/pre-commit", "r"),
        ("project/out", ""),
        ("project/dangling", "r"),
        ("project/round", ""),
        ("other/file", "r"),
        (".ssh/id", ""),
        (".ssh/later/still", ""),
        ("state/trust.toml", ""),
        ("state/agent/log", "rw"),
        ("/etc/passwd", "r"),
        ("/dev/null", "rw"),
        ("/dev/sda", ""),
        ("/run/docker.sock", ""),
        ("/proc/self/environ", ""),
        ("/proc/self/root/etc/passwd", "r"),
    ];
    for (path, expected) in rows {
        let path = home.join(path);
        let found = match (policy.may_read(&path), policy.may_write(&path)) {
            (true, true) => "rw",
            (true, false) => "r",
            (false, false) => "",
            (false, true) => "w",
        };
        assert_eq!(found, expected, "{}", path.display());
    }
    assert!(!policy.may_read(Path::new("etc/passwd")), "a relative path means nothing");
    // The home itself as the project.
    let policy = Policy { writable: vec![home.clone()], ..policy };
    assert!(policy.may_write(&home.join("other/file")) && !policy.may_read(&home.join(".ssh/id")));
    fs::remove_dir_all(&home).unwrap();
}
