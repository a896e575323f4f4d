//! What was changed, turn by turn: a line of JSON for each step, written before the change is made.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use attache::private;
use serde::{Deserialize, Serialize};

use super::contents::private_file;
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
        /// It changed while a program ran, by that or by somebody else: nobody can tell.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        while_running: bool,
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
    /// The turn was taken back. What is left of it, if anything, is written down anew after this.
    Undone { turn: u64 },
    /// The agent's own changes of the turn were taken back as far as possible; this is what is left.
    Left { turn: u64 },
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
    /// Whether the agent's own changes were taken back already, and these steps were left.
    pub(super) is_left: bool,
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
        /// It was seen by comparing the project before and after a program: the program may have changed it, or somebody
        /// else meanwhile. All other steps are the agent's own.
        while_running: bool,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
        was_asked: bool,
    },
}

impl Step {
    /// The path that it has changed.
    pub(super) fn path(&self) -> &Path {
        match self {
            Step::Change { path, .. } | Step::Move { to: path, .. } => path,
        }
    }

    pub(super) fn is_while_running(&self) -> bool {
        matches!(self, Step::Change { while_running: true, .. })
    }

    /// Whether the next change of the path, which found it like this, goes on where this one ended: nobody came in between.
    fn goes_on_with(&self, found: &State, is_running: bool) -> bool {
        let Step::Change { before, after, while_running, .. } = self else { return false };
        let left = after.as_ref().unwrap_or(before);
        // Of what is not kept nobody knows whether it is the same.
        *while_running == is_running && left == found && !matches!(found, State::Unkept { .. })
    }
}

impl Turn {
    /// The last change of a path.
    fn last_change(&mut self, wanted: &Path) -> Option<&mut Step> {
        // What was done before a directory was moved is another step: the path may have meant another file.
        let later = self.steps.iter().rposition(|step| matches!(step, Step::Move { .. })).map_or(0, |place| place + 1);
        self.steps[later..].iter_mut().rfind(|step| step.path() == wanted)
    }

    pub(super) fn changed_something(&self) -> bool {
        !self.steps.is_empty() || !self.uncovered.is_empty() || self.is_running
    }

    /// The records that this turn follows from.
    pub(super) fn records(&self) -> Vec<Record> {
        let turn = self.number;
        let mut records = Vec::new();
        if self.ran_programs {
            records.push(Record::Running { turn });
        }
        for step in self.steps.iter().cloned() {
            match step {
                Step::Change { path, before, after, was_asked, while_running } => {
                    records.push(Record::Before { turn, path: path.clone(), before, was_asked, while_running });
                    records.extend(after.map(|after| Record::After { turn, path, after }));
                }
                Step::Move { from, to, was_asked } => records.push(Record::Moved { turn, from, to, was_asked }),
            }
        }
        records.extend(self.uncovered.iter().cloned().map(|what| Record::Uncovered { turn, what }));
        if self.ran_programs && !self.is_running {
            records.push(Record::Ended { turn, is_cut: self.is_cut });
        }
        records.extend(self.is_left.then_some(Record::Left { turn }));
        records
    }
}

/// The turns that can be taken back, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns(pub(super) Vec<Turn>);

impl Turns {
    /// Takes a record into account.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Before { turn, path, before, was_asked, while_running } => {
                let turn = self.turn(turn);
                match turn.last_change(&path).filter(|step| step.goes_on_with(&before, while_running)) {
                    Some(Step::Change { after, .. }) => *after = None,
                    _ => turn.steps.push(Step::Change { path, before, after: None, was_asked, while_running }),
                }
            }
            Record::After { turn, path, after: now } => {
                let steps = &mut self.turn(turn).steps;
                let is_it = |step: &Step| matches!(step, Step::Change { path: other, .. } if *other == path);
                let Some(place) = steps.iter().rposition(is_it) else { return };
                let Step::Change { before, after, .. } = &mut steps[place] else { return };
                if *before == now && !matches!(now, State::Unkept { .. }) {
                    steps.remove(place);
                } else {
                    *after = Some(now);
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
            Record::Left { turn } => self.turn(turn).is_left = true,
        }
    }

    fn turn(&mut self, number: u64) -> &mut Turn {
        let place = self.0.partition_point(|turn| turn.number < number);
        if self.0.get(place).is_none_or(|turn| turn.number != number) {
            // What is left of an older turn stands where that stood.
            self.0.insert(place, Turn { number, ..Turn::default() });
        }
        &mut self.0[place]
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
            private::create_directory(self.path.parent().unwrap_or(Path::new("/")))?;
            self.file = Some(private::open_or_create(&self.path)?);
        }
        if let Some(file) = &mut self.file {
            // Not by opening it to append: what is open like that cannot be cut on Windows.
            let written =
                file.seek(io::SeekFrom::End(0)).and_then(|_| file.write_all(&text)).and_then(|()| file.sync_data());
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
        for record in turns.0.iter().flat_map(Turn::records) {
            serde_json::to_writer(&mut text, &record)?;
            text.push(b'\n');
        }
        private_file(&draft)?.write_all(&text)?;
        // Not every Windows replaces a file that is open.
        self.file = None;
        fs::rename(&draft, &self.path)?;
        self.size = text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn before(turn: u64, path: &str, before: State) -> Record {
        Record::Before { turn, path: path.into(), before, was_asked: false, while_running: false }
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
        drop(journal);
        let half = "{\"type\":\"before\",\"turn\":4";
        std::io::Write::write_all(&mut File::options().append(true).open(&path).unwrap(), half.as_bytes()).unwrap();
        for _ in 0..2 {
            let (_, turns) = Journal::open(path.clone());
            let steps = vec![
                Step::Change {
                    path: "/p/a".into(),
                    before: two.clone(),
                    after: Some(State::Nothing),
                    was_asked: false,
                    while_running: false,
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

    /// The steps of the turns that these lines of a journal tell of: `12` from 1 to 2 by the agent, `12?` while a program
    /// ran, `!` in front of what is left of a turn. Reading what such turns are written down as tells the same.
    fn steps(lines: &str) -> String {
        let mut turns = Turns::default();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            turns.apply(serde_json::from_str(&line.replace('\'', "\"")).unwrap());
        }
        turns.0.retain(Turn::changed_something);
        let mut again = Turns::default();
        turns.0.iter().flat_map(Turn::records).for_each(|record| again.apply(record));
        assert_eq!(turns.0, again.0);
        let letter = |state: &State| if let State::Link { to } = state { to.display().to_string() } else { "-".into() };
        let step = |step: &Step| match step {
            Step::Change { before, after, while_running, .. } => {
                let after = after.as_ref().map_or("…".into(), letter);
                format!("{}{after}{}", letter(before), if *while_running { "?" } else { "" })
            }
            Step::Move { .. } => "moved".into(),
        };
        let turn = |turn: &Turn| {
            let steps: Vec<String> = turn.steps.iter().map(step).collect();
            format!("{}{}", if turn.is_left { "!" } else { "" }, steps.join(" "))
        };
        turns.0.iter().map(turn).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_change_goes_on_with_the_one_before_unless_somebody_came_in_between() {
        const ONE_TWO: &str = "{'type':'before','turn':1,'path':'/p/a','before':{'is':'link','to':'1'}}
                               {'type':'after','turn':1,'path':'/p/a','after':{'is':'link','to':'2'}}";
        let and = |from: &str, to: &str, more: &str| {
            format!(
                "{ONE_TWO}
                 {{'type':'before','turn':1,'path':'/p/a','before':{{'is':'link','to':'{from}'}}{more}}}
                 {{'type':'after','turn':1,'path':'/p/a','after':{{'is':'link','to':'{to}'}}}}"
            )
        };
        assert_eq!(steps(ONE_TWO), "12");
        assert_eq!(steps(&and("2", "3", "")), "13");
        assert_eq!(steps(&and("2", "1", "")), "", "it is as it was");
        assert_eq!(steps(&and("5", "6", "")), "12 56");
        assert_eq!(steps(&and("5", "5", "")), "12", "the second change did not happen");
        assert_eq!(steps(&and("2", "3", ",'while_running':true")), "12 23?");
        let unkept = "{'type':'after','turn':1,'path':'/p/a','after':{'is':'unkept','why':'large'}}
                      {'type':'before','turn':1,'path':'/p/a','before':{'is':'unkept','why':'large'}}
                      {'type':'after','turn':1,'path':'/p/a','after':{'is':'nothing'}}";
        assert_eq!(steps(&format!("{ONE_TWO}\n{unkept}")), "1- --", "it may not be the same");
    }

    #[test]
    fn what_is_left_of_a_turn_stands_where_the_turn_stood() {
        let lines = "{'type':'before','turn':1,'path':'/p/a','before':{'is':'link','to':'1'}}
                     {'type':'after','turn':1,'path':'/p/a','after':{'is':'link','to':'2'}}
                     {'type':'before','turn':2,'path':'/p/b','before':{'is':'link','to':'3'}}
                     {'type':'undone','turn':1}
                     {'type':'before','turn':1,'path':'/p/a','before':{'is':'link','to':'4'},'while_running':true}
                     {'type':'left','turn':1}";
        assert_eq!(steps(lines), "!4…?, 3…");
    }
}
