//! Sessions on disk when things go wrong: torn tails, flipped bytes, killed writers, two writers, a full disk.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attache::model::content::ContentBlock;
use attache_agent::store::{Entry, FileStore, Opened, Query, Store, StoreError};
use attache_testkit::Dice;
use tempfile::TempDir;

fn opened() -> Opened {
    Opened {
        cwd: "/p".into(),
        directories: Vec::new(),
        created: "2026-11-15T09:30:00.125Z".into(),
        ..Opened::default()
    }
}

fn title(title: &str) -> Entry {
    Entry::Title { title: title.into() }
}

struct Desk {
    directory: TempDir,
    store: FileStore,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        Desk { directory, store }
    }

    /// A desk with a session `s` of some entries.
    fn with_session() -> (Self, Vec<Entry>) {
        let desk = Desk::new();
        let mut log = desk.store.create("s", opened()).unwrap();
        let content = vec![ContentBlock::text("hello\nü")];
        let more = [
            Entry::Prompt { id: "m".into(), content },
            Entry::Set { option: "a".into(), value: "b".into() },
            title("x"),
            Entry::TurnEnded { stop: "end_turn".into() },
        ];
        for entry in &more {
            log.append(entry).unwrap();
        }
        drop(log);
        let entries = desk.store.read("s").unwrap();
        assert_eq!(entries[1..], more);
        (desk, entries)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("s.log")
    }
}

/// Where the lines of a text begin, and its end.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn a_tail_that_was_torn_at_any_byte_is_cut_off() {
    let (desk, entries) = Desk::with_session();
    let whole = fs::read(desk.path()).unwrap();
    let starts = starts(&whole);
    let last = starts[starts.len() - 2];
    let kept = &entries[..entries.len() - 1];
    for end in last..whole.len() {
        for rest in [&b""[..], b"\0\0\0\0", b"\0\n\0\n", b"\n", b"garbage\n1 2 3\n"] {
            let torn = [&whole[..end], rest].concat();
            if torn == whole {
                continue;
            }
            fs::write(desk.path(), &torn).unwrap();
            assert_eq!(desk.store.read("s").unwrap(), kept, "{end} {rest:?}");
            assert_eq!(fs::read(desk.path()).unwrap(), torn, "who reads does not write");
            let (mut log, read) = desk.store.open_log("s").unwrap();
            assert_eq!(read, kept, "{end} {rest:?}");
            assert_eq!(fs::read(desk.path()).unwrap(), whole[..last]);
            log.append(&title("more")).unwrap();
            assert_eq!(desk.store.read("s").unwrap().len(), entries.len());
        }
    }
}

#[test]
fn a_list_forgets_what_was_cut_off() {
    let (desk, _) = Desk::with_session();
    let titles = || desk.store.list(&Query::default()).unwrap().sessions.remove(0).title.unwrap();
    let (mut log, _) = desk.store.open_log("s").unwrap();
    log.append(&title("wrong")).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(titles(), "wrong");
    let whole = fs::read(desk.path()).unwrap();
    fs::write(desk.path(), &whole[..whole.len() - 3]).unwrap();
    assert_eq!(titles(), "x");
    let (mut log, _) = desk.store.open_log("s").unwrap();
    // As long as what was cut off, and longer.
    log.append(&title("right")).unwrap();
    assert_eq!(titles(), "right");
    log.append(&Entry::TurnEnded { stop: "x".into() }).unwrap();
    assert_eq!(titles(), "right");
}

#[test]
fn a_flipped_byte_anywhere_is_noticed() {
    let (desk, entries) = Desk::with_session();
    let whole = fs::read(desk.path()).unwrap();
    let starts = starts(&whole);
    let last = starts[starts.len() - 2];
    for at in 0..whole.len() {
        let number = starts.iter().rposition(|start| *start <= at).unwrap();
        for mask in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, whole[at] ^ b'\n', whole[at] ^ b'0'] {
            if mask == 0 {
                continue;
            }
            let mut changed = whole.clone();
            changed[at] ^= mask;
            fs::write(desk.path(), &changed).unwrap();
            if at >= last {
                assert_eq!(desk.store.read("s").unwrap(), entries[..number], "{at} {mask:02x}");
                continue;
            }
            let error = desk.store.read("s").unwrap_err();
            let StoreError::Damaged { offset, .. } = &error else { panic!("{at} {mask:02x}: {error}") };
            assert_eq!(*offset as usize, starts[number], "{at} {mask:02x}");
            assert!(error.to_string().contains("s.log` is damaged at byte"), "{error}");
            assert!(matches!(desk.store.open_log("s"), Err(StoreError::Damaged { .. })), "{at} {mask:02x}");
            assert_eq!(fs::read(desk.path()).unwrap(), changed, "nothing is written to a damaged log");
            if number == 0 {
                assert!(matches!(desk.store.salvage("s"), Err(StoreError::Damaged { .. })));
                continue;
            }
            // What stands before the damage can be read, listed and gone on with.
            let (read, damage) = desk.store.salvage("s").unwrap();
            assert_eq!(read, entries[..number], "{at} {mask:02x}");
            assert!(matches!(damage, Some(StoreError::Damaged { .. })));
            let (fork, read) = desk.store.fork("s", "fork", opened()).unwrap();
            assert_eq!(read, entries[..number]);
            drop(fork);
            assert_eq!(desk.store.list(&Query::default()).unwrap().sessions.len(), 2);
            desk.store.delete("fork").unwrap();
        }
    }
}

#[test]
fn records_that_are_missing_or_out_of_order_are_noticed() {
    let (desk, entries) = Desk::with_session();
    let whole = fs::read(desk.path()).unwrap();
    let starts = starts(&whole);
    let line = |number: usize| whole[starts[number]..starts[number + 1]].to_vec();
    let rows: [(&[usize], usize); 6] = [
        (&[0, 2, 3, 4], 1),
        (&[0, 1, 2, 4], 3),
        (&[0, 1, 1, 2, 3, 4], 2),
        (&[0, 2, 1, 3, 4], 1),
        (&[0, 1, 2, 3, 4, 0], 5),
        (&[0, 4], 1),
    ];
    for (order, good) in rows {
        fs::write(desk.path(), order.iter().flat_map(|number| line(*number)).collect::<Vec<u8>>()).unwrap();
        assert!(matches!(desk.store.open_log("s"), Err(StoreError::Damaged { .. })), "{order:?}");
        assert_eq!(desk.store.salvage("s").unwrap().0, entries[..good], "{order:?}");
    }
    for order in [&[1, 2, 3, 4][..], &[1]] {
        fs::write(desk.path(), order.iter().flat_map(|number| line(*number)).collect::<Vec<u8>>()).unwrap();
        assert!(matches!(desk.store.salvage("s"), Err(StoreError::Damaged { .. })), "{order:?}");
        assert!(desk.store.list(&Query::default()).unwrap().sessions.is_empty());
    }
    // A damaged session can be deleted.
    desk.store.delete("s").unwrap();
}

#[test]
fn no_bytes_whatever_cause_more_than_an_error() {
    let (desk, _) = Desk::with_session();
    let whole = fs::read(desk.path()).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut dice = Dice::new(5);
    for round in 0..2000 {
        let mut bytes = Vec::new();
        for _ in 0..dice.below(8) {
            match dice.below(4) {
                0 => bytes.extend((0..dice.below(40)).map(|_| dice.below(256) as u8)),
                1 => bytes.extend(dice.pick(&["0 0 0 00000000 \n", "99999999999999999999 ", "\n", " ", "\0"]).bytes()),
                _ => bytes.extend(dice.pick(&lines)),
            }
        }
        fs::write(desk.path(), &bytes).unwrap();
        let read = desk.store.read("s");
        let listed = desk.store.list(&Query::default()).unwrap();
        assert!(listed.sessions.len() <= 1);
        let opened = desk.store.open_log("s").map(|(_, entries)| entries);
        assert_eq!(read.is_ok(), opened.is_ok(), "{round}");
        if let (Ok(read), Ok(opened)) = (read, opened) {
            assert_eq!(read, opened, "{round}");
        }
    }
}

#[test]
fn a_record_beyond_the_limit_is_an_error_and_not_read() {
    let (desk, _) = Desk::with_session();
    let whole = fs::read(desk.path()).unwrap();
    for length in ["67108865", "99999999999", "18446744073709551615"] {
        let text = [&whole, format!("5 1 {length} 00000000 {{}}\n").as_bytes()].concat();
        fs::write(desk.path(), &text).unwrap();
        assert!(matches!(desk.store.read("s"), Err(StoreError::TooLarge { .. })), "{length}");
        assert!(matches!(desk.store.open_log("s"), Err(StoreError::TooLarge { .. })), "{length}");
        assert_eq!(fs::read(desk.path()).unwrap(), text);
    }
    // A hole of zeros of any length is a torn tail; it is not held in memory.
    fs::write(desk.path(), &whole).unwrap();
    fs::OpenOptions::new().write(true).open(desk.path()).unwrap().set_len(80 << 20).unwrap();
    let (log, entries) = desk.store.open_log("s").unwrap();
    assert_eq!(entries.len(), 5);
    drop(log);
    assert_eq!(fs::read(desk.path()).unwrap(), whole);
}

const WRITER: &str = "ATTACHE_TEST_STORE_WRITER";

/// The process that is killed: started by the tests below, idle otherwise. Says how many entries it has written.
#[test]
fn process_that_writes() {
    let Some(directory) = std::env::var_os(WRITER) else { return };
    let store = FileStore::open(PathBuf::from(directory)).unwrap();
    let mut log =
        store.open_log("s").or_else(|_| Ok::<_, StoreError>((store.create("s", opened())?, vec![]))).unwrap().0;
    println!("\nready");
    let mut seed = Dice::new(u64::from(std::process::id()));
    for number in 0..200_000 {
        log.append(&title(&"x".repeat(seed.below(3_000)))).unwrap();
        if number % 64 == 0 {
            log.sync().unwrap();
        }
        println!("\nwritten {number}");
    }
}

fn writer(directory: &Path) -> (Child, impl BufRead + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_that_writes", "--nocapture"])
        .env(WRITER, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "ready" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the writer did not start");
    }
    (child, output)
}

#[test]
fn a_killed_writer_loses_nothing_that_it_had_written() {
    let desk = Desk::new();
    let mut dice = Dice::new(9);
    let mut total = 1;
    for round in 0..20 {
        let (mut child, mut output) = writer(desk.directory.path());
        assert!(matches!(desk.store.open_log("s"), Err(StoreError::Busy { .. })), "{round}");
        assert!(matches!(desk.store.delete("s"), Err(StoreError::Busy { .. })), "{round}");
        let mut line = String::new();
        for _ in 0..dice.below(200) {
            line.clear();
            output.read_line(&mut line).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let said = format!("{line}\n{rest}");
        let whole = said[..said.rfind('\n').unwrap()].lines();
        let written = whole.filter_map(|line| line.strip_prefix("written ")?.parse::<usize>().ok()).max();
        let (_log, entries) = desk.store.open_log("s").unwrap();
        let least = total + written.map_or(0, |written| written + 1);
        assert!(entries.len() >= least, "round {round}: {} of {least}", entries.len());
        total = entries.len();
        assert_eq!(desk.store.list(&Query::default()).unwrap().sessions.len(), 1);
    }
    assert!(total > 100, "{total}");
}

#[cfg(unix)]
const FULL: &str = "ATTACHE_TEST_STORE_FULL";

// On Unix: it has itself run with a limit on what it writes.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_log_goes_on_when_there_is_room() {
    if let Some(directory) = std::env::var_os(FULL) {
        return fill(&PathBuf::from(directory));
    }
    let run = |script: &str| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(std::env::current_exe().unwrap()).arg(directory.path());
        command.args(["--exact", "a_full_disk_is_told_and_the_log_goes_on_when_there_is_room"]);
        command.env(FULL, directory.path()).output().unwrap()
    };
    // Stands for a full disk everywhere: a process that may not write files of more than some blocks.
    let limited = run(r#"trap "" XFSZ; ulimit -f 100; program=$1; shift 2; exec "$program" "$@""#);
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stdout));
    // A disk that is really full, where we may mount one.
    let small = "mount -t tmpfs -o size=128k tmpfs \"$2\" || exit 77; program=$1; shift 2; exec \"$program\" \"$@\"";
    let full = run(&format!(
        "unshare -m sh -c '{small}' sh \"$@\" || {{ code=$?; test $code -eq 1 && exit 77; exit $code; }}"
    ));
    let code = full.status.code();
    assert!(matches!(code, Some(0 | 77 | 127)), "{code:?} {}", String::from_utf8_lossy(&full.stdout));
    for output in [&limited, &full].into_iter().filter(|output| output.status.success()) {
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
}

#[cfg(unix)]
fn fill(directory: &Path) {
    let store = FileStore::open(directory).unwrap();
    let mut log = store.create("s", opened()).unwrap();
    let entry = title(&"x".repeat(10_000));
    let mut count = 1;
    let error = loop {
        match log.append(&entry) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::NoSpace { .. }), "{error}");
    assert!(error.to_string().contains("no space left"), "{error}");
    // Nothing of the entry is left, and a smaller one has room.
    let text = fs::read(directory.join("s.log")).unwrap();
    assert!(text.ends_with(b"\n"));
    assert_eq!(store.read("s").unwrap().len(), count);
    log.append(&title("small")).unwrap();
    log.sync().unwrap();
    assert!(log.append(&entry).is_err());
    assert_eq!(store.read("s").unwrap().last(), Some(&title("small")));
    // A session that does not fit leaves nothing behind.
    let files = || fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    let before = files();
    let large = Opened { cwd: "/".repeat(200_000), ..opened() };
    assert!(matches!(store.create("t", large.clone()), Err(StoreError::NoSpace { .. })));
    assert!(matches!(store.fork("s", "t", large), Err(StoreError::NoSpace { .. })));
    assert_eq!(files(), before);
    drop(log);
    let (mut log, entries) = store.open_log("s").unwrap();
    assert_eq!(entries.len(), count + 1);
    log.append(&title("small")).unwrap();
}
