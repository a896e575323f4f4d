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
