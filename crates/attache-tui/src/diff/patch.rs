//! Patches as `git diff` writes them, read for people: whatever cannot be read is left out.

use attache_proto::model::diff::{DiffChange, DiffPatch, PatchDiff};

use super::{FileDiff, Row};

/// The changes of files that a patch holds.
pub(super) fn of_patch(diff: &PatchDiff) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = diff
        .changes
        .iter()
        .map(|change| {
            let (path, note) = match change {
                DiffChange::Add(change) => (change.path.clone(), "new file".to_owned()),
                DiffChange::Delete(change) => (change.path.clone(), "deleted".to_owned()),
                DiffChange::Modify(change) => (change.path.clone(), String::new()),
                DiffChange::Move(change) => (change.path.clone(), format!("moved from {}", change.old_path)),
                DiffChange::Copy(change) => (change.path.clone(), format!("copied from {}", change.old_path)),
                _ => (String::new(), "change of an unknown kind".to_owned()),
            };
            FileDiff { path, note, ..FileDiff::default() }
        })
        .collect();
    if let Some(patch) = &diff.patch {
        read_patch(patch, &mut files);
    }
    files
}

/// Puts the hunks of a patch into the files that they belong to: the named one, or the next.
fn read_patch(patch: &DiffPatch, files: &mut Vec<FileDiff>) {
    let mut current: Option<usize> = None;
    let mut count = 0;
    let mut hunk = Hunk::default();
    for line in patch.text.split_inclusive('\n') {
        if hunk.is_open() {
            if hunk.handle(line) {
                continue;
            }
            if let Some(file) = current.and_then(|index| files.get_mut(index)) {
                hunk.flush(file);
            }
        }
        if line.starts_with("diff --git ") {
            current = Some(count);
            count += 1;
            if files.len() < count {
                files.push(FileDiff::default());
            }
            hunk = Hunk::default();
        } else if let Some(name) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            let name = name.trim_end().trim_matches('"');
            let index = *current.get_or_insert_with(|| {
                count = count.max(1);
                0
            });
            if files.len() <= index {
                files.push(FileDiff::default());
            }
            if name != "/dev/null" && files[index].path.is_empty() {
                files[index].path = name.to_owned();
            }
        } else if line.starts_with("@@ ") {
            let index = *current.get_or_insert(0);
            if files.len() <= index {
                files.push(FileDiff::default());
            }
            hunk.begin(line, &mut files[index]);
        }
    }
    if let Some(file) = current.and_then(|index| files.get_mut(index)) {
        hunk.flush(file);
    }
}

/// A hunk while it is read.
#[derive(Debug, Default)]
struct Hunk<'a> {
    /// The lines that are still to come.
    old_left: usize,
    new_left: usize,
    /// The lines before the next, from 0.
    old_at: usize,
    new_at: usize,
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
    rows: Vec<Change<'a>>,
}

#[derive(Debug)]
enum Change<'a> {
    Kept(usize, usize, &'a str),
    Replaced { old: Vec<&'a str>, new: Vec<&'a str>, old_at: usize, new_at: usize },
}

impl<'a> Hunk<'a> {
    fn is_open(&self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }

    fn begin(&mut self, header: &str, file: &mut FileDiff) {
        self.flush(file);
        let range = |word: Option<&str>, sign: char| {
            let (start, length) = match word?.strip_prefix(sign)?.split_once(',') {
                Some((start, length)) => (start, length.parse::<usize>().ok()?),
                None => (word?.strip_prefix(sign)?, 1),
            };
            Some((start.parse::<usize>().ok()?, length))
        };
        let mut parts = header.split(' ').skip(1);
        let old = range(parts.next(), '-');
        let new = range(parts.next(), '+');
        let (Some((old_start, old_length)), Some((new_start, new_length))) = (old, new) else { return };
        let old_at = if old_length == 0 { old_start } else { old_start.saturating_sub(1) };
        let skipped = old_at.saturating_sub(self.old_at);
        if skipped > 0 {
            file.push(Row::Skipped(skipped));
        }
        self.old_at = old_at;
        self.new_at = if new_length == 0 { new_start } else { new_start.saturating_sub(1) };
        (self.old_left, self.new_left) = (old_length, new_length);
    }

    /// Takes a line; false if it does not belong to the hunk.
    fn handle(&mut self, line: &'a str) -> bool {
        let text = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'-') => {
                self.old_left = self.old_left.saturating_sub(1);
                if !self.added.is_empty() {
                    self.end_change();
                }
                self.removed.push(text);
            }
            Some(b'+') => {
                self.new_left = self.new_left.saturating_sub(1);
                self.added.push(text);
            }
            Some(b' ' | b'\n') => {
                self.end_change();
                self.old_left = self.old_left.saturating_sub(1);
                self.new_left = self.new_left.saturating_sub(1);
                self.rows.push(Change::Kept(self.old_at, self.new_at, text));
                self.old_at = self.old_at.saturating_add(1);
                self.new_at = self.new_at.saturating_add(1);
            }
            // `\ No newline at end of file`
            Some(b'\\') => {}
            _ => {
                (self.old_left, self.new_left) = (0, 0);
                return false;
            }
        }
        true
    }

    fn end_change(&mut self) {
        if self.removed.is_empty() && self.added.is_empty() {
            return;
        }
        let (old, new) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        let (old_at, new_at) = (self.old_at, self.new_at);
        self.old_at = self.old_at.saturating_add(old.len());
        self.new_at = self.new_at.saturating_add(new.len());
        self.rows.push(Change::Replaced { old, new, old_at, new_at });
    }

    fn flush(&mut self, file: &mut FileDiff) {
        self.end_change();
        for row in std::mem::take(&mut self.rows) {
            match row {
                Change::Kept(old, new, text) => {
                    file.push(Row::Kept {
                        old: old.saturating_add(1),
                        new: new.saturating_add(1),
                        text: text.to_owned(),
                    });
                }
                Change::Replaced { old, new, old_at, new_at } => file.push_change(&old, &new, old_at, new_at),
            }
        }
    }
}
