//! Patches as `git diff` writes them: made of two texts, and read back where they hold both whole texts.

use std::fmt::Write;

/// Lines of context around a change, as git has them.
const CONTEXT: usize = 3;

/// The largest table of line pairs that is compared: 4 MiB of memory and some milliseconds. Larger changes are written
/// as a replacement of everything between the first and the last line that differ.
const MAX_PAIRS: usize = 1 << 20;

/// The patch that turns `old` into `new`; without `old` the file is new.
pub(super) fn write(path: &str, old: Option<&str>, new: &str) -> String {
    let name = quoted(path);
    let mut text = format!("diff --git {name} {name}\n");
    if old.is_none() {
        text.push_str("new file mode 100644\n");
    }
    let old_lines = lines(old.unwrap_or_default());
    let new_lines = lines(new);
    let edits = edits(&old_lines, &new_lines);
    let hunks = hunks(&edits);
    if hunks.is_empty() {
        return text;
    }
    let before = if old.is_some() { &*name } else { "/dev/null" };
    let _ = write!(text, "--- {before}\n+++ {name}\n");
    for hunk in hunks {
        let (old_range, new_range) = (range(hunk, Side::Old), range(hunk, Side::New));
        let _ = writeln!(text, "@@ -{old_range} +{new_range} @@");
        for edit in hunk {
            let (sign, line) = match *edit {
                Edit::Keep(old, _) => (' ', old_lines[old]),
                Edit::Delete(old, _) => ('-', old_lines[old]),
                Edit::Insert(_, new) => ('+', new_lines[new]),
            };
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// What became of the file that a patch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Deleted,
    Modified,
    /// It was modified, and whoever made the patch says that it holds all of it.
    ModifiedWhole,
}

/// Both texts of a patch about one file, if it is known to hold all of them.
///
/// That is so when the file is new or gone. Of a file that was modified, a patch shows changes with some context, and how
/// much is up to who made it. So it holds the whole file only if it has a single hunk that begins at the first line and
/// has the mark for a file that does not end with a line end: nothing can come after that.
pub(super) fn read(patch: &str, change: Change) -> Option<(String, String)> {
    let mut lines = patch.split_inclusive('\n');
    let hunk = loop {
        match lines.next() {
            Some(line) => match line.strip_prefix("@@ ") {
                Some(header) => break Some(hunk_header(header)?),
                None if is_file_header(line) => {}
                None => return None,
            },
            None => break None,
        }
    };
    let Some((mut old_lines, mut new_lines)) = hunk else {
        return matches!(change, Change::Added | Change::Deleted).then(Default::default);
    };
    let (mut old, mut new) = (Text::default(), Text::default());
    let mut last = None;
    for line in lines {
        let (sign, text) = line.split_at_checked(1)?;
        if sign == "\\" {
            let last = last.take()?;
            if last != "+" {
                old.end();
            }
            if last != "-" {
                new.end();
            }
            continue;
        }
        last = Some(sign);
        if !matches!(sign, " " | "-" | "+") {
            return None;
        }
        if sign != "+" {
            old_lines = usize::checked_sub(old_lines, 1)?;
            old.push(text)?;
        }
        if sign != "-" {
            new_lines = usize::checked_sub(new_lines, 1)?;
            new.push(text)?;
        }
    }
    let is_whole = match change {
        Change::Added => old.text.is_empty(),
        Change::Deleted => new.text.is_empty(),
        Change::Modified => old.has_ended || new.has_ended,
        Change::ModifiedWhole => true,
    };
    (is_whole && old_lines == 0 && new_lines == 0).then_some((old.text, new.text))
}

/// One side of a patch.
#[derive(Default)]
struct Text {
    text: String,
    /// Whether the file is known to end here.
    has_ended: bool,
}

impl Text {
    fn push(&mut self, line: &str) -> Option<()> {
        self.text.push_str(line);
        (!self.has_ended).then_some(())
    }

    /// The last line has no line end.
    fn end(&mut self) {
        self.has_ended = true;
        if self.text.ends_with('\n') {
            self.text.pop();
        }
    }
}

/// Whether a line belongs to the header of a file with text: a binary one has others.
fn is_file_header(line: &str) -> bool {
    let starts =
        ["diff --git ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "--- ", "+++ "];
    starts.iter().any(|start| line.starts_with(start))
}

/// How many lines of each side a hunk has, if it begins at the first line.
fn hunk_header(header: &str) -> Option<(usize, usize)> {
    let (ranges, _) = header.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let range = |range: &str| -> Option<(usize, usize)> {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let old = range(old.strip_prefix('-')?)?;
    let new = range(new.strip_prefix('+')?)?;
    (old.0 <= 1 && new.0 <= 1).then_some((old.1, new.1))
}

/// One line of a patch, with the lines of both sides that it is about or comes before.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Keep(usize, usize),
    Delete(usize, usize),
    Insert(usize, usize),
}

#[derive(Clone, Copy)]
enum Side {
    Old,
    New,
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The shortest way from the old lines to the new ones.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);

    let mut edits: Vec<Edit> = (0..start).map(|line| Edit::Keep(line, line)).collect();
    let (rows, columns) = (old_end - start, new_end - start);
    if rows.saturating_mul(columns) > MAX_PAIRS {
        edits.extend((start..old_end).map(|line| Edit::Delete(line, start)));
        edits.extend((start..new_end).map(|line| Edit::Insert(old_end, line)));
    } else {
        common_lines(&old[start..old_end], &new[start..new_end], start, &mut edits);
    }
    edits.extend((0..end).map(|line| Edit::Keep(old_end + line, new_end + line)));
    edits
}

/// The longest common subsequence, by the table that every textbook has.
fn common_lines(old: &[&str], new: &[&str], start: usize, edits: &mut Vec<Edit>) {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            lengths[row * width + column] = if old[row] == new[column] {
                lengths[(row + 1) * width + column + 1] + 1
            } else {
                lengths[(row + 1) * width + column].max(lengths[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < old.len() || column < new.len() {
        if row < old.len() && column < new.len() && old[row] == new[column] {
            edits.push(Edit::Keep(start + row, start + column));
            (row, column) = (row + 1, column + 1);
        } else if column == new.len()
            || (row < old.len() && lengths[(row + 1) * width + column] >= lengths[row * width + column + 1])
        {
            edits.push(Edit::Delete(start + row, start + column));
            row += 1;
        } else {
            edits.push(Edit::Insert(start + row, start + column));
            column += 1;
        }
    }
}

/// The runs of edits that change something, with their context.
fn hunks(edits: &[Edit]) -> Vec<&[Edit]> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        if matches!(edit, Edit::Keep(..)) {
            continue;
        }
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(edits.len()));
        match hunks.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks.into_iter().map(|(from, to)| &edits[from..to]).collect()
}

/// The lines of one side that a hunk covers, as its header has them.
fn range(hunk: &[Edit], side: Side) -> String {
    let on_side = |edit: &&Edit| match side {
        Side::Old => !matches!(edit, Edit::Insert(..)),
        Side::New => !matches!(edit, Edit::Delete(..)),
    };
    let line = |edit: &Edit| match (*edit, side) {
        (Edit::Keep(old, _) | Edit::Delete(old, _) | Edit::Insert(old, _), Side::Old) => old,
        (Edit::Keep(_, new) | Edit::Delete(_, new) | Edit::Insert(_, new), Side::New) => new,
    };
    let count = hunk.iter().filter(on_side).count();
    let first = hunk.first().map_or(0, line);
    match count {
        // A side without lines is named by the line before.
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{count}", first + 1),
    }
}

/// The path as git writes it: quoted when it holds something odd.
fn quoted(path: &str) -> String {
    if !path.bytes().any(|byte| !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\') {
        return path.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'\r' => quoted.push_str("\\r"),
            0x20..=0x7e => quoted.push(byte as char),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
