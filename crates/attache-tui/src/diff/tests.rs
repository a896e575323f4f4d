use super::*;
use crate::theme::{Background, ColorDepth};
use crate::wrap::spans_width;
use attache_proto::model::diff::{DiffChange, DiffPatch, DiffPatchFormat, PatchDiff, PathChange, PathPairChange};

fn shown(diff: &Diff, width: usize) -> String {
    let theme = Theme::new(ColorDepth::None, Background::Dark, true);
    let lines = lines(&files(diff), width, &theme, &|path| path.to_owned());
    assert!(lines.iter().all(|line| spans_width(&line.spans) <= width), "{lines:?}");
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(diff: &Diff, width: usize, expected: &str) {
    let seen = shown(diff, width);
    assert!(seen == expected, "--- is\n{seen}\n--- expected\n{expected}");
}

fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

#[test]
fn context_is_folded() {
    let old = numbered(1..60);
    let new = old.replace("30\n", "thirty\n");
    let diff = Diff::text("/a.txt", Some(old), new);
    let expected = "/a.txt  +1 -1\n    … 26 lines\n 27   27\n 28   28\n 29   29\n 30 - 30\n 30 + thirty\n 31   31\n 32   32\n 33   33\n    … 26 lines";
    check(&diff, 40, expected);
}

#[test]
fn a_patch_looks_like_the_texts_that_it_is_made_of() {
    let old = numbered(1..60);
    let new = old.replace("30\n", "thirty\n").replace("50\n", "");
    let texts = Diff::text("/a.txt", Some(old), new);
    let patch = Diff::Patch(texts.to_patch());
    // A patch does not tell what comes after its last hunk.
    let expected = shown(&texts, 40);
    let expected = expected.strip_suffix("\n    … 6 lines").unwrap_or(&expected);
    assert_eq!(shown(&patch, 40), expected);
}

#[test]
fn new_files_and_moves_are_named() {
    check(&Diff::text("/a", None, "x\n"), 40, "/a (new file)  +1 -0\n  1 + x");
    let change = PathPairChange::new("/old", "/new");
    check(&Diff::Patch(PatchDiff::new([DiffChange::Move(change)])), 40, "/new (moved from /old)  +0 -0");
}

#[test]
fn words_that_differ_are_marked() {
    let (old, new) = words(&["let a = one;\n"], &["let a = two;\n"]);
    assert_eq!(old[0].iter().filter(|(differs, _)| *differs).map(|(_, text)| &**text).collect::<Vec<_>>(), ["one"]);
    assert_eq!(new[0].iter().filter(|(differs, _)| *differs).map(|(_, text)| &**text).collect::<Vec<_>>(), ["two"]);
}

#[test]
fn wide_screens_show_both_sides() {
    let diff = Diff::text("/a", Some("same\nold\n".into()), "same\nnew\nmore\n");
    let seen = shown(&diff, 120);
    let rows: Vec<&str> = seen.lines().collect();
    assert!(rows[1].contains("  1   same") && rows[1].matches("same").count() == 2, "{seen}");
    assert!(rows[2].contains("2 - old") && rows[2].contains("2 + new"), "{seen}");
    assert!(rows[3].contains("3 + more") && !rows[3].contains('-'), "{seen}");
}

#[test]
fn no_patch_is_too_odd() {
    let patches = [
        "@@ -1,2 +1,9999999999999999999 @@\n-a\n+b\n",
        "@@ -0,0 +0,0 @@\n@@ @@\n@@\n",
        "@@ -18446744073709551615,3 +18446744073709551615,3 @@\n a\n-b\n+c\n",
        "diff --git a b\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n\\ No newline at end of file\nrest\n",
        "no patch at all",
        "@@ -5,1 +5,1 @@\n-日\n+本\n@@ -1,1 +1,1 @@\n-é\n+e\n",
    ];
    for text in patches {
        let patch = DiffPatch::new(DiffPatchFormat::GitPatch, text);
        let changes = [DiffChange::Modify(PathChange::new("/x"))];
        for width in [1, 10, 130] {
            shown(&Diff::Patch(PatchDiff::new(changes.clone()).patch(patch.clone())), width);
            shown(&Diff::Patch(PatchDiff::new([]).patch(patch.clone())), width);
        }
    }
}

#[test]
fn a_rewritten_file_takes_no_time() {
    let old: String = (0..50_000).map(|number| format!("old {number}\n")).collect();
    let new: String = (0..50_000).map(|number| format!("new {number}\n")).collect();
    let files = files(&Diff::text("/a", Some(old), new));
    assert_eq!((files[0].added, files[0].removed), (50_000, 50_000));
    assert!(files[0].rows.len() <= MAX_ROWS);
}
