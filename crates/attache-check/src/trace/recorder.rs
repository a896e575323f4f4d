//! Writes a trace while the conversation goes on, in a file whose size is bounded if that is wanted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::trace::{redact, rfc3339};
use serde_json::Value;

use crate::record::{Event, Side};

/// How a conversation is recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Whether secrets are kept: values of variables and headers, and whatever a key calls a token, key or password.
    pub keeps_secrets: bool,
    /// The size in bytes at which a file is put aside as `FILE.1`, in the place of the one before. Together they are at most twice as
    /// large, and one message more.
    pub rotate: Option<u64>,
}

/// The longest line of stderr that is kept whole.
const LONGEST_STDERR: usize = 8 << 10;

/// Writes a trace to a file. What cannot be written is counted, and disturbs nobody.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    written: u64,
    recording: Recording,
    line: String,
    failures: u64,
}

impl Recorder {
    /// Makes a file that only its owner can read, or goes on with one that is there.
    pub fn open(path: impl Into<PathBuf>, recording: Recording) -> io::Result<Self> {
        let path = path.into();
        let file = open(&path)?;
        let written = file.metadata()?.len();
        let mut recorder = Recorder { path, file, written, recording, line: String::new(), failures: 0 };
        if written > 0 {
            recorder.write(&Event::Restarted);
        }
        Ok(recorder)
    }

    /// How many lines could not be written.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Writes down what happened now.
    pub fn write(&mut self, event: &Event) {
        let mut line = std::mem::take(&mut self.line);
        begin(&mut line);
        let direction = |side| if side == Side::Client { "out" } else { "in" };
        match event {
            Event::Frame { from, text } => {
                line.push_str("\"dir\":\"");
                line.push_str(direction(*from));
                line.push_str("\",\"message\":");
                if !self.message(text, &mut line) {
                    line.truncate(line.len() - "\"message\":".len());
                    if self.recording.keeps_secrets {
                        line.push_str(&format!("\"text\":{}", Value::from(text.as_str())));
                    } else {
                        line.push_str(&format!("\"junk\":{}", text.len()));
                    }
                }
            }
            Event::Junk { from, bytes } => line.push_str(&format!("\"dir\":\"{}\",\"junk\":{bytes}", direction(*from))),
            Event::Stderr { text } => {
                let text: String = text.chars().take(LONGEST_STDERR).collect();
                line.push_str(&format!("\"dir\":\"err\",\"text\":{}", Value::from(text)));
            }
            Event::Closed { from: Side::Client } => line.push_str("\"event\":\"closed\",\"from\":\"client\""),
            Event::Closed { from: Side::Agent } => line.push_str("\"event\":\"closed\",\"from\":\"agent\""),
            Event::Exited { code: Some(code) } => line.push_str(&format!("\"event\":\"exited\",\"number\":{code}")),
            Event::Exited { code: None } => line.push_str("\"event\":\"exited\""),
            Event::Waited { time } => line.push_str(&format!("\"event\":\"waited\",\"number\":{}", time.as_millis())),
            Event::Restarted => line.push_str("\"event\":\"restarted\""),
            Event::Continued => line.push_str("\"event\":\"continued\""),
            Event::Note { text } => {
                line.push_str(&format!("\"event\":\"note\",\"text\":{}", Value::from(text.as_str())))
            }
        }
        line.push_str("}\n");
        if self.append(&line).is_err() {
            self.failures += 1;
        }
        // A long message does not keep its room.
        if line.capacity() < 1 << 20 {
            self.line = line;
        }
    }

    fn message(&self, text: &str, line: &mut String) -> bool {
        if !self.recording.keeps_secrets {
            return redact(text, line);
        }
        let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        if is_json {
            line.push_str(text.trim());
        }
        is_json
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let is_full =
            self.recording.rotate.is_some_and(|limit| self.written > 0 && self.written + line.len() as u64 > limit);
        if is_full {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            std::fs::rename(&self.path, aside)?;
            self.file = open(&self.path)?;
            let mut first = String::new();
            begin(&mut first);
            first.push_str("\"event\":\"continued\"}\n");
            self.file.write_all(first.as_bytes())?;
            self.written = first.len() as u64;
        }
        self.file.write_all(line.as_bytes())?;
        self.written += line.len() as u64;
        Ok(())
    }
}

/// Begins a line anew, with the time.
fn begin(line: &mut String) {
    line.clear();
    line.push_str("{\"time\":\"");
    line.push_str(&rfc3339(SystemTime::now()));
    line.push_str("\",");
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    fn frame(text: &str) -> Event {
        Event::Frame { from: Side::Client, text: text.to_owned() }
    }

    #[test]
    fn secrets_are_left_out_unless_they_are_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let message = r#"{"jsonrpc":"2.0","id":0,"method":"x","params":{"apiKey":"sesame"}}"#;
        for (keeps_secrets, has) in [(false, false), (true, true)] {
            let path = directory.path().join(format!("{keeps_secrets}.jsonl"));
            let mut recorder = Recorder::open(&path, Recording { keeps_secrets, rotate: None }).unwrap();
            recorder.write(&frame(message));
            recorder.write(&frame("not json: sesame"));
            recorder.write(&Event::Exited { code: Some(1) });
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.contains("sesame"), has, "{text}");
            assert_eq!(Record::from_trace(&text).unwrap().entries.len(), 3);
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
        let record = Record::from_trace(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(record.connections().count(), 2);
    }

    #[test]
    fn a_file_that_is_full_is_put_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.jsonl");
        let mut recorder = Recorder::open(&path, Recording { keeps_secrets: false, rotate: Some(4096) }).unwrap();
        for number in 0..1000 {
            recorder.write(&frame(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"number":{number}}}}}"#)));
        }
        let (now, aside) =
            (std::fs::metadata(&path).unwrap().len(), std::fs::metadata(path.with_extension("jsonl.1")).unwrap().len());
        assert!(now <= 4096 && aside <= 4096, "{now} {aside}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"number\":999"));
        // What the file begins with was not the beginning of the conversation.
        assert_eq!(Record::from_trace(&text).unwrap().entries[0].event, Event::Continued);
        assert_eq!(recorder.failures(), 0);
    }
}
