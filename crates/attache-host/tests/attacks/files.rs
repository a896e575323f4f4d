//! Files that are not what they seem to be when it is decided about them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::support::Place;

/// Swaps two names, in one step.
fn exchange(one: &Path, other: &Path) {
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let (one, other) = (name(one), name(other));
    // SAFETY: both names live through the call.
    let done =
        unsafe { libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), libc::RENAME_EXCHANGE) };
    assert_eq!(done, 0);
}

#[test]
fn a_race_does_not_lead_to_the_hooks_of_git() {
    let place = Place::new();
    place.write("project/.git/hooks/README", "");
    place.write("project/sub/README", "");
    let (sub, link) = (place.project().join("sub"), place.project().join("link"));
    std::os::unix::fs::symlink(".git/hooks", &link).unwrap();
    place.own();
    let write = json!({"call": "fs/write_text_file", "params": {"path": "$cwd/sub/pre-commit", "content": "evil"}});
    let script = json!([{"times": 400, "steps": [write]}]);
    let is_done = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                exchange(&sub, &link);
            }
        });
        let ran = place.run(place.attack(1, &["--permissions", "edits"], &script));
        is_done.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.log.len(), 400, "{}", ran.err);
    let served = ran.log.iter().filter(|answer| answer["error"].is_null()).count();
    assert!(served > 0, "nothing was ever written where it may be");
    assert!(!place.project().join(".git/hooks/pre-commit").exists(), "{served} were served");
}

#[test]
fn the_client_does_not_write_for_an_agent_what_the_sandbox_keeps_from_it() {
    let place = Place::new();
    place.write(".ssh/id_rsa", "key");
    place.write("notes", "mine");
    let file = |method: &str, path: &str| {
        let path = place.home().join(path);
        json!({"call": method, "params": {"path": path, "content": "ssh-ed25519 evil"}})
    };
    let script = json!([
        file("fs/write_text_file", ".ssh/authorized_keys"),
        file("fs/read_text_file", ".ssh/id_rsa"),
        file("fs/write_text_file", ".config/attache/permissions.toml"),
        file("fs/write_text_file", "notes"),
        file("fs/write_text_file", "project/.git/hooks/pre-commit"),
        file("fs/write_text_file", "project/made"),
        file("fs/read_text_file", "notes"),
    ]);
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place.write("project/.git/hooks/README", "");
    std::fs::create_dir(place.path("tmp")).unwrap();
    let mut command = place.attack(1, &["--sandbox", "--permissions", "all"], &script);
    // The home itself is a temporary directory otherwise, in which everything may be written.
    command.env("TMPDIR", place.path("tmp"));
    let ran = place.run(command);
    let done: Vec<bool> = ran.log.iter().map(|answer| answer["error"].is_null()).collect();
    assert_eq!(done, [false, false, false, false, false, true, true], "{ran:?}");
    assert_eq!(place.read("notes"), "mine");
}
