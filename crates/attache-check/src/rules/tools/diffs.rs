//! Diffs: their form in each version, and patches that agree with the list of changes.

use std::collections::HashMap;

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::MessageIndex;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::shape::{Shape, flaw, may, must};
use crate::rules::walk;

/// The form of version 1 and of the draft.
const TEXTS: Shape =
    Shape::Record(&[must("path", Shape::Text), may("oldText", Shape::Text), must("newText", Shape::Text)]);
/// The form of version 2.
const CHANGES: Shape = Shape::Record(&[
    must(
        "changes",
        Shape::List(&Shape::Tagged(
            "operation",
            &[
                ("add", &[must("path", Shape::Text)]),
                ("delete", &[must("path", Shape::Text)]),
                ("modify", &[must("path", Shape::Text)]),
                ("move", &[must("oldPath", Shape::Text), must("path", Shape::Text)]),
                ("copy", &[must("oldPath", Shape::Text), must("path", Shape::Text)]),
            ],
        )),
    ),
    may("patch", Shape::Record(&[must("format", Shape::Text), must("text", Shape::Text)])),
]);

fn diffs<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a Value)> {
    walk::reports(trial.exchange).flat_map(|report| {
        let at = report.at;
        report.content().filter(|item| item["type"] == "diff").map(move |diff| (at, diff)).collect::<Vec<_>>()
    })
}

/// The paths that a diff of either form names.
pub(super) fn paths(diff: &Value) -> impl Iterator<Item = &str> {
    let changes = walk::items(&diff["changes"]).iter().flat_map(|change| [&change["oldPath"], &change["path"]]);
    std::iter::once(&diff["path"]).chain(changes).filter_map(Value::as_str)
}

pub(super) fn form(trial: &Trial<'_>, verdict: &mut Verdict) {
    let shape = if trial.dialect == Dialect::V2 { &CHANGES } else { &TEXTS };
    for (at, diff) in diffs(trial) {
        match flaw(diff, shape) {
            Some(flaw) => verdict.broken(at, format!("in a diff, {flaw}")),
            None => verdict.kept(),
        }
    }
}

pub(super) fn agrees(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, diff, patch) in git_patches(trial) {
        let changes = operations(diff);
        let wrong = files(patch).into_iter().find_map(|file| disagreement(&file, &changes));
        match wrong {
            Some(seen) => verdict.broken(at, seen),
            None => verdict.kept(),
        }
    }
}

pub(super) fn plain(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, patch) in git_patches(trial) {
        match unplain(patch) {
            Some(seen) => verdict.broken(at, seen),
            None => verdict.kept(),
        }
    }
}

fn git_patches<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a Value, &'a str)> {
    diffs(trial).filter_map(|(at, diff)| {
        let patch = Some(&diff["patch"]).filter(|patch| patch["format"] == "git_patch")?;
        Some((at, diff, patch["text"].as_str()?))
    })
}

/// What a patch says of one file.
#[derive(Debug, Default, PartialEq)]
struct PatchedFile {
    /// The path before, none for `/dev/null`.
    old: Option<String>,
    /// The path after, none for `/dev/null`.
    new: Option<String>,
}

/// The files that have text in a patch, or that it moves or copies. Lines of text that look like headers are none.
fn files(patch: &str) -> Vec<PatchedFile> {
    let mut files = Vec::new();
    let mut old = None;
    for line in header_lines(patch) {
        let (key, path) = ["--- ", "rename from ", "copy from ", "+++ ", "rename to ", "copy to "]
            .into_iter()
            .find_map(|key| Some((key, line.strip_prefix(key)?)))
            .unwrap_or(("", ""));
        match key {
            "--- " | "rename from " | "copy from " => old = Some(path_of(path)),
            "" => {}
            _ => {
                if let Some(old) = old.take() {
                    files.push(PatchedFile { old, new: path_of(path) });
                }
            }
        }
    }
    files
}

/// The lines of a patch that are not text of a file.
fn header_lines(patch: &str) -> impl Iterator<Item = &str> {
    let (mut old, mut new) = (0_u64, 0_u64);
    patch.lines().filter(move |line| {
        if old == 0 && new == 0 {
            if let Some(counts) = line.strip_prefix("@@ ").and_then(hunk) {
                (old, new) = counts;
            }
            return !line.starts_with("@@ ") && !line.starts_with('\\');
        }
        match line.as_bytes().first() {
            Some(b'-') => old = old.saturating_sub(1),
            Some(b'+') => new = new.saturating_sub(1),
            Some(b'\\') => {}
            _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
        }
        false
    })
}

/// How many lines of the old and of the new text a hunk has.
fn hunk(header: &str) -> Option<(u64, u64)> {
    let mut ranges = header.split(' ').map(|range| {
        let count = range.get(1..)?.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
        count.filter(|_| range.starts_with(['-', '+']))
    });
    Some((ranges.next()??, ranges.next()??))
}

/// A path as it stands in a header, without quotes; none for `/dev/null`.
fn path_of(text: &str) -> Option<String> {
    let path = match text.strip_prefix('"') {
        Some(quoted) => unquoted(quoted),
        None => text.split('\t').next().unwrap_or(text).to_owned(),
    };
    (path != "/dev/null").then_some(path)
}

/// Undoes git's quotes: those of C, with bytes in octal.
fn unquoted(text: &str) -> String {
    let mut path = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
        if byte != b'\\' {
            path.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => path.push(b'\n'),
            Some(b't') => path.push(b'\t'),
            Some(b'r') => path.push(b'\r'),
            Some(first @ b'0'..=b'7') => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                path.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => path.push(other),
            None => break,
        }
    }
    String::from_utf8_lossy(&path).into_owned()
}

/// What the list of changes says of each path.
fn operations(diff: &Value) -> HashMap<&str, Vec<&str>> {
    let mut operations: HashMap<&str, Vec<&str>> = HashMap::new();
    for change in walk::items(&diff["changes"]) {
        let operation = change["operation"].as_str().unwrap_or("");
        for path in [&change["oldPath"], &change["path"]].into_iter().filter_map(Value::as_str) {
            operations.entry(path).or_default().push(operation);
        }
    }
    operations
}

/// What a patch says of a file against the list of changes. Relative paths are another rule's concern.
fn disagreement(file: &PatchedFile, changes: &HashMap<&str, Vec<&str>>) -> Option<String> {
    let absolute = |path: &Option<String>| path.clone().filter(|path| walk::is_absolute(path));
    let (old, new) = (absolute(&file.old), absolute(&file.new));
    if let Some(path) = old.iter().chain(&new).find(|path| !changes.contains_key(path.as_str())) {
        return Some(format!("the patch changes {}, `changes` does not", shown(path)));
    }
    let only = |path: &str, wrong: [&str; 2]| {
        let operations = changes.get(path)?;
        operations.iter().all(|operation| wrong.contains(operation)).then(|| operations.first().copied()).flatten()
    };
    match (&file.old, &file.new, old, new) {
        (None, Some(_), _, Some(new)) => only(&new, ["delete", "modify"])
            .map(|operation| format!("the patch adds {}, `changes` has `{operation}`", shown(&new))),
        (Some(_), None, Some(old), _) => only(&old, ["add", "modify"])
            .map(|operation| format!("the patch deletes {}, `changes` has `{operation}`", shown(&old))),
        _ => None,
    }
}

/// What is in a patch that should not be there.
fn unplain(patch: &str) -> Option<String> {
    const AROUND: [&str; 6] = ["From ", "From: ", "Subject: ", "Date: ", "Author: ", "commit "];
    let mut has_begun = false;
    for line in header_lines(patch) {
        has_begun |= ["diff --git ", "--- "].iter().any(|start| line.starts_with(start));
        if !has_begun && AROUND.iter().any(|start| line.starts_with(start)) {
            return Some(format!("the patch begins with {}", shown(line)));
        }
        if line.starts_with("diff --git a/") {
            return Some(format!("a path with a prefix in {}", shown(line)));
        }
    }
    let mut paths = files(patch).into_iter().flat_map(|file| [file.old, file.new]).flatten();
    let relative = paths.find(|path| !walk::is_absolute(path))?;
    Some(format!("the patch has the path {}, which is not absolute", shown(&relative)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_a_header_is_none() {
        let patch = "diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1,2 +1 @@\n--- x\n+++ y\n z\n--- /p/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n";
        let file = |old: &str, new: Option<&str>| PatchedFile { old: Some(old.into()), new: new.map(Into::into) };
        assert_eq!(files(patch), [file("/p/a", Some("/p/a")), file("/p/b", None)]);
        assert_eq!(unplain(patch), None);
    }

    #[test]
    fn quoted_paths_are_read() {
        assert_eq!(path_of("\"/p/\\303\\274 \\\"\\t\"").as_deref(), Some("/p/ü \"\t"));
        assert_eq!(path_of("/p/a b\t").as_deref(), Some("/p/a b"));
        assert_eq!(path_of("/dev/null"), None);
    }

    #[test]
    fn nothing_in_a_patch_makes_it_panic() {
        for patch in ["", "@@ ", "@@ -1", "@@ -99999999999999999999 +1 @@", "--- \n+++ \"\\", "+++ x", "@@ é +é @@\n-"]
        {
            files(patch);
            unplain(patch);
        }
    }
}
