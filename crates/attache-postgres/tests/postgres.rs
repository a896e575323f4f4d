//! What only a store has that several servers share: leases, fences, hand-over, a database that is away.

// On Unix, because the database that they start is a program of Unix.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../attache-agent/tests/store_suite/mod.rs"]
mod store_suite;
mod support;

use std::time::{Duration, Instant};

use attache_agent::store::{Entry, Kept, Log, Query, Store, StoreError};
use attache_postgres::{Change, PostgresStore};
use store_suite::{opened, prompt, title};
use support::proxy::Proxy;
use support::{Server, settings, shared};

/// Two servers on one database.
fn two() -> Option<(String, PostgresStore, PostgresStore)> {
    let (url, one) = support::store()?;
    let mut other = settings(&url);
    other.address = Some("https://two.example".into());
    Some((url, one, PostgresStore::connect(other).unwrap()))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Opens a session as soon as its lease has ended.
fn open_when_free(store: &dyn Store, id: &str) -> (Box<dyn Log>, Vec<Entry>) {
    let mut opened = None;
    wait_until("the lease does not end", || {
        opened = match store.open_log(id) {
            Err(StoreError::Busy { .. }) => None,
            found => Some(found.unwrap()),
        };
        opened.is_some()
    });
    opened.unwrap()
}

#[test]
fn a_session_is_busy_at_the_address_of_the_server_that_has_it() {
    let Some((_, one, two)) = two() else { return };
    let log = one.create("s", opened("/p")).unwrap();
    for error in [two.open_log("s").err(), two.delete("s").err(), one.open_log("s").err()] {
        let Some(StoreError::Busy { holder, .. }) = error else { panic!("{error:?}") };
        assert_eq!(holder.as_deref(), Some("https://one.example"));
    }
    // It is renewed for as long as it is open.
    std::thread::sleep(Duration::from_millis(4000));
    assert!(matches!(two.open_log("s"), Err(StoreError::Busy { .. })));
    drop(log);
    wait_until("it is not given back", || two.open_log("s").is_ok());
}

#[test]
fn the_database_refuses_a_writer_that_lost_its_lease() {
    let Some((url, one, two)) = two() else { return };
    let mut old = one.create("s", opened("/p")).unwrap();
    old.append(&prompt("a")).unwrap();
    let lost = old.lost();
    // As if the first server had been stopped for so long: the lease has ended and it does not know.
    shared().unwrap().psql(&url, "update attache_session set lease_until = now() - interval '1 s'");
    let (mut new, entries) = two.open_log("s").unwrap();
    assert_eq!(entries.len(), 2);
    for _ in 0..3 {
        let error = old.append(&title("too late")).unwrap_err();
        let StoreError::Lost { holder, .. } = error else { panic!("{error}") };
        assert_eq!(holder.as_deref(), Some("https://two.example"));
    }
    assert!(*lost.borrow());
    new.append(&title("b")).unwrap();
    drop(old);
    // What the old one gives back is not the new one's.
    new.append(&title("c")).unwrap();
    assert!(matches!(one.open_log("s"), Err(StoreError::Busy { .. })));
    assert_eq!(one.read("s").unwrap()[2..], [title("b"), title("c")]);
    // Nor does a statement get through that checks nothing but its place.
    let fences =
        shared().unwrap().psql(&url, "select string_agg(fence::text, ' ' order by number) from attache_record");
    assert_eq!(fences, "1 1 2 2");
}

#[test]
fn of_many_servers_one_writes() {
    let Some((url, one)) = support::store() else { return };
    drop(one.create("s", opened("/p")).unwrap());
    let stores: Vec<PostgresStore> = (0..4).map(|_| PostgresStore::connect(settings(&url)).unwrap()).collect();
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..5 {
                    let (mut log, before) = open_when_free(store, "s");
                    let text = format!("{number} {round}");
                    log.append(&title(&text)).unwrap();
                    log.append(&title(&text)).unwrap();
                    let entries = store.read("s").unwrap();
                    assert_eq!(entries[..before.len()], before);
                    assert_eq!(entries[before.len()..], [title(&text), title(&text)], "nobody else writes meanwhile");
                }
            });
        }
    });
    assert_eq!(one.read("s").unwrap().len(), 1 + 4 * 5 * 2);
}

#[test]
fn an_idle_session_is_handed_over_and_one_with_a_turn_is_not() {
    let Some((_, one, two)) = two() else { return };
    let mut log = one.create("s", opened("/p")).unwrap();
    log.append(&prompt("work")).unwrap();
    two.ask_to_release("s").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(matches!(two.open_log("s"), Err(StoreError::Busy { .. })));
    log.append(&Entry::TurnEnded { stop: "end_turn".into() }).unwrap();
    // Somebody else asks in vain.
    two.owned_by("bob").ask_to_release("s").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(matches!(two.open_log("s"), Err(StoreError::Busy { .. })));
    two.ask_to_release("s").unwrap();
    let mut new = None;
    let start = Instant::now();
    wait_until("it is not handed over", || {
        new = two.open_log("s").ok();
        new.is_some()
    });
    assert!(start.elapsed() < Duration::from_secs(1), "sooner than the lease ends");
    assert!(*log.lost().borrow());
    let error = log.append(&prompt("more")).unwrap_err();
    assert!(
        matches!(&error, StoreError::Lost { holder: Some(holder), .. } if holder == "https://two.example"),
        "{error}"
    );
    new.unwrap().0.append(&prompt("more")).unwrap();
}

#[test]
fn changes_of_lists_are_told_to_all_servers() {
    let Some((_, one, two)) = two() else { return };
    let mut changes = two.changes();
    let told = |changes: &mut tokio::sync::broadcast::Receiver<Change>| {
        wait_until("nothing is told", || changes.try_recv() == Ok(Change::Session { id: "s".into() }));
    };
    let mut log = one.create("s", opened("/p")).unwrap();
    told(&mut changes);
    log.append(&prompt("hello")).unwrap();
    told(&mut changes);
    for _ in 0..3 {
        log.append(&Entry::TurnEnded { stop: "end_turn".into() }).unwrap();
    }
    log.append(&title("new")).unwrap();
    told(&mut changes);
    assert!(changes.try_recv().is_err(), "most records are nothing to a list");
    drop(log);
    assert!(one.delete("s").unwrap());
    told(&mut changes);
}

#[test]
fn the_answer_that_was_lost_is_found_and_nothing_is_written_twice() {
    let Some(server) = shared() else { return };
    let (url, direct) = support::store().unwrap();
    let proxy = Proxy::new(server.port());
    let store = PostgresStore::connect(settings(&server.tcp_url(&url, Some(proxy.port())))).unwrap();
    let mut expected = vec![];
    for round in 0..8 {
        // Everything that a session does, with its first answer cut off.
        proxy.cut_at_answer(0);
        let mut log =
            if round == 0 { store.create("s", opened("/p")).unwrap() } else { store.open_log("s").unwrap().0 };
        for number in 0..5 {
            let entry = title(&format!("{round} {number}"));
            // The same text again and again is as many records.
            for _ in 0..2 {
                proxy.cut_at_answer(number % 3);
                log.append(&entry).unwrap();
                expected.push(entry.clone());
            }
        }
        let together: Vec<Entry> = (0..4).map(|number| title(&format!("{round} together {number}"))).collect();
        proxy.cut_at_answer(0);
        log.append_all(&together.iter().collect::<Vec<_>>()).unwrap();
        expected.extend(together);
        proxy.cut_at_answer(0);
        drop(log);
        proxy.cut_at_answer(0);
        assert_eq!(store.read("s").unwrap()[1..], expected, "{round}");
    }
    proxy.cut_at_answer(0);
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), 1);
    assert_eq!(direct.read("s").unwrap()[1..], expected);
}

#[test]
fn when_the_database_cannot_be_reached_calls_wait_and_then_fail_by_name() {
    let Some(server) = shared() else { return };
    let (url, direct) = support::store().unwrap();
    let proxy = Proxy::new(server.port());
    let mut impatient = settings(&server.tcp_url(&url, Some(proxy.port())));
    impatient.patience = Duration::from_secs(1);
    impatient.lease = Duration::from_secs(30);
    let store = PostgresStore::connect(impatient).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    log.append(&title("a")).unwrap();
    // For a moment: it waits.
    proxy.close();
    std::thread::scope(|scope| {
        let append = scope.spawn(|| log.append(&title("b")));
        std::thread::sleep(Duration::from_millis(300));
        proxy.open();
        append.join().unwrap().unwrap();
    });
    // For longer: it fails by name, and the log goes on later.
    proxy.close();
    let start = Instant::now();
    for error in [log.append(&title("c")).err(), store.read("s").err(), store.list(&Query::default()).err()] {
        let error = error.unwrap();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        assert!(error.to_string().starts_with("sessions cannot be reached: "), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    proxy.open();
    log.append(&title("c")).unwrap();
    log.append(&title("d")).unwrap();
    // Written, not heard of, given up and done again: it is there once. Another one in its place comes after it.
    for again in [title("e"), title("f")] {
        proxy.cut_at_answer(0);
        std::thread::scope(|scope| {
            let append = scope.spawn(|| log.append(&title("e")));
            std::thread::sleep(Duration::from_millis(10));
            proxy.close();
            let _ = append.join().unwrap();
        });
        proxy.cut_at_answer(-1);
        proxy.open();
        log.append(&again).unwrap();
    }
    let read: Vec<String> = direct.read("s").unwrap()[1..]
        .iter()
        .map(|entry| match entry {
            Entry::Title { title } => title.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let read = read.concat();
    // An entry that was given up may be there, once.
    assert!(["abcdef", "abcdeef", "abcdeeef"].contains(&read.as_str()), "{read}");
}

#[test]
fn what_runs_on_a_lease_that_cannot_be_renewed_is_stopped_before_another_server_begins() {
    let Some(server) = shared() else { return };
    let (url, direct) = support::store().unwrap();
    let proxy = Proxy::new(server.port());
    let store = PostgresStore::connect(settings(&server.tcp_url(&url, Some(proxy.port())))).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    log.append(&prompt("work")).unwrap();
    let lost = log.lost();
    proxy.close();
    let (mut new, _) = open_when_free(&direct, "s");
    assert!(*lost.borrow(), "it was told before the other one could begin");
    let error = log.append(&title("x")).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    proxy.open();
    wait_until("it does not learn that it lost the session", || {
        matches!(log.append(&title("x")), Err(StoreError::Lost { .. }))
    });
    new.append(&title("y")).unwrap();

    // If nobody else wanted it, it goes on.
    let mut log = store.create("t", opened("/p")).unwrap();
    let lost = log.lost();
    proxy.close();
    wait_until("it is not told", || *lost.borrow());
    proxy.open();
    wait_until("it does not go on", || !*lost.borrow());
    log.append(&title("x")).unwrap();
}

#[test]
fn a_database_that_is_stopped_or_restarted_loses_nothing() {
    let Some(server) = Server::start() else { return };
    let mut patient = settings(&server.new_database());
    patient.lease = Duration::from_secs(60);
    let store = PostgresStore::connect(patient).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    let mut expected = Vec::new();
    let mut append = |log: &mut dyn Log, text: &str| {
        log.append(&title(text)).unwrap();
        expected.push(title(text));
    };
    append(&mut *log, "before");
    for (round, disturb) in ["pause", "INT", "QUIT", "pause"].into_iter().enumerate() {
        std::thread::scope(|scope| {
            match disturb {
                "pause" => server.pause(),
                signal => server.stop(signal),
            }
            scope.spawn(|| {
                // Longer than an attempt takes to fail.
                std::thread::sleep(Duration::from_millis(700));
                match disturb {
                    "pause" => server.go_on(),
                    _ => server.launch(),
                }
            });
            append(&mut *log, &format!("{round}"));
            append(&mut *log, &format!("{round} more"));
        });
    }
    drop(log);
    assert_eq!(store.open_log("s").unwrap().1[1..], expected);
}

#[test]
fn a_paused_database_does_not_hold_anybody_for_longer_than_it_may() {
    let Some(server) = Server::start() else { return };
    let url = server.new_database();
    let mut impatient = settings(&url);
    impatient.statement_timeout = Duration::from_millis(300);
    impatient.connect_timeout = Duration::from_millis(300);
    impatient.patience = Duration::from_millis(1500);
    impatient.lease = Duration::from_secs(60);
    let store = PostgresStore::connect(impatient).unwrap();
    let mut log = store.create("s", opened("/p")).unwrap();
    server.pause();
    let start = Instant::now();
    let error = log.append(&title("x")).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.go_on();
    // What was under way may have been done by then; it is there once.
    log.append(&title("x")).unwrap();
    assert_eq!(store.read("s").unwrap()[1..], [title("x")]);
}

#[test]
fn tables_are_made_once_and_those_of_a_newer_version_are_left_alone() {
    let Some(server) = shared() else { return };
    let url = server.new_database();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| PostgresStore::connect(settings(&url)).unwrap());
        }
    });
    assert_eq!(server.psql(&url, "select count(*) from attache_migration"), "1");
    server.psql(&url, "insert into attache_migration (version) values (7)");
    let error = PostgresStore::connect(settings(&url)).unwrap_err();
    assert_eq!(error.to_string(), "the database refused: its tables are of version 7, and this program knows 1");
}

#[test]
fn damage_is_noticed() {
    let Some((url, store)) = support::store() else { return };
    let server = shared().unwrap();
    for (damage, good) in [
        ("delete from attache_record where session = 's' and number = 2", 2),
        ("update attache_record set entry = 'x' where session = 's' and number = 1", 1),
        ("update attache_record set entry = '{}' where session = 's' and number = 0", 0),
        ("delete from attache_record where session = 's' and number = 3", 3),
    ] {
        let mut log = store.create("s", opened("/p")).unwrap();
        for text in ["1", "2", "3"] {
            log.append(&title(text)).unwrap();
        }
        drop(log);
        server.psql(&url, damage);
        let error = store.open_log("s").unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { offset, .. } if *offset == good), "{damage}: {error}");
        if good == 0 {
            assert!(store.fork("s", "f", opened("/p")).is_err());
        } else {
            let (fork, entries) = store.fork("s", "f", opened("/p")).unwrap();
            assert_eq!(entries.len() as u64, good, "{damage}");
            drop(fork);
            store.delete("f").unwrap();
        }
        // The lease was given back.
        assert!(store.delete("s").unwrap());
    }
}

#[test]
fn there_are_no_more_connections_than_allowed() {
    let Some(server) = shared() else { return };
    let url = server.new_database();
    let mut few = settings(&format!("{url}?application_name=few"));
    few.connections = 3;
    let store = PostgresStore::connect(few).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let store = &store;
            scope.spawn(move || {
                let mut log = store.create(&format!("s{thread}"), opened("/p")).unwrap();
                for _ in 0..20 {
                    log.append(&title("x")).unwrap();
                }
            });
        }
        for _ in 0..10 {
            let count = server.psql(&url, "select count(*) from pg_stat_activity where application_name = 'few'");
            // One more listens; and one that was closed may be there for a moment.
            assert!(count.parse::<u32>().unwrap() <= 5, "{count}");
        }
    });
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), 12);
}

#[test]
fn a_connection_over_tls_checks_the_certificate_and_shows_no_password() {
    let Some(server) = Server::start() else { return };
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    server.write("server.crt", &issued.cert.pem());
    server.write("server.key", &issued.signing_key.serialize_pem());
    server.write("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
    server.configure("ssl = on");
    server.psql("postgres", "alter user attache password 'correct-horse'");
    server.stop("INT");
    server.launch();
    let database = server.new_database();
    let database = database.rsplit('/').next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (right, wrong) = (directory.path().join("right.pem"), directory.path().join("wrong.pem"));
    std::fs::write(&right, issued.cert.pem()).unwrap();
    std::fs::write(&wrong, other.cert.pem()).unwrap();
    let connect = |host: &str, password: &str, parameters: &str| {
        let url = format!("postgres://attache:{password}@{host}:{}/{database}?{parameters}", server.port());
        let mut settings = settings(&url);
        settings.patience = Duration::from_secs(5);
        PostgresStore::connect(settings)
    };
    let right = format!("sslrootcert={}", right.display());
    let store = connect("localhost", "correct-horse", &format!("sslmode=verify-full&{right}")).unwrap();
    store.create("s", opened("/p")).unwrap().append(&title("x")).unwrap();
    assert!(!format!("{store:?}").contains("correct-horse"), "{store:?}");
    let start = Instant::now();
    for (host, password, parameters) in [
        // Another issuer, the system's issuers, another name, no TLS, another password, no such file.
        ("localhost", "correct-horse", format!("sslmode=require&sslrootcert={}", wrong.display())),
        ("localhost", "correct-horse", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", "correct-horse", format!("sslmode=verify-full&{right}")),
        ("localhost", "correct-horse", "sslmode=disable".to_owned()),
        ("localhost", "battery-staple", format!("sslmode=require&{right}")),
        ("localhost", "correct-horse", "sslmode=require&sslrootcert=/none.pem".to_owned()),
    ] {
        let error = connect(host, password, &parameters).unwrap_err();
        assert!(matches!(error, StoreError::Database { .. }), "{parameters}: {error}");
        let said = format!("{error} {error:?}");
        assert!(!said.contains("correct-horse") && !said.contains("battery-staple"), "{said}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "what does not go away is not waited for");
}

#[test]
fn sessions_are_pruned_for_all_owners_by_the_database() {
    let Some((url, one, two)) = two() else { return };
    for owner in ["", "alice", "bob"] {
        drop(one.owned_by(owner).create(&format!("s{owner}"), opened("/p")).unwrap());
    }
    let _open = one.owned_by("carol").create("scarol", opened("/p")).unwrap();
    shared()
        .unwrap()
        .psql(&url, "update attache_session set updated = updated - 40 * 86400000::bigint where id <> 's'");
    let mut gone = two.prune(Kept::for_age(Duration::from_secs(30 * 86400))).unwrap();
    gone.sort();
    assert_eq!(gone, ["salice", "sbob"]);
    assert_eq!(shared().unwrap().psql(&url, "select count(*) from attache_record"), "2");
    // Many are deleted a few at a time.
    shared().unwrap().psql(
        &url,
        "insert into attache_session select 'many' || n, '', '', '{}', '', null, null, 0, 0, 0, n, 1 \
         from generate_series(1, 250) as n",
    );
    let gone = two.prune(Kept { sessions: 2, bytes: u64::MAX, age: None }).unwrap();
    // Of one owner, of whom two stay; another one's is nothing to them.
    assert_eq!(gone.len(), 249);
}

/// What it costs to keep a record, in each store. Nothing is promised of times: this is for those who want to know.
#[test]
fn what_a_record_costs() {
    let Some((_, postgres)) = support::store() else { return };
    let directory = tempfile::tempdir().unwrap();
    let files = attache_agent::store::FileStore::open(directory.path()).unwrap();
    let cost = |store: &dyn Store, is_synced: bool, at_once: usize| {
        let mut log = store.create("cost", opened("/p")).unwrap();
        let (entry, count) = (title(&"x".repeat(100)), 200);
        let start = Instant::now();
        for _ in 0..count {
            log.append_all(&vec![&entry; at_once]).unwrap();
            if is_synced {
                log.sync().unwrap();
            }
        }
        let cost = start.elapsed() / count / at_once as u32;
        drop(log);
        store.delete("cost").unwrap();
        cost
    };
    support::say(&format!(
        "a record of 100 bytes costs {:.1?} in a file, {:.1?} in a file with `sync`, {:.1?} in PostgreSQL on a socket, \
         {:.1?} of 64 at once",
        cost(&files, false, 1),
        cost(&files, true, 1),
        cost(&postgres, true, 1),
        cost(&postgres, true, 64)
    ));
}
