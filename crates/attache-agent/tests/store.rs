//! Sessions on disk: what is written comes back, lists, forks and deletions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use attache::private::is_private;
use attache_agent::store::{Entry, FileStore, Kept, Opened, Page, Query, Store, StoreError};
use tempfile::TempDir;

mod store_suite;

use store_suite::{opened, prompt, title, update};

store_suite!(made);

fn made() -> Option<(TempDir, FileStore)> {
    Some(store())
}

fn store() -> (TempDir, FileStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("sessions")).unwrap();
    (directory, store)
}

/// A log as the first version wrote it, checksums and all.
#[test]
fn a_log_of_an_older_version_is_read() {
    const OLD: &str = r#"0 1794735000120 78 b1f1cc7d {"type":"opened","cwd":"/p","directories":[],"created":"2026-11-01T00:00:00Z"}
1 1794735000121 34 022670c6 {"type":"title","title":"Grüße"}
"#;
    let (directory, store) = store();
    let path = directory.path().join("sessions/old.log");
    fs::write(&path, OLD).unwrap();
    let (mut log, entries) = store.open_log("old").unwrap();
    assert_eq!(entries[1], title("Grüße"));
    log.append(&title("new")).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with(OLD));
    assert_eq!(store.read("old").unwrap().len(), 3);
    fs::write(&path, OLD.replace("Grüße\"}\n", "Grüsse\"}\n").replace("b1f1cc7d", "b1f1cc7e")).unwrap();
    assert!(store.read("old").is_err());
}

/// Where the store keeps a file. Found by its own word, so that tests need no word of their own for it.
fn path(store: &FileStore, name: &str) -> PathBuf {
    let debug = format!("{store:?}");
    PathBuf::from(debug.split('"').nth(1).unwrap()).join(name)
}

#[test]
fn nobody_else_can_read_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("wide");
    fs::create_dir(&place).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let store = FileStore::open(&place).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    log.sync().unwrap();
    store.fork("s", "f", opened("/p")).unwrap();
    assert!(is_private(&place).unwrap());
    let files: Vec<_> = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.iter().all(|file| is_private(file).unwrap()));
}

#[test]
fn a_thousand_sessions_are_listed_at_once_and_long_logs_are_not_read() {
    let (_directory, store) = store();
    for number in 0..1000 {
        let mut log = store.create(&format!("s{number}"), opened("/p")).unwrap();
        log.append(&prompt("hello")).unwrap();
        if number % 100 == 0 {
            for _ in 0..4 {
                log.append(&prompt(&"x".repeat(1 << 18))).unwrap();
            }
            log.sync().unwrap();
        }
    }
    let start = Instant::now();
    let page = store.list(&Query::default()).unwrap();
    let took = start.elapsed();
    assert_eq!(page.sessions.len(), 50);
    assert!(took < Duration::from_secs(2), "{took:?}");
    // That a long log is not read shows when there is nothing left to read in it.
    let file = fs::OpenOptions::new().write(true).open(path(&store, "s500.log")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(0).unwrap();
    file.set_len(length).unwrap();
    let all = store.list(&Query { limit: 2000, ..Query::default() }).unwrap().sessions;
    assert_eq!(all.len(), 1000);
    assert_eq!(all.iter().find(|summary| summary.id == "s500").unwrap().prompts, 5);
}

#[test]
fn the_oldest_sessions_are_too_many() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let mut length = 0;
    for (age, id) in ["newest", "middle", "oldest"].into_iter().enumerate() {
        drop(store.create(id, Opened { cwd: "/".into(), ..Opened::default() }).unwrap());
        let log = std::fs::File::options().append(true).open(directory.path().join(format!("{id}.log"))).unwrap();
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(60 * age as u64);
        log.set_modified(time).unwrap();
        length = log.metadata().unwrap().len();
    }
    let rows: [(usize, u64, &[&str]); 5] = [
        (3, u64::MAX, &[]),
        (2, u64::MAX, &["oldest"]),
        (0, u64::MAX, &["oldest", "middle"]),
        (9, length * 2, &["oldest"]),
        (9, 0, &["oldest", "middle"]),
    ];
    for (sessions, bytes, expected) in rows {
        assert_eq!(store.excess(Kept { sessions, bytes, age: None }), expected, "{sessions} {bytes}");
    }
}

#[test]
fn a_session_that_was_not_finished_is_none() {
    let (_directory, store) = store();
    // What is left when a process dies between taking a name and having written the beginning.
    fs::write(path(&store, "unfinished.log"), "").unwrap();
    assert!(matches!(store.read("unfinished"), Err(StoreError::NotFound(_))));
    assert!(matches!(store.open_log("unfinished"), Err(StoreError::NotFound(_))));
    assert!(matches!(store.fork("unfinished", "f", opened("/p")), Err(StoreError::NotFound(_))));
    assert_eq!(store.list(&Query::default()).unwrap(), Page::default());
    store.delete("unfinished").unwrap();
    store.create("unfinished", opened("/p")).unwrap();
    store.delete("unfinished").unwrap();
    assert_eq!(fs::read_dir(path(&store, "")).unwrap().count(), 0);
}

#[test]
fn people_can_search_a_log() {
    let (_directory, store) = store();
    let mut log = store.create("s", opened("/p")).unwrap();
    log.append(&Entry::Set { option: "model".into(), value: "offline".into() }).unwrap();
    log.append(&update(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","rawInput":{"huge":1e400,"exact":1.50}}"#,
    ))
    .unwrap();
    let text = fs::read_to_string(path(&store, "s.log")).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().nth(1).unwrap().ends_with(r#" {"type":"set","option":"model","value":"offline"}"#), "{text}");
    assert!(text.contains(r#""huge":1e400,"exact":1.50"#));
}

#[test]
fn a_list_needs_nothing_but_the_log() {
    let (_directory, store) = store();
    let one = || store.list(&Query::default()).unwrap().sessions.remove(0);
    let mut log = store.create("s", opened("/p")).unwrap();
    log.append(&prompt("hello")).unwrap();
    log.append(&title("Another")).unwrap();
    log.sync().unwrap();
    let known = one();
    assert_eq!(known.title.as_deref(), Some("Another"));
    drop(log);
    // Without what is kept for lists, or with nonsense in its place, the log says the same.
    let beside = path(&store, "s.json");
    fs::remove_file(&beside).unwrap();
    assert_eq!(one(), known);
    for nonsense in ["", "{", "null", r#"{"end":{"offset":7,"count":1},"updated":1,"prompts":9}"#] {
        fs::write(&beside, nonsense).unwrap();
        assert_eq!(one(), known, "{nonsense}");
    }
    fs::remove_file(&beside).unwrap();
    let (mut log, _) = store.open_log("s").unwrap();
    log.sync().unwrap();
    assert!(beside.exists());
    assert_eq!(one(), known);
}

#[test]
fn a_directory_is_everyones_to_the_person_whose_it_is() {
    let (_directory, store) = store();
    for owner in ["", "alice", "bob"] {
        store.owned_by(owner).create(&format!("s-{owner}"), opened("/p")).unwrap();
    }
    let all = store.clone().of_everyone();
    assert_eq!(all.list(&Query::default()).unwrap().sessions.len(), 3);
    assert!(all.delete("s-alice").unwrap());
    assert!(all.read("s-bob").is_ok());
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), 1);
}
