//! Sessions on disk: what is written comes back, lists, forks and deletions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use attache::model::content::ContentBlock;
use attache::proto::json::RawJson;
use attache_agent::model::{Call, Message, Part};
use attache_agent::store::{Entry, FileStore, Kept, Opened, Page, Query, Store, StoreError};
use tempfile::TempDir;

fn store() -> (TempDir, FileStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("sessions")).unwrap();
    (directory, store)
}

fn opened(cwd: &str) -> Opened {
    Opened {
        cwd: cwd.into(),
        directories: vec!["/other".into()],
        created: "2026-11-15T09:30:00.125Z".into(),
        ..Opened::default()
    }
}

fn title(title: &str) -> Entry {
    Entry::Title { title: title.into() }
}

fn prompt(text: &str) -> Entry {
    Entry::Prompt { id: "m".into(), content: vec![ContentBlock::text(text)] }
}

fn update(json: &str) -> Entry {
    Entry::Update { update: Box::new(RawJson::new(json).unwrap().to_model().unwrap()) }
}

fn next_millisecond() {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let start = now();
    while now() == start {
        std::hint::spin_loop();
    }
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

#[test]
fn every_entry_comes_back_as_it_was() {
    let (_directory, store) = store();
    let image = r#"{"type":"image","data":"aGk=","mimeType":"image/png","_meta":{"x":1.50}}"#;
    let call = Call { id: "c1".into(), name: "read_file".into(), arguments: "{not json".into() };
    let entries = [
        Entry::Prompt {
            id: "m1".into(),
            content: vec![
                ContentBlock::text("lines\nand \"quotes\" \u{2028} \u{0} ü 🦀"),
                RawJson::new(image).unwrap().to_model().unwrap(),
            ],
        },
        Entry::Prompt { id: String::new(), content: Vec::new() },
        update(r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}"#),
        update(r#"{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"x"}}"#),
        update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"t","kind":"fetch","status":"completed",
                "rawInput":{"big":123456789012345678901234567890,"huge":1e400,"exact":1.50,"a":1,"a":2},
                "content":[{"type":"content","content":{"type":"text","text":"y"}}],"locations":[{"path":"/a","line":3}]}"#,
        ),
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":null}"#),
        update(r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}"#),
        update(r#"{"sessionUpdate":"current_mode_update","currentModeId":"code"}"#),
        update(r#"{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.1,"currency":"USD"}}"#),
        update(r#"{"sessionUpdate":"_vendor_thing","deep":[{"x":null}],"_meta":{"a":1}}"#),
        Entry::Said {
            message: Message::User {
                parts: vec![Part::text("hi"), Part::Media { mime: "image/png".into(), data: "aGk=".into() }],
            },
        },
        Entry::Said {
            message: Message::Assistant {
                text: String::new(),
                calls: vec![call],
                opaque: Some(serde_json::json!({"signature": [1, 2.5, "x"]})),
            },
        },
        Entry::Said {
            message: Message::Tool {
                id: "c1".into(),
                name: "read_file".into(),
                parts: vec![Part::text("no")],
                is_error: true,
            },
        },
        Entry::Compacted { messages: vec![Message::user("summary"), Message::user("")], summary: Some(1) },
        Entry::Compacted { messages: Vec::new(), summary: None },
        Entry::Set { option: "model".into(), value: "offline".into() },
        title("A title\nof two lines"),
        Entry::TurnEnded { stop: "end_turn".into() },
        Entry::Unknown(RawJson::new(r#"{"type":"from_the_future","n":1e400}"#).unwrap()),
        Entry::Unknown(RawJson::new(r#"{"type":"said","message":{"role":"oracle"}}"#).unwrap()),
    ];
    let mut log = store.create("s", opened("/p")).unwrap();
    for entry in &entries {
        log.append(entry).unwrap();
    }
    let all: Vec<Entry> = std::iter::once(Entry::Opened(opened("/p"))).chain(entries).collect();
    assert_eq!(store.read("s").unwrap(), all);
    drop(log);
    let (mut log, read) = store.open_log("s").unwrap();
    assert_eq!(read, all);
    log.append(&title("more")).unwrap();
    assert_eq!(store.read("s").unwrap().len(), all.len() + 1);
    // People can search it.
    let text = fs::read_to_string(path(&store, "s.log")).unwrap();
    assert_eq!(text.lines().count(), all.len() + 1);
    assert!(text.lines().nth(16).unwrap().ends_with(r#" {"type":"set","option":"model","value":"offline"}"#), "{text}");
    assert!(text.contains(r#""huge":1e400,"exact":1.50"#));
}

/// Where the store keeps a file. Found by its own word, so that tests need no word of their own for it.
fn path(store: &FileStore, name: &str) -> PathBuf {
    let debug = format!("{store:?}");
    PathBuf::from(debug.split('"').nth(1).unwrap()).join(name)
}

#[test]
fn what_would_not_come_back_is_refused_and_the_log_goes_on() {
    let (_directory, store) = store();
    let mut log = store.create("s", opened("/p")).unwrap();
    let mut deep = serde_json::json!(1);
    for _ in 0..200 {
        deep = serde_json::json!([deep]);
    }
    let message = Message::Assistant { text: "x".into(), calls: Vec::new(), opaque: Some(deep) };
    let error = log.append(&Entry::Said { message }).unwrap_err();
    assert!(matches!(error, StoreError::Unkeepable { .. }), "{error}");
    let error = log.append(&title(&"x".repeat(64 << 20))).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    log.append(&title("fine")).unwrap();
    assert_eq!(store.read("s").unwrap(), [Entry::Opened(opened("/p")), title("fine")]);
}

#[test]
fn ids_are_names_and_nothing_else() {
    let (directory, store) = store();
    let long = "x".repeat(300);
    for id in ["", "/", "..", ".", "a/b", "../a", "/etc/passwd", "a\\b", "a.b", ".a", "a b", "a\0", "ü", "a\n", &long]
    {
        let errors = [
            store.create(id, opened("/p")).err(),
            store.open_log(id).err(),
            store.read(id).err(),
            store.salvage(id).err(),
            store.delete(id).err(),
            store.fork(id, "x", opened("/p")).err(),
            store.fork("x", id, opened("/p")).err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert!(matches!(error, StoreError::WrongId(_)), "{id}: {error}");
            assert!(error.to_string().len() < 200 && !error.to_string().contains('\0'), "{error}");
        }
    }
    for id in ["a", "A-b_9", "0123456789abcdef", &"x".repeat(128)] {
        store.create(id, opened("/p")).unwrap();
    }
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), 4);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn nobody_else_can_read_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("wide");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let store = FileStore::open(&place).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    log.sync().unwrap();
    store.fork("s", "f", opened("/p")).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    let files: Vec<_> = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600));
}

#[test]
fn missing_and_unfinished_sessions_are_none() {
    let (_directory, store) = store();
    // What is left when a process dies between taking a name and having written the beginning.
    fs::write(path(&store, "unfinished.log"), "").unwrap();
    for id in ["nothing", "unfinished"] {
        assert!(matches!(store.read(id), Err(StoreError::NotFound(_))));
        assert!(matches!(store.open_log(id), Err(StoreError::NotFound(_))));
        assert!(matches!(store.fork(id, "f", opened("/p")), Err(StoreError::NotFound(_))));
        assert_eq!(store.list(&Query::default()).unwrap(), Page::default());
    }
    store.delete("nothing").unwrap();
    store.delete("unfinished").unwrap();
    store.create("unfinished", opened("/p")).unwrap();
    assert!(matches!(store.create("unfinished", opened("/p")), Err(StoreError::Exists(_))));
    store.create("s", opened("/p")).unwrap().sync().unwrap();
    store.delete("unfinished").unwrap();
    store.delete("s").unwrap();
    store.delete("s").unwrap();
    assert!(matches!(store.read("s"), Err(StoreError::NotFound(_))));
    assert_eq!(fs::read_dir(path(&store, "")).unwrap().count(), 0);
}

#[test]
fn a_fork_begins_with_what_the_other_has() {
    let (_directory, store) = store();
    let mut log = store.create("a", opened("/p")).unwrap();
    let unknown = Entry::Unknown(RawJson::new(r#"{"type":"new","x":1.0}"#).unwrap());
    for entry in [title("one"), unknown.clone(), prompt("hello")] {
        log.append(&entry).unwrap();
    }
    // The other may be open.
    let (mut fork, entries) = store.fork("a", "b", opened("/q")).unwrap();
    assert_eq!(entries, [Entry::Opened(opened("/q")), title("one"), unknown, prompt("hello")]);
    assert_eq!(store.read("b").unwrap(), entries);
    fork.append(&title("two")).unwrap();
    fork.sync().unwrap();
    log.append(&title("three")).unwrap();
    assert_eq!(store.read("a").unwrap().len(), 5);
    assert_eq!(store.read("b").unwrap()[4], title("two"));
    assert!(matches!(store.fork("a", "b", opened("/q")), Err(StoreError::Exists(_))));
    assert!(matches!(store.fork("a", "a", opened("/q")), Err(StoreError::Exists(_))));
    assert!(matches!(store.open_log("b"), Err(StoreError::Busy { .. })));
    drop(fork);
    store.open_log("b").unwrap();
}

#[test]
fn summaries_say_what_the_log_says() {
    let (_directory, store) = store();
    let one = || store.list(&Query::default()).unwrap().sessions.remove(0);
    let mut log = store.create("s", opened("/p")).unwrap();
    let summary = one();
    assert_eq!((summary.id.as_str(), summary.cwd.as_str()), ("s", "/p"));
    assert_eq!((summary.directories, summary.created.as_str()), (vec!["/other".into()], "2026-11-15T09:30:00.125Z"));
    assert_eq!((summary.title, summary.prompts), (None, 0));
    assert!(summary.updated.starts_with("20") && summary.updated.ends_with('Z'), "{}", summary.updated);
    log.append(&Entry::Prompt { id: "1".into(), content: vec![ContentBlock::text(" \n ")] }).unwrap();
    assert_eq!((one().title, one().prompts), (None, 1));
    log.append(&prompt(&format!("  fix\n\tthe \u{1b}bug {}", "ü".repeat(100)))).unwrap();
    let first = format!("fix the bug {}…", "ü".repeat(68));
    assert_eq!((one().title, one().prompts), (Some(first.clone()), 2));
    log.sync().unwrap();
    log.append(&prompt("and more")).unwrap();
    assert_eq!((one().title, one().prompts), (Some(first), 3));
    log.append(&title("A title")).unwrap();
    log.append(&title("Another")).unwrap();
    assert_eq!(one().title.as_deref(), Some("Another"));
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
fn lists_are_newest_first_and_go_on_where_they_were() {
    let (_directory, store) = store();
    let mut logs = Vec::new();
    for number in 0..10 {
        next_millisecond();
        let cwd = if number % 2 == 0 { "/even" } else { "/odd" };
        logs.push(store.create(&format!("s{number}"), opened(cwd)).unwrap());
    }
    let page = |cwd: Option<&str>, cursor: Option<String>, limit| {
        let page = store.list(&Query { cwd: cwd.map(str::to_owned), cursor, limit }).unwrap();
        (page.sessions.into_iter().map(|summary| summary.id).collect::<Vec<_>>().join(" "), page.next)
    };
    assert_eq!(page(None, None, 50), ("s9 s8 s7 s6 s5 s4 s3 s2 s1 s0".into(), None));
    assert_eq!(page(Some("/odd"), None, 50).0, "s9 s7 s5 s3 s1");
    assert_eq!(page(Some("/od"), None, 50), (String::new(), None));
    assert_eq!(page(Some("/odd"), None, 5), ("s9 s7 s5 s3 s1".into(), None));
    let (first, next) = page(Some("/odd"), None, 2);
    assert_eq!((first.as_str(), page(Some("/odd"), next, 2).0.as_str()), ("s9 s7", "s5 s3"));

    let (first, next) = page(None, None, 3);
    assert_eq!(first, "s9 s8 s7");
    // New ones, and old ones that go on, come before what was seen. What is deleted is gone, wherever the list stands.
    next_millisecond();
    store.create("new", opened("/even")).unwrap();
    logs[4].append(&title("x")).unwrap();
    logs.remove(7);
    logs.remove(5);
    store.delete("s7").unwrap();
    store.delete("s5").unwrap();
    let (second, next) = page(None, next, 3);
    assert_eq!(second, "s6 s3 s2");
    assert_eq!(page(None, next, 3), ("s1 s0".into(), None));
    assert_eq!(page(None, None, 3).0, "s4 new s9");
    assert_eq!(page(None, None, 0).0, "s4");
    for cursor in ["", "x", "zz-s1", "1-", "1-../x", "-s1", "1"] {
        let query = Query { cursor: Some(cursor.into()), ..Query::default() };
        assert!(matches!(store.list(&query), Err(StoreError::WrongCursor)), "{cursor}");
    }
}

#[test]
fn no_session_is_listed_twice_or_left_out_while_others_come_and_go() {
    let (_directory, store) = store();
    let kept: BTreeSet<String> = (0..40).map(|number| format!("kept{number}")).collect();
    for id in &kept {
        store.create(id, opened("/p")).unwrap();
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let mut log = store.create(&format!("new{number}"), opened("/p")).unwrap();
                log.append(&title("x")).unwrap();
                drop(log);
                store.delete(&format!("new{}", number / 2)).unwrap();
            }
        });
        for _ in 0..5 {
            let (mut seen, mut query) = (Vec::new(), Query { limit: 7, ..Query::default() });
            loop {
                let page = store.list(&query).unwrap();
                seen.extend(page.sessions.into_iter().map(|summary| summary.id).filter(|id| kept.contains(id)));
                match page.next {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
            assert_eq!(seen.len(), kept.len());
            assert_eq!(BTreeSet::from_iter(seen), kept);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
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
fn what_one_has_opened_another_does_not_see() {
    let (_directory, store) = store();
    let (alice, bob) = (store.owned_by("alice"), store.owned_by("bob"));
    let mut log = alice.create("s", opened("/p")).unwrap();
    log.append(&title("hers")).unwrap();
    let of_alice = Entry::Opened(Opened { owner: "alice".into(), ..opened("/p") });
    assert_eq!(alice.read("s").unwrap(), [of_alice, title("hers")]);
    let other: [&dyn Store; 2] = [&store, &*bob];
    for other in other {
        // As if it did not exist: not even that it is open.
        assert_eq!(other.list(&Query::default()).unwrap(), Page::default());
        assert!(matches!(other.read("s"), Err(StoreError::NotFound(_))));
        assert!(matches!(other.salvage("s"), Err(StoreError::NotFound(_))));
        assert!(matches!(other.open_log("s"), Err(StoreError::NotFound(_))));
        assert!(matches!(other.fork("s", "f", opened("/p")), Err(StoreError::NotFound(_))));
        assert!(!other.delete("s").unwrap());
        other.ask_to_release("s").unwrap();
    }
    log.append(&title("still hers")).unwrap();
    assert!(matches!(alice.open_log("s"), Err(StoreError::Busy { .. })));
    drop(log);
    assert!(!bob.delete("s").unwrap());
    let (_, entries) = alice.fork("s", "f", opened("/q")).unwrap();
    assert_eq!(entries[0], Entry::Opened(Opened { owner: "alice".into(), ..opened("/q") }));
    assert_eq!(alice.list(&Query::default()).unwrap().sessions.len(), 2);
    // What is of an owner says so, whatever it was told to be.
    bob.create("b", Opened { owner: "alice".into(), ..opened("/p") }).unwrap();
    assert!(matches!(alice.read("b"), Err(StoreError::NotFound(_))));
    assert!(alice.delete("s").unwrap());
    assert_eq!(store.clone().of_everyone().list(&Query::default()).unwrap().sessions.len(), 2);
}
