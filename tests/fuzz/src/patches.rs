//! Patches: written from any two texts, read from any text.

use attache_proto::json::{RawJson, Reader};
use attache_proto::model::diff::{Diff, DiffChange, DiffPatch, DiffPatchFormat, PatchDiff, PathChange};
use attache_proto::model::tool::ToolCallContent;
use attache_proto::{Dialect, Encode};

use crate::input::Input;

/// A patch that we write turns the one text into the other, and whatever is read from a patch is what was written.
pub fn patches(data: &[u8]) {
    let mut input = Input::new(data);
    if input.one_in(3) {
        let kind = input.pick(&[DiffChange::Add, DiffChange::Delete, DiffChange::Modify]);
        return any_patch(kind, &String::from_utf8_lossy(input.rest()));
    }
    let is_new = input.one_in(4);
    let (old, new) = (lines(&mut input), lines(&mut input));
    let old = if is_new { String::new() } else { old };
    let diff = Diff::text("/a", (!is_new).then(|| old.clone()), new.clone());
    let patch = diff.to_patch();
    let text = &patch.patch.as_ref().unwrap().text;
    assert_eq!(apply(text, &old), new, "{text}");
    match Diff::Patch(patch.clone()).to_text() {
        Some(read) => assert_eq!((read.old_text.unwrap_or_default(), read.new_text), (old, new), "{text}"),
        None => assert!(!is_new, "{text}"),
    }
}

/// Some lines of a small alphabet, so that many are the same.
fn lines(input: &mut Input<'_>) -> String {
    let words = ["a", "b", "", "-c", "+d", "\\ e", "@@ -1 +1 @@", "diff --git /a /a", " f"];
    let count = input.below(24);
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(input.pick(&words));
        text.push('\n');
    }
    if input.one_in(3) {
        text.pop();
    }
    text
}

/// Applies a patch of one file, by the book.
fn apply(patch: &str, old: &str) -> String {
    let mut left = old.split_inclusive('\n');
    let mut at = 0;
    let mut new = String::new();
    let mut lines = patch.split_inclusive('\n').skip_while(|line| !line.starts_with("@@")).peekable();
    while let Some(header) = lines.next() {
        let range = |sign: char| {
            let range = header.split(' ').find_map(|part| part.strip_prefix(sign)).unwrap();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            (start.parse::<usize>().unwrap(), count.parse::<usize>().unwrap())
        };
        let ((start, mut old_count), (_, mut new_count)) = (range('-'), range('+'));
        let first = if old_count == 0 { start } else { start - 1 };
        while at < first {
            new.push_str(left.next().unwrap());
            at += 1;
        }
        while old_count + new_count > 0 {
            let line = lines.next().unwrap();
            let mut text = line[1..].to_owned();
            if lines.next_if(|next| next.starts_with("\\ No newline at end of file")).is_some() {
                text.pop();
            }
            if !line.starts_with('+') {
                assert_eq!(left.next(), Some(&*text), "{patch}");
                at += 1;
                old_count -= 1;
            }
            if !line.starts_with('-') {
                new.push_str(&text);
                new_count -= 1;
            }
        }
    }
    new.extend(left);
    new
}

/// No text of a patch makes us panic, and what an old client is shown is not much longer.
fn any_patch(kind: fn(PathChange) -> DiffChange, text: &str) {
    let patch = Some(DiffPatch::new(DiffPatchFormat::GitPatch, text));
    let diff = Diff::Patch(PatchDiff::new([kind(PathChange::new("/a"))]).with(|diff| diff.patch = patch));
    if let Some(read) = diff.to_text() {
        assert!(read.new_text.len() + read.old_text.unwrap_or_default().len() <= 2 * text.len());
    }
    let content = ToolCallContent::Diff(diff.into());
    for dialect in [Dialect::V1, Dialect::V2Draft, Dialect::V2] {
        let json = encode(&content, dialect);
        Reader::new(&json, dialect).decode::<ToolCallContent>().unwrap();
    }
}

fn encode<T: Encode>(value: &T, dialect: Dialect) -> String {
    RawJson::encode_in(value, dialect).as_str().to_owned()
}
