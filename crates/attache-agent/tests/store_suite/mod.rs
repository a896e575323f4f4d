//! What holds for every store: a function for each behaviour, which takes an empty store.
//!
//! `store_suite!(MAKE)` makes tests of all of them. `MAKE` is a function that gives an empty store and what has to live as
//! long as it, or nothing where there is no such store.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by tests, which fail by panicking")]

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use attache::model::content::ContentBlock;
use attache::proto::json::RawJson;
use attache_agent::model::{Call, Message, Part};
use attache_agent::store::{Entry, Kept, Log, Opened, Page, Query, Store, StoreError};

/// Makes tests of all that holds for every store.
#[macro_export]
macro_rules! store_suite {
    ($make:path) => {
        store_suite! { $make;
            every_entry_comes_back_as_it_was
            what_would_not_come_back_is_refused_and_the_log_goes_on
            ids_are_names_and_nothing_else
            a_fork_begins_with_what_the_other_has
            summaries_say_what_the_log_says
            lists_are_newest_first_and_go_on_where_they_were
            no_session_is_listed_twice_or_left_out_while_others_come_and_go
            what_one_has_opened_another_does_not_see
            missing_sessions_are_none
            one_of_many_threads_writes
            those_who_delete_and_those_who_write_do_not_meet
            readers_beside_a_writer_see_a_beginning_of_what_it_writes
            old_sessions_go_and_open_ones_stay
            entries_that_are_added_together_are_there_in_order
        }
    };
    ($make:path; $($behaviour:ident)*) => {
        $(
            #[test]
            fn $behaviour() {
                if let Some((_place, store)) = $make() {
                    store_suite::$behaviour(&store);
                }
            }
        )*
    };
}

pub fn opened(cwd: &str) -> Opened {
    Opened {
        cwd: cwd.into(),
        directories: vec!["/other".into()],
        created: "2026-11-15T09:30:00.125Z".into(),
        ..Opened::default()
    }
}

pub fn title(title: &str) -> Entry {
    Entry::Title { title: title.into() }
}

pub fn prompt(text: &str) -> Entry {
    Entry::Prompt { id: "m".into(), content: vec![ContentBlock::text(text)] }
}

pub fn update(json: &str) -> Entry {
    Entry::Update { update: Box::new(RawJson::new(json).unwrap().to_model().unwrap()) }
}

pub fn next_millisecond() {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let start = now();
    while now() == start {
        std::hint::spin_loop();
    }
}

pub fn every_entry_comes_back_as_it_was(store: &dyn Store) {
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
}

pub fn what_would_not_come_back_is_refused_and_the_log_goes_on(store: &dyn Store) {
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

pub fn ids_are_names_and_nothing_else(store: &dyn Store) {
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
}

pub fn a_fork_begins_with_what_the_other_has(store: &dyn Store) {
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

pub fn summaries_say_what_the_log_says(store: &dyn Store) {
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
    assert_eq!(one(), known);
}

pub fn lists_are_newest_first_and_go_on_where_they_were(store: &dyn Store) {
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

pub fn no_session_is_listed_twice_or_left_out_while_others_come_and_go(store: &dyn Store) {
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

pub fn what_one_has_opened_another_does_not_see(store: &dyn Store) {
    let (alice, bob) = (store.owned_by("alice"), store.owned_by("bob"));
    let mut log = alice.create("s", opened("/p")).unwrap();
    log.append(&title("hers")).unwrap();
    let of_alice = Entry::Opened(Opened { owner: "alice".into(), ..opened("/p") });
    assert_eq!(alice.read("s").unwrap(), [of_alice, title("hers")]);
    let other: [&dyn Store; 2] = [store, &*bob];
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
    assert_eq!(alice.list(&Query::default()).unwrap().sessions.len(), 1);
    assert_eq!(store.list(&Query::default()).unwrap(), Page::default());
}

pub fn missing_sessions_are_none(store: &dyn Store) {
    for id in ["nothing", "none"] {
        assert!(matches!(store.read(id), Err(StoreError::NotFound(_))));
        assert!(matches!(store.open_log(id), Err(StoreError::NotFound(_))));
        assert!(matches!(store.fork(id, "f", opened("/p")), Err(StoreError::NotFound(_))));
        assert_eq!(store.list(&Query::default()).unwrap(), Page::default());
    }
    store.delete("nothing").unwrap();
    store.delete("none").unwrap();
    store.create("none", opened("/p")).unwrap();
    assert!(matches!(store.create("none", opened("/p")), Err(StoreError::Exists(_))));
    store.create("s", opened("/p")).unwrap().sync().unwrap();
    store.delete("none").unwrap();
    store.delete("s").unwrap();
    store.delete("s").unwrap();
    assert!(matches!(store.read("s"), Err(StoreError::NotFound(_))));
    assert_eq!(store.list(&Query::default()).unwrap(), Page::default());
}

pub fn one_of_many_threads_writes(store: &dyn Store) {
    let created = |_| store.create("s", opened("/p")).ok();
    let logs: Vec<Box<dyn Log>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || created(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(logs.len(), 1);
    for attempt in [store.open_log("s").err(), store.delete("s").err()] {
        let error = attempt.unwrap();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    }
    drop(logs);
    let found: Vec<(Box<dyn Log>, Vec<Entry>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| store.open_log("s").ok())).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found.len(), 1);
    drop(found);
    store.delete("s").unwrap();
}

pub fn those_who_delete_and_those_who_write_do_not_meet(store: &dyn Store) {
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..100 {
                    let text = format!("{writer} {round}");
                    let log = store.create("s", opened("/p")).or_else(|_| store.open_log("s").map(|(log, _)| log));
                    let Ok(mut log) = log else { continue };
                    log.append(&title(&text)).unwrap();
                    // Whoever has the log open finds in it what it wrote.
                    assert!(store.read("s").unwrap().contains(&title(&text)));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..300 {
                match store.delete("s") {
                    Ok(_) | Err(StoreError::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    });
}

pub fn readers_beside_a_writer_see_a_beginning_of_what_it_writes(store: &dyn Store) {
    let mut log = store.create("s", opened("/p")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..1000 {
                log.append(&title(&number.to_string())).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 1001 {
            let entries = store.read("s").unwrap();
            assert!(entries.len() >= seen);
            seen = entries.len();
            assert!(entries[1..].iter().enumerate().all(|(number, entry)| *entry == title(&number.to_string())));
        }
    });
}

pub fn old_sessions_go_and_open_ones_stay(store: &dyn Store) {
    let open = store.create("open", opened("/p")).unwrap();
    let all = [("alice", "first"), ("bob", "middle"), ("alice", "second"), ("alice", "third"), ("", "newest")];
    for (owner, id) in all {
        next_millisecond();
        let mut log = store.owned_by(owner).create(id, opened("/p")).unwrap();
        log.append(&prompt(&"x".repeat(1000))).unwrap();
    }
    let everything = Kept { sessions: 9, bytes: u64::MAX, age: None };
    assert_eq!(store.prune(everything).unwrap(), [""; 0]);
    // What one keeps takes no room from another.
    assert_eq!(store.prune(Kept { sessions: 2, ..everything }).unwrap(), ["first"]);
    assert_eq!(store.prune(Kept { bytes: 1500, ..everything }).unwrap(), ["second"]);
    assert_eq!(store.prune(Kept { sessions: 0, ..everything }).unwrap(), [""; 0]);
    drop(open);
    assert_eq!(store.prune(Kept::for_age(Duration::from_secs(60))).unwrap(), [""; 0]);
    next_millisecond();
    let mut gone = store.prune(Kept::for_age(Duration::ZERO)).unwrap();
    gone.sort();
    assert_eq!(gone, ["middle", "newest", "open", "third"]);
}

pub fn entries_that_are_added_together_are_there_in_order(store: &dyn Store) {
    let mut log = store.create("s", opened("/p")).unwrap();
    let mut expected = vec![Entry::Opened(opened("/p"))];
    for length in [0, 1, 2, 64] {
        let entries: Vec<Entry> = (0..length).map(|number| prompt(&format!("{length} {number}"))).collect();
        log.append_all(&entries.iter().collect::<Vec<_>>()).unwrap();
        expected.extend(entries);
    }
    // More than goes at once.
    let large: Vec<Entry> = (0..5).map(|number| title(&format!("{number}{}", "x".repeat(3 << 20)))).collect();
    log.append_all(&large.iter().collect::<Vec<_>>()).unwrap();
    expected.extend(large);
    // What stands before one that cannot be kept is there, and what comes after it is not.
    let too_large = title(&"x".repeat(64 << 20));
    let (added, error) = log.append_all(&[&title("a"), &title("b"), &too_large, &title("c")]).unwrap_err();
    assert!(added == 2 && matches!(error, StoreError::TooLarge { .. }), "{added} {error}");
    expected.extend([title("a"), title("b")]);
    assert_eq!(store.read("s").unwrap(), expected);
    let listed = store.list(&Query::default()).unwrap().sessions.remove(0);
    assert_eq!((listed.prompts, listed.title.as_deref()), (67, Some("b")));
    drop(log);
    assert_eq!(store.open_log("s").unwrap().1, expected);
}
