//! What was changed, turn by turn: a line of JSON for each step, written before the change is made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::contents::{private_directory, private_file};
use super::state::State;

/// A longer journal is cut at its beginning: the oldest turns can no longer be taken back.
const LONGEST: u64 = 16 << 20;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record {
    /// A path is about to change.
    Before {
        turn: u64,
        path: PathBuf,
        before: State,
        /// It is not beneath the session's directories, or has other names: a person allowed the change by name.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        was_asked: bool,
    },
    /// It has changed.
    After { turn: u64, path: PathBuf, after: State },
    /// A directory is about to be moved.
    Moved {
        turn: u64,
        from: PathBuf,
        to: PathBuf,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        was_asked: bool,
    },
    /// It was not.
    NotMoved { turn: u64, from: PathBuf, to: PathBuf },
    /// A command or another program is about to run, which may change anything.
    Running { turn: u64 },
    /// All that it changed is written down.
    Ended {
        turn: u64,
        /// There was more in the project than could be looked at.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_cut: bool,
    },
    /// Something was changed that cannot be taken back.
    Uncovered { turn: u64, what: String },
    /// The turn was taken back.
    Undone { turn: u64 },
}

/// What one turn changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) steps: Vec<Step>,
    /// Whether a program ran when the agent was stopped, so that nobody knows what that changed.
    pub(super) is_running: bool,
    pub(super) ran_programs: bool,
    /// Whether more was in the project than was looked at when they ran.
    pub(super) is_cut: bool,
    /// What was changed and cannot be taken back.
    pub(super) uncovered: Vec<String>,
}

/// One thing that was changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Change {
        path: PathBuf,
        before: State,
        /// `None` while it is being changed, and for ever if the agent was stopped meanwhile.
        after: Option<State>,
        was_asked: bool,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
        was_asked: bool,
    },
}

impl Turn {
    fn change(&mut self, wanted: &Path) -> Option<&mut Step> {
        // What was done before a directory was moved is another step: the path may have meant another file.
        let later = self.steps.iter().rposition(|step| matches!(step, Step::Move { .. })).map_or(0, |place| place + 1);
        self.steps[later..].iter_mut().find(|step| matches!(step, Step::Change { path, .. } if path == wanted))
    }

    pub(super) fn changed_something(&self) -> bool {
        !self.steps.is_empty() || !self.uncovered.is_empty() || self.is_running
    }
}

/// The turns that can be taken back, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns(pub(super) Vec<Turn>);

impl Turns {
    /// Takes a record into account.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Before { turn, path, before, was_asked } => {
                let turn = self.turn(turn);
                match turn.change(&path) {
                    Some(Step::Change { after, .. }) => *after = None,
                    _ => turn.steps.push(Step::Change { path, before, after: None, was_asked }),
                }
            }
            Record::After { turn, path, after: now } => {
                let turn = self.turn(turn);
                let is_it = |step: &&mut Step| matches!(step, Step::Change { path: other, .. } if *other == path);
                let Some(Step::Change { before, after, .. }) = turn.steps.iter_mut().rev().find(is_it) else { return };
                let is_unchanged = *before == now && !matches!(now, State::Unkept { .. });
                *after = Some(now);
                if is_unchanged {
                    turn.steps.retain(|step| {
                        !matches!(step, Step::Change { path: other, before, after: Some(after), .. }
                            if *other == path && before == after)
                    });
                }
            }
            Record::Moved { turn, from, to, was_asked } => {
                self.turn(turn).steps.push(Step::Move { from, to, was_asked });
            }
            Record::NotMoved { turn, from, to } => {
                let is_it = |step: &Step| matches!(step, Step::Move { from: f, to: t, .. } if *f == from && *t == to);
                let steps = &mut self.turn(turn).steps;
                if let Some(place) = steps.iter().rposition(is_it) {
                    steps.remove(place);
                }
            }
            Record::Running { turn } => {
                let turn = self.turn(turn);
                (turn.is_running, turn.ran_programs) = (true, true);
            }
            Record::Ended { turn, is_cut } => {
                let turn = self.turn(turn);
                turn.is_running = false;
                turn.is_cut |= is_cut;
            }
            Record::Uncovered { turn, what } => {
                let uncovered = &mut self.turn(turn).uncovered;
                if !uncovered.contains(&what) {
                    uncovered.push(what);
                }
            }
            Record::Undone { turn } => self.0.retain(|other| other.number != turn),
        }
    }

    fn turn(&mut self, number: u64) -> &mut Turn {
        let place = self.0.iter().rposition(|turn| turn.number == number).unwrap_or_else(|| {
            self.0.push(Turn { number, ..Turn::default() });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// The records that these turns follow from.
    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for turn in &self.0 {
            let number = turn.number;
            if turn.ran_programs {
                records.push(Record::Running { turn: number });
            }
            for step in turn.steps.iter().cloned() {
                match step {
                    Step::Change { path, before, after, was_asked } => {
                        records.push(Record::Before { turn: number, path: path.clone(), before, was_asked });
                        records.extend(after.map(|after| Record::After { turn: number, path, after }));
                    }
                    Step::Move { from, to, was_asked } => {
                        records.push(Record::Moved { turn: number, from, to, was_asked });
                    }
                }
            }
            let uncovered = turn.uncovered.iter().cloned();
            records.extend(uncovered.map(|what| Record::Uncovered { turn: number, what }));
            if turn.ran_programs && !turn.is_running {
                records.push(Record::Ended { turn: number, is_cut: turn.is_cut });
            }
        }
        records
    }
}

/// The file that the records are in.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Option<File>,
    size: u64,
}

impl Journal {
    /// Reads what a journal says. A line that cannot be read is passed over: the last one may have been cut off.
    pub(super) fn open(path: PathBuf) -> (Self, Turns) {
        let mut text = Vec::new();
        // Longer than we write them, but not without an end.
        let read = File::open(&path).and_then(|file| file.take(2 * LONGEST).read_to_end(&mut text));
        let mut turns = Turns::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Ok(record) = serde_json::from_slice(line) {
                turns.apply(record);
            }
        }
        let size = read.unwrap_or_default() as u64;
        let mut journal = Journal { path, file: None, size };
        if text.last().is_some_and(|last| *last != b'\n') {
            // What is added next must not stand behind the half of a line.
            let _ = journal.rewrite(&turns);
        }
        (journal, turns)
    }

    /// Writes records down. When this returns, they survive the end of this process.
    pub(super) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let mut text = Vec::new();
        for record in records {
            serde_json::to_writer(&mut text, record)?;
            text.push(b'\n');
        }
        if self.file.is_none() {
            private_directory(self.path.parent().unwrap_or(Path::new("/")))?;
            self.file = Some(OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?);
        }
        if let Some(file) = &mut self.file {
            let written = file.write_all(&text).and_then(|()| file.sync_data());
            if written.is_err() {
                // Without half a line at its end.
                let _ = file.set_len(self.size);
            }
            written?;
        }
        self.size += text.len() as u64;
        Ok(())
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.size > LONGEST
    }

    /// Writes the journal anew, with what these turns need.
    pub(super) fn rewrite(&mut self, turns: &Turns) -> io::Result<()> {
        let draft = self.path.with_extension("new");
        let mut text = Vec::new();
        for record in turns.records() {
            serde_json::to_writer(&mut text, &record)?;
            text.push(b'\n');
        }
        private_file(&draft)?.write_all(&text)?;
        fs::rename(&draft, &self.path)?;
        self.file = None;
        self.size = text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn before(turn: u64, path: &str, before: State) -> Record {
        Record::Before { turn, path: path.into(), before, was_asked: false }
    }

    fn after(turn: u64, path: &str, after: State) -> Record {
        Record::After { turn, path: path.into(), after }
    }

    #[test]
    fn a_journal_is_read_as_it_was_written_and_half_a_line_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/journal");
        let (mut journal, turns) = Journal::open(path.clone());
        assert!(turns.0.is_empty());
        let (one, two) = (State::file(b"one", 0o644), State::file(b"two", 0o755));
        let records = [
            before(1, "/p/a", one.clone()),
            after(1, "/p/a", two.clone()),
            before(2, "/p/a", two.clone()),
            after(2, "/p/a", State::Nothing),
            before(2, "/p/same", one.clone()),
            after(2, "/p/same", one.clone()),
            Record::Moved { turn: 2, from: "/p/d".into(), to: "/p/e".into(), was_asked: true },
            Record::Running { turn: 3 },
            Record::Undone { turn: 1 },
        ];
        journal.append(&records).unwrap();
        let half = "{\"type\":\"before\",\"turn\":4";
        std::io::Write::write_all(&mut OpenOptions::new().append(true).open(&path).unwrap(), half.as_bytes()).unwrap();
        for _ in 0..2 {
            let (_, turns) = Journal::open(path.clone());
            let steps = vec![
                Step::Change {
                    path: "/p/a".into(),
                    before: two.clone(),
                    after: Some(State::Nothing),
                    was_asked: false,
                },
                Step::Move { from: "/p/d".into(), to: "/p/e".into(), was_asked: true },
            ];
            let expected = [
                Turn { number: 2, steps, ..Turn::default() },
                Turn { number: 3, is_running: true, ran_programs: true, ..Turn::default() },
            ];
            assert_eq!(turns.0, expected);
        }
        assert!(std::fs::read(&path).unwrap().ends_with(b"\n"), "what comes next has a line of its own");
    }

    #[test]
    fn a_path_means_another_file_after_a_directory_was_moved() {
        let mut turns = Turns::default();
        let state = |text: &str| State::file(text.as_bytes(), 0o644);
        for record in [
            before(1, "/p/d/a", state("0")),
            after(1, "/p/d/a", state("1")),
            Record::Moved { turn: 1, from: "/p/d".into(), to: "/p/e".into(), was_asked: false },
            before(1, "/p/d/a", State::Nothing),
            after(1, "/p/d/a", state("2")),
        ] {
            turns.apply(record);
        }
        assert_eq!(turns.0[0].steps.len(), 3);
    }
}
