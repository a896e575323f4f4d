//! What is in the file in the end.

use super::*;
use crate::record::{Record, Side};

fn frame(text: &str) -> Event {
    Event::Frame { from: Side::Client, text: text.to_owned() }
}

fn read(path: impl AsRef<Path>) -> Record {
    Record::from_trace(&fs::read_to_string(path).unwrap()).unwrap()
}

fn rotated(limit: u64) -> Recording {
    Recording { keeps_secrets: false, rotate: Some(limit) }
}

#[test]
fn secrets_are_left_out_unless_they_are_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let message = r#"{"jsonrpc":"2.0","id":0,"method":"x","params":{"apiKey":"sesame"}}"#;
    let key = ["-----BEGIN RSA PRIVATE KEY-----", "sesame", "-----END RSA PRIVATE KEY-----"];
    for (keeps_secrets, has) in [(false, 0), (true, 4)] {
        let path = directory.path().join(format!("{keeps_secrets}.jsonl"));
        let mut recorder = Recorder::open(&path, Recording { keeps_secrets, rotate: None }).unwrap();
        recorder.write(&frame(message));
        recorder.write(&frame("not json: sesame"));
        for line in key.into_iter().chain(["password=sesame", "ready"]) {
            recorder.write(&Event::Stderr { text: line.to_owned() });
        }
        recorder.write(&Event::Exited { code: Some(1) });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("sesame").count(), has, "{text}");
        assert!(text.contains("\"ready\""));
        assert_eq!(Record::from_trace(&text).unwrap().entries.len(), 8);
    }
}

#[test]
fn another_conversation_in_the_same_file_is_another_connection() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    for _ in 0..2 {
        let mut recorder = Recorder::open(&path, Recording::default()).unwrap();
        recorder.write(&frame(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#));
    }
    assert_eq!(read(&path).connections().count(), 2);
}

#[test]
fn two_conversations_at_a_time_have_a_file_each() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let mut first = Recorder::open(&path, rotated(4096)).unwrap();
    let mut second = Recorder::open(&path, Recording::default()).unwrap();
    assert_ne!(first.path(), second.path());
    assert!(second.path().to_str().unwrap().ends_with(&format!("trace.jsonl.{}", std::process::id())));
    for number in 0..100 {
        first.write(&frame(&format!(r#"{{"id":{number},"method":"first","params":{{}}}}"#)));
        second.write(&frame(&format!(r#"{{"id":{number},"method":"second","params":{{}}}}"#)));
    }
    // Also when the first file has been put aside in the meantime.
    assert_ne!(Recorder::open(&path, Recording::default()).err().map(|error| error.to_string()), None);
    for (path, other) in [(first.path(), "second"), (second.path(), "first")] {
        assert!(!fs::read_to_string(path).unwrap().contains(other));
    }
    assert_eq!(read(second.path()).entries.len(), 100);
}

#[test]
fn half_a_line_is_ended_before_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let line = r#"{"dir":"out","message":{"id":0,"method":"initialize"}}"#;
    fs::write(&path, format!("{line}\n{line}\n{{\"time\":\"2026")).unwrap();
    Recorder::open(&path, Recording::default()).unwrap().write(&frame("{}"));
    let record = read(&path);
    assert!(record.unreadable().is_some());
    assert_eq!(record.connections().count(), 2);
    assert_eq!(record.entries.last().unwrap().event, frame("{}"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_could_not_be_written_does_not_spoil_what_comes_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let mut recorder = Recorder::open(&path, Recording::default()).unwrap();
    recorder.write(&frame("{}"));
    // A disk that is full for a moment, and took half a line before.
    recorder.file.write_all(b"{\"time\":\"2026").unwrap();
    let good = std::mem::replace(&mut recorder.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
    recorder.write(&frame(r#"{"id":1,"method":"lost"}"#));
    assert_eq!(recorder.failures(), 1);
    recorder.file = good;
    recorder.write(&frame(r#"{"id":2,"method":"kept"}"#));
    assert!(fs::read_to_string(&path).unwrap().ends_with("\"message\":{\"id\":2,\"method\":\"kept\"}}\n"));
    assert_eq!(read(&path).entries.len(), 3);
}

#[test]
fn a_file_that_is_full_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let mut recorder = Recorder::open(&path, rotated(4096)).unwrap();
    let sizes = || {
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        (size(&path), size(&path.with_extension("jsonl.1")))
    };
    for number in 0..1000 {
        recorder.write(&frame(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"number":{number}}}}}"#)));
    }
    assert!(fs::read_to_string(&path).unwrap().contains("\"number\":999"));
    // What the file begins with was not the beginning of the conversation.
    assert_eq!(read(&path).entries[0].event, Event::Continued);
    // What is longer than the file may be is counted.
    let long = "x".repeat(5000);
    recorder.write(&frame(&format!(r#"{{"long":"{long}"}}"#)));
    recorder.write(&Event::Stderr { text: "\u{1}".repeat(5000) });
    recorder.write(&Event::Note { text: long.clone() });
    assert!(read(&path).entries.iter().any(|entry| matches!(entry.event, Event::Junk { bytes: 5011, .. })));
    let (now, aside) = sizes();
    assert!(now <= 4096 && aside <= 4096, "{now} {aside}");
    assert!(recorder.failures() == 0 && !recorder.has_outgrown());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_cannot_be_put_aside_is_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    // No file can take the place of a directory.
    fs::create_dir(path.with_extension("jsonl.1")).unwrap();
    let mut recorder = Recorder::open(&path, rotated(4096)).unwrap();
    for number in 0..100 {
        recorder.write(&frame(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"number":{number}}}}}"#)));
    }
    assert_eq!(read(&path).entries.len(), 100);
    assert!(recorder.has_outgrown() && recorder.failures() == 0);
}

#[cfg(unix)]
#[test]
fn only_a_regular_file_is_put_aside_and_a_link_stays_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (link, target) = (directory.path().join("link"), directory.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut recorder = Recorder::open(&link, rotated(4096)).unwrap();
    for _ in 0..100 {
        recorder.write(&frame(r#"{"jsonrpc":"2.0","method":"m","params":{"text":"some of it"}}"#));
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && directory.path().join("target.1").exists());
    let error = |path: &Path, recording| Recorder::open(path, recording).unwrap_err().to_string();
    assert_eq!(error(Path::new("/dev/null"), rotated(4096)), "only a regular file can be rotated");
    Recorder::open("/dev/null", Recording::default()).unwrap().write(&frame("{}"));
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in [&*fifo, Path::new("/dev/zero"), directory.path()] {
        assert_eq!(error(path, Recording::default()), "it is neither a regular file nor /dev/null");
    }
}
